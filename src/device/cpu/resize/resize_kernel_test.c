/* resize_kernel_test.c: resizing against its reference. */
#include <stdio.h>

#include "base/test.h"
#include "device/cpu/kernel_check.h"

TUTTI_TEST(resize_kernels_agree_with_their_references)
{
    static const char *const samples[] = {
        "f32[2,13,17,20] | scales=[2,2] mode=linear",
        "f32[1,40,33,3] | sizes=[17,19] mode=cubic antialias=true exclude_outside=true",
        "f32[3,9,11] | axes=[0,2] sizes=[7,30] mode=linear coordinates=align_corners",
        "f32[1,3,20,30] | axes=[2,3] scales=[2,3] coordinates=asymmetric nearest_mode=floor",
        "f32[1,6,5,4,3] | sizes=[3,10,5] mode=linear",
        ("f32[1,9,8,4] | sizes=[5,11] mode=cubic coordinates=tf_crop_and_resize "
         "roi=[0.1,0.2,1.3,0.9] extrapolation_value=2"),
    };
    tutti__kernel_check_op("resize");
    tutti__kernel_check_op("resize_backward");
    for (size_t i = 0; i < TUTTI_COUNT(samples); i++)
        CHECK(tutti__kernel_check("resize", samples[i], 1e-5) > 0);
    CHECK(tutti__kernel_check("resize_backward",
                              "f32[2,26,34,20] | scales=[2,2] mode=linear dims=[2,13,17,20]",
                              1e-5) > 0);
}

TUTTI_TEST(grid_sample_kernels_agree_with_their_references)
{
    tutti__kernel_check_op("grid_sample");
    tutti__kernel_check_op("grid_sample_backward_input");
    tutti__kernel_check_op("grid_sample_backward_grid");
    CHECK(tutti__kernel_check("grid_sample", "f32[3,9,8,20] f32[3,11,13,2]{-1.4:1.4} | mode=cubic",
                              1e-5) > 0);
    CHECK(tutti__kernel_check("grid_sample_backward_input",
                              "f32[2,11,13,2]{-1.4:1.4} f32[2,11,13,20] | padding=border "
                              "dims=[2,9,8,20]",
                              1e-5) > 0);
}

/* Places inside, over the edges, far outside and none at all; elements that are not numbers count
 * only where they are used. */
TUTTI_TEST(grid_sample_kernels_of_images_agree_with_their_references)
{
    static const int channels[] = {1, 2, 3, 5, 8, 19};
    static const char *const forms[] = {"", "padding=border", "align_corners=true",
                                        "padding=border align_corners=true"};
    char text[200];
    for (size_t i = 0; i < TUTTI_COUNT(channels); i++)
        for (size_t f = 0; f < TUTTI_COUNT(forms); f++) {
            int c = channels[i];
            snprintf(text, sizeof text, "f32[2,9,8,%d] f32[2,11,13,2]{-1.4:1.4} | %s", c, forms[f]);
            CHECK(tutti__kernel_check("grid_sample", text, 1e-5) > 1);
            snprintf(text, sizeof text,
                     "f32[2,11,13,2]{-1.4:1.4} f32[2,11,13,%d] | dims=[2,9,8,%d] %s", c, c,
                     forms[f]);
            CHECK(tutti__kernel_check("grid_sample_backward_input", text, 1e-5) > 1);
            snprintf(text, sizeof text,
                     "f32[2,9,8,%d] f32[2,11,13,2]{-1.4:1.4} f32[2,11,13,%d] | %s", c, c, forms[f]);
            CHECK(tutti__kernel_check("grid_sample_backward_grid", text, 1e-5) > 1);
            snprintf(text, sizeof text,
                     "f32[1,2,1,%d] f32[1,1,8,2]{=-1,1,nan,0,inf,-inf,1e30,-1e30,0,0,-2,2,-1.5,0.5,"
                     "1,nan} | %s",
                     c, forms[f]);
            CHECK(tutti__kernel_check("grid_sample", text, 1e-5) > 1);
        }
    CHECK(tutti__kernel_check("grid_sample",
                              "f32[1,2,2,1]{=nan,1,2,3} f32[1,2,2,2]{=0.5,0.5,0.75,0,2,2,0.6,-0.6}",
                              1e-5) > 1);
}

/* Regions inside, over the edges, outside, without length, of two images; many places in a bin. */
TUTTI_TEST(roi_align_kernels_agree_with_their_references)
{
    static const char *const forms[] = {
        "size=[2,3] sampling_ratio=2", "size=[3,2]", "size=[1,1] sampling_ratio=1",
        "size=[2,2] sampling_ratio=3 half_pixel=false spatial_scale=0.5",
        "size=[2,70] sampling_ratio=40"};
    static const int channels[] = {1, 3, 8, 21};
    static const char regions[] =
        "f32[6,4]{=0.3,0.6,4.4,3.7,1.2,0.9,3.1,4.1,-2,-3,9,12,-9,-9,-7,-6,2,2,2,2,5.5,6.5,8,9} "
        "i64[6]{=1,0,1,0,1,0}";
    char text[240];
    tutti__kernel_check_op("roi_align");
    tutti__kernel_check_op("roi_align_backward");
    for (size_t f = 0; f < TUTTI_COUNT(forms); f++)
        for (size_t i = 0; i < TUTTI_COUNT(channels); i++) {
            int c = channels[i];
            snprintf(text, sizeof text, "f32[2,7,6,%d] %s | %s", c, regions, forms[f]);
            CHECK(tutti__kernel_check("roi_align", text, 1e-5) > 0);
            snprintf(text, sizeof text, "f32[2,7,6,%d] %s f32[6,%d,%d,%d] | %s", c, regions,
                     f == 1   ? 3
                     : f == 2 ? 1
                              : 2,
                     f == 0   ? 3
                     : f == 2 ? 1
                     : f == 4 ? 70
                              : 2,
                     c, forms[f]);
            CHECK(tutti__kernel_check("roi_align_backward", text, 2e-5) > 0);
        }
}
