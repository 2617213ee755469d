/* zip.c: the components of several datasets side by side. */
#include "data/dataset.h"

static tutti_status append(tutti_element *element, tutti_element *more, tutti_status status)
{
    if (status != TUTTI_OK || more->count == 0) {
        tutti_element_release(element);
        return status;
    }
    for (int c = 0; c < more->count; c++) {
        if (element->count == TUTTI_MAX_COMPONENTS) {
            for (; c < more->count; c++)
                tutti_tensor_release(more->tensors[c]);
            tutti_element_release(element);
            return tutti_fail(TUTTI_INVALID, "zip: more than %d components", TUTTI_MAX_COMPONENTS);
        }
        element->tensors[element->count++] = more->tensors[c];
    }
    return TUTTI_OK;
}

static tutti_status zip_next(tutti_iterator *iterator, tutti_element *ret)
{
    tutti_element element = {0};
    for (int i = 0; i < iterator->dataset->input_count; i++) {
        tutti_element more = {0};
        tutti_status status = tutti__iterator_next(iterator->inputs[i], &more);
        TUTTI_TRY(append(&element, &more, status));
        if (element.count == 0)
            return TUTTI_OK;
    }
    *ret = element;
    return TUTTI_OK;
}

static tutti_status zip_skip(tutti_iterator *iterator, int64_t count, int64_t *ret_skipped)
{
    int64_t least = count;
    for (int i = 0; i < iterator->dataset->input_count; i++) {
        int64_t skipped;
        TUTTI_TRY(tutti__iterator_skip(iterator->inputs[i], count, &skipped));
        least = skipped < least ? skipped : least;
    }
    *ret_skipped = least;
    return TUTTI_OK;
}

static tutti_status at(tutti_access *access, uint64_t epoch, int64_t index, tutti_element *ret)
{
    tutti_element element = {0};
    for (int i = 0; i < access->dataset->input_count; i++) {
        tutti_element more = {0};
        tutti_status status = tutti__access_at(access->inputs[i], epoch, index, &more);
        TUTTI_TRY(append(&element, &more, status));
    }
    *ret = element;
    return TUTTI_OK;
}

static tutti_status zip_gather(tutti_access *access, uint64_t epoch, int64_t count,
                               const int64_t *indices, tutti_tensor *const *rows, int64_t first)
{
    for (int i = 0, c = 0; i < access->dataset->input_count; i++) {
        TUTTI_TRY(tutti__access_gather(access->inputs[i], epoch, count, indices, rows + c, first));
        c += access->dataset->inputs[i]->info.components;
    }
    return TUTTI_OK;
}

/* Adds an input's components, cardinality and access to the result's. */
static void zip_add(tutti_dataset *dataset, const tutti_dataset *input, tutti_access_level *access)
{
    tutti_dataset_info *info = &dataset->info;
    for (int c = 0; c < input->info.components; c++, info->components++) {
        info->names[info->components] = input->info.names[c];
        info->types[info->components] = input->info.types[c];
    }
    int64_t all = input->info.cardinality;
    if (info->cardinality == TUTTI_UNKNOWN || all == TUTTI_UNKNOWN)
        info->cardinality = TUTTI_UNKNOWN;
    else if (info->cardinality == TUTTI_ENDLESS || (all >= 0 && all < info->cardinality))
        info->cardinality = all;
    info->classes = info->classes ? info->classes : input->info.classes;
    *access = input->access < *access ? input->access : *access;
}

extern const tutti_dataset_def tutti_dataset_def_zip;

tutti_dataset *(tutti_zip)(int count, tutti_dataset *const *datasets)
{
    int components = 0;
    if (count < 1 || !datasets || !datasets[0])
        return NULL;
    for (int i = 0; i < count && datasets[i]; i++)
        components += datasets[i]->info.components;
    if (components > TUTTI_MAX_COMPONENTS)
        return tutti__dataset_wrong(datasets[0]->job, &tutti_dataset_def_zip,
                                    "%d components: at most %d", components, TUTTI_MAX_COMPONENTS);
    tutti_dataset *dataset = tutti__dataset_create(&tutti_dataset_def_zip, NULL, count, datasets);
    if (!dataset)
        return NULL;
    tutti_access_level access = TUTTI_ACCESS_ROWS;
    dataset->info =
        (tutti_dataset_info){.cardinality = TUTTI_ENDLESS, .batch = datasets[0]->info.batch};
    for (int i = 0; i < count; i++)
        zip_add(dataset, datasets[i], &access);
    tutti__dataset_set_access(dataset, access);
    return dataset;
}

const tutti_dataset_def tutti_dataset_def_zip = {
    .name = "zip",
    .doc = "the components of several datasets side by side",
    .next = zip_next,
    .skip = zip_skip,
    .at = at,
    .gather = zip_gather,
};
