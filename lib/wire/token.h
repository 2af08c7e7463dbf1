/* Tokens packed to half their size: four bits a digit. */
#ifndef REDLOCK_WIRE_TOKEN_H
#define REDLOCK_WIRE_TOKEN_H

#include "wire/command.h"

#include <stdint.h>
#include <string.h>

#define TOKEN_BYTES (TOKEN_LENGTH / 2)
#define ENTRY_ID_BYTES (ENTRY_ID_LENGTH / 2)

/* Packs TOKEN_LENGTH lower-case digits, eight at a time. The byte order is the machine's. */
static inline void token_pack(unsigned char packed[TOKEN_BYTES], const char *digits) {
    for (unsigned i = 0; i < TOKEN_LENGTH / 8; i++) {
        uint64_t each;
        memcpy(&each, digits + i * sizeof(each), sizeof(each));
        /* Bit 6 is set in a letter (0x61 to 0x66) and not in a digit (0x30 to 0x39): the low four
           bits of a letter, 1 to 6, plus 9 are its value. Then neighbours are joined. */
        uint64_t is_letter = each >> 6 & UINT64_C(0x0101010101010101);
        each = (each & UINT64_C(0x0f0f0f0f0f0f0f0f)) + is_letter * 9;
        each = (each | each >> 4) & UINT64_C(0x00ff00ff00ff00ff);
        each = (each | each >> 8) & UINT64_C(0x0000ffff0000ffff);
        uint32_t bits = (uint32_t)(each | each >> 16);
        memcpy(packed + i * sizeof(bits), &bits, sizeof(bits));
    }
}

/* Writes the digits of a packed token, and a NUL. */
static inline void token_unpack(char digits[TOKEN_LENGTH + 1],
                                const unsigned char packed[TOKEN_BYTES]) {
    for (unsigned i = 0; i < TOKEN_LENGTH / 8; i++) {
        uint32_t bits;
        memcpy(&bits, packed + i * sizeof(bits), sizeof(bits));
        uint64_t each = bits;
        each = (each | each << 16) & UINT64_C(0x0000ffff0000ffff);
        each = (each | each << 8) & UINT64_C(0x00ff00ff00ff00ff);
        each = (each | each << 4) & UINT64_C(0x0f0f0f0f0f0f0f0f);
        /* Values from 10 carry into bit 4 when 6 is added: those become letters. */
        uint64_t is_letter =
            (each + UINT64_C(0x0606060606060606)) >> 4 & UINT64_C(0x0101010101010101);
        each += UINT64_C(0x3030303030303030) + is_letter * ('a' - '0' - 10);
        memcpy(digits + i * sizeof(each), &each, sizeof(each));
    }
    digits[TOKEN_LENGTH] = '\0';
}

#endif
