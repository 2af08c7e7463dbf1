/* The function of each target, called by libFuzzer, or by replay.c for each file. */
#ifndef REDLOCK_FUZZ_TARGET_H
#define REDLOCK_FUZZ_TARGET_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
