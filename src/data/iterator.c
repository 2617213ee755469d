/* iterator.c: iterators inside the pipeline, and those that a user holds. */
#include <stdlib.h>
#include <string.h>

#include "base/world.h"
#include "data/dataset.h"

static tutti_status open_inputs(tutti_iterator *iterator)
{
    for (int i = 0; i < iterator->dataset->input_count; i++)
        TUTTI_TRY(tutti__iterator_open_input(iterator, i, iterator->epoch, iterator->cancel,
                                             &iterator->inputs[i]));
    return TUTTI_OK;
}

/* A process that reads apart makes its batches one after the other: how many there will be is not
 * known by number. */
static bool by_number(const tutti_iterator *iterator)
{
    const tutti_dataset_def *def = iterator->dataset->def;
    bool batches = tutti__share_apart(iterator->share) && !iterator->below;
    return iterator->dataset->access != TUTTI_ACCESS_NONE &&
           !(batches && (def->hands_on || def->shares_rows));
}

/* `share`: of whoever reads from it. */
static tutti_status open_with(tutti_dataset *dataset, const tutti_share *share, bool below,
                              uint64_t epoch, const atomic_bool *cancel, tutti_iterator **ret)
{
    const tutti_dataset_def *def = dataset->def;
    tutti_iterator *made = calloc(1, sizeof *made);
    if (!made)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for an iterator of %s", def->name);
    made->dataset = dataset;
    made->epoch = epoch;
    made->cancel = cancel;
    made->share = dataset->share ? dataset->share : share;
    made->below = below;
    made->state = calloc(1, def->state_size + 1);
    made->inputs = calloc((size_t)dataset->input_count + 1, sizeof *made->inputs);
    tutti_status status = TUTTI_OK;
    if (!made->state || !made->inputs)
        status = tutti_fail(TUTTI_NO_MEMORY, "no memory for an iterator of %s", def->name);
    else if (by_number(made))
        status = tutti__access_open(dataset, share, cancel, &made->access);
    else if (!def->opens_inputs)
        status = open_inputs(made);
    if (status == TUTTI_OK && !made->access && def->open)
        status = def->open(made);
    if (status != TUTTI_OK) {
        tutti__iterator_close(made);
        return status;
    }
    *ret = made;
    return TUTTI_OK;
}

tutti_status tutti__iterator_open(tutti_dataset *dataset, uint64_t epoch, const atomic_bool *cancel,
                                  tutti_iterator **ret)
{
    return open_with(dataset, NULL, false, epoch, cancel, ret);
}

tutti_status tutti__iterator_open_input(const tutti_iterator *parent, int which, uint64_t epoch,
                                        const atomic_bool *cancel, tutti_iterator **ret)
{
    const tutti_dataset_def *def = parent->dataset->def;
    bool dealt = def->deals && parent->share && parent->share->policy == TUTTI_SHARD_FILE;
    bool handed = tutti__share_apart(parent->share) && !def->own && !dealt;
    return open_with(parent->dataset->inputs[which], handed ? parent->share : NULL,
                     parent->below || def->shares_rows, epoch, cancel, ret);
}

void tutti__iterator_close(tutti_iterator *iterator)
{
    if (!iterator)
        return;
    tutti_dataset *dataset = iterator->dataset;
    if (!iterator->access && iterator->state && iterator->inputs && dataset->def->close)
        dataset->def->close(iterator);
    for (int i = 0; iterator->inputs && i < dataset->input_count; i++)
        tutti__iterator_close(iterator->inputs[i]);
    tutti__access_close(iterator->access);
    free(iterator->inputs);
    free(iterator->state);
    free(iterator);
}

tutti_status tutti__iterator_check(const tutti_iterator *iterator)
{
    if (iterator->cancel && atomic_load(iterator->cancel))
        return tutti_fail(TUTTI_CANCELLED, "%s was closed", iterator->dataset->def->name);
    return TUTTI_OK;
}

static tutti_status keep_error(tutti_iterator *iterator, tutti_status status)
{
    if (status != TUTTI_OK)
        tutti__error_capture(status, &iterator->error);
    return status;
}

/* How many of `count` are left; for random access. */
static int64_t left(const tutti_iterator *iterator, int64_t count)
{
    int64_t cardinality = iterator->dataset->info.cardinality;
    if (cardinality < 0 || cardinality - iterator->delivered > count)
        return count;
    return cardinality - iterator->delivered;
}

tutti_status tutti__iterator_next(tutti_iterator *iterator, tutti_element *ret)
{
    tutti_element element = {0};
    tutti_status status = TUTTI_OK;
    if (iterator->error.status != TUTTI_OK)
        return tutti__error_restore(&iterator->error);
    TUTTI_TRY(tutti__iterator_check(iterator));
    if (iterator->first.count > 0) {
        *ret = iterator->first;
        iterator->first = (tutti_element){0};
        iterator->delivered++;
        return TUTTI_OK;
    }
    if (iterator->access && left(iterator, 1) > 0)
        status = tutti__access_at(iterator->access, iterator->epoch, iterator->delivered, &element);
    else if (!iterator->access && !iterator->ended)
        status = iterator->dataset->def->next(iterator, &element);
    if (status != TUTTI_OK)
        return keep_error(iterator, status);
    if (element.count == 0)
        iterator->ended = true;
    else
        iterator->delivered++;
    *ret = element;
    return TUTTI_OK;
}

/* For those that cannot skip by themselves. */
static tutti_status skip_by_reading(tutti_iterator *iterator, int64_t count, int64_t *ret_skipped)
{
    int64_t done = 0;
    for (; done < count; done++) {
        tutti_element element = {0};
        TUTTI_TRY(tutti__iterator_check(iterator));
        TUTTI_TRY(iterator->dataset->def->next(iterator, &element));
        if (element.count == 0)
            break;
        iterator->delivered++;
        tutti_element_release(&element);
    }
    *ret_skipped = done;
    return TUTTI_OK;
}

tutti_status tutti__iterator_skip(tutti_iterator *iterator, int64_t count, int64_t *ret_skipped)
{
    int64_t skipped = 0;
    tutti_status status = TUTTI_OK;
    if (iterator->error.status != TUTTI_OK)
        return tutti__error_restore(&iterator->error);
    if (iterator->first.count > 0 && count > 0) {
        tutti_element_release(&iterator->first);
        iterator->delivered++;
        TUTTI_TRY(tutti__iterator_skip(iterator, count - 1, &skipped));
        *ret_skipped = skipped + 1;
        return TUTTI_OK;
    }
    if (iterator->access) {
        skipped = left(iterator, count);
        iterator->delivered += skipped;
    } else if (!iterator->ended && iterator->dataset->def->skip) {
        status = iterator->dataset->def->skip(iterator, count, &skipped);
        iterator->delivered += status == TUTTI_OK ? skipped : 0;
    } else if (!iterator->ended) {
        status = skip_by_reading(iterator, count, &skipped);
    }
    if (status != TUTTI_OK)
        return keep_error(iterator, status);
    iterator->ended = iterator->ended || skipped < count;
    *ret_skipped = skipped;
    return TUTTI_OK;
}

/* ---- the user's ---- */

tutti_iterator *tutti__iterate(tutti_dataset *dataset, uint64_t epoch)
{
    tutti_iterator *iterator;
    if (!dataset || !tutti__job_able(dataset->job))
        return NULL;
    if (dataset->peeked && epoch == 0) {
        iterator = dataset->peeked;
        dataset->peeked = NULL;
        return iterator;
    }
    tutti_status status = tutti__iterator_open(dataset, epoch, NULL, &iterator);
    if (status != TUTTI_OK) {
        tutti_job_fail(dataset->job, status);
        return NULL;
    }
    iterator->next_open = dataset->open_iterators;
    iterator->open_place = &dataset->open_iterators;
    if (iterator->next_open)
        iterator->next_open->open_place = &iterator->next_open;
    dataset->open_iterators = iterator;
    return iterator;
}

void tutti_iterator_close(tutti_iterator *iterator)
{
    if (!iterator)
        return;
    if (iterator->dataset->loop == iterator)
        iterator->dataset->loop = NULL;
    if (iterator->dataset->own == iterator) {
        tutti_iterator_save(iterator, &iterator->dataset->own_position);
        iterator->dataset->own = NULL;
    }
    if (iterator->dataset->each == iterator)
        iterator->dataset->each = NULL;
    if (iterator->dataset->peeked == iterator)
        iterator->dataset->peeked = NULL;
    tutti_element_release(&iterator->first);
    *iterator->open_place = iterator->next_open;
    if (iterator->next_open)
        iterator->next_open->open_place = iterator->open_place;
    tutti__iterator_close(iterator);
}

tutti_status tutti_next_element(tutti_iterator *iterator, tutti_element *ret_element)
{
    if (!iterator)
        return tutti_fail(TUTTI_INVALID, "there is no iterator: tutti_iterate failed");
    int64_t begin = tutti__now_ns();
    tutti_status status = tutti__iterator_next(iterator, ret_element);
    iterator->waited_ns += tutti__now_ns() - begin;
    if (status == TUTTI_OK && tutti__share_apart(iterator->share))
        status = tutti__share_meet(iterator, ret_element);
    if (status != TUTTI_OK)
        tutti_job_fail(iterator->dataset->job, status);
    return status;
}

tutti_status tutti_iterator_skip(tutti_iterator *iterator, int64_t count)
{
    int64_t skipped;
    if (!iterator || count < 0)
        return tutti_fail(TUTTI_INVALID,
                          "skip: needs an iterator and a count that is not negative");
    tutti_status status = tutti__iterator_skip(iterator, count, &skipped);
    if (status != TUTTI_OK)
        tutti_job_fail(iterator->dataset->job, status);
    return status;
}

int64_t tutti_iterator_waited_ns(const tutti_iterator *iterator)
{
    return iterator ? iterator->waited_ns : 0;
}

void tutti_iterator_save(const tutti_iterator *iterator, tutti_position *ret_position)
{
    *ret_position = (tutti_position){0};
    if (iterator)
        *ret_position = (tutti_position){.epoch = iterator->epoch,
                                         .delivered = iterator->delivered,
                                         .pipeline = iterator->dataset->hash,
                                         .apart = tutti__share_apart(iterator->share)};
}

tutti_iterator *tutti_iterate_from(tutti_dataset *dataset, const tutti_position *position)
{
    int64_t skipped = 0;
    if (!dataset || !tutti__job_able(dataset->job))
        return NULL;
    if (position->delivered < 0 || position->pipeline != dataset->hash) {
        tutti_job_fail(
            dataset->job,
            tutti_fail(TUTTI_INVALID,
                       "the saved data position belongs to another pipeline than %s%s%s: make "
                       "the dataset as it was made then, with the same seed",
                       dataset->def->name, dataset->place[0] ? " at " : "", dataset->place));
        return NULL;
    }
    tutti_iterator *iterator = tutti__iterate(dataset, position->epoch);
    if (!iterator)
        return NULL;
    tutti_status status = tutti__iterator_skip(iterator, position->delivered, &skipped);
    if (tutti__share_apart(iterator->share))
        iterator->delivered = position->delivered; /* others had more: it waited for them */
    else if (status == TUTTI_OK && skipped < position->delivered && !position->apart)
        status = tutti_fail(TUTTI_INVALID,
                            "the saved data position stands behind %lld elements of %s, which now "
                            "has %lld: is the data the same?",
                            (long long)position->delivered, dataset->def->name, (long long)skipped);
    if (status == TUTTI_OK)
        return iterator;
    tutti_job_fail(dataset->job, status);
    tutti_iterator_close(iterator);
    return NULL;
}
