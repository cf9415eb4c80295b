/* What is known of a subscription by those who tell of its results. */

#ifndef HEADWATER_RESULTS_H
#define HEADWATER_RESULTS_H

#include "passes.h"

/* The fields of a result. */
enum { TEMPLATE, STARTED, ENDED, KEYED, OCCURRENCE, CERTAIN, FIELDS };

/* Where a class of results keeps its fields; 0 where it has others, or keeps them not so. Sets no
 * error. */
int find_fields(PyTypeObject *kind, Py_ssize_t slots[FIELDS]);

#define SAID 4 /* constants: subscription, seq, subscriber, actor */

/* Of many subscriptions, so all that each result needs lies together. */
typedef struct {
    PyObject_VAR_HEAD
    vectorcallfunc call;
    PyTypeObject *kind; /* of results */
    PyObject *blank; /* a result of which only these are said */
    PyObject *names; /* by place */
    PyObject *keys;  /* of the group */
    PyObject *slow;  /* the generated function */
    int several;     /* whether a place may bind nothing, or a list */
    uint32_t begun;  /* so many bytes are digested before what is bound */
    uint8_t bytes[]; /* these; then by place a length, and its name as the first of two */
} Teller;

/* What is bound at a place; NULL where it is out of the common. */
static inline PyObject *
bound_at(const Teller *self, PyObject *occurrence, Py_ssize_t place)
{
    Py_ssize_t places = PyTuple_GET_SIZE(self->names);

    if (occurrence == NULL)
        return NULL;
    if (!PyTuple_CheckExact(occurrence))
        return places == 1 ? occurrence : NULL;
    if (PyTuple_GET_SIZE(occurrence) != places + 2)
        return NULL;
    return PyTuple_GET_ITEM(occurrence, place + 2);
}

/* Whether a place may bind nothing, or a list, and does. */
static inline int
is_empty(const Teller *self, PyObject *member)
{
    return self->several && member == Py_None;
}

static inline int
is_list(const Teller *self, PyObject *member)
{
    return self->several && PyTuple_CheckExact(member);
}

extern PyTypeObject teller_type;

/* The result as a dictionary; NULL with an error, or without where it is out of the common. */
PyObject *told_of(const Teller *self, PyObject *result);

/* The id of an occurrence, as above. */
PyObject *id_of(const Teller *self, PyObject *occurrence);

#endif
