/* The ids of results: digests of what is bound.
 *
 * Owns how that is put into bytes. Must not know what else is told of a result. Invariant: the id is
 * that of identity.py, or there is none. */

#include "results.h"

#define PACKED_MAX 4096 /* bytes of what is bound, as msgpack */

/* An event as it is digested; 0 where it is out of the common. */
static int
put_event(Packer *packer, PyObject *event)
{
    const Shape *shape = shape_of(Py_TYPE(event));
    int64_t end;

    if (shape == NULL || !as_whole(in_slot(event, shape->end), &end))
        return 0;
    put_array(packer, 2);
    put_text(packer, in_slot(event, shape->id));
    put_whole(packer, end);
    return 1;
}

/* The same of all that is bound at a place. */
static int
put_member(const Teller *self, Packer *packer, PyObject *member)
{
    if (!is_list(self, member)) {
        put_array(packer, 1);
        return put_event(packer, member);
    }
    put_array(packer, (size_t)PyTuple_GET_SIZE(member));
    for (Py_ssize_t at = 0; at < PyTuple_GET_SIZE(member); at++) {
        if (!put_event(packer, PyTuple_GET_ITEM(member, at)))
            return 0;
    }
    return 1;
}

PyObject *
id_of(const Teller *self, PyObject *occurrence)
{
    uint8_t bytes[PACKED_MAX];
    Packer packer = {bytes, 0, PACKED_MAX, 0};
    Py_ssize_t places = PyTuple_GET_SIZE(self->names), bound = places;
    const uint8_t *head = self->bytes + self->begun;

    for (Py_ssize_t at = 0; self->several && at < places; at++)
        bound -= bound_at(self, occurrence, at) == Py_None;
    put_bytes(&packer, self->bytes, self->begun);
    put_array(&packer, (size_t)bound);
    for (Py_ssize_t at = 0; at < places; at++) {
        PyObject *member = bound_at(self, occurrence, at);
        uint32_t length;

        if (member == NULL)
            return NULL;
        memcpy(&length, head, sizeof(length));
        head += sizeof(length);
        if (!is_empty(self, member)) {
            put_bytes(&packer, head, length);
            if (!put_member(self, &packer, member))
                return NULL;
        }
        head += length;
    }
    return packer.full ? NULL : digits_of(packer.bytes, packer.length);
}
