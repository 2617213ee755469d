/* progress.c: the live bar of an epoch on a terminal, one line an epoch elsewhere.
 *
 *     Epoch 1/12
 *     412/938 ━━━━━━━━──────────── ETA 1 s  1.9 ms/step  loss 0.2921  accuracy 0.9142  lr 0.001
 *     938/938 ━━━━━━━━━━━━━━━━━━━━ 1.8 s  1.9 ms/step  loss 0.1921  accuracy 0.9442  lr 0.001
 *
 * The bar is drawn at most ten times a second: only then are losses and metrics read. A line never
 * grows wider than the terminal, so that it can be drawn over. */
#include <math.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/world.h"
#include "forecast/forecast.h"
#include "nn/callbacks/common.h"
#include "nn/model/model_strategy.h"

#define WIDTH 20
#define REFRESH_NS 100000000

typedef struct progress {
    tutti_text *into; /* NULL: standard output */
    bool terminal;
    int columns;
    int64_t shown;  /* when the bar was drawn last */
    double trained; /* seconds of this epoch's training steps */
    int64_t before; /* its steps before --resume */
    int foretold;   /* so many forecasts were told */
    bool said;      /* what was chosen for the limit of memory */
    tutti_text line;
} progress;

/* 0.1921, 12.34, 3.1e-05. */
static void add_number(tutti_text *line, double value)
{
    double size = fabs(value);
    if (isnan(value))
        tutti__text_add(line, "nan"); /* whatever its sign */
    else if (size != 0 && (size < 1e-3 || size >= 1e6))
        tutti__text_add(line, "%.2e", value);
    else
        tutti__text_add(line, size >= 1000 ? "%.1f" : size >= 10 ? "%.3f" : "%.4f", value);
}

static void add_time(tutti_text *line, double seconds)
{
    long long whole = (long long)(seconds + 0.5);
    if (whole >= 3600)
        tutti__text_add(line, "%lld:%02lld:%02lld", whole / 3600, whole / 60 % 60, whole % 60);
    else if (whole >= 100)
        tutti__text_add(line, "%lld:%02lld", whole / 60, whole % 60);
    else
        tutti__text_add(line, seconds < 10 ? "%.1f s" : "%.0f s", seconds);
}

static void add_step_time(tutti_text *line, double seconds)
{
    if (seconds >= 1)
        tutti__text_add(line, "  %.2f s/step", seconds);
    else if (seconds >= 1e-3)
        tutti__text_add(line, seconds >= 0.1 ? "  %.0f ms/step" : "  %.1f ms/step", 1e3 * seconds);
    else
        tutti__text_add(line, "  %.0f us/step", 1e6 * seconds);
}

/* Names and values; the learning rate without needless zeros. */
static void add_logs(tutti_text *line, const tutti_logs *logs)
{
    for (int i = 0; logs && i < logs->count; i++) {
        tutti__text_add(line, "  %s ", logs->items[i].name);
        if (strcmp(logs->items[i].name, "lr") == 0)
            tutti__text_add(line, "%.4g", logs->items[i].value);
        else
            add_number(line, logs->items[i].value);
    }
}

static void add_bar(tutti_text *line, int64_t done, int64_t count)
{
    for (int i = 0; i < WIDTH; i++)
        tutti__text_add(line, "%s", count > 0 && i < WIDTH * done / count ? "\u2501" : "\u2500");
}

static void add_steps(tutti_text *line, int64_t done, int64_t count)
{
    if (count > 0)
        tutti__text_add(line, "%lld/%lld ", (long long)done, (long long)count);
    else
        tutti__text_add(line, "%lld/? ", (long long)done);
}

/* Cuts the line to so many characters. */
static void progress_cut(tutti_text *line, int columns)
{
    int seen = 0;
    for (size_t i = 0; columns > 0 && i < line->size; i++) {
        bool begins = ((unsigned char)line->data[i] & 0xc0) != 0x80;
        if (begins && ++seen > columns) {
            line->data[i] = 0;
            line->size = i;
        }
    }
}

/* Draws the line over the one that is there, or under it. */
static tutti_status progress_show(progress *p, bool ends)
{
    tutti_status status = TUTTI_OK;
    if (p->terminal && !ends)
        progress_cut(&p->line, p->columns - 1);
    if (p->line.failed)
        status = tutti_fail(TUTTI_NO_MEMORY, "no memory for a line");
    else if (p->into)
        tutti__text_add(p->into, "%s%s%s", p->terminal ? "\r\033[K" : "", p->line.data,
                        ends ? "\n" : "");
    else {
        printf("%s%s%s", p->terminal ? "\r\033[K" : "", p->line.data, ends ? "\n" : "");
        fflush(stdout);
    }
    p->line.size = 0;
    return status;
}

static tutti_status progress_epoch_begin(void *self, tutti_event *event)
{
    progress *p = self;
    struct winsize size;
    p->trained = 0;
    p->before = event->batch;
    p->shown = tutti__now_ns();
    if (p->terminal && !p->into && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        p->columns = size.ws_col;
    tutti__text_add(&p->line, "Epoch %d/%d", event->epoch + 1, event->epochs);
    return progress_show(p, true);
}

/* What was chosen for the limit of memory: known from the first step on. */
static tutti_status say_memory(progress *p, tutti_event *event)
{
    tutti_engine_stats stats;
    if (p->said || !event->model || !event->model->engine || event->validating)
        return TUTTI_OK;
    p->said = true;
    tutti__engine_stats(event->model->engine, &stats);
    if (!stats.note[0])
        return TUTTI_OK;
    tutti__text_add(&p->line, "%s", stats.note);
    return progress_show(p, true);
}

static tutti_status progress_batch_end(void *self, tutti_event *event)
{
    progress *p = self;
    TUTTI_TRY(say_memory(p, event));
    int64_t now = tutti__now_ns(), done = event->batch + 1, left = event->batch_count - done;
    if (!event->validating)
        p->trained = event->seconds;
    if (!p->terminal || now - p->shown < REFRESH_NS)
        return TUTTI_OK;
    p->shown = now;
    int64_t here = done - (event->validating ? 0 : p->before);
    double step = event->seconds / (double)(here > 0 ? here : 1);
    add_steps(&p->line, done, event->batch_count);
    add_bar(&p->line, done, event->batch_count);
    if (left > 0) {
        tutti__text_add(&p->line, " ETA ");
        add_time(&p->line, step * (double)left);
    }
    add_step_time(&p->line, step);
    if (event->validating)
        tutti__text_add(&p->line, "  validating");
    add_logs(&p->line, tutti_event_logs(event));
    if (!event->validating && event->model) /* a hand-written loop has none */
        tutti__text_add(&p->line, "  lr %.4g", tutti_get_learning_rate(event->model));
    return progress_show(p, false);
}

static tutti_status progress_epoch_end(void *self, tutti_event *event)
{
    progress *p = self;
    int64_t done = event->batch > 0 ? event->batch : 1, here = event->batch - p->before;
    add_steps(&p->line, event->batch, event->batch_count > 0 ? event->batch_count : event->batch);
    if (p->terminal) {
        add_bar(&p->line, event->batch, event->batch_count > 0 ? event->batch_count : done);
        tutti__text_add(&p->line, " ");
    }
    add_time(&p->line, event->seconds);
    add_step_time(&p->line, p->trained / (double)(here > 0 ? here : 1));
    add_logs(&p->line, event->logs);
    if (p->trained > 0 && event->waited_seconds > 0.1 * p->trained)
        tutti__text_add(&p->line, "  waited %.0f%% for data",
                        100 * event->waited_seconds / p->trained);
    return progress_show(p, true);
}

/* How processes share the data. */
static tutti_status add_sharing(tutti_text *line, const tutti_fit *fit)
{
    tutti_shard_policy policy;
    const tutti_strategy *strategy = tutti__model_strategy(fit->model);
    int workers = tutti_strategy_workers(strategy);
    if (workers < 2 || !fit->data)
        return TUTTI_OK;
    TUTTI_TRY(tutti__strategy_shard(strategy, fit->data, false, &policy));
    tutti__text_add(line, "\n  data: ");
    tutti__share_describe(fit->data, policy, workers, line);
    return TUTTI_OK;
}

/* What a step will take, before the first one. */
static tutti_status progress_batch_begin(void *self, tutti_event *event)
{
    progress *p = self;
    char *text;
    const tutti_fit *fit = (const tutti_fit *)(const void *)event;
    if (p->foretold == fit->forecasts || event->validating || !fit->forecast)
        return TUTTI_OK;
    p->foretold = fit->forecasts;
    if (fit->chosen[0])
        tutti__text_add(&p->line, "%s\n", fit->chosen);
    const char *name = event->model ? event->model->name : fit->program;
    tutti_strategy *strategy = event->model ? tutti__model_strategy(event->model) : fit->strategy;
    TUTTI_TRY(tutti__forecast_text(name, strategy, fit->forecast, &text));
    tutti__text_add(&p->line, "%.*s", (int)strlen(text) - 1, text);
    free(text);
    if (event->model)
        TUTTI_TRY(add_sharing(&p->line, fit));
    return progress_show(p, true);
}

static tutti_status progress_train_end(void *self, tutti_event *event)
{
    progress *p = self;
    if (event->model)
        tutti__fit_account_text((const tutti_fit *)(const void *)event, &p->line);
    if (p->line.size > 0)
        TUTTI_TRY(progress_show(p, true));
    if (!event->interrupted)
        return TUTTI_OK;
    tutti__text_add(&p->line, "interrupted after step %lld", (long long)event->step);
    return progress_show(p, true);
}

static void progress_destroy(void *self)
{
    progress *p = self;
    tutti__text_free(&p->line);
    free(p);
}

static const tutti_callback_kind kind = {
    .struct_size = sizeof(tutti_callback_kind),
    .writes = true,
    .name = "progress_bar",
    .train_end = progress_train_end,
    .epoch_begin = progress_epoch_begin,
    .batch_begin = progress_batch_begin,
    .batch_end = progress_batch_end,
    .epoch_end = progress_epoch_end,
    .destroy = progress_destroy,
};

tutti_callback *tutti__progress_into(tutti_text *into, bool terminal, int columns)
{
    progress *p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    *p = (progress){.into = into, .terminal = terminal, .columns = columns};
    return tutti_callback_make(&kind, p);
}

/* A line that is drawn again and again needs a terminal that can go back to its beginning. */
static bool can_draw(void)
{
    const char *named = getenv("TERM");
    return isatty(STDOUT_FILENO) == 1 && !(named && strcmp(named, "dumb") == 0);
}

tutti_callback *tutti_progress_bar(void)
{
    return tutti__progress_into(NULL, can_draw(), 100);
}
