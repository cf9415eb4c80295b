/* Results as a subscription keeps them: of single events, and of what a pattern has found.
 *
 * Owns the making of plain ones, which are certain. Must not know how events are found or how results
 * are told. Invariant: each is what its class makes of the same; None says that nothing was made. */

#include "results.h"

static const char *const field_names[FIELDS] = {
    "template", "start", "end", "group", "occurrence", "certainty",
};
static PyObject *certain, *no_group;

typedef struct {
    PyObject_HEAD
    vectorcallfunc call;
    PyTypeObject *kind; /* of results */
    PyObject *template;
} Maker;

int
find_fields(PyTypeObject *kind, Py_ssize_t slots[FIELDS])
{
    static PyTypeObject *known; /* kept alive: there is one such class */
    static Py_ssize_t known_slots[FIELDS];
    PyObject *names;
    int found;

    if (known == kind) {
        memcpy(slots, known_slots, sizeof(known_slots));
        return 1;
    }
    names = PyObject_GetAttrString((PyObject *)kind, "__struct_fields__");
    found = names != NULL && PyTuple_CheckExact(names) && PyTuple_GET_SIZE(names) == FIELDS;
    Py_XDECREF(names);
    PyErr_Clear();
    for (int at = 0; found && at < FIELDS; at++) {
        slots[at] = slot_of(kind, field_names[at]);
        found = slots[at] != NO_SLOT;
    }
    if (found) {
        memcpy(known_slots, slots, sizeof(known_slots));
        Py_XSETREF(known, (PyTypeObject *)Py_NewRef(kind));
    }
    return found;
}

static inline void
fill(PyObject *object, Py_ssize_t slot, PyObject *value)
{
    *(PyObject **)((char *)object + slot) = Py_NewRef(value);
}

static PyObject *
made_of(const Maker *self, const Py_ssize_t *slots, PyObject *start, PyObject *end, PyObject *group,
        PyObject *occurrence)
{
    PyObject *made = self->kind->tp_alloc(self->kind, 0);

    if (made != NULL) {
        fill(made, slots[TEMPLATE], self->template);
        fill(made, slots[STARTED], start);
        fill(made, slots[ENDED], end);
        fill(made, slots[KEYED], group);
        fill(made, slots[OCCURRENCE], occurrence);
        fill(made, slots[CERTAIN], certain);
    }
    return made;
}

/* maker(start, end, group, event) */
static PyObject *
maker_call(PyObject *object, PyObject *const *args, size_t count, PyObject *names)
{
    const Maker *self = (Maker *)object;
    Py_ssize_t slots[FIELDS];

    if (PyVectorcall_NARGS(count) != 4 || names != NULL) {
        PyErr_SetString(PyExc_TypeError, "a maker takes start, end, group and what occurred");
        return NULL;
    }
    if (!find_fields(self->kind, slots)) {
        PyErr_SetString(PyExc_TypeError, "results have other fields by now");
        return NULL;
    }
    return made_of(self, slots, args[0], args[1], args[2], args[3]);
}

/* One result of an event, without a group; NULL with or without an error. */
static PyObject *
of_event(const Maker *self, const Py_ssize_t *slots, PyObject *event)
{
    const Shape *shape = shape_of(Py_TYPE(event));
    PyObject *start = shape ? in_slot(event, shape->start) : NULL;
    PyObject *end = shape ? in_slot(event, shape->end) : NULL;

    return start && end ? made_of(self, slots, start, end, no_group, event) : NULL;
}

/* One result of (occurrence, group), where the occurrence has a certain end; see above. */
static PyObject *
of_pair(const Maker *self, const Py_ssize_t *slots, PyObject *pair)
{
    PyObject *occurrence;

    if (!PyTuple_CheckExact(pair) || PyTuple_GET_SIZE(pair) != 2)
        return NULL;
    occurrence = PyTuple_GET_ITEM(pair, 0);
    if (!PyTuple_CheckExact(occurrence) || PyTuple_GET_SIZE(occurrence) < 2
        || !PyLong_CheckExact(PyTuple_GET_ITEM(occurrence, 0)))
        return NULL;
    return made_of(self, slots, PyTuple_GET_ITEM(occurrence, 1), PyTuple_GET_ITEM(occurrence, 0),
                   PyTuple_GET_ITEM(pair, 1), occurrence);
}

typedef PyObject *(*One)(const Maker *, const Py_ssize_t *, PyObject *);

/* A result of each of a list, in its order. */
static PyObject *
all_of(PyObject *object, PyObject *list, One one)
{
    const Maker *self = (Maker *)object;
    Py_ssize_t slots[FIELDS];
    PyObject *found;

    if (!PyList_CheckExact(list) || !find_fields(self->kind, slots))
        Py_RETURN_NONE;
    found = PyList_New(0);
    for (Py_ssize_t at = 0; found != NULL && at < PyList_GET_SIZE(list); at++) {
        PyObject *made = one(self, slots, PyList_GET_ITEM(list, at));
        if (made == NULL || PyList_Append(found, made) < 0)
            Py_CLEAR(found);
        Py_XDECREF(made);
    }
    if (found == NULL && !PyErr_Occurred())
        Py_RETURN_NONE;
    return found;
}

static PyObject *
maker_each(PyObject *self, PyObject *events)
{
    return all_of(self, events, of_event);
}

static PyObject *
maker_pairs(PyObject *self, PyObject *pairs)
{
    return all_of(self, pairs, of_pair);
}

static void
maker_dealloc(PyObject *object)
{
    Maker *self = (Maker *)object;

    Py_XDECREF(self->kind);
    Py_XDECREF(self->template);
    Py_TYPE(object)->tp_free(object);
}

/* Maker(kind, template) */
static PyObject *
maker_new(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(named))
{
    PyObject *kind, *template;
    Py_ssize_t slots[FIELDS];
    Maker *self;

    if (!PyArg_ParseTuple(args, "O!O", &PyType_Type, &kind, &template))
        return NULL;
    if (!find_fields((PyTypeObject *)kind, slots)) {
        PyErr_SetString(PyExc_TypeError, "results keep other fields, or none in slots");
        return NULL;
    }
    self = (Maker *)type->tp_alloc(type, 0);
    if (self == NULL)
        return NULL;
    self->call = maker_call;
    self->kind = (PyTypeObject *)Py_NewRef(kind);
    self->template = Py_NewRef(template);
    return (PyObject *)self;
}

static PyMethodDef maker_methods[] = {
    {"each", maker_each, METH_O, "Results of primitive events, without a group; or None."},
    {"pairs", maker_pairs, METH_O, "Results of occurrences with their groups; or None."},
    {NULL, NULL, 0, NULL},
};

static PyTypeObject maker_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "broker.engine.native._passes.Maker",
    .tp_basicsize = sizeof(Maker),
    .tp_dealloc = maker_dealloc,
    .tp_vectorcall_offset = offsetof(Maker, call),
    .tp_call = PyVectorcall_Call,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_doc = "Makes results of one subscription that are certain.",
    .tp_methods = maker_methods,
    .tp_new = maker_new,
};

int
add_maker(PyObject *module)
{
    certain = PyUnicode_InternFromString("yes");
    no_group = PyTuple_New(0);
    if (certain == NULL || no_group == NULL)
        return -1;
    return PyModule_AddType(module, &maker_type);
}
