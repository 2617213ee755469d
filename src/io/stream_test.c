/* stream_test.c: sources and sinks: ends, patches, packing, files that are replaced. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include "io/stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/test.h"
#include "io/inflate.h"

TUTTI_TEST(source_reads_all_or_says_where_it_ends)
{
    tutti_source *source;
    char data[8];
    size_t got;
    CHECK_OK(tutti__source_bytes("s", "abcdef", 6, &source));
    CHECK_OK(tutti__source_read(source, 2, data, 4, "letters"));
    CHECK(memcmp(data, "cdef", 4) == 0);
    CHECK_STATUS(tutti__source_read(source, 4, data, 4, "letters"), TUTTI_CORRUPT);
    CHECK_CONTAINS(tutti_error_message(), "s: ends at byte 6 inside letters");
    CHECK_STATUS(tutti__source_read(source, -1, data, 4, "letters"), TUTTI_CORRUPT);
    CHECK_OK(tutti__source_some(source, 100, data, 4, &got));
    CHECK_INT(got, 0);
    tutti__source_close(source);
    CHECK_STATUS(tutti__source_file("/nowhere/x", &source), TUTTI_NOT_FOUND);
}

/* Small and large writes, and patches over both. */
static void write_pieces(tutti_sink *sink)
{
    static const char large[200000];
    for (int i = 0; i < 1000; i++)
        CHECK_OK(tutti__sink_write(sink, "0123456789", 10));
    CHECK_OK(tutti__sink_write(sink, large, sizeof large));
    CHECK_OK(tutti__sink_write(sink, "end", 3));
    CHECK_OK(tutti__sink_patch(sink, 5, "XY", 2));
    CHECK_OK(tutti__sink_patch(sink, 210001, "N", 1));
    CHECK_STATUS(tutti__sink_patch(sink, 210002, "XY", 2), TUTTI_INTERNAL);
    CHECK_INT(sink->size, 210003);
}

TUTTI_TEST(sink_writes_the_same_to_memory_and_to_a_file)
{
    char folder[] = "/tmp/tutti-stream-XXXXXX", path[64];
    const tutti_world *w = tutti__world();
    tutti_text text = {0};
    tutti_sink *sink;
    void *data;
    size_t size;
    CHECK(mkdtemp(folder) != NULL);
    snprintf(path, sizeof path, "%s/x", folder);
    CHECK_OK(tutti__sink_text("t", &text, &sink));
    write_pieces(sink);
    CHECK_OK(tutti__sink_commit(sink));
    CHECK_OK(tutti__sink_file(path, TUTTI_FILE_REPLACE, &sink));
    write_pieces(sink);
    CHECK_STATUS(w->read_file(w->self, path, 1000000, &data, &size), TUTTI_NOT_FOUND);
    CHECK_OK(tutti__sink_commit(sink));
    CHECK_OK(tutti__sink_file(path, TUTTI_FILE_REPLACE, &sink));
    CHECK_OK(tutti__sink_write(sink, "other", 5));
    tutti__sink_abort(sink);
    CHECK_OK(w->read_file(w->self, path, 1000000, &data, &size));
    CHECK_INT(size, text.size);
    CHECK(memcmp(data, text.data, size) == 0);
    free(data);
    tutti__text_free(&text);
    CHECK_OK(w->remove_file(w->self, path));
    CHECK_OK(w->remove_file(w->self, folder));
}

TUTTI_TEST(packed_sink_and_source_belong_together)
{
    static const tutti_packing packings[] = {TUTTI_PACKED_RAW, TUTTI_PACKED_ZLIB,
                                             TUTTI_PACKED_GZIP};
    char line[32], back[32];
    for (size_t p = 0; p < 3; p++) {
        tutti_text text = {0};
        tutti_sink *plain, *sink;
        tutti_source *bytes, *source;
        CHECK_OK(tutti__sink_text("t", &text, &plain));
        CHECK_OK(tutti__sink_deflate(plain, packings[p], &sink));
        for (int i = 0; i < 20000; i++) {
            snprintf(line, sizeof line, "%09d\n", i * 7919);
            CHECK_OK(tutti__sink_write(sink, line, 10));
        }
        CHECK_STATUS(tutti__sink_patch(sink, 0, "x", 1), TUTTI_INTERNAL);
        CHECK_OK(tutti__sink_commit(sink));
        CHECK(text.size < 100000);
        CHECK_OK(tutti__source_bytes("t", text.data, text.size, &bytes));
        CHECK_OK(tutti__source_inflate(bytes, 0, bytes->size, packings[p], -1, true, &source));
        for (int i = 0; i < 20000; i++) {
            snprintf(line, sizeof line, "%09d\n", i * 7919);
            CHECK_OK(tutti__source_read(source, 10 * i, back, 10, "a line"));
            CHECK(memcmp(line, back, 10) == 0);
        }
        size_t got;
        CHECK_OK(tutti__source_some(source, 200000, back, 1, &got));
        CHECK_INT(got, 0);
        CHECK_STATUS(tutti__source_some(source, 0, back, 1, &got), TUTTI_INTERNAL);
        tutti__source_close(source);
        tutti__text_free(&text);
    }
}
