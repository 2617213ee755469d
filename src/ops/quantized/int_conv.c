/* int_conv.c: the rules of convolutions of bytes; see quantized.h. */
#include "ops/build.h"
#include "ops/network/window.h"
#include "ops/quantized/quantized.h"

const tutti_int_conv *tutti__conv_integer_inputs(void)
{
    static const tutti_int_conv inputs = {
        .x = 0, .kernel = 1, .x_zero = 2, .kernel_zero = 3, .bias = 4};
    return &inputs;
}

const tutti_int_conv *tutti__qlinear_conv_inputs(void)
{
    static const tutti_requantize finish = {.a_scale = 1, .b_scale = 4, .y_scale = 6, .y_zero = 7};
    static const tutti_int_conv inputs = {
        .x = 0, .x_zero = 2, .kernel = 3, .kernel_zero = 5, .bias = 8, .finish = &finish};
    return &inputs;
}

void tutti__int_conv_attrs(int64_t strides[2], int64_t dilations[2], const char *padding,
                           int64_t pads[4], int64_t groups, tutti_attr ret_attrs[5])
{
    int64_t any_pad = 0;
    for (int axis = 0; axis < 2; axis++) {
        strides[axis] += strides[axis] == 0;
        dilations[axis] += dilations[axis] == 0;
        any_pad |= pads[2 * axis] | pads[2 * axis + 1];
    }
    if (padding == NULL)
        padding = any_pad ? "explicit" : "valid";
    ret_attrs[0] = TUTTI_INTS("strides", 2, strides);
    ret_attrs[1] = TUTTI_INTS("dilations", 2, dilations);
    ret_attrs[2] = TUTTI_STR("padding", padding);
    ret_attrs[3] = TUTTI_INTS("pads", 4, pads);
    ret_attrs[4] = TUTTI_INT("groups", groups == 0 ? 1 : groups);
}

static tutti_status need_channels(const tutti_infer *node, const tutti_type *x,
                                  const tutti_type *kernel)
{
    char a[TUTTI_TYPE_TEXT], b[TUTTI_TYPE_TEXT];
    int64_t groups = RULE_INT(node, "groups"), merged;
    if (x->rank != 4 || kernel->rank != 4)
        return RULE_FAIL(node, TUTTI_INVALID,
                         "x is %s and the kernel %s, need [batch,height,width,channels] and "
                         "[height,width,channels/groups,filters]",
                         tutti_type_text(x, a), tutti_type_text(kernel, b));
    int64_t in = x->dims[3], out = kernel->dims[3];
    if (groups < 1 || (in != TUTTI_ANY && in % groups != 0) ||
        (out != TUTTI_ANY && out % groups != 0) ||
        !tutti__shape_merge(in == TUTTI_ANY ? in : in / groups, kernel->dims[2], &merged))
        return RULE_FAIL(node, TUTTI_INVALID,
                         "x is %s and the kernel %s, which do not fit in %lld groups",
                         tutti_type_text(x, a), tutti_type_text(kernel, b), (long long)groups);
    return TUTTI_OK;
}

static tutti_status need_parameters(const tutti_infer *node, const tutti_int_conv *c,
                                    int64_t filters)
{
    if (node->input_count > c->x_zero)
        TUTTI_TRY(tutti__need_parameter(node, c->x_zero, "x's zero", node->inputs[c->x].dtype, 1));
    if (node->input_count > c->kernel_zero)
        TUTTI_TRY(tutti__need_parameter(node, c->kernel_zero, "the kernel's zero",
                                        node->inputs[c->kernel].dtype, filters));
    if (node->input_count > c->bias)
        TUTTI_TRY(tutti__need_parameter(node, c->bias, "the bias", TUTTI_I32, filters));
    if (!c->finish)
        return TUTTI_OK;
    TUTTI_TRY(tutti__need_parameter(node, c->finish->a_scale, "x's scale", TUTTI_F32, 1));
    TUTTI_TRY(
        tutti__need_parameter(node, c->finish->b_scale, "the kernel's scale", TUTTI_F32, filters));
    TUTTI_TRY(tutti__need_parameter(node, c->finish->y_scale, "y's scale", TUTTI_F32, 1));
    TUTTI_TRY(tutti__need_bytes(node, c->finish->y_zero, "y's zero"));
    return tutti__need_parameter(node, c->finish->y_zero, "y's zero", TUTTI_NO_DTYPE, 1);
}

tutti_status tutti__int_conv_infer(tutti_infer *node, const tutti_int_conv *c, tutti_dtype dtype)
{
    const tutti_type *x = &node->inputs[c->x], *kernel = &node->inputs[c->kernel];
    tutti_windows w;
    TUTTI_TRY(tutti__need_bytes(node, c->x, "x"));
    TUTTI_TRY(tutti__need_bytes(node, c->kernel, "the kernel"));
    TUTTI_TRY(need_channels(node, x, kernel));
    TUTTI_TRY(need_parameters(node, c, kernel->dims[3]));
    TUTTI_TRY(tutti__windows_infer(node, 2, x->dims + 1, kernel->dims, &w));
    int64_t dims[] = {x->dims[0], w.out[0], w.out[1], kernel->dims[3]};
    return tutti__shape_output(node, 0, dtype, 4, dims);
}

/* The sum of one filter at one place; taps in the padding hold x's zero and add nothing. */
static int32_t int_conv_element(const tutti_kernel_call *call, const tutti_int_conv *c,
                                const tutti_convolution *v, const int64_t at[3], int64_t filter)
{
    const tutti_view *x = &call->inputs[c->x], *kernel = &call->inputs[c->kernel];
    const tutti_windows *w = &v->windows;
    int64_t filters = v->groups * v->cout, channels = v->groups * v->cin;
    int64_t first = filter / v->cout * v->cin, y, y_end, x_first, x_end;
    int32_t x_zero = tutti__zero_of(call, c->x_zero, 0);
    int32_t k_zero = tutti__zero_of(call, c->kernel_zero, filter);
    uint32_t sum = 0;
    tutti__window_taps(w, 0, at[1], &y, &y_end);
    tutti__window_taps(w, 1, at[2], &x_first, &x_end);
    for (; y < y_end; y++)
        for (int64_t i = x_first; i < x_end; i++) {
            int64_t row = tutti__window_start(w, 0, at[1]) + y * w->dilation[0];
            int64_t column = tutti__window_start(w, 1, at[2]) + i * w->dilation[1];
            int64_t from = ((at[0] * w->in[0] + row) * w->in[1] + column) * channels + first;
            int64_t tap = (y * w->size[1] + i) * v->cin * filters + filter;
            for (int64_t k = 0; k < v->cin; k++)
                sum += (uint32_t)((tutti__byte_at(x, from + k) - x_zero) *
                                  (tutti__byte_at(kernel, tap + k * filters) - k_zero));
        }
    return (int32_t)sum;
}

tutti_status tutti__int_conv_reference(const tutti_kernel_call *call, const tutti_int_conv *c)
{
    const tutti_view *y = &call->outputs[0];
    tutti_convolution v = tutti__convolution(call->attrs, call->attr_count, call->inputs[c->x].dims,
                                             call->inputs[c->kernel].dims, y->dims);
    int64_t at[3], index = 0;
    for (at[0] = 0; at[0] < y->dims[0]; at[0]++)
        for (at[1] = 0; at[1] < y->dims[1]; at[1]++)
            for (at[2] = 0; at[2] < y->dims[2]; at[2]++)
                for (int64_t f = 0; f < y->dims[3]; f++, index++) {
                    uint32_t sum = (uint32_t)int_conv_element(call, c, &v, at, f);
                    if (c->bias < call->input_count) {
                        const tutti_view *bias = &call->inputs[c->bias];
                        sum +=
                            (uint32_t)tutti_view_get_int(bias, tutti_view_count(bias) == 1 ? 0 : f);
                    }
                    tutti_view_set_int(y, index,
                                       c->finish
                                           ? tutti__requantize(call, c->finish, 0, f, (int32_t)sum)
                                           : (int32_t)sum);
                }
    return TUTTI_OK;
}

void tutti__int_conv_cost(const tutti_infer *node, const tutti_int_conv *c, tutti_cost *ret)
{
    tutti__cost_elementwise(node, ret);
    ret->flops = tutti__convolution_flops(&node->inputs[c->kernel], &node->outputs[0]);
}

static bool is_vector(const tutti_infer *node, int input)
{
    return input < node->input_count && node->inputs[input].rank == 1 &&
           node->inputs[input].dims[0] != 1;
}

/* By batch; without groups by filters. */
int tutti__int_conv_split(const tutti_infer *node, const tutti_int_conv *c, int capacity,
                          tutti_split *ret)
{
    tutti_cuts cuts = {.capacity = capacity, .ret = ret};
    tutti_split *way = tutti__cut(&cuts);
    way->inputs[c->x] = way->outputs[0] = 0;
    if (RULE_INT(node, "groups") != 1)
        return cuts.count;
    const int vectors[] = {c->kernel_zero, c->bias,
                           c->finish ? c->finish->b_scale : c->kernel_zero};
    way = tutti__cut(&cuts);
    way->inputs[c->kernel] = way->outputs[0] = 3;
    for (int i = 0; i < 3; i++)
        if (is_vector(node, vectors[i]))
            way->inputs[vectors[i]] = 0;
    return cuts.count;
}
