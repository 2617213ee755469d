/* decoder.c: a model that answers step by step. Its forms, one for each number of steps that it was
 * given at once, stand in a graph of their own over an engine of their own: weights there hold the
 * model's tensors, and the caches of keys and values are variables that are written in place. */
#include <stdlib.h>
#include <string.h>

#include "base/require.h"
#include "exec/plan/share.h"
#include "nn/model/model.h"
#include "ops/build.h"
#include "tutti/generate.h"

enum { MOST_FORMS = 16 }; /* programs are kept for so many numbers of steps */

typedef struct form {
    int64_t steps;
    tutti_sym input, position, output;
} form;

struct tutti_decoder {
    tutti_model *model;
    tutti_engine *engine;
    tutti_graph *graph;
    tutti_session *session;
    int64_t batch, capacity, position;
    int64_t limit; /* steps that a layer takes at most; 0: any number */
    int form_count;
    form forms[MOST_FORMS];
};

/* ---- weights ---- */

/* The model's own tensor where it lies in the memory of the host, else a copy. */
static tutti_status weight_take(tutti_model *model, tutti_node *node, tutti_tensor **ret)
{
    tutti_state *state = tutti__engine_state(model->engine);
    tutti_state_variable *variable;
    TUTTI_TRY(tutti__session_variable(model->session, tutti__sym(node, 0), &variable));
    TUTTI_TRY(tutti__variable_intact(variable));
    tutti_piece *piece = variable->pieces.count == 1 ? variable->pieces.data[0] : NULL;
    if (piece && piece->memory == tutti__host_memory() &&
        tutti_type_equal(&piece->type, &variable->type) && !variable->partial) {
        *ret = tutti__piece_acquire(state, piece);
        if (*ret)
            return TUTTI_OK;
    }
    return tutti__variable_get(state, variable, ret);
}

static tutti_status weight_give(tutti_decoder *d, tutti_node *node, const tutti_device *device)
{
    tutti_state *state = tutti__engine_state(d->engine);
    tutti_state_variable *variable;
    tutti_piece *piece;
    tutti_tensor *value;
    TUTTI_TRY(weight_take(d->model, node, &value));
    const char *name = tutti__state_name(node);
    if (device->memory != tutti__host_memory()) {
        tutti_status status = tutti__state_expect(state, name, value);
        tutti_tensor_release(value);
        return status;
    }
    tutti_status status = tutti__state_variable(state, name, tutti_tensor_type(value), "",
                                                tutti__int(node, "trainable") != 0, &variable);
    if (status == TUTTI_OK)
        status = tutti__state_piece(state, variable, device->name, device->memory, &piece);
    if (status != TUTTI_OK) {
        tutti_tensor_release(value);
        return status;
    }
    tutti__state_commit_begin(state);
    tutti__piece_replace(state, piece, value);
    tutti__state_commit_end(state);
    return TUTTI_OK;
}

/* ---- forms ---- */

static tutti_status graph_open(tutti_decoder *d)
{
    d->form_count = 0;
    TUTTI_TRY(tutti_graph_create(&d->graph));
    return tutti__session_share(d->graph, d->engine, &d->session);
}

static void graph_close(tutti_decoder *d)
{
    tutti_session_close(d->session);
    tutti_graph_destroy(d->graph);
    d->session = NULL;
    d->graph = NULL;
}

static tutti_status form_outputs(tutti_decoder *d, form *f)
{
    tutti_sym outputs[64];
    tutti_decoding decoding = {.position = f->position, .steps = f->steps, .capacity = d->capacity};
    tutti_building building = tutti__model_building(d->model, false);
    building.decoding = &decoding;
    d->graph->building = &building;
    tutti_status status = tutti__model_instantiate(d->model, d->graph, &f->input, outputs);
    d->graph->building = NULL;
    building.prefix = "";
    tutti__building_free(&building);
    TUTTI_TRY(status);
    d->limit = decoding.limit;
    tutti_type type = tutti_sym_type(outputs[0]);
    char text[TUTTI_TYPE_TEXT];
    if (type.rank < 2 || type.dims[1] != f->steps)
        return tutti_fail(TUTTI_INVALID,
                          "model '%s' gives %s for %lld steps; one that answers step by step gives "
                          "[batch, steps, …]",
                          d->model->name, tutti_type_text(&type, text), (long long)f->steps);
    f->output = tutti_squeeze(tutti_slice_axis(outputs[0], 1, f->steps - 1, f->steps), 1);
    return tutti_graph_check(d->graph);
}

/* Gives the caches their first value; weights have theirs. */
static tutti_status caches_start(tutti_decoder *d)
{
    tutti_sym targets[256];
    int count = 0;
    for (size_t i = 0; i < d->graph->nodes.count; i++) {
        tutti_node *node = d->graph->nodes.data[i];
        if (node->dead || !tutti__is(node, "assign") || !tutti__int(node, "initializer") ||
            tutti__state_has_value(tutti__engine_state(d->engine),
                                   tutti__state_name(node->inputs[0].node)))
            continue;
        targets[count++] = tutti__sym(node, 0);
        if (count == (int)TUTTI_COUNT(targets)) {
            TUTTI_TRY(tutti_run(d->session, .targets = {count, targets}));
            count = 0;
        }
    }
    return count > 0 ? tutti_run(d->session, .targets = {count, targets}) : TUTTI_OK;
}

static tutti_status form_make(tutti_decoder *d, int64_t steps, const form **ret)
{
    form f = {.steps = steps};
    if (d->form_count == MOST_FORMS) {
        graph_close(d);
        TUTTI_TRY(graph_open(d));
    }
    tutti_type type = d->model->inputs.data[0].type;
    type.dims[0] = d->batch;
    type.dims[1] = steps;
    f.input = (tutti_placeholder)(d->graph, type);
    f.position = tutti_placeholder(d->graph, TUTTI_I64);
    TUTTI_TRY(form_outputs(d, &f));
    TUTTI_TRY(caches_start(d));
    d->forms[d->form_count] = f;
    *ret = &d->forms[d->form_count++];
    return TUTTI_OK;
}

static tutti_status form_find(tutti_decoder *d, int64_t steps, const form **ret)
{
    for (int i = 0; i < d->form_count; i++)
        if (d->forms[i].steps == steps) {
            *ret = &d->forms[i];
            return TUTTI_OK;
        }
    return form_make(d, steps, ret);
}

/* ---- opening ---- */

static tutti_status model_fits(tutti_model *model)
{
    char text[TUTTI_TYPE_TEXT];
    TUTTI_TRY(tutti_model_check(model));
    if (model->kind)
        return tutti_fail(
            TUTTI_UNSUPPORTED,
            "model '%s' is a subclass, of whose call it is not known whether it takes "
            "steps one by one; make it of layers",
            model->name);
    if (model->inputs.count != 1 || model->outputs.count < 1)
        return tutti_fail(TUTTI_INVALID,
                          "model '%s' has %zu inputs; one that answers step by step has one",
                          model->name, model->inputs.count);
    const tutti_type *type = &model->inputs.data[0].type;
    for (int i = 2; i < type->rank; i++)
        if (type->dims[i] < 0)
            return tutti_fail(TUTTI_INVALID, "model '%s' takes %s, whose features are not known",
                              model->name, tutti_type_text(type, text));
    return type->rank >= 2
               ? TUTTI_OK
               : tutti_fail(TUTTI_INVALID, "model '%s' takes %s; steps are [batch, steps, …]",
                            model->name, tutti_type_text(type, text));
}

static tutti_status decoder_start(tutti_decoder *d)
{
    tutti_engine_options options;
    tutti_device *device;
    tutti_strategy *strategy = tutti__engine_strategy(d->model->engine);
    TUTTI_TRY(tutti__engine_options_of(
        TUTTI_OPTIONS(tutti_session_options, .deterministic = d->model->deterministic), &options));
    if (strategy && strategy->local > 0)
        options.device = tutti_strategy_device(strategy, 0);
    TUTTI_TRY(tutti__engine_create(&options, &d->engine));
    TUTTI_TRY(tutti__device_open(tutti__engine_device(d->engine), &device));
    for (size_t i = 0; i < d->model->weights.count; i++)
        TUTTI_TRY(weight_give(d, d->model->weights.data[i], device));
    TUTTI_TRY(graph_open(d));
    const form *first; /* what is wrong with the model is said here */
    TUTTI_TRY(form_find(d, 1, &first));
    if (d->limit > 0 && d->capacity > d->limit)
        return tutti_fail(
            TUTTI_OUT_OF_RANGE,
            "sequences of %lld steps are asked for, model '%s' has positions for %lld",
            (long long)d->capacity, d->model->name, (long long)d->limit);
    return TUTTI_OK;
}

tutti_status tutti_decoder_open_with(tutti_model *model, int64_t capacity,
                                     const tutti_decoder_options *options,
                                     tutti_decoder **ret_decoder)
{
    int64_t batch = options && options->batch ? options->batch : 1;
    TUTTI_REQUIRE(model);
    TUTTI_REQUIRE(ret_decoder);
    if (capacity < 1 || capacity > INT32_MAX || batch < 1 || batch > INT32_MAX)
        return tutti_fail(TUTTI_INVALID,
                          "a decoder for %lld sequences of %lld steps; give at least 1, at most "
                          "2^31 - 1",
                          (long long)batch, (long long)capacity);
    TUTTI_TRY(tutti__model_need_built(model));
    TUTTI_TRY(model_fits(model));
    tutti_decoder *d = calloc(1, sizeof *d);
    if (!d)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a decoder");
    *d = (tutti_decoder){.model = model, .batch = batch, .capacity = capacity};
    tutti_status status = decoder_start(d);
    if (status == TUTTI_OK)
        *ret_decoder = d;
    else
        tutti_decoder_close(d);
    return status;
}

void tutti_decoder_close(tutti_decoder *decoder)
{
    if (!decoder)
        return;
    graph_close(decoder);
    tutti__engine_destroy(decoder->engine);
    free(decoder);
}

/* ---- steps ---- */

static tutti_status check_steps(const tutti_decoder *d, tutti_tensor *steps)
{
    const tutti_type *type = tutti_tensor_type(steps);
    tutti_type want = d->model->inputs.data[0].type;
    char have[TUTTI_TYPE_TEXT], wanted[TUTTI_TYPE_TEXT];
    want.dims[0] = d->batch;
    want.dims[1] = TUTTI_ANY;
    bool fits = type->dtype == want.dtype && type->rank == want.rank;
    for (int i = 0; fits && i < want.rank; i++)
        fits = i == 1 ? type->dims[1] > 0 : type->dims[i] == want.dims[i];
    if (!fits)
        return tutti_fail(TUTTI_INVALID, "the decoder of model '%s' takes %s, it is given %s",
                          d->model->name, tutti_type_text(&want, wanted),
                          tutti_type_text(type, have));
    int64_t end = d->position + type->dims[1];
    if (end > d->capacity)
        return tutti_fail(TUTTI_OUT_OF_RANGE,
                          "the sequence would have %lld steps, the decoder was opened for %lld",
                          (long long)end, (long long)d->capacity);
    return TUTTI_OK;
}

tutti_status tutti_decoder_step(tutti_decoder *decoder, tutti_tensor *steps,
                                tutti_tensor **ret_output)
{
    TUTTI_REQUIRE(decoder);
    TUTTI_REQUIRE(steps);
    TUTTI_REQUIRE(ret_output);
    const form *f;
    tutti_tensor *position;
    TUTTI_TRY(check_steps(decoder, steps));
    int64_t count = tutti_tensor_dims(steps)[1];
    TUTTI_TRY(form_find(decoder, count, &f));
    TUTTI_TRY(tutti_tensor_from(TUTTI_I64, 0, NULL, &decoder->position, &position));
    tutti_status status =
        tutti_run(decoder->session, .feed = TUTTI_FEED({f->input, steps}, {f->position, position}),
                  .fetch = TUTTI_FETCH({f->output, ret_output}));
    tutti_tensor_release(position);
    if (status == TUTTI_OK)
        decoder->position += count;
    return status;
}

int64_t tutti_decoder_position(const tutti_decoder *decoder)
{
    return decoder ? decoder->position : 0;
}

/* What stands in the caches from there on is not seen before it is written again. */
tutti_status tutti_decoder_rewind(tutti_decoder *decoder, int64_t position)
{
    TUTTI_REQUIRE(decoder);
    if (position < 0 || position > decoder->position)
        return tutti_fail(TUTTI_OUT_OF_RANGE,
                          "the decoder is at step %lld, it cannot go back to %lld",
                          (long long)decoder->position, (long long)position);
    decoder->position = position;
    return TUTTI_OK;
}
