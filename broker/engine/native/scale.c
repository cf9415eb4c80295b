/* Events given to contents that the cells of one number tell apart, behind a hash of one value.
 *
 * Owns the cells' numbers. Must not know conditions. Invariant: whatever is not such a number, such
 * a cell or such a content goes the way that Python has for it, event by event. */

#include "passes.h"

typedef struct {
    PyObject_HEAD
    PyObject *name;  /* of the slot that is read; None where nothing is */
    PyObject *cells; /* a tuple of tuples of contents; the last is that of null */
    Py_ssize_t count;
    double *edges;
} Scale;

static PyTypeObject scale_type;

/* As bisect_right. */
static Py_ssize_t
cell_of(const Scale *self, double value)
{
    Py_ssize_t low = 0, high = self->count;

    while (low < high) {
        Py_ssize_t middle = (low + high) / 2;
        if (value < self->edges[middle])
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* The contents that want the event, borrowed; NULL where it has no number. */
static PyObject *
wanted_by(const Scale *self, PyObject *event, Known *known)
{
    PyObject *value = Py_None;

    if (self->name != Py_None) {
        Py_ssize_t slot = slot_in(known, event, self->name);
        value = slot == NO_SLOT ? NULL : in_slot(event, slot);
    }
    if (value == Py_None)
        return PyTuple_GET_ITEM(self->cells, PyTuple_GET_SIZE(self->cells) - 1);
    if (value == NULL || !PyFloat_CheckExact(value))
        return NULL;
    return PyTuple_GET_ITEM(self->cells, cell_of(self, PyFloat_AS_DOUBLE(value)));
}

/* Whether something is made at once for each content, and of the event nothing else. */
static int
all_at_once(PyObject *contents, Known *known, PyObject *name)
{
    for (Py_ssize_t at = 0; at < PyTuple_GET_SIZE(contents); at++) {
        PyObject *content = PyTuple_GET_ITEM(contents, at), *makers;
        Py_ssize_t slot = slot_in(known, content, name);

        makers = slot == NO_SLOT ? NULL : in_slot(content, slot);
        if (makers == NULL || !PyTuple_CheckExact(makers) || PyTuple_GET_SIZE(makers) == 0)
            return 0;
    }
    return 1;
}

static int
make_all(PyObject *makers, PyObject *const *args, PyObject *made)
{
    for (Py_ssize_t at = 0; at < PyTuple_GET_SIZE(makers); at++) {
        PyObject *one = PyObject_Vectorcall(PyTuple_GET_ITEM(makers, at), args, 4, NULL);
        if (one == NULL || PyList_Append(made, one) < 0) {
            Py_XDECREF(one);
            return 0;
        }
        Py_DECREF(one);
    }
    return 1;
}

/* What is wanted of whom, and what was known of the classes that came last. */
typedef struct {
    PyObject *key, *scales, *groups, *made, *slow, *at_once, *nothing;
    Known keyed, read, held;
} Giving;

/* Give the event; 1 if nobody wants it, 0 if somebody does, -1 with an error, -2 where Python has to
 * say. */
static int
give(Giving *giving, PyObject *event)
{
    Py_ssize_t slot = slot_in(&giving->keyed, event, giving->key);
    PyObject *key = slot == NO_SLOT ? NULL : in_slot(event, slot), *scale, *contents;
    const Shape *shape = shape_of(Py_TYPE(event));
    PyObject *args[4] = {NULL, NULL, giving->nothing, event};
    int done = 1;

    if (key == NULL || shape == NULL)
        return -2;
    scale = PyDict_GetItemWithError(giving->scales, key);
    if (scale == NULL) {
        if (PyErr_Occurred())
            return -1;
        switch (PyDict_Contains(giving->groups, key)) {
        case 0:
            return 1;
        case 1:
            return -2;
        default:
            return -1;
        }
    }
    if (!Py_IS_TYPE(scale, &scale_type))
        return -2;
    contents = wanted_by((Scale *)scale, event, &giving->read);
    if (contents == NULL || !PyTuple_CheckExact(contents))
        return -2;
    if (PyTuple_GET_SIZE(contents) == 0)
        return 1;
    args[0] = in_slot(event, shape->start);
    args[1] = in_slot(event, shape->end);
    if (args[0] == NULL || args[1] == NULL
        || !all_at_once(contents, &giving->held, giving->at_once))
        return -2;
    Py_INCREF(contents);
    for (Py_ssize_t at = 0; done && at < PyTuple_GET_SIZE(contents); at++) {
        PyObject *content = PyTuple_GET_ITEM(contents, at);
        Py_ssize_t held = slot_in(&giving->held, content, giving->at_once);
        PyObject *makers = Py_NewRef(in_slot(content, held));
        done = make_all(makers, args, giving->made);
        Py_DECREF(makers);
    }
    Py_DECREF(contents);
    return done ? 0 : -1;
}

/* How many of a list of one event nobody wants, as Python says it; -1 with an error. */
static Py_ssize_t
asked_slowly(PyObject *slow, PyObject *event)
{
    PyObject *list = PyList_New(1), *said;
    Py_ssize_t missed = -1;

    if (list == NULL)
        return -1;
    PyList_SET_ITEM(list, 0, Py_NewRef(event));
    said = PyObject_CallOneArg(slow, list);
    Py_DECREF(list);
    if (said != NULL)
        missed = PyLong_AsSsize_t(said);
    Py_XDECREF(said);
    return missed;
}

/* give(events, key, scales, groups, made, slow): how many events nobody wants.
 * `key` is the name of the slot that is hashed; `scales` are those of the groups that have one. */
PyObject *
pass_give(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count)
{
    Giving giving = {0};
    Py_ssize_t missed = 0;

    if (count != 6 || !PyList_CheckExact(args[0]) || !PyUnicode_CheckExact(args[1])
        || !PyDict_CheckExact(args[2]) || !PyDict_CheckExact(args[3]) || !PyList_CheckExact(args[4])) {
        PyErr_SetString(PyExc_TypeError, "give takes events, key, scales, groups, made and slow");
        return NULL;
    }
    giving.key = args[1];
    giving.scales = args[2];
    giving.groups = args[3];
    giving.made = args[4];
    giving.slow = args[5];
    giving.at_once = PyUnicode_InternFromString("at_once");
    giving.nothing = PyTuple_New(0);
    for (Py_ssize_t at = 0; missed >= 0 && at < PyList_GET_SIZE(args[0]); at++) {
        PyObject *event = Py_NewRef(PyList_GET_ITEM(args[0], at));
        Py_ssize_t said = give(&giving, event);
        if (said == -2)
            said = asked_slowly(giving.slow, event);
        missed = said < 0 ? -1 : missed + said;
        Py_DECREF(event);
    }
    Py_XDECREF(giving.at_once);
    Py_XDECREF(giving.nothing);
    return missed < 0 ? NULL : PyLong_FromSsize_t(missed);
}

/* --- the scale -------------------------------------------------------------------------------- */

static int
scale_traverse(PyObject *object, visitproc visit, void *arg)
{
    Py_VISIT(((Scale *)object)->cells);
    return 0;
}

static int
scale_clear(PyObject *object)
{
    Scale *self = (Scale *)object;

    Py_CLEAR(self->cells);
    return 0;
}

static void
scale_dealloc(PyObject *object)
{
    Scale *self = (Scale *)object;

    PyObject_GC_UnTrack(object);
    Py_XDECREF(self->name);
    Py_XDECREF(self->cells);
    PyMem_Free(self->edges);
    Py_TYPE(object)->tp_free(object);
}

/* Scale(name, edges, cells): numbers in order, and one cell more than there are spaces. */
static PyObject *
scale_new(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(named))
{
    PyObject *name, *edges, *cells;
    Scale *self;

    if (!PyArg_ParseTuple(args, "OO!O!", &name, &PyList_Type, &edges, &PyTuple_Type, &cells))
        return NULL;
    if (PyTuple_GET_SIZE(cells) != PyList_GET_SIZE(edges) + 2) {
        PyErr_SetString(PyExc_ValueError, "a scale has two cells more than edges");
        return NULL;
    }
    if (name != Py_None && !PyUnicode_CheckExact(name)) {
        PyErr_SetString(PyExc_TypeError, "what is read is a slot's name, or None");
        return NULL;
    }
    self = (Scale *)type->tp_alloc(type, 0);
    if (self == NULL)
        return NULL;
    self->name = Py_NewRef(name);
    if (name != Py_None)
        PyUnicode_InternInPlace(&self->name); /* names are compared as objects */
    self->cells = Py_NewRef(cells);
    self->count = PyList_GET_SIZE(edges);
    self->edges = PyMem_Calloc((size_t)self->count + 1, sizeof(double));
    if (self->edges == NULL) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    for (Py_ssize_t at = 0; at < self->count; at++) {
        self->edges[at] = PyFloat_AsDouble(PyList_GET_ITEM(edges, at));
        if (self->edges[at] == -1.0 && PyErr_Occurred()) {
            Py_DECREF(self);
            return NULL;
        }
    }
    return (PyObject *)self;
}

static PyTypeObject scale_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "broker.engine.native._passes.Scale",
    .tp_basicsize = sizeof(Scale),
    .tp_dealloc = scale_dealloc,
    .tp_traverse = scale_traverse,
    .tp_clear = scale_clear,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_doc = "Contents in the cells of one number; see scale.Scale.",
    .tp_new = scale_new,
};

int
add_scale(PyObject *module)
{
    return PyModule_AddType(module, &scale_type);
}
