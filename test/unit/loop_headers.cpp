/* The same in C++: see loop_headers.c. */
#include "loop_headers.c"
