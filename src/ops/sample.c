/* sample.c: an operator's samples as nodes that can be run; see sample.h. */
#include "ops/sample.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ops/reference.h"
#include "ops/sample_text.h"

enum { MAX_INPUTS = 64, MAX_ATTRS = 32 };

void tutti__sample_free(tutti_sample *sample)
{
    if (sample == NULL)
        return;
    for (int i = 0; sample->values != NULL && i < sample->input_count; i++)
        tutti_tensor_release(sample->values[i]);
    tutti_graph_destroy(sample->graph);
    free(sample);
}

/* Placeholder, or variable for a handle, of input i. */
static tutti_status add_input(tutti_graph *graph, int i, const tutti_type *type, tutti_edge *ret)
{
    const tutti_op *op = tutti_op_find(type->handle ? "variable" : "placeholder");
    tutti_attr attrs[] = {TUTTI_INT("dtype", type->dtype),
                          TUTTI_INTS("dims", type->rank, type->dims)};
    char name[24];
    tutti_node *node;
    if (op == NULL)
        return tutti_fail(TUTTI_INTERNAL, "operator 'placeholder' or 'variable' is missing");
    snprintf(name, sizeof name, "input_%d", i);
    TUTTI_TRY(tutti__node_add(graph, op, name, 0, NULL, (int)TUTTI_COUNT(attrs), attrs, &node));
    *ret = (tutti_edge){node, 0};
    return TUTTI_OK;
}

/* Builds the node over sample->types and sample->values, which `sample` owns already. */
static tutti_status sample_build(tutti_sample *sample, int attr_count, const tutti_attr *attrs)
{
    tutti_edge edges[MAX_INPUTS];
    for (int i = 0; i < sample->input_count; i++)
        TUTTI_TRY(add_input(sample->graph, i, &sample->types[i], &edges[i]));
    TUTTI_TRY(tutti__node_add(sample->graph, sample->op, "sample", sample->input_count, edges,
                              attr_count, attrs, &sample->node));
    sample->output_count = sample->node->output_count;
    sample->attrs = sample->node->attrs;
    sample->attr_count = sample->node->attr_count;
    return TUTTI_OK;
}

/* An empty sample with room for inputs. */
static tutti_status sample_make(const tutti_op *op, const char *text, int capacity,
                                tutti_sample **ret)
{
    tutti_sample *sample = calloc(1, sizeof *sample);
    if (sample == NULL)
        return tutti_fail(TUTTI_NO_MEMORY, "sample: no memory");
    sample->op = op;
    snprintf(sample->text, sizeof sample->text, "%s", text);
    tutti_status status = tutti_graph_create(&sample->graph);
    if (status == TUTTI_OK) {
        sample->types =
            tutti__arena_array(&sample->graph->arena, (size_t)capacity, sizeof(tutti_type));
        sample->values =
            tutti__arena_array(&sample->graph->arena, (size_t)capacity, sizeof(tutti_tensor *));
        if (sample->types == NULL || sample->values == NULL)
            status = tutti_fail(TUTTI_NO_MEMORY, "sample: no memory");
    }
    if (status != TUTTI_OK) {
        tutti__sample_free(sample);
        return status;
    }
    *ret = sample;
    return TUTTI_OK;
}

/* Inputs up to the bar; *text moves to it or to the end. */
static tutti_status read_inputs(tutti_sample *sample, const char **text, uint64_t seed)
{
    const char *at = *text;
    for (at += strspn(at, " "); *at != '\0' && *at != '|'; at += strspn(at, " ")) {
        int i = sample->input_count;
        if (i == MAX_INPUTS)
            return tutti_fail(TUTTI_TOO_LARGE, "sample: more than %d inputs", MAX_INPUTS);
        TUTTI_TRY(tutti__sample_tensor(&at, tutti__hash_mix(seed, (uint64_t)i), &sample->types[i],
                                       &sample->values[i]));
        sample->input_count++;
    }
    *text = at;
    return TUTTI_OK;
}

static tutti_status sample_fill(tutti_sample *sample, const char *text, uint64_t seed)
{
    tutti_attr attrs[MAX_ATTRS];
    int count = 0;
    seed = tutti__hash_string(tutti__hash_string(seed, sample->op->name), text);
    TUTTI_TRY(read_inputs(sample, &text, seed));
    if (*text == '|')
        TUTTI_TRY(tutti__sample_attrs(sample->op, text + 1, seed, &sample->graph->arena, MAX_ATTRS,
                                      attrs, &count));
    tutti_status status = sample_build(sample, count, attrs);
    for (int i = 0; i < count; i++)
        if (attrs[i].kind == TUTTI_ATTR_TENSOR)
            tutti_tensor_release(attrs[i].value.tensor);
    return status;
}

tutti_status tutti__sample_parse(const tutti_op *op, const char *text, uint64_t seed,
                                 tutti_sample **ret_sample)
{
    tutti_sample *sample;
    TUTTI_TRY(sample_make(op, text, MAX_INPUTS, &sample));
    tutti_status status = sample_fill(sample, text, seed);
    if (status != TUTTI_OK) {
        tutti__sample_free(sample);
        return tutti__error_prefix(status, "sample \"%s\" of %s", text, op->name);
    }
    *ret_sample = sample;
    return TUTTI_OK;
}

static tutti_status fill_cast(const tutti_sample *from, tutti_dtype old, tutti_dtype dtype,
                              tutti_sample *sample)
{
    for (int i = 0; i < from->input_count; i++) {
        bool change = from->types[i].dtype == old;
        sample->types[i] = from->types[i];
        sample->types[i].dtype = change ? dtype : from->types[i].dtype;
        if (change)
            TUTTI_TRY(tutti_tensor_cast(from->values[i], dtype, &sample->values[i]));
        else
            sample->values[i] = tutti_tensor_retain(from->values[i]);
        sample->input_count++;
    }
    return sample_build(sample, from->attr_count, from->attrs);
}

tutti_status tutti__sample_cast(const tutti_sample *sample, tutti_dtype from, tutti_dtype to,
                                tutti_sample **ret_sample)
{
    tutti_sample *copy;
    TUTTI_TRY(sample_make(sample->op, sample->text, MAX_INPUTS, &copy));
    tutti_status status = fill_cast(sample, from, to, copy);
    if (status != TUTTI_OK) {
        tutti__sample_free(copy);
        return status;
    }
    *ret_sample = copy;
    return TUTTI_OK;
}

tutti_infer tutti__sample_rule(const tutti_sample *sample)
{
    return (tutti_infer){.op = sample->op,
                         .name = sample->node->name,
                         .input_count = sample->input_count,
                         .output_count = sample->output_count,
                         .inputs = sample->types,
                         .attrs = sample->attrs,
                         .attr_count = sample->attr_count,
                         .outputs = sample->node->types};
}

tutti_status tutti__sample_run_on(const tutti_sample *sample, tutti_tensor *const *inputs,
                                  const tutti_attr *attrs, tutti_tensor **ret_outputs)
{
    tutti_type types[MAX_INPUTS];
    tutti_infer rule = tutti__sample_rule(sample);
    for (int i = 0; i < sample->input_count; i++) {
        types[i] = *tutti_tensor_type(inputs[i]);
        types[i].handle = sample->types[i].handle;
    }
    rule.inputs = types;
    rule.attrs = attrs;
    return tutti__reference_op(&rule, inputs, ret_outputs);
}

tutti_status tutti__sample_run(const tutti_sample *sample, tutti_tensor **ret_outputs)
{
    tutti_tensor *inputs[MAX_INPUTS] = {0};
    tutti_status status = TUTTI_OK;
    for (int i = 0; status == TUTTI_OK && i < sample->input_count; i++) {
        if (sample->types[i].handle)
            status = tutti_tensor_cast(sample->values[i], sample->types[i].dtype, &inputs[i]);
        else
            inputs[i] = tutti_tensor_retain(sample->values[i]);
    }
    if (status == TUTTI_OK)
        status = tutti__sample_run_on(sample, inputs, sample->attrs, ret_outputs);
    for (int i = 0; i < sample->input_count; i++)
        tutti_tensor_release(inputs[i]);
    return status;
}

/* The error that one rounding of each operand leaves, with some room. */
static double usual_tolerance(tutti_dtype dtype)
{
    switch (dtype) {
    case TUTTI_F64:
        return 1e-11;
    case TUTTI_F32:
        return 2e-5;
    case TUTTI_F16:
        return 1e-2;
    case TUTTI_BF16:
        return 6e-2;
    default:
        return 0;
    }
}

static bool element_near(const tutti_tensor *a, const tutti_tensor *b, int64_t i, double tolerance)
{
    tutti_dtype dtype = tutti_tensor_dtype(a);
    if (dtype == TUTTI_STRING) {
        tutti_string x = tutti_tensor_get_string(a, i), y = tutti_tensor_get_string(b, i);
        return x.size == y.size && memcmp(x.data, y.data, (size_t)x.size) == 0;
    }
    if (!tutti_dtype_is_float(dtype))
        return tutti_tensor_get_int(a, i) == tutti_tensor_get_int(b, i);
    double x = tutti_tensor_get(a, i), y = tutti_tensor_get(b, i);
    if (isnan(x) || isnan(y) || isinf(x) || isinf(y))
        return (isnan(x) && isnan(y)) || x == y;
    return fabs(x - y) <= tolerance * (1 + fabs(y));
}

tutti_status tutti__tensor_near(tutti_tensor *actual, tutti_tensor *expected, double tolerance,
                                const char *what)
{
    char a[TUTTI_TYPE_TEXT], b[TUTTI_TYPE_TEXT];
    if (!tutti_type_equal(tutti_tensor_type(actual), tutti_tensor_type(expected)))
        return tutti_fail(TUTTI_CHECK_FAILED, "%s: is %s, expected %s", what,
                          tutti_type_text(tutti_tensor_type(actual), a),
                          tutti_type_text(tutti_tensor_type(expected), b));
    if (tolerance < 0)
        tolerance = usual_tolerance(tutti_tensor_dtype(actual));
    for (int64_t i = 0; i < tutti_tensor_count(actual); i++)
        if (!element_near(actual, expected, i, tolerance))
            return tutti_fail(TUTTI_CHECK_FAILED, "%s: element %lld is %.9g, expected %.9g (%s)",
                              what, (long long)i, tutti_tensor_get(actual, i),
                              tutti_tensor_get(expected, i),
                              tutti_type_text(tutti_tensor_type(actual), a));
    return TUTTI_OK;
}
