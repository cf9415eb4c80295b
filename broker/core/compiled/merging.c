/* Events of several leaves as one list, in order of time.
 *
 * Owns no state. Must not know what waits. Invariant: only where each leaf's events are in order, no
 * two end together and none ends too late is there a list; its entries stand as Pending gives them. */

#include "passes.h"

#define LEAVES_MAX 64

typedef struct {
    PyObject *number, *events; /* borrowed from the batch */
    Py_ssize_t at;
    int64_t end; /* of the event that is next */
} Source;

/* Know the end of the source's next event; 0 where it is none, or comes before `after`. */
static int
look(Source *source, int64_t after)
{
    PyObject *event = PyList_GET_ITEM(source->events, source->at);
    const Shape *shape = shape_of(Py_TYPE(event));

    return shape != NULL && as_whole(in_slot(event, shape->end), &source->end)
           && source->end > after;
}

/* The sources with events; how many, or -1 where they are not to be had. */
static int
open_sources(PyObject *batch, Source *sources, Py_ssize_t *total)
{
    int count = 0;

    for (Py_ssize_t at = 0; at < PyList_GET_SIZE(batch); at++) {
        PyObject *pair = PyList_GET_ITEM(batch, at);
        Source *source = &sources[count];

        if (!PyTuple_CheckExact(pair) || PyTuple_GET_SIZE(pair) != 2)
            return -1;
        source->number = PyTuple_GET_ITEM(pair, 0);
        source->events = PyTuple_GET_ITEM(pair, 1);
        source->at = 0;
        if (!PyList_CheckExact(source->events))
            return -1;
        if (PyList_GET_SIZE(source->events) == 0)
            continue;
        if (count + 1 == LEAVES_MAX || !look(source, INT64_MIN))
            return -1;
        *total += PyList_GET_SIZE(source->events);
        count++;
    }
    return count;
}

/* The source whose event comes next; NULL where two come together. */
static Source *
next_source(Source *sources, int count)
{
    Source *first = NULL;
    int together = 0;

    for (int at = 0; at < count; at++) {
        Source *source = &sources[at];
        if (source->at == PyList_GET_SIZE(source->events))
            continue;
        if (first == NULL || source->end < first->end) {
            first = source;
            together = 0;
        }
        else if (source->end == first->end)
            together = 1;
    }
    return together ? NULL : first;
}

/* merged([(leaf, events), …], until): [(leaf, event), …] in order, all ending by then; or None. */
PyObject *
pass_merged(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count)
{
    Source sources[LEAVES_MAX];
    Py_ssize_t total = 0;
    PyObject *found;
    int64_t until;
    int known;

    if (count != 2 || !PyList_CheckExact(args[0]) || !as_whole(args[1], &until))
        Py_RETURN_NONE;
    known = open_sources(args[0], sources, &total);
    if (known < 0)
        Py_RETURN_NONE;
    found = PyList_New(0);
    for (Py_ssize_t at = 0; found != NULL && at < total; at++) {
        Source *source = next_source(sources, known);
        PyObject *entry;

        if (source == NULL || source->end > until) {
            Py_DECREF(found);
            Py_RETURN_NONE;
        }
        entry = PyTuple_Pack(2, source->number, PyList_GET_ITEM(source->events, source->at));
        if (entry == NULL || PyList_Append(found, entry) < 0)
            Py_CLEAR(found);
        Py_XDECREF(entry);
        if (found != NULL && ++source->at < PyList_GET_SIZE(source->events)
            && !look(source, source->end)) {
            Py_DECREF(found);
            Py_RETURN_NONE;
        }
    }
    return found;
}
