/* target.c: a target that compiles whole partitions and owns its memory, as a compiler for TPUs
 * does: no kernels, no arena, no updates in place. For tests, and as an oracle: it computes with
 * reference kernels only, in the order of the graph. */
#include <stdlib.h>
#include <string.h>

#include "device/far/memory.h"
#include "device/whole/whole.h"

/* ---- a run ---- */

static void drop_values(tutti_whole_run *r, bool late)
{
    const tutti_whole_executable *e = r->executable;
    for (size_t n = 0; n < e->graph->nodes.count; n++) {
        const tutti_node *node = e->graph->nodes.data[n];
        if (e->late[n] != late)
            continue;
        if (r->values[n])
            tutti__tensors_drop(node->output_count, r->values[n]);
        if (r->updated[n])
            tutti__tensors_drop(node->input_count, r->updated[n]);
        free(r->values[n]);
        free(r->updated[n]);
        r->values[n] = r->updated[n] = NULL;
    }
    if (late)
        tutti__tensors_drop(e->variable_count, r->newest);
}

static void end_run(tutti_whole_run *r)
{
    if (r->values && r->updated && r->newest) {
        drop_values(r, false);
        drop_values(r, true);
    }
    if (r->before)
        tutti__tensors_drop(r->executable->variable_count, r->before);
    free(r->values);
    free(r->updated);
    free(r->newest);
    free(r->before);
}

/* The variables' values, all of one step, copied out of the device. */
static tutti_status take_values(tutti_whole_run *r)
{
    const tutti_whole_executable *e = r->executable;
    for (int v = 0; v < e->variable_count; v++) {
        const tutti_state_variable *variable = e->variables[v].piece->variable;
        TUTTI_TRY(tutti__variable_intact(variable));
    }
    int64_t ahead = 0;
    tutti__state_read_begin(r->run->state);
    for (int v = 0; v < e->variable_count; v++) {
        r->before[v] = tutti__piece_take(e->variables[v].piece);
        ahead += tutti__ticket_ahead(&r->run->ticket, e->variables[v].piece->variable);
    }
    tutti__state_read_end(r->run->state);
    tutti__run_taken(r->run);
    for (int v = 0; v < e->variable_count; v++) {
        if (e->variables[v].piece->variable == r->run->ticket.counter)
            TUTTI_TRY(tutti__ticket_apply(e->variables[v].piece, ahead, &r->before[v]));
        tutti_tensor *device = r->before[v];
        if (!device && e->variables[v].needed)
            return tutti__variable_missing(e->graph, e->variables[v].piece->variable->name);
        if (!device)
            continue;
        r->before[v] = NULL;
        tutti_status status = tutti__tensor_to_host(device, &r->before[v]);
        tutti_tensor_release(device);
        TUTTI_TRY(status);
    }
    return TUTTI_OK;
}

static tutti_status begin_run(tutti_whole_run *r)
{
    const tutti_whole_executable *e = r->executable;
    r->values = calloc(e->graph->nodes.count + 1, sizeof *r->values);
    r->updated = calloc(e->graph->nodes.count + 1, sizeof *r->updated);
    r->newest = calloc((size_t)e->variable_count + 1, sizeof *r->newest);
    r->before = calloc((size_t)e->variable_count + 1, sizeof *r->before);
    if (!r->values || !r->updated || !r->newest || !r->before)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a run");
    return take_values(r);
}

/* Results of their own memory, whatever they share inside. */
static tutti_status copy_results(const tutti_whole_run *r, bool late, tutti_tensor **results)
{
    const tutti_graph *graph = r->executable->graph;
    for (size_t i = 0; i < graph->results.count; i++) {
        tutti_edge edge = graph->results.data[i];
        if (r->executable->late[edge.node->id] != late)
            continue;
        if (!r->values[edge.node->id][edge.index])
            return tutti_fail(TUTTI_INVALID,
                              "'%s' has no value to fetch; name it as a target instead",
                              edge.node->name);
        tutti_view view = tutti__tensor_view_of(r->values[edge.node->id][edge.index]);
        TUTTI_TRY(tutti__tensor_from_view(&view, &results[i]));
    }
    return TUTTI_OK;
}

static tutti_status before_commit(tutti_whole_run *r, tutti_tensor **results)
{
    TUTTI_TRY(begin_run(r));
    TUTTI_TRY(tutti__whole_evaluate(r, false));
    TUTTI_TRY(copy_results(r, false, results));
    if (!r->executable->shadows)
        return TUTTI_OK;
    TUTTI_TRY(tutti__whole_evaluate(r, true));
    r->late_done = r->executable->meets_late;
    if (!r->late_done)
        drop_values(r, true);
    return TUTTI_OK;
}

/* New buffers with the new values, by variable; NULL where nothing was updated. */
static tutti_status make_buffers(const tutti_whole_run *r, tutti_tensor **buffers)
{
    const tutti_memory *memory = r->executable->device->memory;
    for (int v = 0; v < r->executable->variable_count; v++) {
        if (!r->newest[v])
            continue;
        const tutti_type *type = &r->executable->variables[v].piece->type;
        TUTTI_TRY(tutti__tensor_in(memory, type, &buffers[v]));
        TUTTI_TRY(memory->copy_in(memory->self, tutti_tensor_data(buffers[v]),
                                  tutti_tensor_data(r->newest[v]),
                                  (size_t)tutti_type_count(type) * tutti_dtype_size(type->dtype)));
    }
    return TUTTI_OK;
}

static tutti_status commit(tutti_whole_run *r, tutti_tensor **results)
{
    const tutti_whole_executable *e = r->executable;
    tutti_tensor **buffers = calloc((size_t)e->variable_count + 1, sizeof *buffers);
    tutti_status status =
        buffers ? TUTTI_OK : tutti_fail(TUTTI_NO_MEMORY, "no memory for a commit");
    r->committing = true;
    if (status == TUTTI_OK && !r->late_done)
        status = tutti__whole_evaluate(r, true);
    if (status == TUTTI_OK)
        status = copy_results(r, true, results);
    if (status == TUTTI_OK)
        status = make_buffers(r, buffers);
    for (int v = 0; status == TUTTI_OK && v < e->variable_count; v++)
        if (buffers[v]) {
            tutti__piece_replace(r->run->state, e->variables[v].piece, buffers[v]);
            buffers[v] = NULL;
        }
    if (buffers)
        tutti__tensors_drop(e->variable_count, buffers);
    free(buffers);
    return status;
}

static tutti_status whole_enqueue(tutti_executable *executable, tutti_run *run,
                                  tutti_tensor *const *inputs, tutti_tensor **ret_results)
{
    const tutti_whole_executable *e = (const tutti_whole_executable *)executable;
    int count = (int)e->graph->results.count;
    tutti_whole_run r = {.executable = e, .run = run, .inputs = inputs};
    tutti_tensor **results = calloc((size_t)count + 1, sizeof *results);
    tutti_status status =
        results ? before_commit(&r, results) : tutti_fail(TUTTI_NO_MEMORY, "no memory for a run");
    status = run->commit_begin(run, status);
    if (status == TUTTI_OK) {
        status = commit(&r, results);
        run->commit_end(run);
    }
    if (status == TUTTI_OK)
        memcpy(ret_results, results, (size_t)count * sizeof *results);
    else if (results)
        tutti__tensors_drop(count, results);
    end_run(&r);
    free(results);
    return status;
}

/* ---- executables ---- */

static void whole_destroy(tutti_executable *executable)
{
    tutti_whole_executable *e = (tutti_whole_executable *)executable;
    tutti_graph_destroy(e->graph);
    tutti__arena_free(&e->arena);
    free(e);
}

static size_t whole_memory(const tutti_executable *executable)
{
    return ((const tutti_whole_executable *)executable)->most_bytes;
}

static void whole_print(const tutti_executable *executable, tutti_text *text)
{
    const tutti_whole_executable *e = (const tutti_whole_executable *)executable;
    char *graph;
    tutti__text_add(text, "whole partition on %s: %zu nodes, hash %016llx\n", e->device->name,
                    e->graph->nodes.count,
                    (unsigned long long)tutti__hash_string(tutti__graph_hash(e->graph), "whole"));
    if (tutti_graph_print(e->graph, &graph) != TUTTI_OK)
        return;
    tutti__text_add(text, "%s", graph);
    free(graph);
}

static const tutti_executable_table whole_table = {.enqueue = whole_enqueue,
                                                   .destroy = whole_destroy,
                                                   .memory = whole_memory,
                                                   .print = whole_print};

static tutti_status whole_compile(tutti_device *device, const tutti_partition *partition,
                                  tutti_executable **ret)
{
    tutti_whole_executable *e = calloc(1, sizeof *e);
    if (!e)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory to compile a partition");
    e->executable.table = &whole_table;
    e->device = device;
    tutti_status status = tutti__whole_analyse(e, partition);
    if (status != TUTTI_OK) {
        whole_destroy(&e->executable);
        return status;
    }
    e->executable.shadows = e->shadows;
    *ret = &e->executable;
    return TUTTI_OK;
}

/* ---- devices ---- */

static int whole_count(void)
{
    return -1;
}

static tutti_status whole_open(tutti_device *device)
{
    tutti_far_memory *memory;
    TUTTI_TRY(tutti__far_memory_create(device->name, NULL, &memory));
    device->memory = &memory->memory;
    device->self = memory;
    return TUTTI_OK;
}

static void whole_close(tutti_device *device)
{
    tutti__far_memory_destroy(device->self);
}

const tutti_target tutti_target_whole = {
    .name = "whole",
    .doc = "for tests: compiles whole partitions, owns its memory, computes with reference kernels",
    .kernels = NULL,
    .streams = 1,
    .alignment = 1,
    .count = whole_count,
    .open = whole_open,
    .close = whole_close,
    .supports = tutti__whole_supports,
    .compile = whole_compile,
};
