/* tune.c: see tune.h. */
#include "program/tune.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "base/log.h"
#include "base/params.h"
#include "base/world.h"
#include "program/race.h"

/* Another one when rivals are measured otherwise: what was chosen before counts no more. */
enum { WAY_OF_MEASURING = 9 };

static tutti_param tune_param = TUTTI_PARAM(
    "TUNE", "1", "measure which kernel is fastest, once for a shape; 0: decide by shape alone");
static tutti_param cache_param =
    TUTTI_PARAM("CACHE", "", "folder for what was measured; empty: the user's cache folder");

static struct {
    pthread_mutex_t lock;
    tutti_choices choices;
    bool read, fresh, useless; /* fresh: holds what the file does not; useless: cannot be written */
} tuned = {.lock = PTHREAD_MUTEX_INITIALIZER};

const char *tutti__tune_folder(void)
{
    static _Thread_local char path[4096];
    const char *folder = tutti__param_text(&cache_param), *below = "";
    if (*folder == '\0' && (folder = getenv("XDG_CACHE_HOME")) != NULL && *folder == '/')
        below = "/tutti";
    else if ((folder == NULL || *folder == '\0') && (folder = getenv("HOME")) != NULL)
        below = "/.cache/tutti";
    if (folder == NULL || *folder == '\0')
        return NULL;
    int size = snprintf(path, sizeof path, "%s%s", folder, below);
    return size > 0 && (size_t)size < sizeof path ? path : NULL;
}

const char *tutti__tune_path(void)
{
    static _Thread_local char path[4096];
    const char *folder = tutti__tune_folder();
    if (folder == NULL)
        return NULL;
    uint64_t machine = tutti__hash_string(1, tutti__cpu()->model);
    int size = snprintf(path, sizeof path, "%s/kernels-%08x.txt", folder,
                        (unsigned)(machine & 0xffffffff));
    return size > 0 && (size_t)size < sizeof path ? path : NULL;
}

/* The node and who competes for it, not how many threads there are: see tune.h. */
static uint64_t key_of(const tutti_kernel_query *query, const tutti_kernel *const *rivals,
                       int count)
{
    const tutti_infer *node = &query->node;
    uint64_t key = tutti__hash_string(WAY_OF_MEASURING, node->op->name);
    for (int i = 0; i < node->input_count; i++)
        key = tutti__hash_type(key, &node->inputs[i]);
    for (int i = 0; i < node->attr_count; i++)
        key = tutti__attr_hash(key, &node->attrs[i]);
    for (int i = 0; i < count; i++) {
        key = tutti__hash_string(key, rivals[i]->name);
        key = tutti__hash_string(key, rivals[i]->isa);
        key = tutti__hash_mix(key, (uint64_t)rivals[i]->version);
    }
    return key;
}

/* Under the lock: the file is read, and can be written. */
static bool ready(void)
{
    const char *path = tutti__tune_path();
    if (!tuned.read) {
        tuned.read = true;
        tuned.useless = path == NULL;
        if (path != NULL)
            tutti__choices_read(&tuned.choices, path);
        if (path != NULL && tuned.choices.count == 0)
            tuned.useless = tutti__choices_write(&tuned.choices, path) != TUTTI_OK;
    }
    return !tuned.useless;
}

static const tutti_kernel *decide(const tutti_device *device, const tutti_kernel_query *query,
                                  const tutti_kernel *const *rivals, int count)
{
    uint64_t key = key_of(query, rivals, count);
    const tutti_choice *known = ready() ? tutti__choices_find(&tuned.choices, key) : NULL;
    for (int i = 0; known != NULL && i < count; i++)
        if (strcmp(known->kernel, rivals[i]->name) == 0)
            return rivals[i];
    int64_t time = 0;
    const tutti_kernel *winner =
        tuned.useless ? NULL : tutti__race(device, query, rivals, count, &time);
    if (winner == NULL)
        return rivals[0];
    tutti_choice choice = {.key = key, .nanoseconds = (double)time};
    snprintf(choice.kernel, sizeof choice.kernel, "%s", winner->name);
    if (tutti__choices_add(&tuned.choices, &choice) != TUTTI_OK)
        return rivals[0];
    tuned.fresh = true;
    tutti__log(TUTTI_LOG_DEBUG, "%s: %s takes %.3f ms, the best of %d", query->node.op->name,
               winner->name, (double)time * 1e-6, count);
    return winner;
}

tutti_status tutti__tune_check_setting(void)
{
    bool tunes;
    return tutti__param_switch(&tune_param, &tunes);
}

const tutti_kernel *tutti__tune_pick(const tutti_device *device, const tutti_kernel_query *query)
{
    const char *kernels = device->target->kernels;
    if (device->target->pick)
        return device->target->pick(query);
    const tutti_kernel *rivals[TUTTI_RACE_RIVALS];
    int count = query->deterministic || !tutti__param_flag(&tune_param)
                    ? 0
                    : tutti__kernel_rivals(kernels, query, TUTTI_RACE_RIVALS, rivals);
    if (count < 2)
        return tutti__kernel_pick(kernels, query);
    tutti_error before;
    tutti__error_capture(TUTTI_OK, &before);
    pthread_mutex_lock(&tuned.lock);
    const tutti_kernel *kernel = decide(device, query, rivals, count);
    pthread_mutex_unlock(&tuned.lock);
    tutti__error_restore(&before);
    return kernel;
}

/* What another process has written meanwhile is kept, and wins over what this one measured. */
void tutti__tune_save(void)
{
    pthread_mutex_lock(&tuned.lock);
    const char *path = tutti__tune_path();
    if (tuned.fresh && path != NULL) {
        tutti_error before;
        tutti_choices all = {0};
        tutti__error_capture(TUTTI_OK, &before);
        tutti__choices_read(&all, path);
        bool ok = true;
        for (size_t i = 0; i < tuned.choices.count && ok; i++)
            ok = tutti__choices_add(&all, &tuned.choices.data[i]) == TUTTI_OK;
        if (ok)
            (void)tutti__choices_write(&all, path);
        TUTTI_VEC_FREE(&all);
        tutti__error_restore(&before);
    }
    tuned.fresh = false;
    pthread_mutex_unlock(&tuned.lock);
}

void tutti__tune_forget(void)
{
    pthread_mutex_lock(&tuned.lock);
    TUTTI_VEC_FREE(&tuned.choices);
    tuned.read = tuned.fresh = tuned.useless = false;
    pthread_mutex_unlock(&tuned.lock);
}

/* ---- the file ---- */

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
