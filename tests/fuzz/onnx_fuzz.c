/* onnx_fuzz.c: ONNX models; what is accepted is written and read again, and built into a model. */
#include "bridge/onnx.h"
#include "fuzz.h"

/* Both hold the same; the second came from the first's bytes. */
static void compare(const tutti_onnx *a, const tutti_onnx *b)
{
    promise(a->graph.nodes.count == b->graph.nodes.count);
    promise(a->graph.initializers.count == b->graph.initializers.count);
    promise(a->graph.inputs.count == b->graph.inputs.count);
    promise(a->graph.outputs.count == b->graph.outputs.count);
    promise(a->functions.count == b->functions.count);
    for (size_t i = 0; i < a->graph.initializers.count; i++)
        promise(tutti_tensor_same(a->graph.initializers.items[i].value,
                                  b->graph.initializers.items[i].value));
    for (size_t i = 0; i < a->graph.nodes.count; i++)
        promise(a->graph.nodes.items[i].attrs.count == b->graph.nodes.items[i].attrs.count);
}

static void write_again(const tutti_onnx *onnx)
{
    tutti_text text = {0};
    tutti_onnx *again;
    if (onnx->needs.count > 0) /* of which some cannot be written */
        return;
    promise(tutti__onnx_encode(onnx, &text) == TUTTI_OK);
    promise(tutti__onnx_decode("again", text.data, text.size, &again) == TUTTI_OK);
    compare(onnx, again);
    tutti__onnx_free(again);
    tutti__text_free(&text);
}

static void build(const tutti_onnx *onnx)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_model *model = tutti_functional(job);
    if (went_well(tutti__onnx_into_model(onnx, "input", model)))
        promise(tutti_graph_check(model->blueprint) == TUTTI_OK);
    job->error.status = TUTTI_OK; /* nothing is to be printed */
    tutti_close(job);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tutti_onnx *onnx;
    if (!went_well(tutti__onnx_decode("input", data, size, &onnx)))
        return 0;
    write_again(onnx);
    build(onnx);
    tutti__onnx_free(onnx);
    return 0;
}
