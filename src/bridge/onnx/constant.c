/* constant.c: what enters a graph: weights, constants, values of one number; and what passes
 * through. */
#include "bridge/onnx.h"

#include <string.h>

/* ---- writing ---- */

/* Variables, what reads them, and constants are written where they are used: tutti__onnx_in. */
static void write_nothing(tutti_onnx_export *x)
{
    (void)x;
}

/* One number in a shape that is written already. */
static void write_filled(tutti_onnx_export *x, const char *shape, double number)
{
    int64_t one[1] = {1};
    tutti_tensor *value;
    if (tutti_tensor_create(x->node->types[0].dtype, 1, one, &value) != TUTTI_OK) {
        tutti__onnx_write_fail(x, TUTTI_NO_MEMORY, "no memory for the file");
        return;
    }
    tutti_tensor_set(value, 0, number);
    tutti__onnx_out(x, 0, ONNX(x, "ConstantOfShape", shape));
    tutti__onnx_set_tensor(x, "value", value);
}

static void write_fill(tutti_onnx_export *x)
{
    const tutti_type *type = &x->node->types[0];
    write_filled(x, tutti__onnx_ints(x, type->rank, type->dims), NODE_FLOAT(x, "value"));
}

static void write_fill_dynamic(tutti_onnx_export *x)
{
    write_filled(x, tutti__onnx_in(x, 0), NODE_FLOAT(x, "value"));
}

/* Zeros or ones of the shape of x. */
static void write_like(tutti_onnx_export *x, double number)
{
    write_filled(x, ONNX(x, "Shape", tutti__onnx_in(x, 0)), number);
}

static void write_zeros_like(tutti_onnx_export *x)
{
    write_like(x, 0);
}

static void write_ones_like(tutti_onnx_export *x)
{
    write_like(x, 1);
}

/* The same value: no node. */
static void write_same(tutti_onnx_export *x)
{
    bool first = tutti__onnx_pick(x);
    tutti__onnx_out_as(x, 0, tutti__onnx_in_as(x, 0, first), first);
}

static void write_cast(tutti_onnx_export *x)
{
    bool first = tutti__onnx_pick(x);
    const char *a = tutti__onnx_in_as(x, 0, first);
    tutti__onnx_out_as(x, 0, tutti__onnx_cast(x, a, x->node->types[0].dtype), first);
}

static void write_range(tutti_onnx_export *x)
{
    tutti_dtype dtype = x->node->types[0].dtype;
    const char *start = tutti__onnx_number(x, dtype, NODE_FLOAT(x, "start"));
    const char *limit = tutti__onnx_number(x, dtype, NODE_FLOAT(x, "limit"));
    const char *delta = tutti__onnx_number(x, dtype, NODE_FLOAT(x, "delta"));
    tutti__onnx_out(x, 0, ONNX(x, "Range", start, limit, delta));
}

/* ---- reading ---- */

static tutti_tensor *constant_numbers(tutti_onnx_import *m)
{
    static const char *const names[] = {"value_float", "value_int", "value_floats", "value_ints"};
    const tutti_onnx_attr *attr = NULL;
    static const tutti_onnx_attr_kind kinds[] = {ONNX_FLOAT, ONNX_INT, ONNX_FLOATS, ONNX_INTS};
    size_t kind = 0;
    while (kind < 4 && !(attr = tutti__onnx_attr(m->node, names[kind], kinds[kind])))
        kind++;
    if (!attr)
        return NULL;
    int64_t count[1] = {kind < 2 ? 1
                                 : (int64_t)(kind == 2 ? attr->floats.count : attr->ints.count)};
    tutti_tensor *value = NULL;
    if (tutti_tensor_create(kind % 2 ? TUTTI_I64 : TUTTI_F32, kind < 2 ? 0 : 1, count, &value) !=
        TUTTI_OK)
        return NULL;
    for (int64_t i = 0; i < count[0]; i++)
        if (kind % 2)
            tutti_tensor_set_int(value, i, kind == 1 ? attr->i : attr->ints.items[i]);
        else
            tutti_tensor_set(value, i, (double)(kind == 0 ? attr->f : attr->floats.items[i]));
    return value;
}

static void read_constant(tutti_onnx_import *m)
{
    const tutti_onnx_attr *attr = tutti__onnx_attr(m->node, "value", ONNX_TENSOR);
    if (!attr)
        attr = tutti__onnx_attr(m->node, "sparse_value", ONNX_TENSOR);
    tutti_tensor *value = attr ? tutti_tensor_retain(attr->tensor) : constant_numbers(m);
    if (!value) {
        tutti__onnx_read_fail(m, TUTTI_UNSUPPORTED, "is a kind of constant that is not known");
        return;
    }
    tutti__onnx_made_value(m, 0, value);
    if (attr)
        tutti__onnx_is_of(m, 0, attr->element);
}

/* value[0] in the shape of another tensor. */
static tutti_sym full_like(tutti_sym like, const tutti_tensor *value)
{
    tutti_dtype dtype = value ? tutti_tensor_dtype(value) : TUTTI_F32;
    double number = value ? tutti_tensor_get(value, 0) : 0;
    tutti_sym y = number == 1 ? tutti_ones_like(like) : tutti_zeros_like(like);
    if (tutti_sym_ok(y) && tutti_sym_type(y).dtype != dtype)
        y = tutti_cast(y, dtype);
    return number == 0 || number == 1 ? y : tutti_add(y, number);
}

/* Whether a double holds the number. */
static bool fits_double(const tutti_tensor *value)
{
    int64_t whole = 0;
    if (value && tutti_tensor_dtype(value) == TUTTI_I64 && tutti_tensor_count(value) == 1)
        whole = tutti_tensor_get_int(value, 0);
    return whole >= -((int64_t)1 << 53) && whole <= (int64_t)1 << 53;
}

/* The constant itself in a shape: computed, or that of `like`. */
static tutti_sym spread(tutti_onnx_import *m, tutti_tensor *value, tutti_sym like)
{
    tutti_sym number = tutti_reshape(tutti_constant(m->graph, value));
    return tutti_broadcast_like(number, like);
}

static void read_constant_of_shape(tutti_onnx_import *m)
{
    const tutti_onnx_attr *attr = tutti__onnx_attr(m->node, "value", ONNX_TENSOR);
    tutti_tensor *value = attr ? attr->tensor : NULL;
    const tutti_onnx_known *shape = tutti__onnx_input(m, 0);
    tutti_dtype dtype = value ? tutti_tensor_dtype(value) : TUTTI_F32;
    double number = value ? tutti_tensor_get(value, 0) : 0;
    tutti_onnx_elements list;
    int64_t dims[ONNX_ELEMENTS];
    if (value && tutti_tensor_count(value) != 1)
        tutti__onnx_read_fail(m, TUTTI_CORRUPT, "its value has not one element");
    else if (shape && tutti_sym_ok(shape->shape_of))
        tutti__onnx_made(m, 0,
                         fits_double(value) ? full_like(shape->shape_of, value)
                                            : spread(m, value, shape->shape_of));
    else if (!tutti__onnx_read_elements(m, 0, &list) || list.count > TUTTI_MAX_RANK)
        tutti__onnx_read_fail(m, TUTTI_UNSUPPORTED, "the number of its dimensions is not known");
    else {
        for (int i = 0; i < list.count; i++) {
            dims[i] = list.items[i].known ? list.items[i].value : -1;
            if (list.items[i].known && dims[i] < 0)
                tutti__onnx_read_fail(m, TUTTI_CORRUPT, "size %lld cannot be", (long long)dims[i]);
        }
        if (m->status != TUTTI_OK)
            return;
        bool exact = fits_double(value);
        tutti_dtype kind = exact ? dtype : TUTTI_BOOL;
        tutti_sym y = tutti__onnx_all_known(&list)
                          ? (tutti_fill)(m->graph, kind, exact ? number : 0, list.count, dims)
                          : (tutti_fill_dynamic)(tutti__onnx_elements_sym(m, &list), kind,
                                                 exact ? number : 0, list.count, dims);
        tutti__onnx_made(m, 0, exact ? y : spread(m, value, y));
    }
}

/* The same value under another name. */
static void read_identity(tutti_onnx_import *m)
{
    tutti_onnx_known *known = tutti__onnx_input(m, 0);
    if (!known)
        tutti__onnx_read_fail(m, TUTTI_CORRUPT, "its input is missing");
    tutti__onnx_made_known(m, 0, known);
}

/* Dropout gives its first input when it is not training, and a mask of true. */
static void read_dropout(tutti_onnx_import *m)
{
    double training = 0, ratio = 0.5;
    if (!tutti__onnx_read_number(m, 2, 0, &training) || !tutti__onnx_read_number(m, 1, 0.5, &ratio))
        return;
    if (training != 0 && ratio != 0) {
        tutti__onnx_read_fail(m, TUTTI_UNSUPPORTED, "is in training mode");
        return;
    }
    tutti__onnx_made_known(m, 0, tutti__onnx_input(m, 0));
    if (tutti__onnx_names(m, 1))
        tutti__onnx_made(m, 1,
                         tutti_cast(tutti_ones_like(tutti__onnx_sym(m, 0)),
                                    m->opset < 10 ? TUTTI_F32 : TUTTI_BOOL));
}

/* Texts say numbers. */
static tutti_sym converted(tutti_onnx_import *m, tutti_sym x, tutti_dtype dtype)
{
    tutti_dtype from = tutti_sym_type(x).dtype;
    if (from == dtype)
        return tutti_identity(x);
    if (from == TUTTI_STRING && dtype != TUTTI_BOOL)
        return tutti_string_to_number(x, dtype);
    if (dtype == TUTTI_STRING || from == TUTTI_STRING) {
        tutti__onnx_read_fail(m, TUTTI_UNSUPPORTED, "converts %s to %s", tutti_dtype_name(from),
                              tutti_dtype_name(dtype));
        return TUTTI_NO_SYM;
    }
    return tutti_cast(x, dtype);
}

/* x as elements of ONNX's type `to`. */
static void cast_to(tutti_onnx_import *m, tutti_sym x, int64_t to, bool last)
{
    tutti_dtype dtype = tutti__onnx_dtype_of(to);
    bool saturate = tutti__onnx_attr_int(m, "saturate", 1) != 0;
    if (dtype == TUTTI_NO_DTYPE) {
        tutti__onnx_read_fail(m, TUTTI_UNSUPPORTED, "converts to %s", tutti__onnx_element(to));
        return;
    }
    if (tutti__onnx_is_widened(to) && tutti_sym_type(x).dtype != TUTTI_STRING)
        x = tutti__onnx_to_element(m, x, to, saturate);
    tutti__onnx_made_as(m, 0, tutti_sym_ok(x) ? converted(m, x, dtype) : x, last);
    tutti__onnx_is_of(m, 0, to);
}

static void read_cast(tutti_onnx_import *m)
{
    bool last = tutti__onnx_joined(m);
    tutti_sym x = tutti__onnx_sym_as(m, 0, last);
    if (x.node)
        cast_to(m, x, tutti__onnx_attr_int(m, "to", 0), last);
}

static void read_cast_like(tutti_onnx_import *m)
{
    tutti_sym x = tutti__onnx_sym(m, 0), like = tutti__onnx_sym(m, 1);
    int64_t to = tutti__onnx_element_of(m, 1);
    if (x.node && like.node)
        cast_to(m, x, to ? to : tutti__onnx_dtype(tutti_sym_type(like).dtype), false);
}

/* Exporters give vectors of one element for scalars. */
static void read_range(tutti_onnx_import *m)
{
    tutti_sym ends[3];
    for (int i = 0; i < 3; i++) {
        ends[i] = tutti__onnx_sym(m, i);
        if (ends[i].node && tutti_sym_type(ends[i]).rank > 0)
            ends[i] = tutti_reshape(ends[i]);
    }
    if (m->status == TUTTI_OK)
        tutti__onnx_made(m, 0, tutti_range_dynamic(ends[0], ends[1], ends[2]));
}

const tutti_onnx_op tutti_onnx_variable = {
    .op = "variable",
    .write = write_nothing,
};

const tutti_onnx_op tutti_onnx_read_variable = {
    .op = "read",
    .write = write_nothing,
};

const tutti_onnx_op tutti_onnx_constant = {
    .op = "constant",
    .type = "Constant",
    .write = write_nothing,
    .read = read_constant,
};

const tutti_onnx_op tutti_onnx_fill = {
    .op = "fill",
    .type = "ConstantOfShape",
    .write = write_fill,
    .read = read_constant_of_shape,
};

const tutti_onnx_op tutti_onnx_fill_dynamic = {
    .op = "fill_dynamic",
    .write = write_fill_dynamic,
};

const tutti_onnx_op tutti_onnx_zeros_like = {
    .op = "zeros_like",
    .write = write_zeros_like,
};

const tutti_onnx_op tutti_onnx_ones_like = {
    .op = "ones_like",
    .write = write_ones_like,
};

const tutti_onnx_op tutti_onnx_identity = {
    .op = "identity",
    .type = "Identity",
    .write = write_same,
    .read = read_identity,
};

const tutti_onnx_op tutti_onnx_stop_gradient = {
    .op = "stop_gradient",
    .write = write_same,
};

const tutti_onnx_op tutti_onnx_dropout_absent = {
    .type = "Dropout",
    .read = read_dropout,
    .note = "in inference form",
};

const tutti_onnx_op tutti_onnx_cast = {
    .op = "cast",
    .type = "Cast",
    .write = write_cast,
    .read = read_cast,
};

const tutti_onnx_op tutti_onnx_cast_like = {
    .type = "CastLike",
    .read = read_cast_like,
};

const tutti_onnx_op tutti_onnx_range = {
    .op = "range",
    .write = write_range,
};

const tutti_onnx_op tutti_onnx_range_dynamic = {
    .op = "range_dynamic",
    .type = "Range",
    .write = tutti__onnx_write_plain,
    .read = read_range,
};
