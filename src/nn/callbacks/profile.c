/* profile.c: the steps of an epoch as a trace.
 *
 *     XSpace { repeated XPlane planes = 1; repeated string hostnames = 4; }
 *     XPlane { int64 id = 1; string name = 2; repeated XLine lines = 3;
 *              map<int64, XEventMetadata> event_metadata = 4; }
 *     XLine  { int64 id = 1; string name = 2; int64 timestamp_ns = 3; repeated XEvent events = 4; }
 *     XEvent { int64 metadata_id = 1; int64 offset_ps = 2; int64 duration_ps = 3; }
 *     XEventMetadata { int64 id = 1; string name = 2; } */
#include "nn/callbacks/profile.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/world.h"
#include "io/json.h"
#include "io/protobuf.h"

static const char *const names[] = {"", "step", "input and callbacks"};

static int kind_of(const tutti_span *span)
{
    return span->step >= 0 ? 1 : 2;
}

void tutti__profile_step(tutti_profile *profile, const tutti_event *event)
{
    int64_t now = tutti__now_ns(), begin = now - (int64_t)(1e9 * event->step_seconds);
    if (profile->spans.count + 2 > TUTTI_PROFILE_SPANS)
        return;
    if (profile->ended > 0 && begin > profile->ended)
        (void)TUTTI_VEC_PUSH(&profile->spans, ((tutti_span){profile->ended, begin, -1}));
    (void)TUTTI_VEC_PUSH(&profile->spans, ((tutti_span){begin, now, event->step}));
    profile->ended = now;
}

void tutti__profile_free(tutti_profile *profile)
{
    TUTTI_VEC_FREE(&profile->spans);
}

/* A complete event ("ph": "X") of Chrome's trace format; times in microseconds. */
static void put_span(tutti_json_writer *w, const tutti_span *span, int64_t start)
{
    tutti__json_begin(w, '{');
    tutti__json_key(w, "name");
    tutti__json_put_string(w, names[kind_of(span)]);
    tutti__json_key(w, "ph");
    tutti__json_put_string(w, "X");
    tutti__json_key(w, "pid");
    tutti__json_put_int(w, 1);
    tutti__json_key(w, "tid");
    tutti__json_put_int(w, kind_of(span));
    tutti__json_key(w, "ts");
    tutti__json_put_real(w, 1e-3 * (double)(span->begin - start));
    tutti__json_key(w, "dur");
    tutti__json_put_real(w, 1e-3 * (double)(span->end - span->begin));
    if (span->step >= 0) {
        tutti__json_key(w, "args");
        tutti__json_begin(w, '{');
        tutti__json_key(w, "step");
        tutti__json_put_int(w, span->step);
        tutti__json_end(w);
    }
    tutti__json_end(w);
}

static tutti_status put_trace(const tutti_profile *profile, tutti_text *text)
{
    tutti_json_writer w = {.text = text};
    tutti__json_begin(&w, '{');
    tutti__json_key(&w, "displayTimeUnit");
    tutti__json_put_string(&w, "ms");
    tutti__json_key(&w, "traceEvents");
    tutti__json_begin(&w, '[');
    for (size_t i = 0; i < profile->spans.count; i++)
        put_span(&w, &profile->spans.data[i], profile->spans.data[0].begin);
    tutti__json_end(&w);
    tutti__json_end(&w);
    return tutti__json_finish(&w);
}

static void put_planes(const tutti_profile *profile, const char *host, int64_t wall,
                       tutti_text *text)
{
    int64_t start = profile->spans.count > 0 ? profile->spans.data[0].begin : 0;
    size_t plane = tutti__proto_open(text, 1);
    tutti__proto_put_int(text, 1, 1);
    tutti__proto_put_string(text, 2, "/host:CPU");
    for (int kind = 1; kind <= 2; kind++) {
        size_t line = tutti__proto_open(text, 3);
        tutti__proto_put_int(text, 1, kind);
        tutti__proto_put_string(text, 2, kind == 1 ? "Steps" : "Between steps");
        tutti__proto_put_int(text, 3, wall);
        for (size_t i = 0; i < profile->spans.count; i++) {
            const tutti_span *span = &profile->spans.data[i];
            if (kind_of(span) != kind)
                continue;
            size_t event = tutti__proto_open(text, 4);
            tutti__proto_put_int(text, 1, kind);
            tutti__proto_put_int(text, 2, 1000 * (span->begin - start));
            tutti__proto_put_int(text, 3, 1000 * (span->end - span->begin));
            tutti__proto_close(text, event);
        }
        tutti__proto_close(text, line);
    }
    for (int kind = 1; kind <= 2; kind++) {
        size_t entry = tutti__proto_open(text, 4);
        tutti__proto_put_int(text, 1, kind);
        size_t value = tutti__proto_open(text, 2);
        tutti__proto_put_int(text, 1, kind);
        tutti__proto_put_string(text, 2, names[kind]);
        tutti__proto_close(text, value);
        tutti__proto_close(text, entry);
    }
    tutti__proto_close(text, plane);
    tutti__proto_put_string(text, 4, host);
}

static tutti_status write_text(const char *folder, const char *host, const char *ending,
                               const tutti_text *text)
{
    const tutti_world *world = tutti__world();
    char path[4400];
    if (text->failed)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a trace");
    snprintf(path, sizeof path, "%s/%s.%s", folder, host, ending);
    return world->write_file(world->self, path, text->data ? text->data : "", text->size);
}

tutti_status tutti__profile_write(const tutti_profile *profile, const char *folder)
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
    tutti_text trace = {0}, planes = {0};
    tutti_status status = put_trace(profile, &trace);
    if (status == TUTTI_OK)
        status = write_text(path, host, "trace.json", &trace);
    put_planes(profile, host, wall, &planes);
    if (status == TUTTI_OK)
        status = write_text(path, host, "xplane.pb", &planes);
    tutti__text_free(&trace);
    tutti__text_free(&planes);
    return status;
}
