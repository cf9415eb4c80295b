/* What is known of a subscription by those who tell of its results. */

#ifndef HEADWATER_RESULTS_H
#define HEADWATER_RESULTS_H

#include "passes.h"

typedef struct {
    PyObject_HEAD
    vectorcallfunc call;
    PyTypeObject *kind; /* of results */
    Py_ssize_t start, end, group, occurrence, certainty;
    PyObject *said;  /* subscription, seq, subscriber, actor */
    PyObject *begun; /* bytes: what is digested before what is bound */
    PyObject *heads; /* by place, bytes: its name, and that it is one of two */
    PyObject *names; /* by place */
    PyObject *keys;  /* of the group */
    PyObject *slow;  /* the generated function */
    int several;     /* whether a place may bind nothing, or a list */
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

/* The id of an occurrence; NULL with an error, or without where it is out of the common. */
PyObject *id_of(const Teller *self, PyObject *occurrence);

#endif
