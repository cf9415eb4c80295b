/* The module of the compiled passes.
 *
 * Owns its table of functions, and that whoever asks for Python alone gets it: HEADWATER_PURE_PYTHON
 * is read here, as the core reads no environment. */

#include "passes.h"
#include <stdlib.h>

#ifndef SOURCES
#define SOURCES ""
#endif
#ifndef FILES /* of which SOURCES is the digest, in this order */
#define FILES ""
#endif

static PyMethodDef passes[] = {
    {"readings", (PyCFunction)(void (*)(void))pass_readings, METH_FASTCALL,
     "([event.typed for event in events], the same by class), of events of the class `owner`."},
    {"course", (PyCFunction)(void (*)(void))pass_course, METH_FASTCALL, "See clocks.course."},
    {"tell", (PyCFunction)(void (*)(void))pass_tell, METH_FASTCALL,
     "[result.to_dict() for result in results]."},
    {"give", (PyCFunction)(void (*)(void))pass_give, METH_FASTCALL,
     "Give events to contents by scales; how many nobody wants."},
    {"later", (PyCFunction)(void (*)(void))pass_later, METH_FASTCALL,
     "Of ends and their events those that are greater than a time."},
    {"read_total", (PyCFunction)(void (*)(void))pass_read_total, METH_FASTCALL,
     "How many floats there are in a slot of events, and their exact sum, or None."},
    {"total", pass_total, METH_O, "The exact sum of floats in units of 2 ** -64, or None."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_passes",
    .m_doc = "Passes over batches of events, compiled.",
    .m_size = -1,
    .m_methods = passes,
};

PyMODINIT_FUNC
PyInit__passes(void)
{
    const char *pure = getenv("HEADWATER_PURE_PYTHON");
    PyObject *module;

    if (pure != NULL && pure[0] != '\0' && strcmp(pure, "0") != 0) {
        PyErr_SetString(PyExc_ImportError, "HEADWATER_PURE_PYTHON asks for Python alone");
        return NULL;
    }
    module = PyModule_Create(&definition);
    if (module == NULL)
        return NULL;
    if (add_teller(module) < 0 || add_maker(module) < 0 || add_scale(module) < 0 || add_patience(module) < 0
        || add_ends(module) < 0
        || PyModule_AddStringConstant(module, "SOURCES", SOURCES) < 0
        || PyModule_AddStringConstant(module, "FILES", FILES) < 0) {
        Py_DECREF(module);
        return NULL;
    }
    return module;
}
