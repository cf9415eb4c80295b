/* Events that wait for the watermark, put in order of time with those that came.
 *
 * Owns no state. Must not know what becomes of them. Invariant: entries stand as Pending keeps them,
 * by end; which of those of one end comes first is left to it. */

#include "passes.h"

#define BLOCK 8 /* so many are sorted by insertion; greater parts are merged */

static void
sort_block(Waiting *some, Py_ssize_t count)
{
    for (Py_ssize_t at = 1; at < count; at++) {
        Waiting one = some[at];
        Py_ssize_t place = at;
        for (; place > 0 && some[place - 1].end > one.end; place--)
            some[place] = some[place - 1];
        some[place] = one;
    }
}

/* Merge two parts that stand beside each other into one; `spare` has room for the first. */
static void
merge(Waiting *some, Py_ssize_t first, Py_ssize_t count, Waiting *spare)
{
    Py_ssize_t left = 0, right = first, place = 0;

    if (some[first - 1].end <= some[first].end)
        return;
    memcpy(spare, some, sizeof(Waiting) * (size_t)first);
    while (left < first)
        some[place++] = right < count && some[right].end < spare[left].end ? some[right++]
                                                                           : spare[left++];
}

void
sort_by_end(Waiting *all, Py_ssize_t count, Waiting *spare)
{
    for (Py_ssize_t at = 0; at < count; at += BLOCK)
        sort_block(all + at, Py_MIN(BLOCK, count - at));
    for (Py_ssize_t width = BLOCK; width < count; width *= 2)
        for (Py_ssize_t at = 0; at + width < count; at += 2 * width)
            merge(all + at, width, Py_MIN(2 * width, count - at), spare);
}

/* How many events there are in a batch; -1 where it is none. */
static Py_ssize_t
events_in(PyObject *batch)
{
    Py_ssize_t total = 0;

    for (Py_ssize_t at = 0; at < PyList_GET_SIZE(batch); at++) {
        PyObject *pair = PyList_GET_ITEM(batch, at);
        if (!PyTuple_CheckExact(pair) || PyTuple_GET_SIZE(pair) != 2
            || !PyList_CheckExact(PyTuple_GET_ITEM(pair, 1)))
            return -1;
        total += PyList_GET_SIZE(PyTuple_GET_ITEM(pair, 1));
    }
    return total;
}

/* Write down what waits, then what came; 0 where an end is not to be had. */
static int
collect(PyObject *ends, PyObject *entries, PyObject *batch, Waiting *all)
{
    for (Py_ssize_t at = 0; at < PyList_GET_SIZE(ends); at++, all++) {
        all->entry = PyList_GET_ITEM(entries, at);
        if (!as_whole(PyList_GET_ITEM(ends, at), &all->end))
            return 0;
    }
    for (Py_ssize_t at = 0; at < PyList_GET_SIZE(batch); at++) {
        PyObject *pair = PyList_GET_ITEM(batch, at), *events = PyTuple_GET_ITEM(pair, 1);
        for (Py_ssize_t next = 0; next < PyList_GET_SIZE(events); next++, all++) {
            PyObject *event = PyList_GET_ITEM(events, next);
            const Shape *shape = shape_of(Py_TYPE(event));
            if (shape == NULL || !as_whole(in_slot(event, shape->end), &all->end))
                return 0;
            *all = (Waiting){all->end, PyTuple_GET_ITEM(pair, 0), event, NULL};
        }
    }
    return 1;
}

/* Their entries, a new list; NULL with an error. */
static PyObject *
entries_of(const Waiting *some, Py_ssize_t count)
{
    PyObject *found = PyList_New(count);

    for (Py_ssize_t at = 0; found != NULL && at < count; at++) {
        PyObject *entry = some[at].entry != NULL ? Py_NewRef(some[at].entry)
                                                 : PyTuple_Pack(2, some[at].number, some[at].event);
        if (entry == NULL)
            Py_CLEAR(found);
        else
            PyList_SET_ITEM(found, at, entry);
    }
    return found;
}

static PyObject *
ends_of(const Waiting *some, Py_ssize_t count)
{
    PyObject *found = PyList_New(count);

    for (Py_ssize_t at = 0; found != NULL && at < count; at++) {
        PyObject *end = PyLong_FromLongLong((long long)some[at].end);
        if (end == NULL)
            Py_CLEAR(found);
        else
            PyList_SET_ITEM(found, at, end);
    }
    return found;
}

/* (entries that end by then, whether no two of them end together, ends of the others, entries). */
static PyObject *
parted(const Waiting *all, Py_ssize_t count, int64_t until)
{
    Py_ssize_t ready = 0;
    PyObject *released, *ends, *kept;
    int apart = 1;

    for (; ready < count && all[ready].end <= until; ready++)
        apart &= ready == 0 || all[ready - 1].end < all[ready].end;
    released = entries_of(all, ready);
    ends = released ? ends_of(all + ready, count - ready) : NULL;
    kept = ends ? entries_of(all + ready, count - ready) : NULL;
    if (kept == NULL) {
        Py_XDECREF(released);
        Py_XDECREF(ends);
        return NULL;
    }
    return Py_BuildValue("NONN", released, apart ? Py_True : Py_False, ends, kept);
}

/* merged(ends, entries, [(leaf, events), …], until): of what waits and what came (entries that end by
 * then, in order; whether no two of these end together; ends and entries of the others); or None. */
PyObject *
pass_merged(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count)
{
    Py_ssize_t waiting, coming;
    PyObject *found;
    Waiting *all;
    int64_t until;
    int collects;

    if (count != 4 || !PyList_CheckExact(args[0]) || !PyList_CheckExact(args[1])
        || !PyList_CheckExact(args[2]) || !as_clipped(args[3], &until)
        || PyList_GET_SIZE(args[0]) != PyList_GET_SIZE(args[1]))
        Py_RETURN_NONE;
    waiting = PyList_GET_SIZE(args[0]);
    coming = events_in(args[2]);
    if (coming < 0)
        Py_RETURN_NONE;
    all = PyMem_Malloc(2 * sizeof(Waiting) * (size_t)(waiting + coming + 1));
    if (all == NULL)
        return PyErr_NoMemory();
    if (collect(args[0], args[1], args[2], all)) {
        sort_by_end(all, waiting + coming, all + waiting + coming);
        collects = PyGC_Disable(); /* what garbage does when it goes may drop what is borrowed */
        found = parted(all, waiting + coming, until);
        if (collects)
            PyGC_Enable();
    }
    else
        found = Py_NewRef(Py_None);
    PyMem_Free(all);
    return found;
}
