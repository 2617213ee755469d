/* onnx.c: a model goes to an ONNX file and comes back as a model and as a graph. */
#include <tutti/tutti.h>

#include "check.h"

int main(void)
{
    const char *path = "/tmp/tutti_outside_onnx.onnx";
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_model *model =
        tutti_sequential(job, tutti_dense(4, .activation = TUTTI_TANH), tutti_dense(2));
    tutti_tensor *x, *y, *z, *again;
    tutti_graph *graph;
    tutti_session *session;
    tutti_onnx_ports ports;
    CHECK(tutti_tensor_create(TUTTI_F32, 2, (int64_t[]){3, 5}, &x) == TUTTI_OK);
    for (int i = 0; i < 15; i++)
        tutti_tensor_set(x, i, i * 0.1 - 0.7);
    CHECK(tutti_predict_on_batch(model, 1, &x, 1, &y) == TUTTI_OK);
    CHECK(tutti_export_onnx(model, path) == TUTTI_OK);
    tutti_model *back = tutti_import_onnx(job, path);
    CHECK(tutti_predict_on_batch(back, 1, &x, 1, &z) == TUTTI_OK);
    CHECK(tutti_graph_create(&graph) == TUTTI_OK);
    CHECK(tutti_import_graph_onnx(graph, path, &ports, .constants = true) == TUTTI_OK);
    CHECK(ports.input_count == 1 && ports.output_count == 1);
    CHECK(tutti_session_open(&session, graph) == TUTTI_OK);
    CHECK(tutti_run(session, .feed = TUTTI_FEED({ports.inputs[0].sym, x}),
                    .fetch = TUTTI_FETCH({ports.outputs[0].sym, &again})) == TUTTI_OK);
    for (int i = 0; i < 6; i++) {
        CHECK_NEAR(tutti_tensor_get(z, i), tutti_tensor_get(y, i), 1e-5);
        CHECK_NEAR(tutti_tensor_get(again, i), tutti_tensor_get(y, i), 1e-5);
    }
    tutti_tensor_release(x);
    tutti_tensor_release(y);
    tutti_tensor_release(z);
    tutti_tensor_release(again);
    tutti_session_close(session);
    tutti_graph_destroy(graph);
    remove(path);
    CHECK(tutti_close(job) == 0);
    return check_end();
}
