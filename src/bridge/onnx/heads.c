/* heads.c: Attention as one node (opset 23 and later), by products and a softmax. Queries, keys and
 * values are [batch, heads, positions, features], or with three axes [batch, positions, heads
 * features]. */
#include "bridge/onnx.h"

#include <math.h>
#include <string.h>

/* [batch, positions, heads features] as [batch, heads, positions, features]. */
static tutti_sym apart(tutti_sym x, int64_t heads)
{
    tutti_type type = tutti_sym_type(x);
    int64_t wide = type.dims[2], time = type.dims[1], batch = type.dims[0];
    if (type.rank != 3 || heads < 1 || wide < 0)
        return x;
    tutti_sym y = tutti_reshape(x, batch, time, heads, wide / heads);
    return tutti_transpose(y, 0, 2, 1, 3);
}

/* Each of `from` heads stands for to / from of them. */
static tutti_sym repeated(tutti_sym x, int64_t from, int64_t to)
{
    tutti_type t = tutti_sym_type(x);
    if (from == to || from < 1)
        return x;
    tutti_sym wide = tutti_broadcast_to(tutti_expand_dims(x, 2), -1, -1, to / from, -1, -1);
    return tutti_reshape(wide, t.dims[0], to, t.dims[2], t.dims[3]);
}

/* Scores that may not be seen are -inf: by the mask (bools, or numbers that are added), and when
 * causal key j > past + i. */
static tutti_sym masked(tutti_onnx_import *m, tutti_sym scores, int64_t past)
{
    tutti_type type = tutti_sym_type(scores);
    if (tutti__onnx_has(m, 3)) {
        tutti_sym mask = tutti__onnx_sym(m, 3);
        if (mask.node && tutti_sym_type(mask).dtype == TUTTI_BOOL)
            scores = tutti_where(mask, scores, -INFINITY);
        else if (mask.node)
            scores = tutti_add(scores, mask);
    }
    if (!tutti__onnx_attr_int(m, "is_causal", 0))
        return scores;
    tutti_sym row =
        tutti_range(m->graph, (double)past, (double)(past + type.dims[2]), 1, TUTTI_I64);
    tutti_sym key = tutti_range(m->graph, 0, (double)type.dims[3], 1, TUTTI_I64);
    tutti_sym seen = tutti_less_equal(key, tutti_expand_dims(row, 1));
    return tutti_where(seen, scores, -INFINITY);
}

/* A query that sees no key gives zeros. */
static tutti_sym chances(tutti_sym scores)
{
    tutti_sym most = tutti_max(scores, .axes = TUTTI_AXES(-1), .keepdims = true);
    tutti_sym sees = tutti_greater(most, -INFINITY);
    return tutti_where(sees, tutti_softmax(scores), 0);
}

/* Attributes that are not known mean something. */
static bool knows_all(tutti_onnx_import *m)
{
    static const char *const known[] = {
        "is_causal", "kv_num_heads",          "q_num_heads",      "scale",
        "softcap",   "qk_matmul_output_mode", "softmax_precision"};
    for (size_t i = 0; i < m->node->attrs.count; i++) {
        size_t k = 0;
        while (k < TUTTI_COUNT(known) && strcmp(known[k], m->node->attrs.items[i].name) != 0)
            k++;
        if (k < TUTTI_COUNT(known))
            continue;
        tutti__onnx_read_fail(m, TUTTI_UNSUPPORTED, "attribute %s is not supported",
                              m->node->attrs.items[i].name);
        return false;
    }
    return true;
}

typedef struct heads {
    tutti_sym q, k, v;
    int64_t past; /* keys from before */
} heads;

static bool read_heads(tutti_onnx_import *m, heads *h)
{
    int64_t queries = tutti__onnx_attr_int(m, "q_num_heads", 0);
    int64_t keys = tutti__onnx_attr_int(m, "kv_num_heads", 0);
    tutti_sym q = tutti__onnx_sym(m, 0), k = tutti__onnx_sym(m, 1), v = tutti__onnx_sym(m, 2);
    if (!q.node || !k.node || !v.node)
        return false;
    for (int i = 0; i < 3; i++) {
        tutti_type type = tutti_sym_type(i == 0 ? q : i == 1 ? k : v);
        bool known = true;
        for (int a = 1; a < type.rank; a++)
            known = known && type.dims[a] >= 0;
        if (!known || (type.rank != 3 && type.rank != 4)) {
            tutti__onnx_read_fail(m, TUTTI_UNSUPPORTED, "dimensions but the batch must be known");
            return false;
        }
    }
    *h = (heads){apart(q, queries), apart(k, keys), apart(v, keys), 0};
    if (tutti__onnx_has(m, 4)) {
        tutti_sym old = tutti__onnx_sym(m, 4);
        h->past = old.node ? tutti_sym_type(old).dims[2] : 0;
        h->k = tutti_concatenate(TUTTI_SYMS(old, h->k), .axis = 2);
        h->v = tutti_concatenate(TUTTI_SYMS(tutti__onnx_sym(m, 5), h->v), .axis = 2);
    }
    return m->status == TUTTI_OK && h->past >= 0;
}

static void read_attention(tutti_onnx_import *m)
{
    heads h;
    if (!knows_all(m))
        return;
    if (tutti__onnx_has(m, 6) || !read_heads(m, &h)) {
        tutti__onnx_read_fail(m, TUTTI_UNSUPPORTED, "lengths without padding are not supported");
        return;
    }
    tutti__onnx_made(m, 1, h.k);
    tutti__onnx_made(m, 2, h.v);
    tutti_type q = tutti_sym_type(h.q), k = tutti_sym_type(h.k);
    double scale = tutti__onnx_attr_float(m, "scale", 1 / sqrt((double)q.dims[3]));
    double cap = tutti__onnx_attr_float(m, "softcap", 0);
    int64_t shown = tutti__onnx_attr_int(m, "qk_matmul_output_mode", 0);
    h.k = repeated(h.k, k.dims[1], q.dims[1]);
    h.v = repeated(h.v, k.dims[1], q.dims[1]);
    tutti_sym root_q = tutti_mul(h.q, sqrt(scale)), root_k = tutti_mul(h.k, sqrt(scale));
    tutti_sym scores = tutti_matmul(root_q, root_k, .transpose_b = true);
    tutti_sym stages[4] = {scores};
    if (cap > 0)
        scores = tutti_mul(tutti_tanh(tutti_mul(scores, 1 / cap)), cap);
    stages[1] = scores;
    stages[2] = scores = masked(m, scores, h.past);
    stages[3] = scores = chances(scores);
    if (shown >= 0 && shown < 4)
        tutti__onnx_made(m, 3, stages[shown]);
    tutti_sym y = tutti_matmul(scores, h.v);
    if (tutti_sym_type(tutti__onnx_sym(m, 0)).rank == 3) {
        tutti_type t = tutti_sym_type(y);
        y = tutti_reshape(tutti_transpose(y, 0, 2, 1, 3), t.dims[0], t.dims[2],
                          t.dims[1] * t.dims[3]);
    }
    tutti__onnx_made(m, 0, y);
}

const tutti_onnx_op tutti_onnx_attention_node = {
    .type = "Attention",
    .read = read_attention,
    .note = "dimensions but the batch are known",
};
