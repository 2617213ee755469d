/* onnx_backend.c: the library's side of tests/peers/onnx_backend.py: runs ONNX's own node tests.
 *
 *     onnx_backend < LIST     one folder a line, each with model.onnx and test_data_set_0 holding
 *                             input_N.pb and output_N.pb
 *
 * For each folder one line: "pass", "fail" or "unsupported", the folder, and why. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/world.h"
#include "bridge/onnx.h"

#define MOST 32

typedef struct data {
    int count;
    tutti_tensor *tensors[MOST];
    char names[MOST][128];
} data;

static void release(data *d)
{
    for (int i = 0; i < d->count; i++)
        tutti_tensor_release(d->tensors[i]);
    d->count = 0;
}

/* input_0.pb, input_1.pb, … as far as there are any. */
static tutti_status load(const char *folder, const char *what, data *ret)
{
    const tutti_world *world = tutti__world();
    char path[4200];
    void *bytes;
    size_t size;
    for (;; ret->count++) {
        if (ret->count == MOST)
            return tutti_fail(TUTTI_TOO_LARGE, "more than %d %ss", MOST, what);
        snprintf(path, sizeof path, "%s/test_data_set_0/%s_%d.pb", folder, what, ret->count);
        if (world->read_file(world->self, path, (size_t)1 << 30, &bytes, &size) != TUTTI_OK)
            return TUTTI_OK;
        tutti_status status = tutti__onnx_decode_tensor(path, bytes, size, ret->names[ret->count],
                                                        &ret->tensors[ret->count]);
        free(bytes);
        TUTTI_TRY(status);
    }
}

/* ONNX's own tolerances: 1e-3 of the value and 1e-7; of bfloat16 2^-6. */
static tutti_status compare(const char *name, tutti_tensor *got, tutti_tensor *wanted)
{
    char a[TUTTI_TYPE_TEXT], b[TUTTI_TYPE_TEXT];
    tutti_dtype dtype = tutti_tensor_dtype(wanted);
    if (!tutti_type_equal(tutti_tensor_type(got), tutti_tensor_type(wanted)))
        return tutti_fail(TUTTI_CHECK_FAILED, "%s is %s, wanted %s", name,
                          tutti_type_text(tutti_tensor_type(got), a),
                          tutti_type_text(tutti_tensor_type(wanted), b));
    for (int64_t i = 0; i < tutti_tensor_count(wanted); i++) {
        if (dtype == TUTTI_STRING) {
            tutti_string x = tutti_tensor_get_string(got, i);
            tutti_string y = tutti_tensor_get_string(wanted, i);
            if (x.size != y.size || memcmp(x.data, y.data, (size_t)x.size) != 0)
                return tutti_fail(TUTTI_CHECK_FAILED, "%s[%lld] is '%.*s', wanted '%.*s'", name,
                                  (long long)i, (int)x.size, x.data, (int)y.size, y.data);
            continue;
        }
        double x = tutti_tensor_get(got, i), y = tutti_tensor_get(wanted, i);
        bool same = x == y || (isnan(x) && isnan(y));
        bool whole = !tutti_dtype_is_float(dtype);
        double part = dtype == TUTTI_BF16 ? 0x1p-6 : 1e-3;
        if (!same && (whole || !(fabs(x - y) <= 1e-7 + part * fabs(y))))
            return tutti_fail(TUTTI_CHECK_FAILED, "%s[%lld] is %.9g, wanted %.9g", name,
                              (long long)i, x, y);
    }
    return TUTTI_OK;
}

static tutti_status run(tutti_graph *graph, const tutti_onnx_ports *ports, const data *inputs,
                        const data *outputs)
{
    tutti_session *session;
    tutti_feed feeds[MOST];
    tutti_fetch fetches[MOST];
    tutti_tensor *got[MOST] = {0};
    int count = 0;
    if (ports->output_count < outputs->count)
        return tutti_fail(TUTTI_CHECK_FAILED, "the model has %d outputs, the test %d",
                          ports->output_count, outputs->count);
    for (int i = 0; i < ports->input_count; i++)
        for (int k = 0; k < inputs->count; k++)
            if (strcmp(ports->inputs[i].name, inputs->names[k]) == 0)
                feeds[count++] = (tutti_feed){ports->inputs[i].sym, inputs->tensors[k]};
    for (int i = 0; i < outputs->count; i++)
        fetches[i] = (tutti_fetch){ports->outputs[i].sym, &got[i]};
    TUTTI_TRY(tutti_session_open(&session, graph));
    tutti_run_options options = {
        .struct_size = sizeof options, .feed = {count, feeds}, .fetch = {outputs->count, fetches}};
    tutti_run_options first = {.struct_size = sizeof first,
                               .target = tutti_initialize_variables(graph)};
    tutti_status status = tutti_run_with(session, &first);
    if (status == TUTTI_OK)
        status = tutti_run_with(session, &options);
    for (int i = 0; status == TUTTI_OK && i < outputs->count; i++)
        status = compare(ports->outputs[i].name, got[i], outputs->tensors[i]);
    for (int i = 0; i < outputs->count; i++)
        tutti_tensor_release(got[i]);
    tutti_session_close(session);
    return status;
}

static tutti_status test(const char *folder)
{
    char path[4200];
    data inputs = {0}, outputs = {0};
    tutti_onnx *onnx = NULL;
    tutti_graph *graph = NULL;
    tutti_onnx_ports ports;
    tutti_onnx_given given[MOST];
    snprintf(path, sizeof path, "%s/model.onnx", folder);
    tutti_status status = tutti__onnx_load(path, &onnx);
    if (status == TUTTI_OK)
        status = tutti__onnx_check_needs(onnx, "model");
    for (size_t i = 0; status == TUTTI_OK && i < onnx->graph.outputs.count; i++)
        if (onnx->graph.outputs.items[i].other)
            status = tutti_fail(TUTTI_UNSUPPORTED, "lists as outputs are not compared here");
    if (status == TUTTI_OK)
        status = load(folder, "input", &inputs);
    if (status == TUTTI_OK)
        status = load(folder, "output", &outputs);
    for (int i = 0; i < inputs.count; i++)
        given[i] = (tutti_onnx_given){inputs.names[i], inputs.tensors[i]};
    if (status == TUTTI_OK)
        status = tutti_graph_create(&graph);
    tutti_onnx_graph_options options = {.struct_size = sizeof options,
                                        .constants = true,
                                        .given_count = inputs.count,
                                        .given = given};
    if (status == TUTTI_OK)
        status = tutti__onnx_into_graph(onnx, "model", graph, &options, &ports);
    if (status == TUTTI_OK)
        status = run(graph, &ports, &inputs, &outputs);
    if (graph)
        tutti_graph_destroy(graph);
    tutti__onnx_free(onnx);
    release(&inputs);
    release(&outputs);
    return status;
}

int main(void)
{
    char line[4096];
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = 0;
        tutti_status status = test(line);
        printf("%s\t%s\t%s\n",
               status == TUTTI_OK            ? "pass"
               : status == TUTTI_UNSUPPORTED ? "unsupported"
                                             : "fail",
               line, status == TUTTI_OK ? "" : tutti_error_message());
        fflush(stdout);
    }
    return 0;
}
