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
    tutti_iterator *iterator = tutti__iterate(dataset, 0);
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
                            : tutti__iterate(dataset, epoch);
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

/* The first components of an element; NULL in place of one that is not wanted. */
static tutti_status hand_out(const tutti_dataset *dataset, const tutti_element *element, int count,
                             tutti_tensor **const *ret)
{
    if (count > element->count)
        return tutti_job_fail(
            dataset->job,
            tutti_fail(TUTTI_INVALID, "%s%s%s: the loop asks for %d components, elements have %d%s",
                       dataset->def->name, dataset->place[0] ? " at " : "", dataset->place, count,
                       element->count, element->count == 1 ? ": give one name alone" : ""));
    for (int i = 0; i < count; i++)
        if (ret[i])
            *ret[i] = element->tensors[i];
    return TUTTI_OK;
}

tutti_status tutti_next_components(tutti_dataset *dataset, int count,
                                   tutti_tensor **const *ret_components)
{
    for (int i = 0; i < count; i++)
        if (ret_components[i])
            *ret_components[i] = NULL;
    if (!dataset)
        return tutti_fail(TUTTI_INVALID, "next_batch: there is no dataset");
    while (count > 0 && !ret_components[count - 1])
        count--;
    tutti_element_release(&dataset->loop_element);
    TUTTI_TRY(next_in_loop(dataset));
    return hand_out(dataset, &dataset->loop_element, count, ret_components);
}

tutti_each tutti_each_begin(tutti_dataset *dataset)
{
    tutti_each each = {.over = true};
    if (!dataset || !tutti_job_ok(dataset->job))
        return each;
    each.iterator = dataset->each_waits ? tutti_iterate_from(dataset, &dataset->each_position)
                                        : tutti__iterate(dataset, dataset->epochs_begun);
    dataset->each_waits = false;
    dataset->epochs_begun++;
    dataset->each = each.iterator;
    each.over = !each.iterator;
    return each;
}

bool tutti_each_next(tutti_each *each, int count, tutti_tensor **const *ret_components)
{
    if (!each || !each->iterator)
        return false;
    tutti_job *job = each->iterator->dataset->job;
    tutti_element_release(&each->element);
    if (!tutti_job_ok(job) || tutti_next_element(each->iterator, &each->element) != TUTTI_OK ||
        each->element.count == 0)
        return false;
    return hand_out(each->iterator->dataset, &each->element, count, ret_components) == TUTTI_OK;
}

void tutti_each_end(tutti_each *each)
{
    if (!each)
        return;
    tutti_element_release(&each->element);
    tutti_iterator_close(each->iterator);
    *each = (tutti_each){.over = true};
}

/* ---- iterators of the user's ---- */

/* Data that the checkpoint has behind it would come again, as in a program that counts epochs from
 * 0 after --resume. Not so where every round is alike. */
static bool goes_back(const tutti_dataset *d, uint64_t epoch)
{
    bool over = d->own_over && d->info.reorders && !d->own_alike;
    return (d->own_waits && epoch < d->own_position.epoch) ||
           (over && epoch <= d->own_position.epoch);
}

static void note_own(tutti_dataset *dataset, tutti_iterator *iterator)
{
    bool alike = dataset->own_rounds == 1 || dataset->own_alike;
    dataset->own_alike = alike && iterator->epoch == dataset->own_position.epoch;
    dataset->own_rounds += dataset->own_rounds < 2;
    dataset->own = iterator;
    iterator->users = true;
    tutti_iterator_save(iterator, &dataset->own_position);
}

tutti_iterator *tutti_iterate(tutti_dataset *dataset, uint64_t epoch)
{
    if (!dataset || !tutti__job_able(dataset->job))
        return NULL;
    const tutti_position at = dataset->own_position;
    if (goes_back(dataset, epoch)) {
        tutti_job_fail(
            dataset->job,
            tutti_fail(TUTTI_INVALID,
                       "%s%s%s: epoch %" PRIu64 " is asked for, and the checkpoint that "
                       "training goes on from is %s epoch %" PRIu64
                       ": give tutti_iterate the epoch of the loop, tutti_progress_current_epoch",
                       dataset->def->name, dataset->place[0] ? " at " : "", dataset->place, epoch,
                       dataset->own_waits ? "in" : "at the end of", at.epoch));
        return NULL;
    }
    bool goes_on = dataset->own_waits && epoch == at.epoch;
    dataset->own_waits = dataset->own_over = false;
    tutti_iterator *iterator =
        goes_on ? tutti_iterate_from(dataset, &at) : tutti__iterate(dataset, epoch);
    if (iterator)
        note_own(dataset, iterator);
    return iterator;
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

/* Of the user's last iterator; what one that was closed gave is over. */
static bool stands_own(const tutti_dataset *dataset, tutti_position *ret)
{
    *ret = dataset->own_position;
    if (dataset->own)
        tutti_iterator_save(dataset->own, ret);
    return dataset->own_rounds > 0;
}

/* Added to the kind (0 each, 1 loop, OWN: tutti_iterate).
 * SAME_AGAIN: what comes next is what a new loop would give first, as of data to evaluate on; such
 * a dataset may be made after its position was restored.
 * APART: tutti_position's.
 * CLOSED: so was the user's iterator. ALIKE: several of the user's, all of one epoch. SEVERAL: more
 * than one was open. */
enum { SAME_AGAIN = 2, APART = 4, OWN = 8, CLOSED = 16, ALIKE = 32, SEVERAL = 64 };

static bool is_at_end(const tutti_iterator *iterator)
{
    int64_t cardinality = iterator->dataset->info.cardinality;
    return iterator->ended || (cardinality >= 0 && iterator->delivered >= cardinality);
}

static int own_bits(const tutti_dataset *d)
{
    bool closed = !d->own && !d->own_waits, several = false;
    for (const tutti_iterator *i = d->open_iterators; i; i = i->next_open)
        several = several || (i->users && i != d->own && !is_at_end(i));
    return OWN + (closed ? CLOSED : 0) + (closed && !d->info.reorders ? SAME_AGAIN : 0) +
           (d->own_rounds > 1 && d->own_alike ? ALIKE : 0) + (several ? SEVERAL : 0);
}

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
        bool (*const stands[])(const tutti_dataset *, tutti_position *) = {stands_each, stands_loop,
                                                                           stands_own};
        const int kinds[] = {0, 1, own_bits(d)};
        for (int i = 0; i < 3; i++) {
            tutti_position position;
            if (stands[i](d, &position))
                tutti__text_add(&text, "%d %" PRIu64 " %d %" PRIu64 " %" PRId64 ";",
                                kinds[i] | (same_again(d, &position) ? SAME_AGAIN : 0) |
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

/* An iterator that is open already goes on at once. */
static tutti_status restore_own(tutti_dataset *dataset, int kind, const tutti_position *p)
{
    tutti_iterator *open = dataset->own;
    if (kind & SEVERAL)
        return tutti_fail(TUTTI_INVALID,
                          "several iterators of %s%s%s were open when the checkpoint was saved: of "
                          "one alone it can be told how far it was; close those that are done",
                          dataset->def->name, dataset->place[0] ? " at " : "", dataset->place);
    dataset->own_rounds = (kind & ALIKE) ? 2 : 1;
    dataset->own_alike = (kind & ALIKE) != 0;
    dataset->own_position = *p;
    dataset->own_over = (kind & CLOSED) != 0;
    dataset->own_waits = !dataset->own_over && !open;
    if (!open || dataset->own_over)
        return TUTTI_OK;
    if (open->epoch != p->epoch || open->delivered > p->delivered)
        return tutti_fail(TUTTI_INVALID,
                          "the checkpoint stands behind %" PRId64 " elements of epoch %" PRIu64
                          " of %s, the iterator that is open behind %" PRId64 " of epoch %" PRIu64
                          ": make it after tutti_progress_open",
                          p->delivered, p->epoch, dataset->def->name, open->delivered, open->epoch);
    return tutti_iterator_skip(open, p->delivered - open->delivered);
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
        if (kind & OWN) {
            TUTTI_TRY(restore_own(dataset, kind, &p));
        } else if ((kind & 1) == 0) {
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
