#include "memory.h"

#include <cstdlib>
#include <new>

std::size_t memory::allocations;
bool memory::is_refusing;

void *operator new(std::size_t size, const std::nothrow_t &) noexcept {
    memory::allocations++;
    return memory::is_refusing ? nullptr : std::malloc(size);
}

void *operator new(std::size_t size) {
    void *block = operator new(size, std::nothrow);
    if (block == nullptr) {
        throw std::bad_alloc();
    }
    return block;
}

void operator delete(void *block) noexcept {
    std::free(block);
}

void operator delete(void *block, std::size_t) noexcept {
    std::free(block);
}

void operator delete(void *block, const std::nothrow_t &) noexcept {
    std::free(block);
}
