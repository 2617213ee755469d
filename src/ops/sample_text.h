/* sample_text.h: the text form of samples; for ops/sample.c. */
#ifndef TUTTI_OPS_SAMPLE_TEXT_H
#define TUTTI_OPS_SAMPLE_TEXT_H

#include "graph/graph.h"

/* Reads "&f32[2,3]" at *text and moves *text behind it. */
tutti_status tutti__sample_type(const char **text, tutti_type *ret_type);

/* Reads a type and the values behind it, "f32[2]{=1,2}"; draws them by `seed` when none are given.
 */
tutti_status tutti__sample_tensor(const char **text, uint64_t seed, tutti_type *ret_type,
                                  tutti_tensor **ret_tensor);

/* Reads the attributes behind the bar. Lists, strings and types go into the arena; tensors are new
 * references. At most `capacity` of them. */
tutti_status tutti__sample_attrs(const tutti_op *op, const char *text, uint64_t seed,
                                 tutti_arena *arena, int capacity, tutti_attr *ret_attrs,
                                 int *ret_count);

#endif
