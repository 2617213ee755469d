/* steps_matrix.c: products of matrices with what stands round them. */
#include "builder.h"

static tutti_sym dense(builder *b, tutti_sym x)
{
    if (rank_of(x) < 2)
        x = with_rank(b, x, 2);
    int64_t in = dim_of(x, -1), out = odd_size(b, 65);
    bool turned = one_in(b, 3);
    double scale = 1.5 / (double)(in < 4 ? 2 : in < 16 ? 4 : 8);
    tutti_sym w = turned ? WEIGHT(b, 0, scale, out, in) : WEIGHT(b, 0, scale, in, out);
    tutti_sym y = tutti_matmul(x, w, .transpose_b = turned);
    if (!one_in(b, 4))
        y = tutti_add(y, WEIGHT(b, 0, 0.5, out));
    y = activation(b, y);
    return one_in(b, 3) ? tutti_add(like_shaped(b, y), y) : y;
}

/* Two projections of one value, multiplied with each other. */
static tutti_sym gated(builder *b, tutti_sym x)
{
    if (rank_of(x) < 2)
        x = with_rank(b, x, 2);
    int64_t in = dim_of(x, -1), out = odd_size(b, 33);
    tutti_sym left = tutti_matmul(x, WEIGHT(b, 0, 0.3, in, out)),
              right = tutti_matmul(x, WEIGHT(b, 0, 0.3, in, out));
    return tutti_mul(left, tutti_sigmoid(right));
}

/* x x^T, batched where x has more axes; with both operands from one value. */
static tutti_sym with_itself(builder *b, tutti_sym x)
{
    x = with_rank(b, x, b->batched ? 3 : rank_of(x) < 2 ? 2 : rank_of(x));
    x = at_most(b, at_most(b, x, -1, 24), -2, 24);
    bool first = one_in(b, 2);
    return tutti_mul(tutti_matmul(x, x, .transpose_a = first, .transpose_b = !first), 0.25);
}

static tutti_sym batched(builder *b, tutti_sym x)
{
    x = with_rank(b, x, 3);
    int64_t rows = dim_of(x, 1), columns = dim_of(x, 2), out = odd_size(b, 17);
    bool shared = b->batched || one_in(b, 2);
    tutti_sym w =
        shared ? WEIGHT(b, 0, 0.3, out, rows) : WEIGHT(b, 0, 0.3, dim_of(x, 0), out, rows);
    tutti_sym y = tutti_matmul(w, x);
    if (one_in(b, 2))
        y = tutti_add(y, WEIGHT(b, 0, 0.3, columns));
    return activation(b, y);
}

static tutti_sym einsum(builder *b, tutti_sym x)
{
    x = with_rank(b, x, 3);
    tutti_sym w = WEIGHT(b, 0, 0.4, dim_of(x, 2), odd_size(b, 9), odd_size(b, 5));
    return one_in(b, 2) ? tutti_einsum("bij,jkl->bikl", x, w) : tutti_einsum("bij,jkl->blik", x, w);
}

/* Two products into one sum, as gradients of a value that several products use. */
static tutti_sym sum_of_products(builder *b, tutti_sym x)
{
    if (rank_of(x) < 2)
        x = with_rank(b, x, 2);
    int64_t in = dim_of(x, -1), out = odd_size(b, 33);
    tutti_sym y = tutti_matmul(x, WEIGHT(b, 0, 0.3, in, out));
    return tutti_add(y, tutti_matmul(activation(b, x), WEIGHT(b, 0, 0.3, in, out)));
}

const step_kind matrix_steps[] = {
    {"dense", dense, 6},
    {"gated", gated, 1},
    {"with_itself", with_itself, 1},
    {"batched", batched, 2},
    {"einsum", einsum, 1},
    {"sum_of_products", sum_of_products, 2},
    {0},
};
