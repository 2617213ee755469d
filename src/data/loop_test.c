/* loop_test.c: where loops stand that read datasets by tutti_iterate, and what they go on with. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/job.h"
#include "base/test.h"
#include "data/dataset.h"

static tutti_dataset *shuffled(tutti_job *job)
{
    return tutti_shuffle(tutti_range_dataset(job, 0, 20, 1), 0);
}

/* Reads up to `count` elements; the last value, -1 at the end. */
static int64_t read_some(tutti_iterator *iterator, int count)
{
    tutti_element element = {0};
    int64_t value = -1;
    for (int i = 0; i < count; i++) {
        CHECK_OK(tutti_next_element(iterator, &element));
        value = element.count ? tutti_tensor_get_int(element.tensors[0], 0) : -1;
        tutti_element_release(&element);
    }
    return value;
}

/* What is saved after the iterators of the epochs 0 … epochs - 1 were read and closed, and `count`
 * elements of the next one; from malloc. `ret_next`: what comes then. */
static char *saved_after(int epochs, int count, int64_t *ret_next)
{
    char *text;
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_dataset *data = shuffled(job);
    for (int e = 0; e < epochs; e++) {
        tutti_iterator *whole = tutti_iterate(data, (uint64_t)e);
        CHECK_INT(read_some(whole, 21), -1);
        tutti_iterator_close(whole);
    }
    tutti_iterator *iterator = count > 0 ? tutti_iterate(data, (uint64_t)epochs) : NULL;
    read_some(iterator, count);
    CHECK_OK(tutti__loops_save(job, &text));
    *ret_next = iterator ? read_some(iterator, 1) : -2;
    CHECK_INT(tutti_close(job), 0);
    return text;
}

TUTTI_TEST(an_iterator_of_the_epoch_that_was_cut_off_goes_on)
{
    int64_t next, first;
    char *text = saved_after(2, 7, &next);
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_dataset *data = shuffled(job);
    CHECK_OK(tutti__loops_restore(job, text));
    CHECK_INT(read_some(tutti_iterate(data, 2), 1), next);
    first = read_some(tutti_iterate(data, 2), 1); /* it went on once */
    CHECK(first != next);
    CHECK_INT(tutti_close(job), 0);
    free(text);
}

TUTTI_TEST(an_iterator_that_is_open_already_goes_on)
{
    int64_t next;
    char *text = saved_after(0, 7, &next);
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_iterator *open = tutti_iterate(shuffled(job), 0);
    CHECK_OK(tutti__loops_restore(job, text));
    CHECK_INT(read_some(open, 1), next);
    CHECK_INT(tutti_close(job), 0);
    free(text);
    text = saved_after(2, 7, &next);
    job = tutti_open(NULL, NULL);
    CHECK(tutti_iterate(shuffled(job), 0) != NULL);
    CHECK_STATUS(tutti__loops_restore(job, text), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "make it after tutti_progress_open");
    tutti__job_discard(job);
    free(text);
}

/* Restored, a program that counts epochs from 0 would go through them again. */
TUTTI_TEST(an_epoch_that_the_checkpoint_has_behind_it_is_refused)
{
    const struct {
        int epochs, count, asked;
        bool refused;
    } cases[] = {{2, 7, 0, true}, {2, 7, 1, true},  {2, 7, 2, false}, {2, 7, 3, false},
                 {1, 0, 0, true}, {1, 0, 1, false}, {3, 0, 2, true},  {3, 0, 3, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t next;
        char *text = saved_after(cases[i].epochs, cases[i].count, &next);
        tutti_job *job = tutti_open(NULL, NULL);
        tutti_dataset *data = shuffled(job);
        CHECK_OK(tutti__loops_restore(job, text));
        CHECK((tutti_iterate(data, (uint64_t)cases[i].asked) == NULL) == cases[i].refused);
        CHECK((tutti_job_check(job) == TUTTI_INVALID) == cases[i].refused);
        if (cases[i].refused)
            CHECK_CONTAINS(
                tutti_error_message(),
                "give tutti_iterate the epoch of the loop, tutti_progress_current_epoch");
        tutti__job_discard(job);
        free(text);
    }
}

/* Data to evaluate on is read as the same epoch each time. */
TUTTI_TEST(rounds_that_are_alike_may_be_gone_through_again)
{
    for (int order = 0; order < 2; order++) {
        char *text;
        int64_t first = 0;
        for (int run = 0; run < 2; run++) {
            tutti_job *job = tutti_open(NULL, NULL);
            tutti_dataset *data = order ? shuffled(job) : tutti_range_dataset(job, 0, 9, 1);
            if (run == 1)
                CHECK_OK(tutti__loops_restore(job, text));
            for (int round = 0; round < 2 - order * run; round++) {
                tutti_iterator *iterator = tutti_iterate(data, 0);
                int64_t value = read_some(iterator, 3);
                CHECK(run == 0 || value == first);
                first = value;
                tutti_iterator_close(iterator);
            }
            if (run == 0)
                CHECK_OK(tutti__loops_save(job, &text));
            CHECK_INT(tutti_close(job), 0);
        }
        free(text);
    }
}

TUTTI_TEST(of_several_open_iterators_it_cannot_be_told_how_far_they_were)
{
    char *text;
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_dataset *data = shuffled(job);
    read_some(tutti_iterate(data, 0), 3);
    read_some(tutti_iterate(data, 1), 4);
    CHECK_OK(tutti__loops_save(job, &text));
    CHECK_INT(tutti_close(job), 0);
    job = tutti_open(NULL, NULL);
    shuffled(job);
    CHECK_STATUS(tutti__loops_restore(job, text), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "several iterators of shuffle");
    tutti__job_discard(job);
    free(text);
}
