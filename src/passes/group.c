/* group.c: makes fused nodes; see group.h. */
#include "passes/group.h"

#include <stdlib.h>
#include <string.h>

#include "base/container.h"
#include "base/log.h"
#include "base/params.h"
#include "graph/attr.h"
#include "program/debug.h"
#include "program/program.h"

/* ---- users ---- */

static void count_or_add(tutti_uses *uses, uint32_t *at, tutti_node *before, tutti_node *user)
{
    if (at == NULL)
        uses->first[before->id + 1]++;
    else
        uses->users[at[before->id]++] = user;
}

/* Without `at` counts users, with it writes them. */
static void walk_uses(const tutti_graph *graph, tutti_uses *uses, uint32_t *at)
{
    for (size_t n = 0; n < graph->nodes.count; n++) {
        tutti_node *node = graph->nodes.data[n];
        for (int i = 0; i < node->input_count; i++)
            count_or_add(uses, at, node->inputs[i].node, node);
        for (int i = 0; i < node->control_count; i++)
            count_or_add(uses, at, node->controls[i], node);
    }
}

/* A name for what two nodes follow together. Names that differ may mean the same updates. */
static uint64_t both(uint64_t a, uint64_t b)
{
    if (a == b || b == 0)
        return a;
    if (a == 0)
        return b;
    uint64_t low = a < b ? a : b, high = a < b ? b : a;
    return tutti__hash_mix(low, high) | 1;
}

/* Who only keeps an order runs late too, but does not follow: another name. */
static uint64_t by_control(const tutti_node *node, const tutti_node *before,
                           const uint64_t *follows)
{
    uint64_t name = follows[before->id];
    return name != 0 && tutti__keeps_order(node, before) ? tutti__hash_mix(name, 1) | 1 : name;
}

/* Updates, and what comes late from other devices, have names of their own. */
static void find_followed(const tutti_graph *graph, uint64_t *ret_follows)
{
    for (size_t n = 0; n < graph->nodes.count; n++) {
        const tutti_node *node = graph->nodes.data[n];
        uint64_t follows = 0;
        for (int i = 0; i < node->input_count; i++)
            follows = both(follows, ret_follows[node->inputs[i].node->id]);
        for (int i = 0; i < node->control_count; i++)
            follows = both(follows, by_control(node, node->controls[i], ret_follows));
        ret_follows[n] = tutti__makes_after_update(node) ? tutti__hash_mix(0, n) | 1 : follows;
    }
}

/* Whether it matters which updates a node follows: to other devices, and for what it sees of a
 * variable or queue. */
static bool looks(const tutti_node *node)
{
    return tutti__is(node, "send") || (node->op->flags & TUTTI_OP_COLLECTIVE) ||
           ((node->op->flags & TUTTI_OP_TAKES_HANDLE) && !(node->op->flags & TUTTI_OP_UPDATES));
}

/* Whether one that looks waits for anything but its variable or queue. */
static bool is_watched(const tutti_graph *graph)
{
    for (size_t n = 0; n < graph->nodes.count; n++) {
        const tutti_node *node = graph->nodes.data[n];
        if (!looks(node))
            continue;
        for (int i = 0; i < node->input_count; i++)
            if (!tutti__edge_type(node->inputs[i])->handle)
                return true;
        if (node->control_count > 0)
            return true;
    }
    return false;
}

tutti_status tutti__uses_create(const tutti_graph *graph, tutti_uses *ret_uses)
{
    size_t count = graph->nodes.count;
    tutti_uses uses = {.first = calloc(count + 2, sizeof *uses.first),
                       .wanted = calloc(count + 1, sizeof *uses.wanted),
                       .follows = calloc(count + 1, sizeof *uses.follows),
                       .watched = is_watched(graph)};
    uint32_t *at = calloc(count + 2, sizeof *at);
    if (uses.first != NULL && uses.wanted != NULL && uses.follows != NULL && at != NULL) {
        walk_uses(graph, &uses, NULL);
        for (size_t n = 0; n < count; n++)
            uses.first[n + 1] += uses.first[n];
        memcpy(at, uses.first, (count + 1) * sizeof *at);
        uses.users = calloc((size_t)uses.first[count] + 1, sizeof(tutti_node *));
    }
    if (uses.users == NULL) {
        free(at);
        tutti__uses_free(&uses);
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for the users of %zu nodes", count);
    }
    walk_uses(graph, &uses, at);
    free(at);
    find_followed(graph, uses.follows);
    for (size_t i = 0; i < graph->results.count; i++)
        uses.wanted[graph->results.data[i].node->id] = true;
    for (size_t i = 0; i < graph->targets.count; i++)
        uses.wanted[graph->targets.data[i]->id] = true;
    *ret_uses = uses;
    return TUTTI_OK;
}

void tutti__uses_free(tutti_uses *uses)
{
    free(uses->first);
    free(uses->users);
    free(uses->wanted);
    free(uses->follows);
    *uses = (tutti_uses){0};
}

/* ---- what goes in and out ---- */

bool tutti__group_has(const tutti_node_group *group, const tutti_node *node)
{
    for (int i = 0; i < group->count; i++)
        if (group->nodes[i] == node)
            return true;
    return false;
}

static bool goes_inside(tutti_edge edge)
{
    tutti_tensor *constant = tutti__constant_of(edge);
    return constant != NULL && tutti_tensor_count(constant) == 1;
}

static int find_edge(int count, const tutti_edge *edges, tutti_edge edge)
{
    for (int i = 0; i < count; i++)
        if (edges[i].node == edge.node && edges[i].index == edge.index)
            return i;
    return -1;
}

int tutti__group_inputs(const tutti_node_group *group, int capacity, tutti_edge *ret_inputs)
{
    int count = 0;
    for (int n = 0; n < group->count; n++) {
        const tutti_node *node = group->nodes[n];
        for (int i = 0; i < node->input_count; i++) {
            tutti_edge edge = node->inputs[i];
            if (tutti__group_has(group, edge.node) || goes_inside(edge) ||
                find_edge(count < capacity ? count : capacity, ret_inputs, edge) >= 0)
                continue;
            if (count < capacity)
                ret_inputs[count] = edge;
            count++;
        }
    }
    return count;
}

static bool takes(const tutti_node *user, tutti_edge edge)
{
    for (int i = 0; i < user->input_count; i++)
        if (user->inputs[i].node == edge.node && user->inputs[i].index == edge.index)
            return true;
    return false;
}

/* A wanted node's outputs all count as used: results are not told apart from targets. */
static bool used_outside(const tutti_node_group *group, const tutti_uses *uses, tutti_edge edge)
{
    uint32_t id = edge.node->id;
    if (uses->wanted[id])
        return true;
    for (uint32_t u = uses->first[id]; u < uses->first[id + 1]; u++)
        if (!tutti__group_has(group, uses->users[u]) && takes(uses->users[u], edge))
            return true;
    return false;
}

int tutti__group_outputs(const tutti_node_group *group, const tutti_uses *uses, int capacity,
                         tutti_edge *ret_outputs)
{
    int count = 0;
    for (int n = 0; n < group->count; n++)
        for (int i = 0; i < group->nodes[n]->output_count; i++) {
            tutti_edge edge = {group->nodes[n], (uint32_t)i};
            if (!used_outside(group, uses, edge))
                continue;
            if (count < capacity)
                ret_outputs[count] = edge;
            count++;
        }
    return count;
}

/* Whether a node has users outside the group that do not follow what `all` names. */
static bool has_users_that_follow_less(const tutti_node_group *group, const tutti_uses *uses,
                                       const tutti_node *node, uint64_t all)
{
    for (uint32_t u = uses->first[node->id]; u < uses->first[node->id + 1]; u++)
        if (uses->follows[uses->users[u]->id] != all && !tutti__group_has(group, uses->users[u]))
            return true;
    return false;
}

bool tutti__group_straddles(const tutti_node_group *group, const tutti_uses *uses)
{
    uint64_t all = 0;
    for (int i = 0; i < group->count; i++)
        all = both(all, uses->follows[group->nodes[i]->id]);
    for (int i = 0; uses->watched && i < group->count; i++)
        if (uses->follows[group->nodes[i]->id] != all &&
            has_users_that_follow_less(group, uses, group->nodes[i], all))
            return true;
    return false;
}

/* ---- the body ---- */

typedef struct body_builder {
    const tutti_node_group *group;
    tutti_graph *body;
    int input_count;
    const tutti_edge *inputs;
    tutti_node *parameters[TUTTI_GROUP_INPUTS];
    tutti_node *copies[TUTTI_GROUP_NODES];
    int constant_count; /* constants that are inside already */
    const tutti_node *constants[TUTTI_GROUP_NODES];
    tutti_node *constant_copies[TUTTI_GROUP_NODES];
} body_builder;

static tutti_status no_memory(void)
{
    return tutti_fail(TUTTI_NO_MEMORY, "no memory for a fused body");
}

/* A node without its edges. */
static tutti_status copy_node(tutti_graph *body, const tutti_node *node, tutti_node **ret)
{
    TUTTI_TRY(tutti__node_copy(body, node, ret));
    (*ret)->inputs =
        tutti__arena_array(&body->arena, (size_t)node->input_count + 1, sizeof *node->inputs);
    (*ret)->controls = NULL;
    (*ret)->control_count = 0;
    (*ret)->colocate = NULL;
    return (*ret)->inputs != NULL ? TUTTI_OK : no_memory();
}

static tutti_status push_node(tutti_graph *body, tutti_node *node)
{
    node->id = (uint32_t)body->nodes.count;
    return TUTTI_VEC_PUSH(&body->nodes, node) ? TUTTI_OK : no_memory();
}

static tutti_status add_parameters(body_builder *b)
{
    const tutti_op *op = tutti_op_find("parameter");
    for (int i = 0; i < b->input_count; i++) {
        const tutti_type *type = tutti__edge_type(b->inputs[i]);
        tutti_attr attrs[] = {TUTTI_INT("index", i), TUTTI_INT("dtype", type->dtype),
                              TUTTI_INTS("dims", type->rank, type->dims)};
        TUTTI_TRY(tutti__node_add(b->body, op, NULL, 0, NULL, 3, attrs, &b->parameters[i]));
    }
    return TUTTI_OK;
}

/* A constant goes into the body once, however many nodes use it. */
static tutti_status inner_constant(body_builder *b, const tutti_node *constant, tutti_node **ret)
{
    for (int i = 0; i < b->constant_count; i++)
        if (b->constants[i] == constant) {
            *ret = b->constant_copies[i];
            return TUTTI_OK;
        }
    TUTTI_TRY(copy_node(b->body, constant, ret));
    if (b->constant_count < TUTTI_GROUP_NODES) {
        b->constants[b->constant_count] = constant;
        b->constant_copies[b->constant_count++] = *ret;
    }
    return push_node(b->body, *ret);
}

/* What stands for an edge of the graph inside the body. */
static tutti_status inner_edge(body_builder *b, tutti_edge edge, tutti_edge *ret)
{
    for (int i = 0; i < b->group->count; i++)
        if (b->group->nodes[i] == edge.node) {
            *ret = (tutti_edge){b->copies[i], edge.index};
            return TUTTI_OK;
        }
    int input = find_edge(b->input_count, b->inputs, edge);
    ret->index = 0;
    if (input >= 0) {
        ret->node = b->parameters[input];
        return TUTTI_OK;
    }
    return inner_constant(b, edge.node, &ret->node);
}

static tutti_status fill_body(body_builder *b, int output_count, const tutti_edge *outputs)
{
    tutti_edge edge;
    TUTTI_TRY(add_parameters(b));
    for (int n = 0; n < b->group->count; n++) {
        const tutti_node *node = b->group->nodes[n];
        TUTTI_TRY(copy_node(b->body, node, &b->copies[n]));
        for (int i = 0; i < node->input_count; i++)
            TUTTI_TRY(inner_edge(b, node->inputs[i], &b->copies[n]->inputs[i]));
        TUTTI_TRY(push_node(b->body, b->copies[n]));
    }
    for (int i = 0; i < output_count; i++) {
        TUTTI_TRY(inner_edge(b, outputs[i], &edge));
        TUTTI_TRY(tutti__graph_result(b->body, edge));
    }
    return TUTTI_OK;
}

/* ---- the fused node ---- */

typedef struct fusion {
    tutti_graph *body;
    int input_count, output_count;
    tutti_edge inputs[TUTTI_GROUP_INPUTS], outputs[TUTTI_GROUP_OUTPUTS];
    tutti_attr attrs[2];
} fusion;

/* The operator of the fused node: one that may fail, if a part may. */
static const char *operator_for(const tutti_node_group *group)
{
    for (int i = 0; i < group->count; i++)
        if (group->nodes[i]->op->flags & TUTTI_OP_FALLIBLE)
            return "fused_checked";
    return "fused";
}

static const tutti_kernel *ask(const tutti_pass_context *context, const char *op, const char *name,
                               fusion *f)
{
    tutti_type inputs[TUTTI_GROUP_INPUTS], outputs[TUTTI_GROUP_OUTPUTS];
    for (int i = 0; i < f->input_count; i++)
        inputs[i] = *tutti__edge_type(f->inputs[i]);
    for (int i = 0; i < f->output_count; i++)
        outputs[i] = *tutti__edge_type(f->outputs[i]);
    tutti_kernel_query query = {.node = {.op = tutti_op_find(op),
                                         .name = name,
                                         .input_count = f->input_count,
                                         .output_count = f->output_count,
                                         .inputs = inputs,
                                         .attrs = f->attrs,
                                         .attr_count = 2,
                                         .outputs = outputs},
                                .threads = tutti__pool_most(context->device->pool),
                                .deterministic = context->deterministic};
    return tutti__device_kernel(context->device, &query);
}

/* "mul+add+relu"; long groups name their first operators and how many more there are. */
static char *group_describe(tutti_arena *arena, const tutti_node_group *group)
{
    enum { MOST = 6 };
    char *text = tutti__arena_string(arena, group->nodes[0]->op->name);
    for (int i = 1; text != NULL && i < group->count && i < MOST; i++)
        text = tutti__arena_format(arena, "%s+%s", text, group->nodes[i]->op->name);
    if (text != NULL && group->count > MOST)
        text = tutti__arena_format(arena, "%s+%d", text, group->count - MOST);
    return text;
}

/* A group is of the gradients only when all of it is. It is computed again with the last part that
 * is, or else it stands where its last part stood. */
static void mark(tutti_node *fused, const tutti_node_group *group)
{
    const tutti_node *forward = NULL;
    for (int i = 0; i < group->count; i++)
        if (!group->nodes[i]->backward &&
            (forward == NULL || !forward->remat || group->nodes[i]->remat))
            forward = group->nodes[i];
    if (forward != NULL)
        tutti__node_mark_like(fused, forward);
}

static tutti_status replace(tutti_rewrite *rewrite, const tutti_node_group *group, fusion *f,
                            const char *name)
{
    tutti_edge fused;
    TUTTI_TRY(tutti__rewrite_add(rewrite, group->nodes[group->count - 1], operator_for(group),
                                 f->input_count, f->inputs, 2, f->attrs, &fused));
    mark(fused.node, group);
    if (rewrite->graph->trace)
        fused.node->name = name;
    int changes = rewrite->changes;
    for (int i = 0; i < f->output_count; i++)
        TUTTI_TRY(tutti__rewrite_replace(rewrite, f->outputs[i].node, f->outputs[i].index,
                                         (tutti_edge){fused.node, (uint32_t)i}));
    rewrite->changes = changes + 1; /* one fusion */
    return TUTTI_OK;
}

static tutti_status fuse(tutti_rewrite *rewrite, const tutti_node_group *group, fusion *f,
                         const char *pattern, bool *ret_fused)
{
    body_builder b = {
        .group = group, .body = f->body, .input_count = f->input_count, .inputs = f->inputs};
    char *name = group_describe(&rewrite->graph->arena, group);
    TUTTI_TRY(name != NULL ? fill_body(&b, f->output_count, f->outputs) : no_memory());
    f->attrs[0] = TUTTI_GRAPH_ATTR("body", f->body);
    f->attrs[1] = TUTTI_STR("pattern", pattern);
    f->attrs[1].count = (int32_t)strlen(pattern);
    const tutti_kernel *kernel = ask(rewrite->context, operator_for(group), name, f);
    if (kernel == NULL)
        return TUTTI_OK;
    TUTTI_TRY(replace(rewrite, group, f, name));
    tutti__log(TUTTI_LOG_DEBUG, "fused %s as %s: %d inputs, %d outputs, kernel %s", name, pattern,
               f->input_count, f->output_count, kernel->name);
    *ret_fused = true;
    return TUTTI_OK;
}

tutti_status tutti__group_fuse(tutti_rewrite *rewrite, const tutti_uses *uses,
                               const tutti_node_group *group, const char *pattern, bool *ret_fused)
{
    fusion f = {0};
    bool fused = false;
    f.input_count = tutti__group_inputs(group, TUTTI_GROUP_INPUTS, f.inputs);
    f.output_count = tutti__group_outputs(group, uses, TUTTI_GROUP_OUTPUTS, f.outputs);
    *ret_fused = false;
    if (f.input_count > TUTTI_GROUP_INPUTS || f.output_count > TUTTI_GROUP_OUTPUTS ||
        tutti__group_straddles(group, uses))
        return TUTTI_OK;
    TUTTI_TRY(tutti_graph_create(&f.body));
    f.body->trace = true; /* names are copies */
    tutti_status status = fuse(rewrite, group, &f, pattern, &fused);
    tutti_graph_destroy(f.body);
    if (status == TUTTI_OK)
        *ret_fused = fused;
    return status;
}

static const tutti_param fuse_param =
    TUTTI_PARAM("FUSE", "1", "fuse operators into one kernel; 0 keeps them apart");

tutti_status tutti__group_check_setting(void)
{
    bool fuses;
    return tutti__param_switch(&fuse_param, &fuses);
}

bool tutti__group_device_fuses(const tutti_pass_context *context)
{
    return tutti__param_flag(&fuse_param) && !tutti__debug_nan() && context != NULL &&
           context->device != NULL && tutti__device_fuses(context->device);
}
