/* onnx_parts_test.c: the nodes of imported models: found, frozen, cut at, and saved. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bridge/onnx_hand_test.h"
#include "tutti/tutti.h"

static void port(tutti_onnx *onnx, bool input, const char *name, int rank, const int64_t *dims)
{
    tutti_type type = tutti_type_make(TUTTI_F32, rank, dims);
    hand_port(onnx, &onnx->graph, input, name, type);
}

static void weight(tutti_onnx *onnx, const char *name, int rank, const int64_t *dims)
{
    tutti_tensor *tensor;
    CHECK_OK(tutti_tensor_create(TUTTI_F32, rank, dims, &tensor));
    for (int64_t i = 0; i < tutti_tensor_count(tensor); i++)
        tutti_tensor_set(tensor, i, 0.01 * (double)(i % 29) - 0.1);
    CHECK_OK(tutti__onnx_keep(onnx, tensor));
    tutti_onnx_tensor *t = ONNX_PUSH(&onnx->arena, &onnx->graph.initializers);
    CHECK(t != NULL);
    *t = (tutti_onnx_tensor){name, tensor};
}

static void named(tutti_onnx *onnx, const char *name, const char *type, const char *inputs,
                  const char *outputs)
{
    hand_node(onnx, &onnx->graph, type, inputs, outputs)->name = name;
}

/* Convolution, relu, pooling, two products and a head, with names as PyTorch writes them. */
static tutti_model *import(tutti_job *job)
{
    tutti_onnx *onnx = hand_begin();
    tutti_text text = {0};
    char path[64];
    port(onnx, true, "x", 4, (int64_t[]){-1, 2, 6, 6});
    port(onnx, false, "logits", 2, (int64_t[]){-1, 3});
    weight(onnx, "conv1.weight", 4, (int64_t[]){4, 2, 3, 3});
    weight(onnx, "conv1.bias", 1, (int64_t[]){4});
    weight(onnx, "fc1.weight", 2, (int64_t[]){4, 40});
    weight(onnx, "mask", 2, (int64_t[]){40, 40});
    weight(onnx, "fc2.weight", 2, (int64_t[]){40, 3});
    named(onnx, "/conv1/Conv", "Conv", "x conv1.weight conv1.bias", "/conv1/out");
    named(onnx, "/Relu", "Relu", "/conv1/out", "/relu/out");
    named(onnx, "/Pool", "GlobalAveragePool", "/relu/out", "pooled");
    named(onnx, "/Flatten", "Flatten", "pooled", "flat");
    named(onnx, "/fc1/MatMul", "MatMul", "flat fc1.weight", "hidden");
    named(onnx, "/mask/MatMul", "MatMul", "hidden mask", "masked");
    named(onnx, "", "MatMul", "masked fc2.weight", "logits");
    snprintf(path, sizeof path, "/tmp/tutti_onnx_parts_%d.onnx", (int)getpid());
    CHECK_OK(tutti__onnx_encode(onnx, &text));
    FILE *file = fopen(path, "wb");
    CHECK(file != NULL && fwrite(text.data, 1, text.size, file) == text.size);
    fclose(file);
    tutti__text_free(&text);
    tutti__onnx_free(onnx);
    tutti_model *model = tutti_import_onnx(job, path);
    unlink(path);
    CHECK_OK(tutti_job_check(job));
    return model;
}

static tutti_tensor *images(int64_t count)
{
    tutti_tensor *t;
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 4, (int64_t[]){count, 2, 6, 6}, &t));
    for (int64_t i = 0; i < count * 72; i++)
        tutti_tensor_set(t, i, sin(0.7 * (double)i));
    return t;
}

static bool trainable(tutti_model *m, const char *name)
{
    tutti_weight_info info;
    for (int i = 0; i < tutti_weight_count(m); i++) {
        CHECK_OK(tutti_weight_at(m, i, &info));
        if (strcmp(info.name, name) == 0)
            return info.trainable;
    }
    CHECK(!"there is such a weight");
    return false;
}

TUTTI_TEST(onnx_nodes_are_found_and_frozen_by_name)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_model *m = import(job);
    tutti_layer *conv = tutti_find_layer(m, "/conv1/Conv");
    CHECK(conv != NULL);
    CHECK_STR(tutti_layer_kind_name(conv), "Conv");
    CHECK(tutti_find_layer(m, "logits") != NULL); /* has no name of its own */
    CHECK(tutti_find_layer(m, "conv1") == NULL);
    tutti_set_trainable(conv, false);
    CHECK(!trainable(m, "conv1.weight") && !trainable(m, "conv1.bias"));
    CHECK(trainable(m, "fc1.weight"));
    CHECK_OK(tutti_unfreeze(m, "conv1.bias"));
    CHECK(!trainable(m, "conv1.weight") && trainable(m, "conv1.bias"));
    tutti_set_trainable(conv, true);
    CHECK(trainable(m, "conv1.weight"));
    CHECK_OK(tutti_freeze(m, "/fc*, /mask/MatMul"));
    CHECK(!trainable(m, "fc1.weight") && !trainable(m, "mask") && trainable(m, "fc2.weight"));
    CHECK_OK(tutti_freeze(m, "*.weight"));
    CHECK(!trainable(m, "fc2.weight") && trainable(m, "conv1.bias"));
    CHECK_INT(tutti_close(job), 0);
}

TUTTI_TEST(onnx_names_that_are_not_there_are_told)
{
    tutti_job *job = tutti_open(NULL, NULL);
    CHECK_STATUS(tutti_freeze(import(job), "conv1.wieght"), TUTTI_NOT_FOUND);
    CHECK_CONTAINS(tutti_error_message(), "did you mean 'conv1.weight'");
    CHECK_CONTAINS(tutti_error_message(), "its nodes are /conv1/Conv, /Relu");
    CHECK(tutti_close(job) != 0);
}

TUTTI_TEST(onnx_models_frozen_as_a_layer_stay_in_fit)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_layer *body = tutti_model_layer(tutti_cut(import(job), "hidden"));
    tutti_model *m = tutti_functional(job);
    tutti_sym x = tutti_input(m, "x", TUTTI_F32, 2, 6, 6);
    tutti_output(m, "y", tutti_call(tutti_dense(3, .name = "head"), tutti_call(body, x)));
    tutti_set_trainable(body, false);
    tutti_compile(m, .optimizer = tutti_adam(),
                  .loss = tutti_sparse_cross_entropy(.from_logits = true));
    tutti_tensor *in = images(8), *labels, *before[8], *after;
    tutti_weight_info info;
    CHECK_OK(tutti_tensor_create(TUTTI_I32, 1, (int64_t[]){8}, &labels));
    for (int i = 0; i < 8; i++)
        tutti_tensor_set_int(labels, i, i % 3);
    int count = tutti_weight_count(m);
    CHECK_INT(count, 5);
    for (int i = 0; i < count; i++) {
        CHECK_OK(tutti_weight_at(m, i, &info));
        CHECK_OK(tutti_get_weight(m, info.name, &before[i]));
    }
    tutti_dataset *data = tutti_batch(tutti_from_tensor_slices(job, in, labels), 4);
    tutti_fit(m, data, .epochs = 2, .quiet = true);
    for (int i = 0; i < count; i++) {
        CHECK_OK(tutti_weight_at(m, i, &info));
        CHECK_OK(tutti_get_weight(m, info.name, &after));
        bool head = strncmp(info.name, "head/", 5) == 0;
        CHECK_INT(tutti_tensor_same(before[i], after), !head);
        CHECK_INT(info.trainable, head);
        tutti_tensor_release(before[i]);
        tutti_tensor_release(after);
    }
    tutti_tensor_release(in);
    tutti_tensor_release(labels);
    CHECK_INT(tutti_close(job), 0);
}

TUTTI_TEST(onnx_models_are_cut_at_tensors_and_nodes)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_model *m = import(job), *conv = tutti_cut(m, "/relu/out"), *node = tutti_cut(m, "/Relu"),
                *flat = tutti_cut(m, "flat");
    tutti_tensor *x = images(2), *a, *b, *c;
    CHECK_OK(tutti_job_check(job));
    CHECK_OK(tutti_predict_on_batch(conv, 1, &x, 1, &a));
    CHECK_OK(tutti_predict_on_batch(node, 1, &x, 1, &b));
    CHECK_OK(tutti_predict_on_batch(flat, 1, &x, 1, &c));
    CHECK_INT(tutti_tensor_rank(a), 4);
    CHECK_INT(tutti_tensor_dims(a)[1], 4); /* as the file has it: channels first */
    CHECK_INT(tutti_tensor_dims(a)[2], 4);
    CHECK(tutti_tensor_same(a, b));
    double sum = 0;
    for (int64_t i = 0; i < 16; i++)
        sum += tutti_tensor_get(a, 16 + i) / 16;
    CHECK_NEAR(tutti_tensor_get(c, 1), sum, 1e-5);
    CHECK_INT(tutti_weight_count(conv), 2);
    CHECK(tutti_find_layer(conv, "/conv1/Conv") && !tutti_find_layer(conv, "/fc1/MatMul"));
    /* And what was cut is cut again. */
    CHECK_INT(tutti_weight_count(tutti_cut(tutti_cut(m, "hidden"), "/conv1/out")), 2);
    tutti_tensor_release(a);
    tutti_tensor_release(b);
    tutti_tensor_release(c);
    tutti_tensor_release(x);
    CHECK_INT(tutti_close(job), 0);
}

TUTTI_TEST(onnx_summaries_tell_nodes_and_weights)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_model *m = import(job);
    char *text;
    CHECK_OK(tutti_freeze(m, "conv1.weight"));
    CHECK_OK(tutti_summary(m, 1, &text));
    CHECK_CONTAINS(text, "/conv1/Conv (Conv)                 [4, 4, 4]");
    CHECK_CONTAINS(text, "  conv1.weight");
    CHECK_CONTAINS(text, "72  frozen");
    CHECK_CONTAINS(text, "  fc2.weight");
    free(text);
    CHECK_INT(tutti_close(job), 0);
}

static int64_t size_of(const char *path)
{
    struct stat st;
    CHECK_INT(stat(path, &st), 0);
    return st.st_size;
}

TUTTI_TEST(onnx_weights_are_saved_beside_the_json)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_model *m = import(job);
    char path[80], json[100], weights[100];
    snprintf(path, sizeof path, "/tmp/tutti_onnx_parts_%d", (int)getpid());
    snprintf(json, sizeof json, "%s.json", path);
    snprintf(weights, sizeof weights, "%s.safetensors", path);
    tutti_set_trainable(tutti_find_layer(m, "/fc1/MatMul"), false);
    CHECK_OK(tutti_freeze(m, "conv1.bias"));
    tutti_tensor *x = images(2), *a, *b, *c, *bias;
    CHECK_OK(tutti_get_weight(m, "conv1.bias", &bias));
    tutti_tensor_set(bias, 0, 3); /* not the file's any more */
    CHECK_OK(tutti_set_weight(m, "conv1.bias", bias));
    tutti_tensor_release(bias);
    CHECK_OK(tutti_save_model(m, path));
    CHECK(size_of(json) < 8000); /* 1,952 weights */
    tutti_model *again = tutti_load_model(job, path);
    CHECK_OK(tutti_job_check(job));
    CHECK_OK(tutti_predict_on_batch(m, 1, &x, 1, &a));
    CHECK_OK(tutti_predict_on_batch(again, 1, &x, 1, &b));
    CHECK(tutti_tensor_same(a, b));
    CHECK(!trainable(again, "fc1.weight") && !trainable(again, "conv1.bias"));
    CHECK(trainable(again, "conv1.weight"));
    CHECK(tutti_find_layer(again, "/conv1/Conv") != NULL);
    tutti_set_trainable(tutti_find_layer(again, "/conv1/Conv"), false);
    CHECK(!trainable(again, "conv1.weight"));
    /* Inside another model, saved and loaded once more. */
    tutti_model *whole = tutti_functional(job, .name = "whole");
    tutti_sym in = tutti_input(whole, "x", TUTTI_F32, 2, 6, 6);
    tutti_output(whole, "y", tutti_call(tutti_model_layer(tutti_cut(again, "hidden")), in));
    CHECK_OK((tutti_build)(whole, 0, NULL));
    CHECK_OK(tutti_save_model(whole, path));
    tutti_model *loaded = tutti_load_model(job, path);
    CHECK_OK(tutti_predict_on_batch(whole, 1, &x, 1, &c));
    tutti_tensor_release(b);
    CHECK_OK(tutti_predict_on_batch(loaded, 1, &x, 1, &b));
    CHECK(tutti_tensor_same(b, c));
    CHECK(!trainable(loaded, "hand/conv1.weight"));
    unlink(json);
    unlink(weights);
    tutti_tensor_release(a);
    tutti_tensor_release(b);
    tutti_tensor_release(c);
    tutti_tensor_release(x);
    CHECK_INT(tutti_close(job), 0);
}
