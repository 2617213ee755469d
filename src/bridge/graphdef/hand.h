/* hand.h: for tests: TensorFlow's graphs written by hand.
 *
 *     put(&text, "y", "MatMul", "x w", "b:transpose_b=1");
 *     put_function(&text, "double", "a", "out=twice:z:0", "twice Add a,a");
 *
 * Attributes: i: integer, b: bool, t: type, s: string, f: function, l: list of integers, g: float.
 */
#ifndef TUTTI_BRIDGE_GRAPHDEF_HAND_H
#define TUTTI_BRIDGE_GRAPHDEF_HAND_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/test.h"
#include "bridge/graphdef/graphdef.h"
#include "tutti/session.h"

/* "i:axis=1" as an AttrEntry. */
static inline void put_attr(tutti_text *text, const char *spec)
{
    char name[64] = "", rest[256] = "";
    sscanf(spec + 2, "%63[^=]=%255s", name, rest);
    size_t attr = tutti__proto_open(text, 5);
    tutti__proto_put_string(text, 1, name);
    size_t value = tutti__proto_open(text, 2);
    if (spec[0] == 'i' || spec[0] == 'b' || spec[0] == 't')
        tutti__proto_put_int(text, spec[0] == 'i' ? 3 : spec[0] == 'b' ? 5 : 6, atoi(rest));
    if (spec[0] == 's')
        tutti__proto_put_string(text, 2, rest);
    if (spec[0] == 'g')
        tutti__proto_put_float(text, 4, (float)atof(rest));
    if (spec[0] == 'f') {
        size_t function = tutti__proto_open(text, 10);
        tutti__proto_put_string(text, 1, rest);
        tutti__proto_close(text, function);
    }
    if (spec[0] == 'l') {
        size_t list = tutti__proto_open(text, 1);
        for (char *at = rest; *at; at += strcspn(at, ","), at += *at == ',')
            tutti__proto_put_int(text, 3, atoi(at));
        tutti__proto_close(text, list);
    }
    tutti__proto_close(text, value);
    tutti__proto_close(text, attr);
}

/* Each word of a text to a function. */
static inline void each_word(tutti_text *text, const char *words, const char *ends,
                             void (*put)(tutti_text *, const char *))
{
    char word[320];
    while (*words) {
        size_t size = strcspn(words, ends);
        snprintf(word, sizeof word, "%.*s", (int)size, words);
        if (size > 0)
            put(text, word);
        words += size + (words[size] != 0);
    }
}

static inline void put_input(tutti_text *text, const char *name)
{
    tutti__proto_put_string(text, 3, name);
}

static inline void put_as(tutti_text *text, uint32_t field, const char *name, const char *op,
                          const char *inputs, const char *attrs)
{
    size_t mark = tutti__proto_open(text, field);
    tutti__proto_put_string(text, 1, name);
    tutti__proto_put_string(text, 2, op);
    each_word(text, inputs, " ,", put_input);
    each_word(text, attrs, " ", put_attr);
    tutti__proto_close(text, mark);
}

static inline void put(tutti_text *text, const char *name, const char *op, const char *inputs,
                       const char *attrs)
{
    put_as(text, 1, name, op, inputs, attrs);
}

static inline void put_arg(tutti_text *text, const char *name)
{
    size_t mark = tutti__proto_open(text, 2);
    tutti__proto_put_string(text, 1, name);
    tutti__proto_close(text, mark);
}

/* "out=node:z:0": the signature's name of a result. */
static inline void put_result(tutti_text *text, const char *spec)
{
    char name[64] = "";
    sscanf(spec, "%63[^=]", name);
    size_t mark = tutti__proto_open(text, 3);
    tutti__proto_put_string(text, 1, name);
    tutti__proto_close(text, mark);
}

static inline void put_ret(tutti_text *text, const char *spec)
{
    char name[64] = "", from[128] = "";
    sscanf(spec, "%63[^=]=%127s", name, from);
    size_t mark = tutti__proto_open(text, 4);
    tutti__proto_put_string(text, 1, name);
    tutti__proto_put_string(text, 2, from);
    tutti__proto_close(text, mark);
}

/* "name Op in,in attr attr", one line a node. */
static inline void put_line(tutti_text *text, const char *line)
{
    char name[64] = "", op[64] = "", inputs[160] = "", attrs[160] = "";
    sscanf(line, "%63s %63s %159s %159[^;]", name, op, inputs, attrs);
    put_as(text, 3, name, op, strcmp(inputs, "-") == 0 ? "" : inputs, attrs);
}

static inline void put_function(tutti_text *text, const char *name, const char *args,
                                const char *results, const char *lines)
{
    size_t library = tutti__proto_open(text, 2), function = tutti__proto_open(text, 1);
    size_t signature = tutti__proto_open(text, 1);
    tutti__proto_put_string(text, 1, name);
    each_word(text, args, " ", put_arg);
    each_word(text, results, " ", put_result);
    tutti__proto_close(text, signature);
    each_word(text, lines, ";", put_line);
    each_word(text, results, " ", put_ret);
    tutti__proto_close(text, function);
    tutti__proto_close(text, library);
}

static inline void put_dims(tutti_text *text, uint32_t number, int rank, const int64_t *dims)
{
    size_t shape = tutti__proto_open(text, number);
    for (int i = 0; i < rank; i++) {
        size_t dim = tutti__proto_open(text, 2);
        tutti__proto_put_int(text, 1, dims[i]);
        tutti__proto_close(text, dim);
    }
    tutti__proto_close(text, shape);
}

static inline void put_placeholder_of(tutti_text *text, const char *name, int type, int rank,
                                      const int64_t *dims)
{
    size_t node = tutti__proto_open(text, 1);
    tutti__proto_put_string(text, 1, name);
    tutti__proto_put_string(text, 2, "Placeholder");
    put_attr(text, type == 1 ? "t:dtype=1" : "t:dtype=3");
    size_t attr = tutti__proto_open(text, 5);
    tutti__proto_put_string(text, 1, "shape");
    size_t value = tutti__proto_open(text, 2);
    put_dims(text, 7, rank, dims);
    tutti__proto_close(text, value);
    tutti__proto_close(text, attr);
    tutti__proto_close(text, node);
}

static inline void put_placeholder(tutti_text *text, const char *name, int rank,
                                   const int64_t *dims)
{
    put_placeholder_of(text, name, 1, rank, dims);
}

/* `type` 1: f32, 3: i32; one value stands for all that are missing. */
static inline void put_const(tutti_text *text, const char *name, int type, int rank,
                             const int64_t *dims, int count, const float *values)
{
    size_t node = tutti__proto_open(text, 1);
    tutti__proto_put_string(text, 1, name);
    tutti__proto_put_string(text, 2, "Const");
    size_t attr = tutti__proto_open(text, 5);
    tutti__proto_put_string(text, 1, "value");
    size_t value = tutti__proto_open(text, 2), tensor = tutti__proto_open(text, 8);
    tutti__proto_put_int(text, 1, type);
    put_dims(text, 2, rank, dims);
    for (int i = 0; i < count; i++)
        if (type == 1)
            tutti__proto_put_float(text, 5, values[i]);
        else
            tutti__proto_put_int(text, 7, (int64_t)values[i]);
    tutti__proto_close(text, tensor);
    tutti__proto_close(text, value);
    tutti__proto_close(text, attr);
    tutti__proto_close(text, node);
}

static inline void put_whole(tutti_text *text, const char *name, int value)
{
    put_const(text, name, 3, 0, NULL, 1, (float[]){(float)value});
}

static inline tutti_status into_graph(const tutti_text *text, tutti_graph *graph,
                                      tutti_onnx_ports *ports)
{
    tutti_graphdef *def;
    TUTTI_TRY(tutti__graphdef_decode("frozen", text->data, text->size, &def));
    tutti_status status = tutti__graphdef_into_graph(def, graph, ports);
    tutti__graphdef_free(def);
    return status;
}

/* Runs output `output` for f32 inputs, each of `count` elements in dims; checks the values. */
typedef struct hand_input {
    const char *name;
    int rank;
    int64_t dims[4];
    const float *values;
} hand_input;

static inline void check_runs(const tutti_text *text, int input_count, const hand_input *inputs,
                              const char *output, int count, const double *expected)
{
    tutti_graph *graph;
    tutti_session *session;
    tutti_onnx_ports ports;
    tutti_feed feeds[4];
    tutti_tensor *tensors[4], *y = NULL;
    tutti_sym fetch = TUTTI_NO_SYM;
    CHECK_OK(tutti_graph_create(&graph));
    CHECK_OK(into_graph(text, graph, &ports));
    CHECK_INT(ports.input_count, input_count);
    for (int i = 0; i < input_count; i++) {
        CHECK_STR(ports.inputs[i].name, inputs[i].name);
        CHECK_OK(tutti_tensor_from(TUTTI_F32, inputs[i].rank, inputs[i].dims, inputs[i].values,
                                   &tensors[i]));
        feeds[i] = (tutti_feed){ports.inputs[i].sym, tensors[i]};
    }
    for (int i = 0; i < ports.output_count; i++)
        if (strcmp(ports.outputs[i].name, output) == 0)
            fetch = ports.outputs[i].sym;
    CHECK(fetch.node != NULL);
    CHECK_OK(tutti_session_open(&session, graph));
    tutti_fetch want = {fetch, &y};
    tutti_run_options o = {
        .struct_size = sizeof o, .feed = {input_count, feeds}, .fetch = {1, &want}};
    CHECK_OK(tutti_run_with(session, &o));
    CHECK_INT(tutti_tensor_count(y), count);
    for (int i = 0; i < count; i++)
        CHECK_NEAR(tutti_tensor_get(y, i), expected[i], 1e-5);
    for (int i = 0; i < input_count; i++)
        tutti_tensor_release(tensors[i]);
    tutti_tensor_release(y);
    tutti_session_close(session);
    tutti_graph_destroy(graph);
}

static inline void check_refused(const tutti_text *text, const char *words)
{
    tutti_graph *graph;
    tutti_onnx_ports ports;
    CHECK_OK(tutti_graph_create(&graph));
    CHECK(into_graph(text, graph, &ports) != TUTTI_OK);
    CHECK_CONTAINS(tutti_error_message(), words);
    tutti_graph_destroy(graph);
}

#endif
