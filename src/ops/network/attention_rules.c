/* attention_rules.c: the rules and geometry that the attention operators share; see attention.h. */
#include "ops/network/attention.h"

tutti_attention_slots tutti__attention_slots(int64_t grads, int input_count)
{
    int next = ATTENTION_L + 1;
    tutti_attention_slots slots = {-1, -1, -1, 0};
    if (grads & 1)
        slots.y_grad = next++;
    if (grads & 2)
        slots.l_grad = next++;
    if (input_count > next)
        slots.mask = next++;
    slots.count = next;
    return slots;
}

static tutti_dtype l_dtype(tutti_dtype dtype)
{
    return dtype == TUTTI_F64 ? TUTTI_F64 : TUTTI_F32;
}

static tutti_status check_mask(const tutti_infer *node, int mask, const int64_t scores[4])
{
    char a[TUTTI_TYPE_TEXT], b[TUTTI_TYPE_TEXT];
    const tutti_type *type = &node->inputs[mask];
    tutti_type expected = tutti_type_make(type->dtype, 4, scores);
    bool good = type->rank <= 4 && type->dtype == node->inputs[0].dtype && !type->handle;
    for (int axis = 0; good && axis < type->rank; axis++) {
        int64_t dim = type->dims[axis], attention_rules_score = scores[axis + 4 - type->rank];
        good = dim == 1 || dim == attention_rules_score || dim == TUTTI_ANY ||
               attention_rules_score == TUTTI_ANY;
    }
    if (good)
        return TUTTI_OK;
    expected.dtype = node->inputs[0].dtype;
    return RULE_FAIL(node, TUTTI_INVALID,
                     "mask is %s, needs to broadcast to %s [batch,heads,queries,keys]; it is added "
                     "to the scores, so use 0 to keep and -inf to hide",
                     tutti_type_text(type, a), tutti_type_text(&expected, b));
}

tutti_status tutti__attention_infer(const tutti_infer *node, int mask, tutti_type ret_outputs[2])
{
    const tutti_type *q = &node->inputs[0], *k = &node->inputs[1], *v = &node->inputs[2];
    TUTTI_TRY(tutti__need_floats(node, 0, 3));
    TUTTI_TRY(tutti__need_rank(node, 0, "q", 4, "[batch,heads,queries,features]"));
    TUTTI_TRY(tutti__need_rank(node, 1, "k", 4, "[batch,heads,keys,features]"));
    TUTTI_TRY(tutti__need_rank(node, 2, "v", 4, "[batch,heads,keys,values]"));
    for (int axis = 0; axis < 2; axis++) {
        const char *meaning = axis == 0 ? "batch of q" : "heads of q";
        TUTTI_TRY(tutti__need_dim(node, 1, "k", axis, q->dims[axis], meaning));
        TUTTI_TRY(tutti__need_dim(node, 2, "v", axis, q->dims[axis], meaning));
    }
    TUTTI_TRY(tutti__need_dim(node, 1, "k", 3, q->dims[3], "features of q"));
    TUTTI_TRY(tutti__need_dim(node, 2, "v", 2, k->dims[2], "keys of k"));
    if (!(RULE_FLOAT(node, "scale") >= 0))
        return RULE_FAIL(node, TUTTI_INVALID,
                         "scale is %g, needs a positive number, or 0 for "
                         "1 / sqrt(features)",
                         RULE_FLOAT(node, "scale"));
    int64_t first_query = RULE_INT(node, "first_query"), dims[4];
    if (first_query > INT32_MAX || first_query < INT32_MIN)
        return RULE_FAIL(node, TUTTI_INVALID, "first_query is %lld, needs 32 bits",
                         (long long)first_query);
    for (int axis = 0; axis < 2; axis++)
        dims[axis] = tutti__known(q->dims[axis], tutti__known(k->dims[axis], v->dims[axis]));
    dims[2] = q->dims[2];
    dims[3] = tutti__known(k->dims[2], v->dims[2]);
    if (mask >= 0)
        TUTTI_TRY(check_mask(node, mask, dims));
    dims[3] = v->dims[3];
    ret_outputs[0] = tutti_type_make(q->dtype, 4, dims);
    ret_outputs[1] = tutti_type_make(l_dtype(q->dtype), 3, dims);
    return TUTTI_OK;
}

static tutti_status check_same(const tutti_infer *node, int i, const char *what,
                               const tutti_type *expected)
{
    TUTTI_TRY(tutti__need_like(node, i, what, expected));
    if (node->inputs[i].dtype == expected->dtype)
        return TUTTI_OK;
    return RULE_FAIL(node, TUTTI_INVALID, "%s is %s, needs %s", what,
                     tutti_dtype_name(node->inputs[i].dtype), tutti_dtype_name(expected->dtype));
}

tutti_status tutti__attention_backward_infer(const tutti_infer *node)
{
    tutti_attention_slots slots =
        tutti__attention_slots(RULE_INT(node, "grads"), node->input_count);
    tutti_type outputs[2] = {0};
    if (slots.count != node->input_count)
        return RULE_FAIL(node, TUTTI_INVALID, "has %d inputs, its attribute grads asks for %d",
                         node->input_count, slots.count);
    TUTTI_TRY(tutti__attention_infer(node, slots.mask, outputs));
    TUTTI_TRY(check_same(node, ATTENTION_Y, "y", &outputs[0]));
    TUTTI_TRY(check_same(node, ATTENTION_L, "logsumexp", &outputs[1]));
    if (slots.y_grad >= 0)
        TUTTI_TRY(check_same(node, slots.y_grad, "gradient of y", &outputs[0]));
    if (slots.l_grad >= 0)
        TUTTI_TRY(check_same(node, slots.l_grad, "gradient of logsumexp", &outputs[1]));
    return TUTTI_OK;
}

/* Sum of clamp(m, 0, keys) over all m <= n. */
static double prefix(double n, double keys)
{
    if (n <= 0)
        return 0;
    return n <= keys ? n * (n + 1) / 2 : keys * (keys + 1) / 2 + (n - keys) * keys;
}

double tutti__attention_pairs(const tutti_infer *node)
{
    const tutti_type *q = &node->inputs[0], *k = &node->inputs[1];
    double keys = k->dims[2] < 0 ? 1 : (double)k->dims[2];
    double queries = q->dims[2] < 0 ? 1 : (double)q->dims[2];
    double first = (double)RULE_INT(node, "first_query");
    tutti_type heads = tutti_type_make(q->dtype, 2, q->dims);
    if (!RULE_INT(node, "causal"))
        return tutti__elements(&heads) * queries * keys;
    return tutti__elements(&heads) * (prefix(first + queries, keys) - prefix(first, keys));
}

int tutti__mask_axis(const tutti_infer *node, int mask, int axis)
{
    int own = mask < 0 ? -1 : axis - (4 - node->inputs[mask].rank);
    if (own < 0 || node->inputs[mask].dims[own] == 1)
        return TUTTI_WHOLE;
    return node->inputs[mask].dims[own] == TUTTI_ANY ? -2 : own;
}

void tutti__attention_way(tutti_ways *ways, int axis, int input_count, const int *inputs,
                          int output_count, const int *outputs)
{
    int before = ways->count;
    tutti__way_add(ways, input_count, inputs, output_count, outputs);
    if (axis == 2 && before < ways->capacity)
        ways->ret[before].offset = "first_query";
}

tutti_attention tutti__attention(const tutti_kernel_call *call, int mask)
{
    const int64_t *q = call->inputs[ATTENTION_Q].dims, *v = call->inputs[ATTENTION_V].dims;
    tutti_attention a = {
        .batch = q[0],
        .heads = q[1],
        .queries = q[2],
        .keys = v[2],
        .features = q[3],
        .values = v[3],
        .scale = CALL_FLOAT(call, "scale"),
        .causal = CALL_INT(call, "causal") != 0,
        .first_query = CALL_INT(call, "first_query"),
    };
    if (a.scale == 0)
        a.scale = 1 / sqrt((double)a.features);
    int64_t step = 1;
    for (int axis = mask < 0 ? -1 : call->inputs[mask].rank - 1; axis >= 0; axis--) {
        int64_t dim = call->inputs[mask].dims[axis];
        a.mask_step[axis + 4 - call->inputs[mask].rank] = dim == 1 ? 0 : step;
        step *= dim;
    }
    return a;
}

/* s of a query and key j; `mask_at` is the offset of the query's mask. */
static double attention_rules_score(const tutti_attention *a, const double *const *inputs, int mask,
                                    int64_t row, int64_t mask_at, int64_t j)
{
    int64_t column = row / a->queries * a->keys + j;
    double s = a->scale * tutti__dot(a->features, inputs[ATTENTION_Q] + row * a->features,
                                     inputs[ATTENTION_K] + column * a->features);
    return mask < 0 ? s : s + inputs[mask][mask_at + j * a->mask_step[3]];
}

/* l as most + rest, log(sum(exp(s))) computed again where it is coarse. */
static double finer(const tutti_attention *a, const double *const *inputs, int mask, int64_t row,
                    int64_t mask_at, double *ret_rest)
{
    double most = inputs[ATTENTION_L][row], total = 0;
    int64_t seen = tutti__keys_seen(a, row % a->queries);
    *ret_rest = 0;
    if (!tutti__attention_coarse(most) || seen == 0)
        return most;
    most = -HUGE_VAL;
    for (int64_t j = 0; j < seen; j++) {
        double s = attention_rules_score(a, inputs, mask, row, mask_at, j);
        most = s <= most ? most : s; /* NaN ends in the total */
    }
    for (int64_t j = 0; j < seen; j++)
        total += exp(attention_rules_score(a, inputs, mask, row, mask_at, j) - most);
    *ret_rest = log(total);
    return most;
}

/* One query: p = exp(min(s - l, 0)), ds = p (dy v[j] - dy y + dl). A query that sees nothing has
 * l = -inf. */
static void walk_query(const tutti_attention *a, const double *const *inputs,
                       const tutti_attention_slots *slots, int64_t row, tutti_pair_fn *visit,
                       void *context)
{
    int64_t head = row / a->queries, query = row % a->queries;
    int64_t mask_at = head / a->heads * a->mask_step[0] + head % a->heads * a->mask_step[1] +
                      query * a->mask_step[2];
    const double *y_grad = slots->y_grad < 0 ? NULL : inputs[slots->y_grad] + row * a->values;
    double rest, most = finer(a, inputs, slots->mask, row, mask_at, &rest), shared = 0;
    if (y_grad != NULL)
        shared -= tutti__dot(a->values, y_grad, inputs[ATTENTION_Y] + row * a->values);
    if (slots->l_grad >= 0)
        shared += inputs[slots->l_grad][row];
    for (int64_t j = 0; j < tutti__keys_seen(a, query) && most != -HUGE_VAL; j++) {
        int64_t column = head * a->keys + j;
        tutti_pair pair = {row, column, mask_at + j * a->mask_step[3], 0, shared};
        double s = attention_rules_score(a, inputs, slots->mask, row, mask_at, j);
        pair.p = s > most ? 1 : exp(s - most - rest);
        if (y_grad != NULL)
            pair.ds += tutti__dot(a->values, y_grad, inputs[ATTENTION_V] + column * a->values);
        pair.ds = pair.p == 0 ? 0 : pair.ds * pair.p;
        visit(a, context, &pair);
    }
}

void tutti__attention_pairs_each(const tutti_attention *a, const double *const *inputs,
                                 const tutti_attention_slots *slots, tutti_pair_fn *visit,
                                 void *context)
{
    for (int64_t row = 0; row < a->batch * a->heads * a->queries; row++)
        walk_query(a, inputs, slots, row, visit, context);
}

tutti_sym tutti__attention_backward_build(const tutti_gradient_call *node, const char *op)
{
    tutti_sym inputs[8] = {node->inputs[0], node->inputs[1], node->inputs[2], node->outputs[0],
                           node->outputs[1]};
    int64_t grads = 0;
    int count = 5;
    for (int i = 0; i < 2; i++)
        if (tutti_sym_ok(node->output_grads[i])) {
            inputs[count++] = node->output_grads[i];
            grads |= (int64_t)1 << i;
        }
    if (node->input_count > 3)
        inputs[count++] = node->inputs[3];
    tutti_attr attrs[] = {SAME_ATTENTION(node), TUTTI_INT("grads", grads)};
    return tutti_apply_op(node->graph, op, count, inputs, (int)TUTTI_COUNT(attrs), attrs);
}
