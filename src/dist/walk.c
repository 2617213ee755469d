/* walk.c: one node of the job on one replica: in which way it is cut. */
#include "dist/walk.h"

#include <string.h>

enum { MOST_WAYS = 64 };

tutti_status tutti__walk_no_memory(void)
{
    return tutti_fail(TUTTI_NO_MEMORY, "no memory to spread a job");
}

int tutti__walk_ways(const tutti_node *node, int capacity, tutti_split *ret)
{
    tutti_type types[TUTTI_SPLIT_SLOTS];
    if (!node->op->split || node->input_count > TUTTI_SPLIT_SLOTS ||
        node->output_count > TUTTI_SPLIT_SLOTS)
        return 0;
    tutti_infer rule = tutti__node_rule(node, types);
    int count = node->op->split(&rule, capacity, ret);
    return count < capacity ? count : capacity;
}

/* ---- what a node becomes ---- */

static tutti_status begin(tutti_walk *walk, tutti_node *node, tutti_walked **ret)
{
    tutti_walked *mark = tutti__arena_take(walk->scratch, sizeof *mark);
    if (!mark)
        return tutti__walk_no_memory();
    *mark = (tutti_walked){0};
    mark->outputs =
        tutti__arena_array(walk->scratch, (size_t)node->output_count + 1, sizeof *mark->outputs);
    if (!mark->outputs)
        return tutti__walk_no_memory();
    memset(mark->outputs, 0, ((size_t)node->output_count + 1) * sizeof *mark->outputs);
    node->scratch = mark;
    *ret = mark;
    return TUTTI_OK;
}

void tutti__walk_made(tutti_walked *mark, int output, tutti_form form)
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

tutti_status tutti__walk_whole(tutti_walk *walk, tutti_node *node, tutti_walked *mark)
{
    tutti_edge *inputs =
        tutti__arena_array(walk->scratch, (size_t)node->input_count + 1, sizeof *inputs);
    if (!inputs)
        return tutti__walk_no_memory();
    for (int i = 0; i < node->input_count; i++)
        TUTTI_TRY(tutti__form_as(walk, node->inputs[i], TUTTI_FORM_WHOLE, 0, &inputs[i]));
    TUTTI_TRY(tutti__walk_copy(walk, node, inputs, NULL, &mark->node));
    tutti__walk_keep_whole(walk, node, mark->node);
    for (int i = 0; i < node->output_count; i++)
        tutti__walk_made(mark, i, (tutti_form){TUTTI_FORM_WHOLE, 0, {mark->node, (uint32_t)i}});
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

/* What a way costs in bytes; negative: it does not fit the batch, or bits would depend on the cut
 * in deterministic mode. */
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
        if (axis == TUTTI_PARTIAL_PROD && walk->spread->shards > 0 &&
            tutti_dtype_is_float(node->types[i].dtype))
            return -1; /* products round in the order in which they are made: one makes it all */
        if (axis < TUTTI_WHOLE)
            sum += 1e-2 + 1e-9 * bytes_of(&node->types[i]);
    }
    if (way->attr) {
        const tutti_attr *attr = tutti_attr_find(node->attrs, node->attr_count, way->attr);
        int64_t size =
            attr->kind == TUTTI_ATTR_INT ? attr->value.i : attr->value.ints[way->attr_index];
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
            TUTTI_TRY(tutti__form_reduce(walk, node, combination(axis), form.edge, &form.edge));
        tutti__walk_made(mark, i, form);
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
        tutti__node_mark_like(walk->from->nodes.data[n], node);
        walk->from->nodes.data[n]->origin = node->origin;
        walk->from->nodes.data[n]->file = node->file;
        walk->from->nodes.data[n]->line = node->line;
    }
    TUTTI_TRY(walk_from(walk, first));
    for (int i = 0; i < node->output_count; i++) {
        tutti_edge edge = tutti__edge(outputs[i]);
        tutti__walk_made(mark, i, *tutti__form_made(edge));
        mark->node = mark->outputs[i].forms[0].edge.node;
    }
    return TUTTI_OK;
}

static bool may_expand(const tutti_node *node)
{
    return node->op->expand && node->input_count <= TUTTI_SPLIT_SLOTS &&
           node->output_count <= TUTTI_SPLIT_SLOTS;
}

/* Of rows whose number depends on data nobody knows whose they are: every replica has all. */
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

tutti_status tutti__walk_node(tutti_walk *walk, tutti_node *node)
{
    tutti_walked *mark;
    tutti_split way;
    double bytes;
    tutti_status status;
    const tutti_walked *first =
        node->scratch; /* of the first replica's walk, while this is another */
    TUTTI_TRY(begin(walk, node, &mark));
    mark->first = first ? (first->first ? first->first : first) : NULL;
    if (tutti__is(node, "parameter"))
        return tutti__walk_take_parameter(walk, node, mark);
    if (tutti__walk_is_group(node))
        return tutti__walk_take_group(walk, node, mark);
    if (tutti__is(node, "print") && walk->replica > 0)
        return tutti__walk_take_print(walk, node, mark);
    if (tutti__walk_is_queue(node))
        return tutti__walk_take_queue(walk, node, mark);
    TUTTI_TRY(tutti__walk_check_read(walk, node));
    if (walk->spread->central && tutti__walk_take_central(walk, node, mark, &status))
        return status;
    if (tutti__walk_takes_partial(walk, node))
        return tutti__walk_copy_accumulated(walk, node, mark);
    if (tutti__walk_passes_partial(node))
        return tutti__walk_copy_partial(walk, node, mark);
    if (tutti__walk_makes_dense(walk, node))
        return tutti__walk_copy_dense(walk, node, mark);
    if (!has_input(node, TUTTI_FORM_CUT) || (node->op->flags & TUTTI_OP_TAKES_HANDLE) ||
        depends_on_data(node))
        return tutti__walk_whole(walk, node, mark);
    bool cuts = choose(walk, node, &way, &bytes);
    if (may_expand(node) && (!cuts || bytes >= 1))
        return expand(walk, node, mark);
    if (cuts && walk->spread->shards > 0 && tutti__walk_is_summed(node, &way))
        return tutti__walk_copy_summed(walk, node, &way, mark);
    return cuts ? copy_cut(walk, node, &way, mark) : tutti__walk_whole(walk, node, mark);
}
