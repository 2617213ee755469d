/* profile.c: collecting what ran when, and writing it in Chrome's trace format. */
#include "nn/callbacks/profile.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/world.h"
#include "io/inflate.h"
#include "io/json.h"
#include "program/trace.h"

void tutti__profile_begin(tutti_profile *profile)
{
    profile->begin = tutti__now_ns();
    profile->ticks = profile->since = tutti__ticks();
}

void tutti__profile_free(tutti_profile *profile)
{
    TUTTI_VEC_FREE(&profile->spans);
}

static void profile_add(tutti_profile *profile, tutti_profile_span span)
{
    if (profile->spans.count < TUTTI_PROFILE_SPANS)
        (void)TUTTI_VEC_PUSH(&profile->spans, span); /* without memory it is left out */
}

static void add_operator(void *context, const tutti_trace_item *item)
{
    tutti_profile *p = context;
    double ns = tutti__tick_ns();
    profile_add(p, (tutti_profile_span){
                       .begin = p->begin + (int64_t)((double)(item->start - p->ticks) * ns),
                       .end = p->begin + (int64_t)((double)(item->end - p->ticks) * ns),
                       .name = item->name,
                       .op = item->op ? item->op : "",
                       .step = -1,
                       .thread = item->thread});
}

void tutti__profile_step(tutti_profile *profile, const tutti_event *event)
{
    int64_t now = tutti__now_ns(), begin = now - (int64_t)(1e9 * event->step_seconds);
    const tutti_trace *mine = tutti__trace_mine();
    tutti_profile_span span = {.name = "step", .thread = mine ? mine->thread : 0};
    if (profile->steps++ >= TUTTI_PROFILE_STEPS)
        return;
    if (profile->ended > 0 && begin > profile->ended) {
        tutti_profile_span between = {
            .name = "input and callbacks", .thread = span.thread, .step = -1};
        between.begin = profile->ended;
        between.end = begin;
        profile_add(profile, between);
    }
    span.begin = begin;
    span.end = profile->ended = now;
    span.step = event->step;
    profile_add(profile, span);
    uint64_t since = profile->since;
    profile->since = tutti__ticks();
    tutti__trace_visit(since, add_operator, profile);
}

/* ---- writing ---- */

/* By thread, then time; what encloses comes before what it encloses. */
static int in_order(const void *left, const void *right)
{
    const tutti_profile_span *a = left, *b = right;
    if (a->thread != b->thread)
        return a->thread < b->thread ? -1 : 1;
    if (a->begin != b->begin)
        return a->begin < b->begin ? -1 : 1;
    return (a->end < b->end) - (a->end > b->end);
}

static void put_text(tutti_json_writer *w, const char *key, const char *text)
{
    tutti__json_key(w, key);
    tutti__json_put_string(w, text);
}

/* A complete event ("ph": "X"); times in microseconds. */
static void put_span(tutti_json_writer *w, const tutti_profile_span *span, int64_t start)
{
    tutti__json_begin(w, '{');
    put_text(w, "name", span->name);
    put_text(w, "ph", "X");
    tutti__json_key(w, "pid");
    tutti__json_put_int(w, 1);
    tutti__json_key(w, "tid");
    tutti__json_put_int(w, span->thread + 1);
    tutti__json_key(w, "ts");
    tutti__json_put_real(w, 1e-3 * (double)(span->begin - start));
    tutti__json_key(w, "dur");
    tutti__json_put_real(w, 1e-3 * (double)(span->end - span->begin));
    tutti__json_key(w, "args");
    tutti__json_begin(w, '{');
    if (span->step >= 0) {
        tutti__json_key(w, "step");
        tutti__json_put_int(w, span->step);
    }
    if (span->op)
        put_text(w, "operator", span->op);
    tutti__json_end(w);
    tutti__json_end(w);
}

static tutti_status put_trace(const tutti_profile *profile, tutti_text *text)
{
    tutti_json_writer w = {.text = text};
    tutti__json_begin(&w, '{');
    put_text(&w, "displayTimeUnit", "ms");
    tutti__json_key(&w, "traceEvents");
    tutti__json_begin(&w, '[');
    for (size_t i = 0; i < profile->spans.count; i++)
        put_span(&w, &profile->spans.data[i], profile->begin);
    tutti__json_end(&w);
    tutti__json_end(&w);
    return tutti__json_finish(&w);
}

static tutti_status write_text(const char *folder, const char *host, const char *ending,
                               const tutti_text *text)
{
    char path[4400];
    tutti_sink *sink;
    size_t length = strlen(ending);
    if (text->failed)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a trace");
    snprintf(path, sizeof path, "%s/%s.%s", folder, host, ending);
    TUTTI_TRY(tutti__sink_file(path, TUTTI_FILE_REPLACE, &sink));
    if (length > 3 && strcmp(ending + length - 3, ".gz") == 0)
        TUTTI_TRY(tutti__sink_deflate(sink, TUTTI_PACKED_GZIP, &sink));
    return tutti__sink_end(sink, text->size > 0 ? tutti__sink_write(sink, text->data, text->size)
                                                : TUTTI_OK);
}

tutti_status tutti__profile_write(tutti_profile *profile, const char *folder)
{
    const tutti_world *world = tutti__world();
    char path[4200], host[64] = "", stamp[40];
    int64_t wall = world->wall_ns(world->self);
    time_t seconds = (time_t)(wall / 1000000000);
    struct tm parts;
    if (gethostname(host, sizeof host - 1) != 0 || host[0] == 0)
        snprintf(host, sizeof host, "host");
    gmtime_r(&seconds, &parts);
    strftime(stamp, sizeof stamp, "%Y_%m_%d_%H_%M_%S", &parts);
    if (snprintf(path, sizeof path, "%s/plugins/profile/%s", folder, stamp) >= 4096)
        return tutti_fail(TUTTI_TOO_LARGE, "the path '%.80s' is too long", folder);
    TUTTI_TRY(world->make_folder(world->self, path));
    if (profile->spans.count > 0)
        qsort(profile->spans.data, profile->spans.count, sizeof *profile->spans.data, in_order);
    tutti_text trace = {0}, planes = {0};
    tutti_status status = put_trace(profile, &trace);
    if (status == TUTTI_OK)
        status = write_text(path, host, "trace.json.gz", &trace);
    if (status == TUTTI_OK)
        status = tutti__profile_planes(profile, host, wall - (tutti__now_ns() - profile->begin),
                                       &planes);
    if (status == TUTTI_OK)
        status = write_text(path, host, "xplane.pb", &planes);
    tutti__text_free(&trace);
    tutti__text_free(&planes);
    return status;
}
