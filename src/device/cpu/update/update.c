/* update.c: what the kernels of all updates do around their loops; see update.h. */
#include <math.h>
#include <string.h>

#include "device/cpu/update/update.h"
#include "program/target.h"

static int64_t pieces_of(int64_t count)
{
    return (count + UPDATE_PIECE - 1) / UPDATE_PIECE;
}

int tutti__update_score(const tutti_kernel_query *query)
{
    const tutti_infer *node = &query->node;
    tutti_update_layout at =
        tutti__update_layout(node->op, node->attrs, node->attr_count, node->input_count);
    for (int i = 0; i <= at.slots; i++)
        if (node->inputs[i].dtype != TUTTI_F32)
            return 0;
    return node->inputs[at.gradient].dtype == TUTTI_F32 ? 100 : 0;
}

static int64_t count_of(const tutti_type *type)
{
    int64_t count = 1;
    for (int i = 0; i < type->rank; i++)
        count *= type->dims[i];
    return count;
}

size_t tutti__update_workspace(const tutti_kernel_query *query)
{
    const tutti_infer *node = &query->node;
    tutti_update_layout at =
        tutti__update_layout(node->op, node->attrs, node->attr_count, node->input_count);
    if (at.indices >= 0)
        return tutti__row_groups_bytes(count_of(&node->inputs[at.indices]));
    return at.rule->measure ? (size_t)pieces_of(count_of(&node->inputs[0])) * 2 * sizeof(double)
                            : 0;
}

/* The norms, pieces in order: the same sum whatever threads computed them. */
static void measure_all(const tutti_kernel_call *call, const tutti_update_rule *rule,
                        tutti_update_work *work, double *numbers,
                        void (*measure)(void *work, int64_t index))
{
    double variable = 0, measured = 0;
    work->sums = call->workspace;
    tutti_parallel(call, pieces_of(work->end), measure, work);
    for (int64_t i = 0; i < pieces_of(work->end); i++) {
        variable += work->sums[2 * i];
        measured += work->sums[2 * i + 1];
    }
    rule->trust(numbers, sqrt(variable), sqrt(measured));
}

static void set_numbers(tutti_update_work *work, const double *numbers)
{
    for (int i = 0; i < TUTTI_UPDATE_NUMBERS; i++)
        work->numbers[i] = (float)numbers[i];
}

static tutti_status run_rows(const tutti_kernel_call *call, const tutti_update_layout *at,
                             tutti_update_work *work, void (*piece)(void *work, int64_t index))
{
    work->row_size = tutti__row_count(&call->inputs[0]);
    TUTTI_TRY(tutti__row_groups_in(call, &call->inputs[at->indices], call->inputs[0].dims[0],
                                   call->workspace, &work->groups));
    if (work->row_size > 0)
        tutti_parallel(call, (work->groups.count + UPDATE_ROW_PIECE - 1) / UPDATE_ROW_PIECE, piece,
                       work);
    return TUTTI_OK;
}

/* What the sum of the gradient lacks yet. */
static const float *addend_of(const tutti_kernel_call *call, const float *gradient)
{
    const tutti_context *context = call->context;
    for (int i = 0; context && i < context->late_count; i++)
        if (context->late[i].own == gradient)
            return context->late[i].other;
    return NULL;
}

tutti_status tutti__update_run(const tutti_kernel_call *call,
                               void (*piece)(void *work, int64_t index),
                               void (*measure)(void *work, int64_t index))
{
    tutti_update_layout at =
        tutti__update_layout(call->op, call->attrs, call->attr_count, call->input_count);
    tutti_update_work work = {.slots = at.slots, .gradient = call->inputs[at.gradient].data};
    double numbers[TUTTI_UPDATE_NUMBERS];
    for (int k = 0; k <= at.slots; k++)
        work.x[k] = call->inputs[k].data;
    tutti__update_part(call->attrs, call->attr_count, tutti_view_count(&call->inputs[0]),
                       &work.first, &work.end);
    if (at.indices < 0)
        work.addend = addend_of(call, work.gradient);
    if (tutti__update_owned(call->attrs, call->attr_count))
        work.echo = call->inputs[at.gradient].data;
    if (work.echo && tutti__update_skipped(call))
        memcpy(work.echo + work.first, work.x[0] + work.first,
               (size_t)(work.end - work.first) * sizeof *work.echo);
    if (!tutti__update_skipped(call)) {
        tutti__update_numbers(call, &at, numbers);
        set_numbers(&work, numbers);
        work.scale = (float)tutti__update_scale(call, &at);
        work.clip = (float)tutti__update_clip(call);
        if (measure) {
            measure_all(call, at.rule, &work, numbers, measure);
            set_numbers(&work, numbers);
        }
        if (at.indices >= 0)
            TUTTI_TRY(run_rows(call, &at, &work, piece));
        else
            tutti_parallel(call, pieces_of(work.end - work.first), piece, &work);
    }
    tutti__view_copy(&call->outputs[0], &call->inputs[0]);
    return TUTTI_OK;
}
