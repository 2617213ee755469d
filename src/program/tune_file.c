/* tune_file.c: see tune_file.h.
 *
 *     tutti kernels 1
 *     3f9a01c2b4d5e6f7 conv2d.winograd 1834211
 *     …
 *     sum 8c0e…
 */
#include "program/tune_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/world.h"

#define HEAD "tutti kernels 1\n"
enum { MOST_BYTES = 8 << 20, MOST_CHOICES = 50000 };

const tutti_choice *tutti__choices_find(const tutti_choices *choices, uint64_t key)
{
    for (size_t i = 0; i < choices->count; i++)
        if (choices->data[i].key == key)
            return &choices->data[i];
    return NULL;
}

tutti_status tutti__choices_add(tutti_choices *choices, const tutti_choice *choice)
{
    if (tutti__choices_find(choices, choice->key) != NULL)
        return TUTTI_OK;
    if (choices->count >= MOST_CHOICES)
        return tutti_fail(TUTTI_TOO_LARGE, "more than %d choices of kernels", (int)MOST_CHOICES);
    if (!TUTTI_VEC_PUSH(choices, *choice))
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a choice of kernels");
    return TUTTI_OK;
}

static uint64_t sum_of(const char *text, size_t size)
{
    return tutti__hash_bytes(0, text, size);
}

/* Whether the text ends in a line with the sum of everything before it; gives that part's size. */
static bool whole(const char *text, size_t size, size_t *ret_size)
{
    uint64_t sum;
    if (size < sizeof HEAD - 1 || memcmp(text, HEAD, sizeof HEAD - 1) != 0 ||
        text[size - 1] != '\n')
        return false;
    size_t end = size - 1;
    while (end > 0 && text[end - 1] != '\n')
        end--;
    *ret_size = end;
    return sscanf(text + end, "sum %16" SCNx64, &sum) == 1 && sum == sum_of(text, end);
}

static void read_lines(tutti_choices *choices, char *text)
{
    char *rest = NULL;
    for (char *line = strtok_r(text, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        tutti_choice choice;
        if (sscanf(line, "%16" SCNx64 " %47s %lf", &choice.key, choice.kernel,
                   &choice.nanoseconds) == 3 &&
            tutti__choices_add(choices, &choice) != TUTTI_OK)
            return;
    }
}

void tutti__choices_read(tutti_choices *choices, const char *path)
{
    const tutti_world *world = tutti__world();
    void *text;
    size_t size, end;
    tutti_error before;
    tutti__error_capture(TUTTI_OK, &before);
    if (world->read_file(world->self, path, MOST_BYTES, &text, &size) == TUTTI_OK) {
        if (whole(text, size, &end)) {
            ((char *)text)[end] = '\0';
            read_lines(choices, (char *)text + sizeof HEAD - 1);
        }
        free(text);
    }
    tutti__error_restore(&before);
}

static tutti_status make_folder_of(const char *path)
{
    const tutti_world *world = tutti__world();
    const char *slash = strrchr(path, '/');
    if (slash == NULL || slash == path)
        return TUTTI_OK;
    char *folder = strndup(path, (size_t)(slash - path));
    if (folder == NULL)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a path");
    tutti_status status = world->make_folder(world->self, folder);
    free(folder);
    return status;
}

tutti_status tutti__choices_write(const tutti_choices *choices, const char *path)
{
    const tutti_world *world = tutti__world();
    tutti_text text = {0};
    tutti__text_add(&text, "%s", HEAD);
    for (size_t i = 0; i < choices->count; i++)
        tutti__text_add(&text, "%016" PRIx64 " %s %.0f\n", choices->data[i].key,
                        choices->data[i].kernel, choices->data[i].nanoseconds);
    tutti__text_add(&text, "sum %016" PRIx64 "\n", sum_of(text.data, text.size));
    tutti_status status =
        text.failed ? tutti_fail(TUTTI_NO_MEMORY, "no memory for a text") : make_folder_of(path);
    if (status == TUTTI_OK)
        status = world->write_file(world->self, path, text.data, text.size);
    tutti__text_free(&text);
    return status;
}
