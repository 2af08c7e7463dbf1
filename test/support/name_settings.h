/*
 * The settings of names for this program, in place of the machine's: replaces c-ares'
 * ares_getaddrinfo by one that sets them before each lookup.
 */
#ifndef REDLOCK_TEST_NAME_SETTINGS_H
#define REDLOCK_TEST_NAME_SETTINGS_H

/* Sets the path of the hosts file and the name server, "address:port", for later lookups. */
void name_settings_use(const char *hosts, const char *server);

#endif
