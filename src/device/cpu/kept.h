/* kept.h: constants in the form that a kernel wants, made once when a program is compiled.
 *
 * What is kept is shared: programs for other batch sizes, and nodes that use the same constant, get
 * the same memory. It goes with the last plan that holds it. */
#ifndef TUTTI_DEVICE_CPU_KEPT_H
#define TUTTI_DEVICE_CPU_KEPT_H

#include "program/kernel.h"

typedef struct tutti_kept tutti_kept;

/* Writes the form of a constant, from `context`, which need not live longer than the call. */
typedef void tutti_kept_fill(void *context, float *to);

/* Takes the form `form` of `source`, `floats` long and 64-byte aligned; `fill` makes it when nobody
 * holds it yet. `form` says everything that the floats depend on beside the source: layout,
 * instruction set, sizes. The tensor is retained. */
tutti_status tutti__kept_take(tutti_tensor *source, const char *form, int64_t floats,
                              tutti_kept_fill *fill, void *context, tutti_kept **ret);
void tutti__kept_give(tutti_kept *kept); /* NULL is fine */
/* NULL of NULL. */
const float *tutti__kept_data(const tutti_kept *kept);

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
