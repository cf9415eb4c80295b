/* Digests of several messages side by side: one in each lane of the processor's vectors.
 *
 * Owns which vectors are used, and what waits until there is one for each lane. Must not know what is
 * digested. Invariant: the digits are those that each message would have alone. */

#include "lanes.h"

/* What is digested of each lane, word by word. */
typedef struct {
    uint64_t h[8][LANES], m[WORDS][LANES], taken[LANES];
    uint64_t last[LANES], active[LANES]; /* all bits or none */
} Side;

#if defined(__GNUC__) && defined(__x86_64__)

/* One block of as many lanes as `Words` has, from a lane on. */
#define COMPRESS(name, Words, features)                                                            \
    typedef uint64_t Words __attribute__((vector_size(sizeof(uint64_t) * name##_lanes)));          \
    __attribute__((target(features))) static void name(Side *side, int from)                       \
    {                                                                                              \
        Words v[16], m[WORDS], h, word;                                                            \
                                                                                                   \
        for (int at = 0; at < WORDS; at++)                                                         \
            memcpy(&m[at], &side->m[at][from], sizeof(Words));                                     \
        for (int at = 0; at < 8; at++) {                                                           \
            memcpy(&v[at], &side->h[at][from], sizeof(Words));                                     \
            v[at + 8] = (Words){0} + start[at];                                                    \
        }                                                                                          \
        memcpy(&word, &side->taken[from], sizeof(Words));                                          \
        v[12] ^= word;                                                                             \
        memcpy(&word, &side->last[from], sizeof(Words));                                           \
        v[14] ^= word;                                                                             \
        ALL_ROUNDS                                                                                 \
        memcpy(&word, &side->active[from], sizeof(Words));                                         \
        for (int at = 0; at < 8; at++) {                                                           \
            memcpy(&h, &side->h[at][from], sizeof(Words));                                         \
            h ^= (v[at] ^ v[at + 8]) & word;                                                       \
            memcpy(&side->h[at][from], &h, sizeof(Words));                                         \
        }                                                                                          \
    }

enum { four_lanes = 4, eight_lanes = 8 };
COMPRESS(four, Four, "avx2")
COMPRESS(eight, Eight, "avx512f")

static int
lanes_here(void)
{
    static int found;

    if (found == 0)
        found = __builtin_cpu_supports("avx512f") ? 8 : __builtin_cpu_supports("avx2") ? 4 : 1;
    return found;
}

static void
compress_side(Side *side, int count, int most)
{
    if (most >= 8) {
        eight(side, 0);
        return;
    }
    for (int from = 0; from < count; from += 4)
        four(side, from);
}

#else /* two lanes, as other processors have, are no faster than one after the other */

static int
lanes_here(void)
{
    return 1;
}

static void
compress_side(Side *Py_UNUSED(side), int Py_UNUSED(count), int Py_UNUSED(most))
{
}

#endif

void
begin_lanes(Lanes *lanes, int most)
{
    int here = lanes_here();

    lanes->count = 0;
    lanes->most = most >= 8 && here >= 8 ? 8 : most >= 4 && here >= 4 ? 4 : 1;
}

static char *
digits_in(PyObject *text)
{
    return (char *)PyUnicode_1BYTE_DATA(text);
}

/* Put the next block of each lane there; whether any has one. */
static int
next_block(const Lanes *lanes, Side *side, size_t block)
{
    int any = 0;

    for (int lane = 0; lane < lanes->count; lane++) {
        size_t end = (block + 1) * BLOCK, length = lanes->lengths[lane];
        int is_active = block == 0 || block * BLOCK < length;

        side->active[lane] = is_active ? UINT64_MAX : 0;
        side->last[lane] = length <= end ? UINT64_MAX : 0;
        side->taken[lane] = length <= end ? length : end;
        any |= is_active;
        for (int at = 0; is_active && at < WORDS; at++)
            side->m[at][lane] = word_at(&lanes->bytes[lane][block * BLOCK + 8 * (size_t)at]);
    }
    return any;
}

void
settle_lanes(Lanes *lanes)
{
    Side side;

    if (lanes->count > 2) { /* two go one after the other as fast */
        memset(&side, 0, sizeof(side));
        for (int at = 0; at < 8; at++) {
            for (int lane = 0; lane < lanes->count; lane++)
                side.h[at][lane] = start[at] ^ (at == 0 ? FIRST_WORD : 0);
        }
        for (size_t block = 0; block < BLOCKS_MAX && next_block(lanes, &side, block); block++)
            compress_side(&side, lanes->count, lanes->most);
        for (int lane = 0; lane < lanes->count; lane++)
            write_digits(side.h[0][lane], side.h[1][lane], digits_in(lanes->texts[lane]));
    }
    for (int lane = 0; lane < lanes->count; lane++) {
        if (lanes->count <= 2)
            digest_hex(lanes->bytes[lane], lanes->lengths[lane], digits_in(lanes->texts[lane]));
        Py_DECREF(lanes->texts[lane]);
    }
    lanes->count = 0;
}

PyObject *
digits_of(Lanes *lanes, const uint8_t *data, size_t length)
{
    PyObject *text = PyUnicode_New(DIGITS, 127);
    int lane;

    if (text == NULL)
        return NULL;
    if (lanes == NULL || lanes->most == 1 || length > sizeof(lanes->bytes[0])) {
        digest_hex(data, length, digits_in(text));
        return text;
    }
    memset(digits_in(text), '0', DIGITS); /* a text, whoever looks at it before its time */
    lane = lanes->count++;
    lanes->texts[lane] = Py_NewRef(text);
    lanes->lengths[lane] = length;
    memcpy(lanes->bytes[lane], data, length);
    memset(lanes->bytes[lane] + length, 0, (BLOCK - length % BLOCK) % BLOCK + (length ? 0 : BLOCK));
    if (lanes->count == LANES)
        settle_lanes(lanes);
    return text;
}

/* digests(messages, most): the digits of each; so many side by side at the most. */
PyObject *
pass_digests(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count)
{
    PyObject *found;
    Lanes lanes;

    if (count != 2 || !PyTuple_CheckExact(args[0]) || !PyLong_CheckExact(args[1])) {
        PyErr_SetString(PyExc_TypeError, "digests takes a tuple of bytes and a number");
        return NULL;
    }
    begin_lanes(&lanes, (int)PyLong_AsLong(args[1]));
    found = PyErr_Occurred() ? NULL : PyList_New(0);
    for (Py_ssize_t at = 0; found != NULL && at < PyTuple_GET_SIZE(args[0]); at++) {
        PyObject *message = PyTuple_GET_ITEM(args[0], at), *text = NULL;

        if (PyBytes_CheckExact(message))
            text = digits_of(&lanes, (const uint8_t *)PyBytes_AS_STRING(message),
                             (size_t)PyBytes_GET_SIZE(message));
        else
            PyErr_SetString(PyExc_TypeError, "a message is bytes");
        if (text == NULL || PyList_Append(found, text) < 0)
            Py_CLEAR(found);
        Py_XDECREF(text);
    }
    settle_lanes(&lanes);
    return found;
}
