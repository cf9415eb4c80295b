/* Results as a subscription keeps them, where one event is all that occurred.
 *
 * Owns the making of plain ones, which are certain. Must not know how events are found or how results
 * are told. Invariant: each is what its class makes of the same. */

#include "results.h"

static PyObject *certain;

typedef struct {
    PyObject_HEAD
    vectorcallfunc call;
    PyTypeObject *kind; /* of results */
    PyObject *template;
} Maker;

static inline void
fill(PyObject *object, Py_ssize_t slot, PyObject *value)
{
    *(PyObject **)((char *)object + slot) = Py_NewRef(value);
}

/* maker(start, end, group, event) */
static PyObject *
maker_call(PyObject *object, PyObject *const *args, size_t count, PyObject *names)
{
    const Maker *self = (Maker *)object;
    Py_ssize_t slots[FIELDS];
    PyObject *made;

    if (PyVectorcall_NARGS(count) != 4 || names != NULL) {
        PyErr_SetString(PyExc_TypeError, "a maker takes start, end, group and what occurred");
        return NULL;
    }
    if (!find_fields(self->kind, slots)) {
        PyErr_SetString(PyExc_TypeError, "results have other fields by now");
        return NULL;
    }
    made = self->kind->tp_alloc(self->kind, 0);
    if (made != NULL) {
        fill(made, slots[TEMPLATE], self->template);
        fill(made, slots[STARTED], args[0]);
        fill(made, slots[ENDED], args[1]);
        fill(made, slots[KEYED], args[2]);
        fill(made, slots[OCCURRENCE], args[3]);
        fill(made, slots[CERTAIN], certain);
    }
    return made;
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

static PyTypeObject maker_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "broker.engine.native._passes.Maker",
    .tp_basicsize = sizeof(Maker),
    .tp_dealloc = maker_dealloc,
    .tp_vectorcall_offset = offsetof(Maker, call),
    .tp_call = PyVectorcall_Call,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_doc = "Makes results of one subscription that are certain.",
    .tp_new = maker_new,
};

int
add_maker(PyObject *module)
{
    certain = PyUnicode_InternFromString("yes");
    return certain == NULL ? -1 : PyModule_AddType(module, &maker_type);
}
