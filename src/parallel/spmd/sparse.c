/* sparse.c: gradients that are rows at indices (of embeddings), which an update takes.
 *
 * Gathered: every replica gets the N rows of all replicas. Each receives about N D values.
 * Dense: rows are added into a table of the variable's V rows, tables are summed over the replicas
 * (2 V D values, in the bucket of the other gradients), and the rows at the N indices are taken out
 * of it: the first of equal indices has the sum, the others nothing, which is what combine_rows
 * gives. So the update moves the same rows by the same amounts, but for rounding. */
#include <string.h>

#include "parallel/spmd/rewrite.h"

typedef struct rows_of {
    int indices, rows; /* inputs of the update */
    const tutti_type *variable, *index_type, *row_type;
} rows_of;

/* Is it an update by rows that each replica has some of? */
static bool find_rows(const tutti_spmd *spmd, const tutti_node *node, rows_of *ret)
{
    size_t length = strlen(node->op->name);
    if (!(node->op->flags & TUTTI_OP_UPDATES) || length < 5 ||
        strcmp(node->op->name + length - 5, "_rows") != 0)
        return false;
    int first = 0;
    while (first < node->input_count && tutti__edge_type(node->inputs[first])->handle)
        first++;
    if (first == 0 || first + 1 >= node->input_count || node->input_count > TUTTI_SPLIT_SLOTS)
        return false;
    const tutti_partition_spec *indices = tutti__spec_of(node->inputs[first]),
                               *rows = tutti__spec_of(node->inputs[first + 1]);
    *ret =
        (rows_of){first, first + 1, tutti__edge_type(node->inputs[0]),
                  tutti__edge_type(node->inputs[first]), tutti__edge_type(node->inputs[first + 1])};
    int batch = spmd->layout->batch;
    const tutti_partition_spec *handle = tutti__spec_of(node->inputs[0]);
    for (int a = 0; a < spmd->layout->count; a++)
        if (handle->along[a].kind != TUTTI_REPLICATED)
            return false; /* its blocks take what is theirs of the rows */
    for (int a = 0; a < spmd->layout->count; a++)
        if (a != batch &&
            (indices->along[a].kind != TUTTI_REPLICATED || rows->along[a].kind != TUTTI_REPLICATED))
            return false;
    return batch >= 0 && indices->along[batch].kind == TUTTI_SPLIT &&
           rows->along[batch].kind == TUTTI_SPLIT &&
           indices->along[batch].dimension == rows->along[batch].dimension &&
           indices->along[batch].dimension < ret->index_type->rank &&
           ret->index_type->rank < TUTTI_MAX_RANK;
}

bool tutti__spmd_makes_dense(const tutti_spmd *spmd, const tutti_node *node)
{
    rows_of r;
    if (tutti__spmd_batch_ranks(spmd) == 1 || spmd->shards > 0 || spmd->central ||
        spmd->sparse == TUTTI_SPARSE_GATHER || !find_rows(spmd, node, &r))
        return false;
    return spmd->sparse == TUTTI_SPARSE_DENSE ||
           2 * r.variable->dims[0] < tutti_type_count(r.index_type);
}

int tutti__spmd_dense_rows(const tutti_spmd *spmd, const tutti_node *node)
{
    rows_of r;
    return find_rows(spmd, node, &r) ? r.rows : -1;
}

/* 1 for the first of equal indices, else 0: [k…, 1, …]. */
static tutti_status first_of_each(tutti_spmd_rewrite *rewrite, const tutti_node *node,
                                  const rows_of *r, tutti_edge indices, tutti_edge *ret)
{
    int64_t dims[TUTTI_MAX_RANK];
    tutti_node *ones, *counts, *mask;
    for (int i = 0; i < r->row_type->rank; i++)
        dims[i] = i < r->index_type->rank ? r->index_type->dims[i] : 1;
    tutti_attr attrs[] = {TUTTI_INT("dtype", r->row_type->dtype),
                          TUTTI_INTS("dims", r->row_type->rank, dims), TUTTI_FLOAT("value", 1)};
    TUTTI_TRY(tutti__spmd_add(rewrite, node, "fill", 0, NULL, 3, attrs, &ones));
    tutti_edge counted[] = {{ones, 0}, indices};
    TUTTI_TRY(tutti__spmd_add(rewrite, node, "combine_rows", 2, counted, 0, NULL, &counts));
    tutti_edge least[] = {{counts, 0}, {ones, 0}};
    TUTTI_TRY(tutti__spmd_add(rewrite, node, "minimum", 2, least, 0, NULL, &mask));
    *ret = (tutti_edge){mask, 0};
    return TUTTI_OK;
}

/* The rows' sums over all replicas, by way of a table. */
static tutti_status through_table(tutti_spmd_rewrite *rewrite, const tutti_node *node,
                                  const rows_of *r, tutti_edge indices, tutti_edge *ret)
{
    tutti_node *like, *table, *taken, *masked;
    tutti_edge all, mask;
    tutti_attr shape[] = {TUTTI_INT("dtype", r->variable->dtype),
                          TUTTI_INTS("dims", r->variable->rank, r->variable->dims)};
    TUTTI_TRY(tutti__spmd_add(rewrite, node, "fill", 0, NULL, 2, shape, &like));
    tutti_edge own[] = {tutti__placement_made(node->inputs[r->rows]),
                        tutti__placement_made(node->inputs[r->indices]),
                        {like, 0}};
    TUTTI_TRY(tutti__spmd_add(rewrite, node, "rows_to_dense", 3, own, 0, NULL, &table));
    TUTTI_TRY(tutti__reshard_reduce(rewrite, node, rewrite->spmd->layout->batch, "sum",
                                    (tutti_edge){table, 0}, &all));
    tutti_edge from[] = {all, indices};
    TUTTI_TRY(tutti__spmd_add(rewrite, node, "gather", 2, from, 1, &TUTTI_INT("axis", 0), &taken));
    TUTTI_TRY(first_of_each(rewrite, node, r, indices, &mask));
    tutti_edge both[] = {{taken, 0}, mask};
    TUTTI_TRY(tutti__spmd_add(rewrite, node, "mul", 2, both, 0, NULL, &masked));
    *ret = (tutti_edge){masked, 0};
    return TUTTI_OK;
}

tutti_status tutti__spmd_copy_dense(tutti_spmd_rewrite *rewrite, tutti_node *node,
                                    tutti_rewritten *mark)
{
    tutti_edge inputs[TUTTI_SPLIT_SLOTS];
    rows_of r;
    if (!find_rows(rewrite->spmd, node, &r))
        return tutti_fail(TUTTI_INTERNAL, "%s '%s' is no update by rows", node->op->name,
                          node->name);
    for (int i = 0; i < node->input_count; i++)
        if (i != r.rows)
            TUTTI_TRY(tutti__reshard_whole(rewrite, node->inputs[i], &inputs[i]));
    TUTTI_TRY(through_table(rewrite, node, &r, inputs[r.indices], &inputs[r.rows]));
    TUTTI_TRY(tutti__spmd_copy(rewrite, node, inputs, NULL, &mark->node));
    for (int i = 0; i < node->output_count; i++)
        tutti__spmd_made(mark, i, &mark->specs[i], (tutti_edge){mark->node, (uint32_t)i});
    return TUTTI_OK;
}
