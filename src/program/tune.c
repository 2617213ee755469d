/* tune.c: see tune.h. A rival runs on inputs of the node's types, once to warm up, then until its
 * time is known. One that is far behind after its first run is not measured further. */
#include "program/tune.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/params.h"
#include "base/world.h"
#include "program/tune_file.h"

enum { MOST_RIVALS = 8, MOST_VIEWS = 16, RUNS = 6 };
#define ENOUGH_NS 8000000    /* a rival is not run again after this long */
#define MOST_BYTES (1 << 28) /* of a node that is tried: larger ones are decided by score */

static tutti_param tune_param = TUTTI_PARAM(
    "TUNE", "1", "measure which kernel is fastest, once for a shape; 0: decide by shape alone");
static tutti_param cache_param =
    TUTTI_PARAM("CACHE", "", "folder for what was measured; empty: the user's cache folder");

static struct {
    pthread_mutex_t lock;
    tutti_choices choices;
    bool read, fresh, useless; /* fresh: holds what the file does not; useless: cannot be written */
} tuned = {.lock = PTHREAD_MUTEX_INITIALIZER};

const char *tutti__tune_path(void)
{
    static _Thread_local char path[4096];
    const char *folder = tutti__param_text(&cache_param), *below = "";
    if (*folder == '\0' && (folder = getenv("XDG_CACHE_HOME")) != NULL && *folder == '/')
        below = "/tutti";
    else if ((folder == NULL || *folder == '\0') && (folder = getenv("HOME")) != NULL)
        below = "/.cache/tutti";
    if (folder == NULL || *folder == '\0')
        return NULL;
    uint64_t machine = tutti__hash_string(1, tutti__cpu()->model);
    int size = snprintf(path, sizeof path, "%s%s/kernels-%08x.txt", folder, below,
                        (unsigned)(machine & 0xffffffff));
    return size > 0 && (size_t)size < sizeof path ? path : NULL;
}

/* The node and who competes for it, not how many threads there are: see tune.h. */
static uint64_t key_of(const tutti_kernel_query *query, const tutti_kernel *const *rivals,
                       int count)
{
    const tutti_infer *node = &query->node;
    uint64_t key = tutti__hash_string(7, node->op->name);
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

typedef struct trial {
    tutti_call call;
    tutti_view inputs[MOST_VIEWS], outputs[MOST_VIEWS];
    tutti_tensor *tensors[2 * MOST_VIEWS];
    int tensor_count;
    int64_t bytes;
} trial;

/* Values between 0.5 and 1: no infinity, no number so small that it is slow. */
static void fill(tutti_tensor *tensor)
{
    size_t bytes =
        (size_t)tutti_tensor_count(tensor) * tutti_dtype_size(tutti_tensor_dtype(tensor));
    memset(tutti_tensor_data(tensor), 0, bytes);
    if (tutti_tensor_dtype(tensor) == TUTTI_F32) {
        float *x = tutti_tensor_data(tensor);
        for (int64_t i = 0; i < tutti_tensor_count(tensor); i++)
            x[i] = 0.5f + (float)(i * 37 % 101) / 202.0f;
    }
}

static bool add_view(trial *t, const tutti_type *type, tutti_view *ret)
{
    tutti_tensor *tensor;
    int64_t count = tutti_type_count(type);
    if (count < 0 || count > MOST_BYTES / 8)
        return false;
    t->bytes += count * (int64_t)tutti_dtype_size(type->dtype);
    if (t->bytes > MOST_BYTES || type->handle || type->dtype == TUTTI_STRING ||
        tutti_tensor_create(type->dtype, type->rank, type->dims, &tensor) != TUTTI_OK)
        return false;
    t->tensors[t->tensor_count++] = tensor;
    fill(tensor);
    *ret = (tutti_view){tutti_tensor_data(tensor), type->dtype, type->rank,
                        tutti_tensor_dims(tensor), NULL};
    return true;
}

static void trial_end(trial *t)
{
    for (int i = 0; i < t->tensor_count; i++)
        tutti_tensor_release(t->tensors[i]);
}

/* False when the node is of a kind that cannot be tried. */
static bool trial_begin(const tutti_device *device, const tutti_kernel_query *query, trial *t)
{
    const tutti_infer *node = &query->node;
    if (node->input_count > MOST_VIEWS || node->output_count > MOST_VIEWS)
        return false;
    bool ok = true;
    for (int i = 0; i < node->input_count && ok; i++)
        ok = add_view(t, &node->inputs[i], &t->inputs[i]);
    for (int i = 0; i < node->output_count && ok; i++)
        ok = add_view(t, &node->outputs[i], &t->outputs[i]);
    t->call = (tutti_call){.op = node->op,
                           .name = node->name,
                           .attrs = node->attrs,
                           .attr_count = node->attr_count,
                           .input_count = node->input_count,
                           .output_count = node->output_count,
                           .inputs = t->inputs,
                           .outputs = t->outputs,
                           .pool = device->pool,
                           .deadline = INT64_MAX};
    return ok;
}

/* Best time of a few runs; INT64_MAX when it fails or is far behind `best`. */
static int64_t measure(trial *t, const tutti_kernel *kernel, int64_t best)
{
    int64_t shortest = INT64_MAX, spent = 0;
    for (int i = 0; i <= RUNS && spent < ENOUGH_NS; i++) {
        int64_t start = tutti__now_ns();
        if (kernel->run(&t->call) != TUTTI_OK)
            return INT64_MAX;
        int64_t time = tutti__now_ns() - start;
        spent += time;
        if (i == 0 && best < INT64_MAX && time > 4 * best)
            return INT64_MAX;
        if (i > 0 || spent >= ENOUGH_NS)
            shortest = time < shortest ? time : shortest;
    }
    return shortest;
}

static int64_t try(trial *t, const tutti_kernel *kernel, const tutti_kernel_query *query,
                   int64_t best)
{
    int64_t time = INT64_MAX;
    size_t bytes = kernel->workspace == NULL ? 0 : kernel->workspace(query);
    t->call.plan = NULL;
    t->call.workspace = tutti__aligned_alloc(64, (bytes + 127) / 64 * 64);
    if (t->call.workspace != NULL &&
        (kernel->prepare == NULL || kernel->prepare(query, &t->call.plan) == TUTTI_OK)) {
        time = measure(t, kernel, best);
        if (kernel->discard != NULL)
            kernel->discard(t->call.plan);
    }
    free(t->call.workspace);
    return time;
}

/* NULL when nothing could be tried. */
static const tutti_kernel *fastest(const tutti_device *device, const tutti_kernel_query *query,
                                   const tutti_kernel *const *rivals, int count, int64_t *ret_time)
{
    const tutti_kernel *winner = NULL;
    trial t = {0};
    *ret_time = INT64_MAX;
    if (trial_begin(device, query, &t))
        for (int i = 0; i < count; i++) {
            int64_t time = try(&t, rivals[i], query, *ret_time);
            if (time < *ret_time) {
                *ret_time = time;
                winner = rivals[i];
            }
        }
    trial_end(&t);
    return winner;
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
        tuned.useless ? NULL : fastest(device, query, rivals, count, &time);
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

const tutti_kernel *tutti__tune_pick(const tutti_device *device, const tutti_kernel_query *query)
{
    const char *kernels = device->target->kernels;
    const tutti_kernel *rivals[MOST_RIVALS];
    int count = query->deterministic || !tutti__param_flag(&tune_param)
                    ? 0
                    : tutti__kernel_rivals(kernels, query, MOST_RIVALS, rivals);
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
