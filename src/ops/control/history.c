/* history.c: see history.h. */
#include "ops/control/history.h"

bool tutti__history_fixed(const tutti_type *type)
{
    for (int i = 0; i < type->rank; i++)
        if (type->dims[i] == TUTTI_ANY)
            return false;
    return true;
}

/* [rounds or 1, rank] */
static tutti_status list_shapes(int64_t rounds, int step, tutti_tensor *const *values,
                                const tutti_tensor *last, tutti_tensor **ret)
{
    const tutti_type *type = tutti_tensor_type(rounds ? values[0] : last);
    int64_t dims[2] = {1, type->rank};
    for (int64_t r = 1; r < rounds && dims[0] == 1; r++)
        if (!tutti_type_equal(tutti_tensor_type(values[r * step]), type))
            dims[0] = rounds;
    TUTTI_TRY(tutti_tensor_create(TUTTI_I64, 2, dims, ret));
    int64_t *to = tutti_tensor_data(*ret);
    for (int64_t r = 0; r < dims[0] && type->rank > 0; r++)
        memcpy(to + r * type->rank, r ? tutti_tensor_dims(values[r * step]) : type->dims,
               (size_t)type->rank * sizeof *to);
    return TUTTI_OK;
}

/* Zeros [rounds, the largest of each dimension]. */
static tutti_status make_room(int64_t rounds, tutti_dtype dtype, const tutti_tensor *shapes,
                              tutti_tensor **ret)
{
    int rank = (int)tutti_tensor_dims(shapes)[1];
    int64_t dims[TUTTI_MAX_RANK + 1] = {rounds};
    if (rank == TUTTI_MAX_RANK)
        return tutti_fail(TUTTI_UNSUPPORTED,
                          "a loop variable has %d dimensions; its history would have more", rank);
    for (int64_t i = 0; i < tutti_tensor_count(shapes); i++) {
        int64_t dim = tutti_tensor_get_int(shapes, i), *most = &dims[1 + i % rank];
        *most = dim > *most ? dim : *most;
    }
    return tutti_tensor_create(dtype, rank + 1, dims, ret);
}

/* The leading block of row `round`, of the shape [1, dims...]. */
static tutti_status block_of(tutti_tensor *stacked, int64_t round, const tutti_type *type,
                             tutti_tensor **ret)
{
    tutti_tensor *block, *smaller;
    TUTTI_TRY(tutti_tensor_slice(stacked, 0, round, 1, 1, &block));
    for (int i = 0; i < type->rank; i++) {
        tutti_status status = tutti_tensor_slice(block, 1 + i, 0, type->dims[i], 1, &smaller);
        tutti_tensor_release(block);
        TUTTI_TRY(status);
        block = smaller;
    }
    *ret = block;
    return TUTTI_OK;
}

static tutti_status history_put(tutti_tensor *stacked, int64_t round, tutti_tensor *value)
{
    const tutti_type *type = tutti_tensor_type(value);
    int64_t dims[TUTTI_MAX_RANK] = {1};
    tutti_tensor *block, *row;
    memcpy(dims + 1, type->dims, (size_t)type->rank * sizeof *dims);
    TUTTI_TRY(block_of(stacked, round, type, &block));
    tutti_status status = tutti_tensor_reshape(value, type->rank + 1, dims, &row);
    if (status == TUTTI_OK) {
        status = tutti_tensor_copy(block, row);
        tutti_tensor_release(row);
    }
    tutti_tensor_release(block);
    return status;
}

tutti_status tutti__history_stack(int64_t rounds, int step, tutti_tensor *const *values,
                                  const tutti_tensor *last, tutti_tensor **ret_stacked,
                                  tutti_tensor **ret_shapes)
{
    tutti_tensor *shapes, *stacked = NULL;
    TUTTI_TRY(list_shapes(rounds, step, values, last, &shapes));
    tutti_status status = make_room(rounds, tutti_tensor_dtype(last), shapes, &stacked);
    for (int64_t r = 0; status == TUTTI_OK && r < rounds; r++)
        status = history_put(stacked, r, values[r * step]);
    if (status == TUTTI_OK) {
        *ret_stacked = stacked;
        *ret_shapes = shapes;
        return TUTTI_OK;
    }
    tutti_tensor_release(stacked);
    tutti_tensor_release(shapes);
    return status;
}

static bool is_shapes(const tutti_type *shapes, int rank)
{
    return shapes->dtype == TUTTI_I64 && shapes->rank == 2 &&
           (shapes->dims[1] == rank || shapes->dims[1] == TUTTI_ANY);
}

tutti_status tutti__history_infer(const tutti_infer *node, int first, tutti_type *ret_value)
{
    const tutti_type *history = &node->inputs[first], *shapes = &node->inputs[first + 1],
                     *round = &node->inputs[first + 2];
    char a[TUTTI_TYPE_TEXT], b[TUTTI_TYPE_TEXT];
    const int64_t *known;
    int rank = history->rank - 1, hints = RULE_INTS(node, "dims", &known);
    if (rank < 0 || !is_shapes(shapes, rank))
        return RULE_FAIL(node, TUTTI_INVALID,
                         "history is %s and shapes are %s; needs [rounds, ...] and "
                         "i64[rounds or 1, its other axes]",
                         tutti_type_text(history, a), tutti_type_text(shapes, b));
    if (round->dtype != TUTTI_I64 || round->rank != 0)
        return RULE_FAIL(node, TUTTI_INVALID, "round is %s, needs an i64 scalar",
                         tutti_type_text(round, a));
    if (hints != 0 && hints != rank)
        return RULE_FAIL(node, TUTTI_INVALID, "dims has %d entries, a value %d axes", hints, rank);
    tutti_type value = {.dtype = history->dtype, .rank = rank};
    for (int i = 0; i < rank; i++) {
        int64_t hint = hints && known[i] >= 0 ? known[i] : TUTTI_ANY;
        int64_t dim = shapes->dims[0] == 1 ? history->dims[1 + i] : TUTTI_ANY;
        if (!tutti__shape_merge(hint, dim, &value.dims[i]))
            return RULE_FAIL(node, TUTTI_INVALID, "dims says %lld for axis %d of a row of %s",
                             (long long)hint, i, tutti_type_text(history, a));
    }
    *ret_value = value;
    return TUTTI_OK;
}

tutti_status tutti__history_find(const tutti_kernel_call *call, int first, tutti_move *ret_move,
                                 int64_t *ret_start)
{
    const tutti_view *history = &call->inputs[first], *shapes = &call->inputs[first + 1];
    int64_t round = tutti_view_get_int(&call->inputs[first + 2], 0), rounds = history->dims[0];
    int64_t strides[TUTTI_MAX_RANK];
    int rank = history->rank - 1;
    tutti_move move = {.rank = rank, .size = tutti_dtype_size(history->dtype)};
    if (round < 0 || round >= rounds || (shapes->dims[0] != 1 && shapes->dims[0] != rounds))
        return RULE_FAIL(call, TUTTI_OUT_OF_RANGE,
                         "round %lld, there are %lld, and the shapes of %lld", (long long)round,
                         (long long)rounds, (long long)shapes->dims[0]);
    tutti__strides_of(history->rank, history->dims, strides);
    for (int i = 0; i < rank; i++) {
        int64_t row = shapes->dims[0] == 1 ? 0 : round;
        move.dims[i] = tutti_view_get_int(shapes, row * rank + i);
        move.from[i] = strides[1 + i];
        if (move.dims[i] < 0 || move.dims[i] > history->dims[1 + i])
            return RULE_FAIL(call, TUTTI_OUT_OF_RANGE,
                             "the value of round %lld has %lld elements along axis %d, its history "
                             "has room for %lld",
                             (long long)round, (long long)move.dims[i], i,
                             (long long)history->dims[1 + i]);
    }
    tutti__strides_of(rank, move.dims, move.to);
    *ret_move = move;
    *ret_start = round * strides[0];
    return TUTTI_OK;
}
