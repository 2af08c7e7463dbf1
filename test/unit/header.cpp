/* The same in C++: see header.c. */
#include "header.c"
