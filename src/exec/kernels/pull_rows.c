/* pull_rows.c: rows of a variable, asked for while the run goes on: their numbers may be computed.
 * A variable that no server has yet gives its rows from here. */
#include <string.h>

#include "exec/kernels/host.h"
#include "exec/plan/server_variables.h"
#include "parallel/strategies/strategy.h"
#include "tutti/data.h"

static tutti_status flat_indices(const tutti_kernel_call *call, tutti_tensor **ret)
{
    tutti_tensor *given, *made = NULL;
    TUTTI_TRY(tutti__copy_input(call, 0, &given));
    int64_t count = tutti_tensor_count(given);
    tutti_status status = tutti_tensor_create(TUTTI_I64, 1, &count, &made);
    for (int64_t i = 0; status == TUTTI_OK && i < count; i++)
        ((int64_t *)tutti_tensor_data(made))[i] = tutti_tensor_get_int(given, i);
    tutti_tensor_release(given);
    if (status == TUTTI_OK)
        *ret = made;
    return status;
}

static tutti_status rows_here(tutti_tensor *value, tutti_tensor *indices, tutti_tensor **ret)
{
    int64_t count = tutti_tensor_count(indices), rows = tutti_tensor_dims(value)[0];
    const int64_t *at = tutti_tensor_data(indices);
    for (int64_t i = 0; i < count; i++)
        if (at[i] < 0 || at[i] >= rows)
            return tutti_fail(TUTTI_OUT_OF_RANGE, "index %lld of a variable of %lld rows",
                              (long long)at[i], (long long)rows);
    return tutti_take_rows(value, count, at, ret);
}

static tutti_status pull_rows_run(const tutti_kernel_call *call)
{
    const tutti_server_run *servers = tutti__context(call)->run->servers;
    int64_t number = tutti__call_int(call, "number");
    tutti_tensor *indices, *rows = NULL, *shaped = NULL;
    const tutti_view *y = &call->outputs[0];
    if (!servers || number >= servers->count)
        return tutti_fail(TUTTI_INTERNAL, "pull_rows '%s': the run has no such variable",
                          call->name);
    TUTTI_TRY(flat_indices(call, &indices));
    tutti_status status = servers->values[number]
                              ? rows_here(servers->values[number], indices, &rows)
                              : tutti__strategy_pull_rows(servers->strategy,
                                                          servers->numbers[number], indices, &rows);
    if (status == TUTTI_OK)
        status = tutti_tensor_reshape(rows, y->rank, y->dims, &shaped);
    if (status == TUTTI_OK)
        status = tutti__fill_output(call, 0, shaped);
    tutti_tensor_release(indices);
    tutti_tensor_release(rows);
    tutti_tensor_release(shaped);
    return status;
}

const tutti_kernel tutti_kernel_pull_rows = {
    .name = "pull_rows.servers",
    .version = 1,
    .op = "pull_rows",
    .target = "cpu",
    .isa = "base",
    .flags = TUTTI_KERNEL_HOST | TUTTI_KERNEL_TENSORS | TUTTI_KERNEL_ROW_INVARIANT,
    .score = tutti__host_score,
    .run = pull_rows_run,
};
