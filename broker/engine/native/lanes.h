/* Ids whose digests are made together. */

#ifndef HEADWATER_LANES_H
#define HEADWATER_LANES_H

#include "digest.h"

#define LANES 8
#define BLOCKS_MAX 4 /* of what is digested with others */

typedef struct {
    int count;
    int most;                /* of those that are digested in one go: 1, 4 or 8 */
    size_t lengths[LANES];
    PyObject *texts[LANES];  /* owned: where the digits go */
    uint8_t bytes[LANES][BLOCKS_MAX * BLOCK];
} Lanes;

/* None yet, and as many at a time as this processor can, but no more than asked for. */
void begin_lanes(Lanes *lanes, int most);

/* A text of the digits of a digest, which stand there once the lanes are settled; NULL with an
 * error. */
PyObject *digits_of(Lanes *lanes, const uint8_t *data, size_t length);

/* Write the digits of all that wait. Runs no Python. */
void settle_lanes(Lanes *lanes);

PyObject *pass_digests(PyObject *module, PyObject *const *args, Py_ssize_t count);

#endif
