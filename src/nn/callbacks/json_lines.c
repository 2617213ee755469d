/* json_lines.c: what --json shows: one JSON object an epoch, and a last one. */
#include <math.h>
#include <stdio.h>

#include "base/world.h"
#include "io/json.h"
#include "nn/callbacks/common.h"

typedef struct lines {
    tutti_text *into; /* NULL: standard output */
    double trained;   /* seconds of this epoch's steps, validation left out */
    int64_t started;  /* when training began */
    int64_t examples; /* of all epochs of this run */
    double all_trained;
    bool begun;   /* an epoch, that is not over */
    int foretold; /* so many forecasts were told */
} lines;

static tutti_status put_line(lines *l, tutti_json_writer *w)
{
    tutti_text *text = w->text;
    tutti__json_end(w);
    tutti_status status = tutti__json_finish(w);
    tutti__text_add(text, "\n");
    if (status == TUTTI_OK && text->failed)
        status = tutti_fail(TUTTI_NO_MEMORY, "no memory for a line");
    if (status == TUTTI_OK && l->into) {
        tutti__text_bytes(l->into, text->data, text->size);
    } else if (status == TUTTI_OK) {
        fwrite(text->data, 1, text->size, stdout);
        fflush(stdout);
    }
    tutti__text_free(text);
    return status;
}

static void put_logs(tutti_json_writer *w, const tutti_logs *logs)
{
    for (int i = 0; i < logs->count; i++) {
        tutti__json_key(w, logs->items[i].name);
        tutti__json_put_float(w, (float)logs->items[i].value);
    }
}

/* Seconds to the millisecond, and examples a second of training to the tenth. */
static void put_speed(tutti_json_writer *w, double seconds, int64_t examples, double trained)
{
    tutti__json_key(w, "seconds");
    tutti__json_put_real(w, round(seconds * 1e3) / 1e3);
    tutti__json_key(w, "samples_per_second");
    tutti__json_put_real(w, trained > 0 ? round(10 * (double)examples / trained) / 10 : 0);
}

static tutti_status json_lines_train_begin(void *self, tutti_event *event)
{
    lines *l = self;
    (void)event;
    l->started = tutti__now_ns();
    return TUTTI_OK;
}

static void put_number(tutti_json_writer *w, const char *name, double value)
{
    tutti__json_key(w, name);
    tutti__json_put_real(w, value);
}

/* With the setting forecast=on: what a step will take, before the first one. */
static tutti_status json_lines_batch_begin(void *self, tutti_event *event)
{
    lines *l = self;
    tutti_text text = {0};
    tutti_json_writer w = {.text = &text};
    const tutti_fit *fit = (const tutti_fit *)(const void *)event;
    if (l->foretold == fit->forecasts || event->validating || !fit->forecast)
        return TUTTI_OK;
    l->foretold = fit->forecasts;
    const tutti_forecast *f = fit->forecast;
    tutti__json_begin(&w, '{');
    tutti__json_key(&w, "forecast");
    tutti__json_put_string(&w, f->strategy);
    if (fit->chosen[0]) {
        tutti__json_key(&w, "auto");
        tutti__json_put_string(&w, fit->chosen);
    }
    if (!event->model && fit->program) {
        tutti__json_key(&w, "program");
        tutti__json_put_string(&w, fit->program);
    }
    put_number(&w, "replicas", f->replicas);
    put_number(&w, "step_seconds", f->step);
    put_number(&w, "compute_seconds", f->compute);
    put_number(&w, "exposed_seconds", f->exposed);
    put_number(&w, "sent_bytes", f->sent);
    put_number(&w, "memory_bytes", f->total);
    return put_line(l, &w);
}

static void put_account(tutti_json_writer *w, const tutti_fit_account *a)
{
    put_number(w, "input_share", a->input);
    put_number(w, "compute_share", a->compute);
    put_number(w, "communication_share", a->communication);
    put_number(w, "waiting_share", a->waiting);
    put_number(w, "slowest", a->slowest);
    put_number(w, "slowest_share", a->for_slowest);
}

static tutti_status json_lines_epoch_begin(void *self, tutti_event *event)
{
    lines *l = self;
    (void)event;
    l->trained = 0;
    l->begun = true;
    return TUTTI_OK;
}

static tutti_status json_lines_batch_end(void *self, tutti_event *event)
{
    lines *l = self;
    if (!event->validating)
        l->trained = event->seconds;
    return TUTTI_OK;
}

/* Also one that was cut off. */
static void add_epoch(lines *l, const tutti_event *event)
{
    l->examples += l->begun ? event->examples : 0;
    l->all_trained += l->begun ? l->trained : 0;
    l->begun = false;
}

static tutti_status json_lines_epoch_end(void *self, tutti_event *event)
{
    lines *l = self;
    tutti_text text = {0};
    tutti_json_writer w = {.text = &text};
    add_epoch(l, event);
    tutti__json_begin(&w, '{');
    tutti__json_key(&w, "epoch");
    tutti__json_put_int(&w, event->epoch + 1);
    put_logs(&w, event->logs);
    put_speed(&w, event->seconds, event->examples, l->trained);
    return put_line(l, &w);
}

/* Epochs, steps and samples of the whole training, also before --resume; seconds and speed of this
 * process. */
static tutti_status json_lines_train_end(void *self, tutti_event *event)
{
    lines *l = self;
    const tutti_fit *fit = (const tutti_fit *)(const void *)event;
    tutti_text text = {0};
    tutti_json_writer w = {.text = &text};
    add_epoch(l, event);
    tutti__json_begin(&w, '{');
    tutti__json_key(&w, "done");
    tutti__json_put_bool(&w, true);
    tutti__json_key(&w, "interrupted");
    tutti__json_put_bool(&w, event->interrupted);
    tutti__json_key(&w, "epochs");
    tutti__json_put_int(&w, fit->done);
    tutti__json_key(&w, "steps");
    tutti__json_put_int(&w, event->step);
    if (fit->resumed > 0) {
        tutti__json_key(&w, "resumed_at");
        tutti__json_put_int(&w, fit->resumed);
    }
    tutti__json_key(&w, "samples");
    tutti__json_put_int(&w, fit->samples);
    put_logs(&w, &fit->last);
    put_speed(&w, 1e-9 * (double)(tutti__now_ns() - l->started), l->examples, l->all_trained);
    if (event->model && fit->account.known)
        put_account(&w, &fit->account);
    return put_line(l, &w);
}

static const tutti_callback_kind kind = {
    .struct_size = sizeof(tutti_callback_kind),
    .writes = true,
    .name = "json_lines",
    .train_begin = json_lines_train_begin,
    .train_end = json_lines_train_end,
    .epoch_begin = json_lines_epoch_begin,
    .epoch_end = json_lines_epoch_end,
    .batch_begin = json_lines_batch_begin,
    .batch_end = json_lines_batch_end,
    .destroy = free,
};

tutti_callback *tutti__json_lines_into(tutti_text *into)
{
    lines *l = calloc(1, sizeof *l);
    if (!l)
        return NULL;
    l->into = into;
    return tutti_callback_make(&kind, l);
}

tutti_callback *tutti_json_lines(void)
{
    return tutti__json_lines_into(NULL);
}
