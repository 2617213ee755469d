/* walk.c: one node of the job on one replica: in which way it is cut, and its copy. */
#include "dist/walk.h"

#include <stdlib.h>
#include <string.h>

#include "graph/attr.h"
#include "ops/build.h"
#include "ops/comm/segmented.h"

enum { MOST_WAYS = 64 };

static tutti_status no_memory(void)
{
    return tutti_fail(TUTTI_NO_MEMORY, "no memory to spread a job");
}

int tutti__walk_ways(const tutti_node *node, int capacity, tutti_split *ret)
{
    tutti_type types[TUTTI_SPLIT_SLOTS];
    if (!node->op->split || node->input_count > TUTTI_SPLIT_SLOTS ||
        node->output_count > TUTTI_SPLIT_SLOTS)
        return 0;
    for (int i = 0; i < node->input_count; i++)
        types[i] = *tutti__edge_type(node->inputs[i]);
    tutti_infer rule = {.op = node->op,
                        .name = node->name,
                        .input_count = node->input_count,
                        .output_count = node->output_count,
                        .inputs = types,
                        .attrs = node->attrs,
                        .attr_count = node->attr_count,
                        .outputs = node->types};
    int count = node->op->split(&rule, capacity, ret);
    return count < capacity ? count : capacity;
}

/* ---- new nodes ---- */

static tutti_status enter(tutti_walk *walk, const tutti_node *like, tutti_node *node)
{
    node->id = (uint32_t)walk->to->nodes.count;
    node->file = like->file;
    node->line = like->line;
    bool central = walk->spread->central &&
                   (node->op->flags & (TUTTI_OP_HANDLE | TUTTI_OP_TAKES_HANDLE));
    node->device =
        tutti__arena_string(&walk->to->arena, central ? walk->spread->central : walk->device);
    return node->device && TUTTI_VEC_PUSH(&walk->to->nodes, node) ? TUTTI_OK : no_memory();
}

tutti_status tutti__walk_add(tutti_walk *walk, const tutti_node *like, const char *op,
                             int input_count, const tutti_edge *inputs, int attr_count,
                             const tutti_attr *attrs, tutti_node **ret)
{
    tutti_node *node;
    TUTTI_TRY(tutti__node_add(walk->to, tutti_op_find(op), like->name, input_count, inputs,
                              attr_count, attrs, &node));
    node->file = like->file;
    node->line = like->line;
    node->origin = tutti__arena_string(&walk->to->arena, like->origin);
    node->device = tutti__arena_string(&walk->to->arena, walk->device);
    if (!node->origin || !node->device)
        return no_memory();
    *ret = node;
    return TUTTI_OK;
}

static tutti_attr *attr_of(tutti_node *node, const char *name)
{
    for (int i = 0; i < node->attr_count; i++)
        if (strcmp(node->attrs[i].name, name) == 0)
            return &node->attrs[i];
    return NULL;
}

/* A size along the cut is cut too. */
static tutti_status cut_attr(const tutti_walk *walk, const tutti_split *way, tutti_node *copy)
{
    tutti_attr *attr = attr_of(copy, way->attr);
    if (attr->kind == TUTTI_ATTR_INT) {
        attr->value.i = attr->value.i < 0 ? -1 : tutti__form_size(walk, attr->value.i);
        return TUTTI_OK;
    }
    int64_t *ints = (void *)tutti__arena_bytes(&copy->graph->arena, attr->value.ints,
                                               (size_t)attr->count * sizeof *ints);
    if (!ints)
        return no_memory();
    if (ints[way->attr_index] >= 0)
        ints[way->attr_index] = tutti__form_size(walk, ints[way->attr_index]);
    attr->value.ints = ints;
    return TUTTI_OK;
}

/* A dimension that follows from the others (-1) cannot where a replica has no rows: it is given. */
static tutti_status give_dims(const tutti_walk *walk, const tutti_node *node,
                              const tutti_split *way, tutti_node *copy)
{
    tutti_attr *attr = attr_of(copy, "dims");
    const tutti_type *type = &node->types[0];
    bool open = false;
    for (int i = 0; attr && attr->kind == TUTTI_ATTR_INTS && i < attr->count; i++)
        open = open || attr->value.ints[i] == -1;
    if (!open || attr->count != type->rank)
        return TUTTI_OK;
    int64_t *dims = (void *)tutti__arena_bytes(&copy->graph->arena, attr->value.ints,
                                               (size_t)attr->count * sizeof *dims);
    if (!dims)
        return no_memory();
    for (int i = 0; i < attr->count; i++)
        if (dims[i] == -1)
            dims[i] = way->outputs[0] == i ? tutti__form_size(walk, type->dims[i]) : type->dims[i];
    attr->value.ints = dims;
    return TUTTI_OK;
}

/* A piece of random numbers knows its place in the whole. */
static tutti_status place_random(const tutti_walk *walk, const tutti_node *node, int axis,
                                 tutti_node *copy)
{
    tutti_arena *arena = &copy->graph->arena;
    const tutti_type *type = &node->types[0];
    tutti_attr *whole = attr_of(copy, "global_dims"), *start = attr_of(copy, "start");
    int64_t zeros[TUTTI_MAX_RANK] = {0};
    if (!whole || !start || axis < 0)
        return TUTTI_OK;
    bool inside = whole->count > 0; /* a piece of a piece */
    int64_t *from = (void *)tutti__arena_bytes(arena, inside ? start->value.ints : zeros,
                                               (size_t)type->rank * sizeof *from);
    int64_t *dims = (void *)tutti__arena_bytes(arena, inside ? whole->value.ints : type->dims,
                                               (size_t)type->rank * sizeof *dims);
    if (!from || !dims)
        return no_memory();
    from[axis] += tutti__form_start(walk, type->dims[axis]);
    whole->count = start->count = type->rank;
    whole->value.ints = dims;
    start->value.ints = from;
    return TUTTI_OK;
}

static tutti_status copy_controls(const tutti_walk *walk, const tutti_node *node, tutti_node *copy)
{
    copy->controls = tutti__arena_array(&walk->to->arena, (size_t)node->control_count + 1,
                                        sizeof *copy->controls);
    copy->control_count = 0;
    if (!copy->controls)
        return no_memory();
    for (int i = 0; i < node->control_count; i++) {
        const tutti_walked *before = node->controls[i]->scratch;
        if (before && before->node)
            copy->controls[copy->control_count++] = before->node;
    }
    return TUTTI_OK;
}

tutti_status tutti__walk_copy(tutti_walk *walk, const tutti_node *node, const tutti_edge *inputs,
                              const tutti_split *way, tutti_node **ret)
{
    tutti_node *copy;
    TUTTI_TRY(tutti__node_copy(walk->to, node, &copy));
    copy->shardings = NULL;
    copy->inputs =
        tutti__arena_array(&walk->to->arena, (size_t)node->input_count + 1, sizeof *copy->inputs);
    if (!copy->inputs)
        return no_memory();
    if (node->input_count > 0)
        memcpy(copy->inputs, inputs, (size_t)node->input_count * sizeof *inputs);
    TUTTI_TRY(copy_controls(walk, node, copy));
    if (way && way->attr)
        TUTTI_TRY(cut_attr(walk, way, copy));
    if (way && node->output_count > 0)
        TUTTI_TRY(give_dims(walk, node, way, copy));
    if (way && (node->op->flags & TUTTI_OP_RANDOM))
        TUTTI_TRY(place_random(walk, node, way->outputs[0], copy));
    if (way && node->output_count > 0)
        TUTTI_TRY(tutti__node_infer_known(copy, copy->types));
    TUTTI_TRY(enter(walk, node, copy));
    *ret = copy;
    return TUTTI_OK;
}

/* ---- what a node becomes ---- */

static tutti_status begin(tutti_walk *walk, tutti_node *node, tutti_walked **ret)
{
    tutti_walked *mark = tutti__arena_take(walk->scratch, sizeof *mark);
    if (!mark)
        return no_memory();
    *mark = (tutti_walked){0};
    mark->outputs =
        tutti__arena_array(walk->scratch, (size_t)node->output_count + 1, sizeof *mark->outputs);
    if (!mark->outputs)
        return no_memory();
    memset(mark->outputs, 0, ((size_t)node->output_count + 1) * sizeof *mark->outputs);
    node->scratch = mark;
    *ret = mark;
    return TUTTI_OK;
}

static void made(tutti_walked *mark, int output, tutti_form form)
{
    mark->outputs[output] = (tutti_value_forms){.count = 1, .forms = {form}};
}

static bool has_input(const tutti_node *node, tutti_form_kind kind)
{
    for (int i = 0; i < node->input_count; i++)
        if (tutti__form_made(node->inputs[i])->kind == kind)
            return true;
    return false;
}

static tutti_status copy_whole(tutti_walk *walk, tutti_node *node, tutti_walked *mark)
{
    tutti_edge *inputs =
        tutti__arena_array(walk->scratch, (size_t)node->input_count + 1, sizeof *inputs);
    if (!inputs)
        return no_memory();
    for (int i = 0; i < node->input_count; i++)
        TUTTI_TRY(tutti__form_as(walk, node->inputs[i], TUTTI_FORM_WHOLE, 0, &inputs[i]));
    TUTTI_TRY(tutti__walk_copy(walk, node, inputs, NULL, &mark->node));
    for (int i = 0; i < node->output_count; i++)
        made(mark, i, (tutti_form){TUTTI_FORM_WHOLE, 0, {mark->node, (uint32_t)i}});
    return TUTTI_OK;
}

/* Sums of parts go through linear operators as they are; only to types that hold as much. */
static bool passes_partial(const tutti_node *node)
{
    int partial = 0, numbers = 0;
    bool first = false;
    for (int i = 0; i < node->input_count; i++) {
        const tutti_form *form = tutti__form_made(node->inputs[i]);
        const tutti_type *type = tutti__edge_type(node->inputs[i]);
        if (form->kind == TUTTI_FORM_CUT || !tutti_dtype_is_float(type->dtype) ||
            !tutti_dtype_is_float(node->types[0].dtype) ||
            tutti_dtype_size(node->types[0].dtype) < tutti_dtype_size(type->dtype))
            return false;
        numbers++;
        partial += form->kind == TUTTI_FORM_PARTIAL;
        first = first || (i == 0 && form->kind == TUTTI_FORM_PARTIAL);
    }
    if (node->output_count != 1 || partial == 0)
        return false;
    return ((node->op->flags & TUTTI_OP_LINEAR) && partial == numbers) ||
           ((node->op->flags & TUTTI_OP_LINEAR_EACH) && partial == 1) ||
           ((node->op->flags & TUTTI_OP_LINEAR_FIRST) && partial == 1 && first);
}

/* A variable whose value is the sum over the replicas: what is added stays where it is. */
static bool is_partial_variable(const tutti_walk *walk, const tutti_node *node)
{
    return walk->spread->shards == 0 && !walk->spread->central && tutti__is(node, "variable") &&
           tutti__int(node, "partial");
}

/* Reads and updates of such variables. False: the node is none. */
static bool takes_partial(const tutti_walk *walk, const tutti_node *node)
{
    return (node->op->flags & TUTTI_OP_TAKES_HANDLE) && node->input_count > 0 &&
           is_partial_variable(walk, node->inputs[0].node);
}

/* Adds what is partial; of what is whole the first replica's, others add or keep nothing. */
static tutti_status copy_accumulated(tutti_walk *walk, tutti_node *node, tutti_walked *mark)
{
    tutti_edge inputs[TUTTI_SPLIT_SLOTS];
    if (node->input_count > 2)
        return tutti_fail(TUTTI_UNSUPPORTED, "%s '%s' updates a variable that is the sum over the "
                          "replicas", node->op->name, node->name);
    inputs[0] = tutti__form_made(node->inputs[0])->edge;
    if (node->input_count == 2) {
        const tutti_form *form = tutti__form_made(node->inputs[1]);
        if (form->kind == TUTTI_FORM_PARTIAL)
            inputs[1] = form->edge;
        else
            TUTTI_TRY(tutti__form_as(walk, node->inputs[1], TUTTI_FORM_WHOLE, 0, &inputs[1]));
        if (form->kind != TUTTI_FORM_PARTIAL && walk->replica > 0) {
            tutti_node *zeros;
            const tutti_type *type = tutti__edge_type(node->inputs[1]);
            tutti_attr attrs[] = {TUTTI_INT("dtype", type->dtype),
                                  TUTTI_INTS("dims", type->rank, type->dims)};
            TUTTI_TRY(tutti__walk_add(walk, node, "fill", 0, NULL, 2, attrs, &zeros));
            inputs[1] = (tutti_edge){zeros, 0};
        }
    }
    TUTTI_TRY(tutti__walk_copy(walk, node, inputs, NULL, &mark->node));
    for (int i = 0; i < node->output_count; i++)
        made(mark, i, (tutti_form){TUTTI_FORM_PARTIAL, 0, {mark->node, (uint32_t)i}});
    return TUTTI_OK;
}

static tutti_status copy_partial(tutti_walk *walk, tutti_node *node, tutti_walked *mark)
{
    tutti_edge inputs[TUTTI_SPLIT_SLOTS];
    for (int i = 0; i < node->input_count; i++)
        inputs[i] = tutti__form_made(node->inputs[i])->edge;
    TUTTI_TRY(tutti__walk_copy(walk, node, inputs, NULL, &mark->node));
    made(mark, 0, (tutti_form){TUTTI_FORM_PARTIAL, 0, {mark->node, 0}});
    return TUTTI_OK;
}

static double bytes_of(const tutti_type *type)
{
    int64_t count = tutti_type_count(type);
    return count < 0 ? 1e18 : (double)count * (double)tutti_dtype_size(type->dtype);
}

/* Bytes that replicas exchange so that input i is as a way wants it; axis -1: whole. */
static double turning(const tutti_walk *walk, const tutti_node *node, int i, int axis)
{
    const tutti_form *form = tutti__form_made(node->inputs[i]);
    const tutti_type *type = tutti__edge_type(node->inputs[i]);
    if (axis >= 0 && !tutti__form_divides(walk, type->dims[axis]))
        return -1;
    if (form->kind == TUTTI_FORM_PARTIAL)
        return 2 * bytes_of(type);
    if (form->kind == TUTTI_FORM_CUT)
        return axis == form->dim ? 0 : 1 + bytes_of(type);
    return axis < 0 ? 0 : 1e-3;
}

/* What a way costs in bytes; negative: it does not fit the batch. */
static double price(const tutti_walk *walk, const tutti_node *node, const tutti_split *way)
{
    double sum = 0;
    for (int i = 0; i < node->input_count; i++) {
        double bytes = turning(walk, node, i, way->inputs[i]);
        if (bytes < 0)
            return -1;
        sum += bytes;
    }
    for (int i = 0; i < node->output_count; i++) {
        int axis = way->outputs[i];
        if (axis >= 0 && !tutti__form_divides(walk, node->types[i].dims[axis]))
            return -1;
        if (axis < TUTTI_WHOLE)
            sum += 1e-2 + 1e-9 * bytes_of(&node->types[i]);
    }
    if (way->attr) {
        const tutti_attr *attr = tutti_attr_find(node->attrs, node->attr_count, way->attr);
        int64_t size = attr->kind == TUTTI_ATTR_INT ? attr->value.i
                                                    : attr->value.ints[way->attr_index];
        if (size >= 0 && !tutti__form_divides(walk, size))
            return -1;
    }
    return sum;
}

/* The cheapest way; false: whole is as good. Whole means that every replica does all the work, so
 * that what it would gather counts four times. */
static bool choose(const tutti_walk *walk, const tutti_node *node, tutti_split *ret,
                   double *ret_price)
{
    tutti_split ways[MOST_WAYS];
    int count = tutti__walk_ways(node, MOST_WAYS, ways), best = -1;
    double least = 0;
    for (int i = 0; i < node->input_count; i++)
        least += turning(walk, node, i, TUTTI_WHOLE) *
                 (tutti__form_made(node->inputs[i])->kind == TUTTI_FORM_CUT ? 4 : 1);
    for (int w = 0; w < count; w++) {
        double bytes = price(walk, node, &ways[w]);
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

static const char *combination(int axis)
{
    return axis == TUTTI_PARTIAL_MAX    ? "max"
           : axis == TUTTI_PARTIAL_MIN  ? "min"
           : axis == TUTTI_PARTIAL_PROD ? "prod"
                                        : "sum";
}

static tutti_status copy_cut(tutti_walk *walk, tutti_node *node, const tutti_split *way,
                             tutti_walked *mark)
{
    tutti_edge inputs[TUTTI_SPLIT_SLOTS];
    for (int i = 0; i < node->input_count; i++) {
        int axis = way->inputs[i];
        TUTTI_TRY(tutti__form_as(walk, node->inputs[i],
                                 axis < 0 ? TUTTI_FORM_WHOLE : TUTTI_FORM_CUT, axis, &inputs[i]));
    }
    TUTTI_TRY(tutti__walk_copy(walk, node, inputs, way, &mark->node));
    for (int i = 0; i < node->output_count; i++) {
        int axis = way->outputs[i];
        tutti_form form = {.edge = {mark->node, (uint32_t)i}};
        form.kind = axis >= 0                   ? TUTTI_FORM_CUT
                    : axis == TUTTI_PARTIAL_SUM ? TUTTI_FORM_PARTIAL
                                                : TUTTI_FORM_WHOLE;
        form.dim = axis >= 0 ? axis : 0;
        if (axis < TUTTI_PARTIAL_SUM)
            TUTTI_TRY(
                tutti__form_reduce(walk, node, combination(axis), form.edge, &form.edge));
        made(mark, i, form);
    }
    return TUTTI_OK;
}

/* ---- deterministic: sums over the batch shard by shard ---- */

static bool is_summed(const tutti_node *node, const tutti_split *way)
{
    for (int i = 0; i < node->output_count; i++)
        if (way->outputs[i] == TUTTI_PARTIAL_SUM)
            return true;
    return false;
}

/* The node alone, with parameters for its inputs. */
static tutti_status body_of(tutti_walk *walk, const tutti_node *node, const tutti_edge *inputs,
                            tutti_graph **ret)
{
    tutti_graph *body;
    tutti_edge arguments[TUTTI_SPLIT_SLOTS];
    TUTTI_TRY(tutti_graph_create(&body));
    tutti_status status = TUTTI_OK;
    for (int i = 0; status == TUTTI_OK && i < node->input_count; i++) {
        const tutti_type *type = tutti__edge_type(inputs[i]);
        tutti_attr attrs[] = {TUTTI_INT("index", i), TUTTI_INT("dtype", type->dtype),
                              TUTTI_INTS("dims", type->rank, type->dims)};
        status = tutti__node_add(body, tutti_op_find("parameter"), NULL, 0, NULL, 3, attrs,
                                 &arguments[i].node);
        arguments[i].index = 0;
    }
    tutti_node *copy = NULL;
    if (status == TUTTI_OK)
        status = tutti__node_copy(body, node, &copy);
    if (status == TUTTI_OK) {
        copy->inputs = (void *)tutti__arena_bytes(
            &body->arena, arguments, ((size_t)node->input_count + 1) * sizeof *arguments);
        copy->controls = NULL;
        copy->control_count = 0;
        copy->shardings = NULL;
        copy->id = (uint32_t)body->nodes.count;
        status = copy->inputs && TUTTI_VEC_PUSH(&body->nodes, copy) ? TUTTI_OK : no_memory();
    }
    for (int i = 0; status == TUTTI_OK && i < node->output_count; i++)
        status = tutti__graph_result(body, (tutti_edge){copy, (uint32_t)i});
    TUTTI_UNUSED(walk);
    if (status != TUTTI_OK)
        tutti_graph_destroy(body);
    else
        *ret = body;
    return status;
}

static tutti_status add_segmented(tutti_walk *walk, const tutti_node *node,
                                  const tutti_edge *inputs, const tutti_split *way,
                                  tutti_node **ret, int *ret_blocks)
{
    const tutti_spread *spread = walk->spread;
    int first, count = tutti__spread_shards(spread, walk->replica, &first);
    int64_t axes[TUTTI_SPLIT_SLOTS], kinds[TUTTI_SPLIT_SLOTS], bounds[1025];
    tutti_type types[TUTTI_SPLIT_SLOTS];
    tutti_graph *body;
    int blocks = tutti__segment_nodes(spread->shards, first, first + count);
    for (int i = 0; i <= count; i++)
        bounds[i] =
            tutti__shard_bound(spread->batch, spread->shards, first + i) - walk->first;
    for (int i = 0; i < node->input_count; i++)
        axes[i] = way->inputs[i];
    for (int i = 0; i < node->output_count; i++) {
        kinds[i] = way->outputs[i];
        types[i] = node->types[i];
        if (kinds[i] >= 0)
            types[i].dims[kinds[i]] = tutti__form_size(walk, types[i].dims[kinds[i]]);
        else if (blocks > 1) {
            int64_t dims[TUTTI_MAX_RANK + 1] = {blocks};
            if (types[i].rank == TUTTI_MAX_RANK)
                return tutti_fail(TUTTI_UNSUPPORTED, "%s '%s': a gradient of %d axes cannot be summed "
                                  "over shards", node->op->name, node->name, TUTTI_MAX_RANK);
            memcpy(dims + 1, types[i].dims, (size_t)types[i].rank * sizeof *dims);
            types[i] = tutti_type_make(types[i].dtype, types[i].rank + 1, dims);
        }
    }
    TUTTI_TRY(body_of(walk, node, inputs, &body));
    tutti_attr attrs[] = {TUTTI_GRAPH_ATTR("body", body),
                          TUTTI_TYPES_ATTR("types", node->output_count, types),
                          TUTTI_INT("shards", spread->shards),
                          TUTTI_INT("first", first),
                          TUTTI_INTS("bounds", count + 1, bounds),
                          TUTTI_INTS("axes", node->input_count, axes),
                          TUTTI_INTS("kinds", node->output_count, kinds)};
    tutti_status status =
        tutti__walk_add(walk, node, "segmented", node->input_count, inputs, 7, attrs, ret);
    tutti_graph_destroy(body);
    *ret_blocks = blocks;
    return status;
}

static tutti_status copy_summed(tutti_walk *walk, tutti_node *node, const tutti_split *way,
                                tutti_walked *mark)
{
    tutti_edge inputs[TUTTI_SPLIT_SLOTS];
    int blocks;
    for (int i = 0; i < node->input_count; i++) {
        int axis = way->inputs[i];
        TUTTI_TRY(tutti__form_as(walk, node->inputs[i],
                                 axis < 0 ? TUTTI_FORM_WHOLE : TUTTI_FORM_CUT, axis, &inputs[i]));
    }
    TUTTI_TRY(add_segmented(walk, node, inputs, way, &mark->node, &blocks));
    for (int i = 0; i < node->output_count; i++) {
        int axis = way->outputs[i];
        tutti_form form = {axis >= 0 ? TUTTI_FORM_CUT : TUTTI_FORM_WHOLE,
                           axis >= 0 ? axis : 0,
                           {mark->node, (uint32_t)i}};
        if (axis < 0 && walk->spread->replicas > 1)
            TUTTI_TRY(tutti__form_reduce_shards(walk, node, blocks, form.edge, &form.edge));
        made(mark, i, form);
    }
    return TUTTI_OK;
}

/* ---- expansion ---- */

static tutti_status walk_from(tutti_walk *walk, size_t first)
{
    for (size_t n = first; n < walk->from->nodes.count; n++)
        TUTTI_TRY(tutti__walk_node(walk, walk->from->nodes.data[n]));
    return TUTTI_OK;
}

/* By other operators of the job's graph, which are walked at once. */
static tutti_status expand(tutti_walk *walk, tutti_node *node, tutti_walked *mark)
{
    tutti_sym inputs[TUTTI_SPLIT_SLOTS], outputs[TUTTI_SPLIT_SLOTS] = {{0}};
    size_t first = walk->from->nodes.count;
    for (int i = 0; i < node->input_count; i++)
        inputs[i] = tutti__sym(node->inputs[i].node, node->inputs[i].index);
    tutti_expansion expansion = {.graph = walk->from,
                                 .name = node->name,
                                 .input_count = node->input_count,
                                 .output_count = node->output_count,
                                 .inputs = inputs,
                                 .attrs = node->attrs,
                                 .attr_count = node->attr_count,
                                 .outputs = outputs};
    TUTTI_TRY(node->op->expand(&expansion));
    TUTTI_TRY(tutti_graph_check(walk->from));
    for (size_t n = first; n < walk->from->nodes.count; n++) {
        walk->from->nodes.data[n]->origin = node->origin;
        walk->from->nodes.data[n]->file = node->file;
        walk->from->nodes.data[n]->line = node->line;
    }
    TUTTI_TRY(walk_from(walk, first));
    for (int i = 0; i < node->output_count; i++) {
        tutti_edge edge = tutti__edge(outputs[i]);
        made(mark, i, *tutti__form_made(edge));
        mark->node = mark->outputs[i].forms[0].edge.node;
    }
    return TUTTI_OK;
}

static bool may_expand(const tutti_node *node)
{
    return node->op->expand && node->input_count <= TUTTI_SPLIT_SLOTS &&
           node->output_count <= TUTTI_SPLIT_SLOTS;
}

/* ---- parameters, groups, updates ---- */

static tutti_status take_parameter(tutti_walk *walk, tutti_node *node, tutti_walked *mark)
{
    const tutti_spread *spread = walk->spread;
    tutti_node *fed;
    TUTTI_TRY(tutti__walk_copy(walk, node, NULL, NULL, &fed));
    fed->device = "";
    mark->node = fed;
    made(mark, 0, (tutti_form){TUTTI_FORM_WHOLE, 0, {fed, 0}});
    if (!tutti__is_batch(node, 0) || spread->batch <= 0 ||
        (spread->replicas == 1 && spread->shards == 0))
        return TUTTI_OK;
    int64_t first, rows;
    tutti__spread_own(spread, spread->batch, &first, &rows);
    int64_t *dims = (void *)tutti__arena_bytes(&walk->to->arena, fed->types[0].dims,
                                               sizeof fed->types[0].dims);
    if (!dims)
        return no_memory();
    fed->types[0].dims[0] = dims[0] = rows;
    attr_of(fed, "dims")->value.ints = dims;
    tutti_edge own = {fed, 0};
    if (spread->local > 1) {
        int64_t begin[TUTTI_MAX_RANK] = {walk->first - first}, end[TUTTI_MAX_RANK];
        memcpy(end, dims, sizeof end);
        end[0] = begin[0] + walk->rows;
        tutti_attr attrs[] = {TUTTI_INTS("begin", fed->types[0].rank, begin),
                              TUTTI_INTS("end", fed->types[0].rank, end)};
        tutti_node *slice;
        TUTTI_TRY(tutti__walk_add(walk, node, "slice", 1, &own, 2, attrs, &slice));
        own = (tutti_edge){slice, 0};
    }
    made(mark, 0, (tutti_form){TUTTI_FORM_CUT, 0, own});
    if (spread->batch > 1)
        return TUTTI_OK;
    /* One row cannot be shared: every replica works on it. */
    TUTTI_TRY(tutti__form_as(walk, (tutti_edge){node, 0}, TUTTI_FORM_WHOLE, 0, &own));
    made(mark, 0, (tutti_form){TUTTI_FORM_WHOLE, 0, own});
    return TUTTI_OK;
}

/* Takes values only to wait for them: in the form that they have. */
static tutti_status take_group(tutti_walk *walk, tutti_node *node, tutti_walked *mark)
{
    tutti_edge *inputs =
        tutti__arena_array(walk->scratch, (size_t)node->input_count + 1, sizeof *inputs);
    if (!inputs)
        return no_memory();
    for (int i = 0; i < node->input_count; i++)
        inputs[i] = tutti__form_made(node->inputs[i])->edge;
    return tutti__walk_copy(walk, node, inputs, NULL, &mark->node);
}

/* Central storage: variables, their reads and updates are those of the first replica. The others
 * bring what the updates take. False: the node is none of these. */
static bool take_central(tutti_walk *walk, tutti_node *node, tutti_walked *mark,
                         tutti_status *ret_status)
{
    *ret_status = TUTTI_OK;
    if (!mark->first || !(node->op->flags & (TUTTI_OP_HANDLE | TUTTI_OP_TAKES_HANDLE)))
        return false;
    for (int i = 0; (node->op->flags & TUTTI_OP_UPDATES) && i < node->input_count; i++) {
        tutti_edge edge;
        if (tutti__edge_type(node->inputs[i])->handle)
            continue;
        *ret_status = tutti__form_as(walk, node->inputs[i], TUTTI_FORM_WHOLE, 0, &edge);
        if (*ret_status == TUTTI_OK && !TUTTI_VEC_PUSH(&walk->to->targets, edge.node))
            *ret_status = no_memory();
        if (*ret_status != TUTTI_OK)
            return true;
    }
    mark->node = mark->first->node;
    for (int i = 0; i < node->output_count; i++)
        made(mark, i, mark->first->outputs[i].forms[0]);
    return true;
}

/* Printed once in a job; the others bring the value. */
static tutti_status take_print(tutti_walk *walk, tutti_node *node, tutti_walked *mark)
{
    for (int i = 0; i < node->input_count; i++) {
        tutti_edge edge;
        TUTTI_TRY(tutti__form_as(walk, node->inputs[i], TUTTI_FORM_WHOLE, 0, &edge));
        if (!TUTTI_VEC_PUSH(&walk->to->targets, edge.node))
            return no_memory();
        if (i < node->output_count)
            made(mark, i, (tutti_form){TUTTI_FORM_WHOLE, 0, edge});
        mark->node = edge.node;
    }
    return TUTTI_OK;
}

static bool is_queue(const tutti_node *node)
{
    if (node->op->flags & TUTTI_OP_HANDLE)
        return !tutti__is(node, "variable");
    return (node->op->flags & TUTTI_OP_TAKES_HANDLE) && node->input_count > 0 &&
           is_queue(node->inputs[0].node);
}

/* What comes from a queue comes from one: the first replica takes it and gives it to the others of
 * its process. */
static tutti_status take_queue(tutti_walk *walk, tutti_node *node, tutti_walked *mark)
{
    if (walk->spread->local < walk->spread->replicas)
        return tutti_fail(TUTTI_UNSUPPORTED,
                          "%s '%s': a queue is one process's own, and this job has several; feed the "
                          "values, or use a dataset",
                          node->op->name, node->name);
    if (!mark->first)
        return copy_whole(walk, node, mark);
    for (int i = 0; i < node->input_count; i++) { /* others may have to meet to give it whole */
        tutti_edge edge;
        if (tutti__edge_type(node->inputs[i])->handle)
            continue;
        TUTTI_TRY(tutti__form_as(walk, node->inputs[i], TUTTI_FORM_WHOLE, 0, &edge));
        if (!TUTTI_VEC_PUSH(&walk->to->targets, edge.node))
            return no_memory();
    }
    mark->node = mark->first->node;
    for (int i = 0; i < node->output_count; i++)
        made(mark, i, mark->first->outputs[i].forms[0]);
    return TUTTI_OK;
}

static bool is_group(const tutti_node *node)
{
    return tutti__is(node, "group") || (node->output_count == 0 && node->input_count == 0);
}

tutti_status tutti__walk_node(tutti_walk *walk, tutti_node *node)
{
    tutti_walked *mark;
    tutti_split way;
    double bytes;
    tutti_status status;
    const tutti_walked *first = node->scratch; /* of the first replica's walk, while this is another */
    TUTTI_TRY(begin(walk, node, &mark));
    mark->first = first ? (first->first ? first->first : first) : NULL;
    if (tutti__is(node, "parameter"))
        return take_parameter(walk, node, mark);
    if (is_group(node))
        return take_group(walk, node, mark);
    if (tutti__is(node, "print") && walk->replica > 0)
        return take_print(walk, node, mark);
    if (is_queue(node))
        return take_queue(walk, node, mark);
    if (walk->spread->central && take_central(walk, node, mark, &status))
        return status;
    if (takes_partial(walk, node))
        return copy_accumulated(walk, node, mark);
    if (passes_partial(node))
        return copy_partial(walk, node, mark);
    if (!has_input(node, TUTTI_FORM_CUT) || (node->op->flags & TUTTI_OP_TAKES_HANDLE))
        return copy_whole(walk, node, mark);
    bool cuts = choose(walk, node, &way, &bytes);
    if (may_expand(node) && (!cuts || bytes >= 1))
        return expand(walk, node, mark);
    if (cuts && walk->spread->shards > 0 && is_summed(node, &way))
        return copy_summed(walk, node, &way, mark);
    return cuts ? copy_cut(walk, node, &way, mark) : copy_whole(walk, node, mark);
}
