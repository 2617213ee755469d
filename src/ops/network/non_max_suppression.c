/* non_max_suppression.c: the best boxes of each class, without those that overlap a better one. */
#include <math.h>
#include <stdlib.h>

#include "ops/network/network.h"

/* Boxes, scores; and where given, in the place of attributes: how many boxes of a class at most,
 * the overlap from which on a box goes, and the score that it must exceed. */
enum { BOXES, SCORES, MOST, OVERLAP, LEAST };

extern const tutti_op tutti_op_non_max_suppression;

static tutti_status check_scalar(const tutti_infer *node, int i, const char *what, bool whole)
{
    char text[TUTTI_TYPE_TEXT];
    const tutti_type *type = &node->inputs[i];
    bool one =
        type->rank == 0 || (type->rank == 1 && (type->dims[0] == 1 || type->dims[0] == TUTTI_ANY));
    if (one && !type->handle &&
        (whole ? tutti_dtype_is_int(type->dtype) : tutti_dtype_is_float(type->dtype)))
        return TUTTI_OK;
    return RULE_FAIL(node, TUTTI_INVALID, "%s is %s, needs one %s", what,
                     tutti_type_text(type, text), whole ? "integer" : "float");
}

static tutti_status non_max_suppression_infer(tutti_infer *node)
{
    static const char *const names[] = {"", "", "max_output", "iou_threshold", "score_threshold"};
    const tutti_type *boxes = &node->inputs[BOXES];
    int64_t dims[] = {TUTTI_ANY, 3};
    TUTTI_TRY(tutti__need_floats(node, 0, 2));
    TUTTI_TRY(tutti__need_rank(node, BOXES, "boxes", 3, "[batch,boxes,4]"));
    TUTTI_TRY(tutti__need_rank(node, SCORES, "scores", 3, "[batch,classes,boxes]"));
    TUTTI_TRY(tutti__need_dim(node, BOXES, "boxes", 2, 4, "the corners"));
    TUTTI_TRY(tutti__need_dim(node, SCORES, "scores", 0, boxes->dims[0], "batch of boxes"));
    TUTTI_TRY(tutti__need_dim(node, SCORES, "scores", 2, boxes->dims[1], "number of boxes"));
    for (int i = MOST; i < node->input_count && i < (int)TUTTI_COUNT(names); i++)
        TUTTI_TRY(check_scalar(node, i, names[i], i == MOST));
    node->outputs[0] = tutti_type_make(TUTTI_I64, 2, dims);
    return TUTTI_OK;
}

/* A box by its lower and upper corners. */
typedef struct box {
    double low[2], high[2];
} box;

/* Boxes narrower than f64 are compared in f32, each step rounded, as other engines do it: an
 * overlap that is the limit itself, as boxes of whole numbers often have, then falls on the same
 * side. */
static double round_step(bool wide, double value)
{
    return wide ? value : (double)(float)value;
}

/* [y1, x1, y2, x2], any two opposite corners; or the centre [x, y, width, height]. */
static box box_of(const tutti_view *boxes, int64_t index, bool centred)
{
    double v[4];
    box b;
    bool wide = boxes->dtype == TUTTI_F64;
    for (int i = 0; i < 4; i++)
        v[i] = tutti_view_get(boxes, 4 * index + i);
    for (int axis = 0; axis < 2; axis++) {
        double a = centred ? round_step(wide, v[axis] - v[axis + 2] / 2) : v[axis];
        double z = centred ? round_step(wide, v[axis] + v[axis + 2] / 2) : v[axis + 2];
        b.low[axis] = fmin(a, z);
        b.high[axis] = fmax(a, z);
    }
    return b;
}

static double area(const box *b, bool wide)
{
    return round_step(wide, round_step(wide, b->high[0] - b->low[0]) *
                                round_step(wide, b->high[1] - b->low[1]));
}

/* The part of two boxes' union that both cover. */
static double overlap(const box *a, const box *b, bool wide)
{
    box both;
    for (int axis = 0; axis < 2; axis++) {
        both.low[axis] = fmax(a->low[axis], b->low[axis]);
        both.high[axis] = fmin(a->high[axis], b->high[axis]);
        if (!(both.high[axis] > both.low[axis]))
            return 0;
    }
    double shared = area(&both, wide);
    double all = round_step(wide, round_step(wide, area(a, wide) + area(b, wide)) - shared);
    return shared > 0 && all > 0 ? round_step(wide, shared / all) : 0;
}

typedef struct candidate {
    double score;
    int64_t index;
} candidate;

/* Higher scores first, then lower indices. */
static int non_max_suppression_compare(const void *a, const void *b)
{
    const candidate *p = a, *q = b;
    if (p->score != q->score)
        return p->score > q->score ? -1 : 1;
    return p->index < q->index ? -1 : p->index > q->index;
}

typedef struct selection {
    int64_t most, boxes, classes;
    double overlap, least;
    bool centred, wide;
    candidate *candidates; /* of one class */
    box *kept;
    int64_t *rows, count; /* [image, class, box] */
} selection;

/* The boxes of one class of one image are added to the selection. */
static void select_class(const tutti_kernel_call *call, selection *s, int64_t image, int64_t class)
{
    int64_t count = 0, kept = 0;
    for (int64_t i = 0; i < s->boxes; i++) {
        double score =
            tutti_view_get(&call->inputs[SCORES], (image * s->classes + class) * s->boxes + i);
        if (score > s->least)
            s->candidates[count++] = (candidate){score, i};
    }
    qsort(s->candidates, (size_t)count, sizeof *s->candidates, non_max_suppression_compare);
    for (int64_t i = 0; i < count && kept < s->most; i++) {
        box b = box_of(&call->inputs[BOXES], image * s->boxes + s->candidates[i].index, s->centred);
        bool free = true;
        for (int64_t k = 0; k < kept && free; k++)
            free = !(overlap(&b, &s->kept[k], s->wide) > s->overlap);
        if (!free)
            continue;
        s->kept[kept++] = b;
        int64_t *row = s->rows + 3 * s->count++;
        row[0] = image;
        row[1] = class;
        row[2] = s->candidates[i].index;
    }
}

/* What the inputs or the attributes ask for. */
static void read_limits(const tutti_kernel_call *call, selection *s)
{
    s->most = call->input_count > MOST ? tutti_view_get_int(&call->inputs[MOST], 0)
                                       : CALL_INT(call, "max_output");
    s->overlap = call->input_count > OVERLAP ? tutti_view_get(&call->inputs[OVERLAP], 0)
                                             : CALL_FLOAT(call, "iou_threshold");
    s->least = call->input_count > LEAST ? tutti_view_get(&call->inputs[LEAST], 0)
                                         : CALL_FLOAT(call, "score_threshold");
    s->most = s->most < 0 ? 0 : s->most < s->boxes ? s->most : s->boxes;
    s->centred = CALL_INT(call, "center_point_box") != 0;
    s->wide = call->inputs[BOXES].dtype == TUTTI_F64;
    s->overlap = round_step(s->wide, s->overlap);
}

static tutti_status non_max_suppression_run(const tutti_kernel_call *call, tutti_arena *scratch)
{
    const int64_t *dims = call->inputs[SCORES].dims;
    selection s = {.boxes = dims[2], .classes = dims[1]};
    read_limits(call, &s);
    s.candidates = tutti__arena_array(scratch, (size_t)s.boxes + 1, sizeof *s.candidates);
    s.kept = tutti__arena_array(scratch, (size_t)s.most + 1, sizeof *s.kept);
    s.rows =
        tutti__arena_array(scratch, (size_t)(dims[0] * dims[1] * s.most) + 1, 3 * sizeof *s.rows);
    if (s.candidates == NULL || s.kept == NULL || s.rows == NULL)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory to select among %lld boxes",
                          (long long)s.boxes);
    for (int64_t image = 0; image < dims[0]; image++)
        for (int64_t class = 0; class < dims[1]; class ++)
            select_class(call, &s, image, class);
    TUTTI_TRY(tutti_kernel_call_allocate(call, 0, 2, (int64_t[]){s.count, 3}));
    for (int64_t i = 0; i < 3 * s.count; i++)
        tutti_view_set_int(&call->outputs[0], i, s.rows[i]);
    return TUTTI_OK;
}

static tutti_status non_max_suppression_reference(const tutti_kernel_call *call)
{
    tutti_arena scratch = {0};
    tutti_status status = non_max_suppression_run(call, &scratch);
    tutti__arena_free(&scratch);
    return status;
}

/* Each pair of boxes of a class once. */
static void non_max_suppression_cost(const tutti_infer *node, tutti_cost *ret)
{
    double boxes = tutti__elements(&node->inputs[BOXES]) / 4;
    tutti__cost_flops(node, 16 * boxes * tutti__elements(&node->inputs[SCORES]), ret);
}

tutti_sym tutti_non_max_suppression_with(tutti_sym boxes, tutti_sym scores,
                                         const tutti_non_max_suppression_options *given)
{
    TAKE_OPTIONS(tutti_non_max_suppression_options, o, given);
    tutti_sym inputs[] = {boxes, scores};
    return TUTTI_NARY(
        &tutti_op_non_max_suppression, inputs, TUTTI_INT("max_output", o.max_output),
        TUTTI_FLOAT("iou_threshold", o.iou_threshold),
        TUTTI_FLOAT("score_threshold", o.has_score_threshold ? o.score_threshold : -INFINITY),
        TUTTI_INT("center_point_box", o.center_point_box));
}

static const tutti_attr_spec attrs[] = {{"max_output", TUTTI_ATTR_INT, "0"},
                                        {"iou_threshold", TUTTI_ATTR_FLOAT, "0"},
                                        {"score_threshold", TUTTI_ATTR_FLOAT, "-inf"},
                                        {"center_point_box", TUTTI_ATTR_INT, "false"},
                                        {NULL, TUTTI_ATTR_NONE, NULL}};

static const char *const samples[] = {
    "f32[1,4,4]{=0,0,1,1,0,0.1,1,1.1,0,10,1,11,0,0,1,1} f32[1,2,4]{0:1} | max_output=2 "
    "iou_threshold=0.5",
    "f32[2,5,4]{0:1} f32[2,1,5]{0:1} i64[]{=3} f32[]{=0.4} f32[1]{=0.3} | center_point_box=true",
    "f64[1,3,4]{0:1} f64[1,2,3]{0:1} i32[1]{=9}",
    NULL,
};

const tutti_op tutti_op_non_max_suppression = {
    .struct_size = sizeof(tutti_op),
    .name = "non_max_suppression",
    .version = 1,
    .doc = "non_max_suppression(boxes, scores[, max_output[, iou_threshold[, score_threshold]]]): "
           "rows [image, class, box] by falling score, without boxes that overlap a better one",
    .category = "network",
    .min_inputs = 2,
    .max_inputs = 5,
    .outputs = 1,
    .flags = TUTTI_OP_DYNAMIC | TUTTI_OP_NO_GRADIENT,
    .attrs = attrs,
    .infer = non_max_suppression_infer,
    .cost = non_max_suppression_cost,
    .reference = non_max_suppression_reference,
    .samples = samples,
};
