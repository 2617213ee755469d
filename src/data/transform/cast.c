/* cast.c: components as another element type. */
#include <string.h>

#include "data/dataset.h"

typedef struct settings {
    tutti_dtype dtype;
    uint32_t chosen; /* a bit for each component; 0: all but strings */
} settings;

static bool changes(const settings *s, int component, tutti_dtype from)
{
    bool chosen = s->chosen ? (s->chosen >> component & 1) != 0 : from != TUTTI_STRING;
    return chosen && from != s->dtype;
}

static tutti_status change(const tutti_dataset *dataset, tutti_element *element)
{
    const settings *s = dataset->settings;
    for (int c = 0; c < element->count; c++) {
        tutti_tensor *cast;
        if (!changes(s, c, tutti_tensor_dtype(element->tensors[c])))
            continue;
        TUTTI_TRY(tutti_tensor_cast(element->tensors[c], s->dtype, &cast));
        TUTTI_TRY(tutti_element_set(element, c, cast));
    }
    return TUTTI_OK;
}

static tutti_status cast_finish(const tutti_dataset *dataset, uint64_t epoch, int64_t index,
                                tutti_element *element, tutti_element *ret)
{
    tutti_status status = change(dataset, element);
    if (status != TUTTI_OK) {
        tutti_element_release(element);
        return tutti__element_failed(dataset, epoch, index, status);
    }
    *ret = *element;
    return TUTTI_OK;
}

static tutti_status cast_next(tutti_iterator *iterator, tutti_element *ret)
{
    tutti_element element = {0};
    TUTTI_TRY(tutti__iterator_next(iterator->inputs[0], &element));
    return cast_finish(iterator->dataset, iterator->epoch, iterator->delivered, &element, ret);
}

static tutti_status cast_skip(tutti_iterator *iterator, int64_t count, int64_t *ret_skipped)
{
    return tutti__iterator_skip(iterator->inputs[0], count, ret_skipped);
}

static tutti_status at(tutti_access *access, uint64_t epoch, int64_t index, tutti_element *ret)
{
    tutti_element element = {0};
    TUTTI_TRY(tutti__access_at(access->inputs[0], epoch, index, &element));
    return cast_finish(access->dataset, epoch, index, &element, ret);
}

/* Rows first … first + count of `from`, as the type of `to`. */
static tutti_status cast_rows(tutti_tensor *from, tutti_tensor *to, int64_t first, int64_t count)
{
    tutti_tensor *read = NULL, *cast = NULL, *written = NULL;
    tutti_status status = tutti_tensor_slice(from, 0, first, count, 1, &read);
    if (status == TUTTI_OK)
        status = tutti_tensor_slice(to, 0, first, count, 1, &written);
    if (status == TUTTI_OK)
        status = tutti_tensor_cast(read, tutti_tensor_dtype(to), &cast);
    if (status == TUTTI_OK)
        status = tutti_tensor_copy(written, cast);
    tutti_tensor_release(read);
    tutti_tensor_release(written);
    tutti_tensor_release(cast);
    return status;
}

static tutti_status cast_gather(tutti_access *access, uint64_t epoch, int64_t count,
                                const int64_t *indices, tutti_tensor *const *rows, int64_t first)
{
    const tutti_dataset_info *info = &access->dataset->inputs[0]->info;
    const settings *s = access->dataset->settings;
    tutti_tensor *below[TUTTI_MAX_COMPONENTS];
    tutti_element made;
    TUTTI_TRY(tutti__element_create(info->components, info->types, first + count, &made));
    for (int c = 0; c < info->components; c++)
        below[c] = changes(s, c, info->types[c].dtype) ? made.tensors[c] : rows[c];
    tutti_status status =
        tutti__access_gather(access->inputs[0], epoch, count, indices, below, first);
    for (int c = 0; status == TUTTI_OK && c < info->components; c++)
        if (below[c] != rows[c])
            status = cast_rows(below[c], rows[c], first, count);
    tutti_element_release(&made);
    return status;
}

extern const tutti_dataset_def tutti_dataset_def_cast_components;

/* The number of a component's name, or -1. */
static int cast_find(const tutti_dataset_info *info, const char *name)
{
    for (int c = 0; c < info->components; c++)
        if (info->names[c] && strcmp(info->names[c], name) == 0)
            return c;
    return -1;
}

static bool cast_choose(const tutti_dataset *input, const char *const *names, uint32_t *ret_chosen)
{
    for (int i = 0; i < TUTTI_MAX_COMPONENTS && names[i]; i++) {
        int c = cast_find(&input->info, names[i]);
        if (c < 0) {
            tutti__dataset_wrong(input->job, &tutti_dataset_def_cast_components,
                                 "there is no component '%s'; the first of %d is '%s'", names[i],
                                 input->info.components,
                                 input->info.components > 0 ? input->info.names[0] : "unknown");
            return false;
        }
        if (input->info.types[c].dtype == TUTTI_STRING) {
            tutti__dataset_wrong(input->job, &tutti_dataset_def_cast_components,
                                 "component '%s' is strings, which are not parsed here: "
                                 "tutti_map changes them",
                                 names[i]);
            return false;
        }
        *ret_chosen |= 1U << c;
    }
    return true;
}

tutti_dataset *tutti_dataset_cast(tutti_dataset *input, tutti_dtype dtype,
                                  const tutti_cast_components_options *options)
{
    settings s = {.dtype = dtype};
    if (!input || !cast_choose(input, options->components, &s.chosen))
        return NULL;
    if (tutti_dtype_size(dtype) == 0 || dtype == TUTTI_STRING)
        return tutti__dataset_wrong(input->job, &tutti_dataset_def_cast_components,
                                    "to %s: needs a type of numbers", tutti_dtype_name(dtype));
    tutti_dataset *dataset =
        tutti__dataset_create(&tutti_dataset_def_cast_components, NULL, 1, &input);
    if (!dataset)
        return NULL;
    *(settings *)dataset->settings = s;
    for (int c = 0; c < dataset->info.components; c++) {
        tutti_dtype *known = &dataset->info.types[c].dtype;
        if (*known != TUTTI_NO_DTYPE && changes(&s, c, *known))
            *known = dtype;
    }
    dataset->info.cardinality = input->info.cardinality;
    tutti__dataset_note(dataset, (uint64_t)dtype << 32 | s.chosen);
    tutti__dataset_set_access(dataset, input->access);
    return dataset;
}

const tutti_dataset_def tutti_dataset_def_cast_components = {
    .name = "cast_components",
    .keeps_parts = true,
    .doc = "components as another element type",
    .settings_size = sizeof(settings),
    .next = cast_next,
    .skip = cast_skip,
    .at = at,
    .gather = cast_gather,
};
