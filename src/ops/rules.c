/* rules.c: the ready-made rules of tutti/op.h and ops/build.h. */
#include "ops/build.h"
#include "ops/strided.h"

static tutti_status refuse_handle_or_string(const tutti_infer *node, int i)
{
    char text[TUTTI_TYPE_TEXT];
    if (node->inputs[i].dtype == TUTTI_STRING)
        return RULE_FAIL(node, TUTTI_INVALID, "input %d is %s; needs numbers or bools, not strings",
                         i, tutti_type_text(&node->inputs[i], text));
    if (node->inputs[i].handle)
        return RULE_FAIL(node, TUTTI_INVALID, "input %d is a handle of %s; read its value first", i,
                         tutti_type_text(&node->inputs[i], text));
    return TUTTI_OK;
}

tutti_status tutti_infer_same(tutti_infer *node)
{
    node->outputs[0] = node->inputs[0];
    node->outputs[0].handle = false;
    return TUTTI_OK;
}

/* Two element types in one operator: never a silent conversion. */
static tutti_status refuse_mixed(const tutti_infer *node, int i)
{
    char a[TUTTI_TYPE_TEXT], b[TUTTI_TYPE_TEXT];
    return RULE_FAIL(node, TUTTI_INVALID,
                     "input 0 is %s, input %d is %s; element types must agree: convert one of them "
                     "with tutti_cast",
                     tutti_type_text(&node->inputs[0], a), i, tutti_type_text(&node->inputs[i], b));
}

/* The shape that all inputs broadcast to, with the first one's element type. */
static tutti_status broadcast_all(const tutti_infer *node, tutti_type *ret)
{
    char a[TUTTI_TYPE_TEXT], b[TUTTI_TYPE_TEXT];
    tutti_type all = node->inputs[0];
    for (int i = 1; i < node->input_count; i++) {
        int rank = 0;
        int64_t dims[TUTTI_MAX_RANK];
        const tutti_type *other = &node->inputs[i];
        if (tutti_broadcast_dims(all.rank, all.dims, other->rank, other->dims, &rank, dims) !=
            TUTTI_OK)
            return RULE_FAIL(
                node, TUTTI_INVALID,
                "shapes of %s and %s do not broadcast: counted from the last, each pair "
                "of dimensions must be equal or one of them 1; tutti_reshape can add "
                "axes of 1",
                tutti_type_text(&all, a), tutti_type_text(other, b));
        all = tutti_type_make(all.dtype, rank, dims);
    }
    all.handle = false;
    *ret = all;
    return TUTTI_OK;
}

tutti_status tutti_infer_broadcast(tutti_infer *node)
{
    for (int i = 0; i < node->input_count; i++) {
        TUTTI_TRY(refuse_handle_or_string(node, i));
        if (node->inputs[i].dtype != node->inputs[0].dtype)
            return refuse_mixed(node, i);
    }
    return broadcast_all(node, &node->outputs[0]);
}

tutti_status tutti_infer_compare(tutti_infer *node)
{
    TUTTI_TRY(tutti_infer_broadcast(node));
    node->outputs[0].dtype = TUTTI_BOOL;
    return TUTTI_OK;
}

static bool inputs_are_integral(const tutti_kernel_call *call)
{
    for (int i = 0; i < call->input_count; i++)
        if (!tutti_dtype_is_int(call->inputs[i].dtype) && call->inputs[i].dtype != TUTTI_BOOL)
            return false;
    return true;
}

/* Integers and bools go through int64_t, floats through double; storing rounds floats once and lets
 * integers wrap round. */
tutti_status tutti_reference_elementwise(const tutti_kernel_call *call)
{
    const tutti_op *op = call->op;
    const tutti_view *out = &call->outputs[0];
    bool integral = op->scalar_int != NULL && inputs_are_integral(call);
    int64_t count = tutti_view_count(out);
    double x[TUTTI_SPLIT_SLOTS];
    int64_t k[TUTTI_SPLIT_SLOTS];
    tutti_strided walk;
    if (call->input_count > TUTTI_SPLIT_SLOTS || (!integral && op->scalar == NULL))
        return RULE_FAIL(call, TUTTI_UNSUPPORTED,
                         "has no element function for %d inputs of type %s", call->input_count,
                         tutti_dtype_name(call->inputs[0].dtype));
    tutti__strided_start(call, &walk);
    for (int64_t n = 0; n < count; n++, tutti__strided_next(&walk)) {
        for (int i = 0; i < call->input_count; i++) {
            if (integral)
                k[i] = tutti_view_get_int(&call->inputs[i], walk.at[i]);
            else
                x[i] = tutti_view_get(&call->inputs[i], walk.at[i]);
        }
        if (integral)
            tutti_view_set_int(out, n, op->scalar_int(k, call->attrs, call->attr_count));
        else
            tutti_view_set(out, n, op->scalar(x, call->attrs, call->attr_count));
    }
    return TUTTI_OK;
}

/* What an input's dimension is along the output's axis; 1 where the input has no such axis. */
static int64_t dim_along(const tutti_type *input, int output_rank, int axis)
{
    int own = axis - (output_rank - input->rank);
    return own < 0 ? 1 : input->dims[own];
}

/* Whether one cut along `axis` is sure to be right: every input either spans the axis or is
 * repeated along it. An unknown dimension beside another axis could be either. */
static bool axis_is_cuttable(const tutti_infer *node, int axis)
{
    const tutti_type *out = &node->outputs[0];
    int spanning = 0, unknown = 0;
    if (out->dims[axis] == 1)
        return false;
    for (int i = 0; i < node->input_count; i++) {
        int64_t dim = dim_along(&node->inputs[i], out->rank, axis);
        spanning += dim != 1;
        unknown += dim == TUTTI_ANY;
    }
    return spanning == 1 || (spanning > 1 && unknown == 0);
}

int tutti_split_elementwise(const tutti_infer *node, int capacity, tutti_split *ret)
{
    const tutti_type *out = &node->outputs[0];
    int ways = 0;
    if (node->input_count > TUTTI_SPLIT_SLOTS)
        return 0;
    for (int axis = 0; axis < out->rank; axis++) {
        if (!axis_is_cuttable(node, axis))
            continue;
        tutti_split way = {.outputs = {(int8_t)axis}};
        for (int i = 0; i < node->input_count; i++) {
            bool spans = dim_along(&node->inputs[i], out->rank, axis) != 1;
            way.inputs[i] =
                (int8_t)(spans ? axis - (out->rank - node->inputs[i].rank) : TUTTI_WHOLE);
        }
        if (ways < capacity)
            ret[ways] = way;
        ways++;
    }
    return ways;
}

tutti_sym tutti_unbroadcast(tutti_sym grad, tutti_sym like)
{
    if (!tutti_sym_ok(grad) || !tutti_sym_ok(like))
        return TUTTI_NO_SYM;
    tutti_type from = tutti_sym_type(grad), to = tutti_sym_type(like);
    to.handle = from.handle = false;
    if (tutti_type_is_static(&from) && tutti_type_equal(&from, &to))
        return grad;
    return tutti_apply_op(tutti_sym_graph(grad), "sum_like", 2, (tutti_sym[]){grad, like}, 0, NULL);
}

/* Elements of a type; an unknown dimension counts as 1, so costs are lower bounds then. */
static double elements(const tutti_type *type)
{
    double count = 1;
    for (int i = 0; i < type->rank; i++)
        count *= type->dims[i] < 0 ? 1.0 : (double)type->dims[i];
    return count;
}

static double bytes(int count, const tutti_type *types)
{
    double sum = 0;
    for (int i = 0; i < count; i++)
        sum += elements(&types[i]) * (double)tutti_dtype_size(types[i].dtype);
    return sum;
}

void tutti__cost_move(const tutti_infer *node, tutti_cost *ret)
{
    *ret = (tutti_cost){.bytes_read = bytes(node->input_count, node->inputs),
                        .bytes_written = bytes(node->output_count, node->outputs)};
}

void tutti__cost_elementwise(const tutti_infer *node, tutti_cost *ret)
{
    tutti__cost_move(node, ret);
    for (int i = 0; i < node->output_count; i++)
        ret->flops += elements(&node->outputs[i]);
}
