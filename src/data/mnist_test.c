/* mnist_test.c: drawn digits are the same every time, and look like ten classes. */
#include <string.h>

#include "base/test.h"
#include "data/digits.h"
#include "data/test_folder.h"
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

/* What is said of an IDX file of images with these dimensions beside one of 3 labels. */
static const char *found_in(uint8_t type, int rank, const uint8_t *dims)
{
    static const uint8_t labels[8 + 3] = {0, 0, 8, 1, 0, 0, 0, 3};
    static uint8_t images[20 + 4096];
    tutti_tensor *x, *y;
    test_folder folder;
    size_t size = type == 0x0d ? 4 : 1, header = 4 + 4 * (size_t)rank;
    memset(images, 0, sizeof images);
    images[2] = type;
    images[3] = (uint8_t)rank;
    for (int i = 0; i < rank; i++) {
        images[7 + 4 * i] = dims[i];
        size *= dims[i];
    }
    test_folder_make(&folder);
    test_folder_write(&folder, "t10k-images-idx3-ubyte", images, header + size);
    test_folder_write(&folder, "t10k-labels-idx1-ubyte", labels, sizeof labels);
    CHECK_STATUS(tutti_mnist_load(folder.path, "test", 0, &x, &y), TUTTI_CORRUPT);
    test_folder_remove(&folder);
    return tutti_error_message();
}

TUTTI_TEST(mnist_says_what_files_hold_that_are_not_its)
{
    CHECK_CONTAINS(found_in(8, 3, (const uint8_t[]){3, 32, 32}),
                   "the file of images holds u8[3,32,32], that of labels u8[3]; needed are "
                   "u8[N,28,28] and u8[N]");
    CHECK_CONTAINS(found_in(0x0d, 3, (const uint8_t[]){1, 28, 28}), "holds f32[1,28,28]");
    CHECK_CONTAINS(found_in(8, 2, (const uint8_t[]){3, 28}), "holds u8[3,28]");
    CHECK_CONTAINS(found_in(8, 3, (const uint8_t[]){3, 0, 28}), "holds u8[3,0,28]");
    CHECK_CONTAINS(found_in(8, 3, (const uint8_t[]){2, 28, 28}),
                   "holds u8[2,28,28], that of labels u8[3]; needed are u8[N,28,28] and u8[N] of "
                   "one N");
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
