/* while_history.c: a loop that also gives the number of rounds and the loop variables at the start
 * of each round, stacked along a new axis 0. */
#include <stdlib.h>
#include <string.h>

#include "base/container.h"
#include "exec/kernels/sub_graph.h"

typedef TUTTI_VEC(tutti_tensor *) tensors;
typedef struct history {
    int variables;
    int64_t rounds;
    tensors kept; /* round after round, `variables` each */
} history;

static tutti_status remember(void *context, const tutti_values *values)
{
    history *h = context;
    for (int i = 0; i < h->variables; i++) {
        tutti_tensor *copy;
        TUTTI_TRY(tutti_tensor_from(
            tutti_tensor_dtype(values->list[i]), tutti_tensor_rank(values->list[i]),
            tutti_tensor_dims(values->list[i]), tutti_tensor_data(values->list[i]), &copy));
        if (!TUTTI_VEC_PUSH(&h->kept, copy)) {
            tutti_tensor_release(copy);
            return tutti_fail(TUTTI_NO_MEMORY, "no memory for the history of a loop");
        }
    }
    h->rounds++;
    return TUTTI_OK;
}

/* Values of one variable must keep their shape: they are stacked. With no rounds the shape is the
 * variable's first (and last) value's. */
static tutti_status stack(const tutti_call *call, const history *h, int variable,
                          const tutti_values *last)
{
    int output = h->variables + 1 + variable;
    const tutti_type *type =
        tutti_tensor_type(h->rounds ? h->kept.data[variable] : last->list[variable]);
    int64_t dims[TUTTI_MAX_RANK + 1] = {h->rounds};
    memcpy(dims + 1, type->dims, (size_t)type->rank * sizeof *dims);
    TUTTI_TRY(tutti_call_allocate(call, output, type->rank + 1, dims));
    size_t size = (size_t)tutti_type_count(type) * tutti_dtype_size(type->dtype);
    for (int64_t round = 0; round < h->rounds; round++) {
        tutti_tensor *value = h->kept.data[round * h->variables + variable];
        if (!tutti_type_equal(tutti_tensor_type(value), type))
            return tutti_fail(
                TUTTI_UNSUPPORTED,
                "%s '%s': loop variable %d changes its shape between rounds; such loops have no gradient",
                call->op->name, call->name, variable);
        if (size)
            memcpy((char *)call->outputs[output].data + (size_t)round * size,
                   tutti_tensor_data(value), size);
    }
    return TUTTI_OK;
}

static tutti_status run(const tutti_call *call)
{
    history h = {.variables = (int)tutti__call_int(call, "loop_count")};
    tutti_values last = {0};
    tutti_status status = tutti__loop_run(call, remember, &h, &last);
    for (int i = 0; status == TUTTI_OK && i < h.variables; i++)
        status = tutti__fill_output(call, i, last.list[i]);
    if (status == TUTTI_OK)
        *(int64_t *)call->outputs[h.variables].data = h.rounds;
    for (int i = 0; status == TUTTI_OK && i < h.variables; i++)
        status = stack(call, &h, i, &last);
    for (size_t i = 0; i < h.kept.count; i++)
        tutti_tensor_release(h.kept.data[i]);
    TUTTI_VEC_FREE(&h.kept);
    tutti__values_free(&last);
    return status;
}

const tutti_kernel tutti_kernel_while_history = {
    .name = "while_history.sub_graph",
    .version = 1,
    .op = "while_history",
    .target = "cpu",
    .isa = "base",
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .score = tutti__host_score,
    .run = run,
};
