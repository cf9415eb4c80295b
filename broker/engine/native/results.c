/* Results as other programs meet them.
 *
 * Owns the dictionary of a result whose values are not assigned and whose silent places are empty.
 * Must not know what was looked for. Invariant: it is what the function gives that was generated for the
 * same subscription, which is asked wherever anything is out of the common. */

#include "results.h"

static const char *const field_names[FIELDS] = {
    "template", "start", "end", "group", "occurrence", "certainty",
};

enum { SUBSCRIPTION, SEQ, ID, SUBSCRIBER, ACTOR, START, END, CERTAINTY, GROUP, VALUES, EVENTS, KEYS };
static const char *const key_names[KEYS] = {
    "subscription", "seq", "id", "subscriber", "actor", "start", "end", "certainty", "group",
    "values", "events",
};
#define OBJECTS 32 /* as many as a class keeps keys for */
static PyObject *known[KEYS];
static PyObject *blank; /* a dictionary with these keys, in their order, of a certain result */
static const int said[SAID] = {SUBSCRIPTION, SEQ, SUBSCRIBER, ACTOR};
static PyObject *certain;

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

PyObject *
told_of(const Teller *self, PyObject *result)
{
    PyObject *occurrence, *certainty, *id, *told;
    Py_ssize_t slots[FIELDS];
    int done;

    if (!Py_IS_TYPE(result, self->kind) || !find_fields(self->kind, slots))
        return NULL;
    occurrence = in_slot(result, slots[OCCURRENCE]);
    certainty = in_slot(result, slots[CERTAIN]);
    id = id_of(self, occurrence);
    if (id == NULL)
        return NULL;
    told = PyDict_Copy(self->blank);
    if (told == NULL) {
        Py_DECREF(id);
        return NULL;
    }
    done = put(told, known[ID], id)
           && put(told, known[START], owned(in_slot(result, slots[STARTED])))
           && put(told, known[END], owned(in_slot(result, slots[ENDED])))
           && (certainty == certain || put(told, known[CERTAINTY], owned(certainty)))
           && put(told, known[GROUP], group_of(self, in_slot(result, slots[KEYED])))
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
    Py_XDECREF(self->blank);
    Py_XDECREF(self->names);
    Py_XDECREF(self->keys);
    Py_XDECREF(self->slow);
    Py_TYPE(object)->tp_free(object);
}

/* How many bytes the heads take with their lengths; -1 with an error. */
static Py_ssize_t
room_of(PyObject *begun, PyObject *heads)
{
    Py_ssize_t found = PyBytes_GET_SIZE(begun);

    for (Py_ssize_t at = 0; at < PyTuple_GET_SIZE(heads); at++) {
        PyObject *head = PyTuple_GET_ITEM(heads, at);
        if (!PyBytes_CheckExact(head)) {
            PyErr_SetString(PyExc_TypeError, "a name's head is bytes");
            return -1;
        }
        found += (Py_ssize_t)sizeof(uint32_t) + PyBytes_GET_SIZE(head);
    }
    if (found > INT32_MAX) {
        PyErr_SetString(PyExc_ValueError, "names are too long");
        return -1;
    }
    return found;
}

static void
put_heads(Teller *self, PyObject *begun, PyObject *heads)
{
    uint8_t *to = self->bytes;

    self->begun = (uint32_t)PyBytes_GET_SIZE(begun);
    memcpy(to, PyBytes_AS_STRING(begun), self->begun);
    to += self->begun;
    for (Py_ssize_t at = 0; at < PyTuple_GET_SIZE(heads); at++) {
        PyObject *head = PyTuple_GET_ITEM(heads, at);
        uint32_t length = (uint32_t)PyBytes_GET_SIZE(head);
        memcpy(to, &length, sizeof(length));
        memcpy(to + sizeof(length), PyBytes_AS_STRING(head), length);
        to += sizeof(length) + length;
    }
}

/* Teller(kind, said, begun, heads, names, keys, slow, several) */
static PyObject *
teller_new(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(named))
{
    PyObject *kind, *constants, *begun, *heads, *names, *keys, *slow;
    Py_ssize_t slots[FIELDS], room;
    Teller *self;
    int several;

    if (!PyArg_ParseTuple(args, "O!O!SO!O!O!Op", &PyType_Type, &kind, &PyTuple_Type, &constants, &begun,
                          &PyTuple_Type, &heads, &PyTuple_Type, &names, &PyTuple_Type, &keys, &slow,
                          &several))
        return NULL;
    if (PyTuple_GET_SIZE(constants) != SAID || PyTuple_GET_SIZE(heads) != PyTuple_GET_SIZE(names)) {
        PyErr_SetString(PyExc_ValueError, "four constants are said, and each name has its bytes");
        return NULL;
    }
    if (!find_fields((PyTypeObject *)kind, slots)) {
        PyErr_SetString(PyExc_TypeError, "results keep nothing in slots");
        return NULL;
    }
    room = room_of(begun, heads);
    self = room < 0 ? NULL : (Teller *)type->tp_alloc(type, room);
    if (self == NULL)
        return NULL;
    self->call = teller_call;
    self->kind = (PyTypeObject *)Py_NewRef(kind);
    self->names = Py_NewRef(names);
    self->keys = Py_NewRef(keys);
    self->slow = Py_NewRef(slow);
    self->several = several;
    put_heads(self, begun, heads);
    self->blank = PyDict_Copy(blank);
    for (int at = 0; self->blank != NULL && at < SAID; at++) {
        if (PyDict_SetItem(self->blank, known[said[at]], PyTuple_GET_ITEM(constants, at)) < 0)
            Py_CLEAR(self->blank);
    }
    if (self->blank == NULL)
        Py_CLEAR(self);
    return (PyObject *)self;
}

PyTypeObject teller_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "broker.engine.native._passes.Teller",
    .tp_basicsize = sizeof(Teller),
    .tp_itemsize = 1,
    .tp_dealloc = teller_dealloc,
    .tp_vectorcall_offset = offsetof(Teller, call),
    .tp_call = PyVectorcall_Call,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_doc = "Makes results of one subscription as other programs meet them.",
    .tp_new = teller_new,
};

/* A dictionary with the keys, in their order, of a certain result.
 *
 * It is that of an object's attributes: its copies share their keys, which takes half the memory and
 * less time. The more objects of a class there are, the less room they keep for further keys. */
static PyObject *
made_blank(void)
{
    PyObject *type = PyObject_CallFunction((PyObject *)&PyType_Type, "s(){}", "Blank");
    PyObject *object = type ? PyObject_CallNoArgs(type) : NULL;
    PyObject *found = object ? PyObject_GenericGetDict(object, NULL) : NULL;
    int done = found != NULL;

    for (int at = 0; done && at < KEYS; at++) {
        PyObject *value = at == CERTAINTY ? certain : Py_None;
        known[at] = PyUnicode_InternFromString(key_names[at]);
        done = known[at] != NULL && PyObject_SetAttr(object, known[at], value) == 0;
    }
    for (int at = 0; done && at < OBJECTS; at++) {
        PyObject *other = PyObject_CallNoArgs(type);
        done = other != NULL;
        Py_XDECREF(other);
    }
    if (!done)
        Py_CLEAR(found);
    Py_XDECREF(object);
    Py_XDECREF(type);
    return found;
}

int
add_teller(PyObject *module)
{
    certain = PyUnicode_InternFromString("yes");
    blank = certain ? made_blank() : NULL;
    return blank == NULL ? -1 : PyModule_AddType(module, &teller_type);
}
