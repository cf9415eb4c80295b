/* Exact sums of floats that fit one unit.
 *
 * Owns no state. Must not know units other than that with which totals begin. Invariant: the sum is
 * exact, or there is none. */

#include "passes.h"
#include <math.h>

#define UNIT_BITS 64     /* see exact.UNIT_START */
#define MAGNITUDE_MAX 48 /* bits before the point, so that no sum leaves 128 bits */
#define VALUES_MAX (1 << 14)
#define ROUND 16 /* events of which the values are fetched together */

#ifdef __SIZEOF_INT128__

/* The float in units; 0 where it is none, or too great, or there is something beneath the unit. */
static int
in_units(PyObject *value, __int128 *units)
{
    double fraction;
    int64_t mantissa;
    int exponent, shift;

    if (!PyFloat_CheckExact(value) || !isfinite(PyFloat_AS_DOUBLE(value)))
        return 0;
    fraction = frexp(PyFloat_AS_DOUBLE(value), &exponent);
    if (exponent > MAGNITUDE_MAX)
        return 0;
    mantissa = (int64_t)ldexp(fraction, 53);
    shift = exponent - 53 + UNIT_BITS;
    if (shift >= 0) {
        *units = (__int128)mantissa * ((__int128)1 << shift);
        return 1;
    }
    if (shift < -52)
        return mantissa == 0 ? (*units = 0, 1) : 0;
    *units = mantissa / ((int64_t)1 << -shift);
    return *units * ((int64_t)1 << -shift) == mantissa;
}

static PyObject *
as_integer(__int128 total)
{
    PyObject *high = PyLong_FromLongLong((long long)(total >> 64)), *shift = PyLong_FromLong(64);
    PyObject *low = PyLong_FromUnsignedLongLong((unsigned long long)total);
    PyObject *raised = high && shift ? PyNumber_Lshift(high, shift) : NULL;
    PyObject *found = raised && low ? PyNumber_Add(raised, low) : NULL;

    Py_XDECREF(high);
    Py_XDECREF(shift);
    Py_XDECREF(low);
    Py_XDECREF(raised);
    return found;
}

/* total(values): their sum in units of 2 ** -64; None where it is not to be had so. */
PyObject *
pass_total(PyObject *Py_UNUSED(module), PyObject *values)
{
    __int128 total = 0, units = 0;

    if (!PyList_CheckExact(values) || PyList_GET_SIZE(values) > VALUES_MAX)
        Py_RETURN_NONE;
    for (Py_ssize_t at = 0; at < PyList_GET_SIZE(values); at++) {
        if (!in_units(PyList_GET_ITEM(values, at), &units))
            Py_RETURN_NONE;
        total += units;
    }
    return as_integer(total);
}

/* Fetch soon what stands in a slot of these; 0 where one has none. */
static int
fetch(PyObject *const *events, Py_ssize_t count, PyTypeObject *type, Py_ssize_t slot)
{
    for (Py_ssize_t at = 0; at < count; at++) {
        if (!Py_IS_TYPE(events[at], type) || in_slot(events[at], slot) == NULL)
            return 0;
        SOON(in_slot(events[at], slot));
    }
    return 1;
}

/* read_total(events, name): (how many have a float in the slot, their sum as `total` has it); None
 * where it is not to be had so. Those that have None there are passed over. */
PyObject *
pass_read_total(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count)
{
    __int128 total = 0, units = 0;
    PyObject **events, *sum;
    Py_ssize_t left, slot, found = 0;
    PyTypeObject *type;

    if (count != 2 || !PyList_CheckExact(args[0]) || PyList_GET_SIZE(args[0]) == 0
        || PyList_GET_SIZE(args[0]) > VALUES_MAX || !PyUnicode_CheckExact(args[1]))
        Py_RETURN_NONE;
    type = Py_TYPE(PyList_GET_ITEM(args[0], 0));
    slot = slot_named(type, args[1]);
    if (slot == NO_SLOT)
        Py_RETURN_NONE;
    events = ((PyListObject *)args[0])->ob_item;
    left = PyList_GET_SIZE(args[0]);
    for (; left > 0; left -= ROUND, events += ROUND) {
        Py_ssize_t some = Py_MIN(ROUND, left);

        for (Py_ssize_t next = ROUND; next < Py_MIN(2 * ROUND, left); next++)
            SOON(events[next]);
        if (!fetch(events, some, type, slot))
            Py_RETURN_NONE;
        for (Py_ssize_t at = 0; at < some; at++) {
            PyObject *value = in_slot(events[at], slot);
            if (value == Py_None)
                continue;
            if (!in_units(value, &units))
                Py_RETURN_NONE;
            total += units;
            found++;
        }
    }
    sum = as_integer(total);
    return sum == NULL ? NULL : Py_BuildValue("nN", found, sum);
}

#else /* a small machine: Python adds */

PyObject *
pass_total(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(values))
{
    Py_RETURN_NONE;
}

PyObject *
pass_read_total(PyObject *Py_UNUSED(module), PyObject *const *Py_UNUSED(args),
                Py_ssize_t Py_UNUSED(count))
{
    Py_RETURN_NONE;
}

#endif
