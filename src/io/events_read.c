/* events_read.c: the reader, for showing what is in an event file. */
#include <math.h>
#include <string.h>

#include "io/crc32c.h"
#include "io/events.h"
#include "io/protobuf.h"

tutti_status tutti__events_open(tutti_source *source, tutti_events_reader *ret)
{
    tutti_events_reader reader = {0};
    TUTTI_TRY(tutti__tfrecord_open(source, 0, &reader.records));
    *ret = reader;
    return TUTTI_OK;
}

void tutti__events_reader_close(tutti_events_reader *reader)
{
    tutti__tfrecord_close(&reader->records);
    tutti__text_free(&reader->tag);
    tutti__text_free(&reader->plugin);
    *reader = (tutti_events_reader){0};
}

/* A copy with a NUL behind it. */
static const char *events_read_keep(tutti_text *text, const tutti_proto_field *field)
{
    text->size = 0;
    if (field->kind == TUTTI_PROTO_BYTES)
        tutti__text_bytes(text, field->data, field->size);
    tutti__text_bytes(text, "", 1);
    return text->failed ? "" : text->data;
}

static void read_shape(tutti_proto shape, tutti_event_value *ret)
{
    tutti_proto_field f, size;
    while (tutti__proto_next(&shape, &f))
        if (f.number == 2 && ret->rank < TUTTI_MAX_RANK) {
            tutti_proto dim = tutti__proto_inside(&shape, &f);
            int64_t value = 0;
            while (tutti__proto_next(&dim, &size))
                if (size.number == 1)
                    value = tutti__proto_int(&size);
            ret->dims[ret->rank++] = value;
        }
}

/* A number of rank 0 becomes the value. */
static void read_tensor(tutti_proto tensor, tutti_event_value *ret)
{
    tutti_proto_field f;
    while (tutti__proto_next(&tensor, &f)) {
        size_t at = 0;
        float real = 0;
        double wide = 0;
        if (f.number == 1)
            ret->dtype = (int)tutti__proto_int(&f);
        else if (f.number == 2)
            read_shape(tutti__proto_inside(&tensor, &f), ret);
        else if (f.number == 5 && tutti__proto_each_float(&tensor, &f, &at, &real))
            ret->value = (double)real;
        else if (f.number == 6 && tutti__proto_each_double(&tensor, &f, &at, &wide))
            ret->value = wide;
        else if ((f.number == 4 || f.number == 8) && f.kind == TUTTI_PROTO_BYTES) {
            ret->data = f.data;
            ret->size = f.size;
        }
    }
    if (ret->rank == 0 && ret->dtype == 1 && ret->size == 4) {
        float real;
        memcpy(&real, ret->data, 4);
        ret->value = (double)real;
    } else if (ret->rank == 0 && ret->dtype == 2 && ret->size == 8) {
        memcpy(&ret->value, ret->data, 8);
    }
}

static void read_metadata(tutti_events_reader *reader, tutti_proto metadata, tutti_event_value *ret)
{
    tutti_proto_field f, name;
    while (tutti__proto_next(&metadata, &f))
        if (f.number == 1) {
            tutti_proto data = tutti__proto_inside(&metadata, &f);
            while (tutti__proto_next(&data, &name))
                if (name.number == 1)
                    ret->plugin = events_read_keep(&reader->plugin, &name);
        }
}

static tutti_status read_value(tutti_events_reader *reader, tutti_proto value,
                               tutti_event_value *ret)
{
    tutti_proto_field f;
    while (tutti__proto_next(&value, &f)) {
        if (f.number == 1) {
            ret->tag = events_read_keep(&reader->tag, &f);
        } else if (f.number == 2) {
            ret->value = (double)tutti__proto_float(&f);
            ret->plugin = "scalars";
        } else if (f.number == 4 || f.number == 5 || f.number == 6) {
            ret->plugin = f.number == 4 ? "images" : f.number == 5 ? "histograms" : "audio";
        } else if (f.number == 8) {
            read_tensor(tutti__proto_inside(&value, &f), ret);
        } else if (f.number == 9) {
            read_metadata(reader, tutti__proto_inside(&value, &f), ret);
        }
    }
    return tutti__proto_end(&value);
}

/* Value number reader->next of the summary; *ret_found is false when there are no more. */
static tutti_status read_summary(tutti_events_reader *reader, tutti_proto summary,
                                 tutti_event_value *ret, bool *ret_found)
{
    tutti_proto_field f;
    size_t index = 0;
    while (tutti__proto_next(&summary, &f))
        if (f.number == 1 && index++ == reader->next) {
            *ret_found = true;
            return read_value(reader, tutti__proto_inside(&summary, &f), ret);
        }
    return tutti__proto_end(&summary);
}

/* The event's fields, and one value of its summary; or its graph or version. */
static tutti_status read_event(tutti_events_reader *reader, tutti_event_value *ret, bool *ret_found)
{
    tutti_proto p = tutti__proto(reader->records.source->name, reader->record, reader->record_size);
    tutti_proto_field f;
    tutti_event_value event = {.tag = "", .plugin = "", .value = NAN};
    bool found = false;
    while (tutti__proto_next(&p, &f)) {
        if (f.number == 1)
            event.wall_time = tutti__proto_double(&f);
        else if (f.number == 2)
            event.step = tutti__proto_int(&f);
        else if ((f.number == 3 || f.number == 4) && f.kind == TUTTI_PROTO_BYTES) {
            event.plugin = f.number == 3 ? "version" : "graph";
            event.data = f.data;
            event.size = f.size;
            found = reader->next == 0;
        } else if (f.number == 5) {
            TUTTI_TRY(read_summary(reader, tutti__proto_inside(&p, &f), &event, &found));
        }
    }
    TUTTI_TRY(tutti__proto_end(&p));
    if (found)
        *ret = event;
    *ret_found = found;
    return TUTTI_OK;
}

/* What ends inside a record is being written. */
static bool ends_early(const tutti_events_reader *reader)
{
    const tutti_source *source = reader->records.source;
    uint8_t head[12];
    size_t got;
    if (source->size < 0 || reader->records.packed)
        return false;
    if (source->size - reader->records.at < 16)
        return true;
    return tutti__source_some(reader->records.source, reader->records.at, head, 12, &got) ==
               TUTTI_OK &&
           tutti__get_u32(head + 8) == tutti__crc32c_mask(tutti__crc32c(0, head, 8)) &&
           tutti__get_u64(head) > (uint64_t)(source->size - reader->records.at - 16);
}

tutti_status tutti__events_next(tutti_events_reader *reader, tutti_event_value *ret, bool *ret_more)
{
    for (;;) {
        bool found = false;
        if (reader->record != NULL) {
            TUTTI_TRY(read_event(reader, ret, &found));
            reader->next++;
        }
        if (found) {
            *ret_more = true;
            return TUTTI_OK;
        }
        tutti_status status =
            tutti__tfrecord_next(&reader->records, &reader->record, &reader->record_size);
        reader->next = 0;
        if (status != TUTTI_OK) {
            reader->record = NULL;
            if (!ends_early(reader))
                return status;
        }
        if (reader->record == NULL) {
            *ret_more = false;
            return TUTTI_OK;
        }
    }
}
