/* dnn.c: see dnn.h. */
#include "device/cuda/operators/dnn.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef enum plan_kind { CONVOLUTION, ATTENTION, ATTENTION_GRADIENT } plan_kind;

/* Cleared before it is filled: plans are found by its bytes. */
typedef struct plan_key {
    plan_kind kind;
    union {
        tutti_cuda_convolution convolution;
        tutti_cuda_attention attention;
    } of;
} plan_key;

typedef struct plan {
    struct plan *next;
    plan_key key;
    tutti_cuda_graph graph;
    bool made;
} plan;

/* Work space that was grown out of, which recorded launches may still use. */
typedef struct outgrown {
    struct outgrown *next;
    tutti_cu_pointer at;
} outgrown;

struct tutti_cuda_dnn_plans {
    pthread_mutex_t lock;
    plan *first;
    tutti_cuda_device *device;
    tutti_cu_pointer workspace; /* of all plans: they run one after the other */
    size_t size;
    outgrown *before;
};

tutti_status tutti__cuda_dnn_open(tutti_cuda_device *device, const tutti_cuda_dnn **ret)
{
    const tutti_dnn *api;
    tutti_dnn_handle handle;
    TUTTI_TRY(tutti__cuda_dnn(&api));
    TUTTI_TRY(tutti__cuda_dnn_check(api, api->cudnnCreate(&handle), "a handle"));
    tutti_cuda_dnn *dnn = malloc(sizeof *dnn);
    struct tutti_cuda_dnn_plans *plans = calloc(1, sizeof *plans);
    if (!dnn || !plans) {
        (void)api->cudnnDestroy(handle);
        free(dnn);
        free(plans);
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for cuDNN's handle");
    }
    pthread_mutex_init(&plans->lock, NULL);
    plans->device = device; /* its context is the caller's */
    *dnn = (tutti_cuda_dnn){api, handle, plans};
    *ret = dnn;
    return TUTTI_OK;
}

void tutti__cuda_dnn_close(const tutti_cuda_dnn *dnn)
{
    if (!dnn)
        return;
    for (plan *at = dnn->plans->first, *next; at; at = next) {
        next = at->next;
        if (at->made)
            tutti__cuda_graph_free(&at->graph);
        free(at);
    }
    for (outgrown *at = dnn->plans->before, *next; at; at = next) {
        next = at->next;
        (void)dnn->plans->device->cu->cuMemFree(at->at);
        free(at);
    }
    if (dnn->plans->workspace)
        (void)dnn->plans->device->cu->cuMemFree(dnn->plans->workspace);
    pthread_mutex_destroy(&dnn->plans->lock);
    free(dnn->plans);
    (void)dnn->api->cudnnDestroy(dnn->handle);
    free((void *)(uintptr_t)dnn);
}

/* Room for a plan's work. A plan is made outside of recordings, before it first runs. */
static tutti_status grow(struct tutti_cuda_dnn_plans *plans, int64_t bytes)
{
    tutti_cu_pointer fresh;
    if (bytes <= 0 || (size_t)bytes <= plans->size)
        return TUTTI_OK;
    outgrown *old = calloc(1, sizeof *old);
    if (!old)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for cuDNN's work space");
    tutti_status status = TUTTI_CU(plans->device, cuMemAlloc(&fresh, (size_t)bytes));
    if (status != TUTTI_OK || !plans->workspace) {
        free(old);
    } else {
        *old = (outgrown){plans->before, plans->workspace};
        plans->before = old;
    }
    if (status == TUTTI_OK) {
        plans->workspace = fresh;
        plans->size = (size_t)bytes;
    }
    return status;
}

tutti_cu_pointer tutti__cuda_dnn_workspace(const tutti_cuda_dnn *dnn)
{
    return dnn->plans->workspace;
}

static tutti_status build(const tutti_cuda_dnn *dnn, const plan_key *key, tutti_cuda_graph *ret)
{
    if (key->kind == CONVOLUTION)
        return tutti__cuda_convolution_plan(dnn->api, dnn->handle, &key->of.convolution, ret);
    if (key->kind == ATTENTION)
        return tutti__cuda_attention_plan(dnn->api, dnn->handle, &key->of.attention, ret);
    return tutti__cuda_attention_gradient_plan(dnn->api, dnn->handle, &key->of.attention, ret);
}

static tutti_status make(const tutti_cuda_dnn *dnn, const plan_key *key, plan **ret)
{
    tutti_error before;
    plan *made = calloc(1, sizeof *made);
    if (!made)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a plan of cuDNN's");
    memcpy(&made->key, key, sizeof *key);
    tutti__error_capture(TUTTI_OK, &before);
    made->made = build(dnn, key, &made->graph) == TUTTI_OK;
    if (made->made && grow(dnn->plans, made->graph.workspace) != TUTTI_OK) {
        tutti__cuda_graph_free(&made->graph);
        made->made = false;
    }
    tutti__error_restore(&before);
    made->next = dnn->plans->first;
    dnn->plans->first = made;
    *ret = made;
    return TUTTI_OK;
}

static tutti_status find(const tutti_cuda_dnn *dnn, const plan_key *key,
                         const tutti_cuda_graph **ret)
{
    tutti_status status = TUTTI_OK;
    pthread_mutex_lock(&dnn->plans->lock);
    plan *at = dnn->plans->first;
    while (at && memcmp(&at->key, key, sizeof *key) != 0)
        at = at->next;
    if (!at)
        status = make(dnn, key, &at);
    pthread_mutex_unlock(&dnn->plans->lock);
    if (status == TUTTI_OK && !at->made)
        return TUTTI_UNSUPPORTED;
    if (status == TUTTI_OK)
        *ret = &at->graph;
    return status;
}

tutti_status tutti__cuda_dnn_convolution(const tutti_cuda_dnn *dnn,
                                         const tutti_cuda_convolution *convolution,
                                         const tutti_cuda_graph **ret)
{
    plan_key key;
    memset(&key, 0, sizeof key);
    key.kind = CONVOLUTION;
    memcpy(&key.of.convolution, convolution, sizeof *convolution);
    return find(dnn, &key, ret);
}

tutti_status tutti__cuda_dnn_attention(const tutti_cuda_dnn *dnn,
                                       const tutti_cuda_attention *attention, bool gradient,
                                       const tutti_cuda_graph **ret)
{
    plan_key key;
    memset(&key, 0, sizeof key);
    key.kind = gradient ? ATTENTION_GRADIENT : ATTENTION;
    memcpy(&key.of.attention, attention, sizeof *attention);
    return find(dnn, &key, ret);
}
