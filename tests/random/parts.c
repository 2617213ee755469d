/* parts.c: what steps are made of: values found, weights made, shapes brought into form. */
#include <stdlib.h>

#include "builder.h"

int64_t odd_size(builder *b, int most)
{
    static const int64_t sizes[] = {1,  2,  3,  4,  5,  7,  8,  9,  11, 13,  15,  16,  17,
                                    23, 31, 32, 33, 47, 63, 64, 65, 96, 127, 128, 129, 257};
    int count = 0;
    if (recipe_large(b->recipe.seed))
        most *= 4;
    while (count < (int)(sizeof sizes / sizeof *sizes) && sizes[count] <= most)
        count++;
    return sizes[below(b, count < 1 ? 1 : count)];
}

int first_axis(const builder *b)
{
    return b->batched ? 1 : 0;
}

int any_axis(builder *b, tutti_sym x)
{
    int first = first_axis(b), rank = rank_of(x);
    return rank > first ? first + below(b, rank - first) : -1;
}

tutti_sym earlier(builder *b)
{
    int index = below(b, b->starts + b->step);
    b->used[index] = true;
    return b->values[index];
}

static bool same_shape(tutti_sym x, tutti_sym y)
{
    tutti_type a = tutti_sym_type(x), c = tutti_sym_type(y);
    a.handle = c.handle = false;
    return tutti_type_equal(&a, &c);
}

tutti_sym like_shaped(builder *b, tutti_sym x)
{
    int present = b->starts + b->step, from = below(b, present);
    for (int i = 0; i < present; i++) {
        int index = (from + i) % present;
        tutti_sym other = b->values[index];
        if (same_shape(x, other) && (other.node != x.node || other.index != x.index)) {
            b->used[index] = true;
            return other;
        }
    }
    return x;
}

tutti_sym at_most(builder *b, tutti_sym x, int axis, int64_t size)
{
    return dim_of(x, axis) > size ? tutti_slice_axis(x, axis, 0, size) : x;
}

/* In one axis what stands from `axis` on. */
static tutti_sym joined_from(tutti_sym x, int axis)
{
    tutti_type type = tutti_sym_type(x);
    int64_t dims[TUTTI_MAX_RANK], count = 1;
    for (int i = 0; i < axis; i++)
        dims[i] = type.dims[i];
    for (int i = axis; i < type.rank; i++)
        count *= type.dims[i];
    dims[axis] = count;
    return (tutti_reshape)(x, axis + 1, dims);
}

static int64_t divisor(builder *b, int64_t of)
{
    for (int64_t d = 2 + below(b, 4); d < of && of > 0; d++)
        if (of % d == 0)
            return d;
    return 1;
}

tutti_sym with_rank(builder *b, tutti_sym x, int rank)
{
    int first = first_axis(b), have = rank_of(x);
    if (have > rank)
        return joined_from(x, rank - 1 < first ? first : rank - 1);
    tutti_type type = tutti_sym_type(x);
    for (; have < rank; have++) {
        int64_t last = have > first ? type.dims[have - 1] : 1, left = divisor(b, last);
        if (have > first)
            type.dims[have - 1] = left;
        type.dims[have] = have > first && last >= 0 ? (left ? last / left : last) : 1;
    }
    return have == rank_of(x) ? x : (tutti_reshape)(x, rank, type.dims);
}

static tutti_tensor *start_value(builder *b, tutti_dtype dtype, double middle, double scale,
                                 int rank, const int64_t *dims)
{
    tutti_tensor *tensor = NULL;
    if (tutti_tensor_create(dtype, rank, dims, &tensor) != TUTTI_OK)
        abort();
    for (int64_t i = 0; i < tutti_tensor_count(tensor); i++)
        tutti_tensor_set(tensor, i,
                         (double)(float)(middle + scale * draw_between(&b->draw, -1, 1)));
    return tensor;
}

tutti_sym weight(builder *b, double middle, double scale, int rank, const int64_t *dims)
{
    tutti_dtype kept = b->dtype == TUTTI_F64 ? TUTTI_F64 : TUTTI_F32;
    bool constant = one_in(b, 5);
    tutti_tensor *start = start_value(b, kept, middle, scale, rank, dims);
    tutti_sym sym;
    if (constant || b->made == MOST_WEIGHTS) {
        sym = tutti_constant(b->graph, start);
    } else if (b->again) {
        sym = b->weights[b->made++];
    } else {
        sym = tutti_variable(b->graph, tutti_tensor_init(start), .name = "w");
        b->weights[b->made++] = sym;
        b->weight_count = b->made;
    }
    tutti_tensor_release(start);
    return kept == b->dtype ? sym : tutti_cast(sym, b->dtype);
}

tutti_sym weight_against(builder *b, tutti_sym x)
{
    tutti_type type = tutti_sym_type(x);
    int drop = below(b, type.rank + 1);
    if (b->batched && drop == 0 && type.rank > 0)
        type.dims[0] = 1;
    for (int i = drop; i < type.rank; i++)
        type.dims[i - drop] = one_in(b, 3) ? 1 : type.dims[i];
    return weight(b, 0.2, 0.7, type.rank - drop, type.dims);
}

tutti_tensor *feed_value(const builder *b, int index, int round, int64_t rows)
{
    const fed *f = &b->fed[index];
    tutti_type type = f->type;
    if (type.rank > 0 && type.dims[0] == TUTTI_ANY)
        type.dims[0] = rows;
    tutti_tensor *tensor = NULL;
    if (tutti_tensor_create(type.dtype, type.rank, type.dims, &tensor) != TUTTI_OK)
        abort();
    draws d = draws_of(b->recipe.seed, 77 + (uint64_t)round, (uint64_t)index);
    for (int64_t i = 0; i < tutti_tensor_count(tensor); i++) {
        double number = draw_between(&d, f->low, f->high);
        if (tutti_dtype_is_int(type.dtype))
            tutti_tensor_set_int(tensor, i, f->counter ? round : (int64_t)number);
        else if (type.dtype == TUTTI_BOOL)
            tutti_tensor_set(tensor, i, number > 0);
        else /* numbers that every type holds */
            tutti_tensor_set(tensor, i,
                             (double)tutti_bf16_to_f32(tutti_f32_to_bf16((float)number)));
    }
    return tensor;
}

static tutti_sym add_feed(builder *b, fed f)
{
    if (b->fed_count == MOST_FEEDS)
        abort();
    b->fed[b->fed_count] = f;
    if (b->eager) {
        tutti_tensor *value = feed_value(b, b->fed_count, b->round, b->rows);
        b->held[b->held_count++] = value;
        f.sym = tutti_eager_feed(b->eager, value);
    } else {
        f.sym = (tutti_placeholder)(b->graph, f.type);
        if (b->batched && f.type.rank > 0)
            f.sym = tutti_split_batch(f.sym);
    }
    b->fed[b->fed_count++] = f;
    return f.sym;
}

tutti_sym feed(builder *b, tutti_dtype dtype, int rank, const int64_t *dims, double low,
               double high)
{
    return add_feed(b, (fed){.type = tutti_type_make(dtype, rank, dims), .low = low, .high = high});
}

tutti_sym round_counter(builder *b)
{
    return add_feed(b,
                    (fed){.type = tutti_type_make(TUTTI_I64, 0, NULL), .high = 1, .counter = true});
}

tutti_sym activation(builder *b, tutti_sym x)
{
    switch (below(b, 14)) {
    case 0:
    case 1:
    case 2:
        return tutti_relu(x);
    case 3:
        return tutti_tanh(x);
    case 4:
        return tutti_sigmoid(x);
    case 5:
        return tutti_gelu(x);
    case 6:
        return tutti_gelu(x, .approximate = true);
    case 7:
        return tutti_silu(x);
    case 8:
        return tutti_relu6(x);
    case 9:
        return tutti_leaky_relu(x, 0.2);
    case 10:
        return tutti_elu(x, 0.7);
    default:
        return x;
    }
}
