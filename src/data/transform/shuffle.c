/* shuffle.c: another order in each epoch.
 *
 * With a buffer of b: the buffer holds elements 0 … b-1; output i is the buffer's place
 * below(i, filled), which the next element of the input then takes (or, when there is none, the
 * buffer's last). Where the input has random access the same is done with numbers only. */
#include <stdlib.h>

#include "base/random.h"
#include "data/dataset.h"
#include "tutti/data.h"

#define ORDER_LIMIT ((int64_t)1 << 27) /* numbers kept for an order */

typedef struct settings {
    int64_t buffer; /* 0: everything */
    uint64_t seed;
    bool same_order;
} settings;

static uint64_t epoch_of(const settings *s, uint64_t epoch)
{
    return s->same_order ? 0 : epoch;
}

static int64_t shuffle_draw(const settings *s, uint64_t seed, uint64_t epoch, int64_t number,
                            int64_t filled)
{
    tutti_random_key key = {.seed = seed, .stream = epoch_of(s, epoch)};
    return (int64_t)tutti__random_below(key, (uint64_t)number, (uint64_t)filled);
}

/* ---- by numbers ---- */

typedef struct order {
    int64_t *numbers; /* NULL before the first */
    uint64_t epoch;
} order;

/* Places in[0 … buffer) hold the buffer; element k beyond it waits at in[k]. */
static tutti_status simulate(const settings *s, uint64_t seed, uint64_t epoch, int64_t count,
                             int64_t *ret)
{
    int64_t filled = s->buffer < count ? s->buffer : count, read = filled;
    int64_t *held = malloc((size_t)(filled + 1) * sizeof *held);
    if (!held)
        return tutti_fail(TUTTI_NO_MEMORY, "shuffle: no memory for a buffer of %lld",
                          (long long)filled);
    for (int64_t i = 0; i < filled; i++)
        held[i] = i;
    for (int64_t i = 0; i < count; i++) {
        int64_t place = shuffle_draw(s, seed, epoch, i, filled);
        ret[i] = held[place];
        held[place] = read < count ? read++ : held[--filled];
    }
    free(held);
    return TUTTI_OK;
}

static tutti_status renumber(tutti_access *access, uint64_t epoch, int64_t count,
                             const int64_t *indices, int64_t *ret_indices)
{
    const settings *s = access->dataset->settings;
    order *o = access->state;
    int64_t all = access->dataset->info.cardinality;
    uint64_t seed = tutti__share_seed(access->share, s->seed);
    epoch = epoch_of(s, epoch);
    if (!o->numbers || o->epoch != epoch) {
        if (!o->numbers && !(o->numbers = malloc((size_t)(all + 1) * sizeof *o->numbers)))
            return tutti_fail(TUTTI_NO_MEMORY, "shuffle: no memory for the order of %lld elements",
                              (long long)all);
        o->epoch = epoch;
        if (s->buffer == 0)
            tutti_shuffled(seed, epoch, all, o->numbers);
        else
            TUTTI_TRY(simulate(s, seed, epoch, all, o->numbers));
    }
    for (int64_t i = 0; i < count; i++)
        ret_indices[i] = o->numbers[indices[i]];
    return TUTTI_OK;
}

static void leave(tutti_access *access)
{
    free(((order *)access->state)->numbers);
}

/* ---- by elements ---- */

typedef struct state {
    tutti_element *held;
    size_t count, capacity; /* of held */
    int64_t *order;         /* of everything, when the buffer is 0 */
    bool filled;
} state;

static tutti_status read_one(tutti_iterator *iterator, tutti_element *ret)
{
    state *s = iterator->state;
    *ret = (tutti_element){0};
    if (!tutti__vec_grow((void **)&s->held, s->count, &s->capacity, sizeof *s->held))
        return tutti_fail(TUTTI_NO_MEMORY, "shuffle: no memory for a buffer of %zu elements",
                          s->count);
    return tutti__iterator_next(iterator->inputs[0], ret);
}

static tutti_status shuffle_fill(tutti_iterator *iterator)
{
    const settings *given = iterator->dataset->settings;
    state *s = iterator->state;
    while (given->buffer == 0 || (int64_t)s->count < given->buffer) {
        tutti_element element;
        TUTTI_TRY(read_one(iterator, &element));
        if (element.count == 0)
            break;
        s->held[s->count++] = element;
    }
    s->filled = true;
    if (given->buffer > 0)
        return TUTTI_OK;
    s->order = malloc((s->count + 1) * sizeof *s->order);
    if (!s->order)
        return tutti_fail(TUTTI_NO_MEMORY, "shuffle: no memory for an order");
    tutti_shuffled(tutti__share_seed(iterator->share, given->seed),
                   epoch_of(given, iterator->epoch), (int64_t)s->count, s->order);
    return TUTTI_OK;
}

static tutti_status next_of_all(tutti_iterator *iterator, tutti_element *ret)
{
    state *s = iterator->state;
    if (iterator->delivered < (int64_t)s->count) {
        tutti_element *held = &s->held[s->order[iterator->delivered]];
        *ret = *held;
        held->count = 0;
    }
    return TUTTI_OK;
}

static tutti_status shuffle_next(tutti_iterator *iterator, tutti_element *ret)
{
    const settings *given = iterator->dataset->settings;
    state *s = iterator->state;
    tutti_element more = {0};
    if (!s->filled)
        TUTTI_TRY(shuffle_fill(iterator));
    if (given->buffer == 0)
        return next_of_all(iterator, ret);
    if (s->count == 0)
        return TUTTI_OK;
    int64_t place = shuffle_draw(given, tutti__share_seed(iterator->share, given->seed),
                                 iterator->epoch, iterator->delivered, (int64_t)s->count);
    TUTTI_TRY(tutti__iterator_next(iterator->inputs[0], &more));
    *ret = s->held[place];
    s->held[place] = more.count > 0 ? more : s->held[--s->count];
    return TUTTI_OK;
}

static void shuffle_close(tutti_iterator *iterator)
{
    state *s = iterator->state;
    for (size_t i = 0; i < s->count; i++)
        tutti_element_release(&s->held[i]);
    free(s->held);
    free(s->order);
}

extern const tutti_dataset_def tutti_dataset_def_shuffle;

tutti_dataset *tutti_shuffle_with(tutti_dataset *input, int64_t buffer,
                                  const tutti_shuffle_options *options)
{
    int64_t all = input ? input->info.cardinality : 0;
    if (input && (buffer < 0 || (buffer == 0 && all == TUTTI_ENDLESS)))
        return tutti__dataset_wrong(input->job, &tutti_dataset_def_shuffle,
                                    buffer < 0 ? "the buffer holds %lld elements"
                                               : "endless data needs a buffer, not %lld; or "
                                                 "shuffle before tutti_repeat",
                                    (long long)buffer);
    tutti_dataset *dataset = tutti__dataset_create(&tutti_dataset_def_shuffle, NULL, 1, &input);
    if (!dataset)
        return NULL;
    settings *s = dataset->settings;
    s->buffer = buffer;
    s->seed = tutti__dataset_seed(dataset, options ? options->seed : 0);
    s->same_order = options && options->same_order;
    dataset->info.cardinality = all;
    dataset->info.reorders = dataset->info.reorders || !s->same_order;
    tutti__dataset_note(dataset, (uint64_t)buffer);
    tutti__dataset_note(dataset, s->seed);
    tutti__dataset_note(dataset, s->same_order);
    tutti__dataset_set_access(dataset,
                              all >= 0 && all <= ORDER_LIMIT ? input->access : TUTTI_ACCESS_NONE);
    return dataset;
}

const tutti_dataset_def tutti_dataset_def_shuffle = {
    .name = "shuffle",
    .keeps_parts = true,
    .doc = "another order in each epoch",
    .settings_size = sizeof(settings),
    .state_size = sizeof(state),
    .access_size = sizeof(order),
    .next = shuffle_next,
    .close = shuffle_close,
    .renumber = renumber,
    .leave = leave,
};
