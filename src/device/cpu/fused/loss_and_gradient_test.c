/* A loss beside its gradient, against the reference of both. */
#include "base/test.h"
#include "device/cpu/kernel_check.h"
#include "ops/build.h"

static int check(const char *logits, const char *labels, const char *grad)
{
    const char *const texts[] = {logits, labels, grad};
    tutti_graph *body;
    tutti_tensor *values[3];
    tutti_sym x[3];
    CHECK_OK(tutti_graph_create(&body));
    for (int i = 0; i < 3; i++) {
        tutti_sample *sample;
        CHECK_OK(tutti__sample_parse(tutti_op_find("identity"), texts[i], 3, &sample));
        values[i] = tutti_tensor_retain(sample->values[0]);
        x[i] = (tutti_parameter)(body, i, sample->types[0]);
        tutti__sample_free(sample);
    }
    tutti_sym backward =
        tutti_apply_op(body, "sparse_softmax_cross_entropy_backward", 3, x, 0, NULL);
    tutti_sym loss = tutti_apply_op(body, "sparse_softmax_cross_entropy", 2, x, 0, NULL);
    CHECK_OK(tutti__graph_result(body, tutti__edge(backward)));
    CHECK_OK(tutti__graph_result(body, tutti__edge(loss)));
    int bids = tutti__kernel_check_fused("fused_checked", "loss_and_gradient", body, 3, values, -1);
    for (int i = 0; i < 3; i++)
        tutti_tensor_release(values[i]);
    tutti_graph_destroy(body);
    return bids;
}

TUTTI_TEST(kernel_loss_and_gradient)
{
    CHECK_INT(check("f32[64,10]{-3:3}", "i64[64]{0:9}", "f32[64]"), 1);
    CHECK_INT(check("f32[3,50,37]{-30:30}", "i32[3,50]{0:36}", "f32[3,50]"), 1);
    CHECK_INT(check("f32[2,5000]{-3:3}", "i64[2]{=4999,0}", "f32[2]"), 1);
    CHECK_INT(check("f32[3,4]{=3e7}", "i64[3]{0:3}", "f32[3]"), 1);
    CHECK_INT(check("f32[0,4]", "i64[0]", "f32[0]"), 1);
    CHECK_INT(check("f64[5,4]", "i64[5]{0:3}", "f64[5]"), 0);
}
