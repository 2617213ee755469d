/* rule.c: shape rule, reference kernel, cost and splits of every update operator; see rule.h. */
#include "ops/update/rule.h"

#include <math.h>

#include "tables/update_rule.h"

static const tutti_update_rule *rule_of(const tutti_op *op)
{
    for (const tutti_update_rule *const *rule = tutti__update_rule_table; *rule; rule++) {
        size_t length = strlen((*rule)->name);
        if (strncmp(op->name, (*rule)->name, length) == 0 &&
            strncmp(op->name + length, "_update", 7) == 0)
            return *rule;
    }
    return NULL; /* no operator names these functions without a rule: see the test */
}

tutti_update_layout tutti__update_layout(const tutti_op *op, const tutti_attr *attrs,
                                         int attr_count, int input_count)
{
    const tutti_update_rule *rule = rule_of(op);
    const char *end = strstr(op->name, "_update");
    bool rows = strcmp(end, "_update_rows") == 0;
    tutti_update_layout layout = {.rule = rule,
                                  .slots = rule->slot_count ? rule->slot_count(attrs, attr_count)
                                                            : rule->slots};
    int at = 1 + layout.slots;
    layout.indices = rows ? at++ : -1;
    layout.gradient = at++;
    layout.lr = rule->no_rate ? -1 : at++;
    layout.step = rule->counts_steps ? at++ : -1;
    const tutti_attr *scaled = tutti_attr_find(attrs, attr_count, "scaled");
    layout.scale = scaled && scaled->value.i ? at++ : -1;
    layout.apply = input_count > at ? at++ : -1;
    layout.inputs = at;
    return layout;
}

static tutti_update_layout layout_of(const tutti_infer *node)
{
    return tutti__update_layout(node->op, node->attrs, node->attr_count, node->input_count);
}

static bool is_fraction(const tutti_update_rule *rule, const char *name)
{
    for (int i = 0; rule->fractions && rule->fractions[i]; i++)
        if (strcmp(rule->fractions[i], name) == 0)
            return true;
    return false;
}

static tutti_status check_attrs(const tutti_infer *node, const tutti_update_rule *rule)
{
    for (int i = 0; i < node->attr_count; i++) {
        const tutti_attr *attr = &node->attrs[i];
        if (attr->kind != TUTTI_ATTR_FLOAT)
            continue;
        bool fraction = is_fraction(rule, attr->name);
        if (!(attr->value.f >= 0 && isfinite(attr->value.f)) || (fraction && attr->value.f >= 1))
            return RULE_FAIL(node, TUTTI_INVALID, "%s is %g, must %s", attr->name, attr->value.f,
                             fraction ? "lie in [0, 1)" : "be finite and not negative");
    }
    return TUTTI_OK;
}

tutti_status tutti__update_infer(tutti_infer *node)
{
    tutti_update_layout at = layout_of(node);
    if (node->input_count != at.inputs)
        return RULE_FAIL(node, TUTTI_INVALID,
                         "it has %d inputs, with these attributes needs %d: the variable, %d "
                         "slots, %s%s%s%s, and perhaps apply",
                         node->input_count, at.inputs, at.slots,
                         at.indices >= 0 ? "indices, rows" : "the gradient",
                         at.lr >= 0 ? ", lr" : "", at.step >= 0 ? ", step" : "",
                         at.scale >= 0 ? ", scale" : "");
    TUTTI_TRY(tutti__need_float_variable(node, 0));
    for (int i = 1; i <= at.slots; i++)
        TUTTI_TRY(tutti__need_slot(node, i));
    if (at.indices >= 0)
        TUTTI_TRY(tutti__need_rows(node, 0, at.indices, at.gradient));
    else
        TUTTI_TRY(tutti__need_type(node, at.gradient, &node->inputs[0], "the variable"));
    if (at.lr >= 0)
        TUTTI_TRY(tutti__need_scalar(node, at.lr, TUTTI_F32, "lr"));
    if (at.step >= 0)
        TUTTI_TRY(tutti__need_scalar(node, at.step, TUTTI_I64, "step"));
    if (at.scale >= 0)
        TUTTI_TRY(tutti__need_scalar(node, at.scale, TUTTI_F32, "scale"));
    if (at.apply >= 0)
        TUTTI_TRY(tutti__need_scalar(node, at.apply, TUTTI_BOOL, "apply"));
    TUTTI_TRY(check_attrs(node, at.rule));
    return tutti_infer_same(node);
}

bool tutti__update_skipped(const tutti_kernel_call *call)
{
    const tutti_view *last = &call->inputs[call->input_count - 1];
    return last->dtype == TUTTI_BOOL && !tutti_view_get_int(last, 0);
}

double tutti__update_scale(const tutti_kernel_call *call, const tutti_update_layout *layout)
{
    return layout->scale >= 0 ? tutti_view_get(&call->inputs[layout->scale], 0) : 1;
}

double tutti__update_clip(const tutti_kernel_call *call)
{
    const tutti_attr *clip = tutti_attr_find(call->attrs, call->attr_count, "clip");
    return clip && clip->value.f > 0 ? clip->value.f : (double)INFINITY;
}

/* The gradient as the rule sees it; a NaN stays one. */
static double gradient_of(const tutti_kernel_call *call, const tutti_update_layout *at, double g)
{
    double most = tutti__update_clip(call);
    g *= tutti__update_scale(call, at);
    return g > most ? most : g < -most ? -most : g;
}

/* A step below 1 counts as 1: nobody has counted yet. */
void tutti__update_numbers(const tutti_kernel_call *call, const tutti_update_layout *layout,
                           double ret_numbers[TUTTI_UPDATE_NUMBERS])
{
    double lr = layout->lr >= 0 ? tutti_view_get(&call->inputs[layout->lr], 0) : 0, step = 1;
    if (layout->step >= 0 && tutti_view_get_int(&call->inputs[layout->step], 0) > 1)
        step = (double)tutti_view_get_int(&call->inputs[layout->step], 0);
    const tutti_attr *decay = tutti_attr_find(call->attrs, call->attr_count, "weight_decay");
    memset(ret_numbers, 0, TUTTI_UPDATE_NUMBERS * sizeof *ret_numbers);
    ret_numbers[TUTTI_UPDATE_KEEP] = decay ? 1 - lr * decay->value.f : 1;
    layout->rule->numbers(call->attrs, call->attr_count, lr, step, ret_numbers);
}

static void rule_load(const tutti_kernel_call *call, const double *numbers, int slots, int64_t i,
                      double *x)
{
    for (int k = 0; k <= slots; k++)
        x[k] = tutti_view_get(&call->inputs[k], i);
    x[0] *= numbers[TUTTI_UPDATE_KEEP];
}

static void move(const tutti_kernel_call *call, const tutti_update_layout *at,
                 const double *numbers, int64_t i, double g)
{
    double x[1 + TUTTI_UPDATE_SLOTS] = {0};
    rule_load(call, numbers, at->slots, i, x);
    at->rule->element(numbers, gradient_of(call, at, g), x);
    for (int k = 0; k <= at->slots; k++)
        tutti_view_set(&call->inputs[k], i, x[k]);
}

static tutti_status move_rows(const tutti_kernel_call *call, const tutti_update_layout *at,
                              const double *numbers)
{
    const tutti_view *variable = &call->inputs[0], *rows = &call->inputs[at->gradient];
    int64_t size = tutti__row_count(variable);
    tutti_row_groups groups;
    TUTTI_TRY(tutti__row_groups(call, &call->inputs[at->indices], variable->dims[0], &groups));
    for (int64_t r = 0; r < groups.count; r = tutti__row_groups_next(&groups, r))
        for (int64_t column = 0; column < size; column++)
            move(call, at, numbers, groups.index[r] * size + column,
                 tutti__row_groups_sum(&groups, rows, size, r, column));
    tutti__row_groups_free(&groups);
    return TUTTI_OK;
}

static void rule_measure(const tutti_kernel_call *call, const tutti_update_layout *at,
                         double *numbers)
{
    double x[1 + TUTTI_UPDATE_SLOTS] = {0}, variable = 0, measured = 0;
    int64_t count = tutti_view_count(&call->inputs[0]);
    for (int64_t i = 0; i < count; i++) {
        rule_load(call, numbers, at->slots, i, x);
        double g = gradient_of(call, at, tutti_view_get(&call->inputs[at->gradient], i));
        double y = at->rule->measure(numbers, g, x);
        variable += x[0] * x[0];
        measured += y * y;
    }
    at->rule->trust(numbers, sqrt(variable), sqrt(measured));
}

tutti_status tutti__update_reference(const tutti_kernel_call *call)
{
    tutti_update_layout at =
        tutti__update_layout(call->op, call->attrs, call->attr_count, call->input_count);
    double numbers[TUTTI_UPDATE_NUMBERS];
    if (!tutti__update_skipped(call)) {
        tutti__update_numbers(call, &at, numbers);
        if (at.rule->measure)
            rule_measure(call, &at, numbers);
        if (at.indices >= 0)
            TUTTI_TRY(move_rows(call, &at, numbers));
        int64_t count = at.indices < 0 ? tutti_view_count(&call->inputs[0]) : 0;
        for (int64_t i = 0; i < count; i++)
            move(call, &at, numbers, i, tutti_view_get(&call->inputs[at.gradient], i));
    }
    tutti__view_copy(&call->outputs[0], &call->inputs[0]);
    return TUTTI_OK;
}

/* Every slot is read and written; of rows, as many elements as the gradient has. */
void tutti__update_cost(const tutti_infer *node, tutti_cost *ret)
{
    tutti_update_layout at = layout_of(node);
    const tutti_type *gradient = &node->inputs[at.gradient];
    double count = 1, size = (double)tutti_dtype_size(gradient->dtype);
    for (int i = 0; i < gradient->rank; i++)
        count *= gradient->dims[i] >= 0 ? (double)gradient->dims[i] : 1;
    double passes = at.rule->measure ? 2 : 1;
    *ret = (tutti_cost){.flops = count * at.rule->flops * passes,
                        .bytes_read = count * size * (2 + at.slots) * passes,
                        .bytes_written = count * size * (1 + at.slots)};
}

int tutti__update_split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    tutti_update_layout at = layout_of(node);
    int ways = 0, rank = node->inputs[0].rank;
    int shift = at.indices >= 0 ? node->inputs[at.indices].rank - 1 : 0;
    for (int axis = at.indices >= 0 ? 1 : 0; axis < rank; axis++, ways++) {
        if (ways >= capacity)
            continue;
        ret[ways] = (tutti_split){.outputs = {(int8_t)axis}};
        for (int i = 0; i < TUTTI_SPLIT_SLOTS; i++)
            ret[ways].inputs[i] = i <= at.slots ? (int8_t)axis : TUTTI_WHOLE;
        ret[ways].inputs[at.gradient] = (int8_t)(axis + shift);
    }
    return ways;
}
