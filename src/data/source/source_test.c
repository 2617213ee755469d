/* source_test.c: what the sources give, and which files they refuse. */
#include <stdio.h>
#include <string.h>

#include "base/test.h"
#include "data/test_folder.h"
#include "io/example.h"
#include "io/tfrecord.h"
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

TUTTI_TEST(tensors_need_equally_many_rows)
{
    tutti_tensor *x, *y;
    tutti_job *job = tutti_open(NULL, NULL);
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 2, (int64_t[]){3, 2}, &x));
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 1, (int64_t[]){4}, &y));
    CHECK(tutti_from_tensor_slices(job, x, y) == NULL);
    CHECK_STATUS(tutti_job_check(job), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "tensor 1 has 4 rows, tensor 0 has 3");
    CHECK_CONTAINS(tutti_error_message(), "source_test.c:");
    tutti_tensor_release(x);
    tutti_tensor_release(y);
    tutti_close(job);
}

TUTTI_TEST(rows_of_views_and_of_empty_tensors)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_tensor *x, *turned, *none;
    float values[] = {0, 1, 2, 3, 4, 5};
    CHECK_OK(tutti_tensor_from(TUTTI_F32, 2, (int64_t[]){2, 3}, values, &x));
    CHECK_OK(tutti_tensor_permute(x, (int[]){1, 0}, &turned));
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 2, (int64_t[]){0, 3}, &none));
    tutti_element element = first_of(tutti_skip(tutti_from_tensor_slices(job, turned), 1));
    CHECK_NEAR(tutti_tensor_get(element.tensors[0], 0), 1, 0);
    CHECK_NEAR(tutti_tensor_get(element.tensors[0], 1), 4, 0);
    tutti_element_release(&element);
    CHECK_OK(tutti_dataset_peek(
        tutti_batch(tutti_shuffle(tutti_from_tensor_slices(job, none), 0), 4), &element));
    CHECK_INT(element.count, 0);
    tutti_tensor_release(x);
    tutti_tensor_release(turned);
    tutti_tensor_release(none);
    CHECK_INT(tutti_close(job), 0);
}

TUTTI_TEST(text_lines_end_as_lines_do)
{
    test_folder folder;
    test_folder_make(&folder);
    static const char text[] = "one\r\n\ntwo words\nlast";
    static const char *const lines[] = {"one", "", "two words", "last"};
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_dataset *dataset =
        tutti_text_lines(job, test_folder_write(&folder, "a.txt", text, sizeof text - 1));
    CHECK_INT(info_of(dataset).cardinality, 4);
    CHECK_STR(info_of(dataset).names[0], "line");
    tutti_iterator *iterator = tutti_iterate(dataset, 0);
    for (int i = 0; i < 4; i++) {
        tutti_element element = {0};
        CHECK_OK(tutti_next_element(iterator, &element));
        tutti_string line = tutti_tensor_get_string(element.tensors[0], 0);
        CHECK_INT(line.size, strlen(lines[i]));
        CHECK(memcmp(line.data, lines[i], (size_t)line.size) == 0);
        tutti_element_release(&element);
    }
    CHECK_INT(info_of(tutti_text_lines(job, test_folder_write(&folder, "b", "", 0))).cardinality,
              0);
    CHECK(tutti_text_lines(job, "/nonexistent/file") == NULL);
    CHECK_STATUS(tutti_job_check(job), TUTTI_NOT_FOUND);
    tutti_close(job);
    test_folder_remove(&folder);
}

static const char iris[] = "length,width,species,note\n"
                           "1.5,2,setosa,\"a, b\"\n"
                           "2.5,,virginica,c\n"
                           "3,4,setosa,d\n";

TUTTI_TEST(csv_columns_become_components)
{
    test_folder folder;
    test_folder_make(&folder);
    const char *path = test_folder_write(&folder, "iris.csv", iris, sizeof iris - 1);
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_dataset *dataset = tutti_csv(job, path, .label = "species");
    tutti_dataset_info info = info_of(dataset);
    CHECK_INT(info.components, 4);
    CHECK_STR(info.names[0], "length");
    CHECK_STR(info.names[2], "note");
    CHECK_STR(info.names[3], "species");
    CHECK_INT(info.types[2].dtype, TUTTI_STRING);
    CHECK_INT(info.types[3].dtype, TUTTI_I64);
    CHECK_INT(info.classes, 2);
    CHECK_INT(info.cardinality, 3);
    tutti_element element = first_of(tutti_skip(dataset, 1));
    CHECK_NEAR(tutti_tensor_get(element.tensors[0], 0), 2.5, 0);
    CHECK_INT(tutti_tensor_get_int(element.tensors[3], 0), 1);
    tutti_element_release(&element);
    dataset =
        tutti_csv(job, path, .columns = {"width", "length"}, .label = "species", .stack = true);
    element = first_of(tutti_batch(tutti_skip(dataset, 2), 4));
    CHECK_INT(element.count, 2);
    CHECK_INT(tutti_tensor_dims(element.tensors[0])[1], 2);
    CHECK_NEAR(tutti_tensor_get(element.tensors[0], 0), 4, 0);
    CHECK_NEAR(tutti_tensor_get(element.tensors[0], 1), 3, 0);
    tutti_element_release(&element);
    dataset = tutti_csv(job, path, .columns = {"species", "width"}, .label = "species",
                        .stack = true); /* a label among the columns is the label still */
    element = first_of(tutti_batch(dataset, 2));
    CHECK_INT(element.count, 2);
    CHECK_INT(tutti_tensor_dims(element.tensors[0])[1], 1);
    tutti_element_release(&element);
    CHECK_INT(tutti_close(job), 0);
    test_folder_remove(&folder);
}

/* Each file or request, and what the message must say. */
TUTTI_TEST(hostile_csv_is_refused)
{
    static const struct {
        const char *text, *column, *expected;
    } cases[] = {
        {iris, "colour", "has no column 'colour'; it has: length, width, species, note"},
        {"a,b\n1,2\n3\n", NULL, "x.csv"},
        {"a,b\n1,2,3\n", NULL, "x.csv"},
        {"a,b\n\"1,2\n", NULL, "x.csv"},
        {"", NULL, ""},
        {"a,a\n1,2\n", NULL, ""},
    };
    for (size_t i = 0; i < TUTTI_COUNT(cases); i++) {
        test_folder folder;
        test_folder_make(&folder);
        tutti_job *job = tutti_open(NULL, NULL);
        const char *path =
            test_folder_write(&folder, "x.csv", cases[i].text, strlen(cases[i].text));
        tutti_dataset *dataset = tutti_csv(job, path, .label = cases[i].column);
        if (i < 4)
            CHECK(dataset == NULL);
        if (!dataset) {
            CHECK(tutti_job_check(job) != TUTTI_OK);
            CHECK_CONTAINS(tutti_error_message(), cases[i].expected);
            CHECK_CONTAINS(tutti_error_message(), "csv (source_test.c:");
        }
        tutti_close(job);
        test_folder_remove(&folder);
    }
}

TUTTI_TEST(a_wide_csv_asks_for_a_choice)
{
    test_folder folder;
    test_folder_make(&folder);
    char text[256] = "";
    for (int i = 0; i < 20; i++)
        snprintf(text + strlen(text), 8, "%sc%d", i ? "," : "", i);
    strcat(text, "\n");
    for (int i = 0; i < 20; i++)
        snprintf(text + strlen(text), 8, "%s%d", i ? "," : "", i);
    const char *path = test_folder_write(&folder, "wide.csv", text, strlen(text));
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_dataset_info info = info_of(tutti_csv(job, path, .stack = true, .label = "c19"));
    CHECK_INT(info.types[0].dims[0], 19);
    CHECK_INT(info.classes, 20);
    CHECK(tutti_csv(job, path) == NULL);
    CHECK_STATUS(tutti_job_check(job), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), ".stack = true");
    tutti_close(job);
    test_folder_remove(&folder);
}

TUTTI_TEST(npy_files_are_rows)
{
    test_folder folder;
    test_folder_make(&folder);
    tutti_tensor *x, *y;
    char a[160], b[160], both[160];
    strcpy(a, test_folder_name(&folder, "image.npy"));
    strcpy(b, test_folder_name(&folder, "label.npy"));
    strcpy(both, test_folder_name(&folder, "both.npz"));
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 2, (int64_t[]){5, 2}, &x));
    CHECK_OK(tutti_tensor_create(TUTTI_I64, 1, (int64_t[]){5}, &y));
    tutti_tensor_set_int(y, 4, 44);
    CHECK_OK(tutti_npy_save(a, x));
    CHECK_OK(tutti_npy_save(b, y));
    CHECK_OK(tutti_npz_save(both, 2, (tutti_named_tensor[]){{"inputs", x}, {"targets", y}}, true));
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_dataset *files = tutti_npy_dataset(job, 2, (const char *[]){a, b}),
                  *archive = tutti_npz_dataset(job, both);
    CHECK_STR(info_of(files).names[0], "image");
    CHECK_STR(info_of(archive).names[1], "targets");
    tutti_element element = first_of(tutti_skip(tutti_zip(files, archive), 4));
    CHECK_INT(tutti_tensor_get_int(element.tensors[1], 0), 44);
    CHECK_INT(tutti_tensor_get_int(element.tensors[3], 0), 44);
    tutti_element_release(&element);
    tutti_tensor_release(x);
    tutti_tensor_release(y);
    CHECK_INT(tutti_close(job), 0);
    test_folder_remove(&folder);
}

/* Three Examples with "age" i64 and "scores" of as many f32 as the age; the last has no age. */
static void write_examples(const char *path)
{
    tutti_sink *sink;
    CHECK_OK(tutti__sink_file(path, TUTTI_FILE_REPLACE, &sink));
    for (int64_t i = 1; i <= 3; i++) {
        tutti_tensor *age, *scores, *none;
        tutti_text bytes = {0};
        CHECK_OK(tutti_tensor_create(TUTTI_I64, 1, (int64_t[]){1}, &age));
        CHECK_OK(tutti_tensor_create(TUTTI_F32, 1, &i, &scores));
        tutti_tensor_set_int(age, 0, i);
        tutti_tensor_set(scores, i - 1, 0.5);
        CHECK_OK(tutti_tensor_create(TUTTI_I64, 1, (int64_t[]){0}, &none));
        tutti_named_tensor features[] = {{"none", none}, {"scores", scores}, {"age", age}};
        CHECK_OK(tutti__example_build(i < 3 ? 3 : 2, features, &bytes));
        tutti_tensor_release(none);
        CHECK_OK(tutti__tfrecord_put(sink, bytes.data, bytes.size));
        tutti__text_free(&bytes);
        tutti_tensor_release(age);
        tutti_tensor_release(scores);
    }
    CHECK_OK(tutti__sink_commit(sink));
}

TUTTI_TEST(tfrecords_are_bytes_or_examples)
{
    test_folder folder;
    test_folder_make(&folder);
    char path[160];
    strcpy(path, test_folder_name(&folder, "a.tfrecord"));
    write_examples(path);
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_element element = first_of(tutti_skip(tutti_tfrecords(job, path), 2));
    CHECK_INT(tutti_tensor_dtype(element.tensors[0]), TUTTI_STRING);
    tutti_element_release(&element);
    tutti_dataset *dataset =
        tutti_tfrecords(job, NULL, .count = 2, .paths = (const char *[]){path, path},
                        .features = TUTTI_FEATURES({"age", TUTTI_I64, .optional = true},
                                                   {"scores", TUTTI_F32, 1, {TUTTI_ANY}}));
    element = first_of(tutti_padded_batch(tutti_shuffle(dataset, 1), 6));
    static const int64_t ages[] = {1, 2, 0, 1, 2, 0};
    for (int i = 0; i < 6; i++)
        CHECK_INT(tutti_tensor_get_int(element.tensors[0], i), ages[i]);
    CHECK_INT(tutti_tensor_dims(element.tensors[1])[1], 3);
    CHECK_NEAR(tutti_tensor_get(element.tensors[1], 8), 0.5, 0);
    tutti_element_release(&element);
    dataset =
        tutti_tfrecords(job, path, .features = TUTTI_FEATURES({"none", TUTTI_I64, 1, {TUTTI_ANY}}));
    element = first_of(dataset); /* an empty list is there */
    CHECK_INT(tutti_tensor_count(element.tensors[0]), 0);
    tutti_element_release(&element);
    dataset = tutti_tfrecords(job, path, .features = TUTTI_FEATURES({"age", TUTTI_F32}));
    CHECK_STATUS(tutti_dataset_peek(dataset, &element), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(),
                   "feature 'age' is i64[1], the list of features says f32[]");
    CHECK_CONTAINS(tutti_error_message(), "element 0 of epoch 0");
    tutti_close(job);
    test_folder_remove(&folder);
}

/* A source that could not be made has said where it was asked for. */
static void check_place(tutti_job *job, tutti_dataset *made, int line)
{
    char place[64];
    snprintf(place, sizeof place, "(source_test.c:%d)", line);
    CHECK(made == NULL);
    CHECK(tutti_job_check(job) != TUTTI_OK);
    CHECK_CONTAINS(tutti_error_message(), place);
    tutti_close(job);
}
#define CHECK_PLACE(call)                                                                          \
    do {                                                                                           \
        tutti_job *job = tutti_open(NULL, NULL);                                                   \
        tutti_here("an_earlier_call.c", 1);                                                        \
        check_place(job, call, __LINE__);                                                          \
    } while (0)

TUTTI_TEST(sources_that_fail_name_the_line_of_their_call)
{
    const char *const path = "/tmp/tutti-no-such-file";
    CHECK_PLACE(tutti_text_lines(job, path));
    CHECK_PLACE(tutti_idx(job, path, NULL));
    CHECK_PLACE(tutti_npy_dataset(job, 1, &path));
    CHECK_PLACE(tutti_npz_dataset(job, path));
    CHECK_PLACE(tutti_mnist(job, "nothing"));
    CHECK_PLACE(tutti_cifar10(job, "nothing"));
    CHECK_PLACE(tutti_range_dataset(job, 0, 1, 0));
    CHECK_PLACE(tutti_from_generator(job, &(tutti_generator){0}));
    CHECK_PLACE(TUTTI_AT((tutti_from_tensor_slices)(job, 0, NULL)));
}
