/* einsum.c: an einsum becomes sums, products of matrices and transposes, which have fast kernels:
 *
 *     bqhd,bkhd->bhqk  ->  matmul(transpose(a), transpose(b)){transpose_b}
 *
 * Labels that one operand alone has, and the result has not, are summed first. Then two operands at
 * a time are multiplied, first those that are cheap, until one is left, and labels that neither the
 * result nor another operand needs are summed in that product.
 *
 * An einsum stays as it is where a term has a label twice (a diagonal), where an axis is empty, for
 * integers, and for types without a kernel for products. It rounds as often as a product of
 * matrices: operands of 16 bits are widened where there is a step in between. */
#include "passes/einsum.h"

#include "base/pool.h"

/* Whether the device has a kernel for products of matrices of a type. */
static bool has_product(const tutti_pass_context *context, tutti_dtype dtype)
{
    const tutti_device *device = context == NULL ? NULL : context->device;
    if (device == NULL || device->target->kernels == NULL || !tutti_dtype_is_float(dtype))
        return false;
    tutti_type matrix = TUTTI_TYPE(dtype, 1, 1), inputs[] = {matrix, matrix};
    tutti_attr attrs[] = {TUTTI_INT("transpose_a", 0), TUTTI_INT("transpose_b", 0)};
    tutti_kernel_query query = {.node = {.op = tutti_op_find("matmul"),
                                         .name = "matmul",
                                         .input_count = 2,
                                         .output_count = 1,
                                         .inputs = inputs,
                                         .attrs = attrs,
                                         .attr_count = 2,
                                         .outputs = &matrix},
                                .threads = tutti__pool_most(device->pool),
                                .deterministic = context->deterministic};
    return tutti__device_kernel(device, &query) != NULL;
}

static bool has_diagonal(const tutti_term *term)
{
    for (int i = 0; i < term->rank; i++)
        if (tutti__term_count(term, term->labels[i]) > 1)
            return true;
    return false;
}

/* Reads equation and sizes; false where the node stays as it is. */
static bool take_apart(tutti_einsum_parts *parts)
{
    const tutti_node *node = parts->node;
    tutti_equation *equation = &parts->equation;
    int ranks[TUTTI_EINSUM_OPERANDS] = {0};
    if (node->input_count > TUTTI_EINSUM_OPERANDS || !tutti_type_is_static(&node->types[0]))
        return false;
    for (int i = 0; i < node->input_count; i++)
        ranks[i] = tutti__edge_type(node->inputs[i])->rank;
    if (tutti__equation_parse(node->op, node->name, tutti__str(node, "equation"), node->input_count,
                              ranks, equation) != TUTTI_OK ||
        has_diagonal(&equation->output))
        return false;
    for (int label = 0; label < TUTTI_LABELS; label++)
        parts->sizes[label] = 1;
    for (int i = 0; i < node->input_count; i++) {
        const tutti_type *type = tutti__edge_type(node->inputs[i]);
        if (has_diagonal(&equation->operands[i]) || tutti_type_count(type) < 1)
            return false;
        for (int axis = 0; axis < type->rank; axis++)
            if (type->dims[axis] != 1)
                parts->sizes[equation->operands[i].labels[axis]] = type->dims[axis];
    }
    for (int i = 0; i < equation->output.rank; i++)
        if (parts->sizes[equation->output.labels[i]] > 1)
            parts->wanted.labels[parts->wanted.rank++] = equation->output.labels[i];
    return true;
}

/* ---- which two are next ----
 *
 * `labels` are sets, one for each operand that is left, as the equation has them: also of size 1.
 */

/* The labels that the result or an operand other than these two has. */
static uint64_t needed_beside(const tutti_einsum_parts *parts, int count, const uint64_t *labels,
                              int a, int b)
{
    uint64_t needed = tutti__term_set(&parts->equation.output);
    for (int i = 0; i < count; i++)
        if (i != a && i != b)
            needed |= labels[i];
    return needed;
}

/* How many multiplications two operands take. In deterministic mode all labels of the result count
 * alike: see einsum.h. */
static double multiplications(const tutti_einsum_parts *parts, uint64_t labels)
{
    const double alike = 64;
    uint64_t result = tutti__term_set(&parts->equation.output);
    double count = 1;
    for (int label = 0; label < TUTTI_LABELS; label++)
        if (labels >> label & 1)
            count *= parts->rewrite->context->deterministic && (result >> label & 1)
                         ? alike
                         : (double)parts->sizes[label];
    return count;
}

typedef struct pair {
    int a, b; /* a < b */
    bool sums;
    double cost;
} pair;

static bool is_better(const pair *one, const pair *other)
{
    return one->sums != other->sums ? one->sums : one->cost < other->cost;
}

/* Of the pairs that sum over a label, or of all if none does, the first with the fewest
 * multiplications. */
static pair next_pair(const tutti_einsum_parts *parts, int count, const uint64_t *labels)
{
    pair best = {0};
    for (int a = 0; a < count; a++)
        for (int b = a + 1; b < count; b++) {
            uint64_t shared = labels[a] & labels[b];
            pair other = {a, b, (shared & ~needed_beside(parts, count, labels, a, b)) != 0,
                          multiplications(parts, labels[a] | labels[b])};
            if (best.b == 0 || is_better(&other, &best))
                best = other;
        }
    return best;
}

/* What is left once the product stands in the place of a. */
static void merge_labels(const tutti_einsum_parts *parts, const pair *p, int count,
                         uint64_t *labels)
{
    uint64_t needed = needed_beside(parts, count, labels, p->a, p->b);
    labels[p->a] = (labels[p->a] | labels[p->b]) & needed;
    for (int i = p->b; i + 1 < count; i++)
        labels[i] = labels[i + 1];
}

static void read_labels(const tutti_einsum_parts *parts, uint64_t *ret_labels)
{
    for (int i = 0; i < parts->node->input_count; i++)
        ret_labels[i] = tutti__term_set(&parts->equation.operands[i]);
}

/* Whether no product on the way has too many axes. */
static bool ranks_fit(const tutti_einsum_parts *parts)
{
    uint64_t labels[TUTTI_EINSUM_OPERANDS];
    read_labels(parts, labels);
    for (int count = parts->node->input_count; count > 2; count--) {
        pair p = next_pair(parts, count, labels);
        merge_labels(parts, &p, count, labels);
        int rank = 0;
        for (uint64_t rest = labels[p.a]; rest != 0; rest &= rest - 1)
            rank++;
        if (rank > TUTTI_MAX_RANK)
            return false;
    }
    return true;
}

/* ---- nodes ---- */

/* The labels that operands other than these two really have, and those of the result. */
static uint64_t kept_beside(const tutti_einsum_parts *parts, int count,
                            const tutti_labelled *values, int a, int b)
{
    uint64_t kept = tutti__term_set(&parts->wanted);
    for (int i = 0; i < count; i++)
        if (i != a && i != b)
            kept |= tutti__term_set(&values[i].term);
    return kept;
}

static tutti_status cast(const tutti_einsum_parts *parts, tutti_dtype dtype, tutti_edge *edge)
{
    if (tutti__edge_type(*edge)->dtype == dtype)
        return TUTTI_OK;
    return tutti__rewrite_add(parts->rewrite, parts->node, "cast", 1, edge, 1,
                              &TUTTI_INT("dtype", dtype), edge);
}

/* The labels of an operand's axes of more than 1 element. */
static tutti_term own_term(const tutti_einsum_parts *parts, int operand)
{
    const tutti_type *type = tutti__edge_type(parts->node->inputs[operand]);
    const tutti_term *term = &parts->equation.operands[operand];
    tutti_term own = {0};
    for (int axis = 0; axis < type->rank; axis++)
        if (type->dims[axis] > 1)
            own.labels[own.rank++] = term->labels[axis];
    return own;
}

/* One operand without axes of size 1, summed over labels that are not in `kept`. It is summed
 * first: the order of sums may depend on how many axes there are. */
static tutti_status read_operand(const tutti_einsum_parts *parts, int operand, uint64_t kept,
                                 bool widens, tutti_labelled *ret)
{
    tutti_labelled x = {parts->node->inputs[operand], parts->equation.operands[operand]};
    uint64_t own = tutti__term_set(&ret->term);
    int64_t dims[TUTTI_MAX_RANK] = {0};
    if (widens)
        TUTTI_TRY(cast(parts, TUTTI_F32, &x.edge));
    TUTTI_TRY(tutti__einsum_sum(parts, &x, kept | ~own, &x));
    ret->term = tutti__term_within(&x.term, own);
    for (int i = 0; i < ret->term.rank; i++)
        dims[i] = parts->sizes[ret->term.labels[i]];
    return tutti__einsum_reshape(parts, x.edge, ret->term.rank, dims, &ret->edge);
}

/* The operands, summed over what one of them alone has. 16 bits are widened where that, or a
 * product of two, is not the last step. */
static tutti_status read_operands(const tutti_einsum_parts *parts, tutti_labelled *ret)
{
    int count = parts->node->input_count;
    uint64_t kept[TUTTI_EINSUM_OPERANDS];
    bool sums = false;
    for (int i = 0; i < count; i++)
        ret[i] = (tutti_labelled){.term = own_term(parts, i)};
    for (int i = 0; i < count; i++) {
        kept[i] = kept_beside(parts, count, ret, i, i);
        sums |= (tutti__term_set(&ret[i].term) & ~kept[i]) != 0;
    }
    bool widens =
        tutti_dtype_size(parts->node->types[0].dtype) == 2 && (count > 2 || (count == 2 && sums));
    for (int i = 0; i < count; i++)
        TUTTI_TRY(read_operand(parts, i, kept[i], widens, &ret[i]));
    return TUTTI_OK;
}

/* Multiplies until one value is left. */
static tutti_status multiply_all(const tutti_einsum_parts *parts, tutti_labelled *values)
{
    uint64_t labels[TUTTI_EINSUM_OPERANDS];
    read_labels(parts, labels);
    for (int count = parts->node->input_count; count > 1; count--) {
        pair p = next_pair(parts, count, labels);
        TUTTI_TRY(tutti__einsum_multiply(parts, &values[p.a], &values[p.b],
                                         kept_beside(parts, count, values, p.a, p.b), count == 2,
                                         &values[p.a]));
        merge_labels(parts, &p, count, labels);
        for (int i = p.b; i + 1 < count; i++)
            values[i] = values[i + 1];
    }
    return TUTTI_OK;
}

static tutti_status rule(tutti_rewrite *rewrite, tutti_node *node, tutti_edge *ret)
{
    tutti_einsum_parts parts = {.rewrite = rewrite, .node = node};
    tutti_labelled values[TUTTI_EINSUM_OPERANDS], result;
    tutti_edge shaped;
    const tutti_type *type = &node->types[0];
    if (!tutti__is(node, "einsum") || !has_product(rewrite->context, type->dtype) ||
        !take_apart(&parts) || !ranks_fit(&parts))
        return TUTTI_OK;
    TUTTI_TRY(read_operands(&parts, values));
    TUTTI_TRY(multiply_all(&parts, values));
    TUTTI_TRY(tutti__einsum_arrange(&parts, &values[0], &parts.wanted, &result));
    TUTTI_TRY(tutti__einsum_reshape(&parts, result.edge, type->rank, type->dims, &shaped));
    TUTTI_TRY(cast(&parts, type->dtype, &shaped));
    *ret = shaped;
    return TUTTI_OK;
}

static tutti_status einsum_run(tutti_graph *graph, const tutti_pass_context *context,
                               int *ret_changes)
{
    return tutti__rewrite_nodes(graph, context, rule, ret_changes);
}

const tutti_pass tutti_pass_einsum = {
    .name = "einsum",
    .doc = "an einsum becomes sums, products of matrices and transposes",
    .stage = TUTTI_PASS_PARTITION,
    .order = 42,
    .run = einsum_run,
};
