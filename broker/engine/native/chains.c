/* Chains that are found among what waits: see solved.py, which says which ones.
 *
 * Owns the search in a group's readings. Must not know agents. Invariant: it finds what the function
 * finds that was written for the same chain, which is asked wherever anything is out of the common. */

#include "passes.h"

#define PLACES_MAX 16 /* see solved.PLACES_MAX */
#define HELD_MAX 256  /* of what waits that is near enough */

typedef struct {
    Py_ssize_t place, after, until;
    int optional;
} List;

typedef struct {
    PyObject_HEAD
    vectorcallfunc call;
    long long within;
    Py_ssize_t size;                 /* places in all */
    Py_ssize_t elements[PLACES_MAX]; /* the places of those before the last, in order */
    Py_ssize_t before;               /* how many */
    List lists[PLACES_MAX];
    Py_ssize_t listed;
    int first; /* whether the earliest are chosen, and not every combination */
    PyObject *slow;
} Chain;

/* What waits at a place; owned while it is looked through. */
typedef struct {
    int64_t start, end;
    Py_ssize_t place;
    PyObject *event;
} Held;

typedef struct {
    const Chain *chain;
    Held last; /* what completes */
    Held held[HELD_MAX];
    Py_ssize_t count;
    Held *columns[PLACES_MAX][HELD_MAX];
    Py_ssize_t lengths[PLACES_MAX];
    const Held *chosen[PLACES_MAX]; /* by element */
    PyObject *made;
} Search;

static int
read_held(PyObject *event, Held *held)
{
    const Shape *shape = shape_of(Py_TYPE(event));

    held->event = event;
    return shape != NULL && as_whole(in_slot(event, shape->start), &held->start)
           && as_whole(in_slot(event, shape->end), &held->end);
}

/* What waits and is near enough, the latest first, which ends before that; 0 where something is out
 * of the common. */
static int
gather(Search *search, PyObject *entries, int64_t until)
{
    int64_t since = search->last.end - search->chain->within;

    for (Py_ssize_t at = PyList_GET_SIZE(entries) - 1; at >= 0; at--) {
        PyObject *entry = PyList_GET_ITEM(entries, at);
        Held *held = &search->held[search->count];
        int64_t place;

        if (search->count == HELD_MAX || !PyTuple_CheckExact(entry) || PyTuple_GET_SIZE(entry) != 2
            || !as_whole(PyTuple_GET_ITEM(entry, 0), &place) || place < 0
            || place >= search->chain->size || !read_held(PyTuple_GET_ITEM(entry, 1), held))
            return 0;
        if (held->start < since)
            return 1;
        held->place = (Py_ssize_t)place;
        search->count += held->end < until;
    }
    return 1;
}

/* A list's events: those of its place between the two beside it; 0 where none may be and none is. */
static int
bounds_of(const Search *search, const List *list, const Held *members[], Py_ssize_t *low,
          Py_ssize_t *high)
{
    Held *const *column = search->columns[list->place];
    Py_ssize_t length = search->lengths[list->place];

    for (*low = 0; *low < length && column[*low]->end <= members[list->after]->end; (*low)++)
        ;
    for (*high = *low; *high < length && column[*high]->end < members[list->until]->start; (*high)++)
        ;
    return *low < *high || list->optional;
}

static PyObject *
list_of(const Search *search, const List *list, Py_ssize_t low, Py_ssize_t high)
{
    PyObject *found = PyTuple_New(high - low);

    for (Py_ssize_t at = low; found != NULL && at < high; at++)
        PyTuple_SET_ITEM(found, at - low, Py_NewRef(search->columns[list->place][at]->event));
    return found;
}

/* (end, start, what is bound at each place), and nothing in the places of lists. */
static PyObject *
occurrence_of(const Search *search, const Held *members[])
{
    const Chain *chain = search->chain;
    PyObject *found = PyTuple_New(chain->size + 2), *first = search->chosen[0]->event;
    const Shape *of_last = found ? shape_of(Py_TYPE(search->last.event)) : NULL;
    PyObject *end = of_last ? in_slot(search->last.event, of_last->end) : NULL;
    const Shape *of_first = found ? shape_of(Py_TYPE(first)) : NULL;
    PyObject *start = of_first ? in_slot(first, of_first->start) : NULL;

    if (start == NULL || end == NULL) {
        Py_XDECREF(found);
        return NULL;
    }
    PyTuple_SET_ITEM(found, 0, Py_NewRef(end));
    PyTuple_SET_ITEM(found, 1, Py_NewRef(start));
    for (Py_ssize_t at = 0; at < chain->size; at++)
        PyTuple_SET_ITEM(found, at + 2, Py_XNewRef(members[at] ? members[at]->event : NULL));
    return found;
}

/* What is chosen with its lists is an occurrence, unless a list has nothing; 0 with an error. */
static int
complete(Search *search)
{
    const Chain *chain = search->chain;
    const Held *members[PLACES_MAX] = {NULL};
    Py_ssize_t lows[PLACES_MAX], highs[PLACES_MAX];
    PyObject *found;
    int done;

    for (Py_ssize_t at = 0; at < chain->before; at++)
        members[chain->elements[at]] = search->chosen[at];
    members[chain->elements[chain->before]] = &search->last;
    for (Py_ssize_t at = 0; at < chain->listed; at++) {
        if (!bounds_of(search, &chain->lists[at], members, &lows[at], &highs[at]))
            return 1;
    }
    found = occurrence_of(search, members);
    done = found != NULL;
    for (Py_ssize_t at = 0; done && at < chain->listed; at++) {
        PyObject *list = list_of(search, &chain->lists[at], lows[at], highs[at]);
        done = list != NULL;
        PyTuple_SET_ITEM(found, chain->lists[at].place + 2, list);
    }
    done = done && PyList_Append(search->made, found) == 0;
    Py_XDECREF(found);
    return done;
}

/* Every choice of elements, each after the one before; 0 with an error. */
static int
choose(Search *search, Py_ssize_t depth)
{
    const Chain *chain = search->chain;
    Py_ssize_t place;

    if (depth == chain->before)
        return complete(search);
    place = chain->elements[depth];
    for (Py_ssize_t at = 0; at < search->lengths[place]; at++) {
        const Held *one = search->columns[place][at];
        if (depth > 0 && search->chosen[depth - 1]->end >= one->start)
            continue;
        search->chosen[depth] = one;
        if (!choose(search, depth + 1))
            return 0;
    }
    return 1;
}

/* The earliest that can begin, then the earliest that follows, and so on; 0 with an error. */
static int
choose_first(Search *search)
{
    const Chain *chain = search->chain;
    int64_t before = search->last.end - chain->within - 1;
    Py_ssize_t filled = 0;

    for (Py_ssize_t at = search->count - 1; at >= 0 && filled < chain->before; at--) {
        const Held *one = &search->held[at];
        if (one->place != filled || one->start <= before)
            continue;
        search->chosen[filled++] = one;
        before = one->end;
    }
    return filled < chain->before || search->last.start <= before || complete(search);
}

/* Look through what was gathered; 0 with an error. */
static int
look_through(Search *search)
{
    int done;

    for (Py_ssize_t at = search->count - 1; at >= 0; at--) {
        Held *held = &search->held[at];
        Py_INCREF(held->event); /* where tuples are made garbage may be collected */
        search->columns[held->place][search->lengths[held->place]++] = held;
    }
    done = search->chain->first ? choose_first(search) : choose(search, 0);
    for (Py_ssize_t at = 0; at < search->count; at++)
        Py_DECREF(search->held[at].event);
    return done;
}

/* chain(entries, event): the occurrences that the event completes. */
static PyObject *
chain_call(PyObject *object, PyObject *const *args, size_t count, PyObject *names)
{
    const Chain *chain = (Chain *)object;
    Search search;
    int known;

    if (PyVectorcall_NARGS(count) != 2 || names != NULL) {
        PyErr_SetString(PyExc_TypeError, "a chain takes entries and what completes it");
        return NULL;
    }
    search.chain = chain;
    search.count = 0;
    memset(search.lengths, 0, sizeof(search.lengths));
    search.made = PyList_New(0); /* first, as that may run what collects garbage */
    if (search.made == NULL)
        return NULL;
    known = PyList_CheckExact(args[0]) && read_held(args[1], &search.last)
            && gather(&search, args[0], chain->first ? INT64_MAX : search.last.start);
    if (known && look_through(&search))
        return search.made;
    Py_DECREF(search.made);
    return PyErr_Occurred() ? NULL : PyObject_Vectorcall(chain->slow, args, 2, NULL);
}

static void
chain_dealloc(PyObject *object)
{
    Py_XDECREF(((Chain *)object)->slow);
    Py_TYPE(object)->tp_free(object);
}

/* Whether a place is among those that bits tell of. */
static inline int
is_among(unsigned places, Py_ssize_t place)
{
    return place >= 0 && place < PLACES_MAX && (places >> place & 1) != 0;
}

static int
take_list(Chain *self, PyObject *list, unsigned elements, unsigned *rest)
{
    List *taken = &self->lists[self->listed];

    if (!PyArg_ParseTuple(list, "nnnp", &taken->place, &taken->after, &taken->until,
                          &taken->optional))
        return 0;
    if (!is_among(*rest, taken->place) || !is_among(elements, taken->after)
        || !is_among(elements, taken->until))
        return 0;
    *rest &= ~(1u << taken->place);
    self->listed++;
    return 1;
}

/* Take over the places; 0 where there are too many, or none such, with or without an error. */
static int
take_places(Chain *self, PyObject *elements, PyObject *lists)
{
    Py_ssize_t count = PyTuple_GET_SIZE(elements);
    unsigned rest, taken = 0;

    if (self->size > PLACES_MAX || count < 2 || self->within < 0 || self->within >= (1LL << 62))
        return 0;
    rest = (1u << self->size) - 1;
    for (Py_ssize_t at = 0; at < count; at++) {
        self->elements[at] = PyLong_AsSsize_t(PyTuple_GET_ITEM(elements, at));
        if (!is_among(rest, self->elements[at]))
            return 0;
        rest &= ~(1u << self->elements[at]);
        taken |= 1u << self->elements[at];
    }
    self->before = count - 1;
    for (Py_ssize_t at = 0; at < PyTuple_GET_SIZE(lists); at++) {
        if (!PyTuple_Check(PyTuple_GET_ITEM(lists, at))
            || !take_list(self, PyTuple_GET_ITEM(lists, at), taken, &rest))
            return 0;
    }
    return rest == 0;
}

/* Chain(within_ms, elements, lists, first, slow): places of elements; (place, the element's before it,
 * the element's after it, whether it may be empty) of each list. */
static PyObject *
chain_new(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(named))
{
    PyObject *elements, *lists, *slow;
    Chain *self = (Chain *)type->tp_alloc(type, 0);

    if (self == NULL)
        return NULL;
    if (!PyArg_ParseTuple(args, "LO!O!pO", &self->within, &PyTuple_Type, &elements, &PyTuple_Type,
                          &lists, &self->first, &slow)) {
        Py_DECREF(self);
        return NULL;
    }
    self->size = PyTuple_GET_SIZE(elements) + PyTuple_GET_SIZE(lists);
    if (!take_places(self, elements, lists)) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_ValueError, "a chain has 2 to 16 places, each once, and a time");
        Py_DECREF(self);
        return NULL;
    }
    self->call = chain_call;
    self->slow = Py_NewRef(slow);
    return (PyObject *)self;
}

static PyTypeObject chain_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "broker.engine.native._passes.Chain",
    .tp_basicsize = sizeof(Chain),
    .tp_dealloc = chain_dealloc,
    .tp_vectorcall_offset = offsetof(Chain, call),
    .tp_call = PyVectorcall_Call,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_doc = "Finds the chains that an event completes among what waits.",
    .tp_new = chain_new,
};

int
add_chain(PyObject *module)
{
    return PyModule_AddType(module, &chain_type);
}
