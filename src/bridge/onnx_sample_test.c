/* onnx_sample_test.c: every operator with a rule, there and back: its samples give the same. */
#include "base/test.h"

#include <string.h>

#include "bridge/onnx.h"
#include "ops/sample.h"

/* What an imported sample gives, compared with the operator itself. */
static tutti_status compare_sample(const tutti_sample *s, const tutti_onnx *onnx, tutti_job *job)
{
    tutti_tensor *expected[16], *actual = NULL;
    tutti_model *model = tutti_functional(job);
    TUTTI_TRY(tutti__onnx_into_model(onnx, s->op->name, model));
    TUTTI_TRY(tutti_predict_on_batch(model, s->input_count, s->values, 1, &actual));
    CHECK_OK(tutti__sample_run(s, expected));
    if (tutti_tensor_dtype(expected[0]) == TUTTI_BF16) { /* is written as f32 */
        tutti_tensor *narrow;
        CHECK_OK(tutti_tensor_cast(actual, TUTTI_BF16, &narrow));
        tutti_tensor_release(actual);
        actual = narrow;
    }
    /* Attributes of ONNX's are f32. */
    double tolerance = tutti_tensor_dtype(expected[0]) == TUTTI_F64 ? 1e-6 : -1;
    tutti_status status = tutti__tensor_near(actual, expected[0], tolerance, s->op->name);
    tutti_tensor_release(actual);
    for (int i = 0; i < s->output_count; i++)
        tutti_tensor_release(expected[i]);
    return status;
}

/* There and back; what went wrong is added to the text. Forms that ONNX lacks are passed over. */
static bool check_sample(const tutti_sample *s, tutti_text *failures)
{
    tutti_onnx_port inputs[16], output = {"output", tutti__sym(s->node, 0)};
    tutti_session *session;
    tutti_onnx *onnx;
    for (int i = 0; i < s->input_count; i++)
        inputs[i] = (tutti_onnx_port){s->node->inputs[i].node->name,
                                      tutti__sym(s->node->inputs[i].node, 0)};
    CHECK_OK(tutti_session_open(&session, s->graph));
    tutti_status status = tutti__onnx_from_graph(s->graph, session, "sample", 17, s->input_count,
                                                 inputs, 1, &output, &onnx);
    tutti_session_close(session);
    CHECK(status == TUTTI_OK || status == TUTTI_UNSUPPORTED);
    if (status == TUTTI_UNSUPPORTED)
        return false;
    tutti_job *job = tutti_open(NULL, NULL);
    if (compare_sample(s, onnx, job) != TUTTI_OK)
        tutti__text_add(failures, "%s %s: %s\n", s->op->name, s->text, tutti_error_message());
    tutti__onnx_free(onnx);
    tutti_close(job);
    return true;
}

/* Models take tensors with a batch, whose size is not known (of a shape it is the rank); recurrent
 * weights must be constants; bf16 is written as f32. */
static bool can_be_model(const tutti_sample *s)
{
    int lowest = strcmp(s->op->name, "gather_nd") == 0 ? 2 : 1;
    if (s->input_count == 0 || s->node->types[0].dtype == TUTTI_STRING ||
        strstr("lstm gru simple_rnn fill_dynamic", s->op->name))
        return false;
    for (int i = 0; i < s->input_count; i++)
        if (s->types[i].rank < lowest || s->types[i].handle || s->types[i].dtype == TUTTI_STRING ||
            s->types[i].dtype == TUTTI_BF16)
            return false;
    return true;
}

TUTTI_TEST(onnx_operators_come_back_with_the_same_outputs)
{
    static const tutti_op *ops[1000];
    size_t count = tutti_op_list(1000, ops);
    int checked = 0;
    tutti_text failures = {0};
    for (size_t n = 0; n < count && n < 1000; n++)
        for (int i = 0; ops[n]->samples && ops[n]->samples[i]; i++) {
            tutti_sample *sample;
            if (!tutti__onnx_writer(ops[n]->name))
                break;
            CHECK_OK(tutti__sample_parse(ops[n], ops[n]->samples[i], 1, &sample));
            if (can_be_model(sample))
                checked += check_sample(sample, &failures);
            tutti__sample_free(sample);
        }
    CHECK_STR(failures.data ? failures.data : "", "");
    CHECK(checked > 300);
    tutti__text_free(&failures);
}
