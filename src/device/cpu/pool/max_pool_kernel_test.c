/* max_pool_kernel_test.c: max-pooling against its references. */
#include <stdio.h>
#include <string.h>

#include "base/test.h"
#include "device/cpu/kernel_check.h"

/* max_pool2d_backward of the image in a sample of max_pool2d. */
static void check_gradient(const char *text)
{
    tutti_sample *forward;
    char line[400], dims[80] = "", *bar = strchr(text, '|');
    CHECK_OK(tutti__sample_parse(tutti_op_find("max_pool2d"), text, 1, &forward));
    const tutti_type *y = &forward->node->types[0];
    for (int i = 0; i < y->rank; i++)
        snprintf(dims + strlen(dims), sizeof dims - strlen(dims), "%s%lld", i > 0 ? "," : "",
                 (long long)y->dims[i]);
    int head = bar == NULL ? (int)strlen(text) : (int)(bar - text);
    snprintf(line, sizeof line, "%.*s f32[%s] %s", head, text, dims, bar == NULL ? "" : bar);
    CHECK(tutti__kernel_check("max_pool2d_backward", line, 1e-6) > 0);
    tutti__sample_free(forward);
}

TUTTI_TEST(kernel_max_pools_match)
{
    tutti__kernel_check_op("max_pool2d");
    tutti__kernel_check_op("max_pool2d_backward");
    CHECK(tutti__kernel_check("max_pool2d", "f32[3,26,26,32]", 0) > 0);
    CHECK(tutti__kernel_check("max_pool2d_backward", "f32[3,26,26,32] f32[3,13,13,32]", 0) > 0);
    CHECK(tutti__kernel_check("max_pool2d_backward", "f32[3,26,26,70] f32[3,13,13,70]", 0) > 0);
    CHECK(tutti__kernel_check("max_pool2d_backward",
                              "f32[2,9,9,3] f32[2,5,5,3] | window=[3,3] strides=[2,2] padding=same",
                              1e-6) > 0);
}

/* Few channels, rows longer than a line of the kernel, windows over the sides. */
TUTTI_TEST(kernel_max_pools_of_few_channels_match)
{
    static const char *const images[] = {"1,5,1100,1", "2,7,23,2", "1,4,401,3",
                                         "3,12,17,7",  "2,5,9,12", "1,2,2,1",
                                         "2,8,8,31",   "2,8,10,8", "2,6,6,16"};
    static const char *const forms[] = {"",
                                        "| window=[3,3] strides=[2,2] padding=same",
                                        "| window=[2,2] strides=[1,1]",
                                        "| window=[2,1] strides=[1,3] padding=same",
                                        "| window=[5,6] strides=[1,4] padding=same",
                                        "| window=[2,2] strides=[2,5]"};
    char text[160];
    for (size_t i = 0; i < TUTTI_COUNT(images); i++)
        for (size_t f = 0; f < TUTTI_COUNT(forms); f++) {
            static const char *const values[] = {"", "{=0}", "{=-inf}", "{=nan}"};
            for (size_t v = 0; v < TUTTI_COUNT(values); v++) {
                snprintf(text, sizeof text, "f32[%s]%s %s", images[i], values[v], forms[f]);
                CHECK(tutti__kernel_check("max_pool2d", text, 0) > 0);
                check_gradient(text);
            }
        }
}

TUTTI_TEST(kernel_max_pools_take_the_first_of_equals_and_nan)
{
    static const char image[] = "{=1,nan,3,3,nan,nan,-0,0,2,3,3,-inf,0,-0,5,5,nan,-inf,-inf,-inf}";
    static const char *const forms[] = {"", "| window=[2,2] strides=[1,1]",
                                        "| window=[3,3] strides=[2,2] padding=same"};
    char text[200];
    for (int channels = 1; channels <= 5; channels += 4)
        for (size_t f = 0; f < TUTTI_COUNT(forms); f++) {
            snprintf(text, sizeof text, "f32[1,%d,%d,%d]%s %s", channels == 1 ? 4 : 2,
                     channels == 1 ? 5 : 2, channels, image, forms[f]);
            CHECK(tutti__kernel_check("max_pool2d", text, 0) > 0);
            check_gradient(text);
        }
}
