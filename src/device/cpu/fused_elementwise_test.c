#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "base/test.h"
#include "device/cpu/tile/program.h"
#include "graph/graph.h"
#include "ops/reference.h"
#include "ops/sample.h"
#include "tutti/ops.h"

/* A fused node over given inputs: its body is built by `build`, which returns how many results. */
typedef int body_builder(const tutti_sym *inputs, tutti_sym *ret_results);

typedef struct fused {
    tutti_graph *graph, *body;
    tutti_node *node;
    int input_count;
    tutti_type types[4];
    tutti_tensor *values[4];
} fused;

static fused make_fused(body_builder *build, int input_count, const char *const *texts)
{
    fused f = {.input_count = input_count};
    tutti_sym parameters[4], results[4], inputs[4];
    CHECK_OK(tutti_graph_create(&f.graph));
    CHECK_OK(tutti_graph_create(&f.body));
    for (int i = 0; i < input_count; i++) {
        tutti_sample *sample;
        CHECK_OK(
            tutti__sample_parse(tutti_op_find("identity"), texts[i], 5 + (uint64_t)i, &sample));
        f.values[i] = tutti_tensor_retain(sample->values[0]);
        f.types[i] = sample->types[0];
        tutti__sample_free(sample);
        parameters[i] = tutti_parameter(f.body, i, f.types[i]);
        inputs[i] = tutti_parameter(f.graph, i, f.types[i]);
    }
    int count = build(parameters, results);
    for (int i = 0; i < count; i++)
        CHECK_OK(tutti__graph_result(f.body, tutti__edge(results[i])));
    tutti_attr attrs[] = {TUTTI_GRAPH_ATTR("body", f.body), TUTTI_STR("pattern", "elementwise")};
    tutti_sym made = tutti_apply_op(f.graph, "fused", input_count, inputs, 2, attrs);
    CHECK_OK(tutti_graph_check(f.graph));
    f.node = made.node;
    return f;
}

static void free_fused(fused *f)
{
    for (int i = 0; i < f->input_count; i++)
        tutti_tensor_release(f->values[i]);
    tutti_graph_destroy(f->graph);
    tutti_graph_destroy(f->body);
}

static tutti_view view_of(tutti_tensor *tensor)
{
    return (tutti_view){tutti_tensor_data(tensor), tutti_tensor_dtype(tensor),
                        tutti_tensor_rank(tensor), tutti_tensor_dims(tensor), NULL};
}

/* Runs the kernel; `inplace` >= 0: output 0 shares that input's memory, a copy of it. */
static void run_fused(const fused *f, int threads, int inplace, tutti_tensor **ret_outputs)
{
    tutti_kernel_query query = {.node = {.op = f->node->op,
                                         .name = "fused",
                                         .input_count = f->input_count,
                                         .output_count = f->node->output_count,
                                         .inputs = f->types,
                                         .attrs = f->node->attrs,
                                         .attr_count = f->node->attr_count,
                                         .outputs = f->node->types},
                                .threads = threads};
    const tutti_kernel *kernel = tutti__kernel_pick("cpu", &query);
    CHECK(kernel != NULL);
    CHECK_STR(kernel->name, "fused.elementwise");
    void *plan;
    CHECK_OK(kernel->prepare(&query, &plan));
    void *workspace =
        aligned_alloc(64, (tutti__kernel_workspace(kernel, NULL, plan) + 64) / 64 * 64);
    tutti_pool *pool;
    CHECK_OK(tutti__pool_create(threads, -1, &pool));
    tutti_view inputs[4], outputs[4];
    for (int i = 0; i < f->input_count; i++)
        inputs[i] = view_of(f->values[i]);
    for (int i = 0; i < f->node->output_count; i++) {
        const tutti_type *type = &f->node->types[i];
        if (i == 0 && inplace >= 0) {
            CHECK_OK(tutti_tensor_from(type->dtype, type->rank, type->dims, inputs[inplace].data,
                                       &ret_outputs[i]));
            inputs[inplace] = view_of(ret_outputs[i]);
        } else {
            CHECK_OK(tutti_tensor_create(type->dtype, type->rank, type->dims, &ret_outputs[i]));
        }
        outputs[i] = view_of(ret_outputs[i]);
    }
    tutti_kernel_call call = {.op = f->node->op,
                              .name = "fused",
                              .attrs = f->node->attrs,
                              .attr_count = f->node->attr_count,
                              .input_count = f->input_count,
                              .output_count = f->node->output_count,
                              .inputs = inputs,
                              .outputs = outputs,
                              .workspace = workspace,
                              .plan = plan,
                              .pool = pool};
    CHECK_OK(kernel->run(&call));
    kernel->discard(plan);
    tutti__pool_destroy(pool);
    free(workspace);
}

static void check_fused(body_builder *build, int input_count, const char *const *texts,
                        double tolerance)
{
    fused f = make_fused(build, input_count, texts);
    int count = f.node->output_count;
    tutti_tensor *expected[4], *first[4], *other[4];
    CHECK_OK(tutti__reference_node(f.node, f.values, expected));
    run_fused(&f, 1, -1, first);
    for (int i = 0; i < count; i++)
        CHECK_OK(tutti__tensor_near(first[i], expected[i], tolerance, "fused"));
    for (int mode = 0; mode < 1 + input_count; mode++) {
        if (mode > 0 && !tutti_type_equal(&f.types[mode - 1], &f.node->types[0]))
            continue;
        run_fused(&f, 2, mode - 1, other);
        for (int i = 0; i < count; i++) {
            CHECK(tutti_tensor_same(first[i], other[i]));
            tutti_tensor_release(other[i]);
        }
    }
    for (int i = 0; i < count; i++) {
        tutti_tensor_release(expected[i]);
        tutti_tensor_release(first[i]);
    }
    free_fused(&f);
}

/* Cheap operators in a chain, one value used twice, scalars on both sides. */
static int cheap(const tutti_sym *in, tutti_sym *ret)
{
    tutti_sym y = tutti_add(tutti_mul(in[0], 1.5), in[1]);
    y = tutti_sub(tutti_mul(y, y), in[0]);
    y = tutti_relu(tutti_add(y, 0.25));
    y = tutti_maximum(tutti_neg(y), in[1]);
    ret[0] = tutti_abs(tutti_mul(y, in[0]));
    return 1;
}

/* Operators of one before those of two, in both orders; one value is read again later. */
static int changed_first(const tutti_sym *in, tutti_sym *ret)
{
    tutti_sym y = tutti_sub(in[1], tutti_square(in[0]));
    tutti_sym z = tutti_minimum(tutti_neg(y), in[1]);
    z = tutti_sub(tutti_mul(z, z), in[1]);
    z = tutti_sub(in[0], tutti_neg(tutti_add(z, y)));
    ret[0] = tutti_add(tutti_neg(tutti_mul(tutti_square(z), in[1])), in[0]);
    return 1;
}

/* Two results, one of them in the middle, and a reading of the input after it. */
static int two_results(const tutti_sym *in, tutti_sym *ret)
{
    ret[0] = tutti_exp(tutti_mul(in[0], 0.5));
    ret[1] = tutti_where(tutti_greater(ret[0], in[1]), tutti_tanh(in[0]), in[1]);
    return 2;
}

/* Through 16-bit floats and bools. */
static int conversions(const tutti_sym *in, tutti_sym *ret)
{
    tutti_sym half = tutti_cast(tutti_mul(in[0], in[1]), TUTTI_BF16);
    ret[0] =
        tutti_add(tutti_cast(half, TUTTI_F32), tutti_cast(tutti_less(in[0], in[1]), TUTTI_F32));
    return 1;
}

/* A value of 16 bits beside itself, rounded: are they equal? */
static int compared(const tutti_sym *in, tutti_sym *ret)
{
    tutti_sym y = tutti_mul(in[0], tutti_sigmoid(in[1]));
    tutti_sym rounded = tutti_cast(tutti_cast(y, TUTTI_F32), tutti_sym_type(y).dtype);
    ret[0] = tutti_cast(tutti_equal(y, rounded), TUTTI_F32);
    ret[1] = tutti_where(tutti_greater_equal(rounded, y), y, in[1]);
    return 2;
}

/* Numbers of 16 bits that overflow, tested; the body gives both. */
static int tested(const tutti_sym *in, tutti_sym *ret)
{
    tutti_sym y = tutti_mul(in[0], in[1]);
    ret[0] = tutti_cast(tutti_is_finite(y), TUTTI_F32);
    ret[1] = tutti_cast(tutti_greater(tutti_add(in[0], 0.5), in[0]), TUTTI_F32);
    ret[2] = tutti_cast(y, TUTTI_I32);
    return 3;
}

static int halved(const tutti_sym *in, tutti_sym *ret)
{
    ret[0] = tutti_cast(in[0], TUTTI_F16);
    ret[1] = tutti_cast(tutti_cast(tutti_add(in[0], in[1]), TUTTI_BF16), TUTTI_F64);
    return 2;
}

/* What comes in goes out. */
static int passed_through(const tutti_sym *in, tutti_sym *ret)
{
    ret[0] = tutti_add(in[0], in[1]);
    ret[1] = in[0];
    ret[2] = ret[0];
    return 3;
}

static const char *const shapes[][2] = {
    {"f32[5000]", "f32[5000]"},    {"f32[37]", "f32[37]"},        {"f32[40000]", "f32[]"},
    {"f32[300,70]", "f32[70]"},    {"f32[300,70]", "f32[300,1]"}, {"f32[3,5000]", "f32[5000]"},
    {"f32[4,30,50]", "f32[30,1]"}, {"f32[7,9,5]", "f32[7,1,5]"},  {"f32[0,3]", "f32[3]"},
    {"f32[1]", "f32[1]"},          {"f64[20,30]", "f64[30]"},
};

TUTTI_TEST(fused_elementwise_matches_reference)
{
    for (size_t i = 0; i < TUTTI_COUNT(shapes); i++) {
        check_fused(cheap, 2, shapes[i], 1e-6);
        check_fused(changed_first, 2, shapes[i], 1e-5);
        check_fused(two_results, 2, shapes[i], 1e-6);
    }
}

TUTTI_TEST(fused_elementwise_converts_between_steps)
{
    for (size_t i = 0; i < TUTTI_COUNT(shapes) - 1; i++)
        check_fused(conversions, 2, shapes[i], 1e-6);
}

TUTTI_TEST(fused_elementwise_compares_what_is_rounded)
{
    check_fused(compared, 2, (const char *[]){"bf16[30,40]", "bf16[40]"}, 1e-2);
    check_fused(compared, 2, (const char *[]){"f16[3000]", "f16[3000]"}, 1e-3);
    check_fused(compared, 2, (const char *[]){"f32[30,40]", "f32[30,1]"}, 1e-6);
}

TUTTI_TEST(fused_elementwise_tests_what_is_rounded)
{
    check_fused(tested, 2, (const char *[]){"f16[2]{=60000,2048}", "f16[2]{=2,3}"}, 0);
    check_fused(tested, 2, (const char *[]){"bf16[2]{=3e38,257}", "bf16[2]{=2,3}"}, 0);
}

/* A little more than the middle between two numbers of 16 bits, which a float does not see. */
TUTTI_TEST(fused_elementwise_rounds_once)
{
    check_fused(
        halved, 2,
        (const char *[]){"f64[4]{=1.00048828218132,1.00390625093132,-1.00048828218132,1e300}",
                         "f64[4]{=0,0,0,1e-60}"},
        0);
}

TUTTI_TEST(fused_elementwise_passes_inputs_through)
{
    check_fused(passed_through, 2, (const char *[]){"f32[3000]", "f32[3000]"}, 0);
    check_fused(passed_through, 2, (const char *[]){"bf16[30,40]", "bf16[40]"}, 0);
}
