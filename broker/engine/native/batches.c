/* Passes over whole batches: taking readings out and sorting them by class, and the clock's
 * course.
 *
 * Owns no state. Must not know intake or filterer. Invariant: None says that nothing was done. */

#include "passes.h"

#define KINDS 96  /* classes in one batch */
#define PLACES 256 /* of the table that finds them, a power of two */

typedef struct {
    int count;
    PyTypeObject *types[KINDS]; /* borrowed from the events */
    Py_ssize_t counts[KINDS];
    uint8_t places[PLACES]; /* 1 + the number of the class */
} Kinds;

/* The number of a class; -1 where there are too many. */
static inline int
kind_of(Kinds *kinds, PyTypeObject *type)
{
    unsigned place = (unsigned)((uintptr_t)type >> 6) % PLACES;

    for (;; place = (place + 1) % PLACES) {
        int known = kinds->places[place];
        if (known == 0)
            break;
        if (kinds->types[known - 1] == type)
            return known - 1;
    }
    if (kinds->count == KINDS)
        return -1;
    kinds->types[kinds->count] = type;
    kinds->places[place] = (uint8_t)++kinds->count;
    return kinds->count - 1;
}

/* The readings by class, each list in order, from their classes' numbers. */
static PyObject *
by_class(PyObject *typed, const Kinds *kinds, const uint8_t *numbers)
{
    PyObject *lists[KINDS];
    Py_ssize_t filled[KINDS] = {0};
    PyObject *found = PyDict_New();

    if (found == NULL)
        return NULL;
    for (int at = 0; at < kinds->count; at++) {
        lists[at] = PyList_New(kinds->counts[at]);
        if (lists[at] == NULL || PyDict_SetItem(found, (PyObject *)kinds->types[at], lists[at]) < 0) {
            Py_XDECREF(lists[at]);
            Py_DECREF(found);
            return NULL;
        }
        Py_DECREF(lists[at]); /* the dictionary holds it */
    }
    for (Py_ssize_t at = 0; at < PyList_GET_SIZE(typed); at++) {
        int number = numbers[at];
        PyList_SET_ITEM(lists[number], filled[number]++, Py_NewRef(PyList_GET_ITEM(typed, at)));
    }
    return found;
}

/* Take the readings out into `typed`; 0 where one is not to be had. */
static int
take_out(PyObject *events, PyObject *owner, PyObject *typed, Kinds *kinds, uint8_t *numbers)
{
    Py_ssize_t slot = slot_of((PyTypeObject *)owner, "typed");

    if (slot == NO_SLOT)
        return 0;
    for (Py_ssize_t at = 0; at < PyList_GET_SIZE(typed); at++) {
        PyObject *event = PyList_GET_ITEM(events, at);
        PyObject *reading;
        int number;

        if (!Py_IS_TYPE(event, (PyTypeObject *)owner))
            return 0;
        reading = in_slot(event, slot);
        if (reading == NULL || reading == Py_None)
            return 0;
        number = kind_of(kinds, Py_TYPE(reading));
        if (number < 0)
            return 0;
        kinds->counts[number]++;
        numbers[at] = (uint8_t)number;
        PyList_SET_ITEM(typed, at, Py_NewRef(reading));
    }
    return 1;
}

/* readings(events, owner): ([event.typed, …], by class), where all are of the class `owner`. */
PyObject *
pass_readings(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count)
{
    PyObject *typed, *sorted = NULL, *found = NULL;
    uint8_t *numbers;
    Kinds kinds;
    int taken;

    if (count != 2 || !PyList_CheckExact(args[0]) || !PyType_Check(args[1]))
        Py_RETURN_NONE;
    typed = PyList_New(PyList_GET_SIZE(args[0]));
    if (typed == NULL)
        return NULL;
    numbers = PyMem_Malloc((size_t)PyList_GET_SIZE(typed) + 1);
    if (numbers == NULL) {
        Py_DECREF(typed);
        return PyErr_NoMemory();
    }
    memset(&kinds, 0, sizeof(kinds));
    taken = PyList_GET_SIZE(args[0]) == PyList_GET_SIZE(typed)
            && take_out(args[0], args[1], typed, &kinds, numbers);
    if (taken)
        sorted = by_class(typed, &kinds, numbers);
    PyMem_Free(numbers);
    if (sorted != NULL)
        found = PyTuple_Pack(2, typed, sorted);
    Py_XDECREF(sorted);
    Py_DECREF(typed);
    if (!taken)
        Py_RETURN_NONE;
    return found;
}

/* --- the clock -------------------------------------------------------------------------------- */

/* The ends of the events; 0 where one is no plain integer. */
static int
read_ends(PyObject *events, Py_ssize_t count, int64_t *ends)
{
    const Shape *shape = NULL;

    for (Py_ssize_t at = 0; at < count; at++) {
        PyObject *event;
        int whole;

        if (at >= PyList_GET_SIZE(events)) /* garbage has taken it away */
            return 0;
        event = Py_NewRef(PyList_GET_ITEM(events, at)); /* to look at a class may collect garbage */
        if (shape == NULL || shape->type != Py_TYPE(event))
            shape = shape_of(Py_TYPE(event));
        whole = shape != NULL && as_whole(in_slot(event, shape->end), &ends[at]);
        Py_DECREF(event);
        if (!whole)
            return 0;
    }
    return 1;
}

static PyObject *
ends_of(PyObject *events)
{
    int collects = PyGC_Disable(); /* what garbage does when it goes may change the events */
    PyObject *found = PyList_New(PyList_GET_SIZE(events));
    const Shape *shape = NULL;

    if (collects)
        PyGC_Enable();
    if (found == NULL)
        return NULL;
    for (Py_ssize_t at = 0; at < PyList_GET_SIZE(found); at++) {
        PyObject *event = PyList_GET_ITEM(events, at);
        if (shape == NULL || shape->type != Py_TYPE(event))
            shape = shape_of(Py_TYPE(event));
        PyList_SET_ITEM(found, at, Py_NewRef(in_slot(event, shape->end)));
    }
    return found;
}

typedef struct {
    int64_t newest;
    int late, ordered, apart;
} Course;

/* See clocks.course, step by step. */
static Course
follow(const int64_t *ends, Py_ssize_t count, int64_t newest, int64_t passed, int64_t lateness)
{
    Course late = {newest, 1, 0, 0};
    int ordered = ends[0] >= newest, apart = ends[0] > newest && ends[0] > passed;
    int64_t least = ends[0], floor = newest - lateness;

    for (Py_ssize_t at = 1; at < count; at++) {
        ordered &= ends[at - 1] <= ends[at];
        apart &= ends[at - 1] < ends[at];
        if (ends[at] < least)
            least = ends[at];
    }
    if (apart)
        return (Course){ends[count - 1], 0, 1, 1};
    if (least <= passed)
        return late;
    for (Py_ssize_t at = 0; at < count; at++) {
        if (ends[at] > newest) {
            newest = ends[at];
            floor = newest - lateness;
        }
        else if (ends[at] < floor) {
            late.newest = newest;
            return late;
        }
    }
    return (Course){newest, 0, ordered, 0};
}

/* course(events, newest, passed, lateness_ms): (newest, late, ordered, apart, ends).
 * `passed` is None where nothing has been said of it. */
PyObject *
pass_course(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count)
{
    int64_t newest, passed = INT64_MIN, lateness;
    int64_t *ends;
    Py_ssize_t events;
    Course course;
    PyObject *said;

    if (count != 4 || !PyList_CheckExact(args[0]) || PyList_GET_SIZE(args[0]) == 0)
        Py_RETURN_NONE;
    if (!as_whole(args[1], &newest) || !as_whole(args[3], &lateness)
        || (args[2] != Py_None && !as_whole(args[2], &passed)))
        Py_RETURN_NONE;
    events = PyList_GET_SIZE(args[0]);
    ends = PyMem_Malloc(sizeof(int64_t) * (size_t)events);
    if (ends == NULL)
        return PyErr_NoMemory();
    if (!read_ends(args[0], events, ends)) {
        PyMem_Free(ends);
        Py_RETURN_NONE;
    }
    course = follow(ends, events, newest, passed, lateness);
    PyMem_Free(ends);
    said = course.late || course.apart ? Py_NewRef(Py_None) : ends_of(args[0]);
    if (said == NULL)
        return NULL;
    return Py_BuildValue("LOOON", (long long)course.newest, course.late ? Py_True : Py_False,
                         course.ordered ? Py_True : Py_False, course.apart ? Py_True : Py_False,
                         said);
}
