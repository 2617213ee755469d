/* split_check.c: tests a split rule by cutting a sample and putting the results together again. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ops/sample.h"

enum { MAX_SLOTS = TUTTI_SPLIT_SLOTS, MAX_WAYS = 64, MAX_PIECES = 3 };

/* One way to cut, and the results so far. */
typedef struct tutti_split_trial {
    const tutti_sample *sample;
    const tutti_split *way;
    int way_count; /* of `ways`, along which each piece is cut once more; 0: it is not */
    const tutti_split *ways;
    int pieces;
    int64_t unit;         /* the smallest size that is cut */
    tutti_tensor **whole; /* the uncut outputs */
    tutti_tensor *outputs[MAX_PIECES][MAX_SLOTS];
    char what[400]; /* for messages */
} tutti_split_trial;

/* Where piece i of n elements begins: all sizes that are cut are multiples of the smallest, and cut
 * in proportion. */
static int64_t bound(const tutti_split_trial *cut, int64_t n, int i)
{
    return n % cut->unit == 0 ? n / cut->unit * (cut->unit * i / cut->pieces) : n * i / cut->pieces;
}

static int64_t dim_of(const tutti_tensor *tensor, int axis)
{
    return tutti_tensor_dims(tensor)[axis];
}

/* A way that points at axes which are not there is a mistake of the rule. */
static tutti_status check_axes(const tutti_split_trial *cut)
{
    const tutti_sample *sample = cut->sample;
    int cuts = 0;
    for (int i = 0; i < sample->input_count; i++) {
        int axis = (int)cut->way->inputs[i];
        if (axis != TUTTI_WHOLE && (axis < 0 || axis >= sample->types[i].rank))
            return tutti_fail(TUTTI_CHECK_FAILED, "%s: input %d has no axis %d", cut->what, i,
                              axis);
        cuts += axis != TUTTI_WHOLE;
    }
    for (int i = 0; i < sample->output_count; i++) {
        int axis = (int)cut->way->outputs[i];
        if (axis < TUTTI_PARTIAL_PROD || axis >= tutti_tensor_rank(cut->whole[i]))
            return tutti_fail(TUTTI_CHECK_FAILED, "%s: output %d has no axis %d", cut->what, i,
                              axis);
    }
    if (cuts == 0 && cut->way->attr == NULL)
        return tutti_fail(TUTTI_CHECK_FAILED, "%s: cuts nothing", cut->what);
    return TUTTI_OK;
}

static void find_unit(tutti_split_trial *cut)
{
    cut->unit = INT64_MAX;
    for (int i = 0; i < cut->sample->input_count; i++)
        if (cut->way->inputs[i] >= 0 &&
            dim_of(cut->sample->values[i], cut->way->inputs[i]) < cut->unit)
            cut->unit = dim_of(cut->sample->values[i], cut->way->inputs[i]);
    for (int i = 0; i < cut->sample->output_count; i++)
        if (cut->way->outputs[i] >= 0 && dim_of(cut->whole[i], cut->way->outputs[i]) < cut->unit)
            cut->unit = dim_of(cut->whole[i], cut->way->outputs[i]);
    if (cut->unit < 1)
        cut->unit = 1;
}

static bool is_large_enough(const tutti_split_trial *cut)
{
    for (int i = 0; i < cut->sample->input_count; i++)
        if (cut->way->inputs[i] >= 0 &&
            dim_of(cut->sample->values[i], cut->way->inputs[i]) < cut->pieces)
            return false;
    for (int i = 0; i < cut->sample->output_count; i++)
        if (cut->way->outputs[i] >= 0 && dim_of(cut->whole[i], cut->way->outputs[i]) < cut->pieces)
            return false;
    return true;
}

/* Input i of a piece; handles are copied, so that the sample stays as it is. */
static tutti_status cut_input(const tutti_split_trial *cut, int i, int piece, tutti_tensor **ret)
{
    tutti_tensor *value = cut->sample->values[i], *view;
    int axis = (int)cut->way->inputs[i];
    if (axis == TUTTI_WHOLE) {
        if (cut->sample->types[i].handle)
            return tutti_tensor_cast(value, tutti_tensor_dtype(value), ret);
        *ret = tutti_tensor_retain(value);
        return TUTTI_OK;
    }
    int64_t from = bound(cut, dim_of(value, axis), piece);
    int64_t to = bound(cut, dim_of(value, axis), piece + 1);
    TUTTI_TRY(tutti_tensor_slice(value, axis, from, to - from, 1, &view));
    tutti_status status = tutti_tensor_cast(view, tutti_tensor_dtype(value), ret);
    tutti_tensor_release(view);
    return status;
}

static tutti_attr *attr_named(tutti_attr *attrs, int count, const char *name)
{
    for (int i = 0; i < count; i++)
        if (strcmp(attrs[i].name, name) == 0)
            return &attrs[i];
    return NULL;
}

/* A piece of random numbers knows its place in the whole; unless the whole is a piece itself. */
static void place_piece(const tutti_split_trial *cut, int piece, tutti_attr *attrs, int64_t *start)
{
    int count = cut->sample->attr_count, axis = (int)cut->way->outputs[0];
    tutti_attr *whole = attr_named(attrs, count, "global_dims");
    tutti_attr *from = attr_named(attrs, count, "start");
    if (!(cut->sample->op->flags & TUTTI_OP_RANDOM) || axis < 0 || !whole || !from)
        return;
    int rank = tutti_tensor_rank(cut->whole[0]);
    memset(start, 0, TUTTI_MAX_RANK * sizeof *start);
    if (whole->count > 0)
        memcpy(start, from->value.ints, (size_t)rank * sizeof *start);
    else
        *whole = (tutti_attr)TUTTI_INTS("global_dims", rank, tutti_tensor_dims(cut->whole[0]));
    start[axis] += bound(cut, dim_of(cut->whole[0], axis), piece);
    *from = (tutti_attr)TUTTI_INTS("start", rank, start);
}

/* Where a piece begins along the cut of the first input that is cut, else of the first output. */
static int64_t begin_of(const tutti_split_trial *cut, int piece)
{
    for (int i = 0; i < cut->sample->input_count; i++)
        if (cut->way->inputs[i] >= 0)
            return bound(cut, dim_of(cut->sample->values[i], cut->way->inputs[i]), piece);
    for (int i = 0; i < cut->sample->output_count; i++)
        if (cut->way->outputs[i] >= 0)
            return bound(cut, dim_of(cut->whole[i], cut->way->outputs[i]), piece);
    return 0;
}

/* The attributes of a piece: a size along the cut is cut too; -1 (unknown) stays. */
static tutti_status cut_attrs(const tutti_split_trial *cut, int piece, tutti_attr *attrs,
                              int64_t *ints)
{
    const tutti_split *way = cut->way;
    int count = cut->sample->attr_count;
    memcpy(attrs, cut->sample->attrs, (size_t)count * sizeof *attrs);
    place_piece(cut, piece, attrs, ints + 32);
    if (way->offset) {
        tutti_attr *offset = attr_named(attrs, count, way->offset);
        if (offset == NULL || offset->kind != TUTTI_ATTR_INT)
            return tutti_fail(TUTTI_CHECK_FAILED, "%s: attribute '%s' is no offset", cut->what,
                              way->offset);
        offset->value.i += begin_of(cut, piece);
    }
    if (way->attr == NULL)
        return TUTTI_OK;
    tutti_attr *attr = attr_named(attrs, count, way->attr);
    if (attr == NULL || (attr->kind != TUTTI_ATTR_INT && attr->kind != TUTTI_ATTR_INTS) ||
        (attr->kind == TUTTI_ATTR_INTS && (way->attr_index < 0 || way->attr_index >= attr->count)))
        return tutti_fail(TUTTI_CHECK_FAILED, "%s: attribute '%s' is no size that can be cut",
                          cut->what, way->attr);
    if (attr->kind == TUTTI_ATTR_INTS) {
        memcpy(ints, attr->value.ints, (size_t)attr->count * sizeof *ints);
        attr->value.ints = ints;
    }
    int64_t *size = attr->kind == TUTTI_ATTR_INT ? &attr->value.i : &ints[way->attr_index];
    if (*size >= 0)
        *size = bound(cut, *size, piece + 1) - bound(cut, *size, piece);
    return TUTTI_OK;
}

static tutti_status check_cut(tutti_split_trial *cut);
static void find_unit(tutti_split_trial *cut);
static bool is_large_enough(const tutti_split_trial *cut);

static tutti_status check_again_with(tutti_split_trial *cut, int piece, tutti_tensor **inputs,
                                     tutti_attr *attrs)
{
    tutti_sample sample = *cut->sample;
    tutti_type types[MAX_SLOTS];
    for (int i = 0; i < sample.input_count; i++) {
        types[i] = *tutti_tensor_type(inputs[i]);
        types[i].handle = sample.types[i].handle;
    }
    sample.values = inputs;
    sample.types = types;
    sample.attrs = attrs;
    for (int w = 0; w < cut->way_count; w++) {
        tutti_split_trial again = {
            .sample = &sample, .way = &cut->ways[w], .pieces = 2, .whole = cut->outputs[piece]};
        snprintf(again.what, sizeof again.what, "%.300s, piece %d, then way %d", cut->what, piece,
                 w);
        if (!is_large_enough(&again))
            continue;
        find_unit(&again);
        TUTTI_TRY(check_cut(&again));
    }
    return TUTTI_OK;
}

/* Cuts a piece in every way once more, as along a second axis of a mesh. Its inputs are cut anew:
 * the run has updated handles. */
static tutti_status check_again(tutti_split_trial *cut, int piece, tutti_attr *attrs)
{
    tutti_tensor *inputs[MAX_SLOTS] = {0};
    tutti_status status = TUTTI_OK;
    for (int i = 0; status == TUTTI_OK && i < cut->sample->input_count; i++)
        status = cut_input(cut, i, piece, &inputs[i]);
    if (status == TUTTI_OK)
        status = check_again_with(cut, piece, inputs, attrs);
    for (int i = 0; i < cut->sample->input_count; i++)
        tutti_tensor_release(inputs[i]);
    return status;
}

static tutti_status split_check_run_piece(tutti_split_trial *cut, int piece)
{
    tutti_tensor *inputs[MAX_SLOTS] = {0};
    tutti_attr attrs[32];
    int64_t ints[64];
    tutti_status status = cut_attrs(cut, piece, attrs, ints);
    for (int i = 0; status == TUTTI_OK && i < cut->sample->input_count; i++)
        status = cut_input(cut, i, piece, &inputs[i]);
    if (status == TUTTI_OK) {
        status = tutti__sample_run_on(cut->sample, inputs, attrs, cut->outputs[piece]);
        if (status != TUTTI_OK)
            tutti__error_prefix(status, "%s: piece %d", cut->what, piece);
    }
    if (status == TUTTI_OK && cut->way_count > 0)
        status = check_again(cut, piece, attrs);
    for (int i = 0; i < cut->sample->input_count; i++)
        tutti_tensor_release(inputs[i]);
    return status;
}

/* Compares each piece's output with the slice of the whole that it should be. */
static tutti_status compare_slices(const tutti_split_trial *cut, int output)
{
    int axis = (int)cut->way->outputs[output];
    int64_t at = 0, total = dim_of(cut->whole[output], axis);
    char what[440];
    snprintf(what, sizeof what, "%s, output %d", cut->what, output);
    for (int p = 0; p < cut->pieces; p++) {
        tutti_tensor *piece = cut->outputs[p][output], *slice;
        int64_t size = axis < tutti_tensor_rank(piece) ? dim_of(piece, axis) : -1;
        if (size < 0 || at + size > total)
            return tutti_fail(TUTTI_CHECK_FAILED, "%s: pieces do not add up along axis %d", what,
                              axis);
        TUTTI_TRY(tutti_tensor_slice(cut->whole[output], axis, at, size, 1, &slice));
        tutti_status status = tutti__tensor_near(piece, slice, -1, what);
        tutti_tensor_release(slice);
        TUTTI_TRY(status);
        at += size;
    }
    if (at != total)
        return tutti_fail(TUTTI_CHECK_FAILED, "%s: pieces give %lld of %lld along axis %d", what,
                          (long long)at, (long long)total, axis);
    return TUTTI_OK;
}

static double combine(int how, double a, double b)
{
    switch (how) {
    case TUTTI_PARTIAL_SUM:
        return a + b;
    case TUTTI_PARTIAL_MAX:
        return a >= b || isnan(a) ? a : b;
    case TUTTI_PARTIAL_MIN:
        return a <= b || isnan(a) ? a : b;
    case TUTTI_PARTIAL_PROD:
        return a * b;
    default:
        return b; /* TUTTI_WHOLE: the piece is the whole */
    }
}

/* Puts partial results together; for TUTTI_WHOLE each piece is compared alone. */
static tutti_status compare_partials(const tutti_split_trial *cut, int output)
{
    int how = (int)cut->way->outputs[output];
    tutti_tensor *sum = NULL;
    char what[440];
    snprintf(what, sizeof what, "%s, output %d", cut->what, output);
    tutti_tensor *first = cut->outputs[0][output];
    tutti_status status = tutti_tensor_cast(first, tutti_tensor_dtype(first), &sum);
    for (int p = 1; status == TUTTI_OK && how != TUTTI_WHOLE && p < cut->pieces; p++) {
        tutti_tensor *piece = cut->outputs[p][output];
        if (!tutti_type_equal(tutti_tensor_type(piece), tutti_tensor_type(sum)))
            status = tutti_fail(TUTTI_CHECK_FAILED, "%s: pieces differ in shape", what);
        for (int64_t i = 0; status == TUTTI_OK && i < tutti_tensor_count(sum); i++)
            tutti_tensor_set(sum, i,
                             combine(how, tutti_tensor_get(sum, i), tutti_tensor_get(piece, i)));
    }
    if (status == TUTTI_OK)
        status = tutti__tensor_near(sum, cut->whole[output], -1, what);
    for (int p = 1; status == TUTTI_OK && how == TUTTI_WHOLE && p < cut->pieces; p++)
        status = tutti__tensor_near(cut->outputs[p][output], cut->whole[output], -1, what);
    tutti_tensor_release(sum);
    return status;
}

static tutti_status check_cut(tutti_split_trial *cut)
{
    tutti_status status = TUTTI_OK;
    for (int p = 0; status == TUTTI_OK && p < cut->pieces; p++)
        status = split_check_run_piece(cut, p);
    for (int i = 0; status == TUTTI_OK && i < cut->sample->output_count; i++)
        status = cut->way->outputs[i] >= 0 ? compare_slices(cut, i) : compare_partials(cut, i);
    for (int p = 0; p < cut->pieces; p++)
        for (int i = 0; i < cut->sample->output_count; i++)
            tutti_tensor_release(cut->outputs[p][i]);
    return status;
}

static tutti_status check_ways(const tutti_sample *sample, tutti_tensor **whole, int *ret_cuts)
{
    tutti_split ways[MAX_WAYS];
    tutti_type types[MAX_SLOTS];
    tutti_infer rule = tutti__sample_rule(sample);
    for (int i = 0; i < sample->output_count; i++)
        types[i] = *tutti_tensor_type(whole[i]);
    rule.outputs = types;
    int count = sample->op->split(&rule, MAX_WAYS, ways);
    for (int w = 0; w < count && w < MAX_WAYS; w++)
        for (int pieces = 2; pieces <= MAX_PIECES; pieces++) {
            tutti_split_trial cut = {
                .sample = sample, .way = &ways[w], .pieces = pieces, .whole = whole};
            snprintf(cut.what, sizeof cut.what, "split of %s \"%s\", way %d in %d pieces",
                     sample->op->name, sample->text, w, pieces);
            TUTTI_TRY(check_axes(&cut));
            if (!is_large_enough(&cut))
                continue;
            find_unit(&cut);
            TUTTI_TRY(check_cut(&cut));
            cut.ways = ways;
            cut.way_count = pieces > 2 ? 0 : count < MAX_WAYS ? count : MAX_WAYS;
            if (cut.way_count > 0)
                TUTTI_TRY(check_cut(&cut));
            ++*ret_cuts;
        }
    return TUTTI_OK;
}

tutti_status tutti__split_check(const tutti_sample *sample, int *ret_cuts)
{
    tutti_tensor *whole[MAX_SLOTS] = {0};
    int cuts = 0;
    if (sample->op->split == NULL || sample->input_count > MAX_SLOTS ||
        sample->output_count > MAX_SLOTS)
        return TUTTI_OK;
    TUTTI_TRY(tutti__sample_run(sample, whole));
    tutti_status status = check_ways(sample, whole, &cuts);
    for (int i = 0; i < sample->output_count; i++)
        tutti_tensor_release(whole[i]);
    if (status == TUTTI_OK && ret_cuts != NULL)
        *ret_cuts = cuts;
    return status;
}
