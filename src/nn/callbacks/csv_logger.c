/* csv_logger.c: the logs of each epoch as a line of a CSV file. A training that was cut off may
 * have written lines of epochs that are not in the checkpoint that it goes on from: those are
 * removed when it does, so that each epoch has one line. */
#include <stdlib.h>

#include "io/number.h"
#include "io/stream.h"
#include "nn/callbacks/common.h"
#include "nn/training/callback.h"

typedef struct csv {
    char *path;
    char separator;
    bool append;
    bool begun; /* the file holds what it is to begin with */
    tutti_sink *sink;
    int count; /* of columns besides the epoch; 0: not known yet */
    const char *names[TUTTI_LOGS];
} csv;

static tutti_status csv_logger_train_begin(void *self, tutti_event *event)
{
    csv *c = self;
    (void)event;
    c->begun = false;
    return c->sink ? TUTTI_OK : tutti__sink_file(c->path, TUTTI_FILE_APPEND, &c->sink);
}

enum { MOST_BYTES = 1 << 30 }; /* of a file that is gone on with */

/* Bytes of the file without its last lines, those of epochs from `epoch` on and one that was cut
 * off. The first line, which is no epoch's, stays. */
static size_t without_last(const char *text, size_t size, int epoch)
{
    while (size > 0) {
        size_t start = size - (text[size - 1] == '\n');
        while (start > 0 && text[start - 1] != '\n')
            start--;
        bool whole = text[size - 1] == '\n';
        if (start == 0 || (whole && strtol(text + start, NULL, 10) < epoch))
            return start == 0 && !whole ? 0 : size;
        size = start;
    }
    return 0;
}

/* Once, when every callback has restored what it restores: what stands in the file before the first
 * line of this training. */
static tutti_status begin_file(csv *c, const tutti_event *event)
{
    const tutti_fit *fit = (const tutti_fit *)(const void *)event;
    const tutti_world *world = tutti__world();
    void *text = NULL;
    size_t size = 0, kept = 0;
    if (c->begun)
        return TUTTI_OK;
    c->begun = true;
    if (c->sink->appended == 0 || (c->append && !fit->goes_on))
        return TUTTI_OK;
    if (fit->goes_on) {
        TUTTI_TRY(world->read_file(world->self, c->path, MOST_BYTES, &text, &size));
        kept = without_last(text, size, event->epoch);
    }
    tutti_sink *sink = c->sink;
    c->sink = NULL;
    tutti_status status = tutti__sink_commit(sink);
    if (status == TUTTI_OK)
        status = world->write_file(world->self, c->path, text ? text : "", kept);
    free(text);
    TUTTI_TRY(status);
    return tutti__sink_file(c->path, TUTTI_FILE_APPEND, &c->sink);
}

static tutti_status csv_logger_epoch_begin(void *self, tutti_event *event)
{
    return begin_file(self, event);
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

static tutti_status csv_logger_epoch_end(void *self, tutti_event *event)
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

static tutti_status csv_logger_train_end(void *self, tutti_event *event)
{
    csv *c = self;
    tutti_sink *sink = c->sink;
    (void)event;
    c->sink = NULL;
    return tutti__sink_commit(sink);
}

static void csv_logger_destroy(void *self)
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
    .train_begin = csv_logger_train_begin,
    .train_end = csv_logger_train_end,
    .epoch_begin = csv_logger_epoch_begin,
    .epoch_end = csv_logger_epoch_end,
    .destroy = csv_logger_destroy,
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
