/* mnist_test.c: drawn digits are the same every time, and look like ten classes. */
#include <string.h>

#include "base/test.h"
#include "data/digits.h"
#include "tutti/data.h"

TUTTI_TEST(digits_are_a_function_of_seed_and_index)
{
    float a[784], b[784];
    for (uint64_t i = 0; i < 50; i++) {
        int label = tutti__digit_draw(7, i, a);
        CHECK_INT(tutti__digit_draw(7, i, b), label);
        CHECK(memcmp(a, b, sizeof a) == 0);
        tutti__digit_draw(7, i + 1, b);
        CHECK(memcmp(a, b, sizeof a) != 0);
    }
}

TUTTI_TEST(digits_have_ink_and_all_labels)
{
    tutti_tensor *images, *labels;
    int seen[10] = {0};
    CHECK_OK(tutti_mnist_load(NULL, "test", 1000, &images, &labels));
    for (int64_t i = 0; i < 1000; i++) {
        double ink = 0;
        for (int64_t p = 0; p < 784; p++) {
            double value = tutti_tensor_get(images, i * 784 + p);
            CHECK(value >= 0 && value <= 1);
            ink += value;
        }
        CHECK(ink > 15 && ink < 400);
        seen[tutti_tensor_get_int(labels, i)]++;
    }
    for (int i = 0; i < 10; i++)
        CHECK(seen[i] > 60);
    tutti_tensor_release(images);
    tutti_tensor_release(labels);
}

TUTTI_TEST(mnist_names_what_is_missing)
{
    tutti_tensor *images, *labels;
    CHECK_STATUS(tutti_mnist_load("/nonexistent", "train", 0, &images, &labels), TUTTI_NOT_FOUND);
    CHECK_CONTAINS(tutti_error_message(), "train-images-idx3-ubyte");
    CHECK_STATUS(tutti_mnist_load(NULL, "validation", 0, &images, &labels), TUTTI_INVALID);
}

TUTTI_TEST(shuffled_is_a_permutation)
{
    int64_t order[100], seen[100] = {0}, again[100];
    tutti_shuffled(3, 1, 100, order);
    tutti_shuffled(3, 1, 100, again);
    CHECK(memcmp(order, again, sizeof order) == 0);
    for (int i = 0; i < 100; i++)
        seen[order[i]]++;
    for (int i = 0; i < 100; i++)
        CHECK_INT(seen[i], 1);
    tutti_shuffled(3, 2, 100, again);
    CHECK(memcmp(order, again, sizeof order) != 0);
}
