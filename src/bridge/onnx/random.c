/* random.c: numbers that are drawn anew at every run. */
#include "bridge/onnx.h"

#include <string.h>

/* A seed is a float in files; without one every node has its own. */
static int64_t seed_of(const tutti_onnx_import *m)
{
    double seed = tutti__onnx_attr_float(m, "seed", 0);
    return seed != 0 ? (int64_t)seed : (int64_t)m->graph->nodes.count + 1;
}

static bool read_dtype(tutti_onnx_import *m, tutti_dtype fallback, tutti_dtype *ret)
{
    int64_t number = tutti__onnx_attr_int(m, "dtype", 0);
    *ret = number ? tutti__onnx_dtype_of(number) : fallback;
    if (*ret != TUTTI_NO_DTYPE)
        return true;
    tutti__onnx_read_fail(m, TUTTI_UNSUPPORTED, "draws %s", tutti__onnx_element(number));
    return false;
}

static void random_draw(tutti_onnx_import *m, tutti_type type, tutti_sym like)
{
    double mean = tutti__onnx_attr_float(m, "mean", 0);
    double scale = tutti__onnx_attr_float(m, "scale", 1);
    double low = tutti__onnx_attr_float(m, "low", 0), high = tutti__onnx_attr_float(m, "high", 1);
    bool normal = strncmp(m->rule->type, "RandomNormal", 12) == 0;
    tutti__onnx_made(
        m, 0,
        normal ? tutti_random_normal(m->graph, mean, scale, type, .seed = seed_of(m), .like = like)
               : tutti_random_uniform(m->graph, low, high, type, .seed = seed_of(m), .like = like));
}

static bool sizes_are_sane(tutti_onnx_import *m, int rank, const int64_t *dims)
{
    int64_t count = 1;
    for (int i = 0; i < rank; i++)
        if (dims[i] < 0 || !tutti__mul_size(count, dims[i], &count)) {
            tutti__onnx_read_fail(m, TUTTI_CORRUPT, "size %lld cannot be", (long long)dims[i]);
            return false;
        }
    return true;
}

static void read_shaped(tutti_onnx_import *m)
{
    const int64_t *dims;
    tutti_dtype dtype;
    int rank = tutti__onnx_attr_ints(m, "shape", &dims);
    if (rank > TUTTI_MAX_RANK)
        tutti__onnx_read_fail(m, TUTTI_UNSUPPORTED, "has %d dimensions", rank);
    else if (!sizes_are_sane(m, rank, dims))
        return;
    else if (read_dtype(m, TUTTI_F32, &dtype))
        random_draw(m, tutti_type_make(dtype, rank, dims), TUTTI_NO_SYM);
}

static void read_like(tutti_onnx_import *m)
{
    tutti_sym like = tutti__onnx_sym(m, 0);
    tutti_dtype dtype;
    if (!like.node || !read_dtype(m, tutti_sym_type(like).dtype, &dtype))
        return;
    tutti_type type = tutti_sym_type(like);
    type.dtype = dtype;
    random_draw(m, type, like);
}

/* x holds probabilities of 1. */
static void read_bernoulli(tutti_onnx_import *m)
{
    tutti_sym x = tutti__onnx_sym(m, 0);
    tutti_dtype dtype;
    if (!x.node || !read_dtype(m, tutti_sym_type(x).dtype, &dtype))
        return;
    tutti_sym u =
        tutti_random_uniform(m->graph, 0, 1, tutti_sym_type(x), .seed = seed_of(m), .like = x);
    tutti__onnx_made(m, 0, tutti_cast(tutti_less(u, x), dtype));
}

static void read_multinomial(tutti_onnx_import *m)
{
    tutti_dtype dtype;
    if (!read_dtype(m, TUTTI_I32, &dtype))
        return;
    tutti_sym y = tutti_random_categorical(
        tutti__onnx_sym(m, 0), tutti__onnx_attr_int(m, "sample_size", 1), .seed = seed_of(m));
    tutti__onnx_made(m, 0, dtype == TUTTI_I64 ? y : tutti_cast(y, dtype));
}

const tutti_onnx_op tutti_onnx_random_normal = {
    .type = "RandomNormal",
    .read = read_shaped,
    .note = "numbers of our own",
};

const tutti_onnx_op tutti_onnx_random_uniform = {
    .type = "RandomUniform",
    .read = read_shaped,
    .note = "numbers of our own",
};

const tutti_onnx_op tutti_onnx_random_normal_like = {
    .type = "RandomNormalLike",
    .read = read_like,
    .note = "numbers of our own",
};

const tutti_onnx_op tutti_onnx_random_uniform_like = {
    .type = "RandomUniformLike",
    .read = read_like,
    .note = "numbers of our own",
};

const tutti_onnx_op tutti_onnx_bernoulli = {
    .type = "Bernoulli",
    .read = read_bernoulli,
    .note = "numbers of our own",
};

const tutti_onnx_op tutti_onnx_multinomial = {
    .type = "Multinomial",
    .read = read_multinomial,
    .note = "numbers of our own",
};
