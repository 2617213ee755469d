/* one_hot.c: numbers of classes as vectors with a one at the class. */
#include <string.h>

#include "data/dataset.h"

typedef struct settings {
    int component;
    int64_t classes;
} settings;

/* Writes [count, classes] from `count` numbers. */
static tutti_status one_hot_expand(const tutti_tensor *labels, int64_t count, int64_t classes,
                                   float *to)
{
    memset(to, 0, (size_t)(count * classes) * sizeof *to);
    for (int64_t i = 0; i < count; i++) {
        int64_t label = tutti_tensor_get_int(labels, i);
        if (label < 0 || label >= classes)
            return tutti_fail(TUTTI_OUT_OF_RANGE,
                              "one_hot_labels: label %lld is none of the %lld classes",
                              (long long)label, (long long)classes);
        to[i * classes + label] = 1;
    }
    return TUTTI_OK;
}

static tutti_status change(const tutti_dataset *dataset, tutti_element *element)
{
    const settings *s = dataset->settings;
    if (element->count <= s->component)
        return tutti_fail(TUTTI_INVALID, "one_hot_labels: an element of %d components has no %d",
                          element->count, s->component);
    const tutti_tensor *labels = element->tensors[s->component];
    int rank = tutti_tensor_rank(labels);
    int64_t dims[TUTTI_MAX_RANK];
    if (!tutti_dtype_is_int(tutti_tensor_dtype(labels)) || rank >= TUTTI_MAX_RANK)
        return tutti_fail(TUTTI_INVALID, "one_hot_labels: labels are %s, needs whole numbers",
                          tutti_dtype_name(tutti_tensor_dtype(labels)));
    memcpy(dims, tutti_tensor_dims(labels), (size_t)rank * sizeof *dims);
    dims[rank] = s->classes;
    tutti_tensor *vectors;
    TUTTI_TRY(tutti_tensor_create(TUTTI_F32, rank + 1, dims, &vectors));
    tutti_status status =
        one_hot_expand(labels, tutti_tensor_count(labels), s->classes, tutti_tensor_data(vectors));
    if (status != TUTTI_OK) {
        tutti_tensor_release(vectors);
        return status;
    }
    return tutti_element_set(element, s->component, vectors);
}

static tutti_status one_hot_finish(const tutti_dataset *dataset, uint64_t epoch, int64_t index,
                                   tutti_element *element, tutti_element *ret)
{
    tutti_status status = element->count > 0 ? change(dataset, element) : TUTTI_OK;
    if (status != TUTTI_OK) {
        tutti_element_release(element);
        return tutti__element_failed(dataset, epoch, index, status);
    }
    *ret = *element;
    return TUTTI_OK;
}

static tutti_status one_hot_next(tutti_iterator *iterator, tutti_element *ret)
{
    tutti_element element = {0};
    TUTTI_TRY(tutti__iterator_next(iterator->inputs[0], &element));
    return one_hot_finish(iterator->dataset, iterator->epoch, iterator->delivered, &element, ret);
}

static tutti_status one_hot_skip(tutti_iterator *iterator, int64_t count, int64_t *ret_skipped)
{
    return tutti__iterator_skip(iterator->inputs[0], count, ret_skipped);
}

static tutti_status at(tutti_access *access, uint64_t epoch, int64_t index, tutti_element *ret)
{
    tutti_element element = {0};
    TUTTI_TRY(tutti__access_at(access->inputs[0], epoch, index, &element));
    return one_hot_finish(access->dataset, epoch, index, &element, ret);
}

static tutti_status one_hot_gather(tutti_access *access, uint64_t epoch, int64_t count,
                                   const int64_t *indices, tutti_tensor *const *rows, int64_t first)
{
    const settings *s = access->dataset->settings;
    const tutti_type *type = &access->dataset->inputs[0]->info.types[s->component];
    tutti_tensor *below[TUTTI_MAX_COMPONENTS];
    tutti_element labels;
    int64_t each = tutti_type_count(type);
    TUTTI_TRY(tutti__element_create(1, type, first + count, &labels));
    memcpy(below, rows, (size_t)access->dataset->info.components * sizeof *below);
    below[s->component] = labels.tensors[0];
    tutti_status status =
        tutti__access_gather(access->inputs[0], epoch, count, indices, below, first);
    tutti_tensor *fresh = NULL;
    if (status == TUTTI_OK)
        status = tutti_tensor_slice(labels.tensors[0], 0, first, count, 1, &fresh);
    if (status == TUTTI_OK)
        status = one_hot_expand(fresh, count * each, s->classes,
                                (float *)tutti_tensor_data(rows[s->component]) +
                                    first * each * s->classes);
    tutti_tensor_release(fresh);
    tutti_element_release(&labels);
    return status;
}

extern const tutti_dataset_def tutti_dataset_def_one_hot;

tutti_dataset *(tutti_one_hot_labels)(tutti_dataset *input, int component, int64_t classes)
{
    if (!input)
        return NULL;
    classes = classes == 0 ? input->info.classes : classes;
    component = component == -1 ? input->info.components - 1 : component;
    if (component < 0 || component >= input->info.components)
        return tutti__dataset_wrong(input->job, &tutti_dataset_def_one_hot, "component %d of %d",
                                    component, input->info.components);
    const tutti_type *labels = &input->info.types[component];
    if (classes < 1 || classes > INT32_MAX)
        return tutti__dataset_wrong(input->job, &tutti_dataset_def_one_hot,
                                    "%lld classes; say how many there are", (long long)classes);
    if (labels->dtype != TUTTI_NO_DTYPE && !tutti_dtype_is_int(labels->dtype))
        return tutti__dataset_wrong(input->job, &tutti_dataset_def_one_hot,
                                    "component %d '%s' is %s, needs whole numbers", component,
                                    input->info.names[component], tutti_dtype_name(labels->dtype));
    tutti_dataset *dataset = tutti__dataset_create(&tutti_dataset_def_one_hot, NULL, 1, &input);
    if (!dataset)
        return NULL;
    *(settings *)dataset->settings = (settings){component, classes};
    tutti_type *type = &dataset->info.types[component];
    if (type->rank >= 0 && type->rank < TUTTI_MAX_RANK) {
        type->dtype = TUTTI_F32;
        type->dims[type->rank++] = classes;
    }
    dataset->info.classes = classes;
    dataset->info.cardinality = input->info.cardinality;
    tutti__dataset_note(dataset, (uint64_t)classes);
    tutti__dataset_set_access(dataset, input->access);
    return dataset;
}

const tutti_dataset_def tutti_dataset_def_one_hot = {
    .name = "one_hot_labels",
    .keeps_parts = true,
    .doc = "numbers of classes as vectors with a one at the class",
    .settings_size = sizeof(settings),
    .next = one_hot_next,
    .skip = one_hot_skip,
    .at = at,
    .gather = one_hot_gather,
};
