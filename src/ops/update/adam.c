/* adam.c: the Adam rule, for the dense and the sparse operator. */
#include <math.h>

#include "ops/update/update.h"

tutti_status tutti__need_adam_attrs(const tutti_infer *node)
{
    double beta1 = RULE_FLOAT(node, "beta1"), beta2 = RULE_FLOAT(node, "beta2");
    double epsilon = RULE_FLOAT(node, "epsilon");
    const char *form = RULE_STRING(node, "form");
    if (!(beta1 >= 0 && beta1 < 1 && beta2 >= 0 && beta2 < 1 && epsilon >= 0))
        return RULE_FAIL(
            node, TUTTI_INVALID,
            "beta1 %g and beta2 %g must lie in [0, 1), epsilon %g must not be negative", beta1,
            beta2, epsilon);
    if (strcmp(form, "keras") != 0 && strcmp(form, "torch") != 0)
        return RULE_FAIL(node, TUTTI_INVALID, "form is '%s', needs 'keras' or 'torch'", form);
    return TUTTI_OK;
}

void tutti__adam_attrs(const tutti_adam_options *options, tutti_attr ret_attrs[4])
{
    double epsilon = options->torch_form ? 1e-8 : 1e-7;
    ret_attrs[0] = TUTTI_FLOAT("beta1", options->beta1 != 0 ? options->beta1 : 0.9);
    ret_attrs[1] = TUTTI_FLOAT("beta2", options->beta2 != 0 ? options->beta2 : 0.999);
    ret_attrs[2] = TUTTI_FLOAT("epsilon", options->epsilon != 0 ? options->epsilon : epsilon);
    ret_attrs[3] = TUTTI_STR("form", options->torch_form ? "torch" : "keras");
}

tutti_adam tutti__adam_make(const tutti_call *call, double lr, int64_t step)
{
    tutti_adam adam = {.beta1 = RULE_FLOAT(call, "beta1"),
                       .beta2 = RULE_FLOAT(call, "beta2"),
                       .epsilon = RULE_FLOAT(call, "epsilon"),
                       .rate = lr,
                       .scale1 = 1,
                       .scale2 = 1};
    double t = step > 1 ? (double)step : 1;
    double correction1 = 1 - pow(adam.beta1, t), correction2 = 1 - pow(adam.beta2, t);
    if (strcmp(RULE_STRING(call, "form"), "torch") == 0) {
        adam.scale1 = correction1;
        adam.scale2 = correction2;
    } else {
        adam.rate = lr * sqrt(correction2) / correction1;
    }
    return adam;
}

void tutti__adam_element(const tutti_adam *adam, const tutti_view *variable, const tutti_view *m,
                         const tutti_view *s, int64_t i, double g)
{
    double first = adam->beta1 * tutti_view_get(m, i) + (1 - adam->beta1) * g;
    double second = adam->beta2 * tutti_view_get(s, i) + (1 - adam->beta2) * g * g;
    double move = first / adam->scale1 / (sqrt(second / adam->scale2) + adam->epsilon);
    tutti_view_set(m, i, first);
    tutti_view_set(s, i, second);
    tutti_view_set(variable, i, tutti_view_get(variable, i) - adam->rate * move);
}
