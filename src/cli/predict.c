/* predict.c: `tutti predict`: a saved model's outputs for arrays in files. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/job.h"
#include "cli/command.h"
#include "nn/model.h"
#include "tutti/onnx.h"

static const char usage[] =
    "usage: tutti predict FILE --input [NAME=]x.npy … [--output out.npz] [--json]\n\n"
    "Runs the model in FILE (written by tutti_save: FILE.json with FILE.safetensors, or ONNX) on\n"
    "arrays, batch first. NAME is an input's; without it the inputs are taken in order. An NPZ\n"
    "gives every input by its array's name. Outputs go to an NPZ, one array an output, or with\n"
    "--json (small ones) to standard output.\n\n"
    "exit codes: 0 success, 1 failure, 2 wrong usage\n";

#define MOST 64

typedef struct given {
    char names[MOST][128]; /* "" where none was said */
    tutti_tensor *tensors[MOST];
    int count;
} given;

static tutti_status keep(given *g, const char *name, tutti_tensor *tensor)
{
    if (g->count == MOST || strlen(name) >= sizeof g->names[0]) {
        tutti_tensor_release(tensor);
        return tutti_fail(TUTTI_TOO_LARGE, "at most %d inputs with names below 128 bytes", MOST);
    }
    snprintf(g->names[g->count], sizeof g->names[0], "%s", name);
    g->tensors[g->count++] = tensor;
    return TUTTI_OK;
}

static bool is_npz(const char *path)
{
    size_t size = strlen(path);
    return size > 4 && strcmp(path + size - 4, ".npz") == 0;
}

static tutti_status load(given *g, const char *text)
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
            status = keep(g, list.items[i].name, tutti_tensor_retain(list.items[i].tensor));
        tutti_named_tensors_clear(&list);
        return status;
    }
    tutti_tensor *tensor;
    TUTTI_TRY(tutti_npy_load(path, &tensor));
    return keep(g, name, tensor);
}

/* In the order of the model's inputs, in their element types. */
static tutti_status arrange(const tutti_model *model, const given *g, tutti_tensor **ret)
{
    for (size_t i = 0; i < model->inputs.count; i++) {
        const tutti_port *port = &model->inputs.data[i];
        int found = -1;
        for (int k = 0; k < g->count; k++)
            if (strcmp(g->names[k], port->name) == 0 || (!g->names[k][0] && (size_t)k == i) ||
                (g->count == 1 && model->inputs.count == 1))
                found = k;
        if (found < 0)
            return tutti_fail(TUTTI_NOT_FOUND,
                              "input '%s' of the model is not given: --input %s=x.npy", port->name,
                              port->name);
        TUTTI_TRY(tutti_tensor_cast(g->tensors[found], port->type.dtype, &ret[i]));
    }
    return TUTTI_OK;
}

static void print_values(const tutti_tensor *tensor, int axis, int64_t *at)
{
    const tutti_type *type = tutti_tensor_type(tensor);
    if (axis == type->rank) {
        if (tutti_dtype_is_float(type->dtype))
            printf("%.9g", tutti_tensor_get(tensor, (*at)++));
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

static tutti_status give(const tutti_model *model, tutti_tensor **outputs, const char *path,
                         bool json)
{
    tutti_named_tensor list[MOST];
    size_t count = model->outputs.count;
    for (size_t i = 0; i < count; i++)
        list[i] = (tutti_named_tensor){model->outputs.data[i].name, outputs[i]};
    if (json) {
        putchar('{');
        for (size_t i = 0; i < count; i++) {
            int64_t at = 0;
            printf("%s\"%s\":", i ? "," : "", list[i].name);
            print_values(outputs[i], 0, &at);
        }
        printf("}\n");
    }
    if (path)
        return tutti_npz_save(path, count, list, false);
    for (size_t i = 0; !json && i < count; i++) {
        char text[TUTTI_TYPE_TEXT];
        printf("%s %s\n", list[i].name, tutti_type_text(tutti_tensor_type(outputs[i]), text));
    }
    return TUTTI_OK;
}

static bool is_onnx(const char *path)
{
    size_t size = strlen(path);
    return size > 5 && strcmp(path + size - 5, ".onnx") == 0;
}

static tutti_status predict(tutti_job *job, const char *file, const given *g, const char *output,
                            bool json)
{
    tutti_tensor *inputs[MOST] = {0}, *outputs[MOST] = {0};
    tutti_model *model = is_onnx(file) ? tutti_import_onnx(job, file) : tutti_load_model(job, file);
    TUTTI_TRY(tutti_job_check(job));
    if (model->inputs.count > MOST || model->outputs.count > MOST)
        return tutti_fail(TUTTI_TOO_LARGE, "at most %d inputs and outputs", MOST);
    tutti_status status = arrange(model, g, inputs);
    if (status == TUTTI_OK)
        status = tutti_predict_on_batch(model, (int)model->inputs.count, inputs,
                                        (int)model->outputs.count, outputs);
    if (status == TUTTI_OK)
        status = give(model, outputs, output, json);
    for (int i = 0; i < MOST; i++) {
        tutti_tensor_release(inputs[i]);
        tutti_tensor_release(outputs[i]);
    }
    return status;
}

static int run(int argc, char **argv)
{
    given g = {0};
    const char *text, *output = NULL;
    tutti_status status = TUTTI_OK;
    bool json = tutti__flag(&argc, argv, "--json");
    tutti__option(&argc, argv, "--output", &output);
    while (status == TUTTI_OK && tutti__option(&argc, argv, "--input", &text))
        status = load(&g, text);
    if (status == TUTTI_OK && argc != 2)
        return tutti__complain("predict takes one FILE and --input; --help tells more"),
               TUTTI_EXIT_USAGE;
    tutti_job *job = tutti_open(NULL, NULL);
    if (status == TUTTI_OK)
        status = predict(job, argv[1], &g, output, json);
    if (status != TUTTI_OK)
        tutti__complain("%s", tutti_error_message());
    tutti__job_discard(job);
    for (int i = 0; i < g.count; i++)
        tutti_tensor_release(g.tensors[i]);
    return status == TUTTI_OK ? TUTTI_EXIT_OK : TUTTI_EXIT_FAILED;
}

const tutti_command tutti_command_predict = {
    .name = "predict",
    .summary = "outputs of a saved model or ONNX file for arrays in files",
    .usage = usage,
    .run = run,
};
