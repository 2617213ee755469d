/* roi_align_test.c: regions against the numbers of ONNX's reference. */
#include "ops/network/network_test.h"

TUTTI_TEST(roi_align_agrees_with_onnx)
{
    tutti_graph *g = tutti__test_graph();
    tutti_tensor *corners = NULL, *numbers = NULL;
    CHECK_OK(tutti_tensor_from(TUTTI_F64, 2, (int64_t[]){2, 4},
                               (double[]){0.3, 0.6, 4.4, 3.7, 1.2, 0.9, 7.1, 4.1}, &corners));
    CHECK_OK(tutti_tensor_from(TUTTI_I64, 1, (int64_t[]){2}, (int64_t[]){1, 0}, &numbers));
    tutti_sym x = WAVE(g, 0, 2, 5, 6, 2), regions = tutti_constant(g, corners),
              images = tutti_constant(g, numbers);
    CHECK_SYM(tutti_roi_align(x, regions, images, .size = {2, 2}, .sampling_ratio = 2), 0.0101659,
              0.0119667, -0.0012877, 0.0101852, -0.0085153, -0.0069063, -0.0009648, -0.0076141,
              -0.0450289, -0.0011387, -0.0045320, -0.0550667, -0.0456639, -0.0203073, 0.0190826,
              -0.0457017);
    CHECK_SYM(tutti_roi_align(x, regions, images, .size = {2, 1}, .spatial_scale = 0.5,
                              .output_half_pixel = true),
              0.0040471, -0.0206963, -0.0025984, -0.0054774, -0.0797704, 0.0066728, 0.0365002,
              0.0047952);
    CHECK_SYM(
        tutti_roi_align(x, regions, images, .size = {1, 2}, .sampling_ratio = 2, .mode = "max"),
        0.3228171, 0.2190719, 0.2455793, 0.2657164, 0.2071918, 0.1634958, 0.2241922, 0.2729689);
    tutti_tensor_release(corners);
    tutti_tensor_release(numbers);
    tutti_graph_destroy(g);
}

TUTTI_TEST(roi_align_says_what_is_wrong)
{
    CHECK_REFUSES("roi_align", "f32[1,5,6,3] f32[1,5] i64[1]{=0}", TUTTI_INVALID, "two corners");
    CHECK_REFUSES("roi_align", "f32[1,5,6,3] f32[1,4] i64[1]{=1}", TUTTI_INVALID, "names image 1");
    CHECK_REFUSES("roi_align", "f32[1,5,6,3] f32[1,4]{=0,0,1e9,1} i64[1]{=0}", TUTTI_INVALID,
                  "give a sampling_ratio");
    CHECK_REFUSES("roi_align", "f32[1,5,6,3] f32[1,4]{=nan,0,1,1} i64[1]{=0} | sampling_ratio=2",
                  TUTTI_INVALID, "region 0 is [nan, 0, 1, 1]; corners must be finite numbers");
    CHECK_REFUSES("roi_align", "f32[1,5,6,3] f32[1,4]{=0,0,1,inf} i64[1]{=0} | sampling_ratio=2",
                  TUTTI_INVALID, "region 0 is [0, 0, 1, inf]; corners must be finite numbers");
    CHECK_REFUSES("roi_align", "f32[1,5,6,3] f32[1,4] f32[1]", TUTTI_INVALID, "needs i32 or i64");
}

/* Without a sampling ratio each region has as many places as it needs: here 2, 1 and, upside down,
 * none along an axis. A region may lie outside. */
TUTTI_TEST(second_derivatives_of_odd_regions)
{
    static const char regions[] =
        "f64[1,5,5,2] f64[4,4]{=0.35,0.4,3.3,4.6,1.2,1.25,1.9,2.1,3.2,3.3,1.1,1.4,9,9.3,12,12.4} "
        "i64[4]{=0,0,0,0} | size=[2,2]";
    char text[240];
    CHECK_GRADIENTS("roi_align", regions, 2);
    snprintf(text, sizeof text, "%s mode=max", regions);
    CHECK_GRADIENTS("roi_align", text, 2);
    CHECK_GRADIENTS("roi_align", "f64[1,1,3,1] f64[1,4]{=0.35,0.4,2.3,0.8} i32[1]{=0} | size=[1,2]",
                    2);
}
