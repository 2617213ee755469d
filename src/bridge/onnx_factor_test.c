/* onnx_factor_test.c: imported models under --precision. */
#include "base/test.h"

#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "bridge/onnx.h"
#include "bridge/onnx_test.h"

static tutti_model *make_model(tutti_job *job)
{
    tutti_model *m = tutti_functional(job);
    tutti_sym x = tutti_input(m, "x", TUTTI_F32, 8, 8, 8);
    x = tutti_call(tutti_flatten(), tutti_call(tutti_conv2d(8, 3), x));
    tutti_output(m, "y", tutti_call(tutti_dense(3), x));
    return m;
}

/* Products of other people's models multiply rounded numbers; outputs stay f32. */
TUTTI_TEST(imported_models_compute_in_the_jobs_precision)
{
    char path[64], name[] = "test", flag[] = "--precision", value[] = "bf16";
    char *words[] = {name, flag, value, NULL}, **argv = words;
    int argc = 3;
    tutti_tensor *x = ONNX_FLOATS(2, 8, 8, 8), *exact, *rounded;
    tutti_job *job = tutti_open(NULL, NULL), *low = tutti_open(&argc, &argv);
    tutti_model *m = make_model(job);
    CHECK_OK(tutti_predict_on_batch(m, 1, &x, 1, &exact));
    snprintf(path, sizeof path, "/tmp/tutti_onnx_factor_%d.onnx", (int)getpid());
    CHECK_OK(tutti_export_onnx(m, path));
    tutti_model *again = tutti_import_onnx(low, path);
    CHECK_OK(tutti_predict_on_batch(again, 1, &x, 1, &rounded));
    CHECK_INT(tutti_tensor_dtype(rounded), TUTTI_F32);
    double apart = 0;
    for (int64_t k = 0; k < 6; k++)
        apart = fmax(apart, fabs(tutti_tensor_get(rounded, k) - tutti_tensor_get(exact, k)));
    CHECK(apart > 1e-5 && apart < 0.05);
    tutti_tensor_release(exact);
    tutti_tensor_release(rounded);
    tutti_tensor_release(x);
    remove(path);
    CHECK_INT(tutti_close(low), 0);
    CHECK_INT(tutti_close(job), 0);
}
