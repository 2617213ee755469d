/* data.c: `tutti data`: which datasets there are, making, converting and inspecting them. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/job.h"
#include "base/nearest.h"
#include "base/world.h"
#include "cli/command.h"
#include "cli/viewer.h"
#include "io/cifar.h"
#include "io/csv.h"
#include "io/idx.h"

static const char usage[] =
    "usage: tutti data [--json]\n"
    "       tutti data inspect NAME|FILE [--data DIR] [--json]\n"
    "       tutti data make NAME DIR [--data DIR] [--limit N] [--format npz|idx|cifar]\n"
    "       tutti data convert IN OUT\n\n"
    "Without more, lists the datasets that programs can load by name.\n"
    "inspect  splits, shapes, the first examples and how often each class occurs; of a file what\n"
    "         'tutti show' says. --json: an object a line\n"
    "make     writes a dataset's splits into DIR: drawn digits as IDX files named as MNIST's, images\n"
    "         in CIFAR-10's binary form, or NPZ with the arrays x and y\n"
    "convert  .npy, .npz, .safetensors, .csv, CIFAR-10's .bin or IDX (also .gz) to .npy, .npz,\n"
    "         .safetensors or .idx\n\n"
    "exit codes: 0 success, 1 failure, 2 wrong usage\n";

static void list_json(const tutti_dataset_kind *kind)
{
    printf("{\"name\":\"%s\",\"doc\":", kind->name);
    tutti__print_quoted(kind->doc);
    printf(",\"splits\":{");
    for (int k = 0; k < 4 && kind->splits[k].name; k++)
        printf("%s\"%s\":%" PRId64, k ? "," : "", kind->splits[k].name, kind->splits[k].examples);
    printf("},\"classes\":%" PRId64 "}\n", kind->classes);
}

static int list(bool json)
{
    const tutti_dataset_kind *kind;
    for (int i = 0; (kind = tutti_dataset_kind_at(i)) != NULL; i++) {
        if (json) {
            list_json(kind);
            continue;
        }
        printf("%-10s %s\n%-10s", kind->name, kind->doc, "");
        for (int k = 0; k < 4 && kind->splits[k].name; k++)
            printf(" %s %" PRId64, kind->splits[k].name, kind->splits[k].examples);
        printf(", %" PRId64 " classes\n", kind->classes);
    }
    return TUTTI_EXIT_OK;
}

static const tutti_dataset_kind *find_kind(const char *name)
{
    const tutti_dataset_kind *kind;
    tutti_nearest nearest = {.word = name};
    for (int i = 0; (kind = tutti_dataset_kind_at(i)) != NULL; i++) {
        if (strcmp(kind->name, name) == 0)
            return kind;
        tutti__nearest_try(&nearest, kind->name);
    }
    tutti_fail(TUTTI_NOT_FOUND, "there is no dataset '%s'%s; 'tutti data' lists them", name,
               tutti__meant(nearest.found));
    return NULL;
}

/* A whole split as tensors. */
static tutti_status take_split(tutti_job *job, const char *name, const char *split, int64_t limit,
                               tutti_element *ret)
{
    tutti_dataset *data = tutti_load_dataset(job, name, split);
    tutti_dataset_info info;
    TUTTI_TRY(tutti_job_check(job));
    TUTTI_TRY(tutti_dataset_describe(data, &info));
    int64_t count = info.cardinality > 0 ? info.cardinality : 1000000;
    count = limit > 0 && limit < count ? limit : count;
    TUTTI_TRY(tutti_dataset_peek(tutti_batch(data, count), ret));
    return tutti_job_check(job);
}

static tutti_status write_text(const char *path, tutti_text *text)
{
    const tutti_world *world = tutti__world();
    tutti_status status = world->write_file(world->self, path, text->data, text->size);
    tutti__text_free(text);
    return status;
}

/* Floats in [0,1] to bytes; other numbers as they are. */
static tutti_status to_bytes(tutti_tensor *from, tutti_tensor **ret)
{
    const tutti_type *type = tutti_tensor_type(from);
    if (!tutti_dtype_is_float(type->dtype))
        return tutti_tensor_cast(from, TUTTI_U8, ret);
    int rank = type->rank > 1 && type->dims[type->rank - 1] == 1 ? type->rank - 1 : type->rank;
    TUTTI_TRY(tutti_tensor_create(TUTTI_U8, rank, type->dims, ret));
    for (int64_t i = 0; i < tutti_tensor_count(from); i++) {
        double value = 255 * tutti_tensor_get(from, i) + 0.5;
        tutti_tensor_set_int(*ret, i, value < 0 ? 0 : value > 255 ? 255 : (int64_t)value);
    }
    return TUTTI_OK;
}

static tutti_status write_idx(const char *path, tutti_tensor *tensor)
{
    tutti_text text = {0};
    tutti_tensor *bytes;
    TUTTI_TRY(to_bytes(tensor, &bytes));
    tutti_status status = tutti__idx_write(path, bytes, &text);
    tutti_tensor_release(bytes);
    if (status == TUTTI_OK)
        return write_text(path, &text);
    tutti__text_free(&text);
    return status;
}

static tutti_status write_cifar(const char *path, const tutti_element *all)
{
    tutti_sink *sink;
    tutti_tensor *bytes;
    TUTTI_TRY(to_bytes(all->tensors[0], &bytes));
    tutti_status status = tutti__sink_file(path, TUTTI_FILE_REPLACE, &sink);
    if (status == TUTTI_OK)
        status = tutti__sink_end(sink, tutti__cifar_write(sink, bytes, all->tensors[1]));
    tutti_tensor_release(bytes);
    return status;
}

static tutti_status write_split(const char *folder, const char *split, const char *format,
                                const tutti_element *all)
{
    char path[2][4096];
    bool train = strcmp(split, "train") == 0;
    if (strcmp(format, "idx") == 0) {
        snprintf(path[0], sizeof path[0], "%s/%s-images-idx3-ubyte", folder,
                 train ? "train" : "t10k");
        snprintf(path[1], sizeof path[1], "%s/%s-labels-idx1-ubyte", folder,
                 train ? "train" : "t10k");
        TUTTI_TRY(write_idx(path[0], all->tensors[0]));
        return write_idx(path[1], all->tensors[1]);
    }
    if (strcmp(format, "cifar") == 0) {
        snprintf(path[0], sizeof path[0], "%s/%s.bin", folder,
                 train ? "data_batch_1" : "test_batch");
        return write_cifar(path[0], all);
    }
    tutti_named_tensor arrays[] = {{"x", all->tensors[0]}, {"y", all->tensors[1]}};
    snprintf(path[0], sizeof path[0], "%s/%s.npz", folder, split);
    return tutti_npz_save(path[0], 2, arrays, true);
}

static tutti_status data_make(tutti_job *job, const char *name, const char *folder,
                              const char *format, int64_t limit)
{
    const tutti_world *world = tutti__world();
    const tutti_dataset_kind *kind = find_kind(name);
    if (!kind)
        return TUTTI_NOT_FOUND;
    if (!format)
        format = strcmp(name, "cifar10") == 0 ? "cifar" : "idx";
    TUTTI_TRY(world->make_folder(world->self, folder));
    for (int i = 0; i < 4 && kind->splits[i].name; i++) {
        tutti_element all;
        TUTTI_TRY(take_split(job, name, kind->splits[i].name, limit, &all));
        tutti_status status = all.count < 2
                                  ? tutti_fail(TUTTI_UNSUPPORTED, "'%s' has no labels", name)
                                  : write_split(folder, kind->splits[i].name, format, &all);
        if (status == TUTTI_OK)
            printf("%s: %" PRId64 " examples of %s written\n", folder,
                   tutti_tensor_dims(all.tensors[0])[0], kind->splits[i].name);
        tutti_element_release(&all);
        TUTTI_TRY(status);
    }
    return TUTTI_OK;
}

/* ---- inspecting ---- */

static void show_digit(const tutti_tensor *images, int64_t index)
{
    static const char shades[] = " .:-=+*#%@";
    const int64_t *dims = tutti_tensor_dims(images);
    int64_t height = dims[1], width = dims[2], channels = dims[3];
    for (int64_t y = 0; y < height; y += 2) {
        printf("  ");
        for (int64_t x = 0; x < width; x++) {
            double value = tutti_tensor_get(images, ((index * height + y) * width + x) * channels);
            putchar(shades[(int)(value < 0 ? 0 : value > 1 ? 9 : value * 9.99)]);
        }
        putchar('\n');
    }
}

static void show_classes(const tutti_tensor *labels, int64_t classes, bool json)
{
    int64_t counts[64] = {0};
    for (int64_t i = 0; i < tutti_tensor_count(labels); i++) {
        int64_t c = tutti_tensor_get_int(labels, i);
        if (c >= 0 && c < 64)
            counts[c]++;
    }
    printf(json ? ",\"classes\":[" : "  classes");
    for (int64_t i = 0; i < classes && i < 64; i++)
        if (json)
            printf("%s%" PRId64, i ? "," : "", counts[i]);
        else
            printf(" %" PRId64 ":%" PRId64, i, counts[i]);
    printf(json ? "]" : "\n");
}

static void show_split(const tutti_dataset_kind *kind, int split, const tutti_element *all,
                       bool json)
{
    char text[TUTTI_TYPE_TEXT];
    printf(json ? "{\"split\":\"%s\",\"components\":[" : "%s\n", kind->splits[split].name);
    for (int k = 0; k < all->count; k++) {
        tutti_type_text(tutti_tensor_type(all->tensors[k]), text);
        if (json)
            printf("%s\"%s\"", k ? "," : "", text);
        else
            printf("  component %d: %s\n", k, text);
    }
    printf(json ? "]" : "");
    if (all->count > 1 && kind->classes > 0)
        show_classes(all->tensors[1], kind->classes, json);
    if (!json && split == 0 && tutti_tensor_rank(all->tensors[0]) == 4)
        show_digit(all->tensors[0], 0);
    printf(json ? "}\n" : "");
}

static tutti_status inspect(tutti_job *job, const char *name, bool json)
{
    const tutti_dataset_kind *kind = find_kind(name);
    if (!kind)
        return TUTTI_NOT_FOUND;
    for (int i = 0; i < 4 && kind->splits[i].name; i++) {
        tutti_element all;
        TUTTI_TRY(take_split(job, name, kind->splits[i].name, 0, &all));
        show_split(kind, i, &all, json);
        tutti_element_release(&all);
    }
    return TUTTI_OK;
}

/* ---- converting ---- */

/* Arrays, whose references it takes, as a list. */
static tutti_status data_take(int count, tutti_tensor *const *tensors, const char *const *names,
                              tutti_named_tensors *ret)
{
    bool good = (ret->items = calloc((size_t)count, sizeof *ret->items)) != NULL;
    for (int i = 0; i < count; i++) {
        if (good) {
            ret->items[i] = (tutti_named_tensor){strdup(names[i]), tensors[i]};
            good = ret->items[ret->count++].name != NULL;
        } else {
            tutti_tensor_release(tensors[i]);
        }
    }
    if (good)
        return TUTTI_OK;
    tutti_named_tensors_clear(ret);
    return tutti_fail(TUTTI_NO_MEMORY, "no memory for %d arrays", count);
}

static tutti_status read_cifar(const char *path, tutti_named_tensors *ret)
{
    tutti_source *source;
    tutti_tensor *both[2];
    TUTTI_TRY(tutti__source_file(path, &source));
    tutti_status status = tutti__cifar_read(source, &both[0], &both[1]);
    tutti__source_close(source);
    return status == TUTTI_OK ? data_take(2, both, (const char *const[]){"x", "y"}, ret) : status;
}

static tutti_status read_csv(const char *path, tutti_named_tensors *ret)
{
    tutti_source *source;
    tutti_csv csv;
    TUTTI_TRY(tutti__source_file(path, &source));
    TUTTI_TRY(tutti__csv_open(source, NULL, &csv));
    tutti_status status = tutti__csv_table(&csv, ret);
    tutti__csv_close(&csv);
    return status;
}

static tutti_status read_any(const char *path, tutti_named_tensors *ret)
{
    tutti_tensor *tensor;
    if (tutti__ends_with(path, ".npz"))
        return tutti_npz_load(path, ret);
    if (tutti__ends_with(path, ".safetensors"))
        return tutti_safetensors_load(path, ret);
    if (tutti__ends_with(path, ".csv"))
        return read_csv(path, ret);
    if (tutti__ends_with(path, ".bin"))
        return read_cifar(path, ret);
    if (tutti__ends_with(path, ".npy"))
        TUTTI_TRY(tutti_npy_load(path, &tensor));
    else
        TUTTI_TRY(tutti_idx_load(path, &tensor));
    return data_take(1, &tensor, (const char *const[]){"array"}, ret);
}

static tutti_status write_any(const char *path, const tutti_named_tensors *list)
{
    if (tutti__ends_with(path, ".npz"))
        return tutti_npz_save(path, list->count, list->items, false);
    if (tutti__ends_with(path, ".safetensors"))
        return tutti_safetensors_save(path, list->count, list->items);
    if (list->count != 1)
        return tutti_fail(TUTTI_INVALID, "there are %zu arrays; %s can hold one, use .npz",
                          list->count, path);
    if (tutti__ends_with(path, ".npy"))
        return tutti_npy_save(path, list->items[0].tensor);
    if (!tutti__ends_with(path, ".idx"))
        return tutti_fail(TUTTI_INVALID, "%s must end in .npy, .npz, .safetensors or .idx", path);
    tutti_text text = {0};
    tutti_status status = tutti__idx_write(path, list->items[0].tensor, &text);
    if (status == TUTTI_OK)
        return write_text(path, &text);
    tutti__text_free(&text);
    return status;
}

static tutti_status data_convert(const char *from, const char *to)
{
    tutti_named_tensors all = {0};
    TUTTI_TRY(read_any(from, &all));
    tutti_status status = write_any(to, &all);
    if (status == TUTTI_OK)
        printf("%s: %zu array%s written\n", to, all.count, all.count == 1 ? "" : "s");
    tutti_named_tensors_clear(&all);
    return status;
}

/* A path, where no dataset has the name. */
static bool is_file(const char *name)
{
    const tutti_dataset_kind *kind;
    for (int i = 0; (kind = tutti_dataset_kind_at(i)) != NULL; i++)
        if (strcmp(kind->name, name) == 0)
            return false;
    return strpbrk(name, "./") != NULL;
}

/* Says what is wrong with arguments that are none of the forms. */
static int data_refuse(const char *verb)
{
    static const char *const verbs[] = {"inspect", "make", "convert"};
    tutti_nearest nearest = {.word = verb};
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
        tutti__nearest_try(&nearest, verbs[i]);
    if (nearest.found && nearest.distance == 0)
        tutti__complain("data %s: wrong number of arguments; 'tutti data --help' tells more", verb);
    else
        tutti__complain("data does not know '%s'%s; 'tutti data --help' tells more", verb,
                        tutti__meant(nearest.found));
    return TUTTI_EXIT_USAGE;
}

static int data_run(int argc, char **argv)
{
    const char *format = NULL;
    int64_t limit = 0;
    bool json = tutti__flag(&argc, argv, "--json");
    if (tutti__option(&argc, argv, "--format", &format) && strcmp(format, "npz") != 0 &&
        strcmp(format, "idx") != 0 && strcmp(format, "cifar") != 0)
        return tutti__complain("--format takes npz, idx or cifar, not '%s'", format),
               TUTTI_EXIT_USAGE;
    if (!tutti__option_int(&argc, argv, "--limit", 1, INT64_MAX, &limit))
        return TUTTI_EXIT_USAGE;
    tutti_job *job = tutti_open(&argc, &argv);
    tutti_status status = tutti_job_check(job);
    int code = TUTTI_EXIT_OK;
    if (status == TUTTI_OK && !tutti__knows_flags(usage, argc, argv))
        code = TUTTI_EXIT_USAGE;
    else if (status != TUTTI_OK || argc == 1)
        code = status == TUTTI_OK ? list(json) : TUTTI_EXIT_USAGE;
    else if (strcmp(argv[1], "inspect") == 0 && argc == 3 && is_file(argv[2]))
        code = tutti__show_path(argv[2], json);
    else if (strcmp(argv[1], "inspect") == 0 && argc == 3)
        status = inspect(job, argv[2], json);
    else if (strcmp(argv[1], "make") == 0 && argc == 4)
        status = data_make(job, argv[2], argv[3], format, limit);
    else if (strcmp(argv[1], "convert") == 0 && argc == 4)
        status = data_convert(argv[2], argv[3]);
    else
        code = data_refuse(argv[1]);
    if (status != TUTTI_OK)
        code = (tutti__complain("%s", tutti_error_message()), TUTTI_EXIT_FAILED);
    tutti__job_discard(job);
    return code;
}

const tutti_command tutti_command_data = {
    .name = "data",
    .summary = "lists, makes, converts and inspects data",
    .usage = usage,
    .run = data_run,
};
