/* npy.c: rows of NumPy's arrays. */
#include <string.h>

#include "data/source/rows.h"
#include "tutti/files.h"

extern const tutti_dataset_def tutti_dataset_def_npy;

/* "data/train_x.npy" is named "train_x". */
static const char *name_of(tutti_job *job, const char *path)
{
    char name[256];
    const char *slash = strrchr(path, '/');
    const char *begin = slash ? slash + 1 : path, *dot = strrchr(begin, '.');
    size_t size = dot && dot > begin ? (size_t)(dot - begin) : strlen(begin);
    size = size < sizeof name ? size : sizeof name - 1;
    memcpy(name, begin, size);
    name[size] = 0;
    return tutti__dataset_name(job, name);
}

tutti_dataset *(tutti_npy_dataset)(tutti_job *job, int count, const char *const *paths)
{
    const tutti_dataset_def *def = &tutti_dataset_def_npy;
    tutti_tensor *tensors[TUTTI_MAX_COMPONENTS] = {0};
    tutti_status status = TUTTI_OK;
    tutti_dataset *dataset = NULL;
    if (!tutti__job_able(job))
        return NULL;
    if (count < 1 || count > TUTTI_MAX_COMPONENTS)
        return tutti__dataset_wrong(job, def, "%d files: needs 1 to %d", count,
                                    TUTTI_MAX_COMPONENTS);
    for (int i = 0; i < count && status == TUTTI_OK; i++)
        status = tutti_npy_load(paths[i], &tensors[i]);
    if (status == TUTTI_OK)
        dataset = tutti__rows_dataset(job, def, count, tensors, NULL, NULL);
    else
        tutti__dataset_fail(job, def, status);
    for (int i = 0; i < count; i++) {
        if (dataset)
            dataset->info.names[i] = name_of(job, paths[i]);
        tutti_tensor_release(tensors[i]);
    }
    return dataset;
}

tutti_dataset *(tutti_npz_dataset)(tutti_job *job, const char *path)
{
    const tutti_dataset_def *def = &tutti_dataset_def_npy;
    tutti_named_tensors list = {0};
    tutti_tensor *tensors[TUTTI_MAX_COMPONENTS];
    tutti_dataset *dataset = NULL;
    if (!tutti__job_able(job))
        return NULL;
    tutti_status status = tutti_npz_load(path, &list);
    if (status == TUTTI_OK && (list.count < 1 || list.count > TUTTI_MAX_COMPONENTS))
        status = tutti_fail(TUTTI_INVALID, "%s holds %zu arrays, needs 1 to %d", path, list.count,
                            TUTTI_MAX_COMPONENTS);
    for (size_t i = 0; status == TUTTI_OK && i < list.count; i++)
        tensors[i] = list.items[i].tensor;
    if (status == TUTTI_OK)
        dataset = tutti__rows_dataset(job, def, (int)list.count, tensors, NULL, NULL);
    else
        tutti__dataset_fail(job, def, status);
    for (size_t i = 0; dataset && i < list.count; i++)
        dataset->info.names[i] = tutti__dataset_name(job, list.items[i].name);
    tutti_named_tensors_clear(&list);
    return dataset;
}

const tutti_dataset_def tutti_dataset_def_npy = {
    .name = "npy",
    .doc = "rows of NumPy's arrays",
    .settings_size = TUTTI_ROWS_SETTINGS,
    .destroy = tutti__rows_destroy,
    .at = tutti__rows_at,
    .gather = tutti__rows_gather,
};
