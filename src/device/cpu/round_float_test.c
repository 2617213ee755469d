#include <stdio.h>

#include "base/test.h"
#include "device/cpu/kernel_check.h"

/* Small floats of all kinds; units that no float has, finer ones, larger than all; what is special,
 * halves. All numbers are the reference's. */
TUTTI_TEST(kernel_round_float_matches)
{
    static const char *const values[] = {
        "[2000]{-500:500}",
        "[2000]{-0.01:0.01}",
        "[1000]{-3e38:3e38}",
        ("[20]{=0,-0,nan,inf,-inf,1e-45,-1e-45,1.1754944e-38,3.4028234e38,-3.4028234e38,0.5,1.5,"
         "2.5,1.0625,1.1875,0.001,-0.0009,470,-1e9,464}"),
    };
    static const char *const forms[] = {
        "",
        "mantissa=2 least=-14 most=57344 saturate=false infinite=true",
        "mantissa=1 least=0 most=6",
        "mantissa=10 least=-14 most=65504 saturate=false",
        "mantissa=52 least=-1074 most=1e300",
        "mantissa=23 least=-126 most=3.4028234e38",
        "mantissa=52 least=10 most=1e9",
        "mantissa=0 least=1023 most=1e300",
        "mantissa=30 least=-100 most=0.25"};
    char text[400];
    tutti__kernel_check_op("round_float");
    for (size_t v = 0; v < TUTTI_COUNT(values); v++)
        for (size_t f = 0; f < TUTTI_COUNT(forms); f++) {
            snprintf(text, sizeof text, "f32%s | %s", values[v], forms[f]);
            CHECK(tutti__kernel_check("round_float", text, 0) > 0);
        }
}
