/* The ids of what is detected: BLAKE2b of 16 bytes (RFC 7693) over msgpack.
 *
 * Owns both. Must not know what is told apart. Invariant: the digits are those that identity.py
 * gives for the same bytes. */

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

static void
compress(uint64_t h[8], const uint8_t *block, uint64_t taken, int last)
{
    uint64_t v[16], m[WORDS];

    for (int at = 0; at < WORDS; at++)
        m[at] = word_at(block + 8 * at);
    for (int at = 0; at < 8; at++) {
        v[at] = h[at];
        v[at + 8] = start[at];
    }
    v[12] ^= taken;
    if (last)
        v[14] = ~v[14];
    ALL_ROUNDS
    for (int at = 0; at < 8; at++)
        h[at] ^= v[at] ^ v[at + 8];
}

/* The eight digits of four bytes, the lowest first, eight at a time as one word. */
static void
write_eight(uint64_t bytes, char *hex)
{
    uint64_t pairs = (bytes | bytes << 16) & 0x0000ffff0000ffffu, digits, letters;

    pairs = (pairs | pairs << 8) & 0x00ff00ff00ff00ffu;
    digits = (pairs >> 4 & 0x000f000f000f000fu) | (pairs & 0x000f000f000f000fu) << 8;
    letters = (digits + 0x0606060606060606u) >> 4 & 0x0101010101010101u;
    digits += 0x3030303030303030u + letters * ('a' - '9' - 1);
    for (int at = 0; at < 8; at++)
        hex[at] = (char)(digits >> (8 * at));
}

static void
write_digits(uint64_t first, uint64_t second, char *hex)
{
    write_eight(first & 0xffffffffu, hex);
    write_eight(first >> 32, hex + 8);
    write_eight(second & 0xffffffffu, hex + 16);
    write_eight(second >> 32, hex + 24);
}

PyObject *
digits_of(const uint8_t *data, size_t length)
{
    PyObject *text = PyUnicode_New(DIGITS, 127);
    uint8_t block[BLOCK] = {0};
    uint64_t h[8];
    size_t taken = 0;

    if (text == NULL)
        return NULL;
    memcpy(h, start, sizeof(h));
    h[0] ^= FIRST_WORD;
    for (; length - taken > BLOCK; taken += BLOCK)
        compress(h, data + taken, taken + BLOCK, 0);
    memcpy(block, data + taken, length - taken);
    compress(h, block, length, 1);
    write_digits(h[0], h[1], (char *)PyUnicode_1BYTE_DATA(text));
    return text;
}

/* --- msgpack ---------------------------------------------------------------------------------- */

void
put_bytes(Packer *packer, const void *bytes, size_t length)
{
    if (packer->full || packer->most - packer->length < length) {
        packer->full = 1;
        return;
    }
    memcpy(packer->bytes + packer->length, bytes, length);
    packer->length += length;
}

/* A mark and a number in so many bytes, the highest first. */
static void
put_number(Packer *packer, uint8_t mark, uint64_t number, int bytes)
{
    uint8_t made[9] = {mark};

    for (int at = bytes; at > 0; at--) {
        made[at] = (uint8_t)number;
        number >>= 8;
    }
    put_bytes(packer, made, (size_t)bytes + 1);
}

void
put_array(Packer *packer, size_t count)
{
    if (count < 16)
        put_number(packer, (uint8_t)(0x90 | count), 0, 0);
    else if (count <= 0xffff)
        put_number(packer, 0xdc, count, 2);
    else
        put_number(packer, 0xdd, count, 4);
}

void
put_text(Packer *packer, PyObject *text)
{
    Py_ssize_t length = 0;
    const char *bytes = NULL;

    if (text != NULL && PyUnicode_CheckExact(text) && PyUnicode_IS_COMPACT_ASCII(text)) {
        bytes = (const char *)PyUnicode_1BYTE_DATA(text);
        length = PyUnicode_GET_LENGTH(text);
    }
    if (bytes == NULL || length > 0xffff) { /* others are left to Python */
        packer->full = 1;
        return;
    }
    if (length < 32)
        put_number(packer, (uint8_t)(0xa0 | length), 0, 0);
    else if (length <= 0xff)
        put_number(packer, 0xd9, (uint64_t)length, 1);
    else
        put_number(packer, 0xda, (uint64_t)length, 2);
    put_bytes(packer, bytes, (size_t)length);
}

void
put_whole(Packer *packer, int64_t value)
{
    uint64_t bits = (uint64_t)value;

    if (value >= -32 && value <= 127)
        put_number(packer, (uint8_t)bits, 0, 0);
    else if (value >= 0 && value <= 0xff)
        put_number(packer, 0xcc, bits, 1);
    else if (value >= 0 && value <= 0xffff)
        put_number(packer, 0xcd, bits, 2);
    else if (value >= 0 && value <= 0xffffffffLL)
        put_number(packer, 0xce, bits, 4);
    else if (value >= 0)
        put_number(packer, 0xcf, bits, 8);
    else if (value >= -0x80)
        put_number(packer, 0xd0, bits, 1);
    else if (value >= -0x8000)
        put_number(packer, 0xd1, bits, 2);
    else if (value >= -0x80000000LL)
        put_number(packer, 0xd2, bits, 4);
    else
        put_number(packer, 0xd3, bits, 8);
}
