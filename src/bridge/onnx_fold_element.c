/* onnx_fold_element.c: arithmetic of one size: a number, or a scalar of the graph. */
#include <string.h>

#include "bridge/onnx_fold.h"

static tutti_sym symbol_of(tutti_onnx_import *m, const tutti_onnx_element *e)
{
    return e->known ? tutti_scalar(m->graph, TUTTI_I64, (double)e->value) : e->sym;
}

static int64_t compute(const char *type, int64_t a, int64_t b)
{
    switch (type[0] == 'M' ? type[1] : type[0]) {
    case 'A':
        return (int64_t)((uint64_t)a + (uint64_t)b);
    case 'S':
        return (int64_t)((uint64_t)a - (uint64_t)b);
    case 'u':
        return (int64_t)((uint64_t)a * (uint64_t)b);
    case 'i':
        return a < b ? a : b;
    case 'a':
        return a > b ? a : b;
    default:
        return b == -1 ? (int64_t)(0 - (uint64_t)a) : a / b;
    }
}

bool tutti__onnx_combine(tutti_onnx_import *m, const char *type, const tutti_onnx_element *a,
                         const tutti_onnx_element *b, tutti_onnx_element *ret)
{
    bool divides = strcmp(type, "Div") == 0;
    if (divides && b->known && b->value == 0)
        return false;
    if (a->known && b->known) {
        *ret = (tutti_onnx_element){.known = true, .value = compute(type, a->value, b->value)};
        return true;
    }
    bool neutral = (strcmp(type, "Mul") == 0 || divides) ? b->known && b->value == 1
                                                         : b->known && b->value == 0;
    if (neutral && strcmp(type, "Min") != 0 && strcmp(type, "Max") != 0) {
        *ret = *a;
        return true;
    }
    tutti_sym x = symbol_of(m, a), y = symbol_of(m, b), z;
    if (divides)
        z = tutti_cast(tutti_div(tutti_cast(x, TUTTI_F64), tutti_cast(y, TUTTI_F64)), TUTTI_I64);
    else
        z = strcmp(type, "Add") == 0   ? tutti_add(x, y)
            : strcmp(type, "Sub") == 0 ? tutti_sub(x, y)
            : strcmp(type, "Mul") == 0 ? tutti_mul(x, y)
            : strcmp(type, "Min") == 0 ? tutti_minimum(x, y)
                                       : tutti_maximum(x, y);
    *ret = (tutti_onnx_element){.sym = z};
    return z.node != NULL;
}

bool tutti__onnx_compare(const char *type, const tutti_onnx_element *a, const tutti_onnx_element *b,
                         tutti_onnx_element *ret)
{
    bool equal = strcmp(type, "Equal") == 0;
    *ret = (tutti_onnx_element){.known = true};
    if (equal &&
        ((!a->known && b->known && b->value < 0) || (!b->known && a->known && a->value < 0)))
        return true;
    if (!a->known || !b->known)
        return false;
    ret->value = equal                              ? a->value == b->value
                 : strcmp(type, "Less") == 0        ? a->value < b->value
                 : strcmp(type, "Greater") == 0     ? a->value > b->value
                 : strcmp(type, "And") == 0         ? a->value && b->value
                 : strcmp(type, "Or") == 0          ? a->value || b->value
                 : strcmp(type, "LessOrEqual") == 0 ? a->value <= b->value
                                                    : a->value >= b->value;
    return true;
}
