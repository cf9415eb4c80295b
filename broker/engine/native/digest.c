/* The ids of what is detected: BLAKE2b of 16 bytes (RFC 7693) over msgpack.
 *
 * Owns both. Must not know what is told apart. Invariant: the digits are those that identity.py
 * gives for the same bytes. */

#include "digest.h"

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

void
write_digits(uint64_t first, uint64_t second, char *hex)
{
    write_eight(first & 0xffffffffu, hex);
    write_eight(first >> 32, hex + 8);
    write_eight(second & 0xffffffffu, hex + 16);
    write_eight(second >> 32, hex + 24);
}

void
digest_hex(const uint8_t *data, size_t length, char *hex)
{
    uint8_t block[BLOCK] = {0};
    uint64_t h[8];
    size_t taken = 0;

    memcpy(h, start, sizeof(h));
    h[0] ^= FIRST_WORD;
    for (; length - taken > BLOCK; taken += BLOCK)
        compress(h, data + taken, taken + BLOCK, 0);
    memcpy(block, data + taken, length - taken);
    compress(h, block, length, 1);
    write_digits(h[0], h[1], hex);
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
