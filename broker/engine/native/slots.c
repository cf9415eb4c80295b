/* Where objects keep what is asked of them.
 *
 * Owns slots and shapes. Must not know what is done with events. Invariant: a slot is only given
 * for a class whose objects hold a reference there, or nothing. */

#include "passes.h"

#define SHAPES 256 /* classes known at a time; a broker has few, and each is kept alive meanwhile */
#define NEIGHBOURS 8 /* places in which a class may stand; past them another goes */

static Shape shapes[SHAPES];

Py_ssize_t
slot_named(PyTypeObject *type, PyObject *name)
{
    PyObject *found = PyObject_GetAttr((PyObject *)type, name);
    Py_ssize_t slot = NO_SLOT;

    if (found == NULL) {
        PyErr_Clear();
        return NO_SLOT;
    }
    if (Py_IS_TYPE(found, &PyMemberDescr_Type)) {
        PyMemberDef *member = ((PyMemberDescrObject *)found)->d_member;
        PyTypeObject *owner = ((PyDescrObject *)found)->d_type;
        if (member->type == T_OBJECT_EX && PyType_IsSubtype(type, owner))
            slot = member->offset;
    }
    Py_DECREF(found);
    return slot;
}

Py_ssize_t
slot_of(PyTypeObject *type, const char *name)
{
    PyObject *text = PyUnicode_InternFromString(name);
    Py_ssize_t slot;

    if (text == NULL) {
        PyErr_Clear();
        return NO_SLOT;
    }
    slot = slot_named(type, text);
    Py_DECREF(text);
    return slot;
}

int
as_whole_slowly(PyObject *object, int64_t *value)
{
    int overflow;
    long long found;

    if (object == NULL || !PyLong_CheckExact(object))
        return 0;
    found = PyLong_AsLongLongAndOverflow(object, &overflow);
    if (overflow || found >= (1LL << 62) || found <= -(1LL << 62)) /* so that two may be subtracted */
        return 0;
    *value = (int64_t)found;
    return 1;
}

static void
forget(Shape *shape)
{
    Py_CLEAR(shape->type);
    Py_CLEAR(shape->names);
    PyMem_Free(shape->slots);
    memset(shape, 0, sizeof(Shape));
}

/* The attributes of the class and their slots; 0 where one is not kept so. */
static int
read_attributes(Shape *shape, PyObject *slots)
{
    if (!PyTuple_CheckExact(shape->names) || !PyTuple_CheckExact(slots))
        return 0;
    shape->count = PyTuple_GET_SIZE(shape->names);
    if (PyTuple_GET_SIZE(slots) != shape->count)
        return 0;
    shape->slots = PyMem_Malloc(sizeof(Py_ssize_t) * (size_t)(shape->count + 1));
    if (shape->slots == NULL)
        return 0;
    for (Py_ssize_t at = 0; at < shape->count; at++) {
        shape->slots[at] = slot_named(shape->type, PyTuple_GET_ITEM(slots, at));
        if (shape->slots[at] == NO_SLOT)
            return 0;
    }
    return 1;
}

static void
read_shape(Shape *shape, PyTypeObject *type)
{
    PyObject *slots;

    forget(shape);
    shape->type = (PyTypeObject *)Py_NewRef(type);
    shape->id = slot_of(type, "id");
    shape->start = slot_of(type, "start");
    shape->end = slot_of(type, "end");
    if (shape->id == NO_SLOT || shape->start == NO_SLOT || shape->end == NO_SLOT)
        return;
    shape->names = PyObject_GetAttrString((PyObject *)type, "attributes");
    slots = shape->names ? PyObject_GetAttrString((PyObject *)type, "slots") : NULL;
    if (slots == NULL) {
        PyErr_Clear();
        return;
    }
    shape->whole = read_attributes(shape, slots);
    Py_DECREF(slots);
}

const Shape *
shape_of(PyTypeObject *type)
{
    size_t first = (size_t)((uintptr_t)type >> 5);
    Shape *shape;

    for (size_t at = 0; at < NEIGHBOURS; at++) {
        shape = &shapes[(first + at) % SHAPES];
        if (shape->type == type)
            return shape->whole ? shape : NULL;
        if (shape->type == NULL)
            break;
    }
    if (shape->type != NULL)
        shape = &shapes[first % SHAPES];
    read_shape(shape, type);
    return shape->whole ? shape : NULL;
}

const Reading *
learn_reading(Readings *readings, PyTypeObject *type, PyObject *keys)
{
    Reading *reading = &readings->known[readings->next];
    const Shape *shape = shape_of(type);

    readings->next = (readings->next + 1) % CLASSES_MAX;
    reading->type = type;
    reading->whole = shape != NULL;
    if (shape != NULL) {
        reading->start = shape->start;
        reading->end = shape->end;
    }
    for (Py_ssize_t at = 0; at < PyTuple_GET_SIZE(keys); at++) {
        reading->slots[at] = slot_named(type, PyTuple_GET_ITEM(keys, at));
        if (reading->slots[at] == NO_SLOT)
            reading->whole = 0;
    }
    return reading;
}
