/* window.c: windows over the elements, stacked.
 *
 * Window w holds elements w shift + k stride for k in [0, size). The ring keeps what the next
 * window needs; with shift > reach the elements between are skipped. */
#include <stdlib.h>
#include <string.h>

#include "data/transform/batch.h"

typedef struct settings {
    int64_t size, shift, stride, reach; /* reach = (size - 1) stride + 1 elements under a window */
    bool keep_remainder;
} settings;
typedef struct state {
    tutti_element *held;   /* `reach` places: elements first, first + 1, … */
    tutti_element *chosen; /* `size` places, borrowed */
    int64_t first, count;  /* number of the first held */
} state;

static tutti_status window_open(tutti_iterator *iterator)
{
    const settings *given = iterator->dataset->settings;
    state *s = iterator->state;
    s->held = calloc((size_t)given->reach, sizeof *s->held);
    s->chosen = calloc((size_t)given->size, sizeof *s->chosen);
    return s->held && s->chosen ? TUTTI_OK
                                : tutti_fail(TUTTI_NO_MEMORY, "window: no memory for %lld elements",
                                             (long long)given->reach);
}

/* Drops what lies before element `first`, then reads until `reach` are held or the input ends. */
static tutti_status move_to(tutti_iterator *iterator, int64_t first)
{
    const settings *given = iterator->dataset->settings;
    state *s = iterator->state;
    int64_t drop = first - s->first < s->count ? first - s->first : s->count, more, skipped;
    tutti__release_all(drop, s->held);
    s->count -= drop;
    memmove(s->held, s->held + drop, (size_t)s->count * sizeof *s->held);
    s->first += drop;
    if (s->first < first) {
        TUTTI_TRY(tutti__iterator_skip(iterator->inputs[0], first - s->first, &skipped));
        s->first = first;
    }
    TUTTI_TRY(
        tutti__collect(iterator->inputs[0], given->reach - s->count, s->held + s->count, &more));
    s->count += more;
    return TUTTI_OK;
}

/* How many elements a window has when `there` are left from its first on. */
static int64_t elements_of(const settings *s, int64_t there)
{
    int64_t count = there <= 0 ? 0 : (there - 1) / s->stride + 1;
    return count < s->size ? (s->keep_remainder ? count : 0) : s->size;
}

static tutti_status window_next(tutti_iterator *iterator, tutti_element *ret)
{
    const settings *given = iterator->dataset->settings;
    state *s = iterator->state;
    TUTTI_TRY(move_to(iterator, iterator->delivered * given->shift));
    int64_t count = elements_of(given, s->count);
    if (count == 0)
        return TUTTI_OK;
    for (int64_t k = 0; k < count; k++)
        s->chosen[k] = s->held[k * given->stride];
    return tutti__element_failed(iterator->dataset, iterator->epoch, iterator->delivered,
                                 tutti__element_stack(count, s->chosen, ret));
}

/* Passes over windows by looking only at whether they are there. */
static tutti_status window_skip(tutti_iterator *iterator, int64_t count, int64_t *ret_skipped)
{
    const settings *given = iterator->dataset->settings;
    state *s = iterator->state;
    int64_t done = 0;
    for (; done < count; done++) {
        TUTTI_TRY(move_to(iterator, (iterator->delivered + done) * given->shift));
        if (elements_of(given, s->count) == 0)
            break;
    }
    *ret_skipped = done;
    return TUTTI_OK;
}

static void window_close(tutti_iterator *iterator)
{
    state *s = iterator->state;
    tutti__release_all(s->count, s->held);
    free(s->held);
    free(s->chosen);
}

static int64_t windows(const settings *s, int64_t all)
{
    if (all < 0)
        return all;
    int64_t needed = s->keep_remainder ? 1 : s->reach;
    return all < needed ? 0 : (all - needed) / s->shift + 1;
}

extern const tutti_dataset_def tutti_dataset_def_window;

tutti_dataset *tutti_window_with(tutti_dataset *input, int64_t size,
                                 const tutti_window_options *options)
{
    settings given = {.size = size,
                      .shift = options && options->shift ? options->shift : size,
                      .stride = options && options->stride ? options->stride : 1,
                      .keep_remainder = options && options->keep_remainder};
    bool good =
        size >= 1 && given.shift >= 1 && given.stride >= 1 && given.shift <= TUTTI_BATCH_LIMIT &&
        tutti__mul_size(size - 1, given.stride, &given.reach) && given.reach++ < TUTTI_BATCH_LIMIT;
    if (input && !good)
        return tutti__dataset_wrong(input->job, &tutti_dataset_def_window,
                                    "size %lld, shift %lld, stride %lld: needs numbers of 1 or "
                                    "more that span at most %lld elements",
                                    (long long)size, (long long)given.shift,
                                    (long long)given.stride, (long long)TUTTI_BATCH_LIMIT);
    tutti_dataset *dataset = tutti__dataset_create(&tutti_dataset_def_window, NULL, 1, &input);
    if (!dataset)
        return NULL;
    *(settings *)dataset->settings = given;
    dataset->info.cardinality = windows(&given, input->info.cardinality);
    tutti__batch_types(dataset, given.keep_remainder ? TUTTI_ANY : size);
    tutti__dataset_note(dataset, (uint64_t)size);
    tutti__dataset_note(dataset, (uint64_t)given.shift);
    tutti__dataset_note(dataset, (uint64_t)given.stride);
    return dataset;
}

const tutti_dataset_def tutti_dataset_def_window = {
    .name = "window",
    .doc = "windows over the elements, stacked",
    .settings_size = sizeof(settings),
    .state_size = sizeof(state),
    .open = window_open,
    .next = window_next,
    .skip = window_skip,
    .close = window_close,
};
