/* einsum_multiply.c: the product of two labelled values, summed over labels that both have.
 *
 * Labels fall into four groups:
 *
 *     batch     in a, in b, kept
 *     rows      in a only
 *     columns   in b only
 *     inner     in a, in b, summed
 *
 * so y[batch, rows, columns] = a[batch, rows, inner] b[batch, inner, columns], a product of
 * matrices. The groups' own orders are free, a and b may change places, and a matrix may be read
 * transposed: of all ways the one that moves the fewest elements is taken. */
#include "passes/einsum.h"

typedef struct way {
    const tutti_labelled *a, *b;
    tutti_term batch, rows, columns, inner;
} way;

static double elements(const tutti_einsum_parts *parts, const tutti_term *term)
{
    double count = 1;
    for (int i = 0; i < term->rank; i++)
        count *= (double)parts->sizes[term->labels[i]];
    return count;
}

static tutti_term einsum_multiply_join(const tutti_term *first, const tutti_term *second,
                                       const tutti_term *third)
{
    tutti_term both = tutti__term_join(first, second);
    return tutti__term_join(&both, third);
}

/* `first` and all labels of `second` that it lacks. */
static tutti_term unite(const tutti_term *first, const tutti_term *second)
{
    tutti_term rest = tutti__term_within(second, ~tutti__term_set(first));
    return tutti__term_join(first, &rest);
}

/* ---- matrices ---- */

/* Whether a matrix is read as [batch, second, first]: its last axis stays the last one. */
static bool is_turned(const tutti_labelled *x, const tutti_term *first, const tutti_term *second)
{
    return second->rank > 0 && tutti__term_axis(first, x->term.labels[x->term.rank - 1]) >= 0;
}

static tutti_term order_of(const tutti_labelled *x, const tutti_term *batch,
                           const tutti_term *first, const tutti_term *second)
{
    return is_turned(x, first, second) ? einsum_multiply_join(batch, second, first)
                                       : einsum_multiply_join(batch, first, second);
}

/* Elements that have to be moved so that x has these labels. A constant is moved here, once: that
 * costs less than to move any element in each run. */
static double moved_for(const tutti_einsum_parts *parts, const tutti_labelled *x,
                        const tutti_term *order)
{
    if (tutti__term_equal(&x->term, order))
        return 0;
    return tutti__constant_of(x->edge) != NULL ? 0.25 : elements(parts, order);
}

/* The same for the result, where its order counts. */
static double moved_after(const tutti_einsum_parts *parts, const tutti_term *order, bool last)
{
    return last && !tutti__term_equal(order, &parts->wanted) ? elements(parts, order) : 0;
}

/* Elements that are moved. Of ways that move as many, a matrix times a column is the last: kernels
 * for one row are faster. */
static double price(const tutti_einsum_parts *parts, const way *w, bool last)
{
    tutti_term a = order_of(w->a, &w->batch, &w->rows, &w->inner),
               b = order_of(w->b, &w->batch, &w->inner, &w->columns),
               y = einsum_multiply_join(&w->batch, &w->rows, &w->columns);
    return moved_for(parts, w->a, &a) + moved_for(parts, w->b, &b) + moved_after(parts, &y, last) +
           (w->columns.rank == 0 && w->rows.rank > 0 ? 0.5 : 0);
}

/* A choice: who stands first, and whose order each group has. */
enum { ROWS_OF_OPERAND = 1, COLUMNS_OF_OPERAND = 2, INNER_OF_B = 4, SWAPPED = 8, BATCHES = 16 };
enum { BATCH_OF_A, BATCH_OF_B, BATCH_OF_RESULT, CHOICES = 3 * BATCHES };

static way way_of(const tutti_labelled *a, const tutti_labelled *b, uint64_t kept,
                  const tutti_term *result, int choice)
{
    bool swapped = (choice & SWAPPED) != 0;
    way w = {.a = swapped ? b : a, .b = swapped ? a : b};
    uint64_t in_a = tutti__term_set(&w.a->term), in_b = tutti__term_set(&w.b->term);
    const tutti_term *batch = choice / BATCHES == BATCH_OF_A   ? &a->term
                              : choice / BATCHES == BATCH_OF_B ? &b->term
                                                               : result;
    w.batch = tutti__term_within(batch, in_a & in_b & kept);
    w.inner = tutti__term_within(choice & INNER_OF_B ? &b->term : &a->term, in_a & in_b & ~kept);
    w.rows =
        tutti__term_within(choice & ROWS_OF_OPERAND ? &w.a->term : result, in_a & ~in_b & kept);
    w.columns =
        tutti__term_within(choice & COLUMNS_OF_OPERAND ? &w.b->term : result, in_b & ~in_a & kept);
    return w;
}

/* The cheapest way; of equal ones the first. */
static way best_way(const tutti_einsum_parts *parts, const tutti_labelled *a,
                    const tutti_labelled *b, uint64_t kept, bool last)
{
    tutti_term of_a = tutti__term_within(&a->term, kept), of_b = tutti__term_within(&b->term, kept);
    tutti_term both = unite(&of_a, &of_b);
    const tutti_term *result = last ? &parts->wanted : &both;
    const int not_deterministic = SWAPPED | INNER_OF_B;
    way best = way_of(a, b, kept, result, 0);
    double least = price(parts, &best, last);
    for (int choice = 1; choice < CHOICES; choice++) {
        way other = way_of(a, b, kept, result, choice);
        double moved = price(parts, &other, last);
        if (moved >= least ||
            (parts->rewrite->context->deterministic && choice & not_deterministic))
            continue;
        least = moved;
        best = other;
    }
    return best;
}

/* Axes of the batch stay apart while there is room beside rows and columns. */
static int batch_dims(const tutti_einsum_parts *parts, const tutti_term *batch, int64_t *ret_dims)
{
    if (batch->rank + 2 > TUTTI_MAX_RANK) {
        ret_dims[0] = (int64_t)elements(parts, batch);
        return 1;
    }
    for (int i = 0; i < batch->rank; i++)
        ret_dims[i] = parts->sizes[batch->labels[i]];
    return batch->rank;
}

/* x as [batch.., first, second], or as [batch.., second, first]. */
static tutti_status make_matrix(const tutti_einsum_parts *parts, const tutti_labelled *x,
                                const tutti_term *batch, const tutti_term *first,
                                const tutti_term *second, bool *ret_turned, tutti_edge *ret)
{
    int64_t dims[TUTTI_MAX_RANK];
    bool turned = is_turned(x, first, second);
    tutti_term order = order_of(x, batch, first, second);
    tutti_labelled arranged;
    TUTTI_TRY(tutti__einsum_arrange(parts, x, &order, &arranged));
    int rank = batch_dims(parts, batch, dims);
    dims[rank++] = (int64_t)elements(parts, turned ? second : first);
    dims[rank++] = (int64_t)elements(parts, turned ? first : second);
    *ret_turned = turned;
    return tutti__einsum_reshape(parts, arranged.edge, rank, dims, ret);
}

static tutti_status multiply_matrices(const tutti_einsum_parts *parts, const way *w,
                                      tutti_labelled *ret)
{
    bool turned_a, turned_b;
    tutti_edge inputs[2], product;
    int64_t dims[TUTTI_MAX_RANK] = {0};
    TUTTI_TRY(make_matrix(parts, w->a, &w->batch, &w->rows, &w->inner, &turned_a, &inputs[0]));
    TUTTI_TRY(make_matrix(parts, w->b, &w->batch, &w->inner, &w->columns, &turned_b, &inputs[1]));
    tutti_attr attrs[] = {TUTTI_INT("transpose_a", turned_a), TUTTI_INT("transpose_b", turned_b)};
    TUTTI_TRY(
        tutti__rewrite_add(parts->rewrite, parts->node, "matmul", 2, inputs, 2, attrs, &product));
    ret->term = einsum_multiply_join(&w->batch, &w->rows, &w->columns);
    for (int i = 0; i < ret->term.rank; i++)
        dims[i] = parts->sizes[ret->term.labels[i]];
    return tutti__einsum_reshape(parts, product, ret->term.rank, dims, &ret->edge);
}

/* ---- element by element ---- */

/* The order of axes, of a's, b's and the result's, in which the fewest elements are moved. */
static tutti_term best_order(const tutti_einsum_parts *parts, const tutti_labelled *a,
                             const tutti_labelled *b, uint64_t kept, bool last)
{
    tutti_term orders[] = {unite(&a->term, &b->term), unite(&b->term, &a->term), parts->wanted};
    int count = last && parts->wanted.rank == orders[0].rank ? 3 : 2, best = 0;
    double least = 0;
    for (int i = 0; i < count; i++) {
        tutti_term own_a = tutti__term_within(&orders[i], tutti__term_set(&a->term)),
                   own_b = tutti__term_within(&orders[i], tutti__term_set(&b->term)),
                   own_y = tutti__term_within(&orders[i], kept);
        double moved = moved_for(parts, a, &own_a) + moved_for(parts, b, &own_b) +
                       moved_after(parts, &own_y, last);
        if (i > 0 && moved >= least)
            continue;
        least = moved;
        best = i;
    }
    return orders[best];
}

/* x as it broadcasts to the labels of `order`: axes of size 1 stand for those that it lacks, but
 * for the first ones. */
static tutti_status align(const tutti_einsum_parts *parts, const tutti_labelled *x,
                          const tutti_term *order, tutti_edge *ret)
{
    int64_t dims[TUTTI_MAX_RANK] = {0};
    int rank = 0;
    tutti_term own = tutti__term_within(order, tutti__term_set(&x->term));
    tutti_labelled arranged;
    TUTTI_TRY(tutti__einsum_arrange(parts, x, &own, &arranged));
    for (int i = 0; i < order->rank; i++) {
        bool has = tutti__term_axis(&own, order->labels[i]) >= 0;
        if (has || rank > 0)
            dims[rank++] = has ? parts->sizes[order->labels[i]] : 1;
    }
    return tutti__einsum_reshape(parts, arranged.edge, rank, dims, ret);
}

static tutti_status multiply_elements(const tutti_einsum_parts *parts, const tutti_labelled *a,
                                      const tutti_labelled *b, uint64_t kept, bool last,
                                      tutti_labelled *ret)
{
    tutti_labelled product = {.term = best_order(parts, a, b, kept, last)};
    tutti_edge inputs[2];
    TUTTI_TRY(align(parts, a, &product.term, &inputs[0]));
    TUTTI_TRY(align(parts, b, &product.term, &inputs[1]));
    TUTTI_TRY(
        tutti__rewrite_add(parts->rewrite, parts->node, "mul", 2, inputs, 0, NULL, &product.edge));
    return tutti__einsum_sum(parts, &product, kept, ret);
}

/* Matrices of one row and one column are slower than a sum of products, which is fused. But
 * products of 16 bits would be rounded, and in deterministic mode the batch may be such rows
 * elsewhere. */
static bool may_sum_products(const tutti_einsum_parts *parts, const tutti_labelled *x)
{
    return !parts->rewrite->context->deterministic &&
           tutti_dtype_size(tutti__edge_type(x->edge)->dtype) > 2;
}

tutti_status tutti__einsum_multiply(const tutti_einsum_parts *parts, const tutti_labelled *a,
                                    const tutti_labelled *b, uint64_t kept, bool last,
                                    tutti_labelled *ret)
{
    uint64_t in_a = tutti__term_set(&a->term), in_b = tutti__term_set(&b->term);
    if ((in_a & in_b & ~kept) == 0 || (in_a == in_b && may_sum_products(parts, a)))
        return multiply_elements(parts, a, b, kept, last, ret);
    way w = best_way(parts, a, b, kept, last);
    return multiply_matrices(parts, &w, ret);
}
