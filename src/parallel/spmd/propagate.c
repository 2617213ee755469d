/* propagate.c: the sharding of every value of a job, axis by axis.
 *
 * Leaves say how they lie: feeds are split along the batch, variables are replicated, users
 * constrain what they like. From there the nodes are taken in order. Along each of the layout's
 * axes a node passes a partial value on, is cut in the way that moves the fewest bytes, or is
 * whole: every rank does all of it. Axes do not see each other, but that two may cut one dimension
 * only where it divides evenly. What constraints ask for is first carried backwards, so that a node
 * whose inputs are replicated is cut where its result will be wanted so.
 *
 * It sees the job, the layout and the batch, and no rank: all ranks decide alike. */
#include <stdio.h>
#include <string.h>

#include "parallel/spmd/rewrite.h"

enum { MOST_WAYS = 64, NOT_WANTED = -1 };

typedef struct propagation {
    tutti_graph *job;
    const tutti_spmd *spmd;
    tutti_arena *arena;
    const tutti_op *expanding;           /* the operator that is taken apart, or NULL */
    size_t wanted_nodes;                 /* those that constraints were carried to */
    int8_t (*wanted)[TUTTI_LAYOUT_AXES]; /* by node id, of output 0: a dimension; or NULL */
} propagation;

const tutti_partition_spec *tutti__spec_of(tutti_edge edge)
{
    return &tutti__rewritten(edge.node)->specs[edge.index];
}

static int kind_of(tutti_edge edge, int axes)
{
    return tutti__spec_of(edge)->along[axes].kind;
}

bool tutti__spmd_divides(const tutti_spmd *spmd, int axes, int64_t size)
{
    if (axes == spmd->layout->batch)
        return spmd->batch > 0 && size > 0 && size % spmd->batch == 0;
    return size >= spmd->layout->axes[axes].size;
}

int tutti__spmd_ways(const tutti_node *node, int capacity, tutti_split *ret)
{
    tutti_type types[TUTTI_SPLIT_SLOTS];
    if (!node->op->split || node->input_count > TUTTI_SPLIT_SLOTS ||
        node->output_count > TUTTI_SPLIT_SLOTS)
        return 0;
    tutti_infer rule = tutti__node_rule(node, types);
    int count = node->op->split(&rule, capacity, ret);
    return count < capacity ? count : capacity;
}

/* ---- whether a way fits ---- */

static int64_t attr_size(const tutti_node *node, const tutti_split *way)
{
    const tutti_attr *attr = tutti_attr_find(node->attrs, node->attr_count, way->attr);
    return attr->kind == TUTTI_ATTR_INT ? attr->value.i : attr->value.ints[way->attr_index];
}

/* Sizes that are cut together: each can be, and their blocks are in proportion. The batch's are, as
 * multiples of it; others where all are equal or all divide. */
typedef struct sizes {
    const tutti_spmd *spmd;
    int axes;
    int64_t first;
    bool fits, equal, even;
} sizes;

static void add_size(sizes *s, int64_t size)
{
    s->fits = s->fits && tutti__spmd_divides(s->spmd, s->axes, size);
    s->equal = s->equal && (s->first == 0 || size == s->first);
    s->even = s->even && size % s->spmd->layout->axes[s->axes].size == 0;
    s->first = size;
}

static bool fits_axes(const tutti_spmd *spmd, const tutti_node *node, int axes,
                      const tutti_split *way)
{
    sizes s = {spmd, axes, 0, true, true, true};
    for (int i = 0; i < node->input_count; i++)
        if (way->inputs[i] >= 0)
            add_size(&s, tutti__edge_type(node->inputs[i])->dims[way->inputs[i]]);
    for (int i = 0; i < node->output_count; i++)
        if (way->outputs[i] >= 0)
            add_size(&s, node->types[i].dims[way->outputs[i]]);
    if (way->attr && attr_size(node, way) >= 0)
        add_size(&s, attr_size(node, way));
    return s.fits && (axes == spmd->layout->batch || s.equal || s.even);
}

/* Whether several axes, bits of a mask, may split one dimension of that size together: only into
 * blocks that are all alike. */
static bool divide_together(const tutti_spmd *spmd, uint32_t axes, int64_t size)
{
    int64_t ranks = 1;
    if ((axes & (axes - 1)) == 0)
        return true;
    for (int a = 0; a < spmd->layout->count; a++)
        if (axes >> a & 1)
            ranks *= spmd->layout->axes[a].size;
    bool batch = spmd->layout->batch >= 0 && (axes >> spmd->layout->batch & 1);
    if (batch && (spmd->counts || spmd->shards > 0 ||
                  spmd->batch % spmd->layout->axes[spmd->layout->batch].size != 0))
        return false;
    return size % ranks == 0;
}

/* The axes before `axes` that cut dimension `dimension` of an input, or an output. */
static uint32_t cut_before(const tutti_rewritten *mark, int axes, bool output, int i, int dimension)
{
    uint32_t mask = 0;
    for (int a = 0; a < axes; a++)
        if (mark->ways[a] &&
            (output ? mark->ways[a]->outputs[i] : mark->ways[a]->inputs[i]) == dimension)
            mask |= 1u << a;
    return mask;
}

static bool fits_other_axes(const propagation *p, const tutti_node *node,
                            const tutti_rewritten *mark, int axes, const tutti_split *way)
{
    for (int i = 0; i < node->input_count; i++) {
        int d = way->inputs[i];
        if (d >= 0 && !divide_together(p->spmd, 1u << axes | cut_before(mark, axes, false, i, d),
                                       tutti__edge_type(node->inputs[i])->dims[d]))
            return false;
    }
    for (int i = 0; i < node->output_count; i++) {
        int d = way->outputs[i];
        if (d >= 0 && !divide_together(p->spmd, 1u << axes | cut_before(mark, axes, true, i, d),
                                       node->types[i].dims[d]))
            return false;
    }
    return true;
}

/* ---- what a way costs ---- */

static double bytes_of(const tutti_type *type)
{
    int64_t count = tutti_type_count(type);
    return count < 0 ? 1e18 : (double)count * (double)tutti_dtype_size(type->dtype);
}

/* The dimension that a constraint behind the node wants its output 0 split along, or NOT_WANTED. */
static int wanted_of(const propagation *p, const tutti_node *node, int axes)
{
    return p->wanted && node->id < p->wanted_nodes ? p->wanted[node->id][axes] : NOT_WANTED;
}

/* Whether an input is a sum over the batch that updates of blocks wait for: it is summed and
 * scattered in one, for half the bytes of a sum on all. */
static bool scatters(const propagation *p, const tutti_node *node, int i, int axes)
{
    const tutti_layout *layout = p->spmd->layout;
    return axes == layout->weights && node->inputs[i].index == 0 &&
           kind_of(node->inputs[i], layout->batch) == TUTTI_PARTIAL &&
           wanted_of(p, node->inputs[i].node, axes) != NOT_WANTED;
}

/* Bytes that ranks exchange so that input i is as a way wants it; dimension -1: whole. A handle
 * stays as it is. */
static double turning(const propagation *p, const tutti_node *node, int i, int axes, int dimension)
{
    const tutti_type *type = tutti__edge_type(node->inputs[i]);
    if (scatters(p, node, i, axes))
        return (wanted_of(p, node->inputs[i].node, axes) == dimension ? 1 : 2) * bytes_of(type);
    int kind = kind_of(node->inputs[i], axes);
    bool same =
        kind == TUTTI_SPLIT && tutti__spec_of(node->inputs[i])->along[axes].dimension == dimension;
    if (type->handle)
        return same || (kind == TUTTI_REPLICATED && dimension < 0) ? 0 : 1e30;
    if (kind == TUTTI_PARTIAL)
        return 2 * bytes_of(type);
    if (kind == TUTTI_SPLIT)
        return same ? 0 : 1 + bytes_of(type);
    return dimension < 0 ? 0 : 1e-3;
}

/* What a way costs in bytes; negative: it does not fit, or bits would depend on the cut in
 * deterministic mode. */
static double price(const propagation *p, const tutti_node *node, const tutti_rewritten *mark,
                    int axes, const tutti_split *way)
{
    double sum = 0;
    if (!fits_axes(p->spmd, node, axes, way) || !fits_other_axes(p, node, mark, axes, way))
        return -1;
    for (int i = 0; i < node->input_count; i++)
        sum += turning(p, node, i, axes, way->inputs[i]);
    for (int i = 0; i < node->output_count; i++) {
        if (way->outputs[i] == TUTTI_PARTIAL_PROD && p->spmd->shards > 0 &&
            tutti_dtype_is_float(node->types[i].dtype))
            return -1; /* products round in the order in which they are made: one makes it all */
        if (way->outputs[i] < TUTTI_WHOLE)
            sum += 1e-2 + 1e-9 * bytes_of(&node->types[i]);
    }
    return sum;
}

/* The cheapest way; false: whole is as good. Whole means that every rank does all the work, so that
 * what it would gather counts four times. */
static bool choose(const propagation *p, const tutti_node *node, const tutti_rewritten *mark,
                   int axes, tutti_split *ret, double *ret_price)
{
    tutti_split ways[MOST_WAYS];
    int count = tutti__spmd_ways(node, MOST_WAYS, ways), best = -1;
    int wanted = wanted_of(p, node, axes);
    double least = 0;
    for (int i = 0; i < node->input_count; i++)
        least += turning(p, node, i, axes, TUTTI_WHOLE) *
                 (kind_of(node->inputs[i], axes) == TUTTI_SPLIT ? 4 : 1);
    if (wanted != NOT_WANTED)
        least += 1;
    for (int w = 0; w < count; w++) {
        double bytes = price(p, node, mark, axes, &ways[w]);
        if (wanted != NOT_WANTED && ways[w].outputs[0] != wanted)
            bytes += bytes >= 0;
        if (bytes >= 0 && bytes < least) {
            best = w;
            least = bytes;
        }
    }
    *ret_price = least;
    if (best >= 0)
        *ret = ways[best];
    return best >= 0;
}

/* ---- expansion ---- */

static tutti_status propagate_node(propagation *p, tutti_node *node);

/* What is said in operators of its own kind, one for each input, is not taken apart again. */
static bool may_expand(const propagation *p, const tutti_node *node)
{
    return node->op->expand && node->op != p->expanding && node->output_count <= TUTTI_SPLIT_SLOTS;
}

/* The program's nodes are decided for at once. */
static tutti_status expanded(propagation *p, tutti_node *node, tutti_rewritten *mark,
                             const tutti_sym *outputs)
{
    mark->rule = TUTTI_REWRITE_EXPANDED;
    mark->end = p->job->nodes.count;
    mark->expanded =
        tutti__arena_array(p->arena, (size_t)node->output_count + 1, sizeof *mark->expanded);
    if (!mark->expanded)
        return tutti__spmd_no_memory();
    for (size_t n = mark->first; n < mark->end; n++) {
        tutti_node *made = p->job->nodes.data[n];
        tutti__node_mark_like(made, node);
        made->origin = node->origin;
        made->file = node->file;
        made->line = node->line;
    }
    const tutti_op *outer = p->expanding;
    p->expanding = node->op;
    for (size_t n = mark->first; n < mark->end; n++)
        TUTTI_TRY(propagate_node(p, p->job->nodes.data[n]));
    p->expanding = outer;
    for (int i = 0; i < node->output_count; i++) {
        mark->expanded[i] = tutti__edge(outputs[i]);
        mark->specs[i] = *tutti__spec_of(mark->expanded[i]);
    }
    return TUTTI_OK;
}

/* By other operators of the job's graph. `program`: expand or expand_on, which gets the rest. */
static tutti_status expand(propagation *p, tutti_node *node, tutti_rewritten *mark,
                           tutti_status (*program)(tutti_expansion *), int input, int dimension,
                           int ranks)
{
    tutti_sym outputs[TUTTI_SPLIT_SLOTS] = {{0}};
    tutti_sym *inputs = tutti__arena_array(p->arena, (size_t)node->input_count + 1, sizeof *inputs);
    if (!inputs)
        return tutti__spmd_no_memory();
    mark->first = p->job->nodes.count;
    for (int i = 0; i < node->input_count; i++)
        inputs[i] = tutti__sym(node->inputs[i].node, node->inputs[i].index);
    tutti_expansion expansion = {.graph = p->job,
                                 .name = node->name,
                                 .input_count = node->input_count,
                                 .output_count = node->output_count,
                                 .inputs = inputs,
                                 .attrs = node->attrs,
                                 .attr_count = node->attr_count,
                                 .outputs = outputs,
                                 .input = input,
                                 .dimension = dimension,
                                 .ranks = ranks};
    TUTTI_TRY(program(&expansion));
    TUTTI_TRY(tutti_graph_check(p->job));
    return outputs[0].node ? expanded(p, node, mark, outputs) : TUTTI_OK;
}

/* Where an input is split along axes and no way keeps it so. */
static tutti_status expand_on(propagation *p, tutti_node *node, tutti_rewritten *mark, int axes)
{
    for (int i = 0; i < node->input_count && mark->rule == TUTTI_REWRITE_COPY; i++) {
        const tutti_partition_spec *spec = tutti__spec_of(node->inputs[i]);
        if (spec->along[axes].kind == TUTTI_SPLIT)
            TUTTI_TRY(expand(p, node, mark, node->op->expand_on, i, spec->along[axes].dimension,
                             p->spmd->layout->axes[axes].size));
    }
    return TUTTI_OK;
}

/* ---- one node ---- */

static tutti_status propagate_begin(propagation *p, tutti_node *node, tutti_rewritten **ret)
{
    size_t outputs = (size_t)node->output_count + 1;
    tutti_rewritten *mark = tutti__arena_take(p->arena, sizeof *mark);
    if (!mark)
        return tutti__spmd_no_memory();
    *mark = (tutti_rewritten){0};
    mark->specs = tutti__arena_array(p->arena, outputs, sizeof *mark->specs);
    mark->known = tutti__arena_array(p->arena, outputs, sizeof *mark->known);
    if (!mark->specs || !mark->known)
        return tutti__spmd_no_memory();
    memset(mark->specs, 0, outputs * sizeof *mark->specs);
    memset(mark->known, 0, outputs * sizeof *mark->known);
    node->scratch = mark;
    *ret = mark;
    return TUTTI_OK;
}

/* Of rows whose number depends on data nobody knows whose they are: every rank has all. */
static bool depends_on_data(const tutti_node *node)
{
    for (int i = 0; i < node->input_count; i++)
        if (tutti__type_by_data(tutti__edge_type(node->inputs[i])))
            return true;
    for (int i = 0; i < node->output_count; i++)
        if (tutti__type_by_data(&node->types[i]))
            return true;
    return false;
}

/* Whether it can be cut along axes at all: something that goes in is split, or a constraint wants
 * what comes out so. What takes a handle follows that. */
static bool may_cut(const propagation *p, const tutti_node *node, int axes)
{
    bool split = wanted_of(p, node, axes) != NOT_WANTED;
    if (depends_on_data(node))
        return false;
    if (node->op->flags & TUTTI_OP_TAKES_HANDLE)
        return node->input_count > 0 && kind_of(node->inputs[0], axes) == TUTTI_SPLIT;
    for (int i = 0; i < node->input_count; i++)
        split =
            split || kind_of(node->inputs[i], axes) == TUTTI_SPLIT || scatters(p, node, i, axes);
    return split;
}

/* Whether the node is taken along axes that these have in common with others: nothing is cut or
 * partial along both. */
static bool is_taken(const propagation *p, const tutti_rewritten *mark, int axes)
{
    const tutti_layout *layout = p->spmd->layout;
    if (axes != layout->weights && axes != layout->others)
        return false;
    return mark->passes[layout->batch] || mark->ways[layout->batch];
}

/* A sum over the batch to which blocks are added: scattered first, since the sum of both is wanted
 * in blocks. */
static bool meets_blocks(const propagation *p, const tutti_node *node, int axes)
{
    const tutti_layout *layout = p->spmd->layout;
    bool blocks = false;
    if (axes != layout->batch || layout->weights < 0 ||
        wanted_of(p, node, layout->weights) == NOT_WANTED)
        return false;
    for (int i = 0; i < node->input_count; i++)
        blocks = blocks || kind_of(node->inputs[i], layout->weights) == TUTTI_SPLIT;
    return blocks;
}

/* What takes a handle cannot have it otherwise than it is stored. */
static tutti_status check_handle(const propagation *p, const tutti_node *node,
                                 const tutti_rewritten *mark)
{
    char place[TUTTI_PLACE_TEXT];
    for (int a = 0; (node->op->flags & TUTTI_OP_TAKES_HANDLE) && a < p->spmd->layout->count; a++) {
        const tutti_node *variable = node->inputs[0].node;
        if (kind_of(node->inputs[0], a) != TUTTI_SPLIT || mark->ways[a])
            continue;
        int d = tutti__spec_of(node->inputs[0])->along[a].dimension;
        return tutti_fail(TUTTI_UNSUPPORTED,
                          "%s '%s'%s cannot take variable '%s' in blocks: its dimension %d of %lld "
                          "is cut along '%s' over %d ranks; store it whole, or say along which "
                          "dimensions it may be cut (tutti_sharded(variable, \"vocab,embed\") of a "
                          "table whose rows are updated one by one)",
                          node->op->name, node->name, tutti__node_place(node, place),
                          variable->name, d, (long long)variable->types[0].dims[d],
                          p->spmd->layout->axes[a].name, p->spmd->layout->axes[a].size);
    }
    return TUTTI_OK;
}

static tutti_status keep_way(propagation *p, const tutti_split *way, int axes,
                             tutti_rewritten *mark)
{
    tutti_split *kept = tutti__arena_take(p->arena, sizeof *kept);
    if (!kept)
        return tutti__spmd_no_memory();
    *kept = *way;
    mark->ways[axes] = kept;
    return TUTTI_OK;
}

static tutti_status decide_variable(propagation *p, const tutti_node *node, tutti_rewritten *mark)
{
    tutti_partition_spec spec;
    TUTTI_TRY(tutti__spmd_variable_spec(p->spmd, node, &spec));
    for (int a = 0; a < p->spmd->layout->count; a++) {
        int d = spec.along[a].dimension;
        tutti_split way = {.outputs = {(int8_t)d}, .attr = "dims", .attr_index = d};
        if (spec.along[a].kind == TUTTI_SPLIT)
            TUTTI_TRY(keep_way(p, &way, a, mark));
    }
    return TUTTI_OK;
}

/* What of its inputs has to be put together is known whole from here on. */
static void note_known(const tutti_spmd *spmd, const tutti_node *node, const tutti_rewritten *mark)
{
    for (int i = 0; i < node->input_count; i++)
        for (int a = 0; a < spmd->layout->count; a++) {
            int kind = kind_of(node->inputs[i], a);
            bool stays = mark->passes[a] ? kind == TUTTI_PARTIAL
                                         : kind == TUTTI_SPLIT && mark->ways[a] &&
                                               mark->ways[a]->inputs[i] >= 0;
            if (kind != TUTTI_REPLICATED && !stays)
                tutti__rewritten(node->inputs[i].node)->known[node->inputs[i].index] |= 1u << a;
        }
}

/* Along each axis a way, partial, or whole; else it is expanded. */
static tutti_status decide_copy(propagation *p, tutti_node *node, tutti_rewritten *mark)
{
    for (int a = 0; a < p->spmd->layout->count; a++) {
        tutti_split way;
        double bytes;
        if (is_taken(p, mark, a))
            continue;
        mark->passes[a] = tutti__spmd_passes_partial(node, a) && !meets_blocks(p, node, a);
        if (mark->passes[a] || !may_cut(p, node, a))
            continue;
        bool cuts = choose(p, node, mark, a, &way, &bytes);
        bool costs = !cuts || bytes >= 1;
        if (costs && node->op->expand_on && node->output_count <= TUTTI_SPLIT_SLOTS &&
            a != p->spmd->layout->batch)
            TUTTI_TRY(expand_on(p, node, mark, a));
        if (costs && may_expand(p, node) && mark->rule == TUTTI_REWRITE_COPY)
            TUTTI_TRY(expand(p, node, mark, node->op->expand, 0, 0, 1));
        if (mark->rule == TUTTI_REWRITE_EXPANDED)
            return TUTTI_OK;
        if (!cuts)
            continue;
        TUTTI_TRY(keep_way(p, &way, a, mark));
    }
    return check_handle(p, node, mark);
}

tutti_partition_spec tutti__spmd_spec(const tutti_spmd *spmd, const tutti_rewritten *mark,
                                      int output)
{
    tutti_partition_spec spec = {0};
    for (int a = 0; a < spmd->layout->count; a++) {
        int way = mark->ways[a] ? mark->ways[a]->outputs[output] : TUTTI_WHOLE;
        bool tree = spmd->shards > 0 && a == spmd->layout->batch; /* summed at once */
        if (way >= 0) {
            spec.along[a].kind = TUTTI_SPLIT;
            spec.along[a].dimension = (int8_t)way;
        } else if (mark->passes[a] || (way == TUTTI_PARTIAL_SUM && !tree))
            spec.along[a].kind = TUTTI_PARTIAL;
    }
    return spec;
}

static void split_batch(const tutti_spmd *spmd, tutti_partition_spec *spec)
{
    if (tutti__spmd_shares_rows(spmd))
        spec->along[spmd->layout->batch].kind = TUTTI_SPLIT;
}

/* ---- constraints ---- */

static tutti_status refuse_constraint(const tutti_node *node, int output, const char *why)
{
    char place[TUTTI_PLACE_TEXT], type[TUTTI_TYPE_TEXT];
    tutti_text sharding = {0};
    tutti__sharding_print(&sharding, node->shardings[output], node->types[output].rank);
    tutti_status status = tutti_fail(TUTTI_INVALID, "%s '%s'%s: %s cannot be sharded %s: %s",
                                     node->op->name, node->name, tutti__node_place(node, place),
                                     tutti_type_text(&node->types[output], type),
                                     sharding.data ? sharding.data : "", why);
    tutti__text_free(&sharding);
    return status;
}

/* Else there is one axis, of all devices, and what a program says of others is for other runs. */
static bool has_users_mesh(const tutti_spmd *spmd)
{
    return tutti__mesh_axis(spmd->layout->mesh, TUTTI_BATCH_AXIS) < 0;
}

static tutti_status no_such_axis(const tutti_spmd *spmd, const tutti_node *node, int output,
                                 const char *name)
{
    tutti_text why = {0};
    tutti__text_add(&why, "the mesh ");
    tutti__mesh_print(&why, spmd->layout->mesh);
    tutti__text_add(&why, " has no axis '%s', and no dimension is called so", name);
    tutti_status status = refuse_constraint(node, output, why.data ? why.data : "no such axis");
    tutti__text_free(&why);
    return status;
}

tutti_status tutti__spmd_constrain_axis(const tutti_spmd *spmd, const tutti_node *node, int output,
                                        const tutti_axis_shard *shard, tutti_partition_spec *spec,
                                        int8_t *given)
{
    char why[200];
    int axes = tutti__layout_find(spmd->layout, shard->axis);
    int64_t size = node->types[output].dims[shard->dimension];
    if (axes < 0 && !tutti__is_dimension_name(shard->axis) && has_users_mesh(spmd))
        return no_such_axis(spmd, node, output, shard->axis);
    if (axes < 0 || (axes == spmd->layout->batch && !tutti__spmd_shares_rows(spmd)))
        return TUTTI_OK; /* the layout has no rule for it, or there is nothing to share */
    if (axes != spmd->layout->batch && tutti__is_dimension_name(shard->axis) &&
        !tutti__spmd_divides(spmd, axes, size))
        return TUTTI_OK; /* shorter than the axis: it stays replicated */
    const tutti_axis_set *all = &spmd->layout->axes[axes];
    if (given[axes] && spec->along[axes].dimension != shard->dimension) {
        snprintf(why, sizeof why,
                 "dimensions %d and %d both lie along '%s'; a mesh axis cuts one of them",
                 spec->along[axes].dimension, shard->dimension, all->name);
        return refuse_constraint(node, output, why);
    }
    if (size >= 0 && !tutti__spmd_divides(spmd, axes, size)) {
        snprintf(why, sizeof why,
                 axes == spmd->layout->batch
                     ? "dimension %d has %lld, which is no multiple of the batch of %lld"
                     : "dimension %d has %lld for the %lld ranks along '%s'; use fewer",
                 shard->dimension, (long long)size,
                 (long long)(axes == spmd->layout->batch ? spmd->batch : all->size), all->name);
        return refuse_constraint(node, output, why);
    }
    uint32_t users = 1u << axes, all_axes = 1u << axes;
    for (int a = 0; a < spmd->layout->count; a++)
        if (a != axes && spec->along[a].kind == TUTTI_SPLIT &&
            spec->along[a].dimension == shard->dimension) {
            all_axes |= 1u << a;
            users |= given[a] ? 1u << a : 0;
        }
    if (!divide_together(spmd, users, size)) {
        snprintf(why, sizeof why,
                 "dimension %d of %lld does not divide by the ranks along all axes that cut it; "
                 "'%s' has %d",
                 shard->dimension, (long long)size, all->name, all->size);
        return refuse_constraint(node, output, why);
    }
    /* What follows from elsewhere gives way. */
    for (int a = 0; a < spmd->layout->count && !divide_together(spmd, all_axes, size); a++)
        if ((all_axes & ~users) >> a & 1) {
            memset(&spec->along[a], 0, sizeof spec->along[a]);
            all_axes &= ~(1u << a);
        }
    given[axes] = 1;
    spec->along[axes].kind = TUTTI_SPLIT;
    spec->along[axes].dimension = (int8_t)shard->dimension;
    return TUTTI_OK;
}

/* What the user asked of an output: axes that it does not name stay as they are. A variable's is
 * asked of what is read of it. */
static tutti_status find_constraint(propagation *p, const tutti_node *node, int output,
                                    tutti_partition_spec *spec, bool *ret_any)
{
    const tutti_node *named = tutti__is(node, "read") ? node->inputs[0].node : node;
    const tutti_sharding *sharding = named->shardings ? named->shardings[output] : NULL;
    int8_t given[TUTTI_LAYOUT_AXES] = {0};
    *ret_any = false;
    if (!sharding || node->types[output].handle || depends_on_data(node))
        return TUTTI_OK;
    for (int i = 0; i < sharding->count; i++)
        TUTTI_TRY(
            tutti__spmd_constrain_axis(p->spmd, named, output, &sharding->shards[i], spec, given));
    for (int a = 0; a < p->spmd->layout->count; a++)
        *ret_any = *ret_any || given[a];
    return TUTTI_OK;
}

static tutti_status constrain(propagation *p, tutti_node *node, tutti_rewritten *mark)
{
    for (int i = 0; i < node->output_count; i++) {
        tutti_partition_spec *spec = tutti__arena_take(p->arena, sizeof *spec);
        bool any;
        if (!spec)
            return tutti__spmd_no_memory();
        *spec = mark->specs[i];
        TUTTI_TRY(find_constraint(p, node, i, spec, &any));
        if (!any || memcmp(spec, &mark->specs[i], sizeof *spec) == 0)
            continue;
        if (!mark->constraints) {
            size_t outputs = (size_t)node->output_count;
            mark->constraints = tutti__arena_array(p->arena, outputs, sizeof *mark->constraints);
            if (!mark->constraints)
                return tutti__spmd_no_memory();
            memset((void *)mark->constraints, 0, outputs * sizeof *mark->constraints);
        }
        mark->constraints[i] = spec;
        mark->specs[i] = *spec;
    }
    return TUTTI_OK;
}

/* Of blocks it is carried through what is computed element by element only. */
static bool carries(const propagation *p, const tutti_node *node, int axes)
{
    return axes != p->spmd->layout->weights ||
           (node->op->flags & (TUTTI_OP_ELEMENTWISE | TUTTI_OP_VIEW)) != 0;
}

static void want_inputs(propagation *p, const tutti_node *node, int axes, const tutti_split *way)
{
    for (int i = 0; i < node->input_count; i++)
        if (way->inputs[i] >= 0 && node->inputs[i].index == 0 &&
            p->wanted[node->inputs[i].node->id][axes] == NOT_WANTED)
            p->wanted[node->inputs[i].node->id][axes] = way->inputs[i];
}

/* What updates of blocks take is wanted in blocks. */
static tutti_status want_updates(propagation *p, const tutti_node *node)
{
    int weights = p->spmd->layout->weights;
    tutti_split ways[MOST_WAYS];
    tutti_partition_spec spec;
    if (weights < 0 || !(node->op->flags & TUTTI_OP_UPDATES) || node->input_count < 1 ||
        !tutti__is(node->inputs[0].node, "variable"))
        return TUTTI_OK;
    TUTTI_TRY(tutti__spmd_variable_spec(p->spmd, node->inputs[0].node, &spec));
    int count =
        spec.along[weights].kind == TUTTI_SPLIT ? tutti__spmd_ways(node, MOST_WAYS, ways) : 0;
    for (int w = 0; w < count; w++)
        if (ways[w].inputs[0] == spec.along[weights].dimension)
            want_inputs(p, node, weights, &ways[w]);
    return TUTTI_OK;
}

/* Backwards from constraints: through ways that give what is wanted, to inputs that they cut. */
static tutti_status carry_back(propagation *p)
{
    size_t count = p->job->nodes.count;
    bool any = p->spmd->layout->weights >= 0;
    tutti_split ways[MOST_WAYS];
    for (size_t n = 0; n < count; n++)
        any = any ||
              (p->job->nodes.data[n]->shardings && !tutti__is(p->job->nodes.data[n], "parameter"));
    if (!any)
        return TUTTI_OK;
    if (!(p->wanted = tutti__arena_array(p->arena, count, sizeof *p->wanted)))
        return tutti__spmd_no_memory();
    memset(p->wanted, NOT_WANTED, count * sizeof *p->wanted);
    p->wanted_nodes = count;
    for (size_t n = count; n-- > 0;) {
        tutti_node *node = p->job->nodes.data[n];
        tutti_partition_spec spec = {0};
        TUTTI_TRY(want_updates(p, node));
        if (node->output_count == 0)
            continue;
        TUTTI_TRY(find_constraint(p, node, 0, &spec, &any));
        for (int a = 0; a < p->spmd->layout->count; a++) {
            int8_t *mine = &p->wanted[n][a];
            if (spec.along[a].kind == TUTTI_SPLIT)
                *mine = spec.along[a].dimension;
            bool carried = *mine != NOT_WANTED && carries(p, node, a);
            int ways_count = carried ? tutti__spmd_ways(node, MOST_WAYS, ways) : 0;
            for (int w = 0; w < ways_count; w++) {
                if (ways[w].outputs[0] != *mine || !fits_axes(p->spmd, node, a, &ways[w]))
                    continue;
                want_inputs(p, node, a, &ways[w]);
                break;
            }
        }
    }
    return TUTTI_OK;
}

static tutti_status decide(propagation *p, tutti_node *node, tutti_rewritten *mark)
{
    const tutti_spmd *spmd = p->spmd;
    int batch = spmd->layout->batch;
    if (tutti__is(node, "parameter")) {
        mark->rule = TUTTI_REWRITE_PARAMETER;
        if (tutti__is_batch(node, 0))
            split_batch(spmd, &mark->specs[0]);
        return TUTTI_OK;
    }
    if (tutti__spmd_is_group(node)) {
        mark->rule = TUTTI_REWRITE_GROUP;
        return TUTTI_OK;
    }
    if (tutti__spmd_is_queue(node)) {
        mark->rule = TUTTI_REWRITE_QUEUE;
        for (int i = 0; tutti__takes_batch(node) && i < node->output_count; i++)
            split_batch(spmd, &mark->specs[i]);
        note_known(spmd, node, mark);
        return TUTTI_OK;
    }
    TUTTI_TRY(tutti__spmd_check_read(spmd, node));
    if (tutti__spmd_takes_partial(spmd, node)) {
        mark->rule = TUTTI_REWRITE_ACCUMULATED;
        for (int i = 0; i < node->output_count; i++)
            mark->specs[i].along[batch].kind = TUTTI_PARTIAL;
        if (!tutti__spmd_accumulates_partial(spmd, node))
            note_known(spmd, node, mark);
        return TUTTI_OK;
    }
    if (batch < 0 || !tutti__spmd_passes_partial(node, batch)) {
        if (tutti__spmd_makes_dense(spmd, node)) {
            mark->rule = TUTTI_REWRITE_DENSE;
            note_known(spmd, node, mark);
            int rows = tutti__spmd_dense_rows(spmd, node);
            tutti__rewritten(node->inputs[rows].node)->known[node->inputs[rows].index] &=
                ~(1u << batch);
            return TUTTI_OK;
        }
    }
    TUTTI_TRY(tutti__is(node, "variable") ? decide_variable(p, node, mark)
                                          : decide_copy(p, node, mark));
    if (mark->rule == TUTTI_REWRITE_EXPANDED)
        return TUTTI_OK;
    note_known(spmd, node, mark);
    for (int i = 0; i < node->output_count; i++)
        mark->specs[i] = tutti__spmd_spec(spmd, mark, i);
    return TUTTI_OK;
}

static tutti_status propagate_node(propagation *p, tutti_node *node)
{
    tutti_rewritten *mark;
    TUTTI_TRY(propagate_begin(p, node, &mark));
    TUTTI_TRY(decide(p, node, mark));
    return mark->rule == TUTTI_REWRITE_QUEUE ? TUTTI_OK : constrain(p, node, mark);
}

tutti_status tutti__spmd_propagate(tutti_graph *job, const tutti_spmd *spmd, tutti_arena *arena)
{
    propagation p = {.job = job, .spmd = spmd, .arena = arena};
    size_t count = job->nodes.count;
    TUTTI_TRY(carry_back(&p));
    for (size_t n = 0; n < count; n++)
        TUTTI_TRY(propagate_node(&p, job->nodes.data[n]));
    return TUTTI_OK;
}
