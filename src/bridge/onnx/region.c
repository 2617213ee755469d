/* region.c: regions of images. */
#include <string.h>

#include "bridge/onnx.h"

static void write_roi_align(tutti_onnx_export *x)
{
    const int64_t *size;
    const char *regions = tutti__onnx_in(x, 1), *images = tutti__onnx_in(x, 2);
    NODE_INTS(x, "size", &size);
    if (tutti__onnx_type_in(x, 2)->dtype != TUTTI_I64)
        images = tutti__onnx_cast(x, images, TUTTI_I64);
    const char *y = ONNX(x, "RoiAlign", tutti__onnx_in_first(x, 0), regions, images);
    tutti__onnx_set_int(x, "output_height", size[0]);
    tutti__onnx_set_int(x, "output_width", size[1]);
    tutti__onnx_set_int(x, "sampling_ratio", NODE_INT(x, "sampling_ratio"));
    tutti__onnx_set_float(x, "spatial_scale", NODE_FLOAT(x, "spatial_scale"));
    tutti__onnx_set_string(x, "mode", strcmp(NODE_STR(x, "mode"), "max") == 0 ? "max" : "avg");
    tutti__onnx_set_string(x, "coordinate_transformation_mode",
                           NODE_INT(x, "half_pixel") ? "half_pixel" : "output_half_pixel");
    tutti__onnx_out_as(x, 0, y, true);
}

/* Before opset 16 there was only the form that moves nothing by half a pixel. */
static void read_roi_align(tutti_onnx_import *m)
{
    const char *mode = tutti__onnx_attr_string(m, "mode", "avg");
    const char *fallback = m->onnx->opset < 16 ? "output_half_pixel" : "half_pixel";
    const char *coordinates =
        tutti__onnx_attr_string(m, "coordinate_transformation_mode", fallback);
    tutti_roi_align_options o = {
        .struct_size = sizeof o,
        .size = {tutti__onnx_attr_int(m, "output_height", 1),
                 tutti__onnx_attr_int(m, "output_width", 1)},
        .sampling_ratio = tutti__onnx_attr_int(m, "sampling_ratio", 0),
        .spatial_scale = tutti__onnx_attr_float(m, "spatial_scale", 1),
        .mode = strcmp(mode, "avg") == 0 ? "mean" : mode,
        .output_half_pixel = strcmp(coordinates, "half_pixel") != 0,
    };
    tutti_sym x = tutti__onnx_sym_last(m, 0), regions = tutti__onnx_sym(m, 1),
              images = tutti__onnx_sym(m, 2);
    tutti__onnx_made_as(m, 0, tutti_roi_align_with(x, regions, images, &o), true);
}

const tutti_onnx_op tutti_onnx_roi_align = {
    .op = "roi_align",
    .type = "RoiAlign",
    .write = write_roi_align,
    .read = read_roi_align,
};
