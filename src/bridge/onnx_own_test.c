/* onnx_own_test.c: operators of users' go into files and come back. */
#include <stdio.h>
#include <unistd.h>

#include "bridge/onnx_hand_test.h"
#include "tutti/tutti.h"

/* y = bend x + sum(shift) */
static double scalar(const double *x, const tutti_attr *attrs, int count)
{
    const tutti_attr *shift = tutti_attr_find(attrs, count, "shift");
    double y = tutti_attr_float(attrs, count, "bend") * x[0];
    for (int i = 0; i < shift->count; i++)
        y += shift->value.floats[i];
    return y + (double)tutti_attr_int(attrs, count, "more");
}

static const tutti_attr_spec attributes[] = {{"bend", TUTTI_ATTR_FLOAT, "1"},
                                             {"shift", TUTTI_ATTR_FLOATS, "[]"},
                                             {"more", TUTTI_ATTR_INT, "0"},
                                             {0}};

static const tutti_op bend = {
    .struct_size = sizeof(tutti_op),
    .name = "onnxtest.deep.bend",
    .version = 3,
    .doc = "onnxtest.deep.bend(x): y = bend x + shift",
    .category = "test",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .flags = TUTTI_OP_ELEMENTWISE | TUTTI_OP_NO_GRADIENT,
    .attrs = attributes,
    .infer = tutti_infer_same,
    .split = tutti_split_elementwise,
    .reference = tutti_reference_elementwise,
    .scalar = scalar,
};

static tutti_model *bent(tutti_job *job)
{
    tutti_model *m = tutti_functional(job);
    tutti_sym x = tutti_input(m, "x", TUTTI_F32, 3);
    tutti_attr attrs[] = {TUTTI_FLOAT("bend", 0.1), /* which no f32 is */
                          TUTTI_FLOATS("shift", 2, ((const double[]){0.25, 1})),
                          TUTTI_INT("more", 7)};
    tutti_output(m, "y", tutti_apply_op(tutti_sym_graph(x), "onnxtest.deep.bend", 1, &x, 3, attrs));
    CHECK_OK((tutti_build)(m, 0, NULL));
    return m;
}

TUTTI_TEST(onnx_files_hold_operators_of_users)
{
    char path[64];
    tutti_job *job = tutti_open(NULL, NULL);
    CHECK_OK(tutti_op_register(&bend));
    snprintf(path, sizeof path, "/tmp/tutti_onnx_own_%d.onnx", (int)getpid());
    CHECK_OK(tutti_export_onnx(bent(job), path));
    tutti_onnx *onnx;
    CHECK_OK(tutti__onnx_load(path, &onnx));
    CHECK_INT(onnx->graph.nodes.count, 1);
    CHECK_STR(onnx->graph.nodes.items[0].type, "bend");
    CHECK_STR(onnx->graph.nodes.items[0].domain, "onnxtest.deep");
    CHECK_STR(onnx->domains.items[0], "onnxtest.deep");
    tutti__onnx_free(onnx);
    tutti_model *m = tutti_import_onnx(job, path);
    unlink(path);
    tutti_tensor *x = hand_tensor(TUTTI_F32, 2, 2, 3, NUMBERS(0, 1, 2, 3, 4, 5)), *y;
    CHECK_OK(tutti_job_check(job));
    CHECK_OK(tutti_predict_on_batch(m, 1, &x, 1, &y));
    for (int i = 0; i < 6; i++)
        CHECK_NEAR(tutti_tensor_get(y, i), (float)(0.1 * i + 8.25), 0);
    tutti_tensor_release(x);
    tutti_tensor_release(y);
    CHECK_INT(tutti_close(job), 0);
}

static tutti_onnx *other(const char *domain, const char *type, const char *attr)
{
    tutti_onnx *onnx = hand_begin();
    hand_port(onnx, &onnx->graph, true, "x", hand_type(TUTTI_F32, 2, -1, 3));
    hand_port(onnx, &onnx->graph, false, "y", hand_type(TUTTI_F32, 2, -1, 3));
    tutti_onnx_node *node = hand_node(onnx, &onnx->graph, type, "x", "y");
    node->domain = domain;
    hand_attr(onnx, node, attr, ONNX_INT)->i = 1;
    return onnx;
}

TUTTI_TEST(onnx_files_name_operators_that_nobody_registered)
{
    tutti_tensor *x = hand_tensor(TUTTI_F32, 2, 1, 3, NUMBERS(0, 1, 2)), *y;
    CHECK_OK(tutti_op_register(&bend));
    tutti_onnx *onnx = other("onnxtest.deep", "unbend", "more");
    CHECK_STATUS(hand_run(onnx, 1, &x, &y), TUTTI_UNSUPPORTED);
    CHECK_CONTAINS(tutti_error_message(), "onnxtest.deep.unbend");
    tutti__onnx_free(onnx);
    onnx = other("onnxtest.deep", "bend", "less");
    CHECK_STATUS(hand_run(onnx, 1, &x, &y), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "no attribute 'less'");
    tutti__onnx_free(onnx);
    onnx = other("onnxtest.deep", "bend", "bend");
    CHECK_STATUS(hand_run(onnx, 1, &x, &y), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "'bend' is not of the operator's kind");
    tutti__onnx_free(onnx);
    tutti_tensor_release(x);
}
