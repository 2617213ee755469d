/* events.c: the writer. */
#include "io/events.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io/protobuf.h"
#include "tensor/dtype.h"

/* TensorFlow's numbers of types, and of the kinds of data a plugin shows. */
enum { DT_FLOAT = 1, DT_DOUBLE = 2, DT_STRING = 7 };
enum { CLASS_SCALAR = 1, CLASS_TENSOR = 2 };

static double wall_seconds(void)
{
    const tutti_world *world = tutti__world();
    return (double)world->wall_ns(world->self) / 1e9;
}

/* Writes the message as a record, and frees it. */
static tutti_status put_event(tutti_events *events, tutti_text *event)
{
    tutti_status status =
        event->failed
            ? tutti_fail(TUTTI_NO_MEMORY, "%s: no memory for an event", events->sink->name)
            : tutti__tfrecord_put(events->sink, event->data, event->size);
    tutti__text_free(event);
    return status;
}

static tutti_text start_event(int64_t step)
{
    tutti_text event = {0};
    tutti__proto_put_double(&event, 1, wall_seconds());
    if (step != 0)
        tutti__proto_put_int(&event, 2, step);
    return event;
}

tutti_status tutti__events_begin(tutti_sink *sink, tutti_events *ret)
{
    tutti_events events = {.sink = sink};
    tutti_text event = start_event(0);
    tutti__proto_put_string(&event, 3, "brain.Event:2");
    tutti_status status = put_event(&events, &event);
    if (status == TUTTI_OK)
        status = tutti__sink_flush(sink);
    if (status != TUTTI_OK)
        tutti__sink_abort(sink);
    else
        *ret = events;
    return status;
}

tutti_status tutti__events_create(const char *folder, const char *suffix, tutti_events *ret)
{
    static atomic_uint serial;
    const tutti_world *world = tutti__world();
    char host[128] = "localhost";
    tutti_text path = {0};
    tutti_sink *sink;
    TUTTI_TRY(world->make_folder(world->self, folder));
    if (gethostname(host, sizeof host - 1) != 0)
        snprintf(host, sizeof host, "localhost");
    tutti__text_add(&path, "%s/events.out.tfevents.%010lld.%s.%ld.%u%s", folder,
                    (long long)wall_seconds(), host, (long)getpid(), atomic_fetch_add(&serial, 1),
                    suffix != NULL ? suffix : "");
    tutti_status status = path.failed
                              ? tutti_fail(TUTTI_NO_MEMORY, "no memory to write into '%s'", folder)
                              : tutti__sink_file(path.data, TUTTI_FILE_APPEND, &sink);
    if (status == TUTTI_OK)
        status = tutti__events_begin(sink, ret);
    if (status == TUTTI_OK)
        ret->path = path.data;
    else
        tutti__text_free(&path);
    return status;
}

typedef struct open_value {
    tutti_text event;
    size_t summary, value;
} open_value;

static open_value start_value(int64_t step, const char *tag)
{
    open_value v = {.event = start_event(step)};
    v.summary = tutti__proto_open(&v.event, 5);
    v.value = tutti__proto_open(&v.event, 1);
    tutti__proto_put_string(&v.event, 1, tag);
    return v;
}

/* The metadata that makes TensorBoard show the value under a plugin. */
static tutti_status end_value(tutti_events *events, open_value *v, const char *plugin, int class)
{
    size_t metadata = tutti__proto_open(&v->event, 9), data = tutti__proto_open(&v->event, 1);
    tutti__proto_put_string(&v->event, 1, plugin);
    tutti__proto_close(&v->event, data);
    tutti__proto_put_int(&v->event, 4, class);
    tutti__proto_close(&v->event, metadata);
    tutti__proto_close(&v->event, v->value);
    tutti__proto_close(&v->event, v->summary);
    return put_event(events, &v->event);
}

/* Type and shape of a TensorProto whose content follows. */
static size_t start_tensor(tutti_text *event, int dtype, int rank, const int64_t *dims)
{
    size_t tensor = tutti__proto_open(event, 8);
    tutti__proto_put_int(event, 1, dtype);
    size_t shape = tutti__proto_open(event, 2);
    for (int i = 0; i < rank; i++) {
        size_t dim = tutti__proto_open(event, 2);
        tutti__proto_put_int(event, 1, dims[i]);
        tutti__proto_close(event, dim);
    }
    tutti__proto_close(event, shape);
    return tensor;
}

tutti_status tutti__events_scalar(tutti_events *events, int64_t step, const char *tag, double value)
{
    open_value v = start_value(step, tag);
    size_t tensor = start_tensor(&v.event, DT_FLOAT, 0, NULL);
    tutti__proto_put_float(&v.event, 5, (float)value);
    tutti__proto_close(&v.event, tensor);
    return end_value(events, &v, "scalars", CLASS_SCALAR);
}

tutti_status tutti__events_histogram(tutti_events *events, int64_t step, const char *tag,
                                     size_t count, const double (*bins)[3])
{
    open_value v = start_value(step, tag);
    size_t tensor = start_tensor(&v.event, DT_DOUBLE, 2, (int64_t[]){(int64_t)count, 3});
    tutti__proto_put_bytes(&v.event, 4, bins, count * sizeof *bins);
    tutti__proto_close(&v.event, tensor);
    return end_value(events, &v, "histograms", CLASS_TENSOR);
}

tutti_status tutti__events_text(tutti_events *events, int64_t step, const char *tag,
                                const char *text)
{
    open_value v = start_value(step, tag);
    size_t tensor = start_tensor(&v.event, DT_STRING, 0, NULL);
    tutti__proto_put_string(&v.event, 8, text);
    tutti__proto_close(&v.event, tensor);
    return end_value(events, &v, "text", CLASS_TENSOR);
}

/* Least and greatest finite value; false when there is none. */
static bool find_range(const double *values, int64_t count, double *ret_low, double *ret_high)
{
    double low = INFINITY, high = -INFINITY;
    for (int64_t i = 0; i < count; i++)
        if (isfinite(values[i])) {
            low = values[i] < low ? values[i] : low;
            high = values[i] > high ? values[i] : high;
        }
    *ret_low = low;
    *ret_high = high;
    return low <= high;
}

/* Equal values give one bin of width 1 round them. */
static int fill_bins(const double *values, int64_t n, int count, double (*bins)[3])
{
    double low, high;
    if (!find_range(values, n, &low, &high))
        return 0;
    if (low == high) {
        count = 1;
        low -= 0.5;
        high += 0.5;
    }
    double width = high / count - low / count;
    for (int i = 0; i < count; i++) {
        bins[i][0] = low + width * i;
        bins[i][1] = i + 1 == count ? high : low + width * (i + 1);
        bins[i][2] = 0;
    }
    for (int64_t i = 0; i < n; i++)
        if (isfinite(values[i])) {
            double place = (values[i] - low) / width;
            int bin = place >= count ? count - 1 : place > 0 ? (int)place : 0;
            bins[bin][2]++;
        }
    return count;
}

tutti_status tutti__events_values(tutti_events *events, int64_t step, const char *tag,
                                  tutti_tensor *values, int count)
{
    tutti_tensor *host, *doubles;
    TUTTI_TRY(tutti__tensor_to_host(values, &host));
    tutti_status status = tutti_tensor_cast(host, TUTTI_F64, &doubles);
    tutti_tensor_release(host);
    TUTTI_TRY(status);
    count = count < 1 ? 30 : count > 10000 ? 10000 : count;
    double(*bins)[3] = malloc((size_t)count * sizeof *bins);
    if (bins == NULL)
        status = tutti_fail(TUTTI_NO_MEMORY, "no memory for %d bins", count);
    else
        count = fill_bins(tutti_tensor_data(doubles), tutti_tensor_count(doubles), count, bins);
    tutti_tensor_release(doubles);
    if (status == TUTTI_OK)
        status = tutti__events_histogram(events, step, tag, (size_t)count,
                                         (const double(*)[3])(uintptr_t)bins);
    free(bins);
    return status;
}

tutti_status tutti__events_graph(tutti_events *events, const void *graph_def, size_t size)
{
    tutti_text event = start_event(0);
    tutti__proto_put_bytes(&event, 4, graph_def, size);
    return put_event(events, &event);
}

tutti_status tutti__events_flush(tutti_events *events)
{
    return tutti__sink_flush(events->sink);
}

tutti_status tutti__events_close(tutti_events *events)
{
    tutti_status status = tutti__sink_commit(events->sink);
    free(events->path);
    *events = (tutti_events){0};
    return status;
}
