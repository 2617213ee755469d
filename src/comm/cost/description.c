/* description.c: see description.h. */
#include "comm/cost/description.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/container.h"
#include "base/world.h"
#include "cluster/json_reader.h"
#include "comm/coll/lane.h"
#include "comm/comm.h"

const tutti_assumed tutti__cost_assumed[TUTTI_LINK_COUNT] = {
    [TUTTI_LINK_WITHIN] = {0.3e-6, 0.1e-9}, [TUTTI_LINK_BETWEEN] = {25e-6, 0.8e-9}};

static const char *const links[TUTTI_LINK_COUNT] = {
    [TUTTI_LINK_WITHIN] = "within", [TUTTI_LINK_BETWEEN] = "between"};

/* Of lanes, seconds a byte. */
static const struct {
    const char *name;
    size_t offset;
} lane_figures[] = {{"beta", offsetof(tutti_comm_lane, beta)},
                    {"exchange", offsetof(tutti_comm_lane, exchange)},
                    {"of_two", offsetof(tutti_comm_lane, of_two)},
                    {"fold", offsetof(tutti_comm_lane, fold)},
                    {"fold_into", offsetof(tutti_comm_lane, fold_into)},
                    {"sum", offsetof(tutti_comm_lane, sum)},
                    {"gamma", offsetof(tutti_comm_lane, gamma)},
                    {"move", offsetof(tutti_comm_lane, move)},
                    {"into", offsetof(tutti_comm_lane, into)}};

tutti_status tutti__check_seconds(const char *what, bool per_byte, double seconds)
{
    /* A message of a minute, a byte of a millisecond (1 kB/s): nobody trains over that. */
    double most = per_byte ? 1e-3 : 60;
    if (seconds >= 0 && seconds <= most)
        return TUTTI_OK;
    if (per_byte)
        return tutti_fail(TUTTI_INVALID,
                          "%s of %g s a byte is a link of %g bytes a second; give seconds a byte "
                          "(0.1ns) or a bandwidth (10GB/s)",
                          what, seconds, 1 / seconds);
    return tutti_fail(TUTTI_INVALID, "%s of %g s; a message takes 0 to %g s (20us)", what, seconds,
                      most);
}

bool tutti__read_seconds(const char *text, bool bandwidth, double *ret)
{
    static const struct {
        const char *unit;
        double seconds, rate;
    } units[] = {{"", 1, 0},
                 {"s", 1, 0},
                 {"ms", 1e-3, 0},
                 {"us", 1e-6, 0},
                 {"ns", 1e-9, 0},
                 {"ps", 1e-12, 0},
                 {"GB/s", 0, 1e9},
                 {"MB/s", 0, 1e6},
                 {"Gbit/s", 0, 1e9 / 8},
                 {"Mbit/s", 0, 1e6 / 8}};
    char *end;
    double value = strtod(text, &end);
    if (end == text || !(value > 0) || !isfinite(value))
        return false;
    for (size_t i = 0; i < TUTTI_COUNT(units); i++)
        if (strcmp(end, units[i].unit) == 0 && (bandwidth || units[i].rate == 0)) {
            *ret = units[i].rate > 0 ? 1 / (value * units[i].rate) : value * units[i].seconds;
            return true;
        }
    return false;
}

static tutti_status read_value(tutti_json_reader *reader, const char *what, bool bandwidth,
                               double *ret)
{
    char text[64];
    TUTTI_TRY(tutti__json_read_text(reader, text, sizeof text));
    if (tutti__read_seconds(text, bandwidth, ret))
        return tutti__check_seconds(what, bandwidth, *ret);
    return tutti_fail(TUTTI_INVALID, "%s is '%s', not a time (\"20us\", \"0.8ns\")%s", what, text,
                      bandwidth ? " or a bandwidth (\"10GB/s\", \"25Gbit/s\")" : "");
}

/* "4096", "64k", "1m" */
static bool read_size(const char *text, double *ret)
{
    char *end;
    *ret = strtod(text, &end);
    double times = strcmp(end, "") == 0    ? 1
                   : strcmp(end, "k") == 0 ? 0x1p10
                   : strcmp(end, "m") == 0 ? 0x1p20
                                           : 0;
    *ret *= times;
    return end != text && times > 0 && *ret >= 0;
}

static tutti_status read_sizes(tutti_json_reader *reader, const char *what, double *values)
{
    char key[64];
    double size, value, before = -1;
    bool more;
    TUTTI_TRY(tutti__json_open(reader, '{', &more));
    while (more) {
        TUTTI_TRY(tutti__json_key_name(reader, key, sizeof key));
        if (!read_size(key, &size) || size <= before)
            return tutti_fail(TUTTI_INVALID,
                              "'%s' is no size of messages, or not larger than the one before; "
                              "write \"64k\", \"1m\", ascending",
                              key);
        TUTTI_TRY(read_value(reader, what, true, &value));
        for (int i = 0; i < TUTTI_COMM_SIZES; i++)
            if (before < 0 || tutti__cost_sizes[i] >= size)
                values[i] = value;
        before = size;
        TUTTI_TRY(tutti__json_more(reader, '}', &more));
    }
    return TUTTI_OK;
}

/* One value for all sizes, or each from its size on. */
static tutti_status read_per_byte(tutti_json_reader *reader, const char *what, double *values)
{
    if (tutti__json_peek(reader) == '{')
        return read_sizes(reader, what, values);
    TUTTI_TRY(read_value(reader, what, true, &values[0]));
    for (int i = 1; i < TUTTI_COMM_SIZES; i++)
        values[i] = values[0];
    return TUTTI_OK;
}

static tutti_status read_lane_figure(tutti_json_reader *reader, const char *key,
                                     tutti_comm_lane *lane)
{
    for (size_t i = 0; i < TUTTI_COUNT(lane_figures); i++)
        if (strcmp(key, lane_figures[i].name) == 0)
            return read_per_byte(reader, key,
                                 (double *)(void *)((char *)lane + lane_figures[i].offset));
    return tutti_fail(TUTTI_INVALID,
                      "\"lanes\" have \"count\", \"start\", \"beta\", \"exchange\", \"of_two\", "
                      "\"fold\", \"fold_into\", \"sum\", \"gamma\", \"move\" and \"into\", not "
                      "\"%s\"",
                      key);
}

static tutti_status read_lanes(tutti_json_reader *reader, int link, tutti_description *d)
{
    char key[64];
    bool more;
    TUTTI_TRY(tutti__json_open(reader, '{', &more));
    while (more) {
        TUTTI_TRY(tutti__json_key_name(reader, key, sizeof key));
        if (strcmp(key, "count") == 0)
            TUTTI_TRY(tutti__json_read_int(reader, 1, TUTTI_LANES_MOST, &d->lanes[link]));
        else if (strcmp(key, "start") == 0)
            TUTTI_TRY(read_value(reader, "start", false, &d->lane[link].start));
        else
            TUTTI_TRY(read_lane_figure(reader, key, &d->lane[link]));
        TUTTI_TRY(tutti__json_more(reader, '}', &more));
    }
    if (d->lanes[link] == 0)
        return tutti_fail(TUTTI_INVALID, "\"lanes\" do not say of how many: \"count\", 1 to %d",
                          TUTTI_LANES_MOST);
    return TUTTI_OK;
}

static tutti_status read_link(tutti_json_reader *reader, int link, tutti_description *d)
{
    char key[64];
    bool more;
    TUTTI_TRY(tutti__json_open(reader, '{', &more));
    while (more) {
        TUTTI_TRY(tutti__json_key_name(reader, key, sizeof key));
        if (strcmp(key, "alpha") == 0)
            TUTTI_TRY(read_value(reader, "alpha", false, &d->alpha[link]));
        else if (strcmp(key, "beta") == 0)
            TUTTI_TRY(read_per_byte(reader, "beta", d->beta[link]));
        else if (strcmp(key, "lanes") == 0)
            TUTTI_TRY(read_lanes(reader, link, d));
        else
            return tutti_fail(TUTTI_INVALID,
                              "a link has \"alpha\", \"beta\" and \"lanes\", not \"%s\"", key);
        TUTTI_TRY(tutti__json_more(reader, '}', &more));
    }
    return TUTTI_OK;
}

static tutti_status read_all(tutti_json_reader *reader, tutti_description *d)
{
    char key[64];
    bool more;
    TUTTI_TRY(tutti__json_open(reader, '{', &more));
    while (more) {
        TUTTI_TRY(tutti__json_key_name(reader, key, sizeof key));
        if (strcmp(key, links[TUTTI_LINK_WITHIN]) == 0)
            TUTTI_TRY(read_link(reader, TUTTI_LINK_WITHIN, d));
        else if (strcmp(key, links[TUTTI_LINK_BETWEEN]) == 0)
            TUTTI_TRY(read_link(reader, TUTTI_LINK_BETWEEN, d));
        else if (strcmp(key, "gamma") == 0)
            TUTTI_TRY(read_value(reader, key, true, &d->gamma));
        else if (strcmp(key, "phase") == 0)
            TUTTI_TRY(read_value(reader, key, false, &d->phase));
        else
            return tutti_fail(TUTTI_INVALID,
                              "there is no \"%s\"; there are \"within\", \"between\", \"gamma\" "
                              "and \"phase\"",
                              key);
        TUTTI_TRY(tutti__json_more(reader, '}', &more));
    }
    return tutti__json_end_of_text(reader);
}

tutti_status tutti__description_read(const char *path, tutti_description *ret)
{
    enum { MOST = 1 << 16 };
    const tutti_world *world = tutti__world();
    void *data;
    size_t size;
    tutti_description d = {0};
    TUTTI_TRY(world->read_file(world->self, path, MOST, &data, &size));
    tutti_status status = read_all(&(tutti_json_reader){data, data}, &d);
    free(data);
    if (status != TUTTI_OK)
        return tutti__error_prefix(status, "'%s' describes no cluster", path);
    *ret = d;
    return TUTTI_OK;
}

static void apply_lanes(const tutti_comm_lane *given, tutti_comm_lane *lane)
{
    *lane = *given;
    for (int i = 0; i < TUTTI_COMM_SIZES; i++)
        lane->exchange[i] = given->exchange[i] > 0 ? given->exchange[i] : given->beta[i];
}

void tutti__description_apply(const tutti_description *d, tutti_comm_cost *cost)
{
    for (int link = 0; link < TUTTI_LINK_COUNT; link++) {
        double longer = d->alpha[link] > 0 ? d->alpha[link] / cost->link[link].alpha : 1;
        cost->link[link].alpha *= longer;
        cost->link[link].turn *= longer;
        if (link == TUTTI_LINK_WITHIN)
            cost->phase = d->phase > 0 ? d->phase : cost->phase * longer;
        for (int i = 0; d->beta[link][0] > 0 && i < TUTTI_COMM_SIZES; i++)
            cost->link[link].beta[i] = cost->link[link].exchange[i] = d->beta[link][i];
        if (d->lanes[link] > 1 && d->lanes[link] == cost->lanes[link])
            apply_lanes(&d->lane[link], &cost->lane[link]);
    }
    for (int i = 0; d->gamma > 0 && i < TUTTI_COMM_SIZES; i++)
        cost->gamma[i] = d->gamma;
}

/* Those that are known. */
static void add_per_byte(tutti_text *text, const double *values, int64_t most)
{
    const char *comma = "";
    tutti__text_add(text, "{");
    for (int i = 0; i < TUTTI_COMM_SIZES && tutti__cost_sizes[i] <= (double)most; i++) {
        double size = tutti__cost_sizes[i];
        bool mib = size >= 0x1p20;
        if (!(values[i] > 0))
            continue;
        tutti__text_add(text, "%s\"%g%s\": \"%.4gGB/s\"", comma, size / (mib ? 0x1p20 : 0x1p10),
                        mib ? "m" : "k", 1e-9 / values[i]);
        comma = ", ";
    }
    tutti__text_add(text, "}");
}

static void add_lanes(tutti_text *text, int count, const tutti_comm_lane *lane, int64_t most)
{
    tutti__text_add(text, ",\n  \"lanes\": {\"count\": %d, \"start\": \"%.4gus\"", count,
                    lane->start * 1e6);
    for (size_t i = 0; i < TUTTI_COUNT(lane_figures); i++) {
        const double *values =
            (const double *)(const void *)((const char *)lane + lane_figures[i].offset);
        if (!(values[TUTTI_COMM_SIZES - 1] > 0))
            continue;
        tutti__text_add(text, ",\n   \"%s\": ", lane_figures[i].name);
        add_per_byte(text, values, most);
    }
    tutti__text_add(text, "}");
}

tutti_status tutti__description_write(const tutti_comm_cost *cost, int64_t most, const char *path)
{
    const tutti_world *world = tutti__world();
    tutti_text text = {0};
    tutti__text_add(&text, "{");
    for (int link = 0; link < (cost->hosts > 1 ? 2 : 1); link++) {
        tutti__text_add(&text, "\"%s\": {\"alpha\": \"%.4gus\", \"beta\": ", links[link],
                        cost->link[link].alpha * 1e6);
        add_per_byte(&text, cost->link[link].beta, most);
        if (cost->lanes[link] > 1 && cost->lane[link].start > 0)
            add_lanes(&text, cost->lanes[link], &cost->lane[link], most);
        tutti__text_add(&text, "},\n ");
    }
    tutti__text_add(&text, "\"gamma\": \"%.4gGB/s\", \"phase\": \"%.4gus\"}\n",
                    1e-9 / cost->gamma[TUTTI_COMM_AT_MIB], cost->phase * 1e6);
    tutti_status status = text.failed
                              ? tutti_fail(TUTTI_NO_MEMORY, "no memory for a description")
                              : world->write_file(world->self, path, text.data, strlen(text.data));
    tutti__text_free(&text);
    return status;
}
