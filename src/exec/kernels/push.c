/* push.c: leaves a gradient with the run, which gives it to the servers at its end. */
#include "exec/kernels/host.h"
#include "exec/plan/server_variables.h"
#include "tensor/dtype.h"

static tutti_status rows_of(const tutti_kernel_call *call, int index, tutti_tensor **ret)
{
    tutti_tensor *given, *made;
    TUTTI_TRY(tutti__copy_input(call, index, &given));
    int64_t count = tutti_tensor_count(given);
    tutti_status status = tutti_tensor_create(TUTTI_I64, 1, &count, &made);
    for (int64_t i = 0; status == TUTTI_OK && i < count; i++)
        ((int64_t *)tutti_tensor_data(made))[i] = tutti_tensor_get_int(given, i);
    tutti_tensor_release(given);
    if (status == TUTTI_OK)
        *ret = made;
    return status;
}

static tutti_status push_run(const tutti_kernel_call *call)
{
    tutti_server_run *servers = tutti__context(call)->run->servers;
    int64_t number = tutti__call_int(call, "number");
    if (!servers || number >= servers->count)
        return tutti_fail(TUTTI_INTERNAL, "push '%s': the run has no such variable", call->name);
    tutti_server_gradient *to = &servers->gradients[number];
    int at = 0;
    bool apply = true;
    tutti_tensor *scalar;
    if (call->outputs[0].data)
        *(bool *)call->outputs[0].data = apply;
    if (atomic_exchange(&to->there, true))
        return TUTTI_OK; /* another device of this process has it */
    if (tutti__call_int(call, "rows"))
        TUTTI_TRY(rows_of(call, at++, &to->rows));
    TUTTI_TRY(tutti__copy_input(call, at++, &to->gradient));
    to->rate = 1;
    if (tutti__call_int(call, "rate")) {
        TUTTI_TRY(tutti__copy_input(call, at++, &scalar));
        to->rate = tutti_tensor_get(scalar, 0);
        tutti_tensor_release(scalar);
    }
    if (tutti__call_int(call, "apply")) {
        TUTTI_TRY(tutti__copy_input(call, at++, &scalar));
        apply = tutti_tensor_get(scalar, 0) != 0;
        tutti_tensor_release(scalar);
    }
    if (!apply) {
        tutti_tensor_release(to->gradient);
        tutti_tensor_release(to->rows);
        to->gradient = to->rows = NULL;
    }
    if (call->outputs[0].data)
        *(bool *)call->outputs[0].data = apply;
    return TUTTI_OK;
}

const tutti_kernel tutti_kernel_push = {
    .name = "push.servers",
    .version = 1,
    .op = "push",
    .target = "cpu",
    .isa = "base",
    .flags = TUTTI_KERNEL_HOST | TUTTI_KERNEL_ROW_INVARIANT,
    .score = tutti__host_score,
    .run = push_run,
};
