/* The events of a batch that contents want, where conditions compare attributes with constants.
 *
 * Owns these comparisons. Must not know contents. Invariant: null meets no condition, and all others
 * are compared as Python compares them. */

#include "passes.h"

typedef struct {
    PyObject *name; /* of the slot, owned */
    PyObject *constant;
    Py_ssize_t slot; /* of the class that came last */
    int operator;
    int real; /* whether the constant is `value` exactly */
    double value;
} Test;

typedef struct {
    PyObject_HEAD
    vectorcallfunc call;
    PyTypeObject *type; /* the class that came last, owned */
    Py_ssize_t sides;   /* conjunctions */
    Py_ssize_t *ends;   /* where the tests of each end */
    Test *tests;
    Py_ssize_t count;
} Choice;

static inline int
compared(double left, int operator, double right)
{
    switch (operator) {
    case Py_LT:
        return left < right;
    case Py_LE:
        return left <= right;
    case Py_GT:
        return left > right;
    case Py_GE:
        return left >= right;
    default:
        return left == right;
    }
}

/* Whether a test holds; -1 with an error, -2 where the slot is empty. */
static inline int
holds(const Test *test, PyObject *event)
{
    PyObject *value = in_slot(event, test->slot);
    int held;

    if (value == NULL)
        return -2;
    if (value == Py_None)
        return 0;
    if (test->real && PyFloat_CheckExact(value))
        return compared(PyFloat_AS_DOUBLE(value), test->operator, test->value);
    Py_INCREF(value);
    held = PyObject_RichCompareBool(value, test->constant, test->operator);
    Py_DECREF(value);
    return held;
}

/* Know where the class keeps what is tested; 0 where it does not. */
static int
learn(Choice *self, PyTypeObject *type)
{
    Py_XSETREF(self->type, NULL);
    for (Py_ssize_t at = 0; at < self->count; at++) {
        self->tests[at].slot = slot_named(type, self->tests[at].name);
        if (self->tests[at].slot == NO_SLOT)
            return 0;
    }
    self->type = (PyTypeObject *)Py_NewRef(type);
    return 1;
}

/* Put the event into the lists of the sides that hold, and into the first if any; 1 if all is well,
 * -1 with an error, -2 where it cannot be told. */
static int
sift(const Choice *self, PyObject *event, PyObject **lists)
{
    Py_ssize_t at = 0;
    int any = 0;

    for (Py_ssize_t side = 0; side < self->sides; side++) {
        int held = 1;
        for (; at < self->ends[side] && held == 1; at++) {
            held = holds(&self->tests[at], event);
            if (held >= 0 && self->type != Py_TYPE(event)) /* comparing has asked this of others */
                return -2;
        }
        at = self->ends[side];
        if (held < 0)
            return held;
        if (!held)
            continue;
        any = 1;
        if (self->sides > 1 && PyList_Append(lists[side + 1], event) < 0)
            return -1;
    }
    return any && PyList_Append(lists[0], event) < 0 ? -1 : 1;
}

/* (events that any side wants, those of the first, of the second, …); of one side the first alone. */
static PyObject *
choice_call(PyObject *object, PyObject *const *args, size_t count, PyObject *names)
{
    Choice *self = (Choice *)object;
    Py_ssize_t parts = self->sides > 1 ? self->sides + 1 : 1;
    PyObject *found;
    int well = 1;

    if (PyVectorcall_NARGS(count) != 1 || names != NULL || !PyList_CheckExact(args[0]))
        Py_RETURN_NONE;
    found = PyTuple_New(parts);
    for (Py_ssize_t at = 0; found != NULL && at < parts; at++) {
        PyObject *list = PyList_New(0);
        if (list == NULL)
            Py_CLEAR(found);
        else
            PyTuple_SET_ITEM(found, at, list);
    }
    for (Py_ssize_t at = 0; found != NULL && well == 1 && at < PyList_GET_SIZE(args[0]); at++) {
        PyObject *event = Py_NewRef(PyList_GET_ITEM(args[0], at));
        if (Py_TYPE(event) != self->type && !learn(self, Py_TYPE(event)))
            well = -2;
        else
            well = sift(self, event, &PyTuple_GET_ITEM(found, 0));
        Py_DECREF(event);
    }
    if (well == 1)
        return found;
    Py_XDECREF(found);
    if (well == -1)
        return NULL;
    Py_RETURN_NONE;
}

static void
choice_dealloc(PyObject *object)
{
    Choice *self = (Choice *)object;

    for (Py_ssize_t at = 0; at < self->count; at++) {
        Py_XDECREF(self->tests[at].name);
        Py_XDECREF(self->tests[at].constant);
    }
    PyMem_Free(self->tests);
    PyMem_Free(self->ends);
    Py_XDECREF(self->type);
    Py_TYPE(object)->tp_free(object);
}

/* A constant that a float is compared with exactly as with the float of its value. */
static void
make_real(Test *test)
{
    int64_t whole;

    if (PyFloat_CheckExact(test->constant)) {
        test->real = 1;
        test->value = PyFloat_AS_DOUBLE(test->constant);
    }
    else if (as_whole(test->constant, &whole) && whole > -(1LL << 53) && whole < (1LL << 53)) {
        test->real = 1;
        test->value = (double)whole;
    }
}

/* Take over the tests of one side; 0 with an error. */
static int
take_side(Choice *self, PyObject *side, Py_ssize_t number)
{
    for (Py_ssize_t at = 0; at < PyTuple_GET_SIZE(side); at++) {
        Test *test = &self->tests[self->count];
        PyObject *name, *constant;
        int operator;

        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(side, at), "UiO", &name, &operator, &constant))
            return 0;
        test->name = Py_NewRef(name);
        test->constant = Py_NewRef(constant);
        test->operator = operator;
        make_real(test);
        self->count++;
    }
    self->ends[number] = self->count;
    return 1;
}

/* Choice(((name of a slot, operator, constant), …), …): one tuple of tests for each side. */
static PyObject *
choice_new(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(named))
{
    PyObject *sides;
    Py_ssize_t tests = 0;
    Choice *self;

    if (!PyArg_ParseTuple(args, "O!", &PyTuple_Type, &sides))
        return NULL;
    for (Py_ssize_t at = 0; at < PyTuple_GET_SIZE(sides); at++) {
        if (!PyTuple_Check(PyTuple_GET_ITEM(sides, at))) {
            PyErr_SetString(PyExc_TypeError, "each side is a tuple of tests");
            return NULL;
        }
        tests += PyTuple_GET_SIZE(PyTuple_GET_ITEM(sides, at));
    }
    self = (Choice *)type->tp_alloc(type, 0);
    if (self == NULL)
        return NULL;
    self->call = choice_call;
    self->sides = PyTuple_GET_SIZE(sides);
    self->ends = PyMem_Calloc((size_t)self->sides + 1, sizeof(Py_ssize_t));
    self->tests = PyMem_Calloc((size_t)tests + 1, sizeof(Test));
    if (self->ends == NULL || self->tests == NULL) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    for (Py_ssize_t at = 0; at < self->sides; at++) {
        if (!take_side(self, PyTuple_GET_ITEM(sides, at), at)) {
            Py_DECREF(self);
            return NULL;
        }
    }
    return (PyObject *)self;
}

static PyTypeObject choice_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "broker.engine.native._passes.Choice",
    .tp_basicsize = sizeof(Choice),
    .tp_dealloc = choice_dealloc,
    .tp_vectorcall_offset = offsetof(Choice, call),
    .tp_call = PyVectorcall_Call,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_doc = "The events of a batch that any side wants, and those of each side.",
    .tp_new = choice_new,
};

int
add_choice(PyObject *module)
{
    return PyModule_AddType(module, &choice_type);
}
