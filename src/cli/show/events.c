/* events.c: TensorBoard's event files: the last value of every tag. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/viewer.h"
#include "io/events.h"

typedef struct tag {
    char *plugin;
    int64_t count, first, last;
    double value;
} tag;

static int recognise(const tutti_glance *glance)
{
    const char *slash = strrchr(glance->path, '/');
    return strstr(slash ? slash : glance->path, "tfevents") ? 4 : 0;
}

static tutti_status events_note(tutti_map *tags, const tutti_event_value *value)
{
    const char *name = value->tag[0] ? value->tag : value->plugin;
    tag *t = tutti__map_get(tags, name);
    if (!t) {
        t = calloc(1, sizeof *t);
        if (!t || !(t->plugin = strdup(value->plugin)) ||
            tutti__map_set(tags, name, t) != TUTTI_OK) {
            if (t)
                free(t->plugin);
            free(t);
            return tutti_fail(TUTTI_NO_MEMORY, "no memory for the tags of an event file");
        }
        t->first = value->step;
    }
    t->count++;
    t->last = value->step;
    t->value = value->value;
    return TUTTI_OK;
}

static tutti_status read_all(const char *path, tutti_map *tags)
{
    tutti_source *source;
    tutti_events_reader reader;
    TUTTI_TRY(tutti__source_file(path, &source));
    TUTTI_TRY(tutti__events_open(source, &reader));
    tutti_status status = TUTTI_OK;
    for (bool more = true; status == TUTTI_OK && more;) {
        tutti_event_value value;
        status = tutti__events_next(&reader, &value, &more);
        if (status == TUTTI_OK && more)
            status = events_note(tags, &value);
    }
    tutti__events_reader_close(&reader);
    return status;
}

static void print_tag(const char *name, const tag *t, bool json)
{
    if (!json) {
        printf("  ");
        tutti__print_name(name, 36);
        printf(" ");
        tutti__print_name(t->plugin, 12);
        printf(" %6" PRId64 " values, steps %" PRId64 " to %" PRId64 ", last %.6g\n", t->count,
               t->first, t->last, t->value);
        return;
    }
    printf("{\"tag\":");
    tutti__print_quoted(name);
    printf(",\"plugin\":");
    tutti__print_quoted(t->plugin);
    printf(",\"count\":%" PRId64 ",\"first_step\":%" PRId64 ",\"last_step\":%" PRId64 ",\"last\":",
           t->count, t->first, t->last);
    tutti__print_real(t->value);
    printf("}\n");
}

static tutti_status events_show(const tutti_glance *glance, bool json)
{
    tutti_map tags = {0};
    tutti_status status = read_all(glance->path, &tags);
    for (size_t i = 0; i < tags.count; i++) {
        tag *t = tags.entries[i].value;
        if (status == TUTTI_OK)
            print_tag(tags.entries[i].key, t, json);
        free(t->plugin);
        free(t);
    }
    tutti__map_free(&tags);
    return status;
}

const tutti_viewer tutti_viewer_events = {
    .kind = "TensorBoard events",
    .recognise = recognise,
    .show = events_show,
};
