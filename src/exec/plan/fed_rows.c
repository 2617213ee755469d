/* fed_rows.c: devices that share a batch are each fed their rows of it, a view of what the job is
 * fed; nothing is copied on the way. */
#include "exec/plan/fed_rows.h"

#include <stdlib.h>
#include <string.h>

#include "exec/plan/plan.h"
#include "ops/shape/slice.h"
#include "program/program.h"

/* The only reader of each value that is fed, by node id; NULL where there are others. */
static bool find_readers(const tutti_graph *graph, tutti_node **reader)
{
    bool *shared = calloc(graph->nodes.count + 1, sizeof *shared);
    if (!shared)
        return false;
    for (size_t n = 0; n < graph->nodes.count; n++) {
        tutti_node *node = graph->nodes.data[n];
        for (int i = 0; i < node->input_count; i++) {
            uint32_t read = node->inputs[i].node->id;
            shared[read] = shared[read] || reader[read];
            reader[read] = node;
        }
        for (int i = 0; i < node->control_count; i++)
            shared[node->controls[i]->id] = true;
    }
    for (size_t i = 0; i < graph->results.count; i++)
        shared[graph->results.data[i].node->id] = true;
    for (size_t i = 0; i < graph->targets.count; i++)
        shared[graph->targets.data[i]->id] = true;
    for (size_t n = 0; n < graph->nodes.count; n++)
        reader[n] = shared[n] ? NULL : reader[n];
    free(shared);
    return true;
}

/* Whether it takes some rows, side by side, of a value of this type. */
static bool takes_rows(const tutti_node *node, const tutti_type *type, tutti_fed_rows *ret)
{
    tutti_slice_run runs[TUTTI_MAX_RANK];
    if (!tutti__is(node, "slice") || type->rank < 1 || !tutti_type_is_static(type))
        return false;
    tutti__slice_runs(node->attrs, node->attr_count, type->rank, type->dims, runs);
    for (int i = 1; i < type->rank; i++)
        if (!tutti__slice_is_whole(&runs[i], type->dims[i]))
            return false;
    *ret = (tutti_fed_rows){.first = runs[0].start, .count = runs[0].count};
    return runs[0].step == 1 && runs[0].count > 0;
}

/* The fed value becomes what the slice takes of it. */
static tutti_status narrow(tutti_graph *graph, tutti_node *fed, tutti_node *slice)
{
    int64_t *dims =
        (void *)tutti__arena_bytes(&graph->arena, slice->types[0].dims, sizeof fed->types[0].dims);
    if (!dims)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a plan");
    for (int i = 0; i < fed->attr_count; i++)
        if (strcmp(fed->attrs[i].name, "dims") == 0)
            fed->attrs[i].value.ints = dims;
    fed->types[0] = slice->types[0];
    for (size_t n = 0; n < graph->nodes.count; n++) {
        tutti_node *node = graph->nodes.data[n];
        for (int i = 0; i < node->control_count; i++)
            if (node->controls[i] == slice) {
                node->controls[i] = fed;
                node->grown = NULL;
            }
    }
    for (size_t i = 0; i < graph->targets.count; i++)
        if (graph->targets.data[i] == slice)
            graph->targets.data[i] = fed;
    tutti__graph_replace(graph, (tutti_edge){slice, 0}, (tutti_edge){fed, 0});
    slice->dead = true;
    return TUTTI_OK;
}

static tutti_status narrow_all(tutti_piece_graph *piece, tutti_node **reader)
{
    bool changed = false;
    for (size_t n = 0; n < piece->graph->nodes.count; n++) {
        tutti_node *fed = piece->graph->nodes.data[n];
        tutti_fed_rows rows;
        if (!tutti__is(fed, "parameter") || !reader[n] || reader[n]->control_count > 0 ||
            !takes_rows(reader[n], &fed->types[0], &rows))
            continue;
        piece->rows[tutti__int(fed, "index")] = rows;
        TUTTI_TRY(narrow(piece->graph, fed, reader[n]));
        changed = true;
    }
    return changed ? tutti__graph_sort(piece->graph) : TUTTI_OK;
}

tutti_status tutti__fed_rows_find(tutti_piece_graph *piece)
{
    if (piece->parameter_count == 0)
        return TUTTI_OK;
    tutti_node **reader = calloc(piece->graph->nodes.count + 1, sizeof *reader);
    piece->rows = calloc((size_t)piece->parameter_count, sizeof *piece->rows);
    tutti_status status = reader && piece->rows && find_readers(piece->graph, reader)
                              ? narrow_all(piece, reader)
                              : tutti_fail(TUTTI_NO_MEMORY, "no memory for a plan");
    free(reader);
    return status;
}

tutti_status tutti__fed_rows_take(const tutti_plan_piece *piece, tutti_tensor *const *values,
                                  tutti_tensor **ret)
{
    for (int i = 0; i < piece->parameter_count; i++) {
        tutti_tensor *value = values[piece->parameters[i]];
        tutti_fed_rows rows = piece->rows[i];
        ret[i] = NULL;
        tutti_status status = TUTTI_OK;
        if (rows.count > 0 && value)
            status = tutti_tensor_slice(value, 0, rows.first, rows.count, 1, &ret[i]);
        else if (value)
            ret[i] = tutti_tensor_retain(value);
        if (status != TUTTI_OK) {
            tutti__tensors_drop(i, ret);
            return status;
        }
    }
    return TUTTI_OK;
}
