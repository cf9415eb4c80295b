/* BLAKE2b (RFC 7693) of 16 bytes and no key: what one digest and several side by side share. */

#ifndef HEADWATER_DIGEST_H
#define HEADWATER_DIGEST_H

#include "passes.h"

#define BLOCK 128
#define DIGEST 16
#define DIGITS (2 * DIGEST)
#define WORDS 16 /* of a block */
#define FIRST_WORD (0x01010000u ^ DIGEST) /* turns the first word at the start */

static const uint64_t start[8] = {
    0x6a09e667f3bcc908u, 0xbb67ae8584caa73bu, 0x3c6ef372fe94f82bu, 0xa54ff53a5f1d36f1u,
    0x510e527fade682d1u, 0x9b05688c2b3e6c1fu, 0x1f83d9abfb41bd6bu, 0x5be0cd19137e2179u,
};

/* Rounds 10 and 11 are those of 0 and 1 again. */
static const uint8_t order[10][WORDS] = {
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
    {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
    {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4},
    {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
    {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13},
    {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
    {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11},
    {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
    {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5},
    {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0},
};

/* The rest is written once for words, and for vectors of the words of several. */

#define TURNED(word, bits) (((word) >> (bits)) | ((word) << (64 - (bits))))

#define MIX(a, b, c, d, x, y)                                                                      \
    do {                                                                                           \
        v[a] += v[b] + (x);                                                                        \
        v[d] ^= v[a];                                                                              \
        v[d] = TURNED(v[d], 32);                                                                   \
        v[c] += v[d];                                                                              \
        v[b] ^= v[c];                                                                              \
        v[b] = TURNED(v[b], 24);                                                                   \
        v[a] += v[b] + (y);                                                                        \
        v[d] ^= v[a];                                                                              \
        v[d] = TURNED(v[d], 16);                                                                   \
        v[c] += v[d];                                                                              \
        v[b] ^= v[c];                                                                              \
        v[b] = TURNED(v[b], 63);                                                                   \
    } while (0)

#if defined(__clang__)
#define UNROLLED _Pragma("clang loop unroll(full)")
#elif defined(__GNUC__)
#define UNROLLED _Pragma("GCC unroll 12")
#else
#define UNROLLED
#endif

/* Mix v with m. */
#define ALL_ROUNDS                                                                                 \
    UNROLLED for (int round = 0; round < 12; round++)                                              \
    {                                                                                              \
        const uint8_t *s = order[round % 10];                                                      \
        MIX(0, 4, 8, 12, m[s[0]], m[s[1]]);                                                        \
        MIX(1, 5, 9, 13, m[s[2]], m[s[3]]);                                                        \
        MIX(2, 6, 10, 14, m[s[4]], m[s[5]]);                                                       \
        MIX(3, 7, 11, 15, m[s[6]], m[s[7]]);                                                       \
        MIX(0, 5, 10, 15, m[s[8]], m[s[9]]);                                                       \
        MIX(1, 6, 11, 12, m[s[10]], m[s[11]]);                                                     \
        MIX(2, 7, 8, 13, m[s[12]], m[s[13]]);                                                      \
        MIX(3, 4, 9, 14, m[s[14]], m[s[15]]);                                                      \
    }

/* Eight bytes, the lowest first. */
static inline uint64_t
word_at(const uint8_t *bytes)
{
    uint64_t word = 0;

    for (int at = 7; at >= 0; at--)
        word = (word << 8) | bytes[at];
    return word;
}

/* The first two words of a digest as its digits. */
void write_digits(uint64_t first, uint64_t second, char *hex);

#endif
