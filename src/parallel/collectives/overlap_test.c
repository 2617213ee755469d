/* overlap_test.c: the order of a step whose sums run beside it. */
#include <string.h>

#include "base/test.h"
#include "parallel/spmd/rewrite.h"
#include "tutti/ops.h"

static tutti_sym named(tutti_graph *g, const char *op, const char *name, tutti_sym x)
{
    return tutti_apply_op_named(g, op, name, 1, &x, 0, NULL);
}

static tutti_sym start(tutti_graph *g, const char *name, tutti_sym x)
{
    tutti_attr attrs[] = {TUTTI_STR("axis", TUTTI_BATCH_AXIS), TUTTI_INT("size", 2),
                          TUTTI_STR("channel", name), TUTTI_INT("outputs", 1),
                          TUTTI_INT("starts", 1)};
    return tutti_apply_op_named(g, "all_reduce_many", name, 1, &x, 5, attrs);
}

/* The names of the nodes in their order, "x y z". */
static const char *order(const tutti_graph *graph)
{
    static char text[512];
    text[0] = 0;
    for (size_t i = 0; i < graph->nodes.count; i++) {
        CHECK_INT(graph->nodes.data[i]->id, i);
        strcat(strcat(text, i > 0 ? " " : ""), graph->nodes.data[i]->name);
    }
    return text;
}

/* Two layers: of each the gradient of the input stands before that of the weights, and all buckets
 * at the end. */
TUTTI_TEST(what_a_bucket_needs_comes_before_what_later_ones_need)
{
    tutti_graph *g;
    CHECK_OK(tutti_graph_create(&g));
    tutti_sym x = tutti_placeholder_named(g, "x", TUTTI_F32, 2, 3);
    named(g, "exp", "metric", x);
    tutti_sym input2 = named(g, "neg", "input2", x), weights2 = named(g, "square", "weights2", x);
    tutti_sym input1 = named(g, "neg", "input1", input2);
    tutti_sym weights1 = named(g, "square", "weights1", input2);
    tutti_sym bucket1 = start(g, "bucket1", weights1), bucket2 = start(g, "bucket2", weights2);
    named(g, "neg", "update", bucket1);
    CHECK_OK(tutti_graph_check(g));
    CHECK_OK(tutti__spmd_overlap(g));
    CHECK_STR(order(g), "x weights2 bucket2 input2 weights1 bucket1 metric input1 update");
    CHECK_OK(tutti_graph_verify(g));
    TUTTI_UNUSED(input1);
    TUTTI_UNUSED(bucket2);
    tutti_graph_destroy(g);
}

/* What has effects keeps its order: a print that stands before another is not passed by it. */
TUTTI_TEST(effects_stay_in_their_order)
{
    tutti_graph *g;
    CHECK_OK(tutti_graph_create(&g));
    tutti_sym x = tutti_placeholder_named(g, "x", TUTTI_F32, 2, 3);
    tutti_sym first = tutti_print(named(g, "exp", "other", x), "first");
    tutti_sym second = tutti_print(named(g, "neg", "gradient", x), "second");
    start(g, "bucket", second);
    CHECK_OK(tutti_graph_check(g));
    CHECK_OK(tutti__spmd_overlap(g));
    const char *text = order(g);
    CHECK(strstr(text, "other") < strstr(text, "gradient"));
    CHECK_OK(tutti_graph_verify(g));
    TUTTI_UNUSED(first);
    tutti_graph_destroy(g);
}
