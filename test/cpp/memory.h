/* The C++ heap of a test program, with a count of its allocations, and with refusals. */
#ifndef REDLOCK_TEST_MEMORY_H
#define REDLOCK_TEST_MEMORY_H

#include <cstddef>

namespace memory {

extern std::size_t allocations; /* calls of operator new */
extern bool is_refusing;        /* whether all of these fail */

} // namespace memory

#endif
