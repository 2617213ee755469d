/* plan.c: see plan.h. */
#include "device/cpu/recurrent/plan.h"

#include <stdlib.h>
#include <string.h>

#include "device/cpu/isa.h"
#include "tables/rows_cell.h"

/* Rows of a batch that walk together: few, so that a batch has groups for several threads. */
enum { GROUP = 8 };

const tutti_rows_cell *tutti__rows_cell(const tutti_cell *cell)
{
    const char *isa = tutti__best_isa();
    for (const tutti_rows_cell *const *rows = tutti__rows_cell_table; *rows != NULL; rows++)
        if ((*rows)->cell == cell && strcmp((*rows)->isa, isa) == 0)
            return *rows;
    return NULL;
}

bool tutti__sequence_suits(const tutti_kernel_query *query, const tutti_cell *cell)
{
    const tutti_infer *node = &query->node;
    const tutti_type *x = &node->inputs[0];
    for (int i = 0; i < node->input_count; i++)
        if (node->inputs[i].dtype != TUTTI_F32 && !tutti_dtype_is_int(node->inputs[i].dtype))
            return false;
    return x->dtype == TUTTI_F32 && tutti_type_count(x) > 0 &&
           tutti_type_count(&node->inputs[1]) > 0 && tutti__rows_cell(cell) != NULL;
}

static size_t part(tutti_sequence_plan *p, size_t floats)
{
    size_t at = p->total;
    p->total += (floats + 15) / 16 * 16;
    return at;
}

static size_t floats_of(const tutti_gemm_plan *plan)
{
    return tutti__gemm_workspace(plan) / sizeof(float);
}

static size_t most(size_t a, size_t b)
{
    return a > b ? a : b;
}

static void plan_forward(tutti_sequence_plan *p)
{
    p->project = tutti__gemm_plan(p->steps, p->wide, p->features, TUTTI_GEMM_PLAIN);
    p->a = part(p, (size_t)(p->steps * p->wide));
    p->packed = part(p, (size_t)tutti__gemm_packed_floats(p->wide, p->units));
    p->gemm = part(p, floats_of(&p->project));
}

static void plan_backward(tutti_sequence_plan *p)
{
    p->back_x = tutti__gemm_plan(p->steps, p->features, p->wide, TUTTI_GEMM_PLAIN);
    p->back_kernel = tutti__gemm_plan(p->features, p->wide, p->steps, TUTTI_GEMM_PLAIN);
    p->back_recurrent = tutti__gemm_plan(p->units, p->wide, p->steps, TUTTI_GEMM_PLAIN);
    p->back_joint = tutti__gemm_plan(p->features + p->units, p->wide, p->steps, TUTTI_GEMM_PLAIN);
    p->joint = p->cell->biases == 1;
    p->taken = (p->joint ? p->features : 0) + p->units;
    p->a = part(p, (size_t)(p->steps * p->wide));
    p->b = p->joint ? p->a : part(p, (size_t)(p->steps * p->wide));
    p->before = part(p, (size_t)(p->steps * p->taken));
    p->sums = part(p, (size_t)(tutti__sequence_groups(p) * p->cell->biases * p->wide));
    p->joined = part(p, p->joint ? (size_t)(p->taken * p->wide) : 0);
    p->packed = part(p, (size_t)tutti__gemm_packed_floats(p->units, p->wide));
    size_t weights = p->joint ? floats_of(&p->back_joint)
                              : most(floats_of(&p->back_kernel), floats_of(&p->back_recurrent));
    p->gemm = part(p, most(floats_of(&p->back_x), weights));
}

bool tutti__sequence_plan(const tutti_kernel_query *query, const tutti_cell *cell, bool backward,
                          tutti_sequence_plan *ret)
{
    const tutti_infer *node = &query->node;
    if (!tutti__sequence_suits(query, cell))
        return false;
    const int64_t *x = node->inputs[0].dims;
    tutti_sequence_plan p = {.rows = tutti__rows_cell(cell),
                             .cell = cell,
                             .lengths = -1,
                             .batch = x[0],
                             .time = x[1],
                             .features = x[2],
                             .units = node->inputs[1].dims[1],
                             .group = GROUP,
                             .threads = query->threads};
    p.reverse = tutti_attr_int(node->attrs, node->attr_count, "reverse") != 0;
    p.wide = cell->gates * p.units;
    p.kept = cell->kept * p.units;
    p.steps = p.batch * p.time;
    if (backward) {
        p.slots = tutti__rnn_slots(cell, tutti_attr_int(node->attrs, node->attr_count, "grads"),
                                   node->input_count);
        p.lengths = p.slots.lengths;
        plan_backward(&p);
    } else {
        p.lengths = node->input_count > cell->states + 4 ? cell->states + 4 : -1;
        plan_forward(&p);
    }
    p.slot_floats = (size_t)(tutti__gemm_scratch_floats(p.group) + p.group * p.wide);
    p.slot_floats = tutti__slot_bytes(p.slot_floats * sizeof(float)) / sizeof(float);
    p.slot = part(&p, p.slot_floats * (size_t)tutti__slot_count(p.threads));
    *ret = p;
    return true;
}

tutti_status tutti__sequence_prepare(const tutti_kernel_query *query, const tutti_cell *cell,
                                     bool backward, void **ret_plan)
{
    tutti_sequence_plan plan = {0};
    tutti__sequence_plan(query, cell, backward, &plan);
    return tutti__kernel_keep(query, &plan, sizeof plan, ret_plan);
}

size_t tutti__sequence_workspace(const tutti_kernel_query *query, const tutti_cell *cell,
                                 bool backward)
{
    tutti_sequence_plan plan;
    return tutti__sequence_plan(query, cell, backward, &plan) ? plan.total * sizeof(float) : 0;
}
