/* range.c: whole numbers. */
#include "data/dataset.h"

typedef struct settings {
    int64_t start, step;
} settings;

static tutti_status range_gather(tutti_access *access, uint64_t epoch, int64_t count,
                                 const int64_t *indices, tutti_tensor *const *rows, int64_t first)
{
    const settings *s = access->dataset->settings;
    int64_t *to = (int64_t *)tutti_tensor_data(rows[0]) + first;
    for (int64_t i = 0; i < count; i++)
        to[i] = s->start + indices[i] * s->step;
    return TUTTI_OK;
}

extern const tutti_dataset_def tutti_dataset_def_range;

tutti_dataset *(tutti_range_dataset)(tutti_job *job, int64_t start, int64_t stop, int64_t step)
{
    int64_t span;
    if (step == 0 || step == INT64_MIN)
        return tutti__dataset_wrong(job, &tutti_dataset_def_range, "the step is %lld",
                                    (long long)step);
    if (start == INT64_MIN || !tutti__add_size(stop, -start, &span))
        return tutti__dataset_wrong(job, &tutti_dataset_def_range,
                                    "from %lld to %lld is too far for 64 bits", (long long)start,
                                    (long long)stop);
    tutti_dataset *dataset = tutti__dataset_create(&tutti_dataset_def_range, job, 0, NULL);
    if (!dataset)
        return NULL;
    *(settings *)dataset->settings = (settings){start, step};
    bool any = step > 0 ? span > 0 : span < 0;
    dataset->info.components = 1;
    dataset->info.types[0] = tutti_type_make(TUTTI_I64, 0, NULL);
    dataset->info.cardinality = any ? span / step + (span % step != 0) : 0;
    tutti__dataset_note(dataset, (uint64_t)start);
    tutti__dataset_note(dataset, (uint64_t)step);
    tutti__dataset_note(dataset, (uint64_t)dataset->info.cardinality);
    tutti__dataset_default_names(dataset);
    tutti__dataset_set_access(dataset, TUTTI_ACCESS_ROWS);
    return dataset;
}

const tutti_dataset_def tutti_dataset_def_range = {
    .name = "range",
    .doc = "whole numbers from start to stop",
    .settings_size = sizeof(settings),
    .gather = range_gather,
};
