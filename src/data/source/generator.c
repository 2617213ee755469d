/* generator.c: elements from the user's code. */
#include <stdatomic.h>

#include "data/dataset.h"

typedef struct settings {
    tutti_generator given;
    atomic_bool open, used;
} settings;
typedef struct state {
    bool mine; /* this iterator holds the generator */
} state;

static tutti_status generator_open(tutti_iterator *iterator)
{
    settings *s = iterator->dataset->settings;
    state *own = iterator->state;
    if (atomic_exchange(&s->open, true))
        return tutti_fail(TUTTI_INVALID, "generator: an iterator is open already, and the "
                                         "generator has one state; close that one first");
    own->mine = true;
    if (atomic_exchange(&s->used, true) && !s->given.reset)
        return tutti_fail(TUTTI_INVALID, "generator: it was read once and has no .reset to begin "
                                         "again; give one, or use tutti_cache");
    if (!s->given.reset)
        return TUTTI_OK;
    tutti_status status = s->given.reset(s->given.context, iterator->epoch);
    return status == TUTTI_OK ? status
                              : tutti__error_prefix(status, "generator: reset for epoch %llu",
                                                    (unsigned long long)iterator->epoch);
}

static tutti_status generator_check(const tutti_dataset *dataset, const tutti_element *element)
{
    const tutti_generator *given = &((const settings *)dataset->settings)->given;
    char got[TUTTI_TYPE_TEXT], wanted[TUTTI_TYPE_TEXT];
    if (element->count == 0 || given->components == 0)
        return TUTTI_OK;
    if (element->count != given->components)
        return tutti_fail(TUTTI_INVALID, "it has %d components, .components says %d",
                          element->count, given->components);
    for (int c = 0; c < element->count; c++) {
        const tutti_type *type = tutti_tensor_type(element->tensors[c]), *want = &given->types[c];
        bool fits = want->dtype == TUTTI_NO_DTYPE ||
                    (want->dtype == type->dtype && want->rank == type->rank);
        for (int i = 0; fits && want->dtype != TUTTI_NO_DTYPE && i < want->rank; i++)
            fits = want->dims[i] == TUTTI_ANY || want->dims[i] == type->dims[i];
        if (!fits)
            return tutti_fail(TUTTI_INVALID, "component %d is %s, .types say %s", c,
                              tutti_type_text(type, got), tutti_type_text(want, wanted));
    }
    return TUTTI_OK;
}

static tutti_status generator_next(tutti_iterator *iterator, tutti_element *ret)
{
    const tutti_generator *given = &((const settings *)iterator->dataset->settings)->given;
    tutti_element element = {0};
    tutti__error_forget();
    tutti_status status = tutti__error_say(given->next(given->context, &element), "it failed");
    if (status == TUTTI_OK)
        status = generator_check(iterator->dataset, &element);
    if (status != TUTTI_OK) {
        tutti_element_release(&element);
        return tutti__element_failed(iterator->dataset, iterator->epoch, iterator->delivered,
                                     status);
    }
    *ret = element;
    return TUTTI_OK;
}

static void generator_close(tutti_iterator *iterator)
{
    settings *s = iterator->dataset->settings;
    if (((state *)iterator->state)->mine)
        atomic_store(&s->open, false);
}

extern const tutti_dataset_def tutti_dataset_def_generator;

tutti_dataset *(tutti_from_generator)(tutti_job *job, const tutti_generator *generator)
{
    if (!generator || !generator->next || generator->components < 0 ||
        generator->components > TUTTI_MAX_COMPONENTS)
        return tutti__dataset_wrong(job, &tutti_dataset_def_generator,
                                    "needs .next and at most %d components", TUTTI_MAX_COMPONENTS);
    tutti_dataset *dataset = tutti__dataset_create(&tutti_dataset_def_generator, job, 0, NULL);
    if (!dataset)
        return NULL;
    ((settings *)dataset->settings)->given = *generator;
    dataset->once = !generator->reset;
    tutti_dataset_info *info = &dataset->info;
    info->components = generator->components;
    info->cardinality = generator->cardinality > 0 || generator->cardinality == TUTTI_ENDLESS
                            ? generator->cardinality
                            : TUTTI_UNKNOWN;
    for (int c = 0; c < info->components; c++) {
        bool known = generator->types[c].dtype != TUTTI_NO_DTYPE;
        info->types[c] = known ? generator->types[c] : tutti__type_unknown();
        if (generator->names[c])
            info->names[c] = tutti__dataset_name(job, generator->names[c]);
    }
    tutti__dataset_default_names(dataset);
    return dataset;
}

const tutti_dataset_def tutti_dataset_def_generator = {
    .name = "generator",
    .doc = "elements from a function",
    .settings_size = sizeof(settings),
    .state_size = sizeof(state),
    .open = generator_open,
    .next = generator_next,
    .close = generator_close,
};
