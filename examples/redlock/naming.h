/*
 * The library names what it refuses by the fields of its structs. The programs read those from
 * options, and name them so.
 */
#ifndef NAMING_H
#define NAMING_H

/*
 * Returns a message of the library with options in place of fields: "--ttl: 60000 ms is not between
 * 1 and --max-ttl, 30000 ms". Valid until the next call of the
 * thread.
 */
const char *naming_by_options(const char *message);

#endif
