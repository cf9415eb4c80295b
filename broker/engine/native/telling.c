/* The results of a batch, told one after the other.
 *
 * Owns no state. Must not know what is told of a result. Invariant: the list is
 * that of what each says of itself, and collecting garbage is left as it was. */

#include "results.h"

/* What one result says of itself, of whatever kind. */
static PyObject *
told_by_itself(PyObject *result)
{
    static PyObject *name;

    if (name == NULL && (name = PyUnicode_InternFromString("to_dict")) == NULL)
        return NULL;
    return PyObject_CallMethodNoArgs(result, name);
}

/* What was known of the template that came last. */
typedef struct {
    PyTypeObject *kind;          /* of results */
    Py_ssize_t slot;             /* in which they keep their template */
    PyObject *template, *teller; /* owned; the teller is NULL where Python tells */
    PyObject *plain;
    Known known;
} Telling;

/* The teller of a result, borrowed; NULL where Python tells. */
static const Teller *
teller_of(Telling *telling, PyObject *result)
{
    PyObject *template = Py_IS_TYPE(result, telling->kind) ? in_slot(result, telling->slot) : NULL;
    PyObject *teller;
    Py_ssize_t slot;

    if (template == NULL)
        return NULL;
    if (template != telling->template) {
        slot = slot_in(&telling->known, template, telling->plain);
        teller = slot == NO_SLOT ? NULL : in_slot(template, slot);
        Py_XSETREF(telling->template, Py_NewRef(template));
        Py_XSETREF(telling->teller, teller && Py_IS_TYPE(teller, &teller_type)
                                        ? Py_NewRef(teller) : NULL);
    }
    return (Teller *)telling->teller;
}

/* As Python tells it, who may collect garbage meanwhile, and may say whether that goes on. */
static PyObject *
told_slowly(const Teller *teller, PyObject *result, int *collects)
{
    PyObject *told;

    if (*collects)
        PyGC_Enable();
    told = teller ? PyObject_CallOneArg(teller->slow, result) : told_by_itself(result);
    *collects = PyGC_Disable();
    return told;
}

/* tell(results, kind): [result.to_dict() for result in results].
 *
 * Of what is made here nothing can be garbage before all is made, so nothing is collected meanwhile:
 * that would go over the same dictionaries many times. */
PyObject *
pass_tell(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count)
{
    Telling telling = {0};
    PyObject *found;
    int collects;

    if (count != 2 || !PyList_CheckExact(args[0]) || !PyType_Check(args[1]))
        Py_RETURN_NONE;
    telling.kind = (PyTypeObject *)args[1];
    telling.slot = slot_of(telling.kind, "template");
    telling.plain = PyUnicode_InternFromString("plain");
    if (telling.slot == NO_SLOT || telling.plain == NULL) {
        Py_XDECREF(telling.plain);
        Py_RETURN_NONE;
    }
    found = PyList_New(0);
    collects = PyGC_Disable();
    for (Py_ssize_t at = 0; found != NULL && at < PyList_GET_SIZE(args[0]); at++) {
        PyObject *result = Py_NewRef(PyList_GET_ITEM(args[0], at)), *told;
        const Teller *teller = teller_of(&telling, result);

        told = teller ? told_of(teller, result) : NULL;
        if (told == NULL && !PyErr_Occurred())
            told = told_slowly(teller, result, &collects);
        Py_DECREF(result);
        if (told == NULL || PyList_Append(found, told) < 0)
            Py_CLEAR(found);
        Py_XDECREF(told);
    }
    if (collects)
        PyGC_Enable();
    Py_XDECREF(telling.template);
    Py_XDECREF(telling.teller);
    Py_DECREF(telling.plain);
    return found;
}
