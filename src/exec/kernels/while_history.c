/* while_history.c: a loop that also gives the number of rounds and what its variables were at the
 * start of each. */
#include "base/container.h"
#include "exec/kernels/sub_graph.h"
#include "ops/control/history.h"

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
        if (!TUTTI_VEC_PUSH(&h->kept, values->list[i]))
            return tutti_fail(TUTTI_NO_MEMORY, "no memory for the history of a loop");
        tutti_tensor_retain(values->list[i]);
    }
    h->rounds++;
    return TUTTI_OK;
}

static tutti_status give(const tutti_kernel_call *call, const history *h, int variable,
                         const tutti_values *last)
{
    tutti_tensor *stacked, *shapes;
    int output = h->variables + 1 + variable;
    tutti_status status = tutti__history_stack(h->rounds, h->variables, h->kept.data + variable,
                                               last->list[variable], &stacked, &shapes);
    if (status != TUTTI_OK)
        return tutti__error_prefix(status, "%s '%s'", call->op->name, call->name);
    status = tutti__fill_output(call, output, stacked);
    if (status == TUTTI_OK)
        status = tutti__fill_output(call, output + h->variables, shapes);
    tutti_tensor_release(stacked);
    tutti_tensor_release(shapes);
    return status;
}

static tutti_status while_history_run(const tutti_kernel_call *call)
{
    history h = {.variables = (int)tutti__call_int(call, "loop_count")};
    tutti_values last = {0};
    tutti_status status = tutti__loop_run(call, remember, &h, &last);
    for (int i = 0; status == TUTTI_OK && i < h.variables; i++)
        status = tutti__fill_output(call, i, last.list[i]);
    if (status == TUTTI_OK)
        *(int64_t *)call->outputs[h.variables].data = h.rounds;
    for (int i = 0; status == TUTTI_OK && i < h.variables; i++)
        status = give(call, &h, i, &last);
    for (size_t i = 0; i < h.kept.count; i++)
        tutti_tensor_release(h.kept.data[i]);
    TUTTI_VEC_FREE(&h.kept);
    tutti__values_free(&last);
    return status;
}

const tutti_kernel tutti_kernel_while_history = {
    .name = "while_history.sub_graph",
    .version = 2,
    .op = "while_history",
    .target = "cpu",
    .isa = "base",
    .flags = TUTTI_KERNEL_HOST | TUTTI_KERNEL_ROW_INVARIANT,
    .score = tutti__host_score,
    .run = while_history_run,
};
