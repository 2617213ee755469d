/* micro.c: the graph of all micro-batches of one device.
 *
 * tutti__spmd_specialize gives each micro-batch the nodes of a replica, which meet in collectives.
 * Here they become one graph without collectives. A node of micro-batch m has up to two copies:
 *
 *   own    as micro-batch m computes it, beside the others
 *   total  as the job computes it, after all micro-batches: for results, updates, metrics
 *
 *   total(all_reduce)  the sum of own(its input) over the micro-batches, added one after the other
 *   total(all_gather)  these, joined
 *   own(all_reduce)    a micro-batch goes on without the others: what its own rows say of the whole
 *                      batch, their sum times B / rows. So batch norm normalises by the statistics
 *                      of the micro-batch, while its moving averages get those of the batch. Only
 *                      what depends on nothing but data, such as the weights of a loss, is summed
 *                      up before all stages.
 *   own(all_gather)    is refused: a stage would wait for micro-batches that come after it
 *
 * What is the same for all micro-batches (weights, and what is made of them) is there once. */
#include <stdlib.h>
#include <string.h>

#include "graph/attr.h"
#include "parallel/pipeline/inside.h"

typedef struct pending {
    tutti_node *node;
    bool own;
} pending;

typedef struct folding {
    tutti_graph *from, *to;
    const tutti_spmd *spmd; /* of the micro-batches */
    int axes;               /* theirs */
    tutti_arena *arena;
    bool *varies;     /* by id: from micro-batch to micro-batch, not by way of a collective */
    bool *own_varies; /* the same where collectives are each micro-batch's own */
    bool *by_state;   /* depends on variables or random numbers, not on data alone */
    tutti_node **own, **total; /* by id, in `to` */
    tutti_map meetings;        /* by channel: the collective of each micro-batch, tutti_node *[] */
    tutti_node **same;         /* hash table of nodes of `to` that are the same for all */
    size_t same_room;
    TUTTI_VEC(pending) stack;
} folding;

/* The node of the text of all micro-batches that a node is one micro-batch's of. */
static const tutti_node *text_of(const tutti_node *node)
{
    return ((const tutti_specialized *)node->scratch)->text;
}

static int micro_of(const tutti_node *node)
{
    return ((const tutti_specialized *)node->scratch)->local;
}

static const tutti_claim *claim_of(const tutti_node *node)
{
    return text_of(node)->scratch;
}

static bool is_sum(const tutti_node *node)
{
    return tutti__is(node, "all_reduce") || tutti__is(node, "all_reduce_shards");
}

static bool is_gather(const tutti_node *node)
{
    return tutti__is(node, "all_gather") || tutti__is(node, "all_gather_uneven");
}

/* A function of its inputs and nothing else. */
static bool is_pure(const tutti_node *node)
{
    const uint32_t impure = TUTTI_OP_STATEFUL | TUTTI_OP_UPDATES | TUTTI_OP_BLOCKING |
                            TUTTI_OP_FALLIBLE | TUTTI_OP_RANDOM | TUTTI_OP_COLLECTIVE |
                            TUTTI_OP_CONTROL | TUTTI_OP_HANDLE | TUTTI_OP_TAKES_HANDLE;
    return !(node->op->flags & impure) && node->output_count > 0;
}

/* A collective along the micro-batches' axis. */
static bool is_meeting(const folding *f, const tutti_node *node)
{
    return (node->op->flags & TUTTI_OP_COLLECTIVE) &&
           strcmp(tutti__str(node, "axis"), f->spmd->layout->axes[f->axes].name) == 0;
}

/* ---- what differs between micro-batches ---- */

static bool is_cut(const folding *f, const tutti_node *node)
{
    const tutti_node *text = text_of(node);
    const tutti_claim *claim = text->scratch;
    bool by_rank = tutti__is(text, "axis_slice") || tutti__is(text, "axis_index") ||
                   tutti__is(text, "first_rank_only");
    return by_rank || (claim && claim->ways[f->axes]);
}

static tutti_status note_meeting(folding *f, tutti_node *node)
{
    const char *channel = tutti__str(node, "channel");
    tutti_node **all = tutti__map_get(&f->meetings, channel);
    if (!all) {
        all = tutti__arena_array(f->arena, (size_t)f->spmd->replicas, sizeof(tutti_node *));
        if (!all)
            return tutti__spmd_no_memory();
        memset(all, 0, (size_t)f->spmd->replicas * sizeof(tutti_node *));
        TUTTI_TRY(tutti__map_set(&f->meetings, channel, all));
    }
    all[micro_of(node)] = node;
    return TUTTI_OK;
}

static tutti_status look(folding *f)
{
    const uint32_t state = TUTTI_OP_HANDLE | TUTTI_OP_TAKES_HANDLE | TUTTI_OP_RANDOM;
    for (size_t n = 0; n < f->from->nodes.count; n++) {
        tutti_node *node = f->from->nodes.data[n];
        bool meets = is_meeting(f, node);
        f->varies[n] = f->own_varies[n] = !meets && is_cut(f, node);
        f->by_state[n] = (node->op->flags & state) != 0;
        for (int i = 0; i < node->input_count; i++) {
            uint32_t from = node->inputs[i].node->id;
            f->varies[n] = f->varies[n] || (!meets && f->varies[from]);
            f->own_varies[n] = f->own_varies[n] || f->own_varies[from];
            f->by_state[n] = f->by_state[n] || f->by_state[from];
        }
        if (meets && !f->by_state[n])
            f->own_varies[n] = false; /* it is the total */
        if (meets)
            TUTTI_TRY(note_meeting(f, node));
    }
    return TUTTI_OK;
}

/* ---- new nodes ---- */

static tutti_status mark_node(folding *f, tutti_node *node, int micro)
{
    tutti_pipeline_mark *mark = tutti__arena_take(f->arena, sizeof *mark);
    if (!mark)
        return tutti__spmd_no_memory();
    *mark = (tutti_pipeline_mark){.micro = micro};
    node->scratch = mark;
    return TUTTI_OK;
}

static tutti_status add(folding *f, const tutti_node *like, int micro, const char *op,
                        int input_count, const tutti_edge *inputs, int attr_count,
                        const tutti_attr *attrs, tutti_edge *ret)
{
    tutti_node *node;
    TUTTI_TRY(tutti__node_add(f->to, tutti_op_find(op), like->name, input_count, inputs, attr_count,
                              attrs, &node));
    node->file = like->file;
    node->line = like->line;
    tutti__node_mark_like(node, like);
    node->origin = tutti__arena_string(&f->to->arena, like->origin);
    node->device = "";
    *ret = (tutti_edge){node, 0};
    return node->origin ? mark_node(f, node, micro) : tutti__spmd_no_memory();
}

static uint64_t hash_of(const tutti_node *node)
{
    uint64_t h = (uint64_t)(uintptr_t)node->op;
    for (int i = 0; i < node->input_count; i++)
        h = tutti__hash_mix(tutti__hash_mix(h, node->inputs[i].node->id), node->inputs[i].index);
    for (int i = 0; i < node->attr_count; i++)
        h = tutti__attr_hash(h, &node->attrs[i]);
    return h;
}

static bool same_node(const tutti_node *a, const tutti_node *b)
{
    if (a->op != b->op || a->input_count != b->input_count || a->attr_count != b->attr_count ||
        a->backward != b->backward)
        return false;
    for (int i = 0; i < a->input_count; i++)
        if (a->inputs[i].node != b->inputs[i].node || a->inputs[i].index != b->inputs[i].index)
            return false;
    for (int i = 0; i < a->attr_count; i++)
        if (!tutti__attr_equal(&a->attrs[i], &b->attrs[i]))
            return false;
    return true;
}

/* The node of another micro-batch that is the same, or this one, which is now known. */
static tutti_node *find_same(folding *f, tutti_node *node)
{
    bool may = tutti__is(node, "parameter") || (is_pure(node) && node->control_count == 0);
    if (!may)
        return node;
    size_t at = hash_of(node) % f->same_room;
    while (f->same[at] && !same_node(f->same[at], node))
        at = (at + 1) % f->same_room;
    if (!f->same[at])
        f->same[at] = node;
    return f->same[at];
}

/* The copy of a node, in one context. */
static tutti_node *copy_of(const folding *f, const tutti_node *node, bool own)
{
    return own ? f->own[node->id] : f->total[node->id];
}

static tutti_edge edge_of(const folding *f, tutti_edge edge, bool own)
{
    return (tutti_edge){copy_of(f, edge.node, own), edge.index};
}

/* The device that the user named. */
static const char *wish_of(const folding *f, const tutti_node *node)
{
    const tutti_claim *claim = claim_of(node);
    const char *wish = claim && claim->job ? claim->job->device : "";
    return wish[0] ? tutti__arena_string(&f->to->arena, wish) : "";
}

static tutti_status copy_node(folding *f, const tutti_node *node, bool own, tutti_node **ret)
{
    tutti_node *copy;
    TUTTI_TRY(tutti__node_copy(f->to, node, &copy));
    copy->inputs =
        tutti__arena_array(&f->to->arena, (size_t)node->input_count + 1, sizeof *copy->inputs);
    copy->controls =
        tutti__arena_array(&f->to->arena, (size_t)node->control_count + 1, sizeof *copy->controls);
    if (!copy->inputs || !copy->controls)
        return tutti__spmd_no_memory();
    for (int i = 0; i < node->input_count; i++)
        copy->inputs[i] = edge_of(f, node->inputs[i], own);
    for (int i = 0; i < node->control_count; i++)
        copy->controls[i] = copy_of(f, node->controls[i], own);
    copy->device = wish_of(f, node);
    if (!copy->device)
        return tutti__spmd_no_memory();
    copy->id = (uint32_t)f->to->nodes.count;
    tutti_node *same = own ? copy : find_same(f, copy);
    *ret = same;
    if (same != copy)
        return TUTTI_OK;
    if (!TUTTI_VEC_PUSH(&f->to->nodes, copy))
        return tutti__spmd_no_memory();
    return mark_node(f, copy, own ? micro_of(node) : -1);
}

/* ---- sums over the micro-batches ---- */

static const char *combining(const tutti_node *node)
{
    const char *how = tutti__is(node, "all_reduce") ? tutti__str(node, "op") : "sum";
    return strcmp(how, "max") == 0    ? "maximum"
           : strcmp(how, "min") == 0  ? "minimum"
           : strcmp(how, "prod") == 0 ? "mul"
                                      : "add";
}

/* One after the other, so that each micro-batch's part is free when it has been added. The
 * additions wait for each other, which keeps them from being fused into one at the end. */
static tutti_status add_up(folding *f, tutti_node *const *all, tutti_edge *ret)
{
    tutti_edge sum = edge_of(f, all[0]->inputs[0], true);
    for (int m = 1; m < f->spmd->replicas; m++) {
        tutti_edge both[] = {sum, edge_of(f, all[m]->inputs[0], true)};
        TUTTI_TRY(add(f, all[0], m, combining(all[0]), 2, both, 0, NULL, &sum));
        if (m > 1)
            TUTTI_TRY(tutti__node_after(sum.node, both[0].node));
    }
    *ret = sum;
    return TUTTI_OK;
}

static tutti_status join(folding *f, tutti_node *const *all, tutti_edge *ret)
{
    int count = f->spmd->replicas;
    tutti_edge *parts = tutti__arena_array(f->arena, (size_t)count, sizeof *parts);
    tutti_attr axis = TUTTI_INT("axis", tutti__int(all[0], "dim"));
    if (!parts)
        return tutti__spmd_no_memory();
    for (int m = 0; m < count; m++)
        parts[m] = edge_of(f, all[m]->inputs[0], true);
    return add(f, all[0], count - 1, "concat", count, parts, 1, &axis, ret);
}

/* ---- sums over the shards of a deterministic batch: ops/comm/segmented.h has the tree ---- */

typedef struct tree {
    folding *f;
    tutti_node *const *all;
    int shards;
} tree;

/* The micro-batch that has all of [low, high); -1: none. */
static int holder_of(const tree *t, int low, int high)
{
    for (int m = 0; m < t->f->spmd->replicas; m++) {
        int first, count = tutti__spmd_shards(t->f->spmd, m, &first);
        if (first <= low && high <= first + count)
            return m;
    }
    return -1;
}

/* How many of the nodes that a micro-batch holds stand before [low, high), in [from, to). */
static int nodes_before(int first, int end, int from, int to, int low)
{
    if (from >= end || to <= first || from >= low)
        return 0;
    if (first <= from && to <= end)
        return 1;
    int middle = (from + to) / 2;
    return nodes_before(first, end, from, middle, low) + nodes_before(first, end, middle, to, low);
}

static tutti_status held_node(const tree *t, int micro, int low, tutti_edge *ret)
{
    tutti_node *node = t->all[micro];
    tutti_edge value = edge_of(t->f, node->inputs[0], true), part;
    int first, count = tutti__spmd_shards(t->f->spmd, micro, &first);
    int64_t begin[TUTTI_MAX_RANK] = {0}, end[TUTTI_MAX_RANK];
    const tutti_type *type = tutti__edge_type(value);
    *ret = value;
    if (tutti__int(node, "blocks") == 1)
        return TUTTI_OK;
    memcpy(end, type->dims, sizeof end);
    begin[0] = nodes_before(first, first + count, 0, t->shards, low);
    end[0] = begin[0] + 1;
    tutti_attr attrs[] = {TUTTI_INTS("begin", type->rank, begin),
                          TUTTI_INTS("end", type->rank, end)};
    tutti_attr dims = TUTTI_INTS("dims", node->types[0].rank, node->types[0].dims);
    TUTTI_TRY(add(t->f, node, micro, "slice", 1, &value, 2, attrs, &part));
    return add(t->f, node, micro, "reshape", 1, &part, 1, &dims, ret);
}

static tutti_status tree_node(const tree *t, int low, int high, int *ret_micro, tutti_edge *ret)
{
    int middle = (low + high) / 2, left, right;
    tutti_edge both[2];
    *ret_micro = holder_of(t, low, high);
    if (*ret_micro >= 0)
        return held_node(t, *ret_micro, low, ret);
    TUTTI_TRY(tree_node(t, low, middle, &left, &both[0]));
    TUTTI_TRY(tree_node(t, middle, high, &right, &both[1]));
    *ret_micro = left > right ? left : right;
    return add(t->f, t->all[0], *ret_micro, "add", 2, both, 0, NULL, ret);
}

static tutti_status total_of_meeting(folding *f, const tutti_node *node, tutti_edge *ret)
{
    tutti_node *const *all = tutti__map_get(&f->meetings, tutti__str(node, "channel"));
    if (is_gather(node))
        return join(f, all, ret);
    if (tutti__is(node, "all_reduce"))
        return add_up(f, all, ret);
    int micro;
    tree t = {f, all, (int)tutti__int(node, "shards")};
    return tree_node(&t, 0, t.shards, &micro, ret);
}

/* ---- what a micro-batch takes for a sum over the batch ---- */

static tutti_status refuse(const tutti_node *node, const char *why)
{
    char place[TUTTI_PLACE_TEXT];
    const tutti_node *job = claim_of(node)->job;
    return tutti_fail(TUTTI_UNSUPPORTED,
                      "%s '%s'%s %s; in a pipeline a stage cannot wait for micro-batches that come "
                      "after it: take a schedule of one micro-batch (micro=1)",
                      job->op->name, job->name, tutti__node_place(job, place), why);
}

static tutti_status own_of_meeting(folding *f, const tutti_node *node, tutti_edge *ret)
{
    tutti_edge value = edge_of(f, node->inputs[0], true), both[2] = {value};
    const tutti_type *type = tutti__edge_type(value);
    int64_t first, rows;
    if (!tutti__is(node, "all_reduce"))
        return refuse(node, is_gather(node) ? "looks at all rows of the batch"
                                            : "sums over the batch in deterministic mode");
    *ret = value;
    if (strcmp(tutti__str(node, "op"), "sum") != 0)
        return add(f, node, micro_of(node), "identity", 1, &value, 0, NULL, ret);
    if (!tutti_dtype_is_float(type->dtype))
        return refuse(node, "counts over the whole batch");
    tutti__spmd_rank_rows(f->spmd, f->spmd->batch, micro_of(node), &first, &rows);
    tutti_attr attrs[] = {
        TUTTI_INT("dtype", type->dtype), TUTTI_INTS("dims", 0, NULL),
        TUTTI_FLOAT("value", rows > 0 ? (double)f->spmd->batch / (double)rows : 0)};
    TUTTI_TRY(add(f, node, micro_of(node), "fill", 0, NULL, 3, attrs, &both[1]));
    return add(f, node, micro_of(node), "mul", 2, both, 0, NULL, ret);
}

/* ---- one node after what it needs ---- */

/* Whether the copy is there; else it is asked for, and *missing set. */
static tutti_status need(folding *f, tutti_node *node, bool own, bool *missing)
{
    if (copy_of(f, node, own))
        return TUTTI_OK;
    *missing = true;
    return TUTTI_VEC_PUSH(&f->stack, ((pending){node, own})) ? TUTTI_OK : tutti__spmd_no_memory();
}

static tutti_status need_inputs(folding *f, const tutti_node *node, bool own, bool *missing)
{
    for (int i = 0; i < node->input_count; i++)
        TUTTI_TRY(need(f, node->inputs[i].node, own, missing));
    for (int i = 0; i < node->control_count; i++)
        TUTTI_TRY(need(f, node->controls[i], own, missing));
    return TUTTI_OK;
}

/* What stands for a node in the other context: what does not differ is the total, what only
 * micro-batches have is their own. */
static bool is_of_other(const folding *f, const tutti_node *node, bool own)
{
    return own ? !f->own_varies[node->id] : f->varies[node->id];
}

static tutti_status need_all(folding *f, tutti_node *node, bool own, bool *missing)
{
    if (is_of_other(f, node, own))
        return need(f, node, !own, missing);
    if (!is_meeting(f, node))
        return need_inputs(f, node, own, missing);
    if (own)
        return need(f, node->inputs[0].node, true, missing);
    tutti_node *const *all = tutti__map_get(&f->meetings, tutti__str(node, "channel"));
    for (int m = 0; m < f->spmd->replicas; m++) {
        if (!all[m])
            return tutti_fail(TUTTI_INTERNAL, "micro-batch %d does not come to '%s'", m,
                              node->name);
        TUTTI_TRY(need(f, all[m]->inputs[0].node, true, missing));
    }
    return TUTTI_OK;
}

static tutti_status make(folding *f, tutti_node *node, bool own)
{
    tutti_node **ret = own ? &f->own[node->id] : &f->total[node->id];
    tutti_edge edge;
    if (is_of_other(f, node, own)) {
        *ret = copy_of(f, node, !own);
        return TUTTI_OK;
    }
    if (!is_meeting(f, node))
        return copy_node(f, node, own, ret);
    if (!is_sum(node) && !is_gather(node))
        return refuse(node, "exchanges rows of the batch");
    TUTTI_TRY(own ? own_of_meeting(f, node, &edge) : total_of_meeting(f, node, &edge));
    if (edge.index != 0)
        TUTTI_TRY(add(f, node, tutti__pipeline_mark(edge.node)->micro, "identity", 1, &edge, 0,
                      NULL, &edge));
    *ret = edge.node;
    if (own)
        return TUTTI_OK;
    /* The same sum of all micro-batches' collectives. */
    tutti_node *const *all = tutti__map_get(&f->meetings, tutti__str(node, "channel"));
    for (int m = 0; m < f->spmd->replicas; m++)
        f->total[all[m]->id] = edge.node;
    return TUTTI_OK;
}

static tutti_status fold(folding *f, tutti_node *node, bool own, tutti_node **ret)
{
    bool missing = false;
    TUTTI_TRY(need(f, node, own, &missing));
    while (f->stack.count > 0) {
        pending top = f->stack.data[f->stack.count - 1];
        missing = false;
        if (!copy_of(f, top.node, top.own))
            TUTTI_TRY(need_all(f, top.node, top.own, &missing));
        if (missing)
            continue;
        if (!copy_of(f, top.node, top.own))
            TUTTI_TRY(make(f, top.node, top.own));
        f->stack.count--;
    }
    *ret = copy_of(f, node, own);
    return TUTTI_OK;
}

/* Results first, then what runs for its effect; what only brought values to collectives goes. */
static tutti_status fold_all(folding *f, size_t results)
{
    tutti_node *made;
    for (size_t i = 0; i < results; i++) {
        tutti_edge edge = f->from->results.data[i];
        TUTTI_TRY(fold(f, edge.node, false, &made));
        TUTTI_TRY(tutti__graph_result(f->to, (tutti_edge){made, edge.index}));
    }
    for (size_t i = 0; i < f->from->targets.count; i++) {
        tutti_node *target = f->from->targets.data[i];
        if (is_pure(target) || is_meeting(f, target))
            continue;
        TUTTI_TRY(fold(f, target, false, &made));
        if (!TUTTI_VEC_PUSH(&f->to->targets, made))
            return tutti__spmd_no_memory();
    }
    return TUTTI_OK;
}

/* What a total before all stages needs comes before all stages. */
static void mark_first(const folding *f)
{
    for (size_t n = 0; n < f->from->nodes.count; n++) {
        const tutti_node *node = f->from->nodes.data[n];
        if (is_meeting(f, node) && !f->by_state[n] && f->total[n])
            tutti__pipeline_mark(f->total[n])->first = true;
    }
    for (size_t n = f->to->nodes.count; n-- > 0;) {
        const tutti_node *node = f->to->nodes.data[n];
        for (int i = 0; tutti__pipeline_mark(node)->first && i < node->input_count; i++)
            tutti__pipeline_mark(node->inputs[i].node)->first = true;
    }
}

static tutti_status fold_graph(folding *f, size_t results)
{
    size_t count = f->from->nodes.count + 1;
    f->same_room = 2 * count + 64;
    f->varies = tutti__arena_array(f->arena, count, sizeof *f->varies);
    f->own_varies = tutti__arena_array(f->arena, count, sizeof *f->own_varies);
    f->by_state = tutti__arena_array(f->arena, count, sizeof *f->by_state);
    f->own = tutti__arena_array(f->arena, count, sizeof(tutti_node *));
    f->total = tutti__arena_array(f->arena, count, sizeof(tutti_node *));
    f->same = tutti__arena_array(f->arena, f->same_room, sizeof(tutti_node *));
    if (!f->varies || !f->own_varies || !f->by_state || !f->own || !f->total || !f->same)
        return tutti__spmd_no_memory();
    memset(f->own, 0, count * sizeof *f->own);
    memset(f->total, 0, count * sizeof *f->total);
    memset(f->same, 0, f->same_room * sizeof *f->same);
    TUTTI_TRY(look(f));
    TUTTI_TRY(fold_all(f, results));
    mark_first(f);
    return TUTTI_OK;
}

static tutti_status fold_made(const tutti_graph *from, const tutti_spmd *spmd, size_t results,
                              tutti_arena *arena, tutti_graph **ret)
{
    folding f = {.from = (tutti_graph *)(uintptr_t)from,
                 .spmd = spmd,
                 .axes = spmd->layout->batch,
                 .arena = arena};
    TUTTI_TRY(tutti_graph_create(&f.to));
    f.to->trace = true;
    tutti_status status = fold_graph(&f, results);
    tutti__map_free(&f.meetings);
    TUTTI_VEC_FREE(&f.stack);
    if (status == TUTTI_OK)
        *ret = f.to;
    else
        tutti_graph_destroy(f.to);
    return status;
}

/* A mesh of one axis, whose places are the micro-batches. */
static tutti_status make_axis(int micro, tutti_mesh **ret_mesh, tutti_layout *ret_layout)
{
    tutti_text axes = {0}, devices = {0};
    tutti__text_add(&axes, TUTTI_BATCH_AXIS "=%d", micro);
    for (int m = 0; m < micro; m++)
        tutti__text_add(&devices, "%scpu:%d", m > 0 ? "," : "", m);
    tutti_status status = axes.failed || devices.failed
                              ? tutti__spmd_no_memory()
                              : tutti__mesh_create(axes.data, devices.data, ret_mesh);
    tutti__text_free(&axes);
    tutti__text_free(&devices);
    TUTTI_TRY(status);
    return tutti__layout_parse("batch:" TUTTI_BATCH_AXIS, *ret_mesh, ret_layout);
}

static tutti_status make_micro(tutti_graph *job, const tutti_spmd *spmd, size_t results,
                               tutti_arena *arena, tutti_graph **ret)
{
    tutti_graph *text = NULL, *replicas = NULL;
    tutti_status status = tutti__spmd_text(job, spmd, arena, &text);
    if (status == TUTTI_OK)
        status = tutti__spmd_verify(text, spmd);
    if (status == TUTTI_OK)
        status = tutti__spmd_specialize(text, spmd, arena, &replicas);
    if (status == TUTTI_OK)
        status = tutti__spmd_verify_ranks(replicas, text, spmd);
    if (status == TUTTI_OK)
        status = fold_made(replicas, spmd, results, arena, ret);
    tutti_graph_destroy(replicas);
    tutti_graph_destroy(text);
    return status;
}

tutti_status tutti__pipeline_micro(tutti_graph *job, const tutti_spmd *spmd, int micro,
                                   tutti_arena *arena, tutti_graph **ret)
{
    tutti_mesh *mesh = NULL;
    tutti_layout layout;
    const char **names = tutti__arena_array(arena, (size_t)micro, sizeof *names);
    if (!names)
        return tutti__spmd_no_memory();
    tutti_status status = make_axis(micro, &mesh, &layout);
    for (int m = 0; status == TUTTI_OK && m < micro; m++)
        if (!(names[m] = tutti__arena_format(arena, "cpu:%d", m)))
            status = tutti__spmd_no_memory();
    tutti_spmd of_micro = {.layout = &layout,
                           .replicas = micro,
                           .local = micro,
                           .devices = names,
                           .batch = spmd->batch,
                           .shards = spmd->shards,
                           .central = "cpu:0",
                           .sparse = spmd->sparse};
    if (status == TUTTI_OK)
        status = make_micro(job, &of_micro, job->results.count, arena, ret);
    tutti__mesh_destroy(mesh);
    return status;
}
