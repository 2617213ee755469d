/* penalty.c: regularizers (terms of the loss) and constraints (applied after an update) by name. */
#include <string.h>

#include "nn/model/layer.h"
#include "ops/build.h"

/* |w^T w - I|^2 over the columns of the last axis. */
static tutti_sym orthogonal_term(tutti_sym w, double factor)
{
    tutti_type type = tutti_sym_type(w);
    int64_t last = type.dims[type.rank - 1];
    tutti_sym flat = tutti_reshape(w, -1, last);
    tutti_sym gram = tutti_matmul(flat, flat, .transpose_a = true);
    tutti_tensor *identity;
    int64_t dims[] = {last, last};
    if (tutti_tensor_create(type.dtype, 2, dims, &identity) != TUTTI_OK)
        return tutti__poison(w.node->graph, TUTTI_NO_MEMORY, "%s", tutti_error_message());
    for (int64_t i = 0; i < last; i++)
        tutti_tensor_set(identity, i * last + i, 1);
    tutti_sym difference = tutti_sub(gram, tutti_constant(w.node->graph, identity));
    tutti_tensor_release(identity);
    return tutti_mul(tutti_sum(tutti_square(difference)), factor);
}

tutti_status tutti__regularizer(const char *text, tutti_sym weight, tutti_sym *ret)
{
    tutti_named_spec spec;
    TUTTI_TRY(tutti__spec_parse(text, &spec));
    TUTTI_TRY(tutti__spec_takes(&spec, "regularizer", strcmp(spec.name, "l1_l2") == 0 ? 2 : 1));
    double first = spec.count > 0 ? spec.values[0] : 0.01;
    double second = spec.count > 1 ? spec.values[1] : 0.01, l1 = 0, l2 = 0;
    if (strcmp(spec.name, "orthogonal") == 0) {
        if (tutti_sym_type(weight).rank < 2)
            return tutti_fail(TUTTI_INVALID, "orthogonal needs a weight of two dimensions");
        *ret = orthogonal_term(tutti_read(weight), first);
        return TUTTI_OK;
    }
    if (strcmp(spec.name, "l1") == 0)
        l1 = first;
    else if (strcmp(spec.name, "l2") == 0)
        l2 = first;
    else if (strcmp(spec.name, "l1_l2") == 0)
        l1 = first, l2 = second;
    else
        return tutti_fail(TUTTI_NOT_FOUND,
                          "there is no regularizer '%s'; there are l1, l2, l1_l2, orthogonal",
                          spec.name);
    tutti_sym w = tutti_read(weight), term = TUTTI_NO_SYM;
    if (l1 != 0)
        term = tutti_mul(tutti_sum(tutti_abs(w)), l1);
    if (l2 != 0) {
        tutti_sym squares = tutti_mul(tutti_sum(tutti_square(w)), l2);
        term = term.node ? tutti_add(term, squares) : squares;
    }
    *ret = term;
    return TUTTI_OK;
}

/* The length of each column: over all axes but the last, kept for broadcasting. */
static tutti_sym column_norm(tutti_sym w)
{
    tutti_type type = tutti_sym_type(w);
    tutti_axes all_but_last = {.count = type.rank > 1 ? type.rank - 1 : type.rank};
    for (int i = 0; i < all_but_last.count; i++)
        all_but_last.values[i] = i;
    return tutti_sqrt(tutti_sum(tutti_square(w), .axes = all_but_last, .keepdims = true));
}

tutti_status tutti__constraint(const char *text, tutti_sym weight, tutti_sym *ret)
{
    tutti_named_spec spec;
    TUTTI_TRY(tutti__spec_parse(text, &spec));
    tutti_sym w = tutti_read(weight);
    if (strcmp(spec.name, "non_negative") == 0) {
        TUTTI_TRY(tutti__spec_takes(&spec, "constraint", 0));
        *ret = tutti_relu(w);
        return TUTTI_OK;
    }
    double low = 0, high = spec.count > 0 ? spec.values[0] : 2;
    if (strcmp(spec.name, "unit_norm") == 0)
        low = high = 1;
    else if (strcmp(spec.name, "min_max_norm") == 0) {
        low = spec.count > 0 ? spec.values[0] : 0;
        high = spec.count > 1 ? spec.values[1] : 1;
    } else if (strcmp(spec.name, "max_norm") != 0)
        return tutti_fail(TUTTI_NOT_FOUND,
                          "there is no constraint '%s'; there are max_norm, min_max_norm, "
                          "unit_norm, non_negative",
                          spec.name);
    int most = strcmp(spec.name, "min_max_norm") == 0 ? 2 : strcmp(spec.name, "max_norm") == 0;
    TUTTI_TRY(tutti__spec_takes(&spec, "constraint", most));
    if (low < 0 || high < low)
        return tutti_fail(TUTTI_INVALID,
                          "constraint '%s' keeps lengths from %g to %g; needs 0 or more, and the "
                          "first not above the second",
                          spec.name, low, high);
    tutti_sym norm = column_norm(w);
    *ret = tutti_mul(w, tutti_div(tutti_clip(norm, low, high), tutti_add(norm, 1e-7)));
    return TUTTI_OK;
}

tutti_sym tutti__constrain(const tutti_constrained *weight, tutti_sym update)
{
    tutti_graph *graph = weight->variable.node->graph;
    tutti_sym value, assign = TUTTI_NO_SYM;
    TUTTI_WITH_CONTROL(graph, update) {
        if (tutti__constraint(weight->constraint, weight->variable, &value) != TUTTI_OK)
            tutti__poison(graph, TUTTI_INVALID, "%s", tutti_error_message());
        else
            assign = tutti_assign(weight->variable, value);
    }
    return assign;
}
