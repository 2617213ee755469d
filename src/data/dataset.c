/* dataset.c: making datasets, and what is known of them. */
#include "data/dataset.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void tutti__dataset_destroy(void *object)
{
    tutti_dataset *dataset = object;
    tutti_element_release(&dataset->loop_element);
    while (dataset->open_iterators)
        tutti_iterator_close(dataset->open_iterators);
    if (dataset->def->destroy)
        dataset->def->destroy(dataset);
    free(dataset->settings);
    free(dataset->inputs);
    free(dataset);
}

static void note_place(tutti_dataset *dataset)
{
    const char *file;
    int line;
    tutti__here_get(&file, &line);
    if (!file)
        return;
    const char *slash = strrchr(file, '/');
    snprintf(dataset->place, sizeof dataset->place, "%s:%d", slash ? slash + 1 : file, line);
}

static tutti_dataset *dataset_allocate(const tutti_dataset_def *def, int input_count,
                                       tutti_dataset *const *inputs)
{
    tutti_dataset *dataset = calloc(1, sizeof *dataset);
    if (!dataset)
        return NULL;
    dataset->settings = calloc(1, def->settings_size + 1);
    dataset->inputs = calloc((size_t)input_count + 1, sizeof *dataset->inputs);
    if (!dataset->settings || !dataset->inputs) {
        free(dataset->settings);
        free(dataset->inputs);
        free(dataset);
        return NULL;
    }
    for (int i = 0; i < input_count; i++)
        dataset->inputs[i] = inputs[i];
    return dataset;
}

tutti_dataset *tutti__dataset_create(const tutti_dataset_def *def, tutti_job *job, int input_count,
                                     tutti_dataset *const *inputs)
{
    for (int i = 0; i < input_count; i++)
        if (!inputs[i])
            return NULL;
    job = input_count > 0 ? inputs[0]->job : job;
    if (!tutti__job_able(job))
        return NULL;
    for (int i = 0; i < input_count; i++)
        if (!def->hands_on && tutti__dataset_is_own(inputs[i]))
            return tutti__dataset_fail(
                job, def,
                tutti_fail(TUTTI_UNSUPPORTED,
                           "its input is what tutti_distribute_from_function made: each process "
                           "has rows of its own; use the transform inside the function"));
    tutti_dataset *dataset = dataset_allocate(def, input_count, inputs);
    if (!dataset)
        return tutti__dataset_fail(job, def, tutti_fail(TUTTI_NO_MEMORY, "no memory"));
    dataset->def = def;
    dataset->job = job;
    dataset->input_count = input_count;
    dataset->hash = tutti__hash_string(1, def->name);
    note_place(dataset);
    if (input_count > 0)
        dataset->info = inputs[0]->info;
    for (int i = 0; i < input_count; i++) {
        dataset->hash = tutti__hash_mix(dataset->hash, inputs[i]->hash);
        dataset->once = dataset->once || inputs[i]->once;
        dataset->info.reorders = dataset->info.reorders || inputs[i]->info.reorders;
    }
    if (input_count > 0 && tutti__dataset_is_own(inputs[0]))
        dataset->share = inputs[0]->share;
    dataset->info.cardinality = TUTTI_UNKNOWN;
    dataset->info.random_access = false;
    return tutti_job_own(job, dataset, tutti__dataset_destroy) ? dataset : NULL;
}

/* The name and the user's place, for messages of constructors. */
static tutti_status say_where(const tutti_dataset_def *def, tutti_status status)
{
    const char *file;
    int line;
    tutti__here_get(&file, &line);
    if (!file)
        return tutti__error_prefix(status, "%s", def->name);
    const char *slash = strrchr(file, '/');
    return tutti__error_prefix(status, "%s (%s:%d)", def->name, slash ? slash + 1 : file, line);
}

tutti_dataset *tutti__dataset_fail(tutti_job *job, const tutti_dataset_def *def,
                                   tutti_status status)
{
    if (tutti__job_able(job))
        tutti_job_fail(job, say_where(def, status));
    return NULL;
}

tutti_dataset *tutti__dataset_wrong(tutti_job *job, const tutti_dataset_def *def,
                                    const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return tutti__dataset_fail(job, def, tutti_fail(TUTTI_INVALID, "%s", text));
}

const char *tutti__dataset_name(tutti_job *job, const char *name)
{
    const char *kept = tutti__arena_string(&job->arena, name);
    return kept ? kept : "";
}

void tutti__dataset_default_names(tutti_dataset *dataset)
{
    for (int i = 0; i < dataset->info.components; i++) {
        char text[16];
        snprintf(text, sizeof text, "%d", i);
        if (!dataset->info.names[i])
            dataset->info.names[i] = i == 0   ? "x"
                                     : i == 1 ? "y"
                                              : tutti__dataset_name(dataset->job, text);
    }
}

void tutti__dataset_note(tutti_dataset *dataset, uint64_t number)
{
    dataset->hash = tutti__hash_mix(dataset->hash, number);
}

tutti_type tutti__type_unknown(void)
{
    return (tutti_type){.dtype = TUTTI_NO_DTYPE, .rank = -1};
}

uint64_t tutti__dataset_seed(const tutti_dataset *dataset, uint64_t seed)
{
    return seed ? seed : tutti_job_seed(dataset->job);
}

void tutti__dataset_set_access(tutti_dataset *dataset, tutti_access_level level)
{
    if (dataset->info.cardinality == TUTTI_UNKNOWN)
        level = TUTTI_ACCESS_NONE;
    for (int i = 0; i < dataset->info.components && level == TUTTI_ACCESS_ROWS; i++)
        if (dataset->info.types[i].rank < 0 || dataset->info.types[i].rank == TUTTI_MAX_RANK ||
            !tutti_type_is_static(&dataset->info.types[i]))
            level = TUTTI_ACCESS_ELEMENTS;
    dataset->access = level;
    dataset->info.random_access = level != TUTTI_ACCESS_NONE;
}

tutti_status tutti__element_failed(const tutti_dataset *dataset, uint64_t epoch, int64_t index,
                                   tutti_status status)
{
    if (status == TUTTI_OK || status == TUTTI_CANCELLED)
        return status;
    return tutti__error_prefix(status, "%s%s%s%s: element %lld of epoch %llu", dataset->def->name,
                               dataset->place[0] ? " (" : "", dataset->place,
                               dataset->place[0] ? ")" : "", (long long)index,
                               (unsigned long long)epoch);
}

tutti_status tutti_dataset_describe(const tutti_dataset *dataset, tutti_dataset_info *ret_info)
{
    if (!dataset)
        return tutti_fail(TUTTI_INVALID, "there is no dataset to describe");
    *ret_info = dataset->info;
    return TUTTI_OK;
}

int64_t tutti_cardinality(const tutti_dataset *dataset)
{
    return dataset ? dataset->info.cardinality : TUTTI_UNKNOWN;
}

tutti_job *tutti_dataset_job(const tutti_dataset *dataset)
{
    return dataset ? dataset->job : NULL;
}

static void print(tutti_text *text, const tutti_dataset *dataset)
{
    tutti__text_add(text, "%s", dataset->def->name);
    for (int i = 0; i < dataset->input_count; i++) {
        tutti__text_add(text, "%s", i == 0 ? "(" : ", ");
        print(text, dataset->inputs[i]);
    }
    if (dataset->input_count > 0)
        tutti__text_add(text, ")");
}

tutti_status tutti_dataset_print(const tutti_dataset *dataset, char **ret_text)
{
    tutti_text text = {0};
    if (!dataset)
        return tutti_fail(TUTTI_INVALID, "there is no dataset to print");
    print(&text, dataset);
    if (text.failed) {
        tutti__text_free(&text);
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a dataset's text");
    }
    *ret_text = text.data;
    return TUTTI_OK;
}
