/* map.c: a function of each element. */
#include "data/transform/map.h"

#include <string.h>

#include "base/random.h"

static tutti_status check_result(const tutti_dataset *dataset, const tutti_element *element)
{
    const tutti_map_settings *s = dataset->settings;
    char got[TUTTI_TYPE_TEXT], wanted[TUTTI_TYPE_TEXT];
    if (element->count < 1 || element->count > TUTTI_MAX_COMPONENTS)
        return tutti_fail(TUTTI_INVALID, "the function leaves %d components; needs 1 to %d",
                          element->count, TUTTI_MAX_COMPONENTS);
    if (s->components > 0 && element->count != s->components)
        return tutti_fail(TUTTI_INVALID, "the function gives %d components, .components says %d",
                          element->count, s->components);
    for (int c = 0; c < element->count; c++) {
        const tutti_type *type = tutti_tensor_type(element->tensors[c]),
                         *given = &dataset->info.types[c];
        bool fits = s->components == 0 || given->dtype == TUTTI_NO_DTYPE ||
                    (given->dtype == type->dtype && given->rank == type->rank);
        for (int i = 0; fits && s->components > 0 && i < given->rank; i++)
            fits = given->dims[i] == TUTTI_ANY || given->dims[i] == type->dims[i];
        if (!fits)
            return tutti_fail(TUTTI_INVALID, "the function gives %s as component %d, .types say %s",
                              tutti_type_text(type, got), c, tutti_type_text(given, wanted));
    }
    return TUTTI_OK;
}

tutti_status tutti__map_apply(const tutti_dataset *dataset, const tutti_share *share,
                              uint64_t epoch, int64_t index, tutti_element *element)
{
    const tutti_map_settings *s = dataset->settings;
    uint32_t words[4];
    tutti__random_block(
        (tutti_random_key){.seed = tutti__share_seed(share, s->seed), .stream = epoch},
        (uint64_t)index, words);
    element->epoch = epoch;
    element->index = index;
    element->random = (uint64_t)words[1] << 32 | words[0];
    tutti__error_forget();
    tutti_status status = tutti__error_say(s->function(s->context, element), "it failed");
    if (status == TUTTI_OK)
        status = check_result(dataset, element);
    if (status != TUTTI_OK)
        tutti_element_release(element);
    return tutti__element_failed(dataset, epoch, index, status);
}

typedef struct state {
    tutti_map_threads *threads; /* NULL: not parallel, or not yet begun */
    bool input_over;
    tutti_error input_error;
} state;

/* Gives the threads as much as they hold. */
static void feed(tutti_iterator *iterator)
{
    state *s = iterator->state;
    while (!s->input_over && !tutti__map_threads_full(s->threads)) {
        tutti_element element = {0};
        tutti_iterator *input = iterator->inputs[0];
        tutti_status status = tutti__iterator_next(input, &element);
        if (status != TUTTI_OK)
            tutti__error_capture(status, &s->input_error);
        s->input_over = status != TUTTI_OK || element.count == 0;
        if (!s->input_over)
            tutti__map_threads_put(s->threads, input->delivered - 1, element);
    }
}

static tutti_status next_parallel(tutti_iterator *iterator, tutti_element *ret)
{
    const tutti_map_settings *given = iterator->dataset->settings;
    state *s = iterator->state;
    if (!s->threads)
        TUTTI_TRY(tutti__map_threads_start(iterator, given->parallel, &s->threads));
    feed(iterator);
    if (tutti__map_threads_pending(s->threads) > 0)
        return tutti__map_threads_take(s->threads, iterator, ret);
    return s->input_error.status != TUTTI_OK ? tutti__error_restore(&s->input_error) : TUTTI_OK;
}

static tutti_status map_next(tutti_iterator *iterator, tutti_element *ret)
{
    const tutti_map_settings *given = iterator->dataset->settings;
    if (given->parallel > 1)
        return next_parallel(iterator, ret);
    tutti_element element = {0};
    TUTTI_TRY(tutti__iterator_next(iterator->inputs[0], &element));
    if (element.count > 0)
        TUTTI_TRY(tutti__map_apply(iterator->dataset, iterator->share, iterator->epoch,
                                   iterator->delivered, &element));
    *ret = element;
    return TUTTI_OK;
}

/* Elements under way are dropped, whatever became of them: skipping calls no function. */
static tutti_status map_skip(tutti_iterator *iterator, int64_t count, int64_t *ret_skipped)
{
    state *s = iterator->state;
    int64_t done = 0, skipped = 0;
    for (; s->threads && done < count && tutti__map_threads_pending(s->threads) > 0; done++) {
        tutti_element element = {0};
        tutti_status status = tutti__map_threads_take(s->threads, iterator, &element);
        if (status == TUTTI_CANCELLED || status == TUTTI_DEADLINE)
            return status;
        tutti_element_release(&element);
    }
    if (done < count && s->input_error.status != TUTTI_OK)
        return tutti__error_restore(&s->input_error);
    if (done < count)
        TUTTI_TRY(tutti__iterator_skip(iterator->inputs[0], count - done, &skipped));
    *ret_skipped = done + skipped;
    return TUTTI_OK;
}

static void map_close(tutti_iterator *iterator)
{
    tutti__map_threads_stop(((state *)iterator->state)->threads);
}

static tutti_status at(tutti_access *access, uint64_t epoch, int64_t index, tutti_element *ret)
{
    tutti_element element = {0};
    TUTTI_TRY(tutti__access_at(access->inputs[0], epoch, index, &element));
    TUTTI_TRY(tutti__map_apply(access->dataset, access->share, epoch, index, &element));
    *ret = element;
    return TUTTI_OK;
}

static void map_describe(tutti_dataset *dataset, const tutti_map_options *options)
{
    tutti_dataset_info *info = &dataset->info;
    if (options && options->components > 0) {
        info->components = options->components;
        memset(info->names, 0, sizeof info->names);
        memcpy(info->types, options->types, sizeof info->types);
    } else {
        for (int c = 0; c < info->components; c++)
            info->types[c] = tutti__type_unknown();
    }
    for (int c = 0; options && c < info->components; c++)
        if (options->names[c])
            info->names[c] = tutti__dataset_name(dataset->job, options->names[c]);
    tutti__dataset_default_names(dataset);
}

extern const tutti_dataset_def tutti_dataset_def_map;

tutti_dataset *tutti_map_with(tutti_dataset *input, tutti_map_fn *function,
                              const tutti_map_options *options)
{
    int parallel = options ? options->parallel : 0;
    if (input && (!function || parallel < 0 || parallel > 256))
        return tutti__dataset_wrong(input->job, &tutti_dataset_def_map,
                                    function ? "%d threads: needs 0 to 256"
                                             : "the function is NULL (%d threads)",
                                    parallel);
    if (input && options && (options->components < 0 || options->components > TUTTI_MAX_COMPONENTS))
        return tutti__dataset_wrong(input->job, &tutti_dataset_def_map,
                                    ".components is %d: needs 1 to %d", options->components,
                                    TUTTI_MAX_COMPONENTS);
    tutti_dataset *dataset = tutti__dataset_create(&tutti_dataset_def_map, NULL, 1, &input);
    if (!dataset)
        return NULL;
    tutti_map_settings *s = dataset->settings;
    *s = (tutti_map_settings){
        .function = function,
        .context = options ? options->context : NULL,
        .parallel = parallel,
        .seed = tutti__dataset_seed(dataset, options ? options->seed : 0),
        .components = options ? options->components : 0,
    };
    map_describe(dataset, options);
    dataset->info.cardinality = input->info.cardinality;
    tutti__dataset_note(dataset, s->seed);
    bool by_number = parallel <= 1 && input->access != TUTTI_ACCESS_NONE;
    tutti__dataset_set_access(dataset, by_number ? TUTTI_ACCESS_ELEMENTS : TUTTI_ACCESS_NONE);
    return dataset;
}

const tutti_dataset_def tutti_dataset_def_map = {
    .name = "map",
    .keeps_parts = true,
    .doc = "a function of each element",
    .settings_size = sizeof(tutti_map_settings),
    .state_size = sizeof(state),
    .next = map_next,
    .skip = map_skip,
    .close = map_close,
    .at = at,
};
