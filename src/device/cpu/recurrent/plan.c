/* plan.c: see plan.h. */
#include "device/cpu/recurrent/plan.h"

#include <stdlib.h>
#include <string.h>

#include "device/cpu/gemm/products.h"
#include "device/cpu/isa.h"
#include "tables/rows_cell.h"

/* Rows of a batch that walk together: few, so that a batch has groups for several threads. */
enum { GROUP = TUTTI_SEQUENCE_SUM_ROWS, HIGH_GROUP = 2 * GROUP, FEW_UNITS = 32 };

const tutti_rows_cell *tutti__rows_cell(const tutti_cell *cell)
{
    const char *isa = tutti__best_isa();
    for (const tutti_rows_cell *const *rows = tutti__rows_cell_table; *rows != NULL; rows++)
        if ((*rows)->cell == cell && strcmp((*rows)->isa, isa) == 0)
            return *rows;
    return NULL;
}

/* Whether the node is of floats and not empty. */
static bool suits(const tutti_kernel_query *query, const tutti_cell *cell)
{
    const tutti_infer *node = &query->node;
    const tutti_type *x = &node->inputs[0];
    for (int i = 0; i < node->input_count; i++)
        if (node->inputs[i].dtype != TUTTI_F32 && !tutti_dtype_is_int(node->inputs[i].dtype))
            return false;
    return x->dtype == TUTTI_F32 && tutti_type_count(x) > 0 &&
           tutti_type_count(&node->inputs[1]) > 0 && tutti__rows_cell(cell) != NULL;
}

/* Whether products of bf16 are expected to pay: below that the gates take most of the time. */
static bool is_enough(const tutti_kernel_query *query)
{
    return query->node.inputs[1].dims[1] >= FEW_UNITS;
}

int tutti__sequence_score(const tutti_kernel_query *query, tutti_sequence_kind kind,
                          const char *isa)
{
    const tutti_infer *node = &query->node;
    bool able = kind.rounded ? tutti__bf16_products(node->attrs, node->attr_count, isa)
                             : strcmp(isa, tutti__best_isa()) == 0;
    if (!able || !suits(query, kind.cell))
        return 0;
    return !kind.rounded ? 100 : is_enough(query) ? 130 : 60;
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

/* The product of a group at each step, with a matrix [k, n]. */
static tutti_rounded_step step_product(const tutti_sequence_plan *p, int64_t n, int64_t k)
{
    return p->rounded ? tutti__rounded_step(p->group, n, k) : (tutti_rounded_step){0};
}

static size_t matrix_floats(const tutti_sequence_plan *p, int64_t n, int64_t k)
{
    return p->rounded ? tutti__rounded_step_matrix_floats(&p->by_step)
                      : (size_t)tutti__gemm_packed_floats(n, k);
}

static void plan_forward(tutti_sequence_plan *p, uint32_t products)
{
    p->project = tutti__gemm_plan(p->steps, p->wide, p->features, products);
    p->by_step = step_product(p, p->wide, p->units);
    p->a = part(p, (size_t)(p->steps * p->wide));
    p->packed = part(p, matrix_floats(p, p->wide, p->units));
    p->gemm = part(p, floats_of(&p->project));
}

/* Floats that hold what is kept of all steps. */
static size_t kept_floats(const tutti_sequence_plan *p, int64_t of_a_step)
{
    size_t count = (size_t)(p->steps * of_a_step);
    return p->rounded ? (count + 1) / 2 : count;
}

static void plan_backward(tutti_sequence_plan *p, uint32_t products)
{
    p->back_x = tutti__gemm_plan(p->steps, p->features, p->wide, products);
    p->back_kernel = tutti__gemm_plan(p->features, p->wide, p->steps, products);
    p->back_recurrent = tutti__gemm_plan(p->units, p->wide, p->steps, products);
    p->back_joint = tutti__gemm_plan(p->features + p->units, p->wide, p->steps, products);
    p->by_step = step_product(p, p->units, p->wide);
    p->joint = p->cell->biases == 1;
    p->apart = !p->joint && p->lengths >= 0;
    p->taken = (p->joint ? p->features : 0) + p->units;
    p->a = part(p, kept_floats(p, p->wide));
    p->b = p->joint ? p->a : part(p, kept_floats(p, p->wide));
    p->before = part(p, kept_floats(p, p->taken));
    p->x = part(p, p->apart ? kept_floats(p, p->features) : 0);
    p->sums = part(p, (size_t)(tutti__sequence_sums(p) * p->cell->biases * p->wide));
    p->joined = part(p, p->joint ? (size_t)(p->taken * p->wide) : 0);
    p->packed = part(p, matrix_floats(p, p->units, p->wide));
    size_t weights = p->joint ? floats_of(&p->back_joint)
                              : most(floats_of(&p->back_kernel), floats_of(&p->back_recurrent));
    p->gemm = part(p, most(floats_of(&p->back_x), weights));
}

/* What a group has for itself: sums of a step or, of rounded ones backward, their da and db; and
 * what its product needs. */
static void plan_slots(tutti_sequence_plan *p, bool backward)
{
    size_t rows = (size_t)(p->group * p->wide);
    if (!p->rounded) {
        p->slot_floats = (size_t)tutti__gemm_scratch_floats(p->group) + rows;
    } else {
        p->groups = part(p, tutti__rounded_step_group_floats(&p->by_step));
        p->slot_floats = (backward ? 2 * rows : 0) + tutti__rounded_step_sum_floats(&p->by_step) +
                         tutti__rounded_step_panel_floats(&p->by_step);
    }
    p->slot_floats = tutti__slot_bytes(p->slot_floats * sizeof(float)) / sizeof(float);
    p->slot = part(p, p->slot_floats * (size_t)tutti__slot_count(p->threads));
}

/* Tiles of bf16 are higher than those of f32, but threads must not be left without a group. */
static int64_t group_of(const tutti_sequence_plan *p)
{
    bool high = p->rounded && (p->batch + HIGH_GROUP - 1) / HIGH_GROUP >= p->threads;
    return high ? HIGH_GROUP : GROUP;
}

static bool plan_plan_of(const tutti_kernel_query *query, tutti_sequence_kind kind,
                         tutti_sequence_plan *ret)
{
    const tutti_infer *node = &query->node;
    const tutti_cell *cell = kind.cell;
    if (!suits(query, cell))
        return false;
    const int64_t *x = node->inputs[0].dims;
    tutti_sequence_plan p = {.rows = tutti__rows_cell(cell),
                             .cell = cell,
                             .lengths = -1,
                             .rounded = kind.rounded,
                             .batch = x[0],
                             .time = x[1],
                             .features = x[2],
                             .units = node->inputs[1].dims[1],
                             .threads = query->threads};
    uint32_t products = kind.rounded ? TUTTI_GEMM_BF16 : TUTTI_GEMM_PLAIN;
    p.reverse = tutti_attr_int(node->attrs, node->attr_count, "reverse") != 0;
    p.wide = cell->gates * p.units;
    p.kept = cell->kept * p.units;
    p.steps = p.batch * p.time;
    p.group = group_of(&p);
    if (kind.backward) {
        p.slots = tutti__rnn_slots(cell, tutti_attr_int(node->attrs, node->attr_count, "grads"),
                                   node->input_count);
        p.lengths = p.slots.lengths;
        plan_backward(&p, products);
    } else {
        p.lengths = node->input_count > cell->states + 4 ? cell->states + 4 : -1;
        plan_forward(&p, products);
    }
    plan_slots(&p, kind.backward);
    *ret = p;
    return true;
}

tutti_status tutti__sequence_prepare(const tutti_kernel_query *query, tutti_sequence_kind kind,
                                     void **ret_plan)
{
    tutti_sequence_plan plan = {0};
    plan_plan_of(query, kind, &plan);
    return tutti__kernel_keep(query, &plan, sizeof plan, ret_plan);
}

size_t tutti__sequence_workspace(const tutti_kernel_query *query, tutti_sequence_kind kind)
{
    tutti_sequence_plan plan;
    return plan_plan_of(query, kind, &plan) ? plan.total * sizeof(float) : 0;
}
