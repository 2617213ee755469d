/* loop.c: batches for hand-written loops. */
#include "data/dataset.h"

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
    tutti_iterator_close(dataset->loop);
    dataset->loop = tutti_iterate(dataset, epoch);
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
    each.iterator = tutti_iterate(dataset, dataset->epochs_begun++);
    each.over = !each.iterator;
    return each;
}

bool tutti_each_next(tutti_each *each, tutti_tensor **ret_x, tutti_tensor **ret_y)
{
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
    tutti_element_release(&each->element);
    tutti_iterator_close(each->iterator);
    *each = (tutti_each){.over = true};
}
