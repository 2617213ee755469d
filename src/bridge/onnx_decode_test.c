/* onnx_decode_test.c: files that are wrong: damaged, lying, or with things that are not known. */
#include "base/test.h"

#include <string.h>

#include "bridge/onnx.h"
#include "bridge/onnx_test.h"
#include "io/protobuf.h"

static void put_node(tutti_text *graph, const char *type, const char *domain, const char *in,
                     const char *out)
{
    size_t mark = tutti__proto_open(graph, 1);
    tutti__proto_put_string(graph, 1, in);
    tutti__proto_put_string(graph, 2, out);
    tutti__proto_put_string(graph, 3, type);
    tutti__proto_put_string(graph, 4, type);
    tutti__proto_put_string(graph, 7, domain);
    tutti__proto_close(graph, mark);
}

static void put_port(tutti_text *graph, uint32_t number, const char *name)
{
    size_t value = tutti__proto_open(graph, number);
    tutti__proto_put_string(graph, 1, name);
    size_t type = tutti__proto_open(graph, 2), tensor = tutti__proto_open(graph, 1);
    tutti__proto_put_int(graph, 1, 1);
    size_t shape = tutti__proto_open(graph, 2), dim = tutti__proto_open(graph, 1);
    tutti__proto_put_string(graph, 2, "batch");
    tutti__proto_close(graph, dim);
    tutti__proto_close(graph, shape);
    tutti__proto_close(graph, tensor);
    tutti__proto_close(graph, type);
    tutti__proto_close(graph, value);
}

/* A model of these graph bytes. */
static tutti_status load(const tutti_text *graph, int opset, tutti_onnx **ret)
{
    tutti_text text = {0};
    tutti__proto_put_int(&text, 1, 8);
    tutti__proto_put_bytes(&text, 7, graph->data, graph->size);
    size_t mark = tutti__proto_open(&text, 8);
    tutti__proto_put_int(&text, 2, opset);
    tutti__proto_close(&text, mark);
    tutti_status status = tutti__onnx_decode("x.onnx", text.data, text.size, ret);
    tutti__text_free(&text);
    return status;
}

TUTTI_TEST(onnx_import_names_everything_that_is_missing)
{
    tutti_text graph = {0};
    tutti_onnx *onnx;
    tutti_job *job = tutti_open(NULL, NULL);
    put_node(&graph, "ImageDecoder", "", "x", "a");
    put_node(&graph, "Relu", "", "a", "b");
    put_node(&graph, "FusedThing", "com.example", "b", "y");
    put_port(&graph, 11, "x");
    put_port(&graph, 12, "y");
    CHECK_OK(load(&graph, 17, &onnx));
    CHECK_STATUS(tutti__onnx_into_model(onnx, "x.onnx", tutti_functional(job)), TUTTI_UNSUPPORTED);
    CHECK_CONTAINS(tutti_error_message(), "ImageDecoder");
    CHECK_CONTAINS(tutti_error_message(), "com.example.FusedThing");
    CHECK_CONTAINS(tutti_error_message(), "opset 17");
    tutti__onnx_free(onnx);
    tutti__text_free(&graph);
    CHECK_INT(tutti_close(job), 0);
}

TUTTI_TEST(onnx_import_refuses_broken_graphs)
{
    static const struct {
        const char *type, *in;
        int opset;
        const char *part;
    } cases[] = {
        {"Relu", "nothing", 17, "made by nobody"},
        {"MatMul", "x", 17, "input 1 is missing"},
        {"Relu", "x", 5, "7 to 28"},
        {"Conv", "x", 17, "made by nobody"},
    };
    for (size_t i = 0; i < TUTTI_COUNT(cases); i++) {
        tutti_text graph = {0};
        tutti_onnx *onnx;
        tutti_job *job = tutti_open(NULL, NULL);
        put_node(&graph, cases[i].type, "", cases[i].in, "y");
        put_port(&graph, 11, "x");
        put_port(&graph, 12, "y");
        CHECK_OK(load(&graph, cases[i].opset, &onnx));
        CHECK(tutti__onnx_into_model(onnx, "x.onnx", tutti_functional(job)) != TUTTI_OK);
        CHECK_CONTAINS(tutti_error_message(), cases[i].part);
        CHECK_CONTAINS(tutti_error_message(), "x.onnx");
        tutti__onnx_free(onnx);
        tutti__text_free(&graph);
        tutti_close(job);
    }
}

/* A tensor message: dims, type and raw bytes. */
static void put_tensor(tutti_text *graph, int64_t dim, int64_t type, size_t bytes, bool outside)
{
    size_t mark = tutti__proto_open(graph, 5);
    tutti__proto_put_int(graph, 1, dim);
    tutti__proto_put_int(graph, 2, type);
    tutti__proto_put_string(graph, 8, "w");
    tutti__proto_put_bytes(graph, 9, "0123456789abcdef", bytes);
    if (outside)
        tutti__proto_put_int(graph, 14, 1);
    tutti__proto_close(graph, mark);
}

TUTTI_TEST(onnx_decode_refuses_tensors_that_lie)
{
    static const struct {
        int64_t dim, type;
        size_t bytes;
        bool outside;
        tutti_status status;
    } cases[] = {
        {4, 1, 16, false, TUTTI_OK},
        {5, 1, 16, false, TUTTI_CORRUPT},
        {3, 1, 13, false, TUTTI_CORRUPT},
        {-1, 1, 4, false, TUTTI_CORRUPT},
        {INT64_MAX, 7, 8, false, TUTTI_CORRUPT},
        {4, 1, 16, true, TUTTI_UNSUPPORTED},
        {4, 14, 16, false, TUTTI_OK}, /* complex64 is one of the model's needs */
    };
    for (size_t i = 0; i < TUTTI_COUNT(cases); i++) {
        tutti_text graph = {0};
        tutti_onnx *onnx;
        put_tensor(&graph, cases[i].dim, cases[i].type, cases[i].bytes, cases[i].outside);
        CHECK_STATUS(load(&graph, 17, &onnx), cases[i].status);
        if (cases[i].status == TUTTI_OK) {
            CHECK_INT(onnx->needs.count, cases[i].type == 14);
            tutti__onnx_free(onnx);
        }
        tutti__text_free(&graph);
    }
}

/* Every cut and many changed bytes: an answer or an error, never more. */
TUTTI_TEST(onnx_damaged_files_are_refused_or_read)
{
    onnx_case c;
    tutti_onnx *onnx;
    tutti_tensor *y;
    tutti_text text = {0};
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_model *m = tutti_sequential(job, tutti_conv2d(2, 3, .activation = TUTTI_RELU),
                                      tutti_flatten(), tutti_dense(2));
    onnx_one(&c, m, ONNX_FLOATS(1, 5, 5, 1));
    CHECK_OK(tutti_predict_on_batch(m, 1, c.tensors, 1, &y));
    tutti_tensor_release(y);
    tutti_onnx_port in = {"x", m->fed.data[0]}, out = {"y", m->answers.data[0]};
    CHECK_OK(tutti__onnx_from_graph(m->graph, m->session, "g", 17, 1, &in, 1, &out, &onnx));
    CHECK_OK(tutti__onnx_encode(onnx, &text));
    tutti__onnx_free(onnx);
    for (size_t i = 0; i < text.size; i++) {
        if (tutti__onnx_decode("cut", text.data, i, &onnx) == TUTTI_OK)
            tutti__onnx_free(onnx);
        char kept = text.data[i];
        text.data[i] = (char)(kept ^ (1 << i % 8));
        if (tutti__onnx_decode("changed", text.data, text.size, &onnx) == TUTTI_OK) {
            tutti_job *other = tutti_open(NULL, NULL);
            (void)tutti__onnx_into_model(onnx, "changed", tutti_functional(other));
            tutti__onnx_free(onnx);
            tutti_job_check(other);
            CHECK(tutti_close(other) <= 1);
        }
        text.data[i] = kept;
    }
    tutti__text_free(&text);
    tutti_tensor_release(c.tensors[0]);
    CHECK_INT(tutti_close(job), 0);
}
