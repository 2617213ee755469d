/* interleave.c: elements of several datasets in turn. */
#include "data/dataset.h"

typedef struct settings {
    int64_t cycle, block;
} settings;

#define MAX_DATASETS 1024

/* Seats hold the inputs that are read in turn; -1: empty, as nobody is left to sit there. */
typedef struct state {
    int seats[MAX_DATASETS];
    int turn, waiting; /* the next input that has no seat yet */
    int64_t in_block;
    bool begun;
} state;

/* The next input that has no seat yet, or -1. By file, a process takes some of the inputs. */
static int take_waiting(tutti_iterator *iterator)
{
    state *s = iterator->state;
    const tutti_share *share = iterator->share;
    bool dealt = share && share->policy == TUTTI_SHARD_FILE;
    while (dealt && s->waiting % share->count != share->index)
        s->waiting++;
    return s->waiting < iterator->dataset->input_count ? s->waiting++ : -1;
}

static void interleave_begin(tutti_iterator *iterator)
{
    const settings *given = iterator->dataset->settings;
    state *s = iterator->state;
    for (int i = 0; !s->begun && i < given->cycle; i++)
        s->seats[i] = take_waiting(iterator);
    s->begun = true;
}

static void next_turn(tutti_iterator *iterator)
{
    const settings *given = iterator->dataset->settings;
    state *s = iterator->state;
    s->turn = (s->turn + 1) % (int)given->cycle;
    s->in_block = 0;
}

/* The input whose turn it is, or NULL when all have ended. */
static tutti_iterator *interleave_present(tutti_iterator *iterator)
{
    const settings *given = iterator->dataset->settings;
    state *s = iterator->state;
    interleave_begin(iterator);
    for (int64_t i = 0; i < given->cycle && s->seats[s->turn] < 0; i++)
        next_turn(iterator);
    return s->seats[s->turn] < 0 ? NULL : iterator->inputs[s->seats[s->turn]];
}

static void count_one(tutti_iterator *iterator)
{
    const settings *given = iterator->dataset->settings;
    state *s = iterator->state;
    if (++s->in_block == given->block)
        next_turn(iterator);
}

static void leave_seat(tutti_iterator *iterator)
{
    state *s = iterator->state;
    s->seats[s->turn] = take_waiting(iterator);
    next_turn(iterator);
}

static tutti_status interleave_next(tutti_iterator *iterator, tutti_element *ret)
{
    for (tutti_iterator *input; (input = interleave_present(iterator));) {
        TUTTI_TRY(tutti__iterator_next(input, ret));
        if (ret->count > 0) {
            count_one(iterator);
            return TUTTI_OK;
        }
        leave_seat(iterator);
    }
    return TUTTI_OK;
}

static tutti_status interleave_skip(tutti_iterator *iterator, int64_t count, int64_t *ret_skipped)
{
    int64_t done = 0, one;
    for (tutti_iterator *input; done < count && (input = interleave_present(iterator));) {
        TUTTI_TRY(tutti__iterator_skip(input, 1, &one));
        done += one;
        if (one > 0)
            count_one(iterator);
        else
            leave_seat(iterator);
    }
    *ret_skipped = done;
    return TUTTI_OK;
}

/* Types that differ between the inputs are not known. */
static void merge(tutti_dataset *dataset)
{
    tutti_dataset_info *info = &dataset->info;
    int64_t total = 0;
    for (int i = 0; i < dataset->input_count; i++) {
        const tutti_dataset_info *other = &dataset->inputs[i]->info;
        for (int c = 0; c < info->components; c++)
            if (info->types[c].rank >= 0 && !tutti_type_equal(&info->types[c], &other->types[c]))
                info->types[c] = tutti__type_unknown();
        if (total == TUTTI_ENDLESS || other->cardinality == TUTTI_ENDLESS)
            total = TUTTI_ENDLESS;
        else if (total < 0 || other->cardinality < 0 ||
                 !tutti__add_size(total, other->cardinality, &total))
            total = TUTTI_UNKNOWN;
    }
    info->cardinality = total;
}

extern const tutti_dataset_def tutti_dataset_def_interleave;

tutti_dataset *tutti_interleave_with(const tutti_interleave_options *options)
{
    int count = options->datasets.count;
    tutti_dataset *const *inputs = options->datasets.list;
    for (int i = 0; i < count; i++)
        if (!inputs[i])
            return NULL;
    if (count < 1)
        return NULL;
    tutti_job *job = inputs[0]->job;
    if (count > MAX_DATASETS || options->cycle < 0 || options->block < 0)
        return tutti__dataset_wrong(
            job, &tutti_dataset_def_interleave,
            "%d datasets, cycle %lld, block %lld: needs at most %d datasets "
            "and numbers that are not negative",
            count, (long long)options->cycle, (long long)options->block, MAX_DATASETS);
    for (int i = 1; i < count; i++)
        if (inputs[i]->info.components != inputs[0]->info.components)
            return tutti__dataset_wrong(job, &tutti_dataset_def_interleave,
                                        "dataset %d has %d components, dataset 0 has %d", i,
                                        inputs[i]->info.components, inputs[0]->info.components);
    tutti_dataset *dataset =
        tutti__dataset_create(&tutti_dataset_def_interleave, NULL, count, inputs);
    if (!dataset)
        return NULL;
    settings *s = dataset->settings;
    s->cycle = options->cycle > 0 && options->cycle < count ? options->cycle : count;
    s->block = options->block > 0 ? options->block : 1;
    merge(dataset);
    tutti__dataset_note(dataset, (uint64_t)s->cycle);
    tutti__dataset_note(dataset, (uint64_t)s->block);
    return dataset;
}

const tutti_dataset_def tutti_dataset_def_interleave = {
    .name = "interleave",
    .keeps_parts = true,
    .deals = true,
    .doc = "elements of several datasets in turn",
    .settings_size = sizeof(settings),
    .state_size = sizeof(state),
    .next = interleave_next,
    .skip = interleave_skip,
};
