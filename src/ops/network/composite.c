/* composite.c: short ways to write gradient rules and builders made of several nodes; see
 * network.h. */
#include "ops/network/network.h"

void tutti__options_copy(void *options, size_t size, const void *arg)
{
    size_t given_size = 0;
    memset(options, 0, size);
    if (arg != NULL)
        memcpy(&given_size, arg, sizeof given_size);
    memcpy(options, arg == NULL ? options : arg, given_size < size ? given_size : size);
}

void tutti__accumulate(tutti_sym *sum, tutti_sym term)
{
    *sum = tutti_sym_ok(*sum) ? tutti_add(*sum, term) : term;
}

tutti_sym tutti__mean_keeping(tutti_sym x, int axis)
{
    return tutti_mean(x, .axes = TUTTI_AXES(axis), .keepdims = true);
}

tutti_sym tutti__sum_keeping(tutti_sym x, int axis)
{
    return tutti_sum(x, .axes = TUTTI_AXES(axis), .keepdims = true);
}

/* All axes but the last; a vector has none, and no list of axes would mean all of them. */
static tutti_axes leading(tutti_sym x)
{
    tutti_axes axes = {0};
    int rank = tutti_sym_ok(x) ? tutti_sym_type(x).rank : 0;
    while (axes.count < rank - 1) {
        axes.values[axes.count] = axes.count;
        axes.count++;
    }
    return axes;
}

tutti_sym tutti__sum_leading(tutti_sym x)
{
    tutti_axes axes = leading(x);
    return axes.count == 0 ? x : tutti_sum(x, .axes = axes);
}

tutti_sym tutti__mean_leading(tutti_sym x)
{
    tutti_axes axes = leading(x);
    return axes.count == 0 ? x : tutti_mean(x, .axes = axes);
}
