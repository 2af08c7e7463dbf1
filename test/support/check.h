/* Checks that end the process, in the program's own way, when a property does not hold. */
#ifndef REDLOCK_TEST_CHECK_H
#define REDLOCK_TEST_CHECK_H

/* Ends the process after a failed check. Each program with checks defines it. */
_Noreturn void check_failed(const char *file, int line, const char *condition);

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            check_failed(__FILE__, __LINE__, #condition);                                          \
        }                                                                                          \
    } while (0)

#endif
