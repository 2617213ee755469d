/* text_lines.c: the lines of a text file. */
#include <stdlib.h>
#include <string.h>

#include "data/bytes.h"
#include "data/dataset.h"

typedef struct settings {
    char *text;
    size_t size;
    size_t *begins; /* of each line */
} settings;

static void text_lines_destroy(tutti_dataset *dataset)
{
    settings *s = dataset->settings;
    free(s->text);
    free(s->begins);
}

static tutti_status text_lines_gather(tutti_access *access, uint64_t epoch, int64_t count,
                                      const int64_t *indices, tutti_tensor *const *rows,
                                      int64_t first)
{
    const settings *s = access->dataset->settings;
    for (int64_t i = 0; i < count; i++) {
        size_t begin = s->begins[indices[i]];
        const char *line = s->text + begin, *end = memchr(line, '\n', s->size - begin);
        size_t size = end ? (size_t)(end - line) : s->size - begin;
        size -= size > 0 && line[size - 1] == '\r';
        TUTTI_TRY(tutti_tensor_set_string(rows[0], first + i, line, (int64_t)size));
    }
    return TUTTI_OK;
}

/* Lines end at "\n" or at the end of the file; a file that ends in "\n" has no empty last line. */
static int64_t find_lines(const settings *s, size_t *begins)
{
    int64_t count = 0;
    for (size_t at = 0; at < s->size;) {
        if (begins)
            begins[count] = at;
        count++;
        const char *end = memchr(s->text + at, '\n', s->size - at);
        at = end ? (size_t)(end - s->text) + 1 : s->size;
    }
    return count;
}

extern const tutti_dataset_def tutti_dataset_def_text_lines;

tutti_dataset *(tutti_text_lines)(tutti_job *job, const char *path)
{
    const tutti_dataset_def *def = &tutti_dataset_def_text_lines;
    tutti_dataset *dataset = tutti__dataset_create(def, job, 0, NULL);
    if (!dataset)
        return NULL;
    settings *s = dataset->settings;
    void *bytes;
    tutti_status status = tutti__bytes_read(path, &bytes, &s->size);
    if (status != TUTTI_OK)
        return tutti__dataset_fail(job, def, status);
    s->text = bytes;
    int64_t count = find_lines(s, NULL);
    s->begins = malloc((size_t)(count + 1) * sizeof *s->begins);
    if (!s->begins)
        return tutti__dataset_fail(
            job, def,
            tutti_fail(TUTTI_NO_MEMORY, "%s: no memory for %lld lines", path, (long long)count));
    find_lines(s, s->begins);
    dataset->info.components = 1;
    dataset->info.names[0] = "line";
    dataset->info.types[0] = tutti_type_make(TUTTI_STRING, 0, NULL);
    dataset->info.cardinality = count;
    tutti__dataset_note(dataset, (uint64_t)s->size);
    tutti__dataset_set_access(dataset, TUTTI_ACCESS_ROWS);
    return dataset;
}

const tutti_dataset_def tutti_dataset_def_text_lines = {
    .name = "text_lines",
    .doc = "the lines of a text file",
    .settings_size = sizeof(settings),
    .destroy = text_lines_destroy,
    .gather = text_lines_gather,
};
