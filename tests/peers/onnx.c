/* onnx.c: the library's side of tests/peers/onnx_check.py.
 *
 *     onnx FOLDER    writes NAME.OPSET.onnx, NAME.inputs.npz and NAME.outputs.npz for each network
 *                    of src/bridge/onnx_test.h, and the same for the samples of every operator
 *                    that has a form in ONNX */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/world.h"
#include "bridge/onnx.h"
#include "bridge/onnx_test.h"
#include "ops/sample.h"
#include "tutti/files.h"

static void must(tutti_status status, const char *name)
{
    if (status == TUTTI_OK)
        return;
    fprintf(stderr, "onnx: %s: %s\n", name, tutti_error_message());
    exit(1);
}

static const char *folder;

static void save(const char *name, const char *what, int count, const char *const *names,
                 tutti_tensor *const *tensors)
{
    char path[4096];
    tutti_named_tensor named[64];
    for (int i = 0; i < count; i++)
        named[i] = (tutti_named_tensor){names[i], tensors[i]};
    snprintf(path, sizeof path, "%s/%s.%s.npz", folder, name, what);
    must(tutti_npz_save(path, (size_t)count, named, false), name);
}

static void write_network(const onnx_network *network)
{
    const char *name = network->name, *inputs[8], *answers[8];
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_tensor *outputs[8];
    onnx_case c;
    char path[4096];
    network->make(job, &c);
    must(tutti_predict_on_batch(c.model, c.inputs, c.tensors, c.outputs, outputs), name);
    for (int k = 0; k < c.outputs; k++)
        tutti_tensor_release(outputs[k]);
    must(onnx_vary(c.model), name);
    must(tutti_predict_on_batch(c.model, c.inputs, c.tensors, c.outputs, outputs), name);
    for (int opset = 17; opset <= 21; opset++) {
        snprintf(path, sizeof path, "%s/%s.%d.onnx", folder, name, opset);
        must(tutti_export_onnx(c.model, path, .opset = opset), name);
    }
    for (int k = 0; k < c.inputs; k++)
        inputs[k] = c.model->inputs.data[k].name;
    for (int k = 0; k < c.outputs; k++)
        answers[k] = c.model->outputs.data[k].name;
    save(name, "inputs", c.inputs, inputs, c.tensors);
    save(name, "outputs", c.outputs, answers, outputs);
    for (int k = 0; k < c.inputs; k++)
        tutti_tensor_release(c.tensors[k]);
    for (int k = 0; k < c.outputs; k++)
        tutti_tensor_release(outputs[k]);
    must(tutti_close(job) == 0 ? TUTTI_OK : TUTTI_INTERNAL, name);
}

/* Types that onnxruntime has kernels of for every operator. */
static bool is_common(const tutti_sample *s)
{
    for (int i = 0; i < s->input_count; i++)
        if (s->types[i].dtype != TUTTI_F32 && s->types[i].dtype != TUTTI_I64 &&
            s->types[i].dtype != TUTTI_I32 && s->types[i].dtype != TUTTI_BOOL)
            return false;
    tutti_dtype made = s->node->types[0].dtype;
    return made == TUTTI_F32 || made == TUTTI_I64 || made == TUTTI_I32 || made == TUTTI_BOOL;
}

static void write_sample(const tutti_sample *s, const char *name)
{
    tutti_onnx_port inputs[16], output = {"output", {0}};
    const char *names[16];
    tutti_session *session;
    tutti_onnx *onnx;
    tutti_text text = {0};
    tutti_tensor *outputs[16];
    char path[4096];
    must(tutti_session_open(&session, s->graph), name);
    for (int i = 0; i < s->input_count; i++) {
        names[i] = s->node->inputs[i].node->name;
        inputs[i] = (tutti_onnx_port){names[i], tutti__sym(s->node->inputs[i].node, 0)};
    }
    output.sym = tutti__sym(s->node, 0);
    for (int opset = 17; opset <= 21; opset += 4) {
        tutti_status status = tutti__onnx_from_graph(s->graph, session, "sample", opset,
                                                     s->input_count, inputs, 1, &output, &onnx);
        if (status == TUTTI_UNSUPPORTED) {
            printf("%s: %s\n", name, tutti_error_message());
            break;
        }
        must(status, s->text);
        must(tutti__onnx_encode(onnx, &text), name);
        snprintf(path, sizeof path, "%s/%s.%d.onnx", folder, name, opset);
        must(tutti__world()->write_file(tutti__world()->self, path, text.data, text.size), name);
        tutti__onnx_free(onnx);
        text.size = 0;
    }
    must(tutti__sample_run(s, outputs), name);
    save(name, "inputs", s->input_count, names, s->values);
    save(name, "outputs", 1, &output.name, outputs);
    for (int i = 0; i < s->output_count; i++)
        tutti_tensor_release(outputs[i]);
    tutti__text_free(&text);
    tutti_session_close(session);
}

/* Operators whose inputs must be weights are in the networks. */
static bool is_recurrent(const char *op)
{
    return strcmp(op, "lstm") == 0 || strcmp(op, "gru") == 0 || strcmp(op, "simple_rnn") == 0;
}

static void write_samples(const tutti_op *op)
{
    tutti_sample *sample;
    char name[200];
    if (!tutti__onnx_writer(op->name) || is_recurrent(op->name) || !op->samples ||
        op->flags & (TUTTI_OP_HANDLE | TUTTI_OP_TAKES_HANDLE))
        return;
    for (int i = 0; op->samples[i]; i++) {
        must(tutti__sample_parse(op, op->samples[i], 1, &sample), op->name);
        snprintf(name, sizeof name, "op_%s_%d", op->name, i);
        if (is_common(sample))
            write_sample(sample, name);
        tutti__sample_free(sample);
    }
}

int main(int argc, char **argv)
{
    static const tutti_op *ops[1000];
    if (argc != 2)
        return 2;
    folder = argv[1];
    for (size_t i = 0; i < ONNX_NETWORKS; i++)
        write_network(&onnx_networks[i]);
    size_t count = tutti_op_list(1000, ops);
    for (size_t i = 0; i < count && i < 1000; i++)
        write_samples(ops[i]);
    return 0;
}
