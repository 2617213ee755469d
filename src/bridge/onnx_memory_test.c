/* onnx_memory_test.c: wherever memory ends, it is not the model that is blamed. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/job.h"
#include "base/shortage.h"
#include "base/test.h"
#include "bridge/onnx_test.h"

/* Convolution, pooling, products and softmax, with an open batch. */
static tutti_sym network(tutti_graph *g, tutti_sym x)
{
    tutti_sym k = tutti_variable(g, tutti_normal_init(0, 1, 3, 3, 1, 2), .name = "k");
    tutti_sym w = tutti_variable(g, tutti_normal_init(0, 1, 8, 5), .name = "w");
    tutti_sym y = tutti_relu(tutti_nn_conv2d(x, k, .padding = "same"));
    y = tutti_reshape(tutti_nn_max_pool2d(y, .pool_size = {2, 2}), TUTTI_ANY, 8);
    return tutti_softmax(tutti_matmul(y, w));
}

typedef struct attempt {
    tutti_session *session;
    tutti_sym in, out;
    const char *path;
} attempt;

static tutti_status export(const attempt *a)
{
    return tutti_export_graph_onnx(a->session, a->path, 1, &a->in, 1, &a->out);
}

static tutti_status import(const attempt *a)
{
    tutti_graph *g = NULL;
    tutti_onnx_ports ports;
    TUTTI_TRY(tutti_graph_create(&g));
    tutti_status status = tutti_import_graph_onnx(g, a->path, &ports);
    tutti_graph_destroy(g);
    return status;
}

static tutti_status import_model(const attempt *a)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_status status = tutti_job_check(job);
    if (status == TUTTI_OK) {
        tutti_import_onnx(job, a->path);
        status = tutti_job_check(job);
    }
    tutti_error error;
    tutti__error_capture(status, &error);
    tutti__job_discard(job);
    return status == TUTTI_OK ? TUTTI_OK : tutti__error_restore(&error);
}

/* Each attempt comes further than the one before, until one succeeds. */
static void try_with_more(tutti_status (*call)(const attempt *a), const attempt *a)
{
    tutti_shortage shortage = tutti__shortage_begin();
    tutti_status status;
    int failures = 0;
    do {
        status = call(a);
        failures += status != TUTTI_OK;
    } while (status == TUTTI_NO_MEMORY && tutti__shortage_ease(&shortage));
    tutti__shortage_end(&shortage);
    if (status != TUTTI_NO_MEMORY) /* pieces that lie apart may be too small to the end */
        CHECK_OK(status);
    CHECK_OK(call(a));
    CHECK(failures > 2);
}

TUTTI_TEST(onnx_without_memory_says_so)
{
    tutti__shortage_or_skip();
    char path[] = "/tmp/tutti-onnx-XXXXXX";
    tutti_graph *g;
    attempt a = {.path = path};
    close(mkstemp(path));
    CHECK_OK(tutti_graph_create(&g));
    a.in = tutti_placeholder_named(g, "in", TUTTI_F32, TUTTI_ANY, 4, 4, 1);
    a.out = network(g, a.in);
    CHECK_OK(tutti_session_open(&a.session, g));
    CHECK_OK(tutti_run(a.session, .target = tutti_initialize_variables(g)));
    CHECK_OK(export(&a));
    try_with_more(import, &a);
    try_with_more(export, &a);
    try_with_more(import_model, &a);
    tutti_session_close(a.session);
    tutti_graph_destroy(g);
    remove(path);
}
