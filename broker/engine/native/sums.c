/* Exact sums of floats that fit one unit.
 *
 * Owns no state. Must not know units other than that with which totals begin. Invariant: the sum is
 * exact, or there is none. */

#include "passes.h"
#include <math.h>

#define UNIT_BITS 64     /* see exact.UNIT_START */
#define MAGNITUDE_MAX 48 /* bits before the point, so that no sum leaves 128 bits */
#define VALUES_MAX (1 << 14)

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

/* read_total(events, name): (how many have a float in the slot, their sum as `total` has it); None
 * where it is not to be had so. Those that have None there are passed over. */
PyObject *
pass_read_total(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count)
{
    __int128 total = 0, units = 0;
    Py_ssize_t slot, found = 0;
    PyTypeObject *type;
    PyObject *sum;

    if (count != 2 || !PyList_CheckExact(args[0]) || PyList_GET_SIZE(args[0]) == 0
        || PyList_GET_SIZE(args[0]) > VALUES_MAX || !PyUnicode_CheckExact(args[1]))
        Py_RETURN_NONE;
    type = Py_TYPE(PyList_GET_ITEM(args[0], 0));
    slot = slot_named(type, args[1]);
    if (slot == NO_SLOT)
        Py_RETURN_NONE;
    for (Py_ssize_t at = 0; at < PyList_GET_SIZE(args[0]); at++) {
        PyObject *event = PyList_GET_ITEM(args[0], at);
        PyObject *value = Py_IS_TYPE(event, type) ? in_slot(event, slot) : NULL;
        if (value == Py_None)
            continue;
        if (value == NULL || !in_units(value, &units))
            Py_RETURN_NONE;
        total += units;
        found++;
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
