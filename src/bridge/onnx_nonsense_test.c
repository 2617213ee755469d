/* onnx_nonsense_test.c: sizes and attributes that mean nothing are refused, not taken as something
 * else. */
#include "bridge/onnx_hand_test.h"

/* One node of x and what is in the initializers; it must be refused, with these words. */
static void refuse(tutti_onnx *onnx, int rank, const int64_t *dims, const char *words)
{
    tutti_tensor *x, *y = NULL;
    int64_t open[TUTTI_MAX_RANK];
    memcpy(open, dims, (size_t)rank * sizeof *open);
    open[0] = -1;
    hand_port(onnx, &onnx->graph, true, "x", tutti_type_make(TUTTI_F32, rank, open));
    hand_port(onnx, &onnx->graph, false, "y", tutti_type_make(TUTTI_F32, rank, open));
    CHECK_OK(tutti_tensor_create(TUTTI_F32, rank, dims, &x));
    tutti_status status = hand_run(onnx, 1, &x, &y);
    CHECK(status != TUTTI_OK);
    if (status != TUTTI_OK)
        CHECK_CONTAINS(tutti_error_message(), words);
    tutti_tensor_release(x);
    tutti_tensor_release(y);
    tutti__onnx_free(onnx);
}

static void ints(tutti_onnx *onnx, const char *name, int count, const int64_t *values)
{
    tutti_tensor *tensor;
    CHECK_OK(tutti_tensor_from(TUTTI_I64, 1, (int64_t[]){count}, values, &tensor));
    CHECK_OK(tutti__onnx_keep(onnx, tensor));
    tutti_onnx_tensor *t = ONNX_PUSH(&onnx->arena, &onnx->graph.initializers);
    CHECK(t != NULL);
    *t = (tutti_onnx_tensor){name, tensor};
}

static void attr_ints(tutti_onnx *onnx, tutti_onnx_node *node, const char *name, int count,
                      const int64_t *values)
{
    tutti_onnx_attr *attr = hand_attr(onnx, node, name, ONNX_INTS);
    for (int i = 0; i < count; i++) {
        int64_t *slot = ONNX_PUSH(&onnx->arena, &attr->ints);
        CHECK(slot != NULL);
        *slot = values[i];
    }
}

#define DIMS(...)                                                                                  \
    (int)(sizeof((int64_t[]){__VA_ARGS__}) / 8), (int64_t[])                                       \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

static void refuse_list(const char *type, int count, const int64_t *values, const char *words)
{
    tutti_onnx *onnx = hand_begin();
    ints(onnx, "n", count, values);
    hand_node(onnx, &onnx->graph, type, "x n", "y");
    refuse(onnx, DIMS(2, 3), words);
}

TUTTI_TEST(onnx_pads_are_no_nonsense)
{
    refuse_list("Pad", DIMS(0, INT64_MIN, 0, 5), "out of range");
    refuse_list("Pad", DIMS(0, INT64_MAX, 0, INT64_MAX), "out of range");
    refuse_list("Pad", DIMS(0, -2, 0, -2), "takes 4 away from an axis of 3");
}

TUTTI_TEST(onnx_shapes_are_no_nonsense)
{
    refuse_list("Reshape", DIMS(-1, -1), "more than one dimension is -1");
    refuse_list("Reshape", DIMS(2, -3), "size -3 cannot be");
    refuse_list("Expand", DIMS(2, -3), "size -3 cannot be");
    refuse_list("Tile", DIMS(1, -1), "ile");
    refuse_list("Split", DIMS(4), "the sizes add up to 4");
}

static void refuse_number(const char *type, const char *inputs, const char *name, int64_t value,
                          int rank, const int64_t *dims, const char *words)
{
    tutti_onnx *onnx = hand_begin();
    tutti_tensor *kernel;
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 4, (int64_t[]){4, 4, 1, 1}, &kernel));
    CHECK_OK(tutti__onnx_keep(onnx, kernel));
    tutti_onnx_tensor *t = ONNX_PUSH(&onnx->arena, &onnx->graph.initializers);
    CHECK(t != NULL);
    *t = (tutti_onnx_tensor){"w", kernel};
    hand_constant(onnx, &onnx->graph, "c", TUTTI_F32, 1, 4, NUMBERS(1, 1, 1, 1));
    tutti_onnx_node *node = hand_node(onnx, &onnx->graph, type, inputs, "y");
    hand_attr(onnx, node, name, ONNX_INT)->i = value;
    if (strcmp(type, "LpPool") == 0)
        attr_ints(onnx, node, "kernel_shape", DIMS(1, 1));
    refuse(onnx, rank, dims, words);
}

TUTTI_TEST(onnx_attributes_are_no_nonsense)
{
    refuse_number("Conv", "x w", "group", 0, DIMS(1, 4, 3, 3), "group is 0");
    refuse_number("Conv", "x w", "group", -2, DIMS(1, 4, 3, 3), "group is -2");
    refuse_number("ConvTranspose", "x w", "group", 0, DIMS(1, 4, 3, 3), "group is 0");
    refuse_number("DepthToSpace", "x", "blocksize", INT64_C(1) << 32, DIMS(1, 4, 3, 3),
                  "blocksize is 4294967296");
    refuse_number("DepthToSpace", "x", "blocksize", 0, DIMS(1, 4, 3, 3), "blocksize is 0");
    refuse_number("DepthToSpace", "x", "blocksize", 3, DIMS(9, 4, 3, 3), "not a multiple of 9");
    refuse_number("SpaceToDepth", "x", "blocksize", 2, DIMS(2, 4, 3, 4), "not a multiple of 2");
    refuse_number("LpNormalization", "x", "p", (INT64_C(1) << 32) + 2, DIMS(1, 4, 3, 3), "p is");
    refuse_number("LpPool", "x", "p", 0, DIMS(1, 4, 3, 3), "p is 0");
    refuse_number("GlobalLpPool", "x", "p", -1, DIMS(1, 4, 3, 3), "p is -1");
    refuse_number("LRN", "x", "size", 0, DIMS(1, 4, 3, 3), "size is 0");
    refuse_number("GroupNormalization", "x c c", "num_groups", 0, DIMS(1, 4, 3, 3),
                  "num_groups is 0");
    refuse_number("GroupNormalization", "x c c", "num_groups", 3, DIMS(1, 4, 3, 3),
                  "4 channels are not 3 groups");
}

TUTTI_TEST(onnx_transposed_windows_are_for_their_axes)
{
    static const char *const names[] = {"output_shape", "output_padding", "output_padding"};
    static const int64_t values[] = {5, 5, -1};
    for (int i = 0; i < 3; i++) {
        tutti_onnx *onnx = hand_begin();
        tutti_tensor *kernel;
        CHECK_OK(tutti_tensor_create(TUTTI_F32, 4, (int64_t[]){4, 4, 1, 1}, &kernel));
        CHECK_OK(tutti__onnx_keep(onnx, kernel));
        tutti_onnx_tensor *t = ONNX_PUSH(&onnx->arena, &onnx->graph.initializers);
        CHECK(t != NULL);
        *t = (tutti_onnx_tensor){"w", kernel};
        tutti_onnx_node *node = hand_node(onnx, &onnx->graph, "ConvTranspose", "x w", "y");
        attr_ints(onnx, node, names[i], i < 2 ? 1 : 2, (int64_t[]){values[i], values[i]});
        refuse(onnx, DIMS(1, 4, 3, 3), "are not for 2 axes, or out of range");
    }
}

/* 0 in the file is 0, not a builder's default. */
TUTTI_TEST(onnx_an_epsilon_of_0_is_none)
{
    tutti_onnx *onnx = hand_begin();
    tutti_tensor *x = hand_tensor(TUTTI_F32, 2, 1, 2, NUMBERS(0, 0.002)), *y;
    hand_port(onnx, &onnx->graph, true, "x", hand_type(TUTTI_F32, 2, -1, 2));
    hand_port(onnx, &onnx->graph, false, "y", hand_type(TUTTI_F32, 2, -1, 2));
    hand_constant(onnx, &onnx->graph, "s", TUTTI_F32, 1, 2, NUMBERS(1, 1));
    tutti_onnx_node *node = hand_node(onnx, &onnx->graph, "LayerNormalization", "x s", "y");
    hand_attr(onnx, node, "epsilon", ONNX_FLOAT)->f = 0;
    CHECK_OK(hand_run(onnx, 1, &x, &y));
    CHECK_NEAR(tutti_tensor_get(y, 0), -1, 1e-4);
    CHECK_NEAR(tutti_tensor_get(y, 1), 1, 1e-4);
    tutti_tensor_release(x);
    tutti_tensor_release(y);
    tutti__onnx_free(onnx);
}

TUTTI_TEST(onnx_texts_are_not_cut_at_a_zero_byte)
{
    tutti_onnx *onnx = hand_begin(), *again;
    tutti_text text = {0};
    hand_port(onnx, &onnx->graph, true, "x", hand_type(TUTTI_F32, 1, -1, 0));
    hand_port(onnx, &onnx->graph, false, "y", hand_type(TUTTI_F32, 1, -1, 0));
    hand_node(onnx, &onnx->graph, "Identity", "x", "y")->name = "place.of.it";
    CHECK_OK(tutti__onnx_encode(onnx, &text));
    for (size_t i = 0; i + 11 < text.size; i++)
        if (memcmp(text.data + i, "place.of.it", 11) == 0)
            text.data[i + 5] = 0;
    CHECK_STATUS(tutti__onnx_decode("hand", text.data, text.size, &again), TUTTI_CORRUPT);
    CHECK_CONTAINS(tutti_error_message(), "a byte 0 inside: 'place'");
    tutti__text_free(&text);
    tutti__onnx_free(onnx);
}
