/* state.h: what the operators of variables, queues, updates, random numbers and control share:
 * checks of types and small kernels. */
#ifndef TUTTI_OPS_STATE_STATE_H
#define TUTTI_OPS_STATE_STATE_H

#include <string.h>

#include "ops/build.h"

/* ---- shape rules ---- */

/* Whether one type may stand for the other: equal element types and ranks, dimensions equal as far
 * as both are known. Handles are not compared. */
bool tutti__types_agree(const tutti_type *a, const tutti_type *b);

/* Attributes "dtype" and "dims" as a type. */
tutti_status tutti__attrs_type(const tutti_infer *node, tutti_type *ret);

/* Input i is a variable's handle, a plain value, a scalar of a type, integers. */
tutti_status tutti__need_variable(const tutti_infer *node, int i);
tutti_status tutti__need_value(const tutti_infer *node, int i);
tutti_status tutti__need_scalar(const tutti_infer *node, int i, tutti_dtype dtype,
                                const char *what);
tutti_status tutti__need_indices(const tutti_infer *node, int i);
/* Input i agrees with `type`; `what` says whose that is: "the variable". */
tutti_status tutti__need_type(const tutti_infer *node, int i, const tutti_type *type,
                              const char *what);
/* `rows` at `indices` of axis 0 of `whole`: rows are [indices..., whole[1:]...]. */
tutti_status tutti__need_rows(const tutti_infer *node, int whole, int indices, int rows);

/* ---- kernels ---- */

/* Output 0 = input 0, byte for byte. */
tutti_status tutti__reference_copy(const tutti_kernel_call *call);
/* Copies a view's elements; the same memory on both sides is fine. */
void tutti__view_copy(const tutti_view *to, const tutti_view *from);
int64_t tutti__view_bytes(const tutti_view *view);
/* Every index lies in [0, limit), or TUTTI_OUT_OF_RANGE with the first that does not. */
tutti_status tutti__check_indices(const tutti_kernel_call *call, const tutti_view *indices,
                                  int64_t limit);
/* Gives output `index` its shape: nothing when memory of that shape is there, else allocates. */
tutti_status tutti__call_shape(const tutti_kernel_call *call, int index, int rank,
                               const int64_t *dims);
/* "f32[2,3] [[1 2 3] [4 5 6]]", at most `limit` elements, then "…". */
void tutti__view_text(const tutti_view *view, int64_t limit, tutti_text *text);

/* Elements of everything but axis 0. */
int64_t tutti__row_count(const tutti_view *view);

/* ---- gradients and splits ---- */

/* The gradient of y = x. */
tutti_status tutti__gradient_pass(tutti_gradient_call *node);
/* Input 0 and output 0 cut along any axis; every other input whole. */
int tutti__split_first(const tutti_infer *node, int capacity, tutti_split *ret);

/* ---- builders ---- */

/* The value: variables are read. For operators that take handles and values. */
tutti_sym tutti__value_of(tutti_sym sym);
/* Scopes of every kind out of force, and again in force: give back what `hide` gave. */
typedef struct tutti_hidden_scopes {
    tutti_scope *data;
    size_t count, capacity;
} tutti_hidden_scopes;
tutti_hidden_scopes tutti__scopes_hide(tutti_graph *graph);
void tutti__scopes_show(tutti_graph *graph, tutti_hidden_scopes hidden);
/* Control scopes only. */
void tutti__controls_hide(tutti_graph *graph);
void tutti__controls_show(tutti_graph *graph);
/* Writes an integer or string attribute of a node just built. */
void tutti__attr_set_int(tutti_node *node, const char *name, int64_t value);
void tutti__attr_set_string(tutti_node *node, const char *name, const char *arena_text);

/* Queues are handles of this type, which no variable may have. */
tutti_type tutti__queue_type(void);
bool tutti__is_queue_type(const tutti_type *type);

#endif
