/* fused.c: bodies of fused nodes, for the check of operators. */
#include "device/cuda/lab/fused.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ops/build.h"

enum { MOST = 6 };

typedef int builder(const tutti_sym *x, tutti_sym *ret);

static tutti_sym along(const char *op, tutti_sym x, bool keep, int count, const int64_t *axes)
{
    tutti_attr attrs[] = {TUTTI_INTS("axes", count, axes), TUTTI_INT("keepdims", keep)};
    return tutti_apply_op(tutti_sym_graph(x), op, 1, &x, 2, attrs);
}

static tutti_sym of_rows(const char *op, tutti_sym x)
{
    return along(op, x, true, 1, (int64_t[]){-1});
}

static int chain(const tutti_sym *x, tutti_sym *ret)
{
    ret[0] = tutti_mul(tutti_gelu(tutti_add(x[0], x[1])), 0.5);
    ret[1] = tutti_greater(ret[0], x[2]);
    ret[2] = tutti_cast(tutti_where(ret[1], ret[0], x[2]), TUTTI_BF16);
    return 3;
}

static int softmax(const tutti_sym *x, tutti_sym *ret)
{
    tutti_sym e = tutti_exp(tutti_sub(x[0], of_rows("max", x[0])));
    ret[0] = tutti_div(e, of_rows("sum", e));
    return 1;
}

static int norm(const tutti_sym *x, tutti_sym *ret)
{
    tutti_sym apart = tutti_sub(x[0], of_rows("mean", x[0]));
    tutti_sym r = tutti_rsqrt(tutti_add(of_rows("mean", tutti_square(apart)), 0.001));
    ret[0] = tutti_add(tutti_mul(tutti_mul(apart, r), x[1]), x[2]);
    ret[1] = r;
    return 2;
}

static int bias_gradient(const tutti_sym *x, tutti_sym *ret)
{
    ret[0] = tutti_where(tutti_greater(x[0], 0), x[1], 0);
    ret[1] = along("sum", ret[0], false, 1, (int64_t[]){0});
    return 2;
}

static int losses(const tutti_sym *x, tutti_sym *ret)
{
    tutti_sym apart = tutti_square(tutti_sub(x[0], x[1]));
    ret[0] = along("mean", apart, false, 0, NULL);
    ret[1] = along("sum", tutti_abs(x[0]), false, 0, NULL);
    return 2;
}

static int several(const tutti_sym *x, tutti_sym *ret)
{
    ret[0] = of_rows("min", tutti_mul(x[0], x[1]));
    ret[1] = tutti_mul(x[0], ret[0]);
    ret[2] = along("mean", ret[1], false, 1, (int64_t[]){0});
    return 3;
}

/* Results of one number a row, or a column, that are made element by element. */
static int narrow(const tutti_sym *x, tutti_sym *ret)
{
    ret[0] = of_rows("mean", tutti_mul(x[0], x[2]));
    ret[1] = tutti_square(x[1]);
    ret[2] = tutti_mul(x[0], tutti_mul(ret[0], ret[1]));
    ret[3] = tutti_square(x[2]);
    return 4;
}

static tutti_sym turn(tutti_sym x)
{
    tutti_attr attrs[] = {TUTTI_INTS("order", 4, ((int64_t[]){0, 2, 1, 3}))};
    return tutti_apply_op(tutti_sym_graph(x), "transpose", 1, &x, 1, attrs);
}

static int attention(const tutti_sym *x, tutti_sym *ret)
{
    tutti_sym y = tutti_nn_attention(turn(x[0]), turn(x[1]), turn(x[2]), .causal = true);
    ret[0] = tutti_sym_output(y, 1);
    ret[1] = turn(y);
    return 2;
}

static int attention_gradient(const tutti_sym *x, tutti_sym *ret)
{
    tutti_sym inputs[] = {turn(x[0]), turn(x[1]), turn(x[2]), turn(x[3]), x[4], turn(x[5])};
    tutti_attr attrs[] = {TUTTI_INT("causal", 1), TUTTI_INT("first_query", 0),
                          TUTTI_FLOAT("scale", 0), TUTTI_INT("grads", 1)};
    tutti_sym back =
        tutti_apply_op(tutti_sym_graph(x[0]), "attention_backward", 6, inputs, 4, attrs);
    ret[0] = turn(tutti_sym_output(back, 1));
    ret[1] = turn(tutti_sym_output(back, 0));
    ret[2] = turn(tutti_sym_output(back, 2));
    return 3;
}

static int dense(const tutti_sym *x, tutti_sym *ret)
{
    ret[0] = tutti_relu(tutti_add(tutti_matmul(x[0], x[1]), x[2]));
    return 1;
}

static const struct {
    builder *build;
    const char *inputs[MOST];
    const char *pattern; /* NULL: "reduce" */
} cases[] = {
    {attention, {"bf16[2,5,3,8]", "bf16[2,5,3,8]", "bf16[2,5,3,8]"}, "attention_rows"},
    {attention_gradient,
     {"bf16[2,5,3,8]", "bf16[2,5,3,8]", "bf16[2,5,3,8]", "bf16[2,5,3,8]", "f32[2,3,5]{3:4}",
      "bf16[2,5,3,8]"},
     "attention_rows"},
    {dense, {"f32[2,7,5]", "f32[5,12]", "f32[12]"}, "matmul_bias_activation"},
    {dense, {"bf16[7,5]", "bf16[5,12]", "bf16[12]"}, "matmul_bias_activation"},
    {chain, {"f32[7,12]", "f32[12]", "f32[7,1]"}},
    {chain, {"f32[3,5,9]", "f32[5,1]", "f32[]"}},
    {softmax, {"f32[5,10]{-3:3}"}},
    {softmax, {"f32[3,300]{-3:3}"}},
    {softmax, {"bf16[2,4,33]{-3:3}"}},
    {norm, {"f32[6,40]", "f32[40]", "f32[40]"}},
    {norm, {"f64[2,3,17]", "f64[17]", "f64[17]"}},
    {bias_gradient, {"f32[50,12]", "f32[50,12]"}},
    {bias_gradient, {"f32[3000,70]", "f32[3000,70]"}},
    {bias_gradient, {"f16[40,300]", "f16[40,300]"}},
    {losses, {"f32[64,10]", "f32[64,10]"}},
    {losses, {"f32[300,40,3]", "f32[]"}},
    {several, {"f32[1030,20]", "f32[20]"}},
    {narrow, {"f32[3,5]", "f32[3,1]", "f32[5]"}},
    {narrow, {"f32[2,3,300]", "f32[2,3,1]", "f32[300]"}},
};

int lab_fused_count(void)
{
    return (int)TUTTI_COUNT(cases);
}

bool lab_fused_deterministic(int index)
{
    return cases[index].pattern == NULL;
}

tutti_status lab_fused_make(int index, tutti_sample *ret)
{
    tutti_sym parameters[MOST], inputs[MOST], results[MOST];
    tutti_graph *body;
    tutti_sample s = {0};
    TUTTI_TRY(tutti_graph_create(&s.graph));
    TUTTI_TRY(tutti_graph_create(&body));
    s.types = calloc(MOST, sizeof *s.types);
    s.values = calloc(MOST, sizeof *s.values);
    for (; s.input_count < MOST && cases[index].inputs[s.input_count]; s.input_count++) {
        tutti_sample *input;
        int i = s.input_count;
        TUTTI_TRY(tutti__sample_parse(tutti_op_find("identity"), cases[index].inputs[i],
                                      7 + (uint64_t)i, &input));
        s.values[i] = tutti_tensor_retain(input->values[0]);
        s.types[i] = input->types[0];
        parameters[i] = (tutti_parameter)(body, i, s.types[i]);
        inputs[i] = (tutti_placeholder)(s.graph, s.types[i]);
        tutti__sample_free(input);
    }
    int count = cases[index].build(parameters, results);
    for (int i = 0; i < count; i++)
        TUTTI_TRY(tutti__graph_result(body, tutti__edge(results[i])));
    const char *pattern = cases[index].pattern ? cases[index].pattern : "reduce";
    tutti_attr attrs[] = {TUTTI_GRAPH_ATTR("body", body), TUTTI_STR("pattern", pattern)};
    attrs[1].count = (int32_t)strlen(pattern);
    tutti_sym fused = tutti_apply_op(s.graph, "fused", s.input_count, inputs, 2, attrs);
    tutti_graph_destroy(body);
    if (!tutti_sym_ok(fused))
        return tutti_fail(TUTTI_INVALID, "case %d of fused bodies is none", index);
    s.op = fused.node->op;
    s.node = fused.node;
    s.attrs = fused.node->attrs;
    s.attr_count = fused.node->attr_count;
    s.output_count = fused.node->output_count;
    snprintf(s.text, sizeof s.text, "case %d: %s", index, cases[index].inputs[0]);
    *ret = s;
    return TUTTI_OK;
}
