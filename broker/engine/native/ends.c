/* The ends of events that came in no order: a set of integers, and who of a run ends later.
 *
 * Owns the set. Must not know events. Invariant: it tells what a set of Python would of the same
 * integers, and holds nothing but integers. */

#include "passes.h"

#define FREE INT64_MIN /* no integer of 62 bits */
#define ROOM_LEAST 64

typedef struct {
    PyObject_HEAD
    int64_t *table;
    size_t room; /* a power of two */
    int shift;   /* 64 less its logarithm */
    size_t count;
    PyObject *others; /* a set of integers of more than 62 bits; NULL until there is one */
} Ends;

static inline size_t
place_of(const Ends *self, int64_t value)
{
    return (size_t)(((uint64_t)value * 0x9e3779b97f4a7c15u) >> self->shift);
}

static inline void
enter(Ends *self, int64_t value)
{
    size_t place = place_of(self, value);

    for (; self->table[place] != FREE; place = (place + 1) & (self->room - 1)) {
        if (self->table[place] == value)
            return;
    }
    self->table[place] = value;
    self->count++;
}

/* Have room for so many more; 0 with an error. */
static int
make_room(Ends *self, size_t more)
{
    size_t room = self->room, before = self->room;
    int64_t *table = self->table;

    while (room < 2 * (self->count + more))
        room *= 2;
    if (room == before)
        return 1;
    self->table = PyMem_Malloc(room * sizeof(int64_t));
    if (self->table == NULL) {
        self->table = table;
        PyErr_NoMemory();
        return 0;
    }
    self->room = room;
    for (self->shift = 64; room > 1; room /= 2)
        self->shift--;
    for (size_t at = 0; at < self->room; at++)
        self->table[at] = FREE;
    self->count = 0;
    for (size_t at = 0; table != NULL && at < before; at++) {
        if (table[at] != FREE)
            enter(self, table[at]);
    }
    PyMem_Free(table);
    return 1;
}

static int
enter_other(Ends *self, PyObject *value)
{
    if (!PyLong_CheckExact(value)) {
        PyErr_SetString(PyExc_TypeError, "an end is an integer");
        return 0;
    }
    if (self->others == NULL && (self->others = PySet_New(NULL)) == NULL)
        return 0;
    return PySet_Add(self->others, value) == 0;
}

static Py_ssize_t
ends_length(PyObject *object)
{
    Ends *self = (Ends *)object;

    return (Py_ssize_t)self->count + (self->others ? PySet_GET_SIZE(self->others) : 0);
}

/* update(list): take these in. */
static PyObject *
ends_update(PyObject *object, PyObject *values)
{
    Ends *self = (Ends *)object;

    if (!PyList_CheckExact(values)) {
        PyErr_SetString(PyExc_TypeError, "ends come in a list");
        return NULL;
    }
    if (!make_room(self, (size_t)PyList_GET_SIZE(values)))
        return NULL;
    for (Py_ssize_t at = 0; at < PyList_GET_SIZE(values); at++) {
        PyObject *value = PyList_GET_ITEM(values, at);
        int64_t whole;

        if (as_whole(value, &whole))
            enter(self, whole);
        else if (!enter_other(self, value))
            return NULL;
    }
    Py_RETURN_NONE;
}

static void
ends_dealloc(PyObject *object)
{
    Ends *self = (Ends *)object;

    PyMem_Free(self->table);
    Py_XDECREF(self->others);
    Py_TYPE(object)->tp_free(object);
}

static PyObject *
ends_new(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(named))
{
    Ends *self;

    if (!PyArg_ParseTuple(args, ""))
        return NULL;
    self = (Ends *)type->tp_alloc(type, 0);
    if (self == NULL)
        return NULL;
    self->room = 1;
    self->shift = 64;
    if (!make_room(self, ROOM_LEAST / 2)) {
        Py_DECREF(self);
        return NULL;
    }
    return (PyObject *)self;
}

static PyMethodDef ends_methods[] = {
    {"update", ends_update, METH_O, "Take the integers of a list in."},
    {NULL, NULL, 0, NULL},
};

static PySequenceMethods ends_sequence = {.sq_length = ends_length};

static PyTypeObject ends_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "broker.engine.native._passes.Ends",
    .tp_basicsize = sizeof(Ends),
    .tp_dealloc = ends_dealloc,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "A set of integers that only grows.",
    .tp_methods = ends_methods,
    .tp_as_sequence = &ends_sequence,
    .tp_new = ends_new,
};

int
add_ends(PyObject *module)
{
    return PyModule_AddType(module, &ends_type);
}

/* later(ends, events, watermark): those ends that are greater, and their events; or None. */
PyObject *
pass_later(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count)
{
    PyObject *ends, *events;
    int64_t watermark, end;
    int well = 1;

    if (count != 3 || !PyList_CheckExact(args[0]) || !PyList_CheckExact(args[1])
        || PyList_GET_SIZE(args[0]) != PyList_GET_SIZE(args[1]) || !as_whole(args[2], &watermark))
        Py_RETURN_NONE;
    ends = PyList_New(0);
    events = PyList_New(0);
    if (ends == NULL || events == NULL) {
        Py_XDECREF(ends);
        Py_XDECREF(events);
        return NULL;
    }
    for (Py_ssize_t at = 0; well == 1 && at < PyList_GET_SIZE(args[0]); at++) {
        PyObject *value = PyList_GET_ITEM(args[0], at);
        if (!as_whole(value, &end))
            well = -2;
        else if (end > watermark
                 && (PyList_Append(ends, value) < 0
                     || PyList_Append(events, PyList_GET_ITEM(args[1], at)) < 0))
            well = -1;
    }
    if (well == 1)
        return Py_BuildValue("NN", ends, events);
    Py_DECREF(ends);
    Py_DECREF(events);
    if (well == -1)
        return NULL;
    Py_RETURN_NONE;
}
