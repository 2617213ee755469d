/* csv_logger.c: the logs of each epoch as a line of a CSV file. */
#include <stdlib.h>

#include "io/number.h"
#include "io/stream.h"
#include "nn/callbacks/common.h"

typedef struct csv {
    char *path;
    char separator;
    bool append;
    tutti_sink *sink;
    int count; /* of columns besides the epoch; 0: not known yet */
    const char *names[TUTTI_LOGS];
} csv;

static tutti_status train_begin(void *self, tutti_event *event)
{
    csv *c = self;
    const tutti_world *world = tutti__world();
    (void)event;
    if (!c->append) {
        tutti_status status = world->remove_file(world->self, c->path);
        if (status != TUTTI_OK && status != TUTTI_NOT_FOUND)
            return status;
    }
    return c->sink ? TUTTI_OK : tutti__sink_file(c->path, TUTTI_FILE_APPEND, &c->sink);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The columns are the first epoch's logs. */
static void choose_columns(csv *c, const tutti_event *event)
{
    c->count = event->logs->count;
    for (int i = 0; i < c->count; i++)
        c->names[i] = event->logs->items[i].name;
    qsort(c->names, (size_t)c->count, sizeof *c->names, by_name);
}

static tutti_status epoch_end(void *self, tutti_event *event)
{
    csv *c = self;
    tutti_text line = {0};
    char number[TUTTI_NUMBER_TEXT];
    if (c->count == 0) {
        choose_columns(c, event);
        if (c->sink->appended == 0) {
            tutti__text_add(&line, "epoch");
            for (int i = 0; i < c->count; i++)
                tutti__text_add(&line, "%c%s", c->separator, c->names[i]);
            tutti__text_add(&line, "\n");
        }
    }
    tutti__text_add(&line, "%d", event->epoch);
    for (int i = 0; i < c->count; i++)
        tutti__text_add(&line, "%c%s", c->separator,
                        tutti__number_text(tutti_logs_get(event->logs, c->names[i]), true, number));
    tutti__text_add(&line, "\n");
    tutti_status status = line.failed ? tutti_fail(TUTTI_NO_MEMORY, "no memory for a line")
                                      : tutti__sink_write(c->sink, line.data, line.size);
    tutti__text_free(&line);
    TUTTI_TRY(status);
    return tutti__sink_flush(c->sink);
}

static tutti_status train_end(void *self, tutti_event *event)
{
    csv *c = self;
    tutti_sink *sink = c->sink;
    (void)event;
    c->sink = NULL;
    return tutti__sink_commit(sink);
}

static void destroy(void *self)
{
    csv *c = self;
    tutti__sink_end(c->sink, TUTTI_OK);
    free(c->path);
    free(c);
}

static const tutti_callback_kind kind = {
    .struct_size = sizeof(tutti_callback_kind),
    .writes = true,
    .name = "csv_logger",
    .train_begin = train_begin,
    .train_end = train_end,
    .epoch_end = epoch_end,
    .destroy = destroy,
};

tutti_callback *tutti_csv_logger_with(const char *path, const tutti_csv_logger_options *options)
{
    csv *c = calloc(1, sizeof *c);
    char *copy = path ? strdup(path) : NULL;
    if (!c || !copy) {
        free(c);
        free(copy);
        return NULL;
    }
    c->path = copy;
    c->append = options->append;
    c->separator = options->separator ? options->separator : ',';
    return tutti_callback_make(&kind, c);
}
