/* threads_test.c: prefetch and parallel map: errors, early ends, deadlines. */
#include <stdatomic.h>

#include "base/params.h"
#include "base/test.h"
#include "base/world.h"
#include "tutti/dataset.h"

static void nap(int64_t ms)
{
    const tutti_world *world = tutti__world();
    world->sleep_ns(world->self, ms * 1000000);
}

static tutti_status fails_at_seven(void *context, tutti_element *element)
{
    if (tutti_tensor_get_int(element->tensors[0], 0) == 7)
        return tutti_fail(TUTTI_CHECK_FAILED, "seven is bad");
    return TUTTI_OK;
}

/* Elements 0 … 6 come, then the error, which stays. */
static void check_failure(tutti_job *job, tutti_dataset *dataset)
{
    tutti_iterator *iterator = tutti_iterate(dataset, 2);
    for (int i = 0; i < 7; i++) {
        tutti_element element = {0};
        CHECK_OK(tutti_next_element(iterator, &element));
        CHECK_INT(tutti_tensor_get_int(element.tensors[0], 0), i);
        tutti_element_release(&element);
    }
    for (int i = 0; i < 2; i++) {
        tutti_element element = {0};
        CHECK_STATUS(tutti_next_element(iterator, &element), TUTTI_CHECK_FAILED);
        CHECK_CONTAINS(tutti_error_message(), "map (threads_test.c:");
        CHECK_CONTAINS(tutti_error_message(), "element 7 of epoch 2: seven is bad");
    }
    CHECK_STATUS(tutti_job_check(job), TUTTI_CHECK_FAILED);
    CHECK_CONTAINS(tutti_error_message(), "seven is bad");
    CHECK_INT(tutti_close(job), 1);
}

TUTTI_TEST(a_failing_map_names_its_element)
{
    for (int threads = 0; threads < 5; threads += 2)
        for (int ahead = 0; ahead < 2; ahead++) {
            tutti_job *job = tutti_open(NULL, NULL);
            tutti_dataset *dataset =
                tutti_map(tutti_range_dataset(job, 0, 20, 1), fails_at_seven, .parallel = threads);
            check_failure(job, ahead ? tutti_prefetch(dataset, 3) : dataset);
        }
}

static tutti_status leaves_nothing(void *context, tutti_element *element)
{
    tutti_element_release(element);
    return TUTTI_OK;
}

TUTTI_TEST(a_map_must_leave_something)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_element element;
    CHECK_STATUS(
        tutti_dataset_peek(tutti_map(tutti_range_dataset(job, 0, 3, 1), leaves_nothing), &element),
        TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "leaves 0 components");
    tutti_close(job);
}

TUTTI_TEST(a_map_keeps_to_the_types_it_promised)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_element element;
    tutti_dataset *dataset =
        tutti_map(tutti_range_dataset(job, 0, 20, 1), fails_at_seven, .components = 1,
                  .types = {{.dtype = TUTTI_F32}}, .names = {"value"});
    CHECK_STATUS(tutti_dataset_peek(dataset, &element), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "gives i64[] as component 0, .types say f32[]");
    tutti_close(job);
}

typedef struct slow {
    int64_t next;
    atomic_int made;
} slow;

static tutti_status slow_next(void *context, tutti_element *ret)
{
    slow *s = context;
    tutti_tensor *value;
    nap(2);
    TUTTI_TRY(tutti_tensor_create(TUTTI_I64, 0, NULL, &value));
    tutti_tensor_set_int(value, 0, s->next++);
    atomic_fetch_add(&s->made, 1);
    return tutti_element_set(ret, 0, value);
}

static tutti_status slow_reset(void *context, uint64_t epoch)
{
    ((slow *)context)->next = 0;
    return TUTTI_OK;
}

TUTTI_TEST(prefetch_works_ahead_and_closes_early)
{
    slow s = {0};
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_dataset *dataset = tutti_from_generator(
        job, &(tutti_generator){.next = slow_next, .reset = slow_reset, .context = &s});
    tutti_dataset *ahead = tutti_prefetch(tutti_prefetch(dataset, 2), 3);
    for (int round = 0; round < 3; round++) {
        tutti_element element = {0};
        tutti_iterator *iterator = tutti_iterate(ahead, 0);
        CHECK_OK(tutti_next_element(iterator, &element));
        CHECK_INT(tutti_tensor_get_int(element.tensors[0], 0), 0);
        tutti_element_release(&element);
        CHECK(tutti_iterator_waited_ns(iterator) > 1000000);
        if (round == 0) {
            for (int i = 0; i < 1000 && atomic_load(&s.made) < 6; i++)
                nap(2);
            CHECK(atomic_load(&s.made) >= 6); /* 1 taken, 3 and 2 wait */
            int64_t waited = tutti_iterator_waited_ns(iterator);
            CHECK_OK(tutti_next_element(iterator, &element));
            tutti_element_release(&element);
            CHECK(tutti_iterator_waited_ns(iterator) >= waited);
            nap(30);
            CHECK(atomic_load(&s.made) <= 9); /* and no more: the rings are full */
        }
        tutti_iterator_close(iterator);
    }
    CHECK_INT(tutti_close(job), 0);
}

TUTTI_TEST(a_generator_has_one_state)
{
    slow s = {0};
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_dataset *dataset = tutti_from_generator(
        job, &(tutti_generator){.next = slow_next, .reset = slow_reset, .context = &s});
    tutti_iterator *first = tutti_iterate(dataset, 0);
    CHECK(tutti_iterate(dataset, 0) == NULL);
    CHECK_STATUS(tutti_job_check(job), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "an iterator is open already");
    tutti_iterator_close(first);
    tutti_close(job);
    job = tutti_open(NULL, NULL);
    dataset = tutti_from_generator(job, &(tutti_generator){.next = slow_next, .context = &s});
    tutti_iterator_close(tutti_iterate(dataset, 0));
    CHECK(tutti_iterate(dataset, 1) == NULL);
    tutti_job_check(job);
    CHECK_CONTAINS(tutti_error_message(), "no .reset");
    tutti_close(job);
}

static tutti_status stuck(void *context, tutti_element *ret)
{
    nap(1500);
    return TUTTI_OK;
}

TUTTI_TEST(waiting_for_data_has_a_deadline)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_element element;
    tutti_dataset *dataset =
        tutti_from_generator(job, &(tutti_generator){.next = stuck, .components = 1});
    CHECK_OK(tutti__param_set("DATA_DEADLINE", "1"));
    tutti_status status = tutti_dataset_peek(tutti_prefetch(dataset, 2), &element);
    CHECK_OK(tutti__param_set("DATA_DEADLINE", NULL));
    CHECK_STATUS(status, TUTTI_DEADLINE);
    CHECK_CONTAINS(tutti_error_message(), "has not come from generator");
    tutti_close(job);
}

static tutti_status wrong_type(void *context, tutti_element *ret)
{
    tutti_tensor *value;
    TUTTI_TRY(tutti_tensor_create(TUTTI_F32, 0, NULL, &value));
    return tutti_element_set(ret, 0, value);
}

TUTTI_TEST(a_generator_keeps_to_its_types)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_element element;
    tutti_dataset *dataset = tutti_from_generator(
        job,
        &(tutti_generator){.next = wrong_type, .components = 1, .types = {{.dtype = TUTTI_I64}}});
    CHECK_STATUS(tutti_dataset_peek(dataset, &element), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "component 0 is f32[], .types say i64[]");
    tutti_close(job);
}
