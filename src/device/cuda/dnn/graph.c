/* graph.c: see graph.h. */
#include "device/cuda/dnn/graph.h"

#include <stdio.h>

tutti_status tutti__cuda_dnn_check(const tutti_dnn *dnn, tutti_dnn_result result, const char *what)
{
    char words[512] = "";
    if (result == 0)
        return TUTTI_OK;
    dnn->cudnnGetLastErrorString(words, sizeof words);
    return tutti_fail(TUTTI_UNSUPPORTED, "cuDNN, %s: %s; %.400s", what,
                      dnn->cudnnGetErrorString(result), words);
}

static bool check(tutti_cuda_graph *graph, tutti_dnn_result result, const char *what)
{
    if (graph->status == TUTTI_OK && result != 0) {
        graph->status = tutti__cuda_dnn_check(graph->dnn, result, what);
        tutti__error_capture(graph->status, &graph->error);
    }
    return graph->status == TUTTI_OK;
}

tutti_status tutti__cuda_graph_begin(const tutti_dnn *dnn, tutti_dnn_handle handle,
                                     tutti_cuda_graph *graph)
{
    *graph = (tutti_cuda_graph){.dnn = dnn, .handle = handle};
    return TUTTI_OK;
}

void tutti__cuda_graph_free(tutti_cuda_graph *graph)
{
    for (int i = graph->count - 1; i >= 0; i--)
        (void)graph->dnn->cudnnBackendDestroyDescriptor(graph->all[i]);
    *graph = (tutti_cuda_graph){0};
}

tutti_dnn_descriptor tutti__cuda_graph_open(tutti_cuda_graph *graph, unsigned kind)
{
    tutti_dnn_descriptor made = NULL;
    if (graph->status != TUTTI_OK)
        return NULL;
    if (graph->count == (int)TUTTI_COUNT(graph->all)) {
        graph->status = tutti_fail(TUTTI_TOO_LARGE, "a graph of cuDNN has too many parts");
        tutti__error_capture(graph->status, &graph->error);
        return NULL;
    }
    if (check(graph, graph->dnn->cudnnBackendCreateDescriptor(kind, &made), "a descriptor"))
        graph->all[graph->count++] = made;
    return made;
}

void tutti__cuda_graph_set(tutti_cuda_graph *graph, tutti_dnn_descriptor descriptor,
                           unsigned attribute, unsigned type, int64_t count, const void *values)
{
    char what[32];
    if (graph->status != TUTTI_OK)
        return;
    snprintf(what, sizeof what, "attribute %u", attribute);
    check(graph, graph->dnn->cudnnBackendSetAttribute(descriptor, attribute, type, count, values),
          what);
}

void tutti__cuda_graph_close(tutti_cuda_graph *graph, tutti_dnn_descriptor descriptor)
{
    if (graph->status == TUTTI_OK)
        check(graph, graph->dnn->cudnnBackendFinalize(descriptor), "a part of a graph");
}

tutti_dnn_descriptor tutti__cuda_graph_tensor(tutti_cuda_graph *graph,
                                              const tutti_cuda_dnn_tensor *t)
{
    tutti_dnn_descriptor made = tutti__cuda_graph_open(graph, TUTTI_DNN_A_TENSOR);
    int64_t alignment = 16;
    bool yes = true;
    tutti__cuda_graph_set(graph, made, TUTTI_DNN_TENSOR_DATA_TYPE, TUTTI_DNN_TYPE_DATA_TYPE, 1,
                          &t->type);
    tutti__cuda_graph_set(graph, made, TUTTI_DNN_TENSOR_DIMENSIONS, TUTTI_DNN_TYPE_INT64, t->rank,
                          t->dims);
    tutti__cuda_graph_set(graph, made, TUTTI_DNN_TENSOR_STRIDES, TUTTI_DNN_TYPE_INT64, t->rank,
                          t->strides);
    tutti__cuda_graph_set(graph, made, TUTTI_DNN_TENSOR_UNIQUE_ID, TUTTI_DNN_TYPE_INT64, 1, &t->id);
    tutti__cuda_graph_set(graph, made, TUTTI_DNN_TENSOR_BYTE_ALIGNMENT, TUTTI_DNN_TYPE_INT64, 1,
                          &alignment);
    if (t->inner)
        tutti__cuda_graph_set(graph, made, TUTTI_DNN_TENSOR_IS_VIRTUAL, TUTTI_DNN_TYPE_BOOLEAN, 1,
                              &yes);
    if (t->value)
        tutti__cuda_graph_set(graph, made, TUTTI_DNN_TENSOR_IS_BY_VALUE, TUTTI_DNN_TYPE_BOOLEAN, 1,
                              &yes);
    tutti__cuda_graph_close(graph, made);
    return made;
}

void tutti__cuda_graph_operation(tutti_cuda_graph *graph, tutti_dnn_descriptor operation)
{
    tutti__cuda_graph_close(graph, operation);
    if (graph->status == TUTTI_OK && graph->operation_count < (int)TUTTI_COUNT(graph->operations))
        graph->operations[graph->operation_count++] = operation;
}

/* The attribute is a descriptor. */
static void attach(tutti_cuda_graph *graph, tutti_dnn_descriptor to, unsigned attribute,
                   tutti_dnn_descriptor what)
{
    tutti__cuda_graph_set(graph, to, attribute, TUTTI_DNN_TYPE_BACKEND_DESCRIPTOR, 1, &what);
}

void tutti__cuda_graph_pointwise(tutti_cuda_graph *graph, unsigned mode, tutti_dnn_descriptor x,
                                 tutti_dnn_descriptor b, tutti_dnn_descriptor t,
                                 tutti_dnn_descriptor y, int64_t axis)
{
    unsigned precision = mode == TUTTI_DNN_GEN_INDEX ? TUTTI_DNN_DATA_INT32
                         : mode == TUTTI_DNN_CMP_GE  ? TUTTI_DNN_DATA_BOOLEAN
                                                     : TUTTI_DNN_DATA_FLOAT;
    tutti_dnn_descriptor kind = tutti__cuda_graph_open(graph, TUTTI_DNN_A_POINTWISE);
    tutti__cuda_graph_set(graph, kind, TUTTI_DNN_POINTWISE_MODE, TUTTI_DNN_TYPE_POINTWISE_MODE, 1,
                          &mode);
    tutti__cuda_graph_set(graph, kind, TUTTI_DNN_POINTWISE_MATH_PREC, TUTTI_DNN_TYPE_DATA_TYPE, 1,
                          &precision);
    if (mode == TUTTI_DNN_GEN_INDEX)
        tutti__cuda_graph_set(graph, kind, TUTTI_DNN_POINTWISE_AXIS, TUTTI_DNN_TYPE_INT64, 1,
                              &axis);
    tutti__cuda_graph_close(graph, kind);
    tutti_dnn_descriptor made = tutti__cuda_graph_open(graph, TUTTI_DNN_A_OPERATION_POINTWISE);
    attach(graph, made, TUTTI_DNN_OPERATION_POINTWISE_PW_DESCRIPTOR, kind);
    attach(graph, made, TUTTI_DNN_OPERATION_POINTWISE_XDESC, x);
    if (b)
        attach(graph, made, TUTTI_DNN_OPERATION_POINTWISE_BDESC, b);
    if (t)
        attach(graph, made, TUTTI_DNN_OPERATION_POINTWISE_TDESC, t);
    attach(graph, made, TUTTI_DNN_OPERATION_POINTWISE_YDESC, y);
    tutti__cuda_graph_operation(graph, made);
}

void tutti__cuda_graph_matmul(tutti_cuda_graph *graph, tutti_dnn_descriptor a,
                              tutti_dnn_descriptor b, tutti_dnn_descriptor c)
{
    unsigned precision = TUTTI_DNN_DATA_FLOAT;
    tutti_dnn_descriptor kind = tutti__cuda_graph_open(graph, TUTTI_DNN_A_MATMUL);
    tutti__cuda_graph_set(graph, kind, TUTTI_DNN_MATMUL_COMP_TYPE, TUTTI_DNN_TYPE_DATA_TYPE, 1,
                          &precision);
    tutti__cuda_graph_close(graph, kind);
    tutti_dnn_descriptor made = tutti__cuda_graph_open(graph, TUTTI_DNN_A_OPERATION_MATMUL);
    attach(graph, made, TUTTI_DNN_OPERATION_MATMUL_ADESC, a);
    attach(graph, made, TUTTI_DNN_OPERATION_MATMUL_BDESC, b);
    attach(graph, made, TUTTI_DNN_OPERATION_MATMUL_CDESC, c);
    attach(graph, made, TUTTI_DNN_OPERATION_MATMUL_DESC, kind);
    tutti__cuda_graph_operation(graph, made);
}

void tutti__cuda_graph_reduce(tutti_cuda_graph *graph, unsigned operator, tutti_dnn_descriptor x,
                              tutti_dnn_descriptor y)
{
    unsigned precision = TUTTI_DNN_DATA_FLOAT;
    tutti_dnn_descriptor kind = tutti__cuda_graph_open(graph, TUTTI_DNN_A_REDUCTION);
    tutti__cuda_graph_set(graph, kind, TUTTI_DNN_REDUCTION_OPERATOR,
                          TUTTI_DNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, &operator);
    tutti__cuda_graph_set(graph, kind, TUTTI_DNN_REDUCTION_COMP_TYPE, TUTTI_DNN_TYPE_DATA_TYPE, 1,
                          &precision);
    tutti__cuda_graph_close(graph, kind);
    tutti_dnn_descriptor made = tutti__cuda_graph_open(graph, TUTTI_DNN_A_OPERATION_REDUCTION);
    attach(graph, made, TUTTI_DNN_OPERATION_REDUCTION_XDESC, x);
    attach(graph, made, TUTTI_DNN_OPERATION_REDUCTION_YDESC, y);
    attach(graph, made, TUTTI_DNN_OPERATION_REDUCTION_DESC, kind);
    tutti__cuda_graph_operation(graph, made);
}

/* Whether an engine says one of the notes that are refused, or cannot be asked. */
static bool says(const tutti_cuda_graph *graph, tutti_dnn_descriptor config, unsigned refused)
{
    const tutti_dnn *dnn = graph->dnn;
    tutti_dnn_descriptor engine = NULL;
    unsigned notes[64];
    int64_t count = 0;
    bool found = true;
    if (dnn->cudnnBackendCreateDescriptor(TUTTI_DNN_A_ENGINE, &engine) != 0)
        return true;
    if (dnn->cudnnBackendGetAttribute(config, TUTTI_DNN_ENGINECFG_ENGINE,
                                      TUTTI_DNN_TYPE_BACKEND_DESCRIPTOR, 1, &count, &engine) == 0 &&
        dnn->cudnnBackendGetAttribute(engine, TUTTI_DNN_ENGINE_NUMERICAL_NOTE,
                                      TUTTI_DNN_TYPE_NUMERICAL_NOTE, 64, &count, notes) == 0) {
        found = false;
        for (int64_t i = 0; i < count; i++)
            found = found || (notes[i] < 32 && (refused >> notes[i] & 1));
    }
    (void)dnn->cudnnBackendDestroyDescriptor(engine);
    return found;
}

/* Plans one engine configuration; false, without a message, when it cannot be. */
static bool plan_one(tutti_cuda_graph *graph, tutti_dnn_descriptor config)
{
    const tutti_dnn *dnn = graph->dnn;
    tutti_dnn_descriptor plan = NULL;
    int64_t count = 0;
    if (dnn->cudnnBackendCreateDescriptor(TUTTI_DNN_A_EXECUTION_PLAN, &plan) != 0)
        return false;
    if (dnn->cudnnBackendSetAttribute(plan, TUTTI_DNN_EXECUTION_PLAN_HANDLE, TUTTI_DNN_TYPE_HANDLE,
                                      1, &graph->handle) != 0 ||
        dnn->cudnnBackendSetAttribute(plan, TUTTI_DNN_EXECUTION_PLAN_ENGINE_CONFIG,
                                      TUTTI_DNN_TYPE_BACKEND_DESCRIPTOR, 1, &config) != 0 ||
        dnn->cudnnBackendFinalize(plan) != 0 ||
        dnn->cudnnBackendGetAttribute(plan, TUTTI_DNN_EXECUTION_PLAN_WORKSPACE_SIZE,
                                      TUTTI_DNN_TYPE_INT64, 1, &count, &graph->workspace) != 0) {
        (void)dnn->cudnnBackendDestroyDescriptor(plan);
        return false;
    }
    graph->plan = plan;
    graph->all[graph->count++] = plan;
    return true;
}

enum { CONFIGS = 40 };

/* The engines of one heuristic, best first; the first that can be planned is taken. */
static tutti_status try_mode(tutti_cuda_graph *graph, tutti_dnn_descriptor operations,
                             unsigned mode, unsigned refused)
{
    tutti_dnn_descriptor configs[CONFIGS] = {NULL};
    int64_t count = 0;
    tutti_dnn_descriptor heuristic = tutti__cuda_graph_open(graph, TUTTI_DNN_A_ENGINEHEUR);
    attach(graph, heuristic, TUTTI_DNN_ENGINEHEUR_OPERATION_GRAPH, operations);
    tutti__cuda_graph_set(graph, heuristic, TUTTI_DNN_ENGINEHEUR_MODE, TUTTI_DNN_TYPE_HEUR_MODE, 1,
                          &mode);
    tutti__cuda_graph_close(graph, heuristic);
    for (int i = 0; i < CONFIGS; i++)
        configs[i] = tutti__cuda_graph_open(graph, TUTTI_DNN_A_ENGINECFG);
    if (graph->status != TUTTI_OK)
        return graph->status;
    if (!check(graph,
               graph->dnn->cudnnBackendGetAttribute(heuristic, TUTTI_DNN_ENGINEHEUR_RESULTS,
                                                    TUTTI_DNN_TYPE_BACKEND_DESCRIPTOR, CONFIGS,
                                                    &count, configs),
               "engines for a graph"))
        return graph->status;
    for (int64_t i = 0; i < count && i < CONFIGS && !graph->plan; i++)
        if ((refused && says(graph, configs[i], refused)) || !plan_one(graph, configs[i]))
            graph->refused++;
    return TUTTI_OK;
}

tutti_status tutti__cuda_graph_plan(tutti_cuda_graph *graph, unsigned refused)
{
    static const unsigned modes[] = {TUTTI_DNN_HEUR_A, TUTTI_DNN_HEUR_FALLBACK};
    tutti_dnn_descriptor operations = tutti__cuda_graph_open(graph, TUTTI_DNN_A_OPERATIONGRAPH);
    tutti__cuda_graph_set(graph, operations, TUTTI_DNN_OPERATIONGRAPH_OPS,
                          TUTTI_DNN_TYPE_BACKEND_DESCRIPTOR, graph->operation_count,
                          graph->operations);
    tutti__cuda_graph_set(graph, operations, TUTTI_DNN_OPERATIONGRAPH_HANDLE, TUTTI_DNN_TYPE_HANDLE,
                          1, &graph->handle);
    tutti__cuda_graph_close(graph, operations);
    for (size_t i = 0; i < TUTTI_COUNT(modes) && graph->status == TUTTI_OK && !graph->plan; i++) {
        (void)try_mode(graph, operations, modes[i], refused);
        if (i == 0 && graph->status != TUTTI_OK)
            graph->status = TUTTI_OK; /* no engine there; the other list may have one */
    }
    if (graph->status != TUTTI_OK)
        return tutti__error_restore(&graph->error);
    if (!graph->plan)
        return tutti_fail(TUTTI_UNSUPPORTED, "cuDNN has no engine for this graph (%d refused%s)",
                          graph->refused,
                          refused ? "; some for what they say of their arithmetic" : "");
    return TUTTI_OK;
}

tutti_status tutti__cuda_graph_run(const tutti_cuda_graph *graph, tutti_cu_stream stream, int count,
                                   const int64_t *ids, void *const *addresses,
                                   tutti_cu_pointer workspace)
{
    const tutti_dnn *dnn = graph->dnn;
    tutti_dnn_descriptor pack = NULL;
    void *work = (void *)(uintptr_t)workspace;
    TUTTI_TRY(tutti__cuda_dnn_check(dnn, dnn->cudnnSetStream(graph->handle, stream), "a stream"));
    TUTTI_TRY(tutti__cuda_dnn_check(
        dnn, dnn->cudnnBackendCreateDescriptor(TUTTI_DNN_A_VARIANT_PACK, &pack), "a call"));
    tutti_dnn_result result = dnn->cudnnBackendSetAttribute(pack, TUTTI_DNN_VARIANT_PACK_UNIQUE_IDS,
                                                            TUTTI_DNN_TYPE_INT64, count, ids);
    if (result == 0)
        result = dnn->cudnnBackendSetAttribute(pack, TUTTI_DNN_VARIANT_PACK_DATA_POINTERS,
                                               TUTTI_DNN_TYPE_VOID_PTR, count, addresses);
    if (result == 0)
        result = dnn->cudnnBackendSetAttribute(pack, TUTTI_DNN_VARIANT_PACK_WORKSPACE,
                                               TUTTI_DNN_TYPE_VOID_PTR, 1, &work);
    if (result == 0)
        result = dnn->cudnnBackendFinalize(pack);
    if (result == 0)
        result = dnn->cudnnBackendExecute(graph->handle, graph->plan, pack);
    tutti_status status = tutti__cuda_dnn_check(dnn, result, "a run");
    (void)dnn->cudnnBackendDestroyDescriptor(pack);
    return status;
}
