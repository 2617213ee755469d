/* profile_planes.c: the spans as TensorBoard's profile plugin reads them.
 *
 *     XSpace { repeated XPlane planes = 1; repeated string hostnames = 4; }
 *     XPlane { int64 id = 1; string name = 2; repeated XLine lines = 3;
 *              map<int64, XEventMetadata> event_metadata = 4;
 *              map<int64, XStatMetadata> stat_metadata = 5; }
 *     XLine  { int64 id = 1; string name = 2; int64 timestamp_ns = 3; repeated XEvent events = 4; }
 *     XEvent { int64 metadata_id = 1; int64 offset_ps = 2; int64 duration_ps = 3;
 *              repeated XStat stats = 4; }
 *     XStat  { int64 metadata_id = 1; int64 int64_value = 4; }
 *     XEventMetadata { int64 id = 1; string name = 2; string display_name = 4; }
 *     XStatMetadata { int64 id = 1; string name = 2; }
 *
 * The plugin counts an event as an operator when its name is "node:Type", Type beginning with a
 * capital letter; and as a step when it has the stats "_r" (a root) and "step_num". What lies in a
 * step's time on its thread belongs to it. */
#include <ctype.h>
#include <stdio.h>

#include "io/protobuf.h"
#include "nn/callbacks/profile.h"

enum { STAT_ROOT = 1, STAT_STEP = 2 };

/* "dense/matmul+add" of "matmul_bias" as "dense/matmul.add:MatmulBias". */
static void full_name(const tutti_profile_span *span, char *ret, size_t size)
{
    size_t used = 0;
    bool capital = true;
    if (!span->op) {
        snprintf(ret, size, "%s", span->name);
        return;
    }
    for (const char *c = span->name; *c && used < size - 100; c++) {
        bool allowed = isalnum((unsigned char)*c) || (used > 0 && strchr("_./-", *c));
        ret[used++] = allowed ? *c : '.';
    }
    ret[used++] = ':';
    for (const char *c = span->op[0] ? span->op : "other"; *c && used < size - 1; c++) {
        if (isalnum((unsigned char)*c))
            ret[used++] = capital ? (char)toupper((unsigned char)*c) : *c;
        capital = *c == '_';
    }
    ret[used] = 0;
}

/* Numbers from 1 in the order of first use. */
static tutti_status number_of(tutti_map *numbers, const char *name, int64_t *ret)
{
    uintptr_t known = (uintptr_t)tutti__map_get(numbers, name);
    if (!known) {
        known = numbers->count + 1;
        TUTTI_TRY(tutti__map_set(numbers, name, (void *)known));
    }
    *ret = (int64_t)known;
    return TUTTI_OK;
}

static void put_stat(tutti_text *text, int stat, int64_t value)
{
    size_t at = tutti__proto_open(text, 4);
    tutti__proto_put_int(text, 1, stat);
    tutti__proto_put_int(text, 4, value);
    tutti__proto_close(text, at);
}

static tutti_status put_event(const tutti_profile *profile, const tutti_profile_span *span,
                              tutti_map *numbers, tutti_text *text)
{
    char name[400];
    int64_t number, offset = span->begin > profile->begin ? span->begin - profile->begin : 0;
    full_name(span, name, sizeof name);
    TUTTI_TRY(number_of(numbers, name, &number));
    size_t at = tutti__proto_open(text, 4);
    tutti__proto_put_int(text, 1, number);
    tutti__proto_put_int(text, 2, 1000 * offset);
    tutti__proto_put_int(text, 3, 1000 * (span->end - span->begin));
    if (span->step >= 0) {
        put_stat(text, STAT_ROOT, 1);
        put_stat(text, STAT_STEP, span->step);
    }
    tutti__proto_close(text, at);
    return TUTTI_OK;
}

/* The spans from `first` on that are of one thread; *ret_end is behind the last. */
static tutti_status put_line(const tutti_profile *profile, size_t first, int64_t wall,
                             tutti_map *numbers, tutti_text *text, size_t *ret_end)
{
    const tutti_profile_span *spans = profile->spans.data;
    char name[40];
    size_t at = tutti__proto_open(text, 3), i = first;
    snprintf(name, sizeof name, "thread %d", spans[first].thread);
    tutti__proto_put_int(text, 1, spans[first].thread + 1);
    tutti__proto_put_string(text, 2, name);
    tutti__proto_put_int(text, 3, wall);
    for (; i < profile->spans.count && spans[i].thread == spans[first].thread; i++)
        TUTTI_TRY(put_event(profile, &spans[i], numbers, text));
    tutti__proto_close(text, at);
    *ret_end = i;
    return TUTTI_OK;
}

/* An entry of a map<int64, X…Metadata>. */
static void put_metadata(tutti_text *text, uint32_t field, int64_t number, const char *name)
{
    size_t entry = tutti__proto_open(text, field);
    tutti__proto_put_int(text, 1, number);
    size_t value = tutti__proto_open(text, 2);
    tutti__proto_put_int(text, 1, number);
    tutti__proto_put_string(text, 2, name);
    tutti__proto_close(text, value);
    tutti__proto_close(text, entry);
}

tutti_status tutti__profile_planes(const tutti_profile *profile, const char *host, int64_t wall,
                                   tutti_text *text)
{
    tutti_map numbers = {0};
    tutti_status status = TUTTI_OK;
    size_t plane = tutti__proto_open(text, 1);
    tutti__proto_put_int(text, 1, 1);
    tutti__proto_put_string(text, 2, "/host:CPU");
    for (size_t i = 0; i < profile->spans.count && status == TUTTI_OK;)
        status = put_line(profile, i, wall, &numbers, text, &i);
    for (size_t i = 0; i < numbers.count; i++)
        put_metadata(text, 4, (int64_t)i + 1, numbers.entries[i].key);
    put_metadata(text, 5, STAT_ROOT, "_r");
    put_metadata(text, 5, STAT_STEP, "step_num");
    tutti__proto_close(text, plane);
    tutti__proto_put_string(text, 4, host);
    tutti__map_free(&numbers);
    return status;
}
