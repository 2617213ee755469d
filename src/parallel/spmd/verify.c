/* verify.c: whether the text of the ranks computes what its job does, by the types of its values,
 * and whether each rank's graph is what the text says.
 *
 * The sharding of every value is worked out anew, from the leaves, by split rules and by what
 * collectives do. Of the rewrite it takes which node of the job a node stands for, and in which way
 * it says that it was cut; that the operator can be cut so and that what goes in lies so is
 * checked. So a partial value that is used as a
 * whole, a sum that is made twice or of what is no part of one, and a collective too few or too
 * many are found. Wrong counts and factors are not: those are found by comparison with one device.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parallel/spmd/rewrite.h"

/* A partial value's `dimension` says of what it is a part: a tutti_reduction, or a sum as the nodes
 * of the tree over the shards that the replica has. */
enum { TREE = 100, MOST_WAYS = 64 };
/* Of an output: `any`, zeros, which are a part as well as a whole. */
typedef struct state {
    tutti_partition_spec spec;
    bool any, process; /* process: rows of all of this process's replicas */
} state;

typedef struct verification {
    const tutti_graph *graph;
    const tutti_spmd *spmd;
    state **states; /* by node id, then output */
} verification;

static const tutti_claim *claim_of(const tutti_node *node)
{
    return node->scratch;
}

static state *state_of(const verification *v, tutti_edge edge)
{
    return &v->states[edge.node->id][edge.index];
}

static void print_spec(const verification *v, const state *s, int rank, char *text, size_t size)
{
    tutti_axis_shard shards[TUTTI_LAYOUT_AXES];
    tutti_text out = {0};
    for (int a = 0; a < v->spmd->layout->count; a++) {
        int kind = s->spec.along[a].kind, dimension = s->spec.along[a].dimension;
        shards[a] = (tutti_axis_shard){
            v->spmd->layout->axes[a].name, (tutti_shard_kind)kind,
            kind == TUTTI_SPLIT ? dimension : 0,
            kind == TUTTI_PARTIAL && dimension != TREE ? (tutti_reduction)dimension : TUTTI_SUM};
    }
    tutti__sharding_print(&out, &(tutti_sharding){v->spmd->layout->count, shards}, rank);
    snprintf(text, size, "%s", out.data ? out.data : "");
    tutti__text_free(&out);
}

static tutti_status refuse_input(const verification *v, const tutti_node *node, int input,
                                 const char *wanted)
{
    char place[TUTTI_PLACE_TEXT], text[256];
    tutti_edge edge = node->inputs[input];
    print_spec(v, state_of(v, edge), tutti__edge_type(edge)->rank, text, sizeof text);
    return tutti_fail(TUTTI_INTERNAL, "%s '%s'%s: input %d, '%s', is %s on a rank of the mesh, %s",
                      node->op->name, node->name, tutti__node_place(node, place), input,
                      edge.node->name, text, wanted);
}

static tutti_status refuse_node(const tutti_node *node, const char *why)
{
    char place[TUTTI_PLACE_TEXT];
    return tutti_fail(TUTTI_INTERNAL, "%s '%s'%s: %s", node->op->name, node->name,
                      tutti__node_place(node, place), why);
}

/* ---- operators ---- */

static bool is_input(const verification *v, const tutti_node *node, int i, int axes, int kind,
                     int dimension)
{
    const state *s = state_of(v, node->inputs[i]);
    if (s->any)
        return kind == TUTTI_REPLICATED || kind == TUTTI_PARTIAL;
    return s->spec.along[axes].kind == kind && s->spec.along[axes].dimension == dimension;
}

static bool same_way(const tutti_split *a, const tutti_split *b, const tutti_node *node)
{
    return memcmp(a->inputs, b->inputs, (size_t)node->input_count) == 0 &&
           memcmp(a->outputs, b->outputs, (size_t)node->output_count) == 0;
}

/* The operator's rule, asked of `rule`, has the way, and the inputs lie so. */
static tutti_status check_way(const verification *v, const tutti_node *node, const tutti_node *rule,
                              int axes, const tutti_split *way)
{
    tutti_split ways[MOST_WAYS];
    int count = tutti__spmd_ways(rule, MOST_WAYS, ways);
    bool found = false;
    for (int w = 0; w < count; w++)
        found = found || same_way(&ways[w], way, rule);
    if (!found)
        return refuse_node(node, "is cut in a way that its operator's split rule does not have");
    for (int i = 0; i < node->input_count; i++) {
        int d = way->inputs[i];
        if (!is_input(v, node, i, axes, d < 0 ? TUTTI_REPLICATED : TUTTI_SPLIT, d < 0 ? 0 : d))
            return refuse_input(v, node, i,
                                d < 0 ? "and the whole is needed; a collective is missing"
                                      : "and another split is needed");
    }
    return TUTTI_OK;
}

/* Along one rank only its block is all, and a part the whole. */
static bool is_alone(const verification *v, int axes)
{
    return v->spmd->layout->axes[axes].size == 1;
}

/* Truth travels as 0 and 1. */
static bool is_of_truth(const tutti_node *node)
{
    return tutti__is(node, "cast") && tutti__edge_type(node->inputs[0])->dtype == TUTTI_BOOL;
}

/* Linear operators may pass on parts of sums. */
static tutti_status check_partial(const verification *v, const tutti_node *node, int axes,
                                  bool *ret_partial)
{
    int partial = 0, last = 0;
    for (int i = 0; i < node->input_count; i++) {
        const state *s = state_of(v, node->inputs[i]);
        bool part = !s->any && s->spec.along[axes].kind == TUTTI_PARTIAL;
        if (!part && !is_input(v, node, i, axes, TUTTI_REPLICATED, 0))
            return refuse_input(v, node, i, "and the whole is needed; a collective is missing");
        partial += part;
        last = part ? i : last;
    }
    *ret_partial = partial > 0;
    uint32_t flags = node->op->flags;
    bool sum =
        partial > 0 && state_of(v, node->inputs[last])->spec.along[axes].dimension == TUTTI_SUM;
    bool add = tutti__is(node, "add") && node->input_count == 2;
    if (partial == 0 || (!sum && is_of_truth(node)) ||
        (sum && (((flags & TUTTI_OP_LINEAR) && partial == node->input_count) ||
                 ((flags & TUTTI_OP_LINEAR_EACH) && partial == 1) ||
                 ((flags & TUTTI_OP_LINEAR_FIRST) && partial == 1 && last == 0))))
        return TUTTI_OK;
    if (sum && add && partial == 1 && state_of(v, node->inputs[1 - last])->any)
        return TUTTI_OK;
    return refuse_input(v, node, last,
                        "and the whole is needed; a collective is missing, or comes too late");
}

/* The reduction is that of the input. */
static void pass_on(const verification *v, const tutti_node *node, int axes, state *out)
{
    for (int i = 0; i < node->input_count; i++) {
        const state *s = state_of(v, node->inputs[i]);
        if (s->spec.along[axes].kind == TUTTI_PARTIAL)
            out->spec.along[axes] = s->spec.along[axes];
    }
}

static void note_way(const tutti_node *node, int axes, const tutti_split *way, bool tree,
                     state *states)
{
    for (int i = 0; i < node->output_count; i++) {
        int d = way->outputs[i];
        states[i].spec.along[axes].kind = d >= 0            ? TUTTI_SPLIT
                                          : d < TUTTI_WHOLE ? TUTTI_PARTIAL
                                                            : TUTTI_REPLICATED;
        states[i].spec.along[axes].dimension =
            (int8_t)(d >= 0                    ? d
                     : d == TUTTI_PARTIAL_SUM  ? (tree ? TREE : TUTTI_SUM)
                     : d == TUTTI_PARTIAL_MAX  ? TUTTI_MAX
                     : d == TUTTI_PARTIAL_MIN  ? TUTTI_MIN
                     : d == TUTTI_PARTIAL_PROD ? TUTTI_PROD
                                               : 0);
    }
}

static tutti_status check_operator(const verification *v, const tutti_node *node)
{
    const tutti_claim *claim = claim_of(node);
    state *states = v->states[node->id];
    bool tree = claim->shard_by_shard;
    for (int a = 0; a < v->spmd->layout->count; a++) {
        const tutti_split *way = claim->ways[a];
        bool partial;
        if (is_alone(v, a))
            continue;
        if (way) {
            TUTTI_TRY(check_way(v, node, claim->job, a, way));
            note_way(node, a, way, tree && a == v->spmd->layout->batch, states);
            continue;
        }
        TUTTI_TRY(check_partial(v, node, a, &partial));
        for (int i = 0; partial && i < node->output_count; i++)
            pass_on(v, node, a, &states[i]);
    }
    return TUTTI_OK;
}

/* Something that the rewrite put in, which no node of the job stands behind: by its own rule. */
static tutti_status check_added(const verification *v, const tutti_node *node)
{
    state *states = v->states[node->id];
    tutti_split ways[MOST_WAYS];
    int count = tutti__spmd_ways(node, MOST_WAYS, ways);
    if (tutti__is(node, "fill") && tutti__float(node, "value") == 0)
        states[0].any = true;
    for (int a = 0; a < v->spmd->layout->count; a++) {
        bool partial, found = false, split = false;
        if (is_alone(v, a))
            continue;
        for (int i = 0; i < node->input_count; i++)
            split = split || state_of(v, node->inputs[i])->spec.along[a].kind == TUTTI_SPLIT;
        for (int w = 0; split && !found && w < count; w++) {
            found = true;
            for (int i = 0; found && i < node->input_count; i++)
                found =
                    is_input(v, node, i, a, ways[w].inputs[i] < 0 ? TUTTI_REPLICATED : TUTTI_SPLIT,
                             ways[w].inputs[i] < 0 ? 0 : ways[w].inputs[i]);
            if (found)
                note_way(node, a, &ways[w], false, states);
        }
        if (found)
            continue;
        TUTTI_TRY(check_partial(v, node, a, &partial));
        for (int i = 0; partial && i < node->output_count; i++)
            pass_on(v, node, a, &states[i]);
    }
    return TUTTI_OK;
}

/* ---- what moves blocks ---- */

/* Input 1 is the rank along one of the layout's axes, which is returned. */
static tutti_status check_index(const verification *v, const tutti_node *node, int *ret_axes)
{
    const tutti_node *index = node->inputs[1].node;
    *ret_axes = tutti__spmd_axes_of(v->spmd, index);
    if (!tutti__is(index, "axis_index") || *ret_axes < 0)
        return refuse_input(v, node, 1, "and the index of a rank is needed");
    return TUTTI_OK;
}

/* The rank's rows out of those of its process, or its block of what is whole. */
static tutti_status check_slice(const verification *v, const tutti_node *node)
{
    const tutti_claim *claim = claim_of(node);
    const state *in = state_of(v, node->inputs[0]);
    state *out = &v->states[node->id][0];
    int axes;
    TUTTI_TRY(check_index(v, node, &axes));
    *out = *in;
    out->process = false;
    if (in->process != claim->process)
        return refuse_input(v, node, 0, "and rows of its process are needed, where others stand");
    if (in->spec.along[axes].kind != TUTTI_REPLICATED)
        return refuse_input(v, node, 0, "and the whole is needed to take a block of it");
    if (!is_alone(v, axes)) {
        out->spec.along[axes].kind = TUTTI_SPLIT;
        out->spec.along[axes].dimension = (int8_t)tutti__int(node, "dim");
    }
    return TUTTI_OK;
}

/* What is whole, or each rank's own value of a variable, as a sum. */
static tutti_status check_first_only(const verification *v, const tutti_node *node)
{
    state *out = &v->states[node->id][0];
    int axes;
    TUTTI_TRY(check_index(v, node, &axes));
    *out = *state_of(v, node->inputs[0]);
    if (is_alone(v, axes))
        return TUTTI_OK;
    if (!is_input(v, node, 0, axes, TUTTI_REPLICATED, 0) &&
        claim_of(node)->rule != TUTTI_REWRITE_ACCUMULATED)
        return refuse_input(v, node, 0, "and the whole is needed, of which one rank has it");
    out->spec.along[axes].kind = TUTTI_PARTIAL;
    out->spec.along[axes].dimension = TUTTI_SUM;
    return TUTTI_OK;
}

static int reduction_of(const tutti_node *node)
{
    static const char *const names[] = {"sum", "mean", "min", "max", "prod"};
    for (int i = 0; i < 5; i++)
        if (strcmp(tutti__str(node, "op"), names[i]) == 0)
            return i;
    return TUTTI_SUM;
}

/* Parts go in, the whole comes out, of each value. */
static tutti_status check_reduce(const verification *v, const tutti_node *node, int axes)
{
    bool tree = tutti__is(node, "all_reduce_shards");
    int what = tree ? TREE : reduction_of(node);
    const tutti_layout *layout = v->spmd->layout;
    for (int i = 0; i < node->output_count; i++) {
        state *out = &v->states[node->id][i];
        int along = axes;
        *out = *state_of(v, node->inputs[i]);
        if (layout->weights >= 0 && /* those of the batch may have the same name */
            strcmp(layout->axes[axes].name, layout->axes[layout->weights].name) == 0)
            along = out->spec.along[layout->weights].kind == TUTTI_PARTIAL ? layout->weights : axes;
        if (!is_input(v, node, i, along, TUTTI_PARTIAL, what))
            return refuse_input(v, node, i,
                                "and is no part of what is reduced here: it would be "
                                "counted more than once");
        out->spec.along[along].kind = TUTTI_REPLICATED;
        out->spec.along[along].dimension = 0;
        out->any = false;
    }
    return TUTTI_OK;
}

/* Sums over the batch go to blocks of weights; along the axes of the batch that do not cut those
 * the blocks are still parts. */
static void scatter_weights(const verification *v, const tutti_node *node, state *out)
{
    const tutti_layout *layout = v->spmd->layout;
    out->spec.along[layout->batch].kind = TUTTI_REPLICATED;
    out->spec.along[layout->batch].dimension = 0;
    out->spec.along[layout->weights].kind = TUTTI_SPLIT;
    out->spec.along[layout->weights].dimension = (int8_t)tutti__int(node, "dim");
    if (layout->others >= 0) {
        out->spec.along[layout->others].kind = TUTTI_PARTIAL;
        out->spec.along[layout->others].dimension = TUTTI_SUM;
    }
}

/* Whether the axes, which may be some of the batch's by the same name, are those of weights here.
 */
static bool is_of_weights(const verification *v, const tutti_node *node, int axes, int kind)
{
    const tutti_layout *layout = v->spmd->layout;
    if (layout->weights < 0 ||
        strcmp(layout->axes[axes].name, layout->axes[layout->weights].name) != 0)
        return false;
    const state *in = state_of(v, node->inputs[0]);
    return kind == TUTTI_PARTIAL ? in->spec.along[layout->weights].kind != TUTTI_PARTIAL
                                 : in->spec.along[layout->weights].kind == TUTTI_SPLIT;
}

static tutti_status check_move(const verification *v, const tutti_node *node, int axes)
{
    state *out = &v->states[node->id][0];
    *out = *state_of(v, node->inputs[0]);
    bool scatters = tutti__is(node, "reduce_scatter");
    if (is_of_weights(v, node, axes, scatters ? TUTTI_PARTIAL : TUTTI_SPLIT)) {
        if (!scatters) {
            axes = v->spmd->layout->weights;
        } else {
            if (!is_input(v, node, 0, v->spmd->layout->batch, TUTTI_PARTIAL, reduction_of(node)))
                return refuse_input(v, node, 0, "and is no part of what is reduced here");
            scatter_weights(v, node, out);
            return TUTTI_OK;
        }
    }
    if (tutti__is(node, "reduce_scatter")) {
        if (!is_input(v, node, 0, axes, TUTTI_PARTIAL, reduction_of(node)))
            return refuse_input(v, node, 0, "and is no part of what is reduced here");
        out->spec.along[axes].kind = TUTTI_SPLIT;
        out->spec.along[axes].dimension = (int8_t)tutti__int(node, "dim");
        return TUTTI_OK;
    }
    bool exchanges = tutti__is(node, "all_to_all");
    int from = (int)tutti__int(node, exchanges ? "concat_dim" : "dim");
    if (!is_input(v, node, 0, axes, TUTTI_SPLIT, from))
        return refuse_input(v, node, 0, "and blocks of another split are joined here");
    out->spec.along[axes].kind = exchanges ? TUTTI_SPLIT : TUTTI_REPLICATED;
    out->spec.along[axes].dimension = exchanges ? (int8_t)tutti__int(node, "split_dim") : 0;
    return TUTTI_OK;
}

static tutti_status check_collective(const verification *v, const tutti_node *node)
{
    int axes = tutti__spmd_axes_of(v->spmd, node);
    if (axes < 0 || tutti__int(node, "size") != v->spmd->layout->axes[axes].size)
        return refuse_node(node, "meets along axes that the layout does not have");
    if (is_alone(v, axes)) {
        for (int i = 0; i < node->output_count; i++)
            v->states[node->id][i] = *state_of(v, node->inputs[i]);
        return TUTTI_OK;
    }
    if (strncmp(node->op->name, "all_reduce", 10) == 0)
        return check_reduce(v, node, axes);
    return check_move(v, node, axes);
}

/* ---- the walk ---- */

static void leaf(const verification *v, const tutti_node *node, const tutti_claim *claim)
{
    state *states = v->states[node->id];
    int batch = v->spmd->layout->batch;
    bool own = claim->rule == TUTTI_REWRITE_PARAMETER || claim->rule == TUTTI_REWRITE_QUEUE;
    bool rows = batch >= 0 && v->spmd->batch > 0 &&
                (tutti__spmd_shares_rows(v->spmd) || v->spmd->local < v->spmd->replicas);
    for (int i = 0; i < node->output_count; i++) {
        bool cut = own && rows && i < claim->job->output_count &&
                   (claim->rule == TUTTI_REWRITE_PARAMETER ? tutti__is_batch(claim->job, 0)
                                                           : tutti__takes_batch(claim->job));
        states[i].process = cut;
        if (claim->rule == TUTTI_REWRITE_ACCUMULATED)
            states[i].spec.along[batch].kind = TUTTI_PARTIAL;
        /* Whether this process has its rows: a part of what the processes agree on. */
        if (tutti__is(node, "dequeue_own") && i == claim->job->output_count) {
            states[i].spec.along[batch].kind = TUTTI_PARTIAL;
            states[i].spec.along[batch].dimension =
                v->spmd->shards > 0 ? (int8_t)TUTTI_MAX : (int8_t)TUTTI_SUM;
        }
    }
}

static tutti_status verify_node(const verification *v, const tutti_node *node)
{
    const tutti_claim *claim = claim_of(node);
    bool collective = (node->op->flags & TUTTI_OP_COLLECTIVE) != 0;
    if (tutti__is(node, "all_reduce_wait") || tutti__is(node, "need_rows"))
        return TUTTI_OK;
    if (collective && (!claim || !claim->copy))
        return check_collective(v, node);
    if (!claim || (claim->copy && claim->rule == TUTTI_REWRITE_GROUP))
        return TUTTI_OK;
    if (tutti__is(node, "dequeue_own") ||
        (claim->copy &&
         (claim->rule == TUTTI_REWRITE_PARAMETER || claim->rule == TUTTI_REWRITE_ACCUMULATED ||
          (claim->rule == TUTTI_REWRITE_QUEUE && tutti__takes_batch(claim->job))))) {
        leaf(v, node, claim);
        return TUTTI_OK;
    }
    if (tutti__is(node, "axis_index") && tutti__spmd_axes_of(v->spmd, node) >= 0) {
        v->states[node->id][0].spec.along[tutti__spmd_axes_of(v->spmd, node)].kind = TUTTI_VARYING;
        return TUTTI_OK;
    }
    if (tutti__is(node, "axis_slice"))
        return check_slice(v, node);
    if (tutti__is(node, "first_rank_only"))
        return check_first_only(v, node);
    return claim->copy ? check_operator(v, node) : check_added(v, node);
}

static tutti_status verify_results(const verification *v)
{
    static const tutti_partition_spec whole = {0};
    for (size_t i = 0; i < v->graph->results.count; i++) {
        tutti_edge edge = v->graph->results.data[i];
        const state *s = state_of(v, edge);
        char text[256], why[320];
        if (s->any || memcmp(&s->spec, &whole, sizeof whole) == 0)
            continue;
        print_spec(v, s, tutti__edge_type(edge)->rank, text, sizeof text);
        snprintf(why, sizeof why,
                 "is a result, and %s on a rank of the mesh: no rank has all of it", text);
        return refuse_node(edge.node, why);
    }
    return TUTTI_OK;
}

tutti_status tutti__spmd_verify(const tutti_graph *text, const tutti_spmd *spmd)
{
    tutti_arena arena = {0};
    verification v = {text, spmd, NULL};
    tutti_status status = TUTTI_OK;
    v.states = tutti__arena_array(&arena, text->nodes.count + 1, sizeof *v.states);
    for (size_t n = 0; v.states && status == TUTTI_OK && n < text->nodes.count; n++) {
        const tutti_node *node = text->nodes.data[n];
        size_t outputs = (size_t)node->output_count + 1;
        v.states[n] = tutti__arena_array(&arena, outputs, sizeof **v.states);
        if (!v.states[n]) {
            status = tutti__spmd_no_memory();
            break;
        }
        memset(v.states[n], 0, outputs * sizeof **v.states);
        if (!node->dead)
            status = verify_node(&v, node);
    }
    if (!v.states)
        status = tutti__spmd_no_memory();
    if (status == TUTTI_OK)
        status = verify_results(&v);
    tutti__arena_free(&arena);
    return status;
}

/* ---- ranks ---- */

typedef struct ranks {
    const tutti_graph *graph, *text;
    const tutti_spmd *spmd;
    tutti_spmd_rank *rank;   /* by local replica */
    const tutti_node **made; /* by local replica, then id of the text; NULL: it has none */
} ranks;

static const tutti_node *made_of(const ranks *r, int local, const tutti_node *text)
{
    if (tutti__spmd_is_of_process(r->spmd, text))
        local = 0;
    return r->made[(size_t)local * r->text->nodes.count + text->id];
}

static tutti_status refuse_rank(const ranks *r, const tutti_node *node, const char *why)
{
    char place[TUTTI_PLACE_TEXT];
    const tutti_specialized *special = node->scratch;
    return tutti_fail(TUTTI_INTERNAL, "%s '%s'%s: on rank %d of the mesh %s", node->op->name,
                      node->name, tutti__node_place(node, place),
                      special ? r->rank[special->local].replica : 0, why);
}

/* Each value comes from what the text says. */
static tutti_status check_inputs(const ranks *r, const tutti_node *node)
{
    const tutti_specialized *special = node->scratch;
    const tutti_node *text = special->text;
    if (node->input_count == 0)
        return TUTTI_OK;
    for (int i = 0; i < node->input_count; i++) {
        tutti_edge from = tutti__spmd_stands_for(&r->rank[special->local], text->inputs[i]);
        if (node->inputs[i].node != made_of(r, special->local, from.node) ||
            node->inputs[i].index != from.index)
            return refuse_rank(r, node,
                               "takes another value than on the others; a collective is missing "
                               "there, or one too many");
    }
    return TUTTI_OK;
}

static tutti_status check_rank_slice(const ranks *r, const tutti_node *node)
{
    const tutti_specialized *special = node->scratch;
    const int64_t *begins, *ends;
    int64_t begin, size;
    int d = (int)tutti__int(special->text, "dim");
    (void)tutti_attr_ints(node->attrs, node->attr_count, "begin", &begins);
    (void)tutti_attr_ints(node->attrs, node->attr_count, "end", &ends);
    tutti__spmd_slice(&r->rank[special->local], special->text, tutti__edge_type(node->inputs[0]),
                      &begin, &size);
    return begins[d] == begin && ends[d] - begins[d] == size
               ? TUTTI_OK
               : refuse_rank(r, node, "it takes a block that is another rank's");
}

/* All collectives of the text, and no others, in its order. */
static tutti_status check_meetings(const ranks *r, int local)
{
    size_t at = 0;
    for (size_t n = 0; n < r->graph->nodes.count; n++) {
        const tutti_node *node = r->graph->nodes.data[n];
        const tutti_specialized *special = node->scratch;
        if (node->dead || !(node->op->flags & TUTTI_OP_COLLECTIVE) ||
            (special && special->local != local) ||
            (!special && strcmp(node->device, r->spmd->devices[local]) != 0))
            continue;
        while (at < r->text->nodes.count &&
               !(r->text->nodes.data[at]->op->flags & TUTTI_OP_COLLECTIVE))
            at++;
        if (!special || at == r->text->nodes.count || special->text != r->text->nodes.data[at])
            return refuse_rank(r, node,
                               "this collective is not the one that comes next on the others: "
                               "they would wait for ever");
        at++;
    }
    for (; at < r->text->nodes.count; at++)
        if (r->text->nodes.data[at]->op->flags & TUTTI_OP_COLLECTIVE)
            return tutti_fail(TUTTI_INTERNAL,
                              "%s '%s': rank %d of the mesh does not come to it, and the others "
                              "would wait for ever",
                              r->text->nodes.data[at]->op->name, r->text->nodes.data[at]->name,
                              r->rank[local].replica);
    return TUTTI_OK;
}

static tutti_status check_ranks(const ranks *r)
{
    for (size_t n = 0; n < r->graph->nodes.count; n++) {
        const tutti_node *node = r->graph->nodes.data[n];
        const tutti_specialized *special = node->scratch;
        if (special && !node->dead)
            r->made[(size_t)special->local * r->text->nodes.count + special->text->id] = node;
    }
    for (size_t n = 0; n < r->graph->nodes.count; n++) {
        const tutti_node *node = r->graph->nodes.data[n];
        const tutti_specialized *special = node->scratch;
        if (node->dead || !special)
            continue;
        TUTTI_TRY(check_inputs(r, node));
        if (tutti__is(special->text, "axis_slice"))
            TUTTI_TRY(check_rank_slice(r, node));
    }
    for (int i = 0; i < r->spmd->local; i++)
        TUTTI_TRY(check_meetings(r, i));
    return TUTTI_OK;
}

tutti_status tutti__spmd_verify_ranks(const tutti_graph *graph, const tutti_graph *text,
                                      const tutti_spmd *spmd)
{
    ranks r = {.graph = graph, .text = text, .spmd = spmd};
    r.rank = calloc((size_t)spmd->local + 1, sizeof *r.rank);
    r.made = calloc((size_t)spmd->local * text->nodes.count + 1, sizeof *r.made);
    tutti_status status = r.rank && r.made ? TUTTI_OK : tutti__spmd_no_memory();
    for (int i = 0; status == TUTTI_OK && i < spmd->local; i++)
        r.rank[i] = tutti__spmd_rank(spmd, spmd->first + i);
    if (status == TUTTI_OK)
        status = check_ranks(&r);
    free(r.rank);
    free((void *)r.made);
    return status;
}
