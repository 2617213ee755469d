/* events.h: TensorBoard's event files: a TFRecord file of Event messages, written and followed
 * while it grows. Scalars, histograms and texts are written as TensorFlow 2 writes them: tensors
 * that name their plugin.
 *
 *     Event   { double wall_time = 1; int64 step = 2; string file_version = 3; bytes graph_def = 4;
 *               Summary summary = 5; }
 *     Summary { repeated Value { string tag = 1; float simple_value = 2; HistogramProto histo = 5;
 *               TensorProto tensor = 8; SummaryMetadata metadata = 9; } value = 1; }
 */
#ifndef TUTTI_IO_EVENTS_H
#define TUTTI_IO_EVENTS_H

#include "io/stream.h"
#include "io/tfrecord.h"
#include "tensor/tensor.h"

typedef struct tutti_events {
    tutti_sink *sink;
    char *path;
} tutti_events;

/* Makes the folder and in it a new file events.out.tfevents.<time>.<host>.<pid>.<n><suffix>; suffix
 * may be NULL. Not thread-safe. */
tutti_status tutti__events_create(const char *folder, const char *suffix, tutti_events *ret);
/* Into any sink, which it takes over, also on failure. */
tutti_status tutti__events_begin(tutti_sink *sink, tutti_events *ret);

tutti_status tutti__events_scalar(tutti_events *events, int64_t step, const char *tag,
                                  double value);
/* `count` bins as [left, right, number] each: f64[count, 3]. */
tutti_status tutti__events_histogram(tutti_events *events, int64_t step, const char *tag,
                                     size_t count, const double (*bins)[3]);
/* Values of a tensor, sorted into `count` bins of equal width between their least and greatest, as
 * TensorBoard does; values that are not finite are left out. */
tutti_status tutti__events_values(tutti_events *events, int64_t step, const char *tag,
                                  tutti_tensor *values, int count);
tutti_status tutti__events_text(tutti_events *events, int64_t step, const char *tag,
                                const char *text);
/* The bytes of a GraphDef. */
tutti_status tutti__events_graph(tutti_events *events, const void *graph_def, size_t size);
/* Hands what was written to the file, so that TensorBoard sees it. */
tutti_status tutti__events_flush(tutti_events *events);
tutti_status tutti__events_close(tutti_events *events); /* zeroed is fine */

/* One value of an event. Texts are valid until the next call of the reader. */
typedef struct tutti_event_value {
    double wall_time; /* seconds since 1970 */
    int64_t step;
    const char *tag;     /* "" for file_version and graph */
    const char *plugin;  /* "scalars", "histograms", "text", "images", …; "version", "graph" */
    double value;        /* of a scalar, else NaN */
    const uint8_t *data; /* text, tensor content, graph_def or version */
    size_t size;
    int dtype; /* of a tensor, TensorFlow's number; 0 when there is none */
    int rank;
    int64_t dims[TUTTI_MAX_RANK];
} tutti_event_value;

typedef struct tutti_events_reader {
    tutti_tfrecord records;
    const uint8_t *record; /* and its summary's values not given yet */
    size_t record_size;
    size_t next; /* value of the record to give */
    tutti_text tag, plugin;
} tutti_events_reader;

/* Takes the source over, also on failure. */
tutti_status tutti__events_open(tutti_source *source, tutti_events_reader *ret);
/* *ret_more is false at the end. A record that is not whole yet ends the file too, as while it is
 * being written. */
tutti_status tutti__events_next(tutti_events_reader *reader, tutti_event_value *ret,
                                bool *ret_more);
void tutti__events_reader_close(tutti_events_reader *reader); /* zeroed is fine */

#endif
