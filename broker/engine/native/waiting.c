/* Events that wait with their groups: put in order, and set aside where nothing can come of them.
 *
 * Owns the course of the tests of prospects.py. Must not know stages. Invariant: an event of which
 * something may come, and a group that is not as it mostly is, are left to Python, one by one; to ask
 * a test twice of one event changes nothing. */

#include "passes.h"

#define NEVER INT64_MIN /* see prospects.NEVER */

enum { NOTE, AT_MOST, WITHIN, AFTER, SET, STOP, HOPE };

typedef struct {
    int what;
    Py_ssize_t place, other;
    int64_t within_ms;
} Step;

typedef struct {
    PyObject_HEAD
    vectorcallfunc call;
    PyObject *keys; /* names of slots, by which events are grouped */
    Py_ssize_t leaves, places;
    Py_ssize_t *begins; /* of each leaf, where its steps begin; and where all end */
    Step *steps;
    Py_ssize_t last; /* the leaf of which nothing is set aside, -1 where there is none */
    Py_ssize_t room; /* of a group; 0 where groups tell that themselves */
    Py_ssize_t fresh, reach, open, full; /* slots of groups */
} Patience;

/* An integer of 62 bits, or NEVER; 0 where it is anything else. */
static int
as_reach(PyObject *object, int64_t *value)
{
    int overflow;

    if (as_whole(object, value))
        return 1;
    if (object == NULL || !PyLong_CheckExact(object))
        return 0;
    *value = (int64_t)PyLong_AsLongLongAndOverflow(object, &overflow);
    return !overflow && *value == NEVER;
}

static inline void
set_reach(PyObject *reach, Py_ssize_t place, PyObject *value)
{
    PyObject *before = PyList_GET_ITEM(reach, place);

    PyList_SET_ITEM(reach, place, Py_NewRef(value));
    Py_XDECREF(before);
}

/* Whether something may come of the event; -2 where Python has to say. */
static int
hopes(const Patience *self, Py_ssize_t leaf, PyObject *reach, PyObject *start, PyObject *end)
{
    PyObject *latest = start;
    int64_t n, until, other;

    if (!as_whole(start, &n) || !as_whole(end, &until))
        return -2;
    for (const Step *step = self->steps + self->begins[leaf];; step++) {
        PyObject *there = step->what == WITHIN || step->what >= STOP
                              ? NULL
                              : PyList_GET_ITEM(reach, step->place);
        if (there != NULL && !as_reach(there, &other))
            return -2;
        switch (step->what) {
        case NOTE:
            if (n > other)
                set_reach(reach, step->place, latest);
            break;
        case AT_MOST:
            if (other < n) {
                n = other;
                latest = there;
            }
            if (n == NEVER)
                return 0;
            break;
        case WITHIN:
            if (until - n > step->within_ms)
                return 0;
            break;
        case AFTER:
            if (other < until)
                return 0;
            break;
        case SET:
            set_reach(reach, step->place, PyList_GET_ITEM(reach, step->other));
            break;
        case STOP:
            return 0;
        default:
            return 1;
        }
    }
}

/* The key of an event's group, a new reference; None where a part is null, NULL without an error
 * where Python has to say. */
static PyObject *
key_of(const Patience *self, const Reading *reading, PyObject *event)
{
    Py_ssize_t parts = PyTuple_GET_SIZE(self->keys);
    PyObject *key;

    for (Py_ssize_t at = 0; at < parts; at++) {
        PyObject *part = in_slot(event, reading->slots[at]);
        if (part == NULL)
            return NULL;
        if (part == Py_None)
            return Py_NewRef(Py_None);
    }
    key = PyTuple_New(parts);
    for (Py_ssize_t at = 0; key != NULL && at < parts; at++)
        PyTuple_SET_ITEM(key, at, Py_NewRef(in_slot(event, reading->slots[at])));
    return key;
}

/* Whether the group is as it mostly is, so that an event of it may be set aside here. */
static int
is_plain(const Patience *self, PyObject *group, PyObject *key, PyObject *touched, PyObject *spent)
{
    if (self->last < 0)
        return 1;
    if (in_slot(group, self->open) != Py_False)
        return 0;
    if (PyDict_GET_SIZE(touched) && PyDict_Contains(touched, key) != 0)
        return 0;
    return !(PyDict_GET_SIZE(spent) && PyDict_Contains(spent, key) != 0);
}

/* Know where groups keep what is asked of them. */
static int
know_groups(Patience *self, PyTypeObject *type)
{
    self->fresh = slot_of(type, "fresh");
    self->reach = slot_of(type, "reach");
    self->open = self->last < 0 ? 0 : slot_of(type, "open");
    self->full = self->room ? 0 : slot_of(type, "full");
    return self->fresh != NO_SLOT && self->reach != NO_SLOT && self->open != NO_SLOT
           && self->full != NO_SLOT;
}

/* Set the event aside with its group; 1 if it waits there now, 0 if it is done with, -2 where Python
 * has to say. */
static int
set_aside(const Patience *self, PyObject *entry, PyObject *group, const Reading *reading,
          Py_ssize_t leaf)
{
    PyObject *event = PyTuple_GET_ITEM(entry, 1);
    PyObject *start = in_slot(event, reading->start), *end;
    PyObject *fresh = in_slot(group, self->fresh), *reach = in_slot(group, self->reach);
    int64_t room = self->room, one, other;
    int found;

    end = in_slot(event, reading->end);
    if (fresh == NULL || !PyList_CheckExact(fresh) || reach == NULL || !PyList_CheckExact(reach)
        || PyList_GET_SIZE(reach) != self->places)
        return -2;
    if (room == 0 && !as_whole(in_slot(group, self->full), &room))
        return -2;
    if (self->last >= 0 && !(as_whole(start, &one) && as_whole(end, &other) && one == other))
        return -2;
    if (leaf != self->last && PyList_GET_SIZE(fresh) + 1 >= room)
        return -2;
    found = hopes(self, leaf, reach, start, end);
    if (found != 0)
        return -2;
    if (leaf == self->last)
        return 0;
    return PyList_Append(fresh, entry) < 0 ? -1 : 1;
}

/* One entry; see set_aside; -1 with an error. */
static int
take(Patience *self, PyObject *entry, PyObject *const *args, Readings *readings,
     PyTypeObject **groups)
{
    PyObject *event, *key, *group;
    const Reading *reading;
    Py_ssize_t leaf;
    int found = -2;

    if (!PyTuple_CheckExact(entry) || PyTuple_GET_SIZE(entry) != 2)
        return -2;
    leaf = PyLong_AsSsize_t(PyTuple_GET_ITEM(entry, 0));
    if (leaf < 0 || leaf >= self->leaves) {
        PyErr_Clear();
        return -2;
    }
    event = PyTuple_GET_ITEM(entry, 1);
    reading = reading_of(readings, Py_TYPE(event), self->keys);
    if (!reading->whole)
        return -2;
    key = key_of(self, reading, event);
    if (key == NULL)
        return PyErr_Occurred() ? -1 : -2;
    if (key == Py_None) {
        Py_DECREF(key);
        return 0;
    }
    group = PyDict_GetItemWithError(args[1], key);
    Py_XINCREF(group); /* a text of a class of its own may do anything when it is compared */
    if (group != NULL && (*groups == Py_TYPE(group) || know_groups(self, Py_TYPE(group)))) {
        *groups = Py_TYPE(group);
        if (is_plain(self, group, key, args[2], args[3]))
            found = set_aside(self, entry, group, reading, leaf);
    }
    Py_XDECREF(group);
    Py_DECREF(key);
    return PyErr_Occurred() ? -1 : found;
}

/* patience(entries, groups, touched, spent, asked): how many wait that did not before, of those of
 * which Python is not asked. */
static PyObject *
patience_call(PyObject *object, PyObject *const *args, size_t count, PyObject *names)
{
    Patience *self = (Patience *)object;
    PyTypeObject *groups = NULL;
    Readings readings = {0};
    Py_ssize_t waiting = 0;

    if (PyVectorcall_NARGS(count) != 5 || names != NULL || !PyList_CheckExact(args[0])
        || !PyDict_CheckExact(args[1]) || !PyDict_CheckExact(args[2])
        || !PyDict_CheckExact(args[3])) {
        PyErr_SetString(PyExc_TypeError, "expected entries, groups, touched, spent and asked");
        return NULL;
    }
    for (Py_ssize_t at = 0; at < PyList_GET_SIZE(args[0]); at++) {
        PyObject *entry = Py_NewRef(PyList_GET_ITEM(args[0], at));
        int found;

        found = take(self, entry, args, &readings, &groups);
        if (found == -2) {
            PyObject *said = PyObject_CallOneArg(args[4], entry);
            found = said == NULL ? -1 : 0;
            Py_XDECREF(said);
        }
        Py_DECREF(entry);
        if (found == -1)
            return NULL;
        waiting += found;
    }
    return PyLong_FromSsize_t(waiting);
}

/* --- made of a pattern's tests ---------------------------------------------------------------- */

static void
patience_dealloc(PyObject *object)
{
    Patience *self = (Patience *)object;

    Py_XDECREF(self->keys);
    PyMem_Free(self->begins);
    PyMem_Free(self->steps);
    Py_TYPE(object)->tp_free(object);
}

/* Take over the steps of one leaf; 0 with an error. The last of them has to decide. */
static int
take_steps(Patience *self, PyObject *steps, Step *made)
{
    Py_ssize_t count = PyTuple_GET_SIZE(steps);

    for (Py_ssize_t at = 0; at < count; at++) {
        Step *step = &made[at];
        long long first, second;

        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(steps, at), "iLL", &step->what, &first, &second))
            return 0;
        step->within_ms = first;
        step->place = step->what == WITHIN ? 0 : (Py_ssize_t)first;
        step->other = (Py_ssize_t)second;
        if (step->what < NOTE || step->what > HOPE || step->place < 0 || step->other < 0
            || step->place >= self->places || step->other >= self->places) {
            PyErr_SetString(PyExc_ValueError, "no such step");
            return 0;
        }
    }
    if (count == 0 || made[count - 1].what < STOP) {
        PyErr_SetString(PyExc_ValueError, "a test ends with a decision");
        return 0;
    }
    return 1;
}

/* Patience(keys, places, tests, last, room): see the struct; of each leaf a tuple of steps. */
static PyObject *
patience_new(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(named))
{
    PyObject *keys, *tests;
    Py_ssize_t places, last, room, count = 0;
    Patience *self;

    if (!PyArg_ParseTuple(args, "O!nO!nn", &PyTuple_Type, &keys, &places, &PyTuple_Type, &tests,
                          &last, &room))
        return NULL;
    if (PyTuple_GET_SIZE(keys) > KEYS_MAX) {
        PyErr_SetString(PyExc_ValueError, "too many keys");
        return NULL;
    }
    for (Py_ssize_t at = 0; at < PyTuple_GET_SIZE(tests); at++) {
        if (!PyTuple_CheckExact(PyTuple_GET_ITEM(tests, at))) {
            PyErr_SetString(PyExc_TypeError, "a test is a tuple of steps");
            return NULL;
        }
        count += PyTuple_GET_SIZE(PyTuple_GET_ITEM(tests, at));
    }
    self = (Patience *)type->tp_alloc(type, 0);
    if (self == NULL)
        return NULL;
    self->call = patience_call;
    self->keys = Py_NewRef(keys);
    self->leaves = PyTuple_GET_SIZE(tests);
    self->places = places;
    self->last = last;
    self->room = room;
    self->begins = PyMem_Calloc((size_t)self->leaves + 1, sizeof(Py_ssize_t));
    self->steps = PyMem_Calloc((size_t)count + 1, sizeof(Step));
    if (self->begins == NULL || self->steps == NULL) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    for (Py_ssize_t at = 0; at < self->leaves; at++) {
        PyObject *steps = PyTuple_GET_ITEM(tests, at);
        self->begins[at + 1] = self->begins[at] + PyTuple_GET_SIZE(steps);
        if (!take_steps(self, steps, self->steps + self->begins[at])) {
            Py_DECREF(self);
            return NULL;
        }
    }
    return (PyObject *)self;
}

static PyTypeObject patience_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "broker.engine.native._passes.Patience",
    .tp_basicsize = sizeof(Patience),
    .tp_dealloc = patience_dealloc,
    .tp_vectorcall_offset = offsetof(Patience, call),
    .tp_call = PyVectorcall_Call,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_doc = "Sets events aside with their groups where nothing can come of them.",
    .tp_new = patience_new,
};

int
add_patience(PyObject *module)
{
    return PyModule_AddType(module, &patience_type);
}
