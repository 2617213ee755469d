/* tune.c: see tune.h. */
#include "program/tune.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "base/log.h"
#include "base/params.h"
#include "program/race.h"
#include "program/tune_file.h"

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
