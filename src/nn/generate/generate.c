/* generate.c: a sequence made token by token. */
#include <stdlib.h>
#include <string.h>

#include "base/require.h"
#include "base/world.h"
#include "nn/model/model.h"
#include "tutti/generate.h"

typedef struct writer {
    tutti_model *model;
    const tutti_generate_options *options;
    tutti_sample_options sampling;
    tutti_decoder *decoder; /* NULL: everything is computed again */
    int64_t batch, given, room;
    int64_t length;    /* steps that `tokens` has */
    int32_t *tokens;   /* [batch, room] */
    int32_t *newest;   /* [batch] */
    bool *ended;       /* by row: its stop was there */
    tutti_dtype dtype; /* of the model's input */
} writer;

static tutti_status no_memory(void)
{
    return tutti_fail(TUTTI_NO_MEMORY, "no memory to generate");
}

/* Steps [first, length) of all rows. */
static tutti_status steps_of(const writer *w, int64_t first, tutti_tensor **ret)
{
    tutti_tensor *steps;
    int64_t count = w->length - first;
    TUTTI_TRY(tutti_tensor_create(w->dtype, 2, (int64_t[]){w->batch, count}, &steps));
    for (int64_t i = 0; i < w->batch * count; i++)
        tutti_tensor_set_int(steps, i, w->tokens[i / count * w->room + first + i % count]);
    *ret = steps;
    return TUTTI_OK;
}

/* The last step of [batch, steps, vocabulary]. */
static tutti_status last_step(tutti_tensor *all, tutti_tensor **ret)
{
    tutti_tensor *view;
    if (tutti_tensor_rank(all) != 3)
        return tutti_fail(TUTTI_INVALID,
                          "the model's output has %d dimensions; scores are [batch, "
                          "steps, vocabulary]",
                          tutti_tensor_rank(all));
    TUTTI_TRY(tutti_tensor_slice(all, 1, tutti_tensor_dims(all)[1] - 1, 1, 1, &view));
    tutti_status status = tutti_tensor_contiguous(view, ret);
    tutti_tensor_release(view);
    return status;
}

static tutti_status answer_again(writer *w, tutti_tensor *steps, tutti_tensor **ret)
{
    tutti_tensor *all;
    TUTTI_TRY(tutti_predict_on_batch(w->model, 1, &steps, 1, &all));
    tutti_status status = last_step(all, ret);
    tutti_tensor_release(all);
    return status;
}

/* The scores after what there is, f32 [batch, vocabulary] or with an axis of 1 between. */
static tutti_status scores(writer *w, tutti_tensor **ret)
{
    tutti_tensor *steps, *answer;
    TUTTI_TRY(steps_of(w, w->decoder ? tutti_decoder_position(w->decoder) : 0, &steps));
    tutti_status status = w->decoder ? tutti_decoder_step(w->decoder, steps, &answer)
                                     : answer_again(w, steps, &answer);
    tutti_tensor_release(steps);
    TUTTI_TRY(status);
    status = tutti_tensor_cast(answer, TUTTI_F32, ret);
    tutti_tensor_release(answer);
    return status;
}

/* One token more in each row; *ret_more: whether any of them goes on. */
static tutti_status draw(writer *w, tutti_tensor *from, bool *ret_more)
{
    int64_t words = tutti_tensor_count(from) / w->batch, token;
    const tutti_generate_options *o = w->options;
    *ret_more = false;
    for (int64_t row = 0; row < w->batch; row++) {
        tutti_sample_options sampling = w->sampling;
        sampling.seed += (uint64_t)row * UINT64_C(0x9e3779b97f4a7c15);
        TUTTI_TRY(tutti_sample_token(words, (const float *)tutti_tensor_data(from) + row * words,
                                     (uint64_t)(w->length - w->given), &sampling, &token));
        if (w->ended[row])
            token = o->stop;
        w->ended[row] = w->ended[row] || (o->has_stop && token == o->stop);
        w->newest[row] = w->tokens[row * w->room + w->length] = (int32_t)token;
        *ret_more = *ret_more || !w->ended[row];
    }
    w->length++;
    if (o->each && !o->each(o->context, w->batch, w->newest))
        *ret_more = false;
    return TUTTI_OK;
}

static tutti_status write_tokens(writer *w, tutti_generate_report *report)
{
    int64_t start = tutti__now_ns(), first = 0;
    for (bool more = true; more && w->length < w->room && !tutti_interrupted();) {
        tutti_tensor *from;
        TUTTI_TRY(scores(w, &from));
        if (first == 0)
            first = tutti__now_ns();
        tutti_status status = draw(w, from, &more);
        tutti_tensor_release(from);
        TUTTI_TRY(status);
    }
    *report = (tutti_generate_report){.prompt = w->given,
                                      .tokens = w->length - w->given,
                                      .prompt_seconds = (double)(first - start) * 1e-9,
                                      .seconds = (double)(tutti__now_ns() - first) * 1e-9};
    return TUTTI_OK;
}

static tutti_status take_prompt(writer *w, const tutti_tensor *prompt, int64_t count)
{
    const tutti_type *type = tutti_tensor_type(prompt);
    char text[TUTTI_TYPE_TEXT];
    if (!tutti_dtype_is_int(type->dtype) || type->rank < 1 || type->rank > 2 ||
        tutti_tensor_count(prompt) == 0)
        return tutti_fail(
            TUTTI_INVALID,
            "the prompt is %s; needs integers [steps] or [batch, steps], at least one "
            "(a token that begins texts, if there is nothing else)",
            tutti_type_text(type, text));
    w->batch = type->rank == 2 ? type->dims[0] : 1;
    w->given = w->length = type->dims[type->rank - 1];
    if (!tutti__add_size(w->given, count, &w->room) || w->room > INT32_MAX)
        return tutti_fail(TUTTI_TOO_LARGE, "%lld tokens are too many", (long long)count);
    w->tokens = calloc((size_t)(w->batch * w->room), sizeof *w->tokens);
    w->newest = calloc((size_t)w->batch, sizeof *w->newest);
    w->ended = calloc((size_t)w->batch, sizeof *w->ended);
    if (!w->tokens || !w->newest || !w->ended)
        return no_memory();
    for (int64_t i = 0; i < w->batch * w->given; i++)
        w->tokens[i / w->given * w->room + i % w->given] = (int32_t)tutti_tensor_get_int(prompt, i);
    return TUTTI_OK;
}

static tutti_status give_tokens(const writer *w, int rank, tutti_tensor **ret)
{
    tutti_tensor *all;
    int64_t dims[] = {w->batch, w->length};
    TUTTI_TRY(tutti_tensor_create(TUTTI_I32, rank, rank == 2 ? dims : dims + 1, &all));
    for (int64_t row = 0; row < w->batch; row++)
        memcpy((int32_t *)tutti_tensor_data(all) + row * w->length, w->tokens + row * w->room,
               (size_t)w->length * sizeof *w->tokens);
    *ret = all;
    return TUTTI_OK;
}

static tutti_status generate(writer *w, tutti_tensor *prompt, int64_t count,
                             tutti_generate_report *report, tutti_tensor **ret)
{
    TUTTI_TRY(tutti__model_need_built(w->model));
    if (w->model->inputs.count != 1 || w->model->inputs.data[0].type.rank != 2 ||
        !tutti_dtype_is_int(w->model->inputs.data[0].type.dtype))
        return tutti_fail(TUTTI_INVALID,
                          "model '%s' cannot write: it needs one input, integers [batch, steps]",
                          w->model->name);
    w->dtype = w->model->inputs.data[0].type.dtype;
    TUTTI_TRY(take_prompt(w, prompt, count));
    if (!w->options->no_cache && count > 0)
        TUTTI_TRY(tutti_decoder_open(&w->decoder, w->model, w->room, .batch = w->batch));
    TUTTI_TRY(write_tokens(w, report));
    return give_tokens(w, tutti_tensor_rank(prompt), ret);
}

tutti_status tutti_generate_with(tutti_model *model, tutti_tensor *prompt, int64_t count,
                                 const tutti_generate_options *options, tutti_tensor **ret_tokens)
{
    TUTTI_REQUIRE(model);
    TUTTI_REQUIRE(prompt);
    TUTTI_REQUIRE(ret_tokens);
    static const tutti_generate_options none = {.struct_size = sizeof none};
    options = options ? options : &none;
    if (count < 0)
        return tutti_fail(TUTTI_INVALID, "%lld tokens to generate; give 0 or more",
                          (long long)count);
    TUTTI_TRY(tutti_model_check(model));
    uint64_t seed = options->seed ? options->seed : tutti_job_seed(model->job);
    writer w = {.model = model,
                .options = options,
                .sampling = {.struct_size = sizeof(tutti_sample_options),
                             .temperature = options->temperature,
                             .top_k = options->top_k,
                             .top_p = options->top_p,
                             .seed = seed ? seed : 1}};
    tutti_generate_report report = {0};
    tutti_status status = generate(&w, prompt, count, &report, ret_tokens);
    tutti_decoder_close(w.decoder);
    free(w.tokens);
    free(w.newest);
    free(w.ended);
    if (status == TUTTI_OK && options->report)
        *options->report = report;
    return status;
}
