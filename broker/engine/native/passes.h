/* What the compiled passes share. Each does what a function of the core written in Python does, or
 * says that it cannot: then that function is asked. None may differ from it in what it gives. */

#ifndef HEADWATER_PASSES_H
#define HEADWATER_PASSES_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <structmember.h>

#define NO_SLOT ((Py_ssize_t)-1)

/* Where objects of the class keep an attribute; NO_SLOT where that is no slot. Sets no error. */
Py_ssize_t slot_of(PyTypeObject *type, const char *name);
Py_ssize_t slot_named(PyTypeObject *type, PyObject *name);

/* What stands in a slot, borrowed; NULL where nothing does. */
static inline PyObject *
in_slot(PyObject *object, Py_ssize_t slot)
{
    return *(PyObject **)((char *)object + slot);
}

/* Where objects of the class that came last keep what goes by the name. */
typedef struct {
    PyTypeObject *type;
    PyObject *name;
    Py_ssize_t slot;
} Known;

static inline Py_ssize_t
slot_in(Known *known, PyObject *object, PyObject *name)
{
    if (known->type != Py_TYPE(object) || known->name != name) {
        known->type = Py_TYPE(object);
        known->name = name;
        known->slot = slot_named(known->type, name);
    }
    return known->slot;
}

/* An integer of 62 bits; 0 where the object is anything else. Sets no error. */
int as_whole_slowly(PyObject *object, int64_t *value);

/* The same without a call, where it is known how this Python keeps integers of up to 60 bits. */
static inline int
as_whole(PyObject *object, int64_t *value)
{
#if PY_VERSION_HEX < 0x030C0000 && PYLONG_BITS_IN_DIGIT == 30
    if (object != NULL && PyLong_CheckExact(object)) {
        const digit *digits = ((PyLongObject *)object)->ob_digit;
        Py_ssize_t size = Py_SIZE(object);
        if (size == 2) {
            *value = (int64_t)digits[1] << 30 | (int64_t)digits[0];
            return 1;
        }
        if (size == 0 || size == 1) {
            *value = size ? (int64_t)digits[0] : 0;
            return 1;
        }
    }
#endif
    return as_whole_slowly(object, value);
}

/* How events of one class are read: at most SHAPES of them are known at a time, with their class. */
typedef struct {
    PyTypeObject *type; /* owned */
    int whole;          /* whether all that stands here was found */
    Py_ssize_t id, start, end;
    Py_ssize_t count;
    PyObject *names; /* the attributes, a tuple, owned */
    Py_ssize_t *slots;
} Shape;

/* The shape of a class; NULL where its events are not read so. Sets no error. */
const Shape *shape_of(PyTypeObject *type);

#define KEYS_MAX 8    /* parts of a key by which events are grouped */
#define CLASSES_MAX 8 /* of events, in one call; past them the first make room */

/* How events of a class are read that are grouped by a key. */
typedef struct {
    PyTypeObject *type; /* borrowed from the events */
    int whole;          /* whether all that stands here was found */
    Py_ssize_t start, end;
    Py_ssize_t slots[KEYS_MAX];
} Reading;

typedef struct {
    int next;
    Reading known[CLASSES_MAX];
} Readings;

const Reading *learn_reading(Readings *readings, PyTypeObject *type, PyObject *keys);

static inline const Reading *
reading_of(Readings *readings, PyTypeObject *type, PyObject *keys)
{
    for (int at = 0; at < CLASSES_MAX; at++) {
        if (readings->known[at].type == type)
            return &readings->known[at];
    }
    return learn_reading(readings, type, keys);
}

/* A text of the digits of BLAKE2b with 16 bytes; NULL with an error. */
PyObject *digits_of(const uint8_t *data, size_t length);

/* Bytes of msgpack; `full` where there was no room, or a text that has no bytes. */
typedef struct {
    uint8_t *bytes;
    size_t length, most;
    int full;
} Packer;

void put_bytes(Packer *packer, const void *bytes, size_t length);
void put_array(Packer *packer, size_t count);
void put_text(Packer *packer, PyObject *text);
void put_whole(Packer *packer, int64_t value);

PyObject *pass_readings(PyObject *module, PyObject *const *args, Py_ssize_t count);
PyObject *pass_course(PyObject *module, PyObject *const *args, Py_ssize_t count);
PyObject *pass_tell(PyObject *module, PyObject *const *args, Py_ssize_t count);
PyObject *pass_give(PyObject *module, PyObject *const *args, Py_ssize_t count);

PyObject *pass_later(PyObject *module, PyObject *const *args, Py_ssize_t count);

PyObject *pass_total(PyObject *module, PyObject *values);
PyObject *pass_read_total(PyObject *module, PyObject *const *args, Py_ssize_t count);

int add_ends(PyObject *module);
int add_patience(PyObject *module);
int add_teller(PyObject *module);
int add_maker(PyObject *module);
int add_scale(PyObject *module);

#endif
