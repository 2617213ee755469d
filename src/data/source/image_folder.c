/* image_folder.c: JPEG and PNG files in folders, one for each class. The list of files is read when
 * the dataset is made; a batch's files are decoded on several threads. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/pool.h"
#include "base/world.h"
#include "data/dataset.h"
#include "data/resize.h"
#include "tutti/files.h"

typedef struct picture {
    char *path;
    int64_t label;
} picture;
typedef struct settings {
    int64_t height, width, channels;
    TUTTI_VEC(picture) pictures;
} settings;

static void image_folder_destroy(tutti_dataset *dataset)
{
    settings *s = dataset->settings;
    for (size_t i = 0; i < s->pictures.count; i++)
        free(s->pictures.data[i].path);
    TUTTI_VEC_FREE(&s->pictures);
}

typedef struct decoding {
    const settings *s;
    const int64_t *indices;
    float *images;
    int64_t *labels;
    tutti_error *errors;
} decoding;

static void decode_one(void *context, int64_t i)
{
    const decoding *d = context;
    const settings *s = d->s;
    const picture *p = &s->pictures.data[d->indices[i]];
    tutti_tensor *image;
    d->labels[i] = p->label;
    tutti_status status = tutti_image_load(p->path, (int)s->channels, &image);
    if (status != TUTTI_OK) {
        tutti__error_capture(status, &d->errors[i]);
        return;
    }
    const int64_t *dims = tutti_tensor_dims(image);
    if (dims[0] > 0 && dims[1] > 0)
        tutti__resize(tutti_tensor_data(image), dims[0], dims[1], s->channels, s->height, s->width,
                      d->images + i * s->height * s->width * s->channels);
    tutti_tensor_release(image);
}

static tutti_status image_folder_gather(tutti_access *access, uint64_t epoch, int64_t count,
                                        const int64_t *indices, tutti_tensor *const *rows,
                                        int64_t first)
{
    const settings *s = access->dataset->settings;
    tutti_pool **pool = access->state;
    tutti_status status = TUTTI_OK;
    tutti_error *errors = calloc((size_t)count + 1, sizeof *errors);
    if (!errors)
        return tutti_fail(TUTTI_NO_MEMORY, "image_folder: no memory for %lld images",
                          (long long)count);
    if (!*pool && count > 1)
        status = tutti__pool_create(tutti__cpu_count(), -1, pool);
    decoding d = {s, indices,
                  (float *)tutti_tensor_data(rows[0]) + first * s->height * s->width * s->channels,
                  (int64_t *)tutti_tensor_data(rows[1]) + first, errors};
    if (status == TUTTI_OK)
        tutti__pool_run(*pool, count, decode_one, &d);
    for (int64_t i = 0; i < count && status == TUTTI_OK; i++)
        if (errors[i].status != TUTTI_OK)
            status = tutti__element_failed(access->dataset, epoch, indices[i],
                                           tutti__error_restore(&errors[i]));
    free(errors);
    return status;
}

static void leave(tutti_access *access)
{
    tutti__pool_destroy(*(tutti_pool **)access->state);
}

/* Hidden files are none: systems leave their own there, under names like "._a.jpg". */
static bool is_picture(const char *name)
{
    static const char *const ends[] = {".jpg", ".jpeg", ".png"};
    const char *dot = strrchr(name, '.');
    for (size_t i = 0; dot && name[0] != '.' && i < TUTTI_COUNT(ends); i++)
        if (strcasecmp(dot, ends[i]) == 0)
            return true;
    return false;
}

static char *image_folder_join(const char *folder, const char *name)
{
    tutti_text path = {0};
    tutti__text_add(&path, "%s/%s", folder, name);
    if (path.failed)
        tutti__text_free(&path);
    return path.data;
}

/* Adds a class: the pictures in one folder. One without any is a class too, so that the folders of
 * two splits give the same numbers; something that is no folder is none. */
static tutti_status add_class(settings *s, const char *folder, int64_t label, bool *ret_class)
{
    const tutti_world *world = tutti__world();
    char **names;
    size_t count;
    *ret_class = false;
    tutti_status status = world->list_folder(world->self, folder, &names, &count);
    if (status != TUTTI_OK)
        return status == TUTTI_NO_MEMORY ? status : TUTTI_OK;
    *ret_class = true;
    for (size_t i = 0; i < count && status == TUTTI_OK; i++) {
        if (!is_picture(names[i]))
            continue;
        picture p = {image_folder_join(folder, names[i]), label};
        if (!p.path || !TUTTI_VEC_PUSH(&s->pictures, p)) {
            free(p.path);
            status = tutti_fail(TUTTI_NO_MEMORY, "no memory for the names of the images");
        }
    }
    free(names);
    return status;
}

static tutti_status list(settings *s, const char *folder, int64_t *ret_classes)
{
    const tutti_world *world = tutti__world();
    char **names;
    size_t count;
    int64_t classes = 0;
    TUTTI_TRY(world->list_folder(world->self, folder, &names, &count));
    tutti_status status = TUTTI_OK;
    for (size_t i = 0; i < count && status == TUTTI_OK; i++) {
        if (names[i][0] == '.')
            continue;
        char *path = image_folder_join(folder, names[i]);
        bool is_class = false;
        status = path ? add_class(s, path, classes, &is_class)
                      : tutti_fail(TUTTI_NO_MEMORY, "no memory for a path");
        classes += is_class;
        free(path);
    }
    free(names);
    if (status == TUTTI_OK && s->pictures.count == 0)
        status =
            tutti_fail(TUTTI_NOT_FOUND,
                       "%s holds no folders with JPEG or PNG files; each class needs one", folder);
    *ret_classes = classes;
    return status;
}

extern const tutti_dataset_def tutti_dataset_def_image_folder;

tutti_dataset *tutti_image_folder_with(tutti_job *job, const char *folder,
                                       const tutti_image_folder_options *options)
{
    const tutti_dataset_def *def = &tutti_dataset_def_image_folder;
    tutti_image_folder_options given = options ? *options : (tutti_image_folder_options){0};
    int64_t dims[] = {given.height ? given.height : 256, given.width ? given.width : 256,
                      given.channels ? given.channels : 3};
    if (!folder || dims[0] < 1 || dims[0] > 16384 || dims[1] < 1 || dims[1] > 16384 ||
        (dims[2] != 1 && dims[2] != 3))
        return tutti__dataset_wrong(job, def,
                                    "images of %lldx%lldx%lld: needs sides up to 16384, and 1 or 3 "
                                    "channels",
                                    (long long)dims[0], (long long)dims[1], (long long)dims[2]);
    tutti_dataset *dataset = tutti__dataset_create(def, job, 0, NULL);
    if (!dataset)
        return NULL;
    settings *s = dataset->settings;
    s->height = dims[0], s->width = dims[1], s->channels = dims[2];
    tutti_status status = list(s, folder, &dataset->info.classes);
    if (status != TUTTI_OK)
        return tutti__dataset_fail(job, def, status);
    dataset->info.components = 2;
    dataset->info.types[0] = tutti_type_make(TUTTI_F32, 3, dims);
    dataset->info.types[1] = tutti_type_make(TUTTI_I64, 0, NULL);
    dataset->info.cardinality = (int64_t)s->pictures.count;
    tutti__dataset_default_names(dataset);
    tutti__dataset_note(dataset, s->pictures.count);
    tutti__dataset_set_access(dataset, TUTTI_ACCESS_ROWS);
    return dataset;
}

const tutti_dataset_def tutti_dataset_def_image_folder = {
    .name = "image_folder",
    .doc = "JPEG and PNG files in folders, one for each class",
    .settings_size = sizeof(settings),
    .access_size = sizeof(tutti_pool *),
    .destroy = image_folder_destroy,
    .gather = image_folder_gather,
    .leave = leave,
};
