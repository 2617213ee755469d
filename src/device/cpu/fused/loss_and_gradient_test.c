/* A loss beside its gradient, against the reference of both. */
#include "base/test.h"
#include "device/cpu/kernel_check.h"
#include "ops/build.h"

static int check(const char *logits, const char *labels, const char *grad)
{
    const char *const texts[] = {logits, labels, grad};
    tutti_graph *graph, *body;
    tutti_type types[3];
    tutti_tensor *values[3];
    tutti_sym x[3], inputs[3];
    CHECK_OK(tutti_graph_create(&graph));
    CHECK_OK(tutti_graph_create(&body));
    for (int i = 0; i < 3; i++) {
        tutti_sample *sample;
        CHECK_OK(tutti__sample_parse(tutti_op_find("identity"), texts[i], 3, &sample));
        types[i] = sample->types[0];
        values[i] = tutti_tensor_retain(sample->values[0]);
        tutti__sample_free(sample);
        x[i] = (tutti_parameter)(body, i, types[i]);
        inputs[i] = (tutti_placeholder)(graph, types[i]);
    }
    tutti_sym backward =
        tutti_apply_op(body, "sparse_softmax_cross_entropy_backward", 3, x, 0, NULL);
    tutti_sym loss = tutti_apply_op(body, "sparse_softmax_cross_entropy", 2, x, 0, NULL);
    CHECK_OK(tutti__graph_result(body, tutti__edge(backward)));
    CHECK_OK(tutti__graph_result(body, tutti__edge(loss)));
    tutti_attr attrs[] = {TUTTI_GRAPH_ATTR("body", body),
                          TUTTI_STR("pattern", "loss_and_gradient")};
    tutti_sym fused = tutti_apply_op(graph, "fused_checked", 3, inputs, 2, attrs);
    CHECK(tutti_sym_ok(fused));
    tutti_sample sample = {.op = fused.node->op,
                           .input_count = 3,
                           .output_count = 2,
                           .attr_count = fused.node->attr_count,
                           .types = types,
                           .values = values,
                           .attrs = fused.node->attrs,
                           .graph = graph,
                           .node = fused.node};
    int bids = tutti__kernel_check_sample(&sample, -1);
    for (int i = 0; i < 3; i++)
        tutti_tensor_release(values[i]);
    tutti_graph_destroy(graph);
    tutti_graph_destroy(body);
    return bids;
}

TUTTI_TEST(kernel_loss_and_gradient)
{
    CHECK_INT(check("f32[64,10]{-3:3}", "i64[64]{0:9}", "f32[64]"), 1);
    CHECK_INT(check("f32[3,50,37]{-30:30}", "i32[3,50]{0:36}", "f32[3,50]"), 1);
    CHECK_INT(check("f32[2,5000]{-3:3}", "i64[2]{=4999,0}", "f32[2]"), 1);
    CHECK_INT(check("f32[0,4]", "i64[0]", "f32[0]"), 1);
    CHECK_INT(check("f64[5,4]", "i64[5]{0:3}", "f64[5]"), 0);
}
