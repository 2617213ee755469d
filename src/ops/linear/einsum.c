/* einsum.c: Einstein's sum: products over shared labels, summed over those that the result lacks.
 */
#include "ops/linear/equation.h"

#include "ops/shape/move.h"

/* The equation of a node or call whose ranks are known. */
static tutti_status parse_types(const tutti_infer *node, tutti_equation *ret)
{
    int ranks[TUTTI_EINSUM_OPERANDS] = {0};
    for (int i = 0; i < node->input_count && i < TUTTI_EINSUM_OPERANDS; i++)
        ranks[i] = node->inputs[i].rank;
    return tutti__equation_parse(node->op, node->name, RULE_STRING(node, "equation"),
                                 node->input_count, ranks, ret);
}

/* One axis of one operand against what is known of its label. Axes of "..." broadcast. */
static tutti_status merge_dim(const tutti_infer *node, int label, int operand, int64_t dim,
                              int64_t *known)
{
    char text[TUTTI_TYPE_TEXT];
    int rank;
    if (label >= TUTTI_LABEL_DOTS
            ? tutti_broadcast_dims(1, known, 1, &dim, &rank, known) == TUTTI_OK
            : tutti__shape_merge(*known, dim, known))
        return TUTTI_OK;
    return RULE_FAIL(
        node, TUTTI_INVALID,
        "equation '%s': label '%c' has size %lld in operand %d (%s), but %lld before it",
        RULE_STRING(node, "equation"), tutti__label_name(label), (long long)dim, operand,
        tutti_type_text(&node->inputs[operand], text), (long long)*known);
}

static tutti_status label_dims(const tutti_infer *node, const tutti_equation *equation,
                               int64_t *ret_dims)
{
    bool seen[TUTTI_LABELS] = {false};
    for (int i = 0; i < equation->operand_count; i++) {
        const tutti_term *term = &equation->operands[i];
        for (int axis = 0; axis < term->rank; axis++) {
            int label = term->labels[axis];
            int64_t dim = node->inputs[i].dims[axis];
            if (seen[label])
                TUTTI_TRY(merge_dim(node, label, i, dim, &ret_dims[label]));
            else
                ret_dims[label] = dim;
            seen[label] = true;
        }
    }
    return TUTTI_OK;
}

static tutti_status einsum_infer(tutti_infer *node)
{
    tutti_equation equation;
    int64_t sizes[TUTTI_LABELS] = {0}, dims[TUTTI_MAX_RANK];
    TUTTI_TRY(parse_types(node, &equation));
    for (int i = 0; i < node->input_count; i++) {
        TUTTI_TRY(tutti__shape_numbers(node, i));
        TUTTI_TRY(tutti__shape_same_dtype(node, i));
    }
    TUTTI_TRY(label_dims(node, &equation, sizes));
    for (int i = 0; i < equation.output.rank; i++)
        dims[i] = sizes[equation.output.labels[i]];
    return tutti__shape_output(node, 0, node->inputs[0].dtype, equation.output.rank, dims);
}

extern const tutti_op tutti_op_einsum;

static tutti_sym einsum_build(const char *equation, int count, const tutti_sym *operands)
{
    return tutti__nary(&tutti_op_einsum, count, operands, 1, &TUTTI_STR("equation", equation));
}

/* The gradient of one operand is the einsum of dy with the other operands, whose result has the
 * operand's labels. Labels that only the operand has are brought in by ones of its shape, and so
 * are axes of "..." that dy lacks: the other operands may have size 1 there. */
static void give(tutti_gradient_call *node, const tutti_equation *equation, int operand)
{
    const tutti_term *own = &equation->operands[operand];
    tutti_sym inputs[TUTTI_EINSUM_OPERANDS + 1] = {node->output_grads[0]};
    char text[TUTTI_EQUATION_TEXT] = "";
    int count = 1;
    bool missing = false, dots = false;
    tutti__term_text(&equation->output, text);
    for (int i = 0; i < equation->operand_count; i++) {
        if (i == operand)
            continue;
        inputs[count++] = node->inputs[i];
        strcat(text, ",");
        tutti__term_text(&equation->operands[i], text);
    }
    for (int i = 0; i < own->rank; i++) {
        bool broadcasts = own->labels[i] >= TUTTI_LABEL_DOTS;
        bool given = tutti__term_axis(&equation->output, own->labels[i]) >= 0;
        missing |= strchr(text, tutti__label_name(own->labels[i])) == NULL;
        missing |= broadcasts && !given;
        dots |= broadcasts;
    }
    if (missing) {
        inputs[count++] = tutti_ones_like(node->inputs[operand]);
        strcat(text, ",");
        tutti__term_text(own, text);
    }
    strcat(text, "->");
    tutti__term_text(own, text);
    tutti_sym grad = einsum_build(text, count, inputs);
    node->input_grads[operand] = dots ? tutti_unbroadcast(grad, node->inputs[operand]) : grad;
}

static tutti_status einsum_gradient(tutti_gradient_call *node)
{
    tutti_equation equation;
    int ranks[TUTTI_EINSUM_OPERANDS];
    for (int i = 0; i < node->input_count; i++)
        ranks[i] = tutti_sym_type(node->inputs[i]).rank;
    TUTTI_TRY(tutti__equation_parse(&tutti_op_einsum, node->name, RULE_STRING(node, "equation"),
                                    node->input_count, ranks, &equation));
    for (int i = 0; i < node->input_count; i++)
        if (node->wanted[i])
            give(node, &equation, i);
    return TUTTI_OK;
}

/* A walk over all values of some labels, the last of which runs fastest. Slot i < operand_count
 * holds the offset in operand i, the slot after them that in the result. */
typedef struct {
    int slots, rank;
    int64_t count, dims[TUTTI_LABELS], index[TUTTI_LABELS];
    int64_t strides[TUTTI_LABELS][TUTTI_EINSUM_OPERANDS + 1];
    int64_t at[TUTTI_EINSUM_OPERANDS + 1];
} walk;

static void walk_next(walk *w)
{
    for (int axis = w->rank - 1; axis >= 0; axis--) {
        bool carry = ++w->index[axis] == w->dims[axis];
        for (int i = 0; i < w->slots; i++)
            w->at[i] += w->strides[axis][i] * (carry ? 1 - w->dims[axis] : 1);
        if (!carry)
            return;
        w->index[axis] = 0;
    }
}

/* How far one step of a label goes in a view: over repeated labels along the diagonal, over an axis
 * of size 1 that is repeated not at all. */
static int64_t step_of(const tutti_term *term, const tutti_view *view, int label)
{
    int64_t strides[TUTTI_MAX_RANK], step = 0;
    tutti__strides_of(view->rank, view->dims, strides);
    for (int i = 0; i < term->rank; i++)
        if (term->labels[i] == label && view->dims[i] != 1)
            step += strides[i];
    return step;
}

static int64_t size_of(const tutti_kernel_call *call, const tutti_equation *equation, int label)
{
    int64_t size = 1;
    for (int i = 0; i < equation->operand_count; i++) {
        int axis = tutti__term_axis(&equation->operands[i], label);
        if (axis >= 0 && call->inputs[i].dims[axis] != 1)
            size = call->inputs[i].dims[axis];
    }
    return size;
}

static void walk_add(walk *w, const tutti_kernel_call *call, const tutti_equation *equation,
                     int label)
{
    int operands = equation->operand_count;
    w->slots = operands + 1;
    w->dims[w->rank] = size_of(call, equation, label);
    w->count = tutti__dims_product(2, (int64_t[]){w->count, w->dims[w->rank]});
    for (int i = 0; i < operands; i++)
        w->strides[w->rank][i] = step_of(&equation->operands[i], &call->inputs[i], label);
    w->strides[w->rank][operands] = step_of(&equation->output, &call->outputs[0], label);
    w->rank++;
}

static void add_up(const tutti_kernel_call *call, const walk *kept, walk *summed)
{
    int operands = call->input_count;
    bool whole = tutti_dtype_is_int(call->outputs[0].dtype);
    uint64_t sum_int = 0;
    double sum = 0;
    for (int64_t n = 0; n < summed->count; n++, walk_next(summed)) {
        uint64_t product_int = 1;
        double product = 1;
        for (int i = 0; i < operands; i++) {
            int64_t at = kept->at[i] + summed->at[i];
            if (whole)
                product_int *= (uint64_t)tutti_view_get_int(&call->inputs[i], at);
            else
                product *= tutti_view_get(&call->inputs[i], at);
        }
        sum_int += product_int;
        sum += product;
    }
    if (whole)
        tutti_view_set_int(&call->outputs[0], kept->at[operands], (int64_t)sum_int);
    else
        tutti_view_set(&call->outputs[0], kept->at[operands], sum);
}

static tutti_status einsum_reference(const tutti_kernel_call *call)
{
    tutti_equation equation;
    walk kept = {.count = 1}, summed = {.count = 1};
    int ranks[TUTTI_EINSUM_OPERANDS];
    for (int i = 0; i < call->input_count; i++)
        ranks[i] = call->inputs[i].rank;
    TUTTI_TRY(tutti__equation_parse(call->op, call->name, RULE_STRING(call, "equation"),
                                    call->input_count, ranks, &equation));
    for (int i = 0; i < equation.output.rank; i++)
        if (tutti__term_axis(&equation.output, equation.output.labels[i]) == i)
            walk_add(&kept, call, &equation, equation.output.labels[i]);
    for (int label = 0; label < TUTTI_LABELS; label++) {
        bool used = false;
        for (int i = 0; i < equation.operand_count; i++)
            used |= tutti__term_axis(&equation.operands[i], label) >= 0;
        if (used && tutti__term_axis(&equation.output, label) < 0)
            walk_add(&summed, call, &equation, label);
    }
    if (kept.rank < equation.output.rank)
        tutti__fill_view(&call->outputs[0], 0);
    for (int64_t n = 0; n < kept.count; n++, walk_next(&kept))
        add_up(call, &kept, &summed);
    return TUTTI_OK;
}

/* A multiplication for each operand, over all values of all labels. */
static void einsum_cost(const tutti_infer *node, tutti_cost *ret)
{
    tutti_equation equation;
    int64_t sizes[TUTTI_LABELS];
    double steps = node->input_count;
    for (int i = 0; i < TUTTI_LABELS; i++)
        sizes[i] = 1;
    tutti__cost_move(node, ret);
    if (parse_types(node, &equation) != TUTTI_OK || label_dims(node, &equation, sizes) != TUTTI_OK)
        return;
    for (int i = 0; i < TUTTI_LABELS; i++)
        steps *= sizes[i] == TUTTI_ANY ? 1.0 : (double)sizes[i];
    ret->flops = steps;
}

/* The way to cut along one label, if there is one: no term has it twice. An operand whose axis of
 * "..." has size 1 stays whole. */
static void cut_label(const tutti_infer *node, const tutti_equation *equation, int label,
                      tutti_cuts *cuts)
{
    tutti_split way;
    int result = tutti__term_axis(&equation->output, label), cut = 0;
    memset(way.inputs, TUTTI_WHOLE, sizeof way.inputs);
    if (tutti__term_count(&equation->output, label) > 1)
        return;
    for (int i = 0; i < equation->operand_count; i++) {
        int axis = tutti__term_axis(&equation->operands[i], label);
        int64_t dim = axis < 0 ? 1 : node->inputs[i].dims[axis];
        if (tutti__term_count(&equation->operands[i], label) > 1 ||
            (label >= TUTTI_LABEL_DOTS && dim == TUTTI_ANY))
            return;
        if (axis < 0 || (label >= TUTTI_LABEL_DOTS && dim == 1))
            continue;
        way.inputs[i] = (int8_t)axis;
        cut++;
    }
    if (cut == 0)
        return;
    tutti_split *ret = tutti__cut(cuts);
    memcpy(ret->inputs, way.inputs, sizeof way.inputs);
    ret->outputs[0] = (int8_t)(result < 0 ? TUTTI_PARTIAL_SUM : result);
}

static int einsum_split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    tutti_equation equation;
    tutti_cuts cuts = {.capacity = capacity, .ret = ret};
    if (parse_types(node, &equation) != TUTTI_OK)
        return 0;
    for (int label = 0; label < TUTTI_LABELS; label++)
        cut_label(node, &equation, label, &cuts);
    return cuts.count;
}

/* Digits name the axes of "..." in equations of gradients. */
tutti_sym(tutti_einsum)(const char *equation, int count, const tutti_sym *operands)
{
    const char *digit = equation != NULL ? strpbrk(equation, "0123456789") : NULL;
    if (digit != NULL && count > 0 && operands != NULL && tutti_sym_ok(operands[0]))
        return tutti__poison(tutti_sym_graph(operands[0]), TUTTI_INVALID,
                             "einsum: equation '%s' holds '%c' at position %d; labels are letters",
                             equation, *digit, (int)(digit - equation));
    return einsum_build(equation, count, operands);
}

static const tutti_attr_spec attrs[] = {
    {"equation", TUTTI_ATTR_STRING, NULL},
    {NULL},
};
static const char *const samples[] = {
    "f32[2,3] f32[3,4] | equation=ij,jk->ik",
    "f32[2,3,4] f32[2,4,2] | equation=bij,bjk",
    "f32[3,3] | equation=ii->i",
    "f32[4,3] | equation=ij->j",
    "f32[2,3,4] f32[3,4,2] | equation=b...j,...jk->b...k",
    "f32[3] | equation=i->ii",
    "f32[3,2] f32[2,4] f32[4] | equation=ij,jk,k->i",
    "i32[2,3] i32[3] | equation=ij,j->",
    "f32[3,4] f32[1,4] | equation=...i,...i->...",
    "f32[2,0] f32[0,3] | equation=ij,jk->ik",
    NULL,
};

const tutti_op tutti_op_einsum = {
    .struct_size = sizeof(tutti_op),
    .name = "einsum",
    .version = 1,
    .doc =
        "einsum(x0, x1, ...; equation): y = sum over the labels that the result lacks of the product of the operands, as in bij,bjk->bik",
    .category = "linear algebra",
    .min_inputs = 1,
    .max_inputs = -1,
    .outputs = 1,
    .attrs = attrs,
    .infer = einsum_infer,
    .gradient = einsum_gradient,
    .cost = einsum_cost,
    .split = einsum_split,
    .reference = einsum_reference,
    .samples = samples,
};
