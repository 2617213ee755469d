/* onnx_fold.c: arithmetic of shapes while the graph is built. Exporters write a shape as a chain of
 * Shape, Gather, Unsqueeze, Concat and the like; here each of its numbers is followed by itself, so
 * that what is known of it stays known although other numbers (the batch) are not. */
#include <string.h>

#include "bridge/onnx_fold.h"

/* Input i when it is such a list already; nothing is built or computed for it. */
static bool peek(tutti_onnx_import *m, int i, tutti_onnx_elements *ret)
{
    const tutti_onnx_known *known = tutti__onnx_input(m, i);
    if (!known || known->sequence || (!known->value && !known->elements))
        return false;
    return tutti__onnx_read_elements(m, i, ret);
}

static bool is(const tutti_onnx_import *m, const char *type)
{
    return strcmp(m->node->type, type) == 0;
}

static bool fold_binary(tutti_onnx_import *m, bool compares, tutti_onnx_elements *ret)
{
    tutti_onnx_elements a, b;
    if (m->node->inputs.count != 2 || !peek(m, 0, &a) || !peek(m, 1, &b) ||
        (a.count != b.count && a.count != 1 && b.count != 1))
        return false;
    ret->rank = a.rank > b.rank ? a.rank : b.rank;
    ret->count = a.count == 1 ? b.count : a.count;
    ret->dtype = compares ? TUTTI_BOOL : a.dtype;
    for (int i = 0; i < ret->count; i++) {
        const tutti_onnx_element *x = &a.items[a.count == 1 ? 0 : i];
        const tutti_onnx_element *y = &b.items[b.count == 1 ? 0 : i];
        if (!(compares ? tutti__onnx_compare(m->node->type, x, y, &ret->items[i])
                       : tutti__onnx_combine(m, m->node->type, x, y, &ret->items[i])))
            return false;
    }
    return compares || a.dtype != TUTTI_BOOL;
}

/* Which of the two orders the input is there in; axis i of the file's is *ret_axis of it. */
static tutti_sym axis_of(tutti_onnx_import *m, int i, int *ret_axis)
{
    const tutti_onnx_known *known = tutti__onnx_input(m, 0);
    tutti_sym sym = known->plain.node || !known->last.node ? tutti__onnx_sym(m, 0) : known->last;
    int rank = sym.node ? tutti_sym_type(sym).rank : 0;
    bool last = known->last.node && !known->plain.node && rank > 2;
    *ret_axis = !last || i == 0 ? i : i == 1 ? rank - 1 : i - 1;
    return sym;
}

static int rank_of(tutti_onnx_import *m)
{
    const tutti_onnx_known *known = tutti__onnx_input(m, 0);
    int axis;
    if (!known || known->sequence)
        return -1;
    if (known->value)
        return tutti_tensor_rank(known->value);
    tutti_sym sym = axis_of(m, 0, &axis);
    return sym.node ? tutti_sym_type(sym).rank : -1;
}

static bool fold_shape(tutti_onnx_import *m, tutti_onnx_elements *ret)
{
    int rank = rank_of(m), axis;
    int64_t start = tutti__onnx_attr_int(m, "start", 0), end = tutti__onnx_attr_int(m, "end", rank);
    const tutti_onnx_known *known = tutti__onnx_input(m, 0);
    if (rank < 0)
        return false;
    start += start < 0 ? rank : 0;
    end += end < 0 ? rank : 0;
    start = start < 0 ? 0 : start;
    end = end > rank ? rank : end;
    ret->rank = 1;
    ret->dtype = TUTTI_I64;
    for (int64_t i = start; i < end; i++) {
        tutti_onnx_element *e = &ret->items[ret->count++];
        *e = (tutti_onnx_element){.known = true};
        if (known->value) {
            e->value = tutti_tensor_dims(known->value)[i];
            continue;
        }
        tutti_sym sym = axis_of(m, (int)i, &axis);
        e->value = tutti_sym_type(sym).dims[axis];
        if (e->value < 0)
            *e = (tutti_onnx_element){.sym = tutti_size(sym, axis)};
    }
    return true;
}

static bool fold_gather(tutti_onnx_import *m, tutti_onnx_elements *ret)
{
    tutti_onnx_elements x, at;
    int64_t axis = tutti__onnx_attr_int(m, "axis", 0);
    if (!peek(m, 0, &x) || !peek(m, 1, &at) || x.rank != 1 || (axis != 0 && axis != -1) ||
        !tutti__onnx_all_known(&at))
        return false;
    ret->rank = at.rank;
    ret->count = at.count;
    ret->dtype = x.dtype;
    for (int i = 0; i < at.count; i++) {
        int64_t k = at.items[i].value + (at.items[i].value < 0 ? x.count : 0);
        if (k < 0 || k >= x.count)
            return false;
        ret->items[i] = x.items[k];
    }
    return true;
}

static bool fold_concat(tutti_onnx_import *m, tutti_onnx_elements *ret)
{
    tutti_onnx_elements x;
    ret->rank = 1;
    for (size_t i = 0; i < m->node->inputs.count; i++) {
        if (!peek(m, (int)i, &x) || x.rank != 1 || ret->count + x.count > ONNX_ELEMENTS)
            return false;
        ret->dtype = x.dtype;
        memcpy(ret->items + ret->count, x.items, (size_t)x.count * sizeof *x.items);
        ret->count += x.count;
    }
    return m->node->inputs.count > 0;
}

/* [start:end:step] of a list. */
static bool fold_slice(tutti_onnx_import *m, tutti_onnx_elements *ret)
{
    tutti_onnx_elements x;
    tutti_axes starts, ends, steps = {.count = 1, .values = {1}};
    if (!peek(m, 0, &x) || x.rank != 1)
        return false;
    for (int i = 1; i < 5; i++) {
        tutti_onnx_elements e;
        if (tutti__onnx_has(m, i) && (!peek(m, i, &e) || !tutti__onnx_all_known(&e)))
            return false;
    }
    if (!tutti__onnx_read_axes(m, 1, "starts", &starts) ||
        !tutti__onnx_read_axes(m, 2, "ends", &ends) ||
        (tutti__onnx_has(m, 4) && !tutti__onnx_read_axes(m, 4, "steps", &steps)) ||
        starts.count != 1 || ends.count != 1 || steps.count != 1 || steps.values[0] < 1)
        return false;
    int64_t from = starts.values[0], to = ends.values[0];
    from += from < 0 ? x.count : 0;
    to += to < 0 ? x.count : 0;
    from = from < 0 ? 0 : from;
    to = to > x.count ? x.count : to;
    ret->rank = 1;
    ret->dtype = x.dtype;
    for (int64_t i = from; i < to; i += steps.values[0])
        ret->items[ret->count++] = x.items[i];
    return true;
}

/* Squeeze, Unsqueeze, Reshape, Flatten, Cast, Identity: the same elements. */
static bool fold_same(tutti_onnx_import *m, tutti_onnx_elements *ret)
{
    tutti_onnx_elements shape;
    if (!peek(m, 0, ret))
        return false;
    if (is(m, "Cast")) {
        tutti_dtype to = tutti__onnx_dtype_of(tutti__onnx_attr_int(m, "to", 0));
        bool from_bool = ret->dtype == TUTTI_BOOL;
        ret->dtype = to;
        return to == TUTTI_I64 || (to == TUTTI_I32 && !from_bool) ||
               (to == TUTTI_BOOL && from_bool);
    }
    if (is(m, "Squeeze"))
        return ret->rank == 1 && ret->count == 1 ? (ret->rank = 0, true) : false;
    if (is(m, "Unsqueeze"))
        return ret->rank == 0 ? (ret->rank = 1, true) : false;
    if (!is(m, "Reshape"))
        return true;
    if (!peek(m, 1, &shape) || !tutti__onnx_all_known(&shape) || shape.count > 1)
        return false;
    if (shape.count == 1 && shape.items[0].value != -1 && shape.items[0].value != ret->count)
        return false;
    ret->rank = shape.count;
    return ret->rank == 1 || ret->count == 1;
}

static bool fold_product(tutti_onnx_import *m, tutti_onnx_elements *ret)
{
    tutti_onnx_elements x;
    bool done = true;
    if (!peek(m, 0, &x) || x.rank != 1 || x.count == 0)
        return false;
    ret->rank = tutti__onnx_attr_int(m, "keepdims", 1) != 0;
    ret->count = 1;
    ret->dtype = x.dtype;
    ret->items[0] = x.items[0];
    for (int i = 1; done && i < x.count; i++) {
        tutti_onnx_element before = ret->items[0];
        done = tutti__onnx_combine(m, "Mul", &before, &x.items[i], &ret->items[0]);
    }
    return done;
}

static bool fold_where(tutti_onnx_import *m, tutti_onnx_elements *ret)
{
    tutti_onnx_elements c, a, b;
    if (!peek(m, 0, &c) || !peek(m, 1, &a) || !peek(m, 2, &b) || !tutti__onnx_all_known(&c))
        return false;
    int count = c.count > a.count ? c.count : a.count;
    count = b.count > count ? b.count : count;
    *ret =
        (tutti_onnx_elements){.rank = c.rank || a.rank || b.rank, .count = count, .dtype = a.dtype};
    if ((c.count != count && c.count != 1) || (a.count != count && a.count != 1) ||
        (b.count != count && b.count != 1))
        return false;
    for (int i = 0; i < count; i++)
        ret->items[i] = c.items[c.count == 1 ? 0 : i].value ? a.items[a.count == 1 ? 0 : i]
                                                            : b.items[b.count == 1 ? 0 : i];
    return true;
}

static bool fold_fill(tutti_onnx_import *m, tutti_onnx_elements *ret)
{
    tutti_onnx_elements shape;
    const tutti_onnx_attr *attr = tutti__onnx_attr(m->node, "value", ONNX_TENSOR);
    if (!attr || !attr->tensor || tutti_tensor_dtype(attr->tensor) != TUTTI_I64 ||
        tutti_tensor_count(attr->tensor) != 1 || !peek(m, 0, &shape) || shape.count != 1 ||
        !shape.items[0].known || shape.items[0].value < 0 || shape.items[0].value > ONNX_ELEMENTS)
        return false;
    ret->rank = 1;
    ret->dtype = TUTTI_I64;
    for (ret->count = 0; ret->count < shape.items[0].value; ret->count++)
        ret->items[ret->count] =
            (tutti_onnx_element){.known = true, .value = tutti_tensor_get_int(attr->tensor, 0)};
    return true;
}

static bool fold_size(tutti_onnx_import *m, tutti_onnx_elements *ret)
{
    tutti_onnx_elements dims = {0};
    int64_t all = 1;
    if (!fold_shape(m, &dims) || !tutti__onnx_all_known(&dims))
        return false;
    for (int i = 0; i < dims.count; i++)
        if (!tutti__mul_size(all, dims.items[i].value, &all))
            return false;
    *ret = (tutti_onnx_elements){
        .count = 1, .dtype = TUTTI_I64, .items = {{.known = true, .value = all}}};
    return true;
}

static bool fold_not(tutti_onnx_import *m, tutti_onnx_elements *ret)
{
    if (!peek(m, 0, ret) || !tutti__onnx_all_known(ret))
        return false;
    for (int i = 0; i < ret->count; i++)
        ret->items[i].value = !ret->items[i].value;
    return true;
}

static bool fold_arithmetic(tutti_onnx_import *m, tutti_onnx_elements *ret)
{
    return fold_binary(m, false, ret);
}

static bool fold_comparison(tutti_onnx_import *m, tutti_onnx_elements *ret)
{
    return fold_binary(m, true, ret);
}

static const struct {
    const char *type;
    bool (*fold)(tutti_onnx_import *m, tutti_onnx_elements *ret);
} folds[] = {
    {"Shape", fold_shape},
    {"Gather", fold_gather},
    {"Concat", fold_concat},
    {"Slice", fold_slice},
    {"Squeeze", fold_same},
    {"Unsqueeze", fold_same},
    {"Reshape", fold_same},
    {"Cast", fold_same},
    {"Add", fold_arithmetic},
    {"Sub", fold_arithmetic},
    {"Mul", fold_arithmetic},
    {"Div", fold_arithmetic},
    {"Min", fold_arithmetic},
    {"Max", fold_arithmetic},
    {"Equal", fold_comparison},
    {"Less", fold_comparison},
    {"Greater", fold_comparison},
    {"And", fold_comparison},
    {"Or", fold_comparison},
    {"LessOrEqual", fold_comparison},
    {"GreaterOrEqual", fold_comparison},
    {"ReduceProd", fold_product},
    {"Where", fold_where},
    {"ConstantOfShape", fold_fill},
    {"Size", fold_size},
    {"Not", fold_not},
};

/* The whole list as a tensor. */
static tutti_tensor *tensor_of(const tutti_onnx_elements *e)
{
    tutti_tensor *tensor;
    if (tutti_tensor_create(e->dtype, e->rank, (int64_t[]){e->count}, &tensor) != TUTTI_OK)
        return NULL;
    for (int i = 0; i < e->count; i++)
        tutti_tensor_set_int(tensor, i, e->items[i].value);
    return tensor;
}

bool tutti__onnx_fold(tutti_onnx_import *m)
{
    tutti_onnx_elements result = {0};
    size_t i = 0;
    if (m->node->domain[0] && strcmp(m->node->domain, "ai.onnx") != 0)
        return false;
    while (i < TUTTI_COUNT(folds) && !is(m, folds[i].type))
        i++;
    if (i == TUTTI_COUNT(folds) || !folds[i].fold(m, &result) || m->status != TUTTI_OK)
        return m->status != TUTTI_OK;
    if (!tutti__onnx_all_known(&result)) {
        tutti__onnx_made_elements(m, 0, &result);
        tutti_onnx_known *made =
            tutti__onnx_names(m, 0) ? tutti__map_get(&m->known, m->node->outputs.items[0]) : NULL;
        if (made && is(m, "Shape") && result.count == rank_of(m))
            made->shape_of = tutti__onnx_sym(m, 0);
        return true;
    }
    tutti_tensor *tensor = tensor_of(&result);
    if (!tensor)
        tutti__onnx_read_fail(m, TUTTI_NO_MEMORY, "no memory for the model");
    else
        tutti__onnx_made_value(m, 0, tensor);
    return true;
}
