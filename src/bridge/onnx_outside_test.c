/* onnx_outside_test.c: weights that stand in other files. */
#include "base/test.h"

#include <stdio.h>
#include <unistd.h>

#include "base/world.h"
#include "bridge/onnx_proto.h"
#include "io/protobuf.h"

/* A model whose weight [dim] stands in `location`, y = x w. Without a length the dimension says it.
 */
static void write_outside(const char *path, const char *location, int64_t offset, int64_t dim,
                          const char *length)
{
    tutti_text graph = {0}, text = {0};
    char number[32];
    size_t node = tutti__proto_open(&graph, 1);
    tutti__proto_put_string(&graph, 1, "x");
    tutti__proto_put_string(&graph, 1, "w");
    tutti__proto_put_string(&graph, 2, "y");
    tutti__proto_put_string(&graph, 4, "Mul");
    tutti__proto_close(&graph, node);
    size_t tensor = tutti__proto_open(&graph, 5);
    tutti__proto_put_int(&graph, 1, dim);
    tutti__proto_put_int(&graph, 2, 1);
    tutti__proto_put_string(&graph, 8, "w");
    snprintf(number, sizeof number, "%lld", (long long)offset);
    const char *entries[][2] = {{"location", location}, {"offset", number}, {"length", length}};
    for (int i = 0; i < (length ? 3 : 2); i++) {
        size_t entry = tutti__proto_open(&graph, 13);
        tutti__proto_put_string(&graph, 1, entries[i][0]);
        tutti__proto_put_string(&graph, 2, entries[i][1]);
        tutti__proto_close(&graph, entry);
    }
    tutti__proto_put_int(&graph, 14, 1);
    tutti__proto_close(&graph, tensor);
    for (uint32_t port = 11; port < 13; port++) {
        size_t value = tutti__proto_open(&graph, port);
        tutti__proto_put_string(&graph, 1, port == 11 ? "x" : "y");
        size_t type = tutti__proto_open(&graph, 2), inner = tutti__proto_open(&graph, 1);
        tutti__proto_put_int(&graph, 1, 1);
        size_t shape = tutti__proto_open(&graph, 2), size = tutti__proto_open(&graph, 1);
        tutti__proto_put_int(&graph, 1, 2);
        tutti__proto_close(&graph, size);
        tutti__proto_close(&graph, shape);
        tutti__proto_close(&graph, inner);
        tutti__proto_close(&graph, type);
        tutti__proto_close(&graph, value);
    }
    tutti__proto_put_int(&text, 1, 8);
    tutti__proto_put_bytes(&text, 7, graph.data, graph.size);
    size_t opset = tutti__proto_open(&text, 8);
    tutti__proto_put_int(&text, 2, 17);
    tutti__proto_close(&text, opset);
    const tutti_world *world = tutti__world();
    CHECK_OK(world->write_file(world->self, path, text.data, text.size));
    tutti__text_free(&graph);
    tutti__text_free(&text);
}

TUTTI_TEST(onnx_reads_data_in_its_folder_and_nowhere_else)
{
    char folder[64], model[128], data[128], link_path[128];
    static const float weights[] = {0, 3, 4};
    const tutti_world *world = tutti__world();
    tutti_onnx *onnx;
    snprintf(folder, sizeof folder, "/tmp/tutti_outside_%d", (int)getpid());
    snprintf(model, sizeof model, "%s/m.onnx", folder);
    snprintf(data, sizeof data, "%s/w.bin", folder);
    snprintf(link_path, sizeof link_path, "%s/away.bin", folder);
    CHECK_OK(world->make_folder(world->self, folder));
    CHECK_OK(world->write_file(world->self, data, weights, sizeof weights));
    write_outside(model, "w.bin", 4, 2, "8");
    CHECK_OK(tutti__onnx_load(model, &onnx));
    CHECK_NEAR(tutti_tensor_get(onnx->graph.initializers.items[0].value, 0), 3, 0);
    CHECK_NEAR(tutti_tensor_get(onnx->graph.initializers.items[0].value, 1), 4, 0);
    tutti__onnx_free(onnx);
    CHECK(symlink("/etc/hostname", link_path) == 0);
    static const char *const wrong[] = {"../w.bin", "/etc/hostname", "a/../../w.bin", "",
                                        "away.bin"};
    for (size_t i = 0; i < TUTTI_COUNT(wrong); i++) {
        write_outside(model, wrong[i], 0, 2, "8");
        CHECK_STATUS(tutti__onnx_load(model, &onnx), TUTTI_INVALID);
        CHECK_CONTAINS(tutti_error_message(), "folder");
    }
    write_outside(model, "w.bin", 8, 2, "8"); /* runs over the end */
    CHECK_STATUS(tutti__onnx_load(model, &onnx), TUTTI_CORRUPT);
    write_outside(model, "w.bin", -4, 2, "8");
    CHECK_STATUS(tutti__onnx_load(model, &onnx), TUTTI_CORRUPT);
    write_outside(model, "none.bin", 0, 2, "8");
    CHECK_STATUS(tutti__onnx_load(model, &onnx), TUTTI_NOT_FOUND);
    write_outside(model, "w.bin", 4, 2, NULL);
    CHECK_OK(tutti__onnx_load(model, &onnx));
    tutti__onnx_free(onnx);
    static const int64_t huge[] = {3, (int64_t)1 << 45, INT64_MAX / 4, INT64_MAX};
    for (size_t i = 0; i < TUTTI_COUNT(huge); i++) { /* no memory is taken for what is not there */
        write_outside(model, "w.bin", 4, huge[i], NULL);
        CHECK_STATUS(tutti__onnx_load(model, &onnx), TUTTI_CORRUPT);
    }
    remove(link_path);
    remove(model);
    remove(data);
    rmdir(folder);
}
