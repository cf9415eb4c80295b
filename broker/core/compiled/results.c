/* Results as other programs meet them.
 *
 * Owns the dictionary of a result whose values are not assigned and of which no place is silent. Must
 * not know what was looked for. Invariant: it is what the function gives that was generated for the
 * same subscription, which is asked wherever anything is out of the common. */

#include "results.h"

enum { SUBSCRIPTION, SEQ, ID, SUBSCRIBER, ACTOR, START, END, CERTAINTY, GROUP, VALUES, EVENTS, KEYS };
static const char *const key_names[KEYS] = {
    "subscription", "seq", "id", "subscriber", "actor", "start", "end", "certainty", "group",
    "values", "events",
};
static PyObject *known[KEYS];
static PyObject *blank; /* a dictionary with these keys, in their order, of a certain result */
static PyObject *certain;

/* The attributes of an event that are not null; NULL with or without an error. */
static PyObject *
values_of(PyObject *event)
{
    PyObject *found = PyDict_New(); /* first, as that may run what collects garbage */
    const Shape *shape = found ? shape_of(Py_TYPE(event)) : NULL;

    if (shape == NULL)
        Py_CLEAR(found);
    for (Py_ssize_t at = 0; found != NULL && at < shape->count; at++) {
        PyObject *value = in_slot(event, shape->slots[at]);
        if (value == Py_None)
            continue;
        if (value == NULL || PyDict_SetItem(found, PyTuple_GET_ITEM(shape->names, at), value) < 0)
            Py_CLEAR(found);
    }
    return found;
}

/* Put what is given away under the key; 0 where there is none. */
static int
put(PyObject *dictionary, PyObject *key, PyObject *value)
{
    int done = value != NULL && PyDict_SetItem(dictionary, key, value) == 0;

    Py_XDECREF(value);
    return done;
}

static PyObject *
event_id(PyObject *event)
{
    const Shape *shape = shape_of(Py_TYPE(event));

    return shape ? Py_XNewRef(in_slot(event, shape->id)) : NULL;
}

/* A list of what is told of each event that is bound at a place. */
static PyObject *
list_of(const Teller *self, PyObject *member, PyObject *(*each)(PyObject *))
{
    int several = is_list(self, member);
    PyObject *found = PyList_New(several ? PyTuple_GET_SIZE(member) : 1);

    for (Py_ssize_t at = 0; found != NULL && at < PyList_GET_SIZE(found); at++) {
        PyObject *one = each(several ? PyTuple_GET_ITEM(member, at) : member);
        if (one == NULL) {
            Py_CLEAR(found);
            break;
        }
        PyList_SET_ITEM(found, at, one);
    }
    return found;
}

/* What is bound: values and ids by name. */
static int
put_bound(const Teller *self, PyObject *told, PyObject *occurrence)
{
    PyObject *values = PyDict_New(), *events = PyDict_New();
    int done = values != NULL && events != NULL;

    for (Py_ssize_t at = 0; done && at < PyTuple_GET_SIZE(self->names); at++) {
        PyObject *name = PyTuple_GET_ITEM(self->names, at);
        PyObject *member = bound_at(self, occurrence, at);

        done = member != NULL;
        if (done && !is_empty(self, member))
            done = put(events, name, list_of(self, member, event_id))
                   && put(values, name, is_list(self, member) ? list_of(self, member, values_of)
                                                              : values_of(member));
    }
    done = done && PyDict_SetItem(told, known[VALUES], values) == 0
           && PyDict_SetItem(told, known[EVENTS], events) == 0;
    Py_XDECREF(values);
    Py_XDECREF(events);
    return done;
}

static PyObject *
group_of(const Teller *self, PyObject *group)
{
    PyObject *found = NULL;

    if (group != NULL && PyTuple_CheckExact(group)
        && PyTuple_GET_SIZE(group) >= PyTuple_GET_SIZE(self->keys))
        found = PyDict_New();
    for (Py_ssize_t at = 0; found != NULL && at < PyTuple_GET_SIZE(self->keys); at++) {
        if (PyDict_SetItem(found, PyTuple_GET_ITEM(self->keys, at), PyTuple_GET_ITEM(group, at)) < 0)
            Py_CLEAR(found);
    }
    return found;
}

/* A reference of one's own; NULL of NULL. */
static PyObject *
owned(PyObject *object)
{
    return Py_XNewRef(object);
}

/* The result as a dictionary; NULL with an error, or without where it is out of the common. */
static PyObject *
told_of(const Teller *self, PyObject *result)
{
    PyObject *occurrence, *certainty, *id, *told;
    int done;

    if (!Py_IS_TYPE(result, self->kind))
        return NULL;
    occurrence = in_slot(result, self->occurrence);
    certainty = in_slot(result, self->certainty);
    id = id_of(self, occurrence);
    if (id == NULL)
        return NULL;
    told = PyDict_Copy(blank);
    if (told == NULL) {
        Py_DECREF(id);
        return NULL;
    }
    done = put(told, known[ID], id)
           && put(told, known[SUBSCRIPTION], owned(PyTuple_GET_ITEM(self->said, 0)))
           && put(told, known[SEQ], owned(PyTuple_GET_ITEM(self->said, 1)))
           && put(told, known[SUBSCRIBER], owned(PyTuple_GET_ITEM(self->said, 2)))
           && put(told, known[ACTOR], owned(PyTuple_GET_ITEM(self->said, 3)))
           && put(told, known[START], owned(in_slot(result, self->start)))
           && put(told, known[END], owned(in_slot(result, self->end)))
           && (certainty == certain || put(told, known[CERTAINTY], owned(certainty)))
           && put(told, known[GROUP], group_of(self, in_slot(result, self->group)))
           && put_bound(self, told, occurrence);
    if (!done)
        Py_CLEAR(told);
    return told;
}

static PyObject *
tell_one(const Teller *self, PyObject *result)
{
    PyObject *told = told_of(self, result);

    if (told == NULL && !PyErr_Occurred())
        told = PyObject_CallOneArg(self->slow, result);
    return told;
}

static PyObject *
teller_call(PyObject *self, PyObject *const *args, size_t count, PyObject *names)
{
    if (PyVectorcall_NARGS(count) != 1 || names != NULL) {
        PyErr_SetString(PyExc_TypeError, "a teller takes one result");
        return NULL;
    }
    return tell_one((Teller *)self, args[0]);
}

static void
teller_dealloc(PyObject *object)
{
    Teller *self = (Teller *)object;

    Py_XDECREF(self->kind);
    Py_XDECREF(self->said);
    Py_XDECREF(self->begun);
    Py_XDECREF(self->heads);
    Py_XDECREF(self->names);
    Py_XDECREF(self->keys);
    Py_XDECREF(self->slow);
    Py_TYPE(object)->tp_free(object);
}

static int
find_slots(Teller *self)
{
    self->start = slot_of(self->kind, "start");
    self->end = slot_of(self->kind, "end");
    self->group = slot_of(self->kind, "group");
    self->occurrence = slot_of(self->kind, "occurrence");
    self->certainty = slot_of(self->kind, "certainty");
    return self->start != NO_SLOT && self->end != NO_SLOT && self->group != NO_SLOT
           && self->occurrence != NO_SLOT && self->certainty != NO_SLOT;
}

/* Teller(kind, said, begun, heads, names, keys, slow, several) */
static PyObject *
teller_new(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(named))
{
    PyObject *kind, *said, *begun, *heads, *names, *keys, *slow;
    Teller *self;
    int several;

    if (!PyArg_ParseTuple(args, "O!O!SO!O!O!Op", &PyType_Type, &kind, &PyTuple_Type, &said, &begun,
                          &PyTuple_Type, &heads, &PyTuple_Type, &names, &PyTuple_Type, &keys, &slow,
                          &several))
        return NULL;
    if (PyTuple_GET_SIZE(said) != 4 || PyTuple_GET_SIZE(heads) != PyTuple_GET_SIZE(names)) {
        PyErr_SetString(PyExc_ValueError, "four constants are said, and each name has its bytes");
        return NULL;
    }
    for (Py_ssize_t at = 0; at < PyTuple_GET_SIZE(heads); at++) {
        if (!PyBytes_CheckExact(PyTuple_GET_ITEM(heads, at))) {
            PyErr_SetString(PyExc_TypeError, "a name's head is bytes");
            return NULL;
        }
    }
    self = (Teller *)type->tp_alloc(type, 0);
    if (self == NULL)
        return NULL;
    self->call = teller_call;
    self->kind = (PyTypeObject *)Py_NewRef(kind);
    self->said = Py_NewRef(said);
    self->begun = Py_NewRef(begun);
    self->heads = Py_NewRef(heads);
    self->names = Py_NewRef(names);
    self->keys = Py_NewRef(keys);
    self->slow = Py_NewRef(slow);
    self->several = several;
    if (!find_slots(self)) {
        Py_DECREF(self);
        PyErr_SetString(PyExc_TypeError, "results keep nothing in slots");
        return NULL;
    }
    return (PyObject *)self;
}

static PyTypeObject teller_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "broker.core.compiled._passes.Teller",
    .tp_basicsize = sizeof(Teller),
    .tp_dealloc = teller_dealloc,
    .tp_vectorcall_offset = offsetof(Teller, call),
    .tp_call = PyVectorcall_Call,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_doc = "Makes results of one subscription as other programs meet them.",
    .tp_new = teller_new,
};

/* What one result says of itself, of whatever kind. */
static PyObject *
told_by_itself(PyObject *result)
{
    static PyObject *name;

    if (name == NULL && (name = PyUnicode_InternFromString("to_dict")) == NULL)
        return NULL;
    return PyObject_CallMethodNoArgs(result, name);
}

/* What was known of the template that came last. */
typedef struct {
    PyTypeObject *kind;          /* of results */
    Py_ssize_t slot, occurrence; /* in which they keep their template, and what occurred */
    PyObject *template, *teller; /* owned; the teller is NULL where Python tells */
    PyObject *plain;
    Known known;
} Telling;

/* The teller of a result, borrowed; NULL where Python tells. */
static const Teller *
teller_of(Telling *telling, PyObject *result)
{
    PyObject *template = Py_IS_TYPE(result, telling->kind) ? in_slot(result, telling->slot) : NULL;
    PyObject *teller;
    Py_ssize_t slot;

    if (template == NULL)
        return NULL;
    if (template != telling->template) {
        slot = slot_in(&telling->known, template, telling->plain);
        teller = slot == NO_SLOT ? NULL : in_slot(template, slot);
        Py_XSETREF(telling->template, Py_NewRef(template));
        Py_XSETREF(telling->teller, teller && Py_IS_TYPE(teller, &teller_type)
                                        ? Py_NewRef(teller) : NULL);
    }
    return (Teller *)telling->teller;
}

/* As Python tells it, who may collect garbage meanwhile, and may say whether that goes on. */
static PyObject *
told_slowly(const Teller *teller, PyObject *result, int *collects)
{
    PyObject *told;

    if (*collects)
        PyGC_Enable();
    told = teller ? PyObject_CallOneArg(teller->slow, result) : told_by_itself(result);
    *collects = PyGC_Disable();
    return told;
}

/* The same of one result: its subscription's teller, and its events or what the event says. */
static void
look_into(const Telling *telling, PyObject *template, PyObject *occurrence)
{
    const Shape *shape;

    if (template != NULL && Py_IS_TYPE(template, telling->known.type)
        && telling->known.slot != NO_SLOT)
        SOON(in_slot(template, telling->known.slot));
    if (occurrence == NULL)
        return;
    if (PyTuple_CheckExact(occurrence)) {
        for (Py_ssize_t at = 2; at < PyTuple_GET_SIZE(occurrence); at++)
            SOON(PyTuple_GET_ITEM(occurrence, at));
        return;
    }
    shape = shape_of(Py_TYPE(occurrence));
    if (shape != NULL)
        SOON(in_slot(occurrence, shape->id));
}

/* What telling the results that come soon will read, so many ahead for each step towards it: as a rule
 * they, their subscriptions and their events lie far apart. */
static void
look_ahead(const Telling *telling, PyObject *results, Py_ssize_t at)
{
    Py_ssize_t count = PyList_GET_SIZE(results);
    PyObject *result = at + 9 < count ? PyList_GET_ITEM(results, at + 9) : NULL;

    if (result != NULL)
        SOON(result);
    result = at + 6 < count ? PyList_GET_ITEM(results, at + 6) : NULL;
    if (result != NULL && Py_IS_TYPE(result, telling->kind)) {
        SOON(in_slot(result, telling->slot));
        SOON(in_slot(result, telling->occurrence));
    }
    result = at + 3 < count ? PyList_GET_ITEM(results, at + 3) : NULL;
    if (result != NULL && Py_IS_TYPE(result, telling->kind))
        look_into(telling, in_slot(result, telling->slot), in_slot(result, telling->occurrence));
}

/* tell(results, kind): [result.to_dict() for result in results].
 *
 * Of what is made here nothing can be garbage before all is made, so nothing is collected meanwhile:
 * that would go over the same dictionaries many times. */
PyObject *
pass_tell(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count)
{
    Telling telling = {0};
    PyObject *found;
    int collects;

    if (count != 2 || !PyList_CheckExact(args[0]) || !PyType_Check(args[1]))
        Py_RETURN_NONE;
    telling.kind = (PyTypeObject *)args[1];
    telling.slot = slot_of(telling.kind, "template");
    telling.plain = PyUnicode_InternFromString("plain");
    telling.occurrence = slot_of(telling.kind, "occurrence");
    if (telling.slot == NO_SLOT || telling.occurrence == NO_SLOT || telling.plain == NULL) {
        Py_XDECREF(telling.plain);
        Py_RETURN_NONE;
    }
    found = PyList_New(0);
    collects = PyGC_Disable();
    for (Py_ssize_t at = 0; found != NULL && at < PyList_GET_SIZE(args[0]); at++) {
        PyObject *result = Py_NewRef(PyList_GET_ITEM(args[0], at)), *told;
        const Teller *teller = teller_of(&telling, result);

        look_ahead(&telling, args[0], at);
        told = teller ? told_of(teller, result) : NULL;
        if (told == NULL && !PyErr_Occurred())
            told = told_slowly(teller, result, &collects);
        Py_DECREF(result);
        if (told == NULL || PyList_Append(found, told) < 0)
            Py_CLEAR(found);
        Py_XDECREF(told);
    }
    if (collects)
        PyGC_Enable();
    Py_XDECREF(telling.template);
    Py_XDECREF(telling.teller);
    Py_DECREF(telling.plain);
    return found;
}

int
add_teller(PyObject *module)
{
    blank = PyDict_New();
    certain = PyUnicode_InternFromString("yes");
    for (int at = 0; blank != NULL && certain != NULL && at < KEYS; at++) {
        known[at] = PyUnicode_InternFromString(key_names[at]);
        if (known[at] == NULL
            || PyDict_SetItem(blank, known[at], at == CERTAINTY ? certain : Py_None) < 0)
            return -1;
    }
    return blank == NULL || certain == NULL ? -1 : PyModule_AddType(module, &teller_type);
}
