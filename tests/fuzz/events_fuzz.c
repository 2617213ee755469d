/* events_fuzz.c: the input as an event file, and as one event in a file with right checksums. */
#include <string.h>

#include "fuzz.h"
#include "io/events.h"

static void read_file(const uint8_t *data, size_t size)
{
    tutti_events_reader reader;
    tutti_event_value event;
    bool more = true;
    if (!went_well(tutti__events_open(source_of(data, size), &reader)))
        return;
    while (went_well(tutti__events_next(&reader, &event, &more)) && more) {
        promise(event.rank >= 0 && event.rank <= TUTTI_MAX_RANK);
        promise(strlen(event.tag) <= size && strlen(event.plugin) <= size + 16);
    }
    tutti__events_reader_close(&reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tutti_text text = {0};
    tutti_sink *sink;
    read_file(data, size);
    promise(tutti__sink_text("made", &text, &sink) == TUTTI_OK);
    promise(tutti__tfrecord_put(sink, data, size) == TUTTI_OK);
    promise(tutti__sink_commit(sink) == TUTTI_OK);
    read_file((const uint8_t *)text.data, text.size);
    tutti__text_free(&text);
    return 0;
}
