/* attention.c: attention by heads, with the layer's weights. */
#include "nn/layers/common.h"
#include "ops/build.h"

#include <math.h>
#include <stdio.h>

/* The weight `name` under the prefix and its bias, as a matrix and a vector. */
typedef struct projection {
    const char *prefix, *name;
    int64_t in;       /* rows of the matrix */
    int64_t out;      /* columns */
    tutti_type shape; /* of the kernel as it is kept */
    tutti_type bias;
} projection;

static tutti_sym project(tutti_layer_call *call, tutti_sym x,
                         const tutti_multi_head_attention_settings *s, const projection *p)
{
    char name[128];
    snprintf(name, sizeof name, "%s%s/kernel", p->prefix, p->name);
    tutti_sym kernel =
        tutti_weight(call, name, p->shape, .initializer = s->kernel_initializer,
                     .regularizer = s->kernel_regularizer, .constraint = s->kernel_constraint);
    tutti_sym y = tutti_matmul(x, tutti_reshape(kernel, p->in, p->out));
    if (s->no_bias)
        return y;
    snprintf(name, sizeof name, "%s%s/bias", p->prefix, p->name);
    tutti_sym bias = tutti_weight(
        call, name, p->bias, .initializer = tutti__text_or(s->bias_initializer, "zeros"),
        .regularizer = s->bias_regularizer, .constraint = s->bias_constraint);
    return tutti_add(y, p->bias.rank == 1 ? bias : tutti_reshape(bias, p->out));
}

/* [batch, time, features] to [batch, heads, time, size]. */
static tutti_sym to_heads(tutti_layer_call *call, const tutti_multi_head_attention_settings *s,
                          const char *prefix, const char *name, tutti_sym x, int64_t size)
{
    tutti_type type = tutti_sym_type(x);
    int64_t heads = s->num_heads, time = type.dims[1];
    projection p = {.prefix = prefix,
                    .name = name,
                    .in = type.dims[2],
                    .out = heads * size,
                    .shape = TUTTI_TYPE(TUTTI_F32, type.dims[2], heads, size),
                    .bias = TUTTI_TYPE(TUTTI_F32, heads, size)};
    tutti_sym y = project(call, x, s, &p), parts[64];
    if (time >= 0)
        return tutti_transpose(tutti_reshape(y, -1, time, heads, size), 0, 2, 1, 3);
    if (heads == 1)
        return tutti_expand_dims(y, 1);
    tutti_sym cut = tutti_split_into(y, 2, (int)heads);
    for (int i = 0; i < heads; i++)
        parts[i] = tutti_sym_output(cut, i);
    return tutti_stack((int)heads, parts, .axis = 1);
}

/* [batch, heads, time, size] to [batch, time, heads size]. */
static tutti_sym from_heads(tutti_sym y, int64_t heads, int64_t size)
{
    int64_t time = tutti_sym_type(y).dims[2];
    tutti_sym parts[64];
    if (time >= 0)
        return tutti_reshape(tutti_transpose(y, 0, 2, 1, 3), -1, time, heads * size);
    if (heads == 1)
        return tutti_squeeze(y, 1);
    tutti_sym cut = tutti_unstack(y, 1, (int)heads);
    for (int i = 0; i < heads; i++)
        parts[i] = tutti_sym_output(cut, i);
    return tutti_concatenate((int)heads, parts, .axis = 2);
}

/* 0 where all masks let a query see a key, else -inf: broadcasts to [batch, heads, queries, keys].
 */
static tutti_sym added_mask(const tutti_heads *heads, tutti_sym like)
{
    tutti_sym all = TUTTI_NO_SYM;
    for (int i = 0; i < 3; i++) {
        tutti_sym mask = heads->hidden[i];
        if (!mask.node)
            continue;
        mask =
            i < 2 ? tutti_expand_dims(tutti_expand_dims(mask, 1), 1) : tutti_expand_dims(mask, 1);
        all = all.node ? tutti_logical_and(all, mask) : mask;
    }
    if (!all.node)
        return all;
    return tutti_where(all, tutti__scalar_like(like, 0), tutti__scalar_like(like, -INFINITY));
}

tutti_sym tutti__layer_attention(tutti_layer_call *call, const tutti_heads *heads,
                                 const tutti_multi_head_attention_settings *s)
{
    int64_t value_dim = s->value_dim > 0 ? s->value_dim : s->key_dim;
    if (s->num_heads < 1 || s->num_heads > 64 || s->key_dim < 1)
        return tutti_layer_fail(call, "needs 1 to 64 heads and a key_dim, not %lld and %lld",
                                (long long)s->num_heads, (long long)s->key_dim);
    tutti_sym q = to_heads(call, s, heads->prefix, "query", heads->query, s->key_dim);
    tutti_sym k = to_heads(call, s, heads->prefix, "key", heads->key, s->key_dim);
    tutti_sym v = to_heads(call, s, heads->prefix, "value", heads->value, value_dim);
    if (!q.node || !k.node || !v.node)
        return TUTTI_NO_SYM;
    tutti_sym y =
        tutti_nn_attention(q, k, v, .mask = added_mask(heads, q), .causal = s->use_causal_mask);
    projection out = {.prefix = heads->prefix,
                      .name = "attention_output",
                      .in = s->num_heads * value_dim,
                      .out = heads->output_dim,
                      .shape = TUTTI_TYPE(TUTTI_F32, s->num_heads, value_dim, heads->output_dim),
                      .bias = TUTTI_TYPE(TUTTI_F32, heads->output_dim)};
    return project(call, from_heads(y, s->num_heads, value_dim), s, &out);
}
