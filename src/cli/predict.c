/* predict.c: `tutti predict`: a saved model's outputs for arrays in files. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/job.h"
#include "base/nearest.h"
#include "bridge/onnx.h"
#include "cli/command.h"
#include "cli/viewer.h"
#include "nn/model/model.h"
#include "tutti/graphdef.h"

static const char usage[] =
    "usage: tutti predict FILE --input [NAME=]x.npy … [--output out.npz] [--json]\n\n"
    "Runs the model in FILE (written by tutti_save_model: FILE.json with FILE.safetensors; ONNX; or a\n"
    "frozen GraphDef, .pb) on arrays, batch first. NAME is an input's; without it the inputs are\n"
    "taken in order. An NPZ gives every input by its array's name. Outputs go to an NPZ, one array\n"
    "an output, or with --json (small ones) to standard output. Of ONNX files inputs may have any shape, and those\n"
    "that operators want to know beforehand (axes, pads, sizes) are taken from the arrays.\n\n"
    "exit codes: 0 success, 1 failure, 2 wrong usage\n";

#define MOST 64

typedef struct given {
    char names[MOST][128]; /* "" where none was said */
    tutti_tensor *tensors[MOST];
    bool loose[MOST]; /* one of an NPZ's arrays, which need not be an input */
    bool used[MOST];
    int count;
} given;

static tutti_status predict_keep(given *g, const char *name, tutti_tensor *tensor, bool loose)
{
    if (g->count == MOST || strlen(name) >= sizeof g->names[0]) {
        tutti_tensor_release(tensor);
        return tutti_fail(TUTTI_TOO_LARGE, "at most %d inputs with names below 128 bytes", MOST);
    }
    snprintf(g->names[g->count], sizeof g->names[0], "%s", name);
    g->loose[g->count] = loose;
    g->tensors[g->count++] = tensor;
    return TUTTI_OK;
}

static bool is_npz(const char *path)
{
    size_t size = strlen(path);
    return size > 4 && strcmp(path + size - 4, ".npz") == 0;
}

static tutti_status predict_load(given *g, const char *text)
{
    const char *equals = strchr(text, '=');
    char name[128] = "";
    if (equals && (size_t)(equals - text) < sizeof name)
        snprintf(name, sizeof name, "%.*s", (int)(equals - text), text);
    const char *path = equals ? equals + 1 : text;
    if (is_npz(path)) {
        tutti_named_tensors list = {0};
        TUTTI_TRY(tutti_npz_load(path, &list));
        tutti_status status = TUTTI_OK;
        for (size_t i = 0; status == TUTTI_OK && i < list.count; i++)
            status = predict_keep(g, list.items[i].name, tutti_tensor_retain(list.items[i].tensor),
                                  true);
        tutti_named_tensors_clear(&list);
        return status;
    }
    tutti_tensor *tensor;
    TUTTI_TRY(tutti_npy_load(path, &tensor));
    return predict_keep(g, name, tensor, false);
}

/* Of a name that is no input's; with the inputs, where none is near. */
static tutti_status fail_unknown(const char *name, size_t count, const char *const *names)
{
    char list[512] = "";
    tutti_nearest nearest = {.word = name};
    for (size_t i = 0; i < count; i++) {
        size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s %s", i ? "," : "; it has", names[i]);
        tutti__nearest_try(&nearest, names[i]);
    }
    return tutti_fail(TUTTI_NOT_FOUND, "the model has no input '%s'%s", name,
                      nearest.found ? tutti__meant(nearest.found) : list);
}

/* Names that were said must be inputs', each one once. */
static tutti_status check_names(const given *g, size_t count, const char *const *names)
{
    for (int k = 0; k < g->count; k++) {
        bool known = g->loose[k] || !g->names[k][0];
        for (size_t i = 0; !known && i < count; i++)
            known = strcmp(g->names[k], names[i]) == 0;
        if (!known)
            return fail_unknown(g->names[k], count, names);
        for (int other = 0; other < k && !g->loose[k] && g->names[k][0]; other++)
            if (!g->loose[other] && strcmp(g->names[k], g->names[other]) == 0)
                return tutti_fail(TUTTI_INVALID, "--input '%s' is given twice; leave one out",
                                  g->names[k]);
    }
    return TUTTI_OK;
}

/* An array in the element type that an input has; whole numbers lose nothing on the way. */
static tutti_status cast_input(const char *name, tutti_tensor *from, tutti_dtype dtype,
                               tutti_tensor **ret)
{
    tutti_dtype own = tutti_tensor_dtype(from);
    tutti_tensor *made;
    TUTTI_TRY(tutti_tensor_cast(from, dtype, &made));
    bool whole = tutti_dtype_is_int(dtype) && own != dtype && own != TUTTI_STRING;
    for (int64_t i = 0; whole && i < tutti_tensor_count(from); i++) {
        double value = tutti_tensor_get(from, i);
        if (tutti_tensor_get(made, i) == value)
            continue;
        tutti_tensor_release(made);
        return tutti_fail(TUTTI_INVALID,
                          "input '%s' takes %s, but its array is %s and element %lld is %g, which "
                          "is no %s; convert the array first",
                          name, tutti_dtype_name(dtype), tutti_dtype_name(own), (long long)i, value,
                          tutti_dtype_name(dtype));
    }
    *ret = made;
    return TUTTI_OK;
}

/* The array for input number i, called `name`, of `count`, in its element type. */
static tutti_status predict_take(given *g, size_t i, size_t count, const char *name,
                                 tutti_dtype dtype, tutti_tensor **ret)
{
    int found = -1;
    for (int k = 0; k < g->count; k++)
        if ((!g->names[k][0] && (size_t)k == i) || (g->loose[k] && g->count == 1 && count == 1))
            found = k;
    for (int k = 0; k < g->count; k++)
        if (strcmp(g->names[k], name) == 0)
            found = k;
    if (found < 0)
        return tutti_fail(TUTTI_NOT_FOUND, "input '%s' of the model is not given: --input %s=x.npy",
                          name, name);
    g->used[found] = true;
    return cast_input(name, g->tensors[found], dtype, ret);
}

/* Once all inputs have theirs: what was given beside them without a name is a mistake. */
static tutti_status all_used(const given *g)
{
    for (int i = 0; i < g->count; i++)
        if (!g->used[i] && !g->loose[i])
            return tutti_fail(TUTTI_INVALID, "--input number %d is more than the model takes",
                              i + 1);
    return TUTTI_OK;
}

static void print_values(const tutti_tensor *tensor, int axis, int64_t *at)
{
    const tutti_type *type = tutti_tensor_type(tensor);
    if (axis == type->rank) {
        if (tutti_dtype_is_float(type->dtype))
            tutti__print_real(tutti_tensor_get(tensor, (*at)++));
        else
            printf("%lld", (long long)tutti_tensor_get_int(tensor, (*at)++));
        return;
    }
    putchar('[');
    for (int64_t i = 0; i < type->dims[axis]; i++) {
        if (i > 0)
            putchar(',');
        print_values(tensor, axis + 1, at);
    }
    putchar(']');
}

static tutti_status give(size_t count, const tutti_named_tensor *list, const char *path, bool json)
{
    if (json) {
        putchar('{');
        for (size_t i = 0; i < count; i++) {
            int64_t at = 0;
            printf(i ? "," : "");
            tutti__print_quoted(list[i].name);
            putchar(':');
            print_values(list[i].tensor, 0, &at);
        }
        printf("}\n");
    }
    if (path)
        return tutti_npz_save(path, count, list, false);
    for (size_t i = 0; !json && i < count; i++) {
        char text[TUTTI_TYPE_TEXT];
        tutti__print_name(list[i].name, 0);
        printf(" %s\n", tutti_type_text(tutti_tensor_type(list[i].tensor), text));
    }
    return TUTTI_OK;
}

static bool ends_with(const char *path, const char *end)
{
    size_t size = strlen(path), tail = strlen(end);
    return size > tail && strcmp(path + size - tail, end) == 0;
}

static tutti_status predict_model(tutti_job *job, const char *file, given *g, const char *output,
                                  bool json)
{
    tutti_tensor *inputs[MOST] = {0}, *outputs[MOST] = {0};
    tutti_named_tensor list[MOST];
    tutti_model *model = tutti_load_model(job, file);
    TUTTI_TRY(tutti_job_check(job));
    size_t count = model->inputs.count;
    if (count > MOST || model->outputs.count > MOST)
        return tutti_fail(TUTTI_TOO_LARGE, "at most %d inputs and outputs", MOST);
    const char *names[MOST];
    for (size_t i = 0; i < count; i++)
        names[i] = model->inputs.data[i].name;
    tutti_status status = check_names(g, count, names);
    for (size_t i = 0; status == TUTTI_OK && i < count; i++)
        status = predict_take(g, i, count, model->inputs.data[i].name,
                              model->inputs.data[i].type.dtype, &inputs[i]);
    if (status == TUTTI_OK)
        status = all_used(g);
    if (status == TUTTI_OK)
        status =
            tutti_predict_on_batch(model, (int)count, inputs, (int)model->outputs.count, outputs);
    for (size_t i = 0; i < model->outputs.count; i++)
        list[i] = (tutti_named_tensor){model->outputs.data[i].name, outputs[i]};
    if (status == TUTTI_OK && tutti_strategy_rank(tutti_job_strategy(model->job)) == 0)
        status = give(model->outputs.count, list, output, json);
    for (int i = 0; i < MOST; i++) {
        tutti_tensor_release(inputs[i]);
        tutti_tensor_release(outputs[i]);
    }
    return status;
}

/* ---- ONNX ---- */

typedef struct onnx_run {
    int count;
    tutti_onnx_given given[MOST]; /* what goes in; the values are ours */
    tutti_tensor *outputs[MOST];
} onnx_run;

/* Inputs that are no initializers, in the file's order. */
static tutti_status arrange(const tutti_onnx *onnx, given *g, onnx_run *r)
{
    const tutti_onnx_value *wanted[MOST] = {0};
    const char *names[MOST];
    size_t count = 0;
    for (size_t i = 0; i < onnx->graph.inputs.count; i++) {
        const tutti_onnx_value *input = &onnx->graph.inputs.items[i];
        bool known = false;
        for (size_t k = 0; !known && k < onnx->graph.initializers.count; k++)
            known = strcmp(onnx->graph.initializers.items[k].name, input->name) == 0;
        if (!known && count == MOST)
            return tutti_fail(TUTTI_TOO_LARGE, "at most %d inputs", MOST);
        if (known)
            continue;
        names[count] = input->name;
        wanted[count++] = input;
    }
    TUTTI_TRY(check_names(g, count, names));
    for (; r->count < (int)count; r->count++) {
        const tutti_onnx_value *input = wanted[r->count];
        tutti_tensor *value;
        TUTTI_TRY(predict_take(g, (size_t)r->count, count, input->name, input->type.dtype, &value));
        r->given[r->count] = (tutti_onnx_given){input->name, value};
    }
    return all_used(g);
}

static tutti_status run_onnx(tutti_graph *graph, const tutti_onnx_ports *ports, onnx_run *r,
                             const char *output, bool json)
{
    tutti_feed feeds[MOST];
    tutti_fetch fetches[MOST];
    tutti_named_tensor list[MOST];
    tutti_session *session;
    if (ports->output_count > MOST)
        return tutti_fail(TUTTI_TOO_LARGE, "at most %d outputs", MOST);
    for (int i = 0; i < ports->input_count; i++)
        feeds[i] = (tutti_feed){ports->inputs[i].sym, r->given[i].value};
    for (int i = 0; i < ports->output_count; i++)
        fetches[i] = (tutti_fetch){ports->outputs[i].sym, &r->outputs[i]};
    TUTTI_TRY(tutti_session_open(&session, graph));
    tutti_run_options options = {.struct_size = sizeof options,
                                 .feed = {ports->input_count, feeds},
                                 .fetch = {ports->output_count, fetches}};
    tutti_run_options first = {/* random numbers have a counter */
                               .struct_size = sizeof first,
                               .target = tutti_initialize_variables(graph)};
    tutti_status status = tutti_run_with(session, &first);
    if (status == TUTTI_OK)
        status = tutti_run_with(session, &options);
    tutti_session_close(session);
    TUTTI_TRY(status);
    for (int i = 0; i < ports->output_count; i++)
        list[i] = (tutti_named_tensor){ports->outputs[i].name, r->outputs[i]};
    return give((size_t)ports->output_count, list, output, json);
}

static tutti_status predict_onnx(const char *file, given *g, const char *output, bool json)
{
    onnx_run r = {0};
    tutti_onnx *onnx;
    tutti_graph *graph = NULL;
    tutti_onnx_ports ports;
    TUTTI_TRY(tutti__onnx_load(file, &onnx));
    tutti_status status = tutti__onnx_check_needs(onnx, file);
    if (status == TUTTI_OK)
        status = arrange(onnx, g, &r);
    if (status == TUTTI_OK)
        status = tutti_graph_create(&graph);
    tutti_onnx_graph_options options = {
        .struct_size = sizeof options, .constants = true, .given_count = r.count, .given = r.given};
    if (status == TUTTI_OK)
        status = tutti__onnx_into_graph(onnx, file, graph, &options, &ports);
    if (status == TUTTI_OK)
        status = run_onnx(graph, &ports, &r, output, json);
    if (graph)
        tutti_graph_destroy(graph);
    for (int i = 0; i < MOST; i++) {
        tutti_tensor_release(r.given[i].value);
        tutti_tensor_release(r.outputs[i]);
    }
    tutti__onnx_free(onnx);
    return status;
}

/* ---- TensorFlow ---- */

static tutti_status predict_graphdef(const char *file, given *g, const char *output, bool json)
{
    onnx_run r = {0};
    tutti_graph *graph;
    tutti_onnx_ports ports;
    const char *names[MOST];
    TUTTI_TRY(tutti_graph_create(&graph));
    tutti_status status = tutti_import_graphdef(graph, file, &ports);
    if (status == TUTTI_OK && (ports.input_count > MOST || ports.output_count > MOST))
        status = tutti_fail(TUTTI_TOO_LARGE, "at most %d inputs and outputs", MOST);
    for (int i = 0; status == TUTTI_OK && i < ports.input_count; i++)
        names[i] = ports.inputs[i].name;
    if (status == TUTTI_OK)
        status = check_names(g, (size_t)ports.input_count, names);
    for (int i = 0; status == TUTTI_OK && i < ports.input_count; i++)
        status = predict_take(g, (size_t)i, (size_t)ports.input_count, ports.inputs[i].name,
                              tutti_sym_type(ports.inputs[i].sym).dtype, &r.given[i].value);
    if (status == TUTTI_OK)
        status = all_used(g);
    if (status == TUTTI_OK)
        status = run_onnx(graph, &ports, &r, output, json);
    tutti_graph_destroy(graph);
    for (int i = 0; i < MOST; i++) {
        tutti_tensor_release(r.given[i].value);
        tutti_tensor_release(r.outputs[i]);
    }
    return status;
}

static int predict_run(int argc, char **argv)
{
    given g = {0};
    const char *text, *output = NULL;
    tutti_status status = TUTTI_OK;
    bool json = tutti__flag(&argc, argv, "--json");
    tutti__option(&argc, argv, "--output", &output);
    while (status == TUTTI_OK && tutti__option_next(&argc, argv, "--input", &text))
        status = predict_load(&g, text);
    if (status == TUTTI_OK && !tutti__knows_flags(usage, argc, argv))
        return TUTTI_EXIT_USAGE;
    if (status == TUTTI_OK && argc != 2)
        return tutti__complain("predict takes one FILE and --input; --help tells more"),
               TUTTI_EXIT_USAGE;
    tutti_job *job = tutti_open(NULL, NULL);
    if (status == TUTTI_OK)
        status = ends_with(argv[1], ".onnx") ? predict_onnx(argv[1], &g, output, json)
                 : ends_with(argv[1], ".pb") ? predict_graphdef(argv[1], &g, output, json)
                                             : predict_model(job, argv[1], &g, output, json);
    if (status != TUTTI_OK)
        tutti__complain("%s", tutti_error_message());
    tutti__job_discard(job);
    for (int i = 0; i < g.count; i++)
        tutti_tensor_release(g.tensors[i]);
    return status == TUTTI_OK ? TUTTI_EXIT_OK : TUTTI_EXIT_FAILED;
}

const tutti_command tutti_command_predict = {
    .name = "predict",
    .summary = "outputs of a saved model, ONNX file or frozen graph for arrays in files",
    .usage = usage,
    .run = predict_run,
};
