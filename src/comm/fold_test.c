#include "comm/fold.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/test.h"
#include "base/tiny.h"

enum { VALUES = 1 << 16 };

static void check_all(tutti_dtype dtype, float (*reference)(uint16_t bits))
{
    uint16_t *bits = malloc(VALUES * sizeof *bits), *back = malloc(VALUES * sizeof *back);
    float *wide = malloc(VALUES * sizeof *wide);
    CHECK(bits && back && wide);
    for (int i = 0; i < VALUES; i++)
        bits[i] = (uint16_t)i;
    uint64_t before = tutti__tiny_to_zero(); /* as where kernels run */
    tutti__fold_best()->widen[dtype](bits, VALUES, wide);
    tutti__fold_best()->narrow[dtype](wide, VALUES, back);
    tutti__tiny_set(before);
    for (int i = 0; i < VALUES; i++) {
        float expected = reference(bits[i]);
        if (isnan(expected)) {
            CHECK(isnan(wide[i]));
            CHECK(isnan(reference(back[i])));
            continue;
        }
        CHECK_INT(memcmp(&wide[i], &expected, sizeof expected), 0);
        CHECK_INT(back[i], bits[i]);
    }
    free(bits);
    free(back);
    free(wide);
}

TUTTI_TEST(every_number_of_16_bits_is_kept_where_tiny_numbers_are_zero)
{
    check_all(TUTTI_F16, tutti_f16_to_f32);
    check_all(TUTTI_BF16, tutti_bf16_to_f32);
}
