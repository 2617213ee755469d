/* roi.c: see roi_align.h. */
#include <math.h>

#include "ops/network/roi_align.h"
#include "ops/network/window.h"

tutti_status tutti__roi_infer(const tutti_infer *node, tutti_type *ret_y)
{
    char text[TUTTI_TYPE_TEXT];
    const tutti_type *x = &node->inputs[TUTTI_ROI_X], *images = &node->inputs[TUTTI_ROI_IMAGES];
    const char *mode = RULE_STRING(node, "mode");
    const int64_t *size;
    int64_t ratio = RULE_INT(node, "sampling_ratio");
    double scale = RULE_FLOAT(node, "spatial_scale");
    TUTTI_TRY(tutti__need_floats(node, TUTTI_ROI_X, 2));
    TUTTI_TRY(tutti__need_rank(node, TUTTI_ROI_X, "x", 4, "[batch,height,width,channels]"));
    TUTTI_TRY(tutti__need_rank(node, TUTTI_ROI_REGIONS, "regions", 2, "[regions,4]"));
    TUTTI_TRY(tutti__need_rank(node, TUTTI_ROI_IMAGES, "images", 1, "[regions]"));
    TUTTI_TRY(tutti__need_dim(node, TUTTI_ROI_REGIONS, "regions", 1, 4, "two corners"));
    TUTTI_TRY(tutti__need_dim(node, TUTTI_ROI_IMAGES, "images", 0,
                              node->inputs[TUTTI_ROI_REGIONS].dims[0], "number of regions"));
    TUTTI_TRY(tutti__need_ints(node, "size", 2, 1, &size));
    if (images->handle || (images->dtype != TUTTI_I64 && images->dtype != TUTTI_I32))
        return RULE_FAIL(node, TUTTI_INVALID, "images is %s, needs i32 or i64",
                         tutti_type_text(images, text));
    if (ratio < 0 || ratio > TUTTI_ROI_MOST_PLACES || !(scale > 0) || !isfinite(scale))
        return RULE_FAIL(
            node, TUTTI_INVALID,
            "sampling_ratio is %lld, needs 0 to %d; spatial_scale is %g, needs above 0",
            (long long)ratio, TUTTI_ROI_MOST_PLACES, scale);
    if (strcmp(mode, "mean") != 0 && strcmp(mode, "max") != 0)
        return RULE_FAIL(node, TUTTI_INVALID, "mode is \"%s\", needs \"mean\" or \"max\"", mode);
    if (x->dims[1] == 0 || x->dims[2] == 0)
        return RULE_FAIL(node, TUTTI_INVALID, "x is %s; there is nothing to sample",
                         tutti_type_text(x, text));
    int64_t dims[] = {tutti__known(node->inputs[TUTTI_ROI_REGIONS].dims[0], images->dims[0]),
                      size[0], size[1], x->dims[3]};
    *ret_y = tutti_type_make(x->dtype, 4, dims);
    return TUTTI_OK;
}

tutti_status tutti__roi(const tutti_kernel_call *call, const double *regions, int64_t i,
                        tutti_roi *ret)
{
    const int64_t *size, *dims = call->inputs[TUTTI_ROI_X].dims;
    bool half = CALL_INT(call, "half_pixel") != 0;
    int64_t ratio = CALL_INT(call, "sampling_ratio");
    tutti_roi roi = {.scale = CALL_FLOAT(call, "spatial_scale"),
                     .image = tutti_view_get_int(&call->inputs[TUTTI_ROI_IMAGES], i)};
    tutti_attr_ints(call->attrs, call->attr_count, "size", &size);
    if (roi.image < 0 || roi.image >= dims[0])
        return RULE_FAIL(call, TUTTI_INVALID, "region %lld names image %lld, there are %lld",
                         (long long)i, (long long)roi.image, (long long)dims[0]);
    for (int axis = 0; axis < 2; axis++) {
        tutti_roi_axis *a = &roi.axes[axis];
        double shift = half ? 0.5 : 0, end = regions[4 * i + 3 - axis] * roi.scale - shift;
        *a = (tutti_roi_axis){.size = dims[axis + 1], .bins = size[axis]};
        a->start = regions[4 * i + 1 - axis] * roi.scale - shift;
        a->length = end - a->start;
        a->clamped = !half && a->length < 1;
        a->length = a->clamped ? 1 : a->length;
        if (!isfinite(a->start) || !isfinite(end))
            return RULE_FAIL(call, TUTTI_INVALID,
                             "region %lld is [%g, %g, %g, %g]; corners must be finite numbers",
                             (long long)i, regions[4 * i], regions[4 * i + 1], regions[4 * i + 2],
                             regions[4 * i + 3]);
        double places = ratio > 0 ? (double)ratio : ceil(a->length / (double)a->bins);
        if (!(places <= TUTTI_ROI_MOST_PLACES))
            return RULE_FAIL(call, TUTTI_INVALID,
                             "region %lld is %g pixels long, too much for %lld bins; give a "
                             "sampling_ratio",
                             (long long)i, a->length, (long long)a->bins);
        a->grid = places > 0 ? (int64_t)places : 0;
    }
    *ret = roi;
    return TUTTI_OK;
}

bool tutti__roi_side(const tutti_roi *roi, int axis, int64_t bin, int64_t place,
                     tutti_roi_side *ret)
{
    const tutti_roi_axis *a = &roi->axes[axis];
    double part = (double)bin + ((double)place + 0.5) / (double)a->grid;
    double t = part / (double)a->bins, at = a->start + t * a->length;
    double last = (double)(a->size - 1);
    bool still = at <= 0 || at >= last; /* where moving it changes nothing */
    if (!(at >= -1 && at <= (double)a->size))
        return false;
    at = at < 0 ? 0 : at > last ? last : at;
    int64_t low = (int64_t)at;
    ret->index[0] = low;
    ret->index[1] = low < a->size - 1 ? low + 1 : low;
    ret->weight[1] = at - (double)low;
    ret->weight[0] = 1 - ret->weight[1];
    ret->slope[0] = still ? 0 : -roi->scale;
    ret->slope[1] = still ? 0 : roi->scale;
    ret->start = a->clamped ? 1 : 1 - t;
    ret->end = a->clamped ? 0 : t;
    return true;
}

tutti_roi_place tutti__roi_place(const tutti_roi *roi, const int64_t bin[2], const int64_t place[2])
{
    tutti_roi_place p = {0};
    for (int axis = 0; axis < 2 && !p.outside; axis++)
        p.outside = !tutti__roi_side(roi, axis, bin[axis], place[axis], &p.axes[axis]);
    return p;
}

void tutti__roi_cost(const tutti_infer *node, const tutti_type *y, tutti_cost *ret)
{
    int64_t ratio = RULE_INT(node, "sampling_ratio"), places = ratio > 0 ? ratio * ratio : 4;
    tutti__cost_flops(node, 8 * (double)places * tutti__elements(y), ret);
}
