/* events_test.c: what is written is listed again; files that grow; damage. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include "io/events.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/test.h"

static void write_sample(tutti_text *text)
{
    tutti_sink *sink;
    tutti_events events;
    tutti_tensor *values;
    const double bins[][3] = {{0, 1, 5}, {1, 2, 7}};
    CHECK_OK(tutti__sink_text("e", text, &sink));
    CHECK_OK(tutti__events_begin(sink, &events));
    CHECK_OK(tutti__events_scalar(&events, 3, "loss", 0.25));
    CHECK_OK(tutti__events_histogram(&events, 4, "weights", 2, bins));
    CHECK_OK(tutti__events_text(&events, 5, "note", "hello *there*"));
    CHECK_OK(tutti_tensor_from(TUTTI_F32, 1, (int64_t[]){5}, (float[]){0, 1, 2, NAN, 2}, &values));
    CHECK_OK(tutti__events_values(&events, 6, "values", values, 2));
    CHECK_OK(tutti__events_graph(&events, "graph", 5));
    CHECK_OK(tutti__events_close(&events));
    tutti_tensor_release(values);
}

static tutti_status count_events(const void *data, size_t size, int *ret_count)
{
    tutti_source *source;
    tutti_events_reader reader;
    tutti_event_value event;
    bool more = true;
    int count = 0;
    tutti_status status = TUTTI_OK;
    CHECK_OK(tutti__source_bytes("e", data, size, &source));
    TUTTI_TRY(tutti__events_open(source, &reader));
    while ((status = tutti__events_next(&reader, &event, &more)) == TUTTI_OK && more)
        count++;
    tutti__events_reader_close(&reader);
    *ret_count = count;
    return status;
}

static tutti_event_value next(tutti_events_reader *reader)
{
    tutti_event_value event;
    bool more;
    CHECK_OK(tutti__events_next(reader, &event, &more));
    CHECK(more);
    return event;
}

TUTTI_TEST(events_are_listed_as_written)
{
    tutti_text text = {0};
    tutti_source *source;
    tutti_events_reader reader;
    write_sample(&text);
    CHECK_OK(tutti__source_bytes("e", text.data, text.size, &source));
    CHECK_OK(tutti__events_open(source, &reader));
    tutti_event_value e = next(&reader);
    CHECK_STR(e.plugin, "version");
    CHECK(e.size == 13 && memcmp(e.data, "brain.Event:2", 13) == 0);
    CHECK(e.wall_time > 1e9);
    e = next(&reader);
    CHECK_STR(e.plugin, "scalars");
    CHECK_STR(e.tag, "loss");
    CHECK_INT(e.step, 3);
    CHECK_NEAR(e.value, 0.25, 0);
    e = next(&reader);
    CHECK_STR(e.plugin, "histograms");
    CHECK_INT(e.rank, 2);
    CHECK_INT(e.dims[0], 2);
    CHECK_INT(e.size, 48);
    e = next(&reader);
    CHECK_STR(e.plugin, "text");
    CHECK(e.size == 13 && memcmp(e.data, "hello *there*", 13) == 0);
    e = next(&reader);
    double bins[2][3];
    CHECK_INT(e.size, sizeof bins);
    memcpy(bins, e.data, sizeof bins);
    CHECK_NEAR(bins[0][1], 1, 0);
    CHECK_NEAR(bins[0][2], 1, 0);
    CHECK_NEAR(bins[1][2], 3, 0); /* 1, 2, 2: the last bin holds its right end */
    e = next(&reader);
    CHECK_STR(e.plugin, "graph");
    bool more;
    CHECK_OK(tutti__events_next(&reader, &e, &more));
    CHECK(!more);
    tutti__events_reader_close(&reader);
    tutti__text_free(&text);
}

TUTTI_TEST(events_end_where_a_file_still_grows)
{
    tutti_text text = {0};
    int count, before = 0;
    write_sample(&text);
    for (size_t size = 0; size <= text.size; size++) {
        CHECK_OK(count_events(text.data, size, &count));
        CHECK(count >= before);
        before = count;
    }
    CHECK_INT(before, 6);
    for (size_t bit = 0; bit < 8 * text.size; bit++) {
        text.data[bit / 8] = (char)(text.data[bit / 8] ^ 1 << bit % 8);
        CHECK(count_events(text.data, text.size, &count) != TUTTI_OK);
        text.data[bit / 8] = (char)(text.data[bit / 8] ^ 1 << bit % 8);
    }
    tutti__text_free(&text);
}

TUTTI_TEST(events_go_to_a_new_file_each_time)
{
    char folder[] = "/tmp/tutti-events-XXXXXX", logs[64];
    const tutti_world *w = tutti__world();
    tutti_events first, second;
    CHECK(mkdtemp(folder) != NULL);
    snprintf(logs, sizeof logs, "%s/logs", folder);
    CHECK_OK(tutti__events_create(logs, NULL, &first));
    CHECK_OK(tutti__events_create(logs, ".v2", &second));
    CHECK(strcmp(first.path, second.path) != 0);
    CHECK_CONTAINS(first.path, "/logs/events.out.tfevents.");
    CHECK_OK(tutti__events_scalar(&first, 1, "a", 1));
    CHECK_OK(tutti__events_flush(&first));
    tutti_file *file;
    int64_t size;
    CHECK_OK(w->open_file(w->self, first.path, TUTTI_FILE_READ, &file, &size));
    CHECK(size > 60); /* seen before it is closed */
    CHECK_OK(w->close_file(w->self, file, false));
    CHECK_OK(w->remove_file(w->self, first.path));
    CHECK_OK(w->remove_file(w->self, second.path));
    CHECK_OK(tutti__events_close(&first));
    CHECK_OK(tutti__events_close(&second));
    CHECK_OK(w->remove_file(w->self, logs));
    CHECK_OK(w->remove_file(w->self, folder));
}
