/* filter.c: the elements for which a function is true. */
#include "data/dataset.h"

typedef struct settings {
    tutti_filter_fn *function;
    void *context;
} settings;

static tutti_status filter_next(tutti_iterator *iterator, tutti_element *ret)
{
    const settings *s = iterator->dataset->settings;
    for (;;) {
        tutti_element element = {0};
        TUTTI_TRY(tutti__iterator_next(iterator->inputs[0], &element));
        if (element.count == 0 || s->function(s->context, &element)) {
            *ret = element;
            return TUTTI_OK;
        }
        tutti_element_release(&element);
    }
}

extern const tutti_dataset_def tutti_dataset_def_filter;

tutti_dataset *(tutti_filter)(tutti_dataset *input, tutti_filter_fn *function, void *context)
{
    if (input && !function)
        return tutti__dataset_wrong(input->job, &tutti_dataset_def_filter, "the function is NULL");
    tutti_dataset *dataset = tutti__dataset_create(&tutti_dataset_def_filter, NULL, 1, &input);
    if (dataset)
        *(settings *)dataset->settings = (settings){function, context};
    return dataset;
}

const tutti_dataset_def tutti_dataset_def_filter = {
    .name = "filter",
    .keeps_parts = true,
    .doc = "the elements for which a function is true",
    .settings_size = sizeof(settings),
    .next = filter_next,
};
