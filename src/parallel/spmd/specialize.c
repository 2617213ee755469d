/* specialize.c: the text of all ranks for each rank of this process.
 *
 * What `axis_index` is becomes a number, and with it all that follows from it: sizes among
 * attributes, where a block begins, the place of random numbers among all. What is the same for all
 * replicas of the process (feeds, queues, under central storage the variables) is made once. What a
 * rank does not need is not there, but for collectives: all ranks come to all of them, in the order
 * of the text. */
#include <stdlib.h>
#include <string.h>

#include "graph/attr.h"
#include "parallel/spmd/rewrite.h"

tutti_spmd_rank tutti__spmd_rank(const tutti_spmd *spmd, int replica)
{
    tutti_spmd_rank rank = {.spmd = spmd, .replica = replica};
    for (int a = 0; a < spmd->layout->count; a++)
        rank.rank[a] = tutti__layout_rank(spmd->layout, a, replica);
    tutti__spmd_rows(spmd, spmd->batch, replica, &rank.first, &rank.rows);
    return rank;
}

/* ---- blocks ---- */

void tutti__spmd_block(const tutti_spmd *spmd, int axes, int rank, int64_t *begin, int64_t *size)
{
    int64_t n = *size, ranks = spmd->layout->axes[axes].size, first, rows;
    if (axes == spmd->layout->batch && spmd->batch > 0 && n % spmd->batch == 0) {
        tutti__spmd_rank_rows(spmd, spmd->batch, rank, &first, &rows);
        *begin += n / spmd->batch * first;
        *size = n / spmd->batch * rows;
        return;
    }
    /* floor(i n / N) without a product that is too large. */
    int64_t each = n / ranks, rest = n % ranks;
    first = each * rank + rest * rank / ranks;
    *begin += first;
    *size = each * (rank + 1) + rest * (rank + 1) / ranks - first;
}

void tutti__spmd_box(const tutti_spmd_rank *rank, const tutti_partition_spec *spec,
                     const tutti_type *type, int64_t *ret_begin, int64_t *ret_size)
{
    for (int d = 0; d < type->rank; d++) {
        ret_begin[d] = 0;
        ret_size[d] = type->dims[d];
        for (int a = 0; a < rank->spmd->layout->count; a++)
            if (spec->along[a].kind == TUTTI_SPLIT && spec->along[a].dimension == d)
                tutti__spmd_block(rank->spmd, a, rank->rank[a], &ret_begin[d], &ret_size[d]);
    }
}

/* ---- what a rank needs ---- */

static const tutti_claim *claim_of(const tutti_node *text)
{
    return text->scratch;
}

bool tutti__spmd_is_of_process(const tutti_spmd *spmd, const tutti_node *text)
{
    const tutti_claim *claim = claim_of(text);
    bool variable = (text->op->flags & (TUTTI_OP_HANDLE | TUTTI_OP_TAKES_HANDLE)) != 0;
    return tutti__is(text, "parameter") || tutti__is(text, "need_rows") ||
           tutti__is(text, "dequeue_own") ||
           (claim && claim->copy && claim->rule == TUTTI_REWRITE_QUEUE) ||
           (spmd->central && variable);
}

/* Of what the first rank only has; -1: of anything else. */
static int rank_of(const tutti_spmd_rank *rank, const tutti_node *node)
{
    if (!tutti__is(node, "first_rank_only"))
        return -1;
    int axes = tutti__spmd_axes_of(rank->spmd, node->inputs[1].node);
    return axes < 0 ? -1 : rank->rank[axes];
}

/* Zeros on this rank. Where a shape before it depends on data they are computed: programs are cut
 * there, those of all ranks alike. */
static bool is_zero(const tutti_spmd_rank *rank, tutti_edge edge)
{
    return rank_of(rank, edge.node) > 0 && !claim_of(edge.node)->by_data;
}

tutti_edge tutti__spmd_stands_for(const tutti_spmd_rank *rank, tutti_edge edge)
{
    for (;;) {
        const tutti_node *node = edge.node;
        const tutti_claim *claim = claim_of(node);
        if (tutti__is(node, "axis_slice") && claim && claim->process && rank->spmd->local == 1)
            edge = node->inputs[0];
        else if (rank_of(rank, node) == 0)
            edge = node->inputs[0];
        else if (tutti__is(node, "print") && rank->replica > 0) /* once in a job */
            edge = node->inputs[edge.index];
        else if (tutti__is(node, "add") && is_zero(rank, node->inputs[0]))
            edge = node->inputs[1];
        else if (tutti__is(node, "add") && is_zero(rank, node->inputs[1]))
            edge = node->inputs[0];
        else
            return edge;
    }
}

/* ---- one node ---- */

typedef struct specialization {
    const tutti_graph *text;
    tutti_graph *to;
    tutti_arena *scratch;
    tutti_spmd_rank rank;
    int local;
    const char *device;
    tutti_node **nodes, **first; /* by id of the text: this replica's; the first one's */
} specialization;

static tutti_edge edge_of(const specialization *s, tutti_edge text)
{
    text = tutti__spmd_stands_for(&s->rank, text);
    return (tutti_edge){s->nodes[text.node->id], text.index};
}

/* What control edges to a node of the text wait for. */
static tutti_node *node_of(const specialization *s, tutti_node *text)
{
    return text->output_count == 0 ? s->nodes[text->id] : edge_of(s, (tutti_edge){text, 0}).node;
}

static tutti_status copy_controls(const specialization *s, const tutti_node *text, tutti_node *node)
{
    node->controls =
        tutti__arena_array(&s->to->arena, (size_t)text->control_count + 1, sizeof *node->controls);
    node->control_count = 0;
    if (!node->controls)
        return tutti__spmd_no_memory();
    for (int i = 0; i < text->control_count; i++) {
        tutti_node *before = node_of(s, text->controls[i]);
        if (before)
            node->controls[node->control_count++] = before;
    }
    return TUTTI_OK;
}

static const char *device_of(const specialization *s, const tutti_node *text)
{
    uint32_t flags = text->op->flags;
    if (tutti__is(text, "parameter") || tutti__is(text, "need_rows") ||
        ((flags & TUTTI_OP_HANDLE) && !tutti__is(text, "variable")))
        return ""; /* where a device has no queues and cannot fail, the host does */
    bool central =
        s->rank.spmd->central && (flags & (TUTTI_OP_HANDLE | TUTTI_OP_TAKES_HANDLE)) != 0;
    return central ? s->rank.spmd->central : s->device;
}

/* What all new nodes get. */
static tutti_status note(const specialization *s, const tutti_node *text, tutti_node *node)
{
    tutti_specialized *made = tutti__arena_take(s->scratch, sizeof *made);
    node->origin = tutti__arena_string(&s->to->arena, text->origin);
    node->device = tutti__arena_string(&s->to->arena, device_of(s, text));
    node->file = text->file;
    node->line = text->line;
    tutti__node_mark_like(node, text);
    if (!made || !node->origin || !node->device)
        return tutti__spmd_no_memory();
    *made = (tutti_specialized){text, s->local};
    node->scratch = made;
    s->nodes[text->id] = node;
    return copy_controls(s, text, node);
}

static tutti_status add(const specialization *s, const tutti_node *text, const char *op,
                        int input_count, const tutti_edge *inputs, int attr_count,
                        const tutti_attr *attrs)
{
    tutti_node *node;
    TUTTI_TRY(tutti__node_add(s->to, tutti_op_find(op), text->name, input_count, inputs, attr_count,
                              attrs, &node));
    return note(s, text, node);
}

/* Of the rows of the process, or of what the rank has as a whole. */
void tutti__spmd_slice(const tutti_spmd_rank *rank, const tutti_node *text, const tutti_type *type,
                       int64_t *ret_begin, int64_t *ret_size)
{
    int axes = tutti__spmd_axes_of(rank->spmd, text), d = (int)tutti__int(text, "dim");
    int64_t first = 0, rows;
    *ret_begin = 0;
    *ret_size = type->dims[d];
    if (!claim_of(text)->process) {
        tutti__spmd_block(rank->spmd, axes, rank->rank[axes], ret_begin, ret_size);
        return;
    }
    tutti__spmd_own_rows(rank->spmd, rank->spmd->batch, &first, &rows);
    *ret_begin = rank->first - first;
    *ret_size = rank->rows;
}

static tutti_status slice(const specialization *s, const tutti_node *text, tutti_edge from)
{
    const tutti_type *type = tutti__edge_type(from);
    int64_t begin[TUTTI_MAX_RANK] = {0}, end[TUTTI_MAX_RANK], size;
    int d = (int)tutti__int(text, "dim");
    for (int i = 0; i < type->rank; i++)
        end[i] = type->dims[i] < 0 ? INT64_MAX : type->dims[i]; /* all that there are */
    tutti__spmd_slice(&s->rank, text, type, &begin[d], &size);
    end[d] = begin[d] + size;
    tutti_attr attrs[] = {TUTTI_INTS("begin", type->rank, begin),
                          TUTTI_INTS("end", type->rank, end)};
    return add(s, text, "slice", 1, &from, 2, attrs);
}

static tutti_status fill(const specialization *s, const tutti_node *text, const tutti_type *type,
                         double value)
{
    tutti_attr attrs[] = {TUTTI_INT("dtype", type->dtype),
                          TUTTI_INTS("dims", type->rank, type->dims), TUTTI_FLOAT("value", value)};
    return add(s, text, "fill", 0, NULL, 3, attrs);
}

/* Sizes of the process, or of the rank; *ret_changed: the types follow from them. */
static tutti_status set_sizes(const specialization *s, const tutti_node *text, tutti_node *node,
                              bool *ret_changed)
{
    const tutti_claim *claim = claim_of(text);
    const tutti_spmd *spmd = s->rank.spmd;
    int64_t first, rows;
    *ret_changed = !claim || !claim->copy;
    if (tutti__is(node, "dequeue_own")) {
        tutti__spmd_own_rows(spmd, spmd->batch, &first, &rows);
        tutti__spmd_attr(node, "n")->value.i = rows;
    } else if (tutti__is(node, "all_reduce_shards"))
        tutti__spmd_attr(node, "blocks")->value.i = tutti__spmd_tree_nodes(&s->rank);
    if (tutti__is(node, "parameter") && tutti__spmd_feeds_rows(spmd, claim->job)) {
        tutti_attr *dims = tutti__spmd_attr(node, "dims");
        tutti__spmd_own_rows(spmd, spmd->batch, &first, &rows);
        node->types[0].dims[0] = rows;
        dims->value.ints = (void *)tutti__arena_bytes(&s->to->arena, node->types[0].dims,
                                                      sizeof node->types[0].dims);
        return dims->value.ints ? TUTTI_OK : tutti__spmd_no_memory();
    }
    for (int a = 0; claim && a < spmd->layout->count; a++)
        *ret_changed = *ret_changed || claim->ways[a];
    return claim ? tutti__spmd_cut_attrs(&s->rank, text, claim->ways, node) : TUTTI_OK;
}

static tutti_status copy(const specialization *s, const tutti_node *text, const tutti_edge *inputs)
{
    tutti_node *node;
    bool changed;
    TUTTI_TRY(tutti__node_copy(s->to, text, &node));
    node->inputs = (void *)tutti__arena_bytes(&s->to->arena, inputs,
                                              ((size_t)text->input_count + 1) * sizeof *inputs);
    node->id = (uint32_t)s->to->nodes.count;
    if (!node->inputs || !TUTTI_VEC_PUSH(&s->to->nodes, node))
        return tutti__spmd_no_memory();
    TUTTI_TRY(note(s, text, node));
    TUTTI_TRY(set_sizes(s, text, node, &changed));
    return changed && node->output_count > 0 ? tutti__node_infer_known(node, node->types)
                                             : TUTTI_OK;
}

static tutti_status specialize_node(const specialization *s, tutti_node *text)
{
    const tutti_claim *claim = claim_of(text);
    tutti_edge self = {text, 0}, *inputs;
    if (s->local > 0 && tutti__spmd_is_of_process(s->rank.spmd, text)) {
        s->nodes[text->id] = s->first[text->id];
        return TUTTI_OK;
    }
    if (text->output_count > 0 && tutti__spmd_stands_for(&s->rank, self).node != text)
        return TUTTI_OK;
    inputs = tutti__arena_array(s->scratch, (size_t)text->input_count + 1, sizeof *inputs);
    if (!inputs)
        return tutti__spmd_no_memory();
    for (int i = 0; i < text->input_count; i++)
        inputs[i] = edge_of(s, text->inputs[i]);
    if (tutti__is(text, "axis_index"))
        return fill(s, text, &text->types[0],
                    s->rank.rank[tutti__spmd_axes_of(s->rank.spmd, text)]);
    if (tutti__is(text, "axis_slice"))
        return slice(s, text, inputs[0]);
    if (is_zero(&s->rank, self))
        return fill(s, text, tutti__edge_type(inputs[0]), 0);
    if (claim && claim->shard_by_shard) {
        tutti_node *node;
        TUTTI_TRY(tutti__spmd_segmented(&s->rank, text, inputs, s->to, &node));
        return note(s, text, node);
    }
    return copy(s, text, inputs);
}

/* ---- a replica ---- */

/* Results come from the first replica; the others make them too, because they may have to meet. In
 * deterministic mode they are results of theirs as well, behind those that are asked for: passes
 * leave targets as they are, and what is fused or lowered on one replica only has other bits. */
static tutti_status finish_replica(const specialization *s)
{
    const tutti_spmd *spmd = s->rank.spmd;
    for (size_t i = 0; i < s->text->results.count; i++) {
        tutti_edge edge = edge_of(s, s->text->results.data[i]);
        if (s->local == 0 || spmd->shards > 0)
            TUTTI_TRY(tutti__graph_result(s->to, edge));
        else if (!TUTTI_VEC_PUSH(&s->to->targets, edge.node))
            return tutti__spmd_no_memory();
    }
    for (size_t i = 0; i < s->text->targets.count; i++) {
        tutti_node *target = s->text->targets.data[i];
        if (s->local > 0 && tutti__spmd_is_of_process(spmd, target))
            continue;
        if (!TUTTI_VEC_PUSH(&s->to->targets, node_of(s, target)))
            return tutti__spmd_no_memory();
    }
    return TUTTI_OK;
}

static tutti_status specialize_replica(const specialization *s)
{
    for (size_t n = 0; n < s->text->nodes.count; n++)
        TUTTI_TRY(specialize_node(s, s->text->nodes.data[n]));
    return finish_replica(s);
}

static void mark_before(const tutti_node *node, bool *needed)
{
    for (int i = 0; i < node->input_count; i++)
        needed[node->inputs[i].node->id] = true;
    for (int i = 0; i < node->control_count; i++)
        needed[node->controls[i]->id] = true;
}

/* A rank comes also to collectives of which it needs nothing itself. */
static tutti_status keep_collectives(tutti_graph *graph)
{
    bool *needed = calloc(graph->nodes.count + 1, sizeof *needed);
    if (!needed)
        return tutti__spmd_no_memory();
    for (size_t i = 0; i < graph->results.count; i++)
        needed[graph->results.data[i].node->id] = true;
    for (size_t i = 0; i < graph->targets.count; i++)
        needed[graph->targets.data[i]->id] = true;
    bool ok = true;
    for (size_t n = graph->nodes.count; n-- > 0;) {
        tutti_node *node = graph->nodes.data[n];
        if (!needed[n] && (node->op->flags & TUTTI_OP_COLLECTIVE))
            needed[n] = ok = ok && TUTTI_VEC_PUSH(&graph->targets, node);
        if (needed[n])
            mark_before(node, needed);
    }
    free(needed);
    return ok ? TUTTI_OK : tutti__spmd_no_memory();
}

/* The replicas' nodes in turn, so that devices come to what they meet in at the same time: else one
 * would wait for another that has its other work still before it. */
static tutti_status take_turns(tutti_graph *graph, const tutti_spmd *spmd)
{
    size_t count = graph->nodes.count, placed = 0;
    size_t *next = calloc((size_t)spmd->local + 1, sizeof *next);
    tutti_node **order = calloc(count + 1, sizeof *order);
    if (!next || !order) {
        free(next);
        free(order);
        return tutti__spmd_no_memory();
    }
    for (int list = 0, ended = 0; placed < count && ended <= spmd->local;
         list = (list + 1) % (spmd->local + 1)) {
        /* List 0 holds what stands on no replica's device: all of it comes first. */
        const char *device = list > 0 ? spmd->devices[list - 1] : NULL;
        size_t before = placed, *at = &next[list];
        for (; *at < count && (placed == before || !device); ++*at) {
            tutti_node *node = graph->nodes.data[*at];
            bool own = false;
            for (int i = 0; !device && i < spmd->local; i++)
                own = own || strcmp(node->device, spmd->devices[i]) == 0;
            if (device ? strcmp(node->device, device) == 0 : !own)
                order[placed++] = node;
        }
        ended = placed == before ? ended + 1 : 0;
    }
    for (size_t i = 0; placed == count && i < count; i++) {
        graph->nodes.data[i] = order[i];
        order[i]->id = (uint32_t)i;
    }
    free(next);
    free(order);
    return tutti__graph_sort(graph);
}

static tutti_status specialize_all(const tutti_graph *text, const tutti_spmd *spmd,
                                   tutti_arena *scratch, tutti_graph *to)
{
    tutti_node **first = NULL;
    for (int i = 0; i < spmd->local; i++) {
        specialization s = {.text = text,
                            .to = to,
                            .scratch = scratch,
                            .rank = tutti__spmd_rank(spmd, spmd->first + i),
                            .local = i,
                            .device = spmd->devices[i],
                            .first = first};
        s.nodes = tutti__arena_array(scratch, text->nodes.count + 1, sizeof *s.nodes);
        if (!s.nodes)
            return tutti__spmd_no_memory();
        memset((void *)s.nodes, 0, (text->nodes.count + 1) * sizeof *s.nodes);
        first = i == 0 ? s.nodes : first;
        TUTTI_TRY(specialize_replica(&s));
    }
    TUTTI_TRY(keep_collectives(to));
    TUTTI_TRY(tutti__graph_prune(to));
    if (spmd->local < spmd->replicas)
        TUTTI_TRY(tutti__spmd_end_last(to));
    return spmd->local > 1 ? take_turns(to, spmd) : TUTTI_OK;
}

tutti_status tutti__spmd_specialize(const tutti_graph *text, const tutti_spmd *spmd,
                                    tutti_arena *scratch, tutti_graph **ret)
{
    tutti_graph *to;
    TUTTI_TRY(tutti_graph_create(&to));
    to->trace = true;
    tutti_status status = specialize_all(text, spmd, scratch, to);
    if (status == TUTTI_OK)
        *ret = to;
    else
        tutti_graph_destroy(to);
    return status;
}
