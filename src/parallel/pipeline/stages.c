/* stages.c: the stage, device and kind of work of every node of the micro-batches' graph.
 *
 * Nodes know their stage since they were built (tutti_stage_push): forwards that of their scope or
 * the last one of what they are made from, gradients that of what they belong to. Here the rest is
 * settled: what reads or updates a variable stands with it, slots with their variable, and what is
 * made of weights alone with these. Where the user has named a device, that counts, and not the
 * stage's. */
#include <string.h>

#include "parallel/pipeline/inside.h"

static bool is_variable(const tutti_node *node)
{
    return (node->op->flags & TUTTI_OP_HANDLE) != 0;
}

static bool takes_handle(const tutti_node *node)
{
    return (node->op->flags & TUTTI_OP_TAKES_HANDLE) && node->input_count > 0;
}

/* Slots stand with their variable, also where that comes behind them in the graph. */
static tutti_status find_slots(const tutti_graph *graph)
{
    tutti_map named = {0};
    tutti_status status = TUTTI_OK;
    for (size_t n = 0; status == TUTTI_OK && n < graph->nodes.count; n++)
        if (tutti__is(graph->nodes.data[n], "variable"))
            status = tutti__map_set(&named, tutti__state_name(graph->nodes.data[n]),
                                    graph->nodes.data[n]);
    for (size_t n = 0; status == TUTTI_OK && n < graph->nodes.count; n++) {
        tutti_node *node = graph->nodes.data[n];
        const char *of = tutti__is(node, "variable") ? tutti__str(node, "slot_of") : "";
        const tutti_node *variable = of[0] ? tutti__map_get(&named, of) : NULL;
        if (variable)
            node->stage = variable->stage;
        if (variable && !node->device[0])
            node->device = variable->device;
    }
    tutti__map_free(&named);
    return status;
}

/* Made of weights, constants and numbers of the host alone. */
static bool is_of_weights(const tutti_node *node, const bool *of_weights)
{
    if (node->backward || tutti__is(node, "parameter") || node->input_count == 0)
        return false;
    for (int i = 0; i < node->input_count; i++) {
        const tutti_node *from = node->inputs[i].node;
        bool number = tutti__is(from, "constant") || tutti__is(from, "fill");
        if (!number && !of_weights[from->id] && !tutti__is(from, "read"))
            return false;
    }
    return true;
}

static void settle(tutti_node *node, bool *of_weights)
{
    tutti_pipeline_mark *mark = tutti__pipeline_mark(node);
    of_weights[node->id] = is_of_weights(node, of_weights);
    mark->stage = node->stage;
    if (takes_handle(node) && is_variable(node->inputs[0].node))
        mark->stage = node->inputs[0].node->stage;
    for (int i = 0; of_weights[node->id] && i < node->input_count; i++) {
        const tutti_node *from = node->inputs[i].node;
        int stage = tutti__pipeline_mark(from)->stage;
        bool weight = of_weights[from->id] || tutti__is(from, "read");
        mark->stage = weight && stage > mark->stage ? stage : mark->stage;
    }
}

static tutti_status refuse_stage(const tutti_node *node, int stage, int stages)
{
    char place[TUTTI_PLACE_TEXT];
    return tutti_fail(TUTTI_INVALID,
                      "%s '%s'%s is in stage %d, and the pipeline has stages 0 to %d; take more "
                      "devices or more stages to a device, or mark fewer stages",
                      node->op->name, node->name, tutti__node_place(node, place), stage,
                      stages - 1);
}

/* F, B or W; later than what it is made from within the micro-batch. */
static int kind_of(const tutti_node *node, const tutti_pipeline *pipeline)
{
    const tutti_pipeline_mark *mark = tutti__pipeline_mark(node);
    int kind = node->backward ? TUTTI_BACKWARD : TUTTI_FORWARD;
    for (int i = 0; i < node->input_count; i++) {
        const tutti_pipeline_mark *from = tutti__pipeline_mark(node->inputs[i].node);
        bool same = from->micro == mark->micro && from->stage == mark->stage;
        if (from->micro >= 0 && same && from->kind > kind)
            kind = from->kind;
    }
    return kind == TUTTI_BACKWARD && pipeline->kind->weights && !mark->leaves ? TUTTI_WEIGHT : kind;
}

/* Whether a gradient of an earlier stage depends on what a node gives. */
static void find_leaving(const tutti_graph *graph)
{
    for (size_t n = graph->nodes.count; n-- > 0;) {
        const tutti_node *node = graph->nodes.data[n];
        const tutti_pipeline_mark *mark = tutti__pipeline_mark(node);
        for (int i = 0; mark->micro >= 0 && i < node->input_count; i++) {
            tutti_pipeline_mark *from = tutti__pipeline_mark(node->inputs[i].node);
            if (from->micro == mark->micro && node->inputs[i].node->backward)
                from->leaves = from->leaves || mark->leaves || mark->stage < from->stage;
        }
    }
}

/* Whether a device is the one that a name means: fields that the name leaves out are any. */
static bool is_meant(const tutti_device_name *wish, const char *device)
{
    tutti_device_name name;
    return tutti_device_parse(device, &name) == TUTTI_OK &&
           (!wish->job[0] || !name.job[0] || strcmp(wish->job, name.job) == 0) &&
           (wish->task < 0 || name.task < 0 || wish->task == name.task) &&
           (!wish->kind[0] || strcmp(wish->kind, name.kind) == 0) &&
           (wish->index < 0 || wish->index == (name.index < 0 ? 0 : name.index));
}

static tutti_status refuse_device(const tutti_node *node, const tutti_pipeline *pipeline)
{
    char place[TUTTI_PLACE_TEXT];
    tutti_text all = {0};
    for (int i = 0; i < pipeline->device_count; i++)
        tutti__text_add(&all, "%s%s", i > 0 ? ", " : "", pipeline->names[i]);
    tutti_status status =
        tutti_fail(TUTTI_INVALID, "%s '%s'%s is to stand on %s, and the job has the devices %s",
                   node->op->name, node->name, tutti__node_place(node, place), node->device,
                   all.data ? all.data : "");
    tutti__text_free(&all);
    return status;
}

/* What is in no stage and has no device of its own stands where what it is made from was put. */
static void follow_inputs(tutti_node *node)
{
    for (int i = 0; tutti__pipeline_mark(node)->stage == 0 && i < node->input_count; i++) {
        const tutti_node *from = node->inputs[i].node;
        if (!tutti__pipeline_mark(from)->named || takes_handle(from))
            continue;
        node->device = from->device;
        tutti__pipeline_mark(node)->named = true;
    }
}

/* A variable's device for what takes it, else that which the user named, else the stage's. */
static tutti_status find_device(tutti_node *node, const tutti_pipeline *pipeline)
{
    const tutti_pipeline_mark *mark = tutti__pipeline_mark(node);
    tutti_device_name wish;
    if (takes_handle(node) && is_variable(node->inputs[0].node)) {
        node->device = node->inputs[0].node->device;
        return TUTTI_OK;
    }
    const char *named = node->device;
    node->device = pipeline->devices[mark->stage % pipeline->device_count];
    if (!named[0]) {
        follow_inputs(node);
        return TUTTI_OK;
    }
    tutti__pipeline_mark(node)->named = true;
    TUTTI_TRY(tutti_device_parse(named, &wish));
    for (int i = 0; i < pipeline->device_count; i++)
        if (is_meant(&wish, pipeline->names[i])) {
            node->device = pipeline->devices[i];
            return TUTTI_OK;
        }
    node->device = named;
    return refuse_device(node, pipeline);
}

/* In a job that trains every stage has something to do. */
static tutti_status check_stages(const tutti_graph *graph, int stages, bool named,
                                 tutti_arena *scratch)
{
    bool *used = tutti__arena_array(scratch, (size_t)stages, sizeof *used);
    bool trains = false, cut = false; /* one row is not */
    if (!used)
        return tutti__spmd_no_memory();
    memset(used, 0, (size_t)stages * sizeof *used);
    for (size_t n = 0; n < graph->nodes.count; n++) {
        const tutti_node *node = graph->nodes.data[n];
        trains = trains || node->backward;
        cut = cut || tutti__pipeline_mark(node)->micro >= 0;
        if (!node->backward && tutti__pipeline_mark(node)->micro >= 0)
            used[tutti__pipeline_mark(node)->stage] = true;
    }
    for (int s = 0; trains && cut && !named && s < stages; s++)
        if (!used[s])
            return tutti_fail(TUTTI_INVALID,
                              "stage %d of %d has nothing to do: mark layers for it (.stage, "
                              "TUTTI_WITH_STAGE), or take fewer stages",
                              s, stages);
    return TUTTI_OK;
}

tutti_status tutti__pipeline_place(tutti_graph *graph, const tutti_pipeline *pipeline)
{
    int stages = pipeline->device_count * pipeline->chunks;
    tutti_arena scratch = {0};
    bool named = false; /* some node's device, by the user */
    bool *of_weights = tutti__arena_array(&scratch, graph->nodes.count + 1, sizeof *of_weights);
    tutti_status status = of_weights ? find_slots(graph) : tutti__spmd_no_memory();
    for (size_t n = 0; status == TUTTI_OK && n < graph->nodes.count; n++) {
        tutti_node *node = graph->nodes.data[n];
        settle(node, of_weights);
        int stage = tutti__pipeline_mark(node)->stage;
        if (stage >= stages)
            status = refuse_stage(node, stage, stages);
        named = named || node->device[0];
        if (status == TUTTI_OK && !tutti__is(node, "parameter"))
            status = find_device(node, pipeline);
        if (status == TUTTI_OK &&
            !(node->device = tutti__arena_string(&graph->arena, node->device)))
            status = tutti__spmd_no_memory();
    }
    if (status == TUTTI_OK)
        status = check_stages(graph, stages, named, &scratch);
    tutti__arena_free(&scratch);
    TUTTI_TRY(status);
    find_leaving(graph);
    for (size_t n = 0; n < graph->nodes.count; n++)
        tutti__pipeline_mark(graph->nodes.data[n])->kind = kind_of(graph->nodes.data[n], pipeline);
    return TUTTI_OK;
}
