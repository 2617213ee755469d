/* choices.c: see choices.h. */
#include "device/cuda/blas/choices.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/container.h"
#include "base/world.h"

#define HEAD "tutti products 1\n"
enum { MOST_BYTES = 16 << 20, MOST_CHOICES = 50000, WORDS = 8 };

const tutti_cuda_choice *tutti__cuda_choices_find(const tutti_cuda_choices *choices, uint64_t key)
{
    for (size_t i = 0; i < choices->count; i++)
        if (choices->data[i].key == key)
            return &choices->data[i];
    return NULL;
}

tutti_status tutti__cuda_choices_add(tutti_cuda_choices *choices, const tutti_cuda_choice *choice)
{
    if (tutti__cuda_choices_find(choices, choice->key))
        return TUTTI_OK;
    if (choices->count >= MOST_CHOICES)
        return tutti_fail(TUTTI_TOO_LARGE, "more than %d choices of products", (int)MOST_CHOICES);
    tutti_cuda_choice *grown = realloc(choices->data, (choices->count + 1) * sizeof *grown);
    if (!grown)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a choice of a product");
    choices->data = grown;
    choices->data[choices->count++] = *choice;
    return TUTTI_OK;
}

void tutti__cuda_choices_free(tutti_cuda_choices *choices)
{
    free(choices->data);
    *choices = (tutti_cuda_choices){0};
}

/* Whether the text ends in a line with the hash of what stands before it. */
static bool whole(const char *text, size_t size, size_t *ret_size)
{
    uint64_t sum;
    if (size < sizeof HEAD || memcmp(text, HEAD, sizeof HEAD - 1) != 0 || text[size - 1] != '\n')
        return false;
    size_t end = size - 1;
    while (end > 0 && text[end - 1] != '\n')
        end--;
    *ret_size = end;
    return sscanf(text + end, "sum %16" SCNx64, &sum) == 1 &&
           sum == tutti__hash_bytes(0, text, end);
}

static bool read_line(const char *line, tutti_cuda_choice *choice)
{
    int at = 0, used = 0;
    if (sscanf(line, "%16" SCNx64 " %n", &choice->key, &at) != 1 || at == 0)
        return false;
    for (int i = 0; i < WORDS; i++) {
        if (sscanf(line + at, "%16" SCNx64 "%n", &choice->algorithm.data[i], &used) != 1)
            return false;
        at += used;
    }
    return true;
}

void tutti__cuda_choices_read(tutti_cuda_choices *choices, const char *path)
{
    const tutti_world *world = tutti__world();
    void *text;
    size_t size, end;
    char *rest = NULL;
    tutti_cuda_choice choice;
    tutti_error before;
    tutti__error_capture(TUTTI_OK, &before);
    if (world->read_file(world->self, path, MOST_BYTES, &text, &size) == TUTTI_OK) {
        if (whole(text, size, &end)) {
            ((char *)text)[end] = '\0';
            for (char *line = strtok_r((char *)text + sizeof HEAD - 1, "\n", &rest); line;
                 line = strtok_r(NULL, "\n", &rest))
                if (read_line(line, &choice))
                    (void)tutti__cuda_choices_add(choices, &choice);
        }
        free(text);
    }
    tutti__error_restore(&before);
}

static tutti_status make_folder_of(const char *path)
{
    const tutti_world *world = tutti__world();
    char folder[4096];
    const char *slash = strrchr(path, '/');
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path) : 0, path);
    return folder[0] ? world->make_folder(world->self, folder) : TUTTI_OK;
}

tutti_status tutti__cuda_choices_write(const tutti_cuda_choices *choices, const char *path)
{
    const tutti_world *world = tutti__world();
    tutti_text text = {0};
    tutti__text_add(&text, "%s", HEAD);
    for (size_t i = 0; i < choices->count; i++) {
        tutti__text_add(&text, "%016" PRIx64 " ", choices->data[i].key);
        for (int k = 0; k < WORDS; k++)
            tutti__text_add(&text, "%016" PRIx64, choices->data[i].algorithm.data[k]);
        tutti__text_add(&text, "\n");
    }
    uint64_t sum = tutti__hash_bytes(0, text.data, text.size);
    tutti__text_add(&text, "sum %016" PRIx64 "\n", sum);
    tutti_status status =
        text.failed ? tutti_fail(TUTTI_NO_MEMORY, "no memory for a text") : make_folder_of(path);
    if (status == TUTTI_OK)
        status = world->write_file(world->self, path, text.data, text.size);
    free(text.data);
    return status;
}
