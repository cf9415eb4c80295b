/* Events that fall into one open pane: their span, and what takes the events of each key.
 *
 * Owns no state. Must not know windows. Invariant: an event whose key nobody takes yet is left to
 * Python, one by one and in order. */

#include "passes.h"

#define AHEAD 8 /* events by which keys are fetched before they are wanted */

/* What is told of the span of events. */
typedef struct {
    PyObject *low, *high; /* borrowed */
    int64_t least, greatest, before;
    int plain, ordered;
} Span;

/* Take the next event in; 0 where its times are no plain integers. */
static int
span_over(Span *span, PyObject *event, const Shape *shape, Py_ssize_t uncertainty)
{
    PyObject *last = in_slot(event, shape->end);
    int64_t start, end, doubt;

    if (!as_whole(last, &end) || !as_whole(in_slot(event, shape->start), &start)
        || !as_whole(in_slot(event, uncertainty), &doubt))
        return 0;
    span->plain &= start == end && doubt == 0;
    span->ordered &= span->before <= end;
    span->before = end;
    if (span->low == NULL || end < span->least) {
        span->low = last;
        span->least = end;
    }
    if (span->high == NULL || end > span->greatest) {
        span->high = last;
        span->greatest = end;
    }
    return 1;
}

/* spanned(events, newest): (least end, greatest end, whether all are certain points, whether none
 * ends before the one before it, nor the first before `newest`); or None. */
PyObject *
pass_spanned(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count)
{
    Span span = {.plain = 1, .ordered = 1};
    const Shape *shape = NULL;
    Py_ssize_t uncertainty = NO_SLOT;

    if (count != 2 || !PyList_CheckExact(args[0]) || PyList_GET_SIZE(args[0]) == 0
        || !as_clipped(args[1], &span.before))
        Py_RETURN_NONE;
    for (Py_ssize_t at = 0; at < PyList_GET_SIZE(args[0]); at++) {
        PyObject *event = PyList_GET_ITEM(args[0], at);
        if (shape == NULL || shape->type != Py_TYPE(event)) {
            shape = shape_of(Py_TYPE(event));
            uncertainty = shape ? slot_of(shape->type, "uncertainty") : NO_SLOT;
            if (uncertainty == NO_SLOT)
                Py_RETURN_NONE;
        }
        if (!span_over(&span, event, shape, uncertainty))
            Py_RETURN_NONE;
    }
    /* Owned before there is a tuple: what garbage does when it goes may drop the events. */
    return Py_BuildValue("NNOO", Py_NewRef(span.low), Py_NewRef(span.high),
                         span.plain ? Py_True : Py_False, span.ordered ? Py_True : Py_False);
}

/* The key of an event, new: a value alone, else a tuple; None where a part is null, NULL with or
 * without an error. */
static PyObject *
key_of(PyObject *event, const Py_ssize_t *slots, Py_ssize_t parts)
{
    PyObject *key;

    for (Py_ssize_t at = 0; at < parts; at++) {
        PyObject *part = in_slot(event, slots[at]);
        if (part == NULL || part == Py_None)
            return Py_XNewRef(part);
    }
    if (parts == 1)
        return Py_NewRef(in_slot(event, slots[0]));
    key = PyTuple_New(parts);
    for (Py_ssize_t at = 0; key != NULL && at < parts; at++)
        PyTuple_SET_ITEM(key, at, Py_NewRef(in_slot(event, slots[at])));
    return key;
}

/* Put the event into the list of its key; 0 if that is done, -1 with an error, -2 where Python has
 * to say. */
static int
put_one(PyObject *event, PyObject *names, const Py_ssize_t *slots, PyObject *lists)
{
    PyObject *key = key_of(event, slots, PyTuple_GET_SIZE(names)), *list;
    int done = -2;

    if (key == NULL)
        return PyErr_Occurred() ? -1 : -2;
    if (key == Py_None) {
        Py_DECREF(key);
        return 0;
    }
    list = PyDict_GetItemWithError(lists, key);
    if (list != NULL && PyList_CheckExact(list))
        done = PyList_Append(list, event);
    Py_DECREF(key);
    return PyErr_Occurred() ? -1 : done;
}

/* put(events, names, lists, asked): each event into the list of its key; asked([event]) where there
 * is none. The names are those of slots. */
PyObject *
pass_put(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count)
{
    const Reading *reading = NULL;
    Readings readings = {0};

    if (count != 4 || !PyList_CheckExact(args[0]) || !PyTuple_CheckExact(args[1])
        || PyTuple_GET_SIZE(args[1]) == 0 || PyTuple_GET_SIZE(args[1]) > KEYS_MAX
        || !PyDict_CheckExact(args[2])) {
        PyErr_SetString(PyExc_TypeError, "put takes events, names of slots, lists and asked");
        return NULL;
    }
    for (Py_ssize_t at = 0; at < PyList_GET_SIZE(args[0]); at++) {
        PyObject *event = Py_NewRef(PyList_GET_ITEM(args[0], at));
        int done;

        if (at + AHEAD < PyList_GET_SIZE(args[0])) {
            PyObject *later = PyList_GET_ITEM(args[0], at + AHEAD);
            reading = reading_of(&readings, Py_TYPE(later), args[1]);
            if (reading->whole)
                fetch_keys(reading, later, PyTuple_GET_SIZE(args[1]));
        }
        reading = reading_of(&readings, Py_TYPE(event), args[1]);
        done = reading->whole ? put_one(event, args[1], reading->slots, args[2]) : -2;
        if (done == -2) {
            PyObject *list = PyList_New(1), *said = NULL;
            if (list != NULL) {
                PyList_SET_ITEM(list, 0, Py_NewRef(event));
                said = PyObject_CallOneArg(args[3], list);
                Py_DECREF(list);
            }
            done = said == NULL ? -1 : 0;
            Py_XDECREF(said);
        }
        Py_DECREF(event);
        if (done == -1)
            return NULL;
    }
    Py_RETURN_NONE;
}
