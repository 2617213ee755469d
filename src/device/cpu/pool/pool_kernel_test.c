#include <stdio.h>

#include "base/test.h"
#include "device/cpu/kernel_check.h"

TUTTI_TEST(kernel_average_pool_matches)
{
    tutti__kernel_check_op("average_pool2d");
    tutti__kernel_check_op("average_pool2d_backward");
    CHECK(tutti__kernel_check("average_pool2d",
                              "f32[3,20,21,17] | window=[3,2] strides=[2,1] padding=same", -1) > 0);
    CHECK(tutti__kernel_check(
              "average_pool2d_backward",
              "f32[3,10,21,17] | window=[3,2] strides=[2,1] padding=same size=[20,21]", -1) > 0);
}

/* Few channels, rows longer than a line of the kernel, windows over the sides and beyond. */
TUTTI_TEST(kernel_average_pools_of_few_channels_match)
{
    static const char *const images[] = {"1,5,1100,1", "2,7,23,2", "1,4,401,3", "3,12,17,7",
                                         "2,5,9,12",   "1,3,3,1",  "2,8,8,31"};
    static const char *const forms[] = {
        "",
        "window=[3,3] strides=[2,2] padding=same",
        "window=[2,2] strides=[1,1]",
        "window=[2,1] strides=[1,3] padding=same",
        "window=[5,6] strides=[1,4] padding=same",
        "window=[2,2] strides=[2,5] padding=same",
        "window=[2,3] strides=[1,2] padding=explicit pads=[1,0,1,2]",
    };
    char text[240], size[40];
    for (size_t i = 0; i < TUTTI_COUNT(images); i++)
        for (size_t f = 0; f < TUTTI_COUNT(forms); f++) {
            tutti_sample *forward;
            long long h, w;
            snprintf(text, sizeof text, "f32[%s] | %s", images[i], forms[f]);
            CHECK(tutti__kernel_check("average_pool2d", text, -1) > 0);
            CHECK_OK(tutti__sample_parse(tutti_op_find("average_pool2d"), text, 1, &forward));
            const int64_t *y = forward->node->types[0].dims;
            CHECK(sscanf(images[i], "%*d,%lld,%lld", &h, &w) == 2);
            snprintf(size, sizeof size, "size=[%lld,%lld]", h, w);
            snprintf(text, sizeof text, "f32[%lld,%lld,%lld,%lld] | %s %s", (long long)y[0],
                     (long long)y[1], (long long)y[2], (long long)y[3], forms[f], size);
            CHECK(tutti__kernel_check("average_pool2d_backward", text, -1) > 0);
            tutti__sample_free(forward);
        }
}
