/* Occurrences and results put into order, as far as their times tell.
 *
 * Owns no state. Must not know what decides among those of one time. Invariant: a list keeps what is
 * in it, those of one time stand as they stood before, and None says that nothing was done. */

#include "passes.h"

/* What is sorted, borrowed from its list, by the first and then the second. */
typedef struct {
    int64_t first, second;
    PyObject *item;
} Entry;

static inline int
after(const Entry *one, const Entry *other)
{
    return one->first > other->first
           || (one->first == other->first && one->second > other->second);
}

static inline int
same(const Entry *one, const Entry *other)
{
    return one->first == other->first && one->second == other->second;
}

/* Where what begins at `low` and is in order ends. */
static Py_ssize_t
run_end(const Entry *entries, Py_ssize_t low, Py_ssize_t count)
{
    Py_ssize_t at = low + 1;

    while (at < count && !after(&entries[at - 1], &entries[at]))
        at++;
    return at < count ? at : count;
}

static void
merge(const Entry *from, Entry *to, Py_ssize_t low, Py_ssize_t middle, Py_ssize_t high)
{
    Py_ssize_t left = low, right = middle;

    for (Py_ssize_t at = low; at < high; at++) {
        if (left < middle && (right == high || !after(&from[left], &from[right])))
            to[at] = from[left++];
        else
            to[at] = from[right++];
    }
}

/* Sort by merging runs that are in order, of which there are few as a rule: one of each type, or of
 * each group. Gives where the entries are then, here or in the room beside them. */
static Entry *
merged(Entry *entries, Entry *room, Py_ssize_t count)
{
    while (run_end(entries, 0, count) < count) {
        Entry *from = entries;
        for (Py_ssize_t low = 0; low < count;) {
            Py_ssize_t middle = run_end(from, low, count);
            Py_ssize_t high = middle < count ? run_end(from, middle, count) : count;
            merge(from, room, low, middle, high);
            low = high;
        }
        entries = room;
        room = from;
    }
    return entries;
}

/* Room for entries twice over, to be freed; NULL with an error. */
static Entry *
room_for(Py_ssize_t count)
{
    Entry *found = PyMem_New(Entry, 2 * (size_t)count + 1);

    if (found == NULL)
        PyErr_NoMemory();
    return found;
}

/* Sort the list by its entries, whose second half is room; gives the entries in order. */
static const Entry *
put_in_order(PyObject *list, Entry *entries)
{
    Py_ssize_t count = PyList_GET_SIZE(list);
    const Entry *found = merged(entries, entries + count, count);

    for (Py_ssize_t at = 0; at < count; at++)
        PyList_SET_ITEM(list, at, found[at].item); /* each once, so that no count changes */
    return found;
}

/* --- occurrences ------------------------------------------------------------------------------ */

/* End and start of an occurrence; 0 where they are no plain numbers. */
static int
read_span(PyObject *occurrence, Entry *entry)
{
    const Shape *shape;

    if (PyTuple_CheckExact(occurrence))
        return PyTuple_GET_SIZE(occurrence) >= 2
               && as_whole(PyTuple_GET_ITEM(occurrence, 0), &entry->first)
               && as_whole(PyTuple_GET_ITEM(occurrence, 1), &entry->second);
    shape = shape_of(Py_TYPE(occurrence));
    return shape != NULL && as_whole(in_slot(occurrence, shape->end), &entry->first)
           && as_whole(in_slot(occurrence, shape->start), &entry->second);
}

static int
read_spans(PyObject *list, int paired, Entry *entries)
{
    for (Py_ssize_t at = 0; at < PyList_GET_SIZE(list); at++) {
        PyObject *item = PyList_GET_ITEM(list, at), *occurrence = item;
        if (paired) {
            if (!PyTuple_CheckExact(item) || PyTuple_GET_SIZE(item) == 0)
                return 0;
            occurrence = PyTuple_GET_ITEM(item, 0);
        }
        entries[at].item = item;
        if (!read_span(occurrence, &entries[at]))
            return 0;
    }
    return 1;
}

/* by_span(items, paired): sort by ends, then starts; [(begin, stop) of those that are equal]. */
PyObject *
pass_by_span(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count)
{
    Py_ssize_t items, stop;
    const Entry *sorted;
    Entry *entries;
    PyObject *found;

    if (count != 2 || !PyList_CheckExact(args[0]))
        Py_RETURN_NONE;
    items = PyList_GET_SIZE(args[0]);
    found = PyList_New(0); /* first, as that may run what collects garbage */
    entries = found ? room_for(items) : NULL;
    if (entries == NULL || PyList_GET_SIZE(args[0]) != items
        || !read_spans(args[0], args[1] == Py_True, entries)) {
        PyMem_Free(entries);
        Py_XDECREF(found);
        if (PyErr_Occurred())
            return NULL;
        Py_RETURN_NONE;
    }
    sorted = put_in_order(args[0], entries);
    for (Py_ssize_t at = 0; found != NULL && at + 1 < items; at = stop) {
        PyObject *range;
        for (stop = at + 1; stop < items && same(&sorted[at], &sorted[stop]); stop++)
            ;
        if (stop == at + 1)
            continue;
        range = Py_BuildValue("nn", at, stop);
        if (range == NULL || PyList_Append(found, range) < 0)
            Py_CLEAR(found);
        Py_XDECREF(range);
    }
    PyMem_Free(entries);
    return found;
}

/* --- results ---------------------------------------------------------------------------------- */

/* Where results and templates keep what is asked of them. */
typedef struct {
    PyTypeObject *kind;
    PyObject *place;
    Py_ssize_t end, occurrence, template;
    Known known;
} Reader;

static int
read_place(Reader *reader, PyObject *template, int64_t *place)
{
    Py_ssize_t slot = template ? slot_in(&reader->known, template, reader->place) : NO_SLOT;

    return slot != NO_SLOT && as_whole(in_slot(template, slot), place);
}

/* Whether of two results of one end the first comes first: of one occurrence, by place. */
static int
placed(Reader *reader, PyObject *one, PyObject *other)
{
    int64_t before, later;

    return in_slot(one, reader->occurrence) == in_slot(other, reader->occurrence)
           && read_place(reader, in_slot(one, reader->template), &before)
           && read_place(reader, in_slot(other, reader->template), &later) && before < later;
}

static int
read_ends(const Reader *reader, PyObject *list, Entry *entries)
{
    for (Py_ssize_t at = 0; at < PyList_GET_SIZE(list); at++) {
        PyObject *result = PyList_GET_ITEM(list, at);
        entries[at].item = result;
        entries[at].second = 0;
        if (!Py_IS_TYPE(result, reader->kind)
            || !as_whole(in_slot(result, reader->end), &entries[at].first))
            return 0;
    }
    return 1;
}

/* put_in_order(results, kind): put results of the kind into the order of their ends; True where that is
 * all that sort_results would do. */
PyObject *
pass_put_in_order(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count)
{
    Reader reader = {0};
    Entry *entries;
    const Entry *sorted;
    int whole;

    if (count != 2 || !PyList_CheckExact(args[0]) || !PyType_Check(args[1]))
        Py_RETURN_FALSE;
    reader.kind = (PyTypeObject *)args[1];
    reader.end = slot_of(reader.kind, "end");
    reader.occurrence = slot_of(reader.kind, "occurrence");
    reader.template = slot_of(reader.kind, "template");
    reader.place = PyUnicode_InternFromString("place");
    if (reader.place == NULL)
        return NULL;
    entries = room_for(PyList_GET_SIZE(args[0]));
    whole = entries != NULL && reader.end != NO_SLOT && reader.occurrence != NO_SLOT
            && reader.template != NO_SLOT && read_ends(&reader, args[0], entries);
    if (whole) {
        sorted = put_in_order(args[0], entries);
        for (Py_ssize_t at = 1; whole && at < PyList_GET_SIZE(args[0]); at++)
            whole = !same(&sorted[at - 1], &sorted[at])
                    || placed(&reader, sorted[at - 1].item, sorted[at].item);
    }
    PyMem_Free(entries);
    Py_DECREF(reader.place);
    return PyErr_Occurred() ? NULL : PyBool_FromLong(whole);
}
