/*
 * The library's messages name the fields of its structs. The programs read these from options, and
 * name the options instead.
 */
#ifndef NAMING_H
#define NAMING_H

/*
 * Returns a message of the library with options in place of fields: "--ttl: 60000 ms is not between
 * 1 and --max-ttl, 30000 ms". Valid until the thread's next call.
 */
const char *naming_by_options(const char *message);

#endif
