#include "base/test.h"
#include "device/cpu/kernel_check.h"

TUTTI_TEST(kernel_attention_matches)
{
    static const char *const samples[] = {
        "f32[2,3,70,20] f32[2,3,130,20] f32[2,3,130,25]",
        "f32[1,2,150,16] f32[1,2,150,16] f32[1,2,150,16] | causal=true",
        "f32[1,2,64,32] f32[1,2,64,32] f32[1,2,64,80] f32[64,64]",
        "f32[2,2,5,4] f32[2,2,100,4] f32[2,2,100,3] f32[2,1,1,100] | causal=true first_query=95",
        "f32[1,1,3,2] f32[1,1,4,2] f32[1,1,4,2] f32[3,4]{=-inf} ",
        "f32[1,1,3,2] f32[1,1,4,2] f32[1,1,4,2] | causal=true first_query=-2",
        "f32[2,3,64,32] f32[2,3,64,32] f32[2,3,64,32] | causal=true",
        "f32[1,2,70,16] f32[1,2,131,16] f32[1,2,131,48]",
        "f32[1,2,37,48] f32[1,2,150,48] f32[1,2,150,16] f32[2,1,150] | causal=true first_query=90",
        "f32[1,1,9,16] f32[1,1,13,16] f32[1,1,13,16] f32[9,13]{=-inf}",
        "f32[1,1,19,16] f32[1,1,13,16] f32[1,1,13,16] | causal=true first_query=-7",
    };
    tutti__kernel_check_op("attention");
    for (size_t i = 0; i < TUTTI_COUNT(samples); i++)
        CHECK(tutti__kernel_check("attention", samples[i], 1e-4) > 0);
}

TUTTI_TEST(kernel_attention_backward_matches)
{
    static const char *const samples[] = {
        "f32[2,3,70,20] f32[2,3,130,20] f32[2,3,130,25] f32[2,3,70,25] f32[2,3,70]{5:6} "
        "f32[2,3,70,25]",
        "f32[1,2,150,16] f32[1,2,150,16] f32[1,2,150,16] f32[1,2,150,16] f32[1,2,150]{5:6} "
        "f32[1,2,150,16] f32[1,2,150] | causal=true grads=3",
        "f32[2,2,5,4] f32[2,2,100,4] f32[2,2,100,3] f32[2,2,5,3] f32[2,2,5]{5:6} f32[2,2,5] "
        "f32[2,1,1,100] | causal=true first_query=95 grads=2",
        "f32[2,3,64,32] f32[2,3,64,32] f32[2,3,64,32] f32[2,3,64,32] f32[2,3,64]{5:6} "
        "f32[2,3,64,32] | causal=true",
        "f32[1,2,70,16] f32[1,2,131,16] f32[1,2,131,48] f32[1,2,70,48] f32[1,2,70]{5:6} "
        "f32[1,2,70,48]",
        "f32[1,2,37,48] f32[1,2,150,48] f32[1,2,150,16] f32[1,2,37,16] f32[1,2,37]{5:6} "
        "f32[1,2,37] f32[2,1,150] | causal=true first_query=90 grads=2",
        "f32[1,1,19,16] f32[1,1,13,16] f32[1,1,13,16] f32[1,1,19,16] "
        "f32[1,1,19]{=-inf,-inf,-inf,-inf,-inf,-inf,-inf,5,5,5,5,5,5,5,5,5,5,5,5} "
        "f32[1,1,19,16] | causal=true first_query=-7",
    };
    tutti__kernel_check_op("attention_backward");
    for (size_t i = 0; i < TUTTI_COUNT(samples); i++)
        CHECK(tutti__kernel_check("attention_backward", samples[i], 1e-4) > 0);
}
