#include <math.h>

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
        /* scores above l count as l */
        "f32[1,2,37,16] f32[1,2,70,16] f32[1,2,70,16] f32[1,2,37,16] f32[1,2,37]{-0.3:0.3} "
        "f32[1,2,37,16]",
        "f32[1,2,9,20] f32[1,2,70,20] f32[1,2,70,25] f32[1,2,9,25] f32[1,2,9]{-20:0.3} "
        "f32[1,2,9,25]",
        /* some l that are coarse, all of them, and of scores that are all the same */
        "f32[1,2,37,16] f32[1,2,150,16] f32[1,2,150,16] f32[1,2,37,16] f32[1,2,37]{-100:100} "
        "f32[1,2,37,16] | causal=true first_query=90",
        "f32[1,2,9,20] f32[1,2,70,20] f32[1,2,70,25] f32[1,2,9,25] f32[1,2,9]{-100:100} "
        "f32[1,2,9,25]",
        "f32[1,2,70,16]{=0} f32[1,2,131,16] f32[1,2,131,16] f32[1,2,70,16] f32[1,2,70]{=-1e9} "
        "f32[1,2,70,16] f32[70,131]{=-1e9}",
        "f32[1,2,70,20]{=0} f32[1,2,131,20] f32[1,2,131,25] f32[1,2,70,25] f32[1,2,70]{=-1e9} "
        "f32[1,2,70,25] f32[70,131]{=-1e9} | causal=true first_query=61",
        "f32[1,1,9,16] f32[1,1,13,16] f32[1,1,13,16] f32[1,1,9,16] f32[1,1,9]{=-1e9} "
        "f32[1,1,9,16] f32[9,13]{=-inf}",
    };
    tutti__kernel_check_op("attention_backward");
    for (size_t i = 0; i < TUTTI_COUNT(samples); i++)
        CHECK(tutti__kernel_check("attention_backward", samples[i], 1e-4) > 0);
}

/* ---- what a query must not see ---- */

/* Writes `value` over every `step`th row of an input, from the row `first` of each head. */
static void spoil(tutti_sample *sample, int input, int64_t first, int64_t step, double value)
{
    const int64_t *dims = sample->types[input].dims;
    for (int64_t head = 0; head < dims[0] * dims[1]; head++)
        for (int64_t row = first; row < dims[2]; row += step)
            for (int64_t c = 0; c < dims[3]; c++)
                tutti_tensor_set(sample->values[input], (head * dims[2] + row) * dims[3] + c,
                                 value);
}

/* In one column of a row only. */
static void spoil_element(tutti_sample *sample, int input, int64_t row, double value)
{
    const int64_t width = sample->types[input].dims[3];
    tutti_tensor_set(sample->values[input], row * width + row % width, value);
}

/* As f32 and in 16 bits, which come to f32's kernels. */
static void check_spoiled(const tutti_sample *sample)
{
    static const tutti_dtype others[] = {TUTTI_F16, TUTTI_BF16};
    CHECK(tutti__kernel_check_sample(sample, 1e-4) > 0);
    for (size_t i = 0; i < TUTTI_COUNT(others); i++) {
        tutti_sample *other;
        CHECK_OK(tutti__sample_cast(sample, TUTTI_F32, others[i], &other));
        CHECK(tutti__kernel_check_sample(other, 2e-2) > 0);
        tutti__sample_free(other);
    }
}

/* Rows before the spoilt ones are what they were without them, the others what the reference
 * says. */
TUTTI_TEST(kernel_attention_does_not_see_what_comes_later)
{
    static const char *const samples[] = {
        "f32[1,2,150,16] f32[1,2,150,16] f32[1,2,150,16] | causal=true",
        "f32[1,2,70,20] f32[1,2,70,20] f32[1,2,70,25] | causal=true",
        "f32[1,1,37,48] f32[1,1,150,48] f32[1,1,150,16] | causal=true first_query=90",
        "f32[1,1,19,16] f32[1,1,13,16] f32[1,1,13,16] | causal=true first_query=-7",
    };
    static const double values[] = {NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < TUTTI_COUNT(samples); i++)
        for (int64_t first = 1; first < 150; first = 3 * first + 4)
            for (int what = 0; what < 9; what++) { /* keys, values, both */
                tutti_sample *sample;
                CHECK_OK(tutti__sample_parse(tutti_op_find("attention"), samples[i], 3, &sample));
                if (what % 3 != 1)
                    spoil(sample, 1, first, 41, values[what / 3]);
                if (what % 3 != 0)
                    spoil(sample, 2, first, 29, values[what / 3]);
                if (first < sample->types[2].dims[2])
                    spoil_element(sample, 2, first, values[what / 3]);
                check_spoiled(sample);
                tutti__sample_free(sample);
            }
}

/* A weight of 0 is none, also of what is infinite; a key that is NaN is seen all the same. */
TUTTI_TEST(kernel_attention_does_not_see_values_that_are_masked)
{
    static const char *const samples[] = {
        "f32[1,2,70,16] f32[1,2,131,16] f32[1,2,131,16] f32[70,131]",
        "f32[1,2,70,20] f32[1,2,131,20] f32[1,2,131,25] f32[70,131] | causal=true first_query=61",
        "f32[1,1,9,16] f32[1,1,13,16] f32[1,1,13,16] f32[9,13]{=-inf}",
    };
    static const double values[] = {NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < TUTTI_COUNT(samples); i++)
        for (int what = 0; what < 6; what++) {
            tutti_sample *sample;
            CHECK_OK(tutti__sample_parse(tutti_op_find("attention"), samples[i], 3, &sample));
            const int64_t *dims = sample->types[3].dims;
            for (int64_t row = 0; row < dims[0]; row++)
                for (int64_t key = 0; key < dims[1]; key++)
                    if (key % 5 == 2 || (row % 4 != 0 && key % 7 == 3))
                        tutti_tensor_set(sample->values[3], row * dims[1] + key, -INFINITY);
            spoil(sample, 2, what < 3 ? 2 : 3, what < 3 ? 5 : 7, values[what % 3]);
            if (what == 5)
                spoil(sample, 1, 12, 60, NAN);
            check_spoiled(sample);
            tutti__sample_free(sample);
        }
}

/* The weights of values are no larger for one that is infinite. */
TUTTI_TEST(kernel_attention_of_large_scores_bears_infinite_values)
{
    static const char *const samples[] = {
        "f32[1,2,70,16]{=0} f32[1,2,131,16] f32[1,2,131,16] f32[70,131]{=-1e9}",
        "f32[1,2,70,20]{=0} f32[1,2,131,20] f32[1,2,131,25] f32[70,131]{=-1e9}",
    };
    for (size_t i = 0; i < TUTTI_COUNT(samples); i++) {
        tutti_sample *sample;
        CHECK_OK(tutti__sample_parse(tutti_op_find("attention"), samples[i], 3, &sample));
        spoil_element(sample, 2, 5, INFINITY);
        CHECK(tutti__kernel_check_sample(sample, 1e-4) > 0);
        tutti__sample_free(sample);
    }
}

/* Gradients of what is seen do not meet what is not: of keys and values that come later, of queries
 * and their gradients that come before. */
TUTTI_TEST(kernel_attention_backward_does_not_see_what_is_hidden)
{
    static const char *const samples[] = {
        "f32[1,2,150,16] f32[1,2,150,16] f32[1,2,150,16] f32[1,2,150,16] f32[1,2,150]{5:6} "
        "f32[1,2,150,16] f32[1,2,150] | causal=true grads=3",
        "f32[1,2,70,20] f32[1,2,70,20] f32[1,2,70,25] f32[1,2,70,25] f32[1,2,70]{5:6} "
        "f32[1,2,70,25] | causal=true",
        "f32[1,1,37,48] f32[1,1,150,48] f32[1,1,150,16] f32[1,1,37,16] f32[1,1,37]{5:6} "
        "f32[1,1,37] | causal=true first_query=90 grads=2",
        "f32[1,1,19,16] f32[1,1,13,16] f32[1,1,13,16] f32[1,1,19,16] "
        "f32[1,1,19]{=-inf,-inf,-inf,-inf,-inf,-inf,-inf,5,5,5,5,5,5,5,5,5,5,5,5} "
        "f32[1,1,19,16] | causal=true first_query=-7",
        "f32[1,1,70,16] f32[1,1,70,16] f32[1,1,70,16] f32[1,1,70,16] f32[1,1,70]{-100:100} "
        "f32[1,1,70,16] | causal=true",
    };
    static const int inputs[] = {0, 1, 2, 3, 5};
    for (size_t i = 0; i < TUTTI_COUNT(samples); i++)
        for (int64_t first = 1; first < 150; first = 3 * first + 4)
            for (size_t n = 0; n < TUTTI_COUNT(inputs); n++) {
                tutti_sample *sample;
                CHECK_OK(tutti__sample_parse(tutti_op_find("attention_backward"), samples[i], 3,
                                             &sample));
                if (sample->types[inputs[n]].rank == 4)
                    spoil(sample, inputs[n], first, 1000, first % 2 ? NAN : -INFINITY);
                CHECK(tutti__kernel_check_sample(sample, 1e-4) > 0);
                tutti__sample_free(sample);
            }
}
