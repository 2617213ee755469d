/* images_test.c: sources of images with labels: MNIST, CIFAR-10, IDX files, folders. */
#include <string.h>

#include "base/test.h"
#include "data/resize.h"
#include "data/shapes.h"
#include "data/test_folder.h"
#include "tutti/data.h"
#include "tutti/dataset.h"
#include "tutti/files.h"

static tutti_dataset_info info_of(tutti_dataset *dataset)
{
    tutti_dataset_info info;
    CHECK_OK(tutti_dataset_describe(dataset, &info));
    return info;
}

static tutti_element first_of(tutti_dataset *dataset)
{
    tutti_element element;
    CHECK_OK(tutti_dataset_peek(dataset, &element));
    CHECK(element.count > 0);
    return element;
}

TUTTI_TEST(mnist_by_name_is_the_drawn_digits)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_tensor *images, *labels;
    tutti_dataset *dataset = tutti_load_dataset(job, "mnist", "test");
    tutti_dataset_info info = info_of(dataset);
    char text[TUTTI_TYPE_TEXT];
    CHECK_STR(tutti_type_text(&info.types[0], text), "f32[28,28,1]");
    CHECK_STR(tutti_type_text(&info.types[1], text), "i64[]");
    CHECK_INT(info.cardinality, 10000);
    CHECK_INT(info.classes, 10);
    CHECK(info.random_access);
    tutti_element element = first_of(tutti_batch(dataset, 50));
    CHECK_OK(tutti_mnist_load(NULL, "test", 50, &images, &labels));
    CHECK(tutti_tensor_same(element.tensors[0], images));
    CHECK(tutti_tensor_same(element.tensors[1], labels));
    tutti_element_release(&element);
    element = first_of(tutti_batch(tutti_load_dataset(job, "digits", "test", .one_hot = true), 50));
    for (int64_t i = 0; i < 50; i++)
        CHECK_NEAR(tutti_tensor_get(element.tensors[1], i * 10 + tutti_tensor_get_int(labels, i)),
                   1, 0);
    tutti_element_release(&element);
    tutti_tensor_release(images);
    tutti_tensor_release(labels);
    CHECK(tutti_load_dataset(job, "imagenet", "train") == NULL);
    CHECK_STATUS(tutti_job_check(job), TUTTI_NOT_FOUND);
    CHECK_CONTAINS(tutti_error_message(), "cifar10, digits, mnist");
    tutti_close(job);
}

TUTTI_TEST(every_kind_of_dataset_says_what_it_is)
{
    for (int i = 0; tutti_dataset_kind_at(i); i++) {
        const tutti_dataset_kind *kind = tutti_dataset_kind_at(i);
        tutti_job *job = tutti_open(NULL, NULL);
        tutti_dataset_info info = info_of(kind->open(job, "test"));
        CHECK_INT(info.cardinality, kind->splits[1].examples);
        CHECK_INT(info.classes, kind->classes);
        CHECK(kind->open(job, "nothing") == NULL);
        CHECK_STATUS(tutti_job_check(job), TUTTI_INVALID);
        tutti_close(job);
    }
    CHECK(tutti_dataset_kind_at(-1) == NULL);
}

/* Real MNIST's form, gzip or not, through --data. */
TUTTI_TEST(mnist_reads_idx_files_from_data)
{
    test_folder folder;
    test_folder_make(&folder);
    uint8_t images[16 + 2 * 784] = {0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 28, 0, 0, 0, 28};
    uint8_t labels[8 + 2] = {0, 0, 8, 1, 0, 0, 0, 2, 7, 3};
    for (int i = 0; i < 256; i++)
        images[16 + i] = (uint8_t)i;
    test_folder_write(&folder, "t10k-images-idx3-ubyte", images, sizeof images);
    test_folder_write(&folder, "t10k-labels-idx1-ubyte", labels, sizeof labels);
    char *arguments[] = {(char[]){"test"}, (char[]){"--data"}, folder.path, NULL},
         **argv = arguments;
    int argc = 3;
    tutti_job *job = tutti_open(&argc, &argv);
    tutti_dataset *dataset = tutti_mnist(job, "test");
    tutti_element element = first_of(tutti_batch(dataset, 8));
    CHECK_INT(tutti_tensor_dims(element.tensors[0])[0], 2);
    for (int i = 0; i < 256; i++) /* every byte is k / 255, rounded once */
        CHECK(((float *)tutti_tensor_data(element.tensors[0]))[i] == (float)i / 255);
    CHECK_INT(tutti_tensor_get_int(element.tensors[1], 0), 7);
    tutti_element_release(&element);
    char other[160];
    strcpy(other, test_folder_name(&folder, "t10k-labels-idx1-ubyte"));
    dataset = tutti_idx(job, test_folder_name(&folder, "t10k-images-idx3-ubyte"), other);
    CHECK_INT(info_of(dataset).classes, 8);
    CHECK(tutti_mnist(job, "train") == NULL);
    CHECK_STATUS(tutti_job_check(job), TUTTI_NOT_FOUND);
    CHECK_CONTAINS(tutti_error_message(), "train-images-idx3-ubyte");
    tutti_close(job);
    test_folder_remove(&folder);
}

/* Other types and shapes than MNIST's: i32 labels, f64 rows, f32 planes that get a channel axis. */
TUTTI_TEST(idx_reads_any_numbers)
{
    test_folder folder;
    test_folder_make(&folder);
    static uint8_t colours[20 + 2 * 12] = {0, 0, 8, 4, 0, 0, 0, 2, 0, 0,  0,
                                           2, 0, 0, 0, 2, 0, 0, 0, 3, 255};
    static const uint8_t labels[8 + 8] = {0, 0, 0x0c, 1, 0, 0, 0, 2, 0, 0, 1, 44, 0, 0, 0, 3};
    static const uint8_t rows[12 + 16] = {0, 0, 0x0e, 2, 0, 0, 0, 2, 0, 0, 0, 1, 0x3f, 0xf8};
    static const uint8_t planes[16 + 8] = {0, 0, 0x0d, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 1, 0x40};
    char names[4][160];
    const struct {
        const void *data;
        size_t size;
    } files[] = {{colours, sizeof colours},
                 {labels, sizeof labels},
                 {rows, sizeof rows},
                 {planes, sizeof planes}};
    for (int i = 0; i < 4; i++) {
        char name[2] = {(char)('a' + i)};
        test_folder_write(&folder, name, files[i].data, files[i].size);
        strcpy(names[i], test_folder_name(&folder, name));
    }
    tutti_job *job = tutti_open(NULL, NULL);
    static const struct {
        int rank;
        double first;
    } expected[] = {{3, 1}, {0, 0}, {1, 1.5}, {3, 2}};
    for (int i = 0; i < 4; i++) {
        if (i == 1)
            continue;
        tutti_dataset *dataset = tutti_idx(job, names[i], names[1]);
        CHECK_INT(info_of(dataset).classes, 301);
        tutti_element element = first_of(dataset);
        CHECK_INT(tutti_tensor_dtype(element.tensors[0]), TUTTI_F32);
        CHECK_INT(tutti_tensor_rank(element.tensors[0]), expected[i].rank);
        CHECK_NEAR(tutti_tensor_get(element.tensors[0], 0), expected[i].first, 0);
        CHECK_INT(tutti_tensor_get_int(element.tensors[1], 0), 300);
        tutti_element_release(&element);
    }
    CHECK(tutti_idx(job, names[0], names[2]) == NULL);
    CHECK_CONTAINS(tutti_error_message(), "images_test.c:"); /* the line of the call */
    CHECK_CONTAINS(tutti_error_message(), "one whole number for each row");
    tutti_close(job);
    test_folder_remove(&folder);
}

TUTTI_TEST(cifar_reads_records_from_data)
{
    test_folder folder;
    test_folder_make(&folder);
    static uint8_t records[2 * 3073];
    records[3073] = 6;             /* the second image's label, */
    records[3073 + 1] = 255;       /* the red of its first pixel, */
    records[3073 + 1 + 1025] = 51; /* the green of its second */
    test_folder_write(&folder, "test_batch.bin", records, sizeof records);
    char *arguments[] = {(char[]){"test"}, (char[]){"--data"}, folder.path, NULL},
         **argv = arguments;
    int argc = 3;
    tutti_job *job = tutti_open(&argc, &argv);
    tutti_element element = first_of(tutti_skip(tutti_cifar10(job, "test"), 1));
    CHECK_INT(tutti_tensor_get_int(element.tensors[1], 0), 6);
    CHECK_NEAR(tutti_tensor_get(element.tensors[0], 0), 1, 0);
    CHECK_NEAR(tutti_tensor_get(element.tensors[0], 4), 0.2, 1e-7);
    tutti_element_release(&element);
    CHECK_INT(tutti_close(job), 0);
    test_folder_remove(&folder);
}

TUTTI_TEST(shapes_are_a_function_of_seed_and_index)
{
    static uint8_t a[3072], b[3072];
    int seen[10] = {0};
    for (uint64_t i = 0; i < 500; i++) {
        int class = tutti__shape_draw(1, i, a);
        CHECK_INT(tutti__shape_draw(1, i, b), class);
        CHECK(memcmp(a, b, sizeof a) == 0);
        tutti__shape_draw(2, i, b);
        CHECK(memcmp(a, b, sizeof a) != 0);
        seen[class]++;
    }
    for (int i = 0; i < 10; i++)
        CHECK(seen[i] > 25);
}

TUTTI_TEST(resize_interpolates_between_centres)
{
    static const uint8_t from[] = {0, 255, 255, 0};
    float same[4], wide[8], one[1];
    tutti__resize(from, 2, 2, 1, 2, 2, same);
    for (int i = 0; i < 4; i++)
        CHECK_NEAR(same[i], from[i] / 255.0, 1e-6);
    tutti__resize(from, 1, 2, 1, 1, 8, wide);
    static const double expected[] = {0, 0, 0.125, 0.375, 0.625, 0.875, 1, 1};
    for (int i = 0; i < 8; i++)
        CHECK_NEAR(wide[i], expected[i], 1e-6);
    tutti__resize(from, 2, 2, 1, 1, 1, one);
    CHECK_NEAR(one[0], 0.5, 1e-6);
}

static void save_grey(const char *path, int64_t height, int64_t width, double value)
{
    tutti_tensor *image;
    CHECK_OK(tutti_tensor_create(TUTTI_U8, 3, (int64_t[]){height, width, 1}, &image));
    for (int64_t i = 0; i < height * width; i++)
        tutti_tensor_set(image, i, value);
    tutti_status status = tutti_png_save(path, image);
    tutti_tensor_release(image);
    if (status == TUTTI_UNSUPPORTED)
        SKIP("%s", tutti_error_message());
    CHECK_OK(status);
}

TUTTI_TEST(folders_of_images_are_classes)
{
    test_folder folder, cats, dogs, birds, hidden;
    test_folder_make(&folder);
    strcat(strcpy(birds.path, folder.path), "/birds");
    strcat(strcpy(hidden.path, folder.path), "/.hidden");
    strcat(strcpy(cats.path, folder.path), "/cats");
    strcat(strcpy(dogs.path, folder.path), "/dogs");
    const tutti_world *world = tutti__world();
    CHECK_OK(world->make_folder(world->self, cats.path));
    CHECK_OK(world->make_folder(world->self, dogs.path));
    CHECK_OK(world->make_folder(world->self, birds.path)); /* without pictures, and a class */
    CHECK_OK(world->make_folder(world->self, hidden.path));
    test_folder_write(&folder, "readme.txt", "x", 1);
    test_folder_write(&dogs, "notes.txt", "x", 1);
    test_folder_write(&dogs, "._c.png", "x", 1);
    save_grey(test_folder_name(&cats, "a.png"), 3, 5, 51);
    save_grey(test_folder_name(&cats, "b.PNG"), 8, 2, 102);
    save_grey(test_folder_name(&dogs, "c.png"), 1, 1, 255);
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_dataset *dataset =
        tutti_image_folder(job, folder.path, .height = 4, .width = 6, .channels = 3);
    CHECK_INT(info_of(dataset).cardinality, 3);
    CHECK_INT(info_of(dataset).classes, 3);
    tutti_element element = first_of(tutti_batch(dataset, 8));
    static const double values[] = {0.2, 0.4, 1};
    for (int i = 0; i < 3; i++) {
        CHECK_NEAR(tutti_tensor_get(element.tensors[0], i * 72), values[i], 1e-6);
        CHECK_NEAR(tutti_tensor_get(element.tensors[0], i * 72 + 71), values[i], 1e-6);
        CHECK_INT(tutti_tensor_get_int(element.tensors[1], i), 1 + i / 2);
    }
    tutti_element_release(&element);
    test_folder_write(&dogs, "c.png", "no image", 8);
    dataset = tutti_batch(tutti_image_folder(job, folder.path), 3);
    CHECK(tutti_dataset_peek(dataset, &element) != TUTTI_OK);
    CHECK_CONTAINS(tutti_error_message(), "dogs/c.png");
    CHECK_CONTAINS(tutti_error_message(), "element 2");
    tutti_close(job);
    job = tutti_open(NULL, NULL);
    CHECK(tutti_image_folder(job, cats.path) == NULL);
    CHECK_STATUS(tutti_job_check(job), TUTTI_NOT_FOUND);
    CHECK_CONTAINS(tutti_error_message(), "each class needs one");
    tutti_close(job);
    test_folder_remove(&cats);
    test_folder_remove(&dogs);
    test_folder_remove(&birds);
    test_folder_remove(&hidden);
    test_folder_remove(&folder);
}
