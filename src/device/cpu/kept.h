/* kept.h: constants in the form that a kernel wants, made once, when a kernel runs: it then reads
 * what was written just before, and what never runs is never made.
 *
 * The first run may not be followed by another. Large forms it makes in its workspace, memory that
 * one instruction after the other uses; only the second run takes fresh memory, which costs more
 * than the making, and keeps what it makes there.
 *
 * What is kept is shared: programs for other batch sizes, and nodes that use the same constant, get
 * the same memory. It goes with the last plan that holds it. */
#ifndef TUTTI_DEVICE_CPU_KEPT_H
#define TUTTI_DEVICE_CPU_KEPT_H

#include "program/kernel.h"

typedef struct tutti_kept tutti_kept;

/* Writes the form of `source`, with what `context` knows. */
typedef void tutti_kept_fill(const void *context, tutti_pool *pool, tutti_tensor *source,
                             float *to);

/* Takes the form `form` of `source`, room for `floats` of them, 64-byte aligned. `form` says
 * everything that the floats depend on beside the source: layout, instruction set, sizes. The
 * tensor is retained. */
tutti_status tutti__kept_take(tutti_tensor *source, const char *form, int64_t floats,
                              tutti_kept **ret);
void tutti__kept_give(tutti_kept *kept); /* NULL is fine */
/* Bytes of workspace where the first run makes a form of so many floats; 0: it keeps it at once. */
size_t tutti__kept_room(int64_t floats);
/* The floats; `fill` makes them when they are not kept yet. NULL of NULL. Who asks first gets them
 * in `room` (64-byte aligned; NULL: they are kept at once). Threads may ask at the same moment. */
const float *tutti__kept_data(tutti_kept *kept, tutti_kept_fill *fill, const void *context,
                              tutti_pool *pool, float *room);

/* The constant that input i of a node is, dense and of f32, or NULL. */
static inline tutti_tensor *tutti__kept_source(const tutti_kernel_query *query, int i)
{
    tutti_tensor *value = i < 0 || query->node.values == NULL ? NULL : query->node.values[i];
    return value != NULL && tutti_tensor_dtype(value) == TUTTI_F32 &&
                   tutti_tensor_is_contiguous(value)
               ? value
               : NULL;
}

/* How many forms are held by anybody; for tests. */
int tutti__kept_count(void);

#endif
