/* conv_test.c: convolutions against the references. */
#include <stdio.h>

#include "base/test.h"
#include "device/cpu/kernel_check.h"

TUTTI_TEST(direct_convolutions_agree_with_their_references)
{
    tutti__kernel_check_op("conv2d");
    tutti__kernel_check_op("conv2d_backward_input");
    tutti__kernel_check_op("conv2d_backward_kernel");
}

TUTTI_TEST(direct_convolutions_agree_on_larger_shapes)
{
    static const char *const forward[] = {
        "f32[3,28,28,1] f32[3,3,1,32]",
        "f32[2,9,13,5] f32[3,3,5,17] | padding=same strides=[2,2]",
        "f32[1,11,8,3] f32[5,3,3,10] | dilations=[2,2] padding=same",
        "f32[2,7,20,8] f32[1,1,8,40]",
        "f32[2,9,8,16] f32[1,1,16,16] | padding=same strides=[2,2]",
        "f32[1,12,12,4] f32[3,3,4,6] | strides=[3,2] dilations=[2,3]",
        NULL,
    };
    static const char *const input[] = {
        "f32[3,3,1,32] f32[3,26,26,32] | size=[28,28]",
        "f32[3,3,5,17] f32[2,5,7,17] | padding=same strides=[2,2] size=[9,13]",
        "f32[5,3,3,10] f32[1,11,8,10] | dilations=[2,2] padding=same size=[11,8]",
        "f32[1,1,16,16] f32[2,5,4,16] | padding=same strides=[2,2] size=[9,8]",
        "f32[3,3,4,6] f32[1,3,3,6] | strides=[3,2] dilations=[2,3] size=[12,12]",
        "f32[5,5,6,16] f32[2,10,10,16] | size=[14,14]",
        "f32[2,2,3,5] f32[1,2,2,5] | strides=[4,3] size=[7,6]",
        "f32[3,2,1,7] f32[2,5,9,7] | size=[7,10]",
        "f32[3,3,8,9] f32[2,6,11,9] | padding=same size=[6,11]",
        "f32[5,3,5,4] f32[1,8,6,4] | padding=explicit pads=[3,1,0,4] size=[8,4]",
        NULL,
    };
    static const char *const kernel[] = {
        "f32[19,28,28,1] f32[19,26,26,32] | size=[3,3]",
        "f32[2,9,13,5] f32[2,5,7,17] | padding=same strides=[2,2] size=[3,3]",
        "f32[1,11,8,3] f32[1,11,8,10] | dilations=[2,2] padding=same size=[5,3]",
        "f32[2,14,14,6] f32[2,10,10,16] | size=[5,5]",
        "f32[2,32,32,3] f32[2,28,28,6] | size=[5,5]",
        "f32[2,6,6,1] f32[2,5,5,3] | size=[2,2]",
        "f32[2,9,8,16] f32[2,5,4,16] | padding=same strides=[2,2] size=[1,1]",
        NULL,
    };
    for (int i = 0; forward[i]; i++)
        CHECK(tutti__kernel_check("conv2d", forward[i], 1e-4) > 0);
    for (int i = 0; input[i]; i++)
        CHECK(tutti__kernel_check("conv2d_backward_input", input[i], 1e-4) > 0);
    for (int i = 0; kernel[i]; i++)
        CHECK(tutti__kernel_check("conv2d_backward_kernel", kernel[i], 1e-3) > 0);
}

TUTTI_TEST(winograd_convolutions_agree_with_their_references)
{
    static const char *const forward[] = {
        "f32[2,13,9,16] f32[3,3,16,16] | padding=same",
        "f32[1,10,14,13] f32[3,3,13,21]",
        "f32[3,7,7,32] f32[3,3,32,40] | padding=same",
        "f32[1,8,7,12] f32[3,3,12,12] | padding=explicit pads=[3,1,0,4]",
        "f32[5,4,4,64] f32[3,3,64,64] | padding=same",
        NULL,
    };
    static const char *const input[] = {
        "f32[3,3,16,16] f32[2,13,9,16] | padding=same size=[13,9]",
        "f32[3,3,13,21] f32[1,8,12,21] | size=[10,14]",
        "f32[3,3,32,40] f32[3,7,7,40] | padding=same size=[7,7]",
        "f32[3,3,12,12] f32[1,10,9,12] | padding=explicit pads=[3,1,0,4] size=[8,7]",
        NULL,
    };
    static const char *const kernel[] = {
        "f32[2,13,9,16] f32[2,13,9,16] | padding=same size=[3,3]",
        "f32[1,10,14,13] f32[1,8,12,21] | size=[3,3]",
        "f32[3,7,7,32] f32[3,7,7,40] | padding=same size=[3,3]",
        "f32[1,8,7,12] f32[1,10,9,12] | padding=explicit pads=[3,1,0,4] size=[3,3]",
        "f32[40,12,12,16] f32[40,12,12,16] | padding=same size=[3,3]",
        NULL,
    };
    for (int i = 0; forward[i]; i++)
        CHECK(tutti__kernel_check("conv2d", forward[i], 1e-4) > 1);
    for (int i = 0; input[i]; i++)
        CHECK(tutti__kernel_check("conv2d_backward_input", input[i], 1e-4) > 1);
    for (int i = 0; kernel[i]; i++)
        CHECK(tutti__kernel_check("conv2d_backward_kernel", kernel[i], 1e-3) > 1);
}

TUTTI_TEST(depthwise_convolutions_agree_with_their_references)
{
    CHECK(tutti__kernel_check("conv2d", "f32[2,9,8,37] f32[3,3,1,37] | groups=37 padding=same",
                              1e-4) > 0);
    CHECK(tutti__kernel_check("conv2d",
                              "f32[2,9,8,64] f32[3,2,1,64] | groups=64 strides=[2,1] "
                              "dilations=[2,2]",
                              1e-4) > 0);
    CHECK(tutti__kernel_check("conv2d_backward_input",
                              "f32[3,3,1,37] f32[2,5,4,37] | groups=37 padding=same strides=[2,2] "
                              "size=[9,8]",
                              1e-4) > 0);
    CHECK(tutti__kernel_check("conv2d_backward_kernel",
                              "f32[2,9,8,37] f32[2,5,4,37] | groups=37 padding=same strides=[2,2] "
                              "size=[3,3]",
                              1e-4) > 0);
}

TUTTI_TEST(gathered_convolutions_agree_with_their_references)
{
    static const char *const ops[] = {"conv3d", "conv3d_backward_input", "conv3d_backward_kernel"};
    static const char *const samples[][2] = {
        {"conv2d", "f32[2,9,7,12] f32[3,3,3,20] | groups=4 padding=same"},
        {"conv2d", "f32[3,6,7,24] f32[2,3,1,48] | groups=24 strides=[2,1] dilations=[1,2]"},
        {"conv2d", "f32[1,8,8,64] f32[3,3,32,64] | groups=2 padding=same strides=[2,2]"},
        {"conv2d_backward_input", "f32[3,3,3,20] f32[2,5,4,20] | groups=4 padding=same "
                                  "strides=[2,2] size=[9,7]"},
        {"conv2d_backward_input", "f32[2,3,1,48] f32[3,3,3,48] | groups=24 strides=[2,1] "
                                  "dilations=[1,2] size=[6,7]"},
        {"conv2d_backward_kernel", "f32[2,9,7,12] f32[2,5,4,20] | groups=4 padding=same "
                                   "strides=[2,2] size=[3,3]"},
        {"conv2d_backward_kernel", "f32[3,6,7,24] f32[3,3,3,48] | groups=24 strides=[2,1] "
                                   "dilations=[1,2] size=[2,3]"},
        {"conv3d", "f32[2,6,9,8,5] f32[3,3,3,5,17] | padding=same strides=[2,1,2]"},
        {"conv3d", "f32[1,5,6,7,8] f32[2,3,2,4,12] | groups=2 dilations=[3,1,2]"},
        {"conv3d_backward_input", "f32[3,3,3,5,17] f32[2,3,9,4,17] | padding=same "
                                  "strides=[2,1,2] size=[6,9,8]"},
        {"conv3d_backward_input", "f32[2,3,2,4,12] f32[1,2,4,5,12] | groups=2 dilations=[3,1,2] "
                                  "size=[5,6,7]"},
        {"conv3d_backward_kernel", "f32[2,6,9,8,5] f32[2,3,9,4,17] | padding=same "
                                   "strides=[2,1,2] size=[3,3,3]"},
        {"conv3d_backward_kernel", "f32[1,5,6,7,8] f32[1,2,4,5,12] | groups=2 dilations=[3,1,2] "
                                   "size=[2,3,2]"},
    };
    for (size_t i = 0; i < TUTTI_COUNT(ops); i++)
        tutti__kernel_check_op(ops[i]);
    for (size_t i = 0; i < TUTTI_COUNT(samples); i++)
        CHECK(tutti__kernel_check(samples[i][0], samples[i][1], 1e-3) > 0);
}

/* "f32[…]" of `count` elements of which channel 0 of `channels` is `odd`, all else small numbers.
 */
static int print_odd(char *to, size_t size, const char *type, int count, int channels,
                     const char *odd)
{
    int used = snprintf(to, size, "%s{=", type);
    for (int i = 0; i < count; i++)
        used += i % channels == 0
                    ? snprintf(to + used, size - (size_t)used, "%s%s", i ? "," : "", odd)
                    : snprintf(to + used, size - (size_t)used, ",0.%d", i % 9 + 1);
    return used + snprintf(to + used, size - (size_t)used, "}");
}

TUTTI_TEST(groups_see_nothing_of_each_other)
{
    static const struct {
        const char *op, *before, *odd;
        int count, channels;
        const char *after;
    } cases[] = {
        {"conv2d", "", "f32[2,5,4,12]", 480, 12, " f32[3,2,3,20] | groups=4 padding=same"},
        {"conv2d", "", "f32[1,6,5,48]", 1440, 48, " f32[2,3,2,24] | groups=24 strides=[2,1]"},
        {"conv2d_backward_input", "f32[3,3,3,20] ", "f32[2,3,2,20]", 240, 20,
         " | groups=4 padding=same strides=[2,2] size=[5,4]"},
        {"conv2d_backward_input", "f32[2,3,2,24] ", "f32[1,5,3,24]", 360, 24,
         " | groups=24 size=[6,5]"},
        {"conv3d", "", "f32[1,4,5,3,8]", 480, 8, " f32[2,3,2,4,12] | groups=2"},
        {"conv3d_backward_input", "f32[2,3,2,4,12] ", "f32[1,3,3,2,12]", 216, 12,
         " | groups=2 size=[4,5,3]"},
    };
    static const char *const odd[] = {"inf", "-inf", "nan"};
    char text[16384], values[16000];
    for (size_t i = 0; i < TUTTI_COUNT(cases); i++)
        for (size_t o = 0; o < TUTTI_COUNT(odd); o++)
            for (const char *const *isa = tutti__kernel_check_isas; *isa; isa++) {
                if (!tutti__kernel_check_under(*isa))
                    continue;
                print_odd(values, sizeof values, cases[i].odd, cases[i].count, cases[i].channels,
                          odd[o]);
                snprintf(text, sizeof text, "%s%s%s", cases[i].before, values, cases[i].after);
                CHECK(tutti__kernel_check(cases[i].op, text, 1e-4) > 0);
            }
    tutti__kernel_check_under(NULL);
}
