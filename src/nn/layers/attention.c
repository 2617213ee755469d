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
    const char *initializer;
    const char *dims, *bias_dims; /* names of their dimensions */
} projection;

static bool attends_to_itself(const tutti_heads *heads)
{
    return heads->query.node == heads->key.node && heads->query.node == heads->value.node &&
           heads->query.index == heads->key.index && heads->query.index == heads->value.index;
}

static tutti_sym project(tutti_layer_call *call, tutti_sym x,
                         const tutti_multi_head_attention_settings *s, const projection *p)
{
    char name[128];
    snprintf(name, sizeof name, "%s%s/kernel", p->prefix, p->name);
    tutti_sym kernel = tutti_weight(call, name, p->shape, .initializer = p->initializer,
                                    .regularizer = s->kernel_regularizer,
                                    .constraint = s->kernel_constraint, .sharding = p->dims);
    tutti_sym y =
        tutti_matmul(x, p->shape.rank == 2 ? kernel : tutti_reshape(kernel, p->in, p->out));
    if (s->no_bias)
        return y;
    snprintf(name, sizeof name, "%s%s/bias", p->prefix, p->name);
    tutti_sym bias = tutti_weight(call, name, p->bias,
                                  .initializer = tutti__text_or(s->bias_initializer, "zeros"),
                                  .regularizer = s->bias_regularizer,
                                  .constraint = s->bias_constraint, .sharding = p->bias_dims);
    return tutti_add(y, p->bias.rank == 1 ? bias : tutti_reshape(bias, p->out));
}

/* [batch, time, heads size] to [batch, heads, time, size]. */
static tutti_sym to_heads(tutti_sym y, int64_t heads, int64_t size)
{
    int64_t time = tutti_sym_type(y).dims[1];
    tutti_sym parts[64];
    if (time >= 0)
        return tutti_transpose(tutti_reshape(y, -1, time, heads, size), 0, 2, 1, 3);
    if (heads == 1)
        return tutti_expand_dims(y, 1);
    tutti_sym cut = tutti_split_into(y, 2, (int)heads);
    for (int i = 0; i < heads; i++)
        parts[i] = tutti_sym_output(cut, i);
    return tutti_stack((int)heads, parts, .axis = 1);
}

/* [batch, time, features] to [batch, heads, time, size], by the weight of that name. */
static tutti_sym project_to_heads(tutti_layer_call *call,
                                  const tutti_multi_head_attention_settings *s, const char *prefix,
                                  const char *name, tutti_sym x, int64_t size)
{
    tutti_type type = tutti_sym_type(x);
    int64_t heads = s->num_heads;
    projection p = {.prefix = prefix,
                    .name = name,
                    .in = type.dims[2],
                    .out = heads * size,
                    .shape = TUTTI_TYPE(TUTTI_F32, type.dims[2], heads, size),
                    .bias = TUTTI_TYPE(TUTTI_F32, heads, size),
                    .initializer = s->kernel_initializer,
                    .dims = "embed,heads,-",
                    .bias_dims = "heads,-"};
    return to_heads(project(call, x, s, &p), heads, size);
}

/* Query, key and value out of one product; false after a mistake. */
static bool project_fused(tutti_layer_call *call, const tutti_heads *heads,
                          const tutti_multi_head_attention_settings *s, tutti_sym ret[3])
{
    int64_t features = tutti_sym_type(heads->query).dims[2], out = 3 * s->num_heads * s->key_dim;
    projection p = {.prefix = heads->prefix,
                    .name = "qkv",
                    .in = features,
                    .out = out,
                    .shape = TUTTI_TYPE(TUTTI_F32, features, out),
                    .bias = TUTTI_TYPE(TUTTI_F32, out),
                    .initializer = s->kernel_initializer,
                    .dims = "embed,-"};
    if (!attends_to_itself(heads) || (s->value_dim > 0 && s->value_dim != s->key_dim)) {
        tutti_layer_fail(call, "fused_qkv is for one input, whose values are as wide as its keys");
        return false;
    }
    tutti_sym parts = tutti_split_into(project(call, heads->query, s, &p), 2, 3);
    for (int i = 0; i < 3; i++)
        ret[i] = to_heads(tutti_sym_output(parts, i), s->num_heads, s->key_dim);
    return parts.node != NULL;
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

static bool project_all(tutti_layer_call *call, const tutti_heads *heads,
                        const tutti_multi_head_attention_settings *s, tutti_sym ret[3])
{
    int64_t value_dim = s->value_dim > 0 ? s->value_dim : s->key_dim;
    if (s->fused_qkv)
        return project_fused(call, heads, s, ret);
    ret[0] = project_to_heads(call, s, heads->prefix, "query", heads->query, s->key_dim);
    ret[1] = project_to_heads(call, s, heads->prefix, "key", heads->key, s->key_dim);
    ret[2] = project_to_heads(call, s, heads->prefix, "value", heads->value, value_dim);
    return ret[0].node && ret[1].node && ret[2].node;
}

/* Queries of a model that answers step by step: keys and values go behind those in the cache. */
static tutti_sym attend_cached(tutti_layer_call *call, const tutti_heads *heads,
                               const tutti_multi_head_attention_settings *s, const tutti_sym qkv[3])
{
    if (!s->use_causal_mask || !attends_to_itself(heads))
        return tutti_layer_fail(call,
                                "%s; a model that answers step by step attends to what came "
                                "before (use_causal_mask)",
                                s->use_causal_mask ? "attends to another input"
                                                   : "sees later steps");
    if (heads->hidden[0].node || heads->hidden[1].node || heads->hidden[2].node)
        return tutti_layer_fail(call, "has a mask, which a cache of keys and values does not keep");
    tutti_sym keys = tutti__decoding_append(call, qkv[1]);
    tutti_sym values = tutti__decoding_append(call, qkv[2]);
    return tutti_nn_attention(qkv[0], keys, values,
                              .mask = tutti__decoding_mask(call, tutti_sym_type(qkv[0]).dtype));
}

tutti_sym tutti__layer_attention(tutti_layer_call *call, const tutti_heads *heads,
                                 const tutti_multi_head_attention_settings *s)
{
    int64_t value_dim = s->value_dim > 0 ? s->value_dim : s->key_dim;
    if (s->num_heads < 1 || s->num_heads > 64 || s->key_dim < 1)
        return tutti_layer_fail(call, "needs 1 to 64 heads and a key_dim, not %lld and %lld",
                                (long long)s->num_heads, (long long)s->key_dim);
    const tutti_building *building = call->graph->building;
    tutti_sym qkv[3];
    if (!project_all(call, heads, s, qkv))
        return TUTTI_NO_SYM;
    for (int i = 0; i < 3; i++) /* those of one product are cut here */
        qkv[i] = tutti_sharded(qkv[i], i == 0 ? "-,heads,sequence,-" : "-,heads,-,-");
    tutti_sym y = building->decoding ? attend_cached(call, heads, s, qkv)
                                     : tutti_nn_attention(qkv[0], qkv[1], qkv[2],
                                                          .mask = added_mask(heads, qkv[0]),
                                                          .causal = s->use_causal_mask);
    tutti_type kernel = TUTTI_TYPE(TUTTI_F32, s->num_heads, value_dim, heads->output_dim);
    if (s->fused_qkv)
        kernel = TUTTI_TYPE(TUTTI_F32, s->num_heads * value_dim, heads->output_dim);
    projection out = {.prefix = heads->prefix,
                      .name = "attention_output",
                      .in = s->num_heads * value_dim,
                      .out = heads->output_dim,
                      .shape = kernel,
                      .bias = TUTTI_TYPE(TUTTI_F32, heads->output_dim),
                      .initializer = tutti__text_or(s->output_initializer, s->kernel_initializer),
                      .dims = s->fused_qkv ? "heads,embed" : "heads,-,embed",
                      .bias_dims = "embed"};
    return project(call, from_heads(y, s->num_heads, value_dim), s, &out);
}
