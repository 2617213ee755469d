/* shared.c: variables that every process of a pipeline has: what belongs to the job and to no
 * stage, such as sums of metrics, counters, the learning rate and the loss scale, so that each
 * process can look at them. Their updates run in every process, with values that travel there. */
#include "graph/attr.h"
#include "parallel/pipeline/inside.h"

enum { MOST_ELEMENTS = 1 << 16 };

static bool is_shared(const tutti_node *node)
{
    int64_t count = tutti_type_count(&node->types[0]);
    return tutti__is(node, "variable") && !tutti__int(node, "trainable") &&
           !tutti__str(node, "slot_of")[0] && tutti__pipeline_mark(node)->stage == 0 &&
           !tutti__pipeline_mark(node)->named && count >= 0 && count <= MOST_ELEMENTS;
}

typedef struct sharing {
    tutti_graph *graph;
    tutti_arena *arena;
    const char *device;
    tutti_node **copies; /* by id, of this device; NULL: none */
} sharing;

static tutti_edge input_of(const sharing *s, tutti_edge edge)
{
    tutti_node *copy = s->copies[edge.node->id];
    return copy ? (tutti_edge){copy, edge.index} : edge;
}

/* An update whose variables all have copies. */
static bool is_repeated(const sharing *s, const tutti_node *node)
{
    if (!(node->op->flags & TUTTI_OP_UPDATES) || node->input_count == 0)
        return false;
    for (int i = 0; i < node->input_count; i++)
        if (tutti__edge_type(node->inputs[i])->handle && !s->copies[node->inputs[i].node->id])
            return false;
    return true;
}

static tutti_status add_copy(sharing *s, const tutti_node *node)
{
    tutti_node *copy;
    tutti_pipeline_mark *mark = tutti__arena_take(s->arena, sizeof *mark);
    TUTTI_TRY(tutti__node_copy(s->graph, node, &copy));
    copy->inputs =
        tutti__arena_array(&s->graph->arena, (size_t)node->input_count + 1, sizeof *copy->inputs);
    copy->controls = tutti__arena_array(&s->graph->arena, (size_t)node->control_count + 1,
                                        sizeof *copy->controls);
    copy->device = tutti__arena_string(&s->graph->arena, s->device);
    if (!mark || !copy->inputs || !copy->controls || !copy->device)
        return tutti__spmd_no_memory();
    for (int i = 0; i < node->input_count; i++)
        copy->inputs[i] = input_of(s, node->inputs[i]);
    for (int i = 0; i < node->control_count; i++) {
        tutti_node *before = node->controls[i];
        copy->controls[i] = s->copies[before->id] ? s->copies[before->id] : before;
    }
    *mark = *tutti__pipeline_mark(node);
    copy->scratch = mark;
    copy->id = (uint32_t)s->graph->nodes.count;
    s->copies[node->id] = copy;
    bool updates = (node->op->flags & TUTTI_OP_UPDATES) != 0;
    return TUTTI_VEC_PUSH(&s->graph->nodes, copy) &&
                   (!updates || TUTTI_VEC_PUSH(&s->graph->targets, copy))
               ? TUTTI_OK
               : tutti__spmd_no_memory();
}

tutti_status tutti__pipeline_share(tutti_graph *graph, const tutti_pipeline *pipeline,
                                   tutti_arena *arena)
{
    size_t count = graph->nodes.count;
    for (int i = 1; i < pipeline->front_count; i++) {
        sharing s = {.graph = graph, .arena = arena, .device = pipeline->fronts[i]};
        s.copies = tutti__arena_array(arena, count * (size_t)pipeline->front_count + 1,
                                      sizeof(tutti_node *));
        if (!s.copies)
            return tutti__spmd_no_memory();
        for (size_t n = 0; n < count * (size_t)pipeline->front_count + 1; n++)
            s.copies[n] = NULL;
        for (size_t n = 0; n < count; n++) {
            const tutti_node *node = graph->nodes.data[n];
            if (is_shared(node) || is_repeated(&s, node))
                TUTTI_TRY(add_copy(&s, node));
        }
    }
    return TUTTI_OK;
}
