/* Fused reductions against the reference of their bodies, and against one another. */
#include "base/test.h"
#include "device/cpu/kernel_check.h"
#include "ops/build.h"
#include "program/kernel.h"

/* Builds the results of a body from its parameters; how many. */
typedef int body_builder(const tutti_sym *x, tutti_sym *ret);

enum { MOST = 4 };

typedef struct fused_case {
    body_builder *build;
    const char *inputs[MOST]; /* as ops/sample.h writes them */
} fused_case;

typedef struct fused_node {
    tutti_graph *graph, *body;
    tutti_node *node;
    int count;
    tutti_type types[MOST];
    tutti_tensor *values[MOST];
} fused_node;

static fused_node make(const fused_case *c)
{
    fused_node f = {0};
    tutti_sym parameters[MOST], inputs[MOST], results[MOST];
    CHECK_OK(tutti_graph_create(&f.graph));
    CHECK_OK(tutti_graph_create(&f.body));
    for (; f.count < MOST && c->inputs[f.count] != NULL; f.count++) {
        tutti_sample *sample;
        CHECK_OK(tutti__sample_parse(tutti_op_find("identity"), c->inputs[f.count],
                                     7 + (uint64_t)f.count, &sample));
        f.values[f.count] = tutti_tensor_retain(sample->values[0]);
        f.types[f.count] = sample->types[0];
        tutti__sample_free(sample);
        parameters[f.count] = (tutti_parameter)(f.body, f.count, f.types[f.count]);
        inputs[f.count] = (tutti_placeholder)(f.graph, f.types[f.count]);
    }
    int results_count = c->build(parameters, results);
    for (int i = 0; i < results_count; i++) {
        CHECK(tutti_sym_ok(results[i]));
        CHECK_OK(tutti__graph_result(f.body, tutti__edge(results[i])));
    }
    tutti_attr attrs[] = {TUTTI_GRAPH_ATTR("body", f.body), TUTTI_STR("pattern", "reduce")};
    tutti_sym fused = tutti_apply_op(f.graph, "fused", f.count, inputs, 2, attrs);
    CHECK(tutti_sym_ok(fused));
    f.node = fused.node;
    return f;
}

static void drop(fused_node *f)
{
    for (int i = 0; i < f->count; i++)
        tutti_tensor_release(f->values[i]);
    tutti_graph_destroy(f->graph);
    tutti_graph_destroy(f->body);
}

/* How many kernels bid, all of them near the reference. */
static int check(const fused_case *c)
{
    fused_node f = make(c);
    tutti_sample sample = {.op = f.node->op,
                           .input_count = f.count,
                           .output_count = f.node->output_count,
                           .attr_count = f.node->attr_count,
                           .types = f.types,
                           .values = f.values,
                           .attrs = f.node->attrs,
                           .graph = f.graph,
                           .node = f.node};
    int bids = tutti__kernel_check_sample(&sample, -1);
    drop(&f);
    return bids;
}

static tutti_sym sum_of(tutti_sym x, bool keep, int count, const int64_t *axes)
{
    tutti_attr attrs[] = {TUTTI_INTS("axes", count, axes), TUTTI_INT("keepdims", keep)};
    return tutti_apply_op(tutti_sym_graph(x), "sum", 1, &x, 2, attrs);
}

static tutti_sym along_rows(const char *op, tutti_sym x)
{
    tutti_attr attrs[] = {TUTTI_INTS("axes", 1, ((int64_t[]){-1})), TUTTI_INT("keepdims", true)};
    return tutti_apply_op(tutti_sym_graph(x), op, 1, &x, 2, attrs);
}

static tutti_sym relu_grad(const tutti_sym *x)
{
    tutti_sym none = tutti_scalar(tutti_sym_graph(x[0]), tutti_sym_type(x[1]).dtype, 0);
    return tutti_where(tutti_greater(x[0], none), x[1], none);
}

/* A bias's gradient beside the activation's. */
static int bias_gradient(const tutti_sym *x, tutti_sym *ret)
{
    tutti_type type = tutti_sym_type(x[0]);
    int64_t axes[] = {0, 1, 2, 3};
    ret[0] = relu_grad(x);
    ret[1] = sum_of(ret[0], false, type.rank - 1, axes);
    return 2;
}

/* The same where nobody wants the full gradient. */
static int only_bias_gradient(const tutti_sym *x, tutti_sym *ret)
{
    tutti_sym both[2];
    bias_gradient(x, both);
    ret[0] = both[1];
    return 1;
}

TUTTI_TEST(kernel_fused_sum_over_rows)
{
    static const char *const shapes[][2] = {
        {"f32[300,32]", "f32[300,32]"},    {"f32[9,7,13,6]", "f32[9,7,13,6]"},
        {"f32[700,10]", "f32[700,10]"},    {"f32[5,3]", "f32[5,3]"},
        {"f32[40,1023]", "f32[40,1023]"},  {"f32[17,5000]", "f32[17,5000]"},
        {"f32[3000,20]", "f32[3000,20]"},  {"bf16[70,24]", "bf16[70,24]"},
        {"f32[20,40,33]", "f32[20,1,33]"},
    };
    for (size_t i = 0; i < TUTTI_COUNT(shapes); i++) {
        CHECK_INT(check(&(fused_case){bias_gradient, {shapes[i][0], shapes[i][1]}}), 1);
        CHECK_INT(check(&(fused_case){only_bias_gradient, {shapes[i][0], shapes[i][1]}}), 1);
    }
}

/* mean((a - b)^2), and the sum of it, of all elements. */
static int losses(const tutti_sym *x, tutti_sym *ret)
{
    tutti_sym square = tutti_square(tutti_sub(x[0], x[1]));
    ret[0] = tutti_mean(square);
    ret[1] = tutti_sum(square);
    return 2;
}

TUTTI_TEST(kernel_fused_sum_of_everything)
{
    CHECK_INT(check(&(fused_case){losses, {"f32[31,28,28]", "f32[31,28,28]"}}), 1);
    CHECK_INT(check(&(fused_case){losses, {"f32[5]", "f32[5]"}}), 1);
    CHECK_INT(check(&(fused_case){losses, {"f32[100,60]", "f32[60]"}}), 1);
    CHECK_INT(check(&(fused_case){losses, {"f16[100,60]", "f16[100,60]"}}), 1);
}

/* Two sums over rows, one of everything, and a value of its own. */
static int several(const tutti_sym *x, tutti_sym *ret)
{
    int64_t rows[] = {0};
    tutti_sym y = tutti_mul(x[0], x[1]);
    ret[0] = sum_of(y, true, 1, rows);
    ret[1] = tutti_exp(y);
    ret[2] = tutti_mean(ret[1]);
    ret[3] = sum_of(ret[1], false, 1, rows);
    return 4;
}

TUTTI_TEST(kernel_fused_sums_side_by_side)
{
    CHECK_INT(check(&(fused_case){several, {"f32[130,70]", "f32[130,70]"}}), 1);
    CHECK_INT(check(&(fused_case){several, {"f32[130,70]", "f32[70]"}}), 1);
    /* Several threads would add to one total. */
    CHECK_INT(check(&(fused_case){several, {"f32[20,3000]", "f32[20,3000]"}}), 0);
}

/* Layer norm, written out. */
static int moments(const tutti_sym *x, tutti_sym *ret)
{
    tutti_sym centred = tutti_sub(x[0], along_rows("mean", x[0]));
    tutti_sym variance = along_rows("mean", tutti_square(centred));
    tutti_sym epsilon = tutti_scalar(tutti_sym_graph(x[0]), tutti_sym_type(x[0]).dtype, 1e-5);
    ret[0] = tutti_mul(tutti_mul(centred, tutti_rsqrt(tutti_add(variance, epsilon))), x[1]);
    ret[1] = variance;
    return 2;
}

/* Softmax, written out, with what is needed behind it. */
static int softmax(const tutti_sym *x, tutti_sym *ret)
{
    tutti_sym power = tutti_exp(tutti_sub(x[0], along_rows("max", x[0])));
    ret[0] = tutti_div(power, along_rows("sum", power));
    ret[1] = sum_of(tutti_mul(ret[0], x[0]), false, 1, (int64_t[]){-1});
    return 2;
}

TUTTI_TEST(kernel_fused_rows_used_at_once)
{
    CHECK_INT(check(&(fused_case){moments, {"f32[50,128]", "f32[128]"}}), 1);
    CHECK_INT(check(&(fused_case){moments, {"f32[3,5,37]", "f32[3,1,37]"}}), 1);
    CHECK_INT(check(&(fused_case){moments, {"bf16[9,64]", "bf16[64]"}}), 1);
    CHECK_INT(check(&(fused_case){softmax, {"f32[33,100]"}}), 1);
    CHECK_INT(check(&(fused_case){softmax, {"f32[2,700]"}}), 1);
    CHECK_INT(check(&(fused_case){softmax, {"f32[1,100]"}}), 1);
    CHECK_INT(check(&(fused_case){softmax, {"f32[1,1,7,100]"}}), 1);
    /* The row does not fit a tile; it is no row of a batch; doubles. */
    CHECK_INT(check(&(fused_case){softmax, {"f32[4,3000]"}}), 0);
    CHECK_INT(check(&(fused_case){softmax, {"f32[100]"}}), 0);
    CHECK_INT(check(&(fused_case){softmax, {"f64[33,100]"}}), 0);
}

/* x + y, the next residual, and its layer norm. */
static int residual(const tutti_sym *x, tutti_sym *ret)
{
    ret[0] = tutti_add(x[0], x[1]);
    ret[1] = tutti_nn_layer_norm(ret[0], x[2], x[3]);
    return 2;
}

static int attention_scores(const tutti_sym *x, tutti_sym *ret)
{
    ret[0] = tutti_softmax(tutti_add(tutti_mul(x[0], 0.25), x[1]));
    ret[1] = tutti_log_softmax(x[0]);
    return 2;
}

TUTTI_TEST(kernel_fused_operators_over_rows)
{
    CHECK_INT(
        check(&(fused_case){residual, {"f32[4,9,128]", "f32[4,9,128]", "f32[128]", "f32[128]"}}),
        1);
    CHECK_INT(check(&(fused_case){residual, {"bf16[7,30]", "bf16[7,30]", "bf16[30]", "bf16[30]"}}),
              1);
    CHECK_INT(check(&(fused_case){attention_scores, {"f32[3,4,5,19]", "f32[3,1,1,19]"}}), 1);
    CHECK_INT(check(&(fused_case){attention_scores, {"f32[64,64]", "f32[64,1]"}}), 1);
}

/* The mean of squares over the axes between batch and channels. */
static int spread_of_images(const tutti_sym *x, tutti_sym *ret)
{
    ret[0] = tutti_square(x[0]);
    ret[1] = sum_of(ret[0], false, 2, (int64_t[]){1, 2});
    return 2;
}

/* A sum over the batch is not for a deterministic session, one of rows is; nor is a sum over a
 * middle axis that looks like one over the batch where that has one row. */
TUTTI_TEST(kernel_fused_sum_in_deterministic_mode)
{
    static const fused_case cases[] = {{bias_gradient, {"f32[30,32]", "f32[30,32]"}},
                                       {softmax, {"f32[33,100]"}},
                                       {spread_of_images, {"f32[2,8,5,5]"}},
                                       {spread_of_images, {"f32[1,8,5,5]"}}};
    CHECK_INT(check(&cases[3]), 1);
    for (int i = 0; i < 4; i++) {
        fused_node f = make(&cases[i]);
        tutti_kernel_query query = {.node = {.op = f.node->op,
                                             .name = "fused",
                                             .input_count = f.count,
                                             .output_count = f.node->output_count,
                                             .inputs = f.types,
                                             .attrs = f.node->attrs,
                                             .attr_count = f.node->attr_count,
                                             .outputs = f.node->types},
                                    .threads = 2,
                                    .deterministic = true};
        CHECK((tutti__kernel_pick("cpu", &query) != NULL) == (i == 1));
        drop(&f);
    }
}
