/* A property that does not hold ends the process, in the way of the program that checks it. */
#ifndef REDLOCK_TEST_CHECK_H
#define REDLOCK_TEST_CHECK_H

/* Each program with such checks defines this. */
_Noreturn void check_failed(const char *file, int line, const char *condition);

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            check_failed(__FILE__, __LINE__, #condition);                                          \
        }                                                                                          \
    } while (0)

#endif
