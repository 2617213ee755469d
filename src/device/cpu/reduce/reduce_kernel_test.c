#include "base/test.h"
#include "device/cpu/kernel_check.h"

TUTTI_TEST(kernel_reductions_match)
{
    static const char *const ops[] = {"sum", "mean", "max", "min"};
    static const char *const samples[] = {
        "f32[100000]",
        "f32[3,40000] | axes=[1]",
        "f32[5000,7] | axes=[1]",
        "f32[5000,7] | axes=[0]",
        "f32[40000,32] | axes=[0]",
        "f32[70,3000] | axes=[0]",
        "f32[200,1500] | axes=[0] keep_dims=true",
        "f32[20,30,40] | axes=[1]",
        "f32[20,30,40] | axes=[0,2]",
        "f32[9,10,11,12] | axes=[0,2]",
        "f32[9,10,11,12] | axes=[1,3]",
        "f32[7,1,5,1] | axes=[1,3]",
        "f32[1,1] | axes=[0]",
        "f64[300,200] | axes=[0]",
        "f64[300,200] | axes=[1]",
        "f64[50000]",
        "f32[6]{=1,2,nan,4,5,6}",
        "f32[3,20]{=-inf} | axes=[1]",
    };
    for (size_t o = 0; o < TUTTI_COUNT(ops); o++) {
        tutti__kernel_check_op(ops[o]);
        for (size_t i = 0; i < TUTTI_COUNT(samples); i++)
            CHECK(tutti__kernel_check(ops[o], samples[i], 3e-4) > 0);
    }
}

TUTTI_TEST(kernel_positions_match)
{
    static const char *const ops[] = {"argmax", "argmin"};
    static const char *const samples[] = {
        "f32[1000,10] | axis=1",
        "f32[300,40] | axis=0",
        "f32[7,30,5] | axis=1",
        "f32[6]{=3,nan,5,nan,1,9} | axis=0",
        "f32[5]{=2} | axis=0",
        "f32[4]{=-inf} | axis=0",
        "f32[70,300] | axis=1",
        "f32[3,37]{=2} | axis=1",
        "f32[3,50]{=-inf} | axis=1",
        "f32[37]{=1,2,3,4,5,6,7,8,9,0,1,2,3,4,5,6,7,8,9,0,1,2,3,4,5,6,7,8,9,0,1,2,3,4,5,6,7} | axis=0",
        "f32[37]{=1,2,3,4,5,6,7,8,9,0,1,2,3,4,5,6,7,8,9,0,nan,2,3,4,5,6,7,8,9,0,1,2,3,nan,5,6,7} | axis=0",
        "f32[37]{=1,2,3,4,5,6,7,8,9,0,1,2,3,4,5,6,7,8,9,0,1,2,3,4,5,6,7,8,9,0,1,2,3,4,5,inf,inf} | axis=0",
    };
    for (size_t o = 0; o < TUTTI_COUNT(ops); o++) {
        tutti__kernel_check_op(ops[o]);
        for (size_t i = 0; i < TUTTI_COUNT(samples); i++)
            CHECK(tutti__kernel_check(ops[o], samples[i], 0) > 0);
    }
}
