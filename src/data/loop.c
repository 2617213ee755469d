/* loop.c: batches for hand-written loops, and where these stand. */
#include "data/dataset.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* Data that can be read once is not used up by a look at it: the iterator waits for who asks for
 * epoch 0, and gives the element again. */
static void keep_peeked(tutti_iterator *iterator, const tutti_element *element)
{
    iterator->first = *element;
    for (int c = 0; c < element->count; c++)
        tutti_tensor_retain(element->tensors[c]);
    iterator->delivered -= element->count > 0;
    iterator->dataset->peeked = iterator;
}

tutti_status tutti_dataset_peek(tutti_dataset *dataset, tutti_element *ret_element)
{
    tutti_element element = {0};
    if (!dataset)
        return tutti_fail(TUTTI_INVALID, "there is no dataset to look into");
    tutti_iterator *iterator = tutti_iterate(dataset, 0);
    if (!iterator)
        return tutti_job_check(dataset->job) != TUTTI_OK
                   ? tutti_job_check(dataset->job)
                   : tutti_fail(TUTTI_CANCELLED, "the job has ended");
    tutti_status status = tutti__iterator_next(iterator, &element); /* and asks no other process */
    if (status != TUTTI_OK)
        tutti_job_fail(dataset->job, status);
    if (status == TUTTI_OK && dataset->once)
        keep_peeked(iterator, &element);
    else
        tutti_iterator_close(iterator);
    if (status == TUTTI_OK)
        *ret_element = element;
    return status;
}

/* The loop's iterator: of the epoch after the one that ended, at first of epoch 0. */
static tutti_status next_round(tutti_dataset *dataset)
{
    uint64_t epoch = dataset->loop ? dataset->loop->epoch + 1 : 0;
    bool goes_on = dataset->loop_waits;
    tutti_iterator_close(dataset->loop);
    dataset->loop_waits = false;
    dataset->loop = goes_on ? tutti_iterate_from(dataset, &dataset->loop_position)
                            : tutti_iterate(dataset, epoch);
    return dataset->loop ? TUTTI_OK : tutti_job_check(dataset->job);
}

static tutti_status next_in_loop(tutti_dataset *dataset)
{
    if (!tutti__job_able(dataset->job))
        return tutti_job_check(dataset->job) != TUTTI_OK
                   ? tutti_job_check(dataset->job)
                   : tutti_fail(TUTTI_CANCELLED, "the job has ended");
    if (!dataset->loop)
        TUTTI_TRY(next_round(dataset));
    TUTTI_TRY(tutti_next_element(dataset->loop, &dataset->loop_element));
    if (dataset->loop_element.count > 0)
        return TUTTI_OK;
    TUTTI_TRY(next_round(dataset));
    TUTTI_TRY(tutti_next_element(dataset->loop, &dataset->loop_element));
    if (dataset->loop_element.count > 0)
        return TUTTI_OK;
    return tutti_job_fail(dataset->job,
                          tutti_fail(TUTTI_INVALID, "%s: next_batch: the dataset has no elements",
                                     dataset->def->name));
}

tutti_status tutti_next_batch(tutti_dataset *dataset, tutti_tensor **ret_x, tutti_tensor **ret_y)
{
    *ret_x = NULL;
    if (ret_y)
        *ret_y = NULL;
    if (!dataset)
        return tutti_fail(TUTTI_INVALID, "next_batch: there is no dataset");
    tutti_element_release(&dataset->loop_element);
    TUTTI_TRY(next_in_loop(dataset));
    const tutti_element *element = &dataset->loop_element;
    if (ret_y && element->count < 2)
        return tutti_job_fail(dataset->job,
                              tutti_fail(TUTTI_INVALID,
                                         "%s: next_batch: elements have one component, two are "
                                         "asked for; give NULL for the second",
                                         dataset->def->name));
    *ret_x = element->tensors[0];
    if (ret_y)
        *ret_y = element->tensors[1];
    return TUTTI_OK;
}

tutti_each tutti_each_begin(tutti_dataset *dataset)
{
    tutti_each each = {.over = true};
    if (!dataset || !tutti_job_ok(dataset->job))
        return each;
    each.iterator = dataset->each_waits ? tutti_iterate_from(dataset, &dataset->each_position)
                                        : tutti_iterate(dataset, dataset->epochs_begun);
    dataset->each_waits = false;
    dataset->epochs_begun++;
    dataset->each = each.iterator;
    each.over = !each.iterator;
    return each;
}

bool tutti_each_next(tutti_each *each, tutti_tensor **ret_x, tutti_tensor **ret_y)
{
    if (!each || !each->iterator)
        return false;
    tutti_job *job = each->iterator->dataset->job;
    tutti_element_release(&each->element);
    if (!tutti_job_ok(job) || tutti_next_element(each->iterator, &each->element) != TUTTI_OK ||
        each->element.count == 0)
        return false;
    *ret_x = each->element.tensors[0];
    *ret_y = each->element.count > 1 ? each->element.tensors[1] : NULL;
    return true;
}

void tutti_each_end(tutti_each *each)
{
    if (!each)
        return;
    tutti_element_release(&each->element);
    tutti_iterator_close(each->iterator);
    *each = (tutti_each){.over = true};
}

/* ---- where they stand ---- */

/* The next dataset of the job from *at on, or NULL. */
static tutti_dataset *next_dataset(const tutti_job *job, size_t *at)
{
    while (*at < job->owned.count) {
        const tutti_owned *owned = &job->owned.data[(*at)++];
        if (owned->destroy == tutti__dataset_destroy)
            return owned->object;
    }
    return NULL;
}

/* How many datasets before this one are of the same pipeline. */
static int place_of(const tutti_job *job, const tutti_dataset *dataset)
{
    int place = 0;
    size_t at = 0;
    for (const tutti_dataset *each; (each = next_dataset(job, &at)) && each != dataset;)
        place += each->hash == dataset->hash;
    return place;
}

/* Where the next TUTTI_EACH_BATCH, or the one under way, stands; false: there was none. */
static bool stands_each(const tutti_dataset *dataset, tutti_position *ret)
{
    *ret = (tutti_position){.epoch = dataset->epochs_begun, .pipeline = dataset->hash};
    if (dataset->each)
        tutti_iterator_save(dataset->each, ret);
    else if (dataset->each_waits)
        *ret = dataset->each_position;
    return dataset->each || dataset->each_waits || dataset->epochs_begun > 0;
}

static bool stands_loop(const tutti_dataset *dataset, tutti_position *ret)
{
    *ret = dataset->loop_position;
    if (dataset->loop)
        tutti_iterator_save(dataset->loop, ret);
    return dataset->loop || dataset->loop_waits;
}

/* Added to the kind (0 each, 1 loop).
 * SAME_AGAIN: what comes next is what a new loop would give first, as of data to evaluate on; such
 * a dataset may be made after its position was restored.
 * APART: tutti_position's. */
enum { SAME_AGAIN = 2, APART = 4 };

static bool same_again(const tutti_dataset *dataset, const tutti_position *position)
{
    return !dataset->info.reorders &&
           (position->delivered == 0 || position->delivered == dataset->info.cardinality);
}

tutti_status tutti__loops_save(const tutti_job *job, char **ret_text)
{
    tutti_text text = {0};
    size_t at = 0;
    for (const tutti_dataset *d; (d = next_dataset(job, &at));) {
        bool (*const stands[])(const tutti_dataset *, tutti_position *) = {stands_each,
                                                                           stands_loop};
        for (int kind = 0; kind < 2; kind++) {
            tutti_position position;
            if (stands[kind](d, &position))
                tutti__text_add(&text, "%d %" PRIu64 " %d %" PRIu64 " %" PRId64 ";",
                                kind + (same_again(d, &position) ? SAME_AGAIN : 0) +
                                    (position.apart ? APART : 0),
                                d->hash, place_of(job, d), position.epoch, position.delivered);
        }
    }
    tutti__text_bytes(&text, "", 1);
    if (text.failed) {
        tutti__text_free(&text);
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a position in the data");
    }
    *ret_text = text.data;
    return TUTTI_OK;
}

static tutti_dataset *find_dataset(const tutti_job *job, uint64_t hash, int place)
{
    size_t at = 0;
    for (tutti_dataset *each; (each = next_dataset(job, &at));)
        if (each->hash == hash && place_of(job, each) == place)
            return each;
    return NULL;
}

tutti_status tutti__loops_restore(tutti_job *job, const char *text)
{
    int kind, place, used;
    tutti_position p = {0};
    for (; sscanf(text, "%d %" SCNu64 " %d %" SCNu64 " %" SCNd64 ";%n", &kind, &p.pipeline, &place,
                  &p.epoch, &p.delivered, &used) == 5;
         text += used) {
        tutti_dataset *dataset = find_dataset(job, p.pipeline, place);
        p.apart = (kind & APART) != 0;
        if (!dataset && (kind & SAME_AGAIN))
            continue;
        if (!dataset)
            return tutti_fail(TUTTI_INVALID,
                              "the checkpoint was saved with other data: make the datasets as they "
                              "were made then, before tutti_progress_open, with the same seed and "
                              "batch");
        if ((kind & 1) == 0) {
            dataset->each_waits = true;
            dataset->each_position = p;
            dataset->epochs_begun = p.epoch;
        } else {
            dataset->loop_waits = true;
            dataset->loop_position = p;
        }
    }
    return *text ? tutti_fail(TUTTI_CORRUPT,
                              "a checkpoint's positions in the data end with '%.40s'", text)
                 : TUTTI_OK;
}
