/* roi_align.c: regions of images sampled to one size. */
#include "ops/network/roi_align.h"

extern const tutti_op tutti_op_roi_align;

static tutti_status roi_align_infer(tutti_infer *node)
{
    return tutti__roi_infer(node, &node->outputs[0]);
}

static tutti_status roi_align_gradient(tutti_gradient_call *node)
{
    tutti_attr attrs[] = {SAME_ROI(node)};
    if (!tutti_sym_ok(node->output_grads[0]))
        return TUTTI_OK;
    tutti_sym inputs[] = {node->inputs[0], node->inputs[1], node->inputs[2], node->output_grads[0]};
    tutti_sym back = tutti_apply_op(node->graph, "roi_align_backward", 4, inputs,
                                    (int)TUTTI_COUNT(attrs), attrs);
    for (int i = 0; i < 2; i++)
        if (node->wanted[i])
            node->input_grads[i] = tutti_sym_output(back, i);
    return TUTTI_OK;
}

static void roi_align_cost(const tutti_infer *node, tutti_cost *ret)
{
    tutti__roi_cost(node, &node->outputs[0], ret);
}

/* By channels, by regions. */
static int roi_align_split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    tutti_ways ways = {0, capacity, ret};
    tutti__way_add(&ways, SLOTS(3, TUTTI_WHOLE, TUTTI_WHOLE), SLOTS(3));
    tutti__way_add(&ways, SLOTS(TUTTI_WHOLE, 0, 0), SLOTS(0));
    return ways.count;
}

/* Adds a place to the bin's result y: its mean's part, or what is larger. `first`: y is new. */
static void add_place(const tutti_roi *roi, const tutti_roi_place *p, const double *x,
                      int64_t channels, double part, bool largest, bool first, double *y)
{
    for (int corner = 0; corner < 4; corner++) {
        int a = corner / 2, b = corner % 2;
        double weight = p->outside ? 0 : p->axes[0].weight[a] * p->axes[1].weight[b];
        const double *pixel = x + (p->outside ? 0 : tutti__roi_pixel(roi, p, a, b, channels));
        for (int64_t c = 0; c < channels; c++) {
            double value = p->outside ? 0 : weight * pixel[c];
            if (!largest)
                y[c] += part * value;
            else if ((first && corner == 0) || value > y[c])
                y[c] = value;
        }
    }
}

static void fill_bin(const tutti_roi *roi, const int64_t bin[2], const double *x, int64_t channels,
                     bool largest, double *y)
{
    int64_t rows = roi->axes[0].grid, columns = roi->axes[1].grid;
    for (int64_t i = 0; i < rows * columns; i++) {
        tutti_roi_place p = tutti__roi_place(roi, bin, (int64_t[]){i / columns, i % columns});
        add_place(roi, &p, x, channels, 1 / (double)(rows * columns), largest, i == 0, y);
    }
}

static tutti_status roi_align_run(const tutti_kernel_call *call, const double *const *inputs,
                                  double *const *outputs, tutti_arena *scratch)
{
    const int64_t *dims = call->outputs[0].dims;
    bool largest = strcmp(tutti_attr_string(call->attrs, call->attr_count, "mode"), "max") == 0;
    double *y = outputs[0];
    for (int64_t i = 0; i < dims[0]; i++) {
        tutti_roi roi;
        TUTTI_TRY(tutti__roi(call, inputs[TUTTI_ROI_REGIONS], i, &roi));
        for (int64_t bin = 0; bin < dims[1] * dims[2]; bin++, y += dims[3])
            fill_bin(&roi, (int64_t[]){bin / dims[2], bin % dims[2]}, inputs[TUTTI_ROI_X], dims[3],
                     largest, y);
    }
    return TUTTI_OK;
}

static tutti_status roi_align_reference(const tutti_kernel_call *call)
{
    return tutti__on_doubles(call, roi_align_run);
}

tutti_sym tutti_roi_align_with(tutti_sym x, tutti_sym regions, tutti_sym images,
                               const tutti_roi_align_options *given)
{
    TAKE_OPTIONS(tutti_roi_align_options, o, given);
    tutti_sym inputs[] = {x, regions, images};
    for (int axis = 0; axis < 2; axis++)
        o.size[axis] += o.size[axis] == 0;
    return TUTTI_NARY(&tutti_op_roi_align, inputs, TUTTI_INTS("size", 2, o.size),
                      TUTTI_INT("sampling_ratio", o.sampling_ratio),
                      TUTTI_FLOAT("spatial_scale", o.spatial_scale == 0 ? 1 : o.spatial_scale),
                      TUTTI_STR("mode", o.mode == NULL ? "mean" : o.mode),
                      TUTTI_INT("half_pixel", !o.output_half_pixel));
}

static const tutti_attr_spec attrs[] = {ROI_ATTRS, {NULL, TUTTI_ATTR_NONE, NULL}};

static const char *const samples[] = {
    "f32[2,5,6,3] f32[2,4]{=0.3,0.6,4.4,3.7,1.2,0.9,3.1,4.1} i64[2]{=1,0} | size=[2,3] "
    "sampling_ratio=2",
    "f32[1,6,6,2] f32[3,4]{=1,2.2,9.1,8.3,0.4,0.7,0.9,1.1,3,3,10.2,7.7} i32[3]{=0,0,0} | "
    "size=[2,2] spatial_scale=0.5 half_pixel=false sampling_ratio=1",
    "f32[1,5,5,2] f32[1,4]{=0.35,0.4,4.3,4.6} i64[1]{=0} | size=[2,2] mode=max sampling_ratio=2",
    "f32[1,7,7,1] f32[1,4]{=0.35,0.4,5.3,5.6} i64[1]{=0} | size=[2,1]",
    NULL,
};

const tutti_op tutti_op_roi_align = {
    .struct_size = sizeof(tutti_op),
    .name = "roi_align",
    .version = 1,
    .doc = "roi_align(x, regions, images): y[r,h,w,c] = mean (or max) of x[images[r],·,·,c] at "
           "places inside bin (h,w) of region r, which is (x1, y1, x2, y2)",
    .category = "network",
    .min_inputs = 3,
    .max_inputs = 3,
    .outputs = 1,
    .flags = TUTTI_OP_FALLIBLE,
    .attrs = attrs,
    .infer = roi_align_infer,
    .gradient = roi_align_gradient,
    .cost = roi_align_cost,
    .split = roi_align_split,
    .reference = roi_align_reference,
    .samples = samples,
};
