/* async_test.c: calls that go on beside the program, from any thread; schedules that are compared;
 * labels. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/denormals.h"
#include "base/world.h"
#include "comm/group/testing.h"

static void rest(double seconds)
{
    tutti__world()->sleep_ns(tutti__world()->self, (int64_t)(seconds * 1e9));
}

enum { BUCKETS = 6, COUNT = 50000 };

/* Buckets of one arena buffer, started in order while the rank does other things; nobody waits
 * until all are done. */
static tutti_status beside_the_program(tutti_comm *comm, void *context)
{
    (void)context;
    float *arena;
    tutti_request *requests[BUCKETS];
    int rank = tutti_comm_rank(comm), size = tutti_comm_size(comm);
    TUTTI_TRY(tutti_comm_allocate(comm, BUCKETS * COUNT * 4, (void **)&arena));
    for (int b = 0; b < BUCKETS; b++) {
        char label[32];
        snprintf(label, sizeof label, "bucket %d", b);
        for (int i = 0; i < COUNT; i++)
            arena[b * COUNT + i] = (float)(rank + b);
        TUTTI_TRY(tutti_comm_all_reduce(comm, arena + b * COUNT, arena + b * COUNT, COUNT,
                                        TUTTI_F32, TUTTI_SUM,
                                        TUTTI_CALL(.request = &requests[b], .label = label)));
        memset(label, 'x', sizeof label - 1); /* it was copied */
    }
    for (int tries = 0; tries < 20000 && !tutti_comm_test(requests[BUCKETS - 1]); tries++)
        rest(0.001);
    for (int b = 0; b < BUCKETS; b++)
        EXPECT(tutti_comm_test(requests[b])); /* without a wait of ours */
    for (int b = 0; b < BUCKETS; b++)
        TUTTI_TRY(tutti_comm_wait(requests[b]));
    for (int i = 0; i < BUCKETS * COUNT; i++) {
        int sum = size * (size - 1) / 2 + size * (i / COUNT);
        EXPECT(arena[i] == (float)sum);
    }
    tutti_comm_free(comm, arena);
    return TUTTI_OK;
}

TUTTI_TEST(comm_asynchronous_calls_go_on_without_their_caller)
{
    tutti__test_engines(3, beside_the_program, NULL);
}

typedef struct errand {
    tutti_comm *comm;
    tutti_request *request;
    float *data;
    tutti_status status;
    double seconds;
} errand;

static void *start_elsewhere(void *arg)
{
    errand *h = arg;
    h->status = tutti_comm_all_reduce(h->comm, h->data, h->data, 1000, TUTTI_F32, TUTTI_SUM,
                                      TUTTI_CALL(.request = &h->request));
    return NULL;
}

static void *wait_elsewhere(void *arg)
{
    errand *h = arg;
    h->status = tutti_comm_wait_for(h->request, h->seconds);
    return NULL;
}

static tutti_status on_a_thread(void *(*work)(void *), errand *h)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, work, h) != 0)
        return tutti_fail(TUTTI_NO_MEMORY, "no thread");
    pthread_join(thread, NULL);
    return h->status;
}

/* Started by one thread, waited for by another, neither of them the group's maker. */
static tutti_status other_threads(tutti_comm *comm, void *context)
{
    (void)context;
    float data[1000];
    errand h = {.comm = comm, .data = data, .seconds = 30};
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < 1000; i++)
            data[i] = 1;
        TUTTI_TRY(on_a_thread(start_elsewhere, &h));
        TUTTI_TRY(on_a_thread(wait_elsewhere, &h));
        EXPECT(data[0] == (float)tutti_comm_size(comm) && data[999] == data[0]);
    }
    return TUTTI_OK;
}

TUTTI_TEST(comm_asynchronous_calls_from_any_thread)
{
    tutti__test_engines(2, other_threads, NULL);
}

/* A wait of some milliseconds ends; the call goes on. */
static tutti_status impatient(tutti_comm *comm, void *context)
{
    (void)context;
    float one = 1;
    tutti_request *request;
    if (tutti_comm_rank(comm) == 1)
        rest(0.3);
    TUTTI_TRY(tutti_comm_all_reduce(comm, &one, &one, 1, TUTTI_F32, TUTTI_SUM,
                                    TUTTI_CALL(.request = &request)));
    if (tutti_comm_rank(comm) == 0) {
        EXPECT(tutti_comm_wait_for(request, 0.02) == TUTTI_DEADLINE);
        EXPECT(strstr(tutti_error_message(), "not done") != NULL);
    }
    TUTTI_TRY(tutti_comm_wait_for(request, 30));
    EXPECT(one == 2);
    return TUTTI_OK;
}

/* The request's own deadline passes while one waits for it in short turns: whoever goes on as long
 * as he is told to comes to an end, and frees nothing twice. */
static tutti_status end_in_short_turns(tutti_comm *comm, void *context)
{
    bool message = *(const bool *)context;
    int x = 1, turns = 0;
    tutti_request *request;
    tutti_status status;
    if (tutti_comm_rank(comm) == 1) {
        rest(0.4);
        return TUTTI_OK;
    }
    const tutti_comm_call *call = TUTTI_CALL(.request = &request, .timeout = 0.1, .label = "halo");
    TUTTI_TRY(message ? tutti_comm_recv(comm, 1, 3, &x, sizeof x, call)
                      : tutti_comm_all_reduce(comm, &x, &x, 1, TUTTI_I32, TUTTI_SUM, call));
    while ((status = tutti_comm_wait_for(request, 0.03)) == TUTTI_DEADLINE && turns < 100)
        turns++;
    EXPECT(status == TUTTI_CANCELLED && turns > 0 && turns < 100);
    EXPECT(strstr(tutti_error_message(), message ? "recv halo, tag 3: waited too long for rank 1"
                                                 : "all_reduce halo number 1") != NULL);
    if (message) { /* and by the plain wait, which says what it was */
        TUTTI_TRY(tutti_comm_recv(comm, 1, 3, &x, sizeof x, call));
        EXPECT(tutti_comm_wait(request) == TUTTI_DEADLINE);
    }
    return TUTTI_OK;
}

TUTTI_TEST(comm_a_wait_of_a_call_whose_own_deadline_passes_ends_the_request)
{
    for (int e = 0; e < TUTTI_TEST_ENGINES; e++)
        for (int message = 0; message < 2; message++)
            tutti__test_ranks(
                2, TUTTI_COMM_OPTIONS(.engine = tutti__test_engine_names[e], .timeout = 60),
                end_in_short_turns, &(bool){message});
}

enum { LARGE = 8 << 20 };

/* Rank 0 sends and closes the group without a wait. */
static tutti_status send_and_leave(tutti_comm *comm, void *context)
{
    (void)context;
    static char large[LARGE];
    char *own = tutti_comm_rank(comm) == 0 ? large : malloc(LARGE);
    tutti_comm *part;
    tutti_request *request;
    tutti_status status = TUTTI_OK;
    EXPECT(own != NULL);
    TUTTI_TRY(tutti_comm_split(comm, 0, 0, &part));
    if (tutti_comm_rank(comm) == 0) {
        memset(large, 7, LARGE);
        TUTTI_TRY(tutti_comm_send(part, 1, 3, large, LARGE, TUTTI_CALL(.request = &request)));
        TUTTI_TRY(tutti_comm_close(part));
        memset(large, 0, LARGE); /* it is the caller's again */
    } else {
        rest(0.1);
        status = tutti_comm_recv(part, 0, 3, own, LARGE, TUTTI_CALL(.timeout = 20));
        EXPECT(status != TUTTI_OK || (own[0] == 7 && own[LARGE - 1] == 7));
        free(own);
        TUTTI_TRY(tutti_comm_close(part));
    }
    return status;
}

TUTTI_TEST(comm_sends_that_nobody_waits_for_are_done_before_the_group_closes)
{
    tutti__test_engines(2, send_and_leave, NULL);
}

TUTTI_TEST(comm_a_wait_may_have_a_deadline_of_its_own)
{
    tutti__test_engines(2, impatient, NULL);
}

static tutti_status many_beside(tutti_comm *comm, void *context)
{
    (void)context;
    enum { TENSORS = 50 };
    float data[TENSORS][7], more = 1;
    tutti_comm_piece pieces[TENSORS];
    tutti_request *requests[2];
    for (int i = 0; i < TENSORS; i++) {
        pieces[i] = (tutti_comm_piece){data[i], 7};
        for (int j = 0; j < 7; j++)
            data[i][j] = (float)(i + j);
    }
    TUTTI_TRY(tutti_comm_all_reduce_many(
        comm, pieces, TENSORS, TUTTI_F32, TUTTI_SUM, TUTTI_BUCKET(.bucket_bytes = 300),
        TUTTI_CALL(.request = &requests[0], .label = "gradients")));
    memset(pieces, 0, sizeof pieces); /* the list was copied */
    TUTTI_TRY(tutti_comm_all_reduce(comm, &more, &more, 1, TUTTI_F32, TUTTI_SUM,
                                    TUTTI_CALL(.request = &requests[1])));
    TUTTI_TRY(tutti_comm_wait(requests[1]));
    EXPECT(tutti_comm_test(requests[0]) && more == 3);
    TUTTI_TRY(tutti_comm_wait(requests[0]));
    for (int i = 0; i < TENSORS; i++)
        for (int j = 0; j < 7; j++)
            EXPECT(data[i][j] == (float)(3 * (i + j)));
    return TUTTI_OK;
}

TUTTI_TEST(comm_many_tensors_at_once_beside_the_program)
{
    tutti__test_engines(3, many_beside, NULL);
}

/* A failure behind the caller's back is what the wait returns, with the label. */
static tutti_status fails_late(tutti_comm *comm, void *context)
{
    (void)context;
    float one = 1;
    tutti_request *request;
    if (tutti_comm_rank(comm) == 1)
        return TUTTI_OK; /* does not come */
    TUTTI_TRY(tutti_comm_all_reduce(
        comm, &one, &one, 1, TUTTI_F32, TUTTI_SUM,
        TUTTI_CALL(.request = &request, .timeout = 0.2, .label = "dense/kernel")));
    EXPECT(tutti_comm_wait(request) != TUTTI_OK);
    EXPECT(strstr(tutti_error_message(), "all_reduce dense/kernel number") != NULL);
    return TUTTI_OK;
}

TUTTI_TEST(comm_failures_carry_the_callers_label)
{
    tutti__test_ranks(2, TUTTI_COMM_OPTIONS(.engine = "local"), fails_late, NULL);
}

typedef struct schedule {
    int other;          /* a rank whose schedule differs; -1: none */
    int64_t at;         /* in which operation */
    int64_t length;     /* of its list */
    uint64_t hash;      /* its own */
    const char *expect; /* in everybody's message */
} schedule;

static tutti_status compare_schedules(tutti_comm *comm, void *context)
{
    const schedule *s = context;
    enum { MOST = 40 };
    char texts[MOST][48];
    const char *operations[MOST];
    bool differs = tutti_comm_rank(comm) == s->other;
    for (int i = 0; i < MOST; i++) {
        snprintf(texts[i], sizeof texts[i], "all_reduce %s%d [100]",
                 differs && i == s->at ? "bias" : "kernel", i);
        operations[i] = texts[i];
    }
    tutti_status status =
        tutti_comm_agree(comm, "communication schedule", operations, differs ? s->length : MOST,
                         differs ? s->hash : 77, NULL);
    if (s->expect) {
        EXPECT(status == TUTTI_INVALID);
        if (!strstr(tutti_error_message(), s->expect))
            return tutti__error_prefix(TUTTI_CHECK_FAILED, "expected '%s'", s->expect);
    } else {
        TUTTI_TRY(status);
    }
    float one = 1; /* the group is whole */
    TUTTI_TRY(tutti_comm_all_reduce(comm, &one, &one, 1, TUTTI_F32, TUTTI_SUM, NULL));
    EXPECT(one == (float)tutti_comm_size(comm));
    return TUTTI_OK;
}

TUTTI_TEST(comm_schedules_are_compared_to_the_first_operation_that_differs)
{
    schedule all[] = {
        {-1, 0, 40, 77, NULL},
        {2, 17, 40, 77,
         "rank 2 has another communication schedule than rank 0: operation 18 is 'all_reduce "
         "bias17 [100]' there and 'all_reduce kernel17 [100]' on rank 0"},
        {1, 0, 40, 77, "operation 1 is 'all_reduce bias0 [100]' there"},
        {3, -1, 39, 77,
         "rank 3 has another communication schedule than rank 0: operation 40 is "
         "nothing more there"},
        {0, 39, 40, 77, "operation 40 is 'all_reduce kernel39 [100]' there and 'all_reduce bias39"},
        {1, -1, 40, 78, "though its 40 operations have the same names"},
    };
    for (size_t i = 0; i < TUTTI_COUNT(all); i++)
        tutti__test_ranks(4, TUTTI_COMM_OPTIONS(.engine = i % 2 ? "tcp" : "local"),
                          compare_schedules, &all[i]);
}

/* Whether a rank waits at once, and runs the call itself, or its worker has run it before. */
static tutti_status with_tiny_numbers(tutti_comm *comm, void *context)
{
    (void)context;
    for (int zero = 0; zero < 2; zero++) {
        float value = 0x1p-130f, expected = zero ? 0 : 0x1p-129f;
        tutti_request *request;
        uint64_t before = zero ? tutti__denormals_to_zero() : tutti__denormals_get();
        tutti_status status =
            tutti_comm_all_reduce(comm, &value, &value, 1, TUTTI_F32, TUTTI_SUM,
                                  TUTTI_CALL(.request = &request, .algorithm = "doubling"));
        tutti__denormals_set(before);
        TUTTI_TRY(status);
        if (tutti_comm_rank(comm) == 1)
            rest(0.05);
        TUTTI_TRY(tutti_comm_wait(request));
        EXPECT(memcmp(&value, &expected, sizeof value) == 0);
    }
    return TUTTI_OK;
}

TUTTI_TEST(comm_asynchronous_calls_compute_as_their_caller_does)
{
    tutti__test_engines(2, with_tiny_numbers, NULL);
}

/* Rank 1 has another text, far behind what a message shows of one. */
static tutti_status agree_on_long_texts(tutti_comm *comm, void *context)
{
    (void)context;
    enum { LENGTH = 1000 };
    for (int at = 0; at < LENGTH; at += 61) {
        char text[LENGTH + 1];
        memset(text, 'x', LENGTH);
        text[LENGTH] = 0;
        text[at] = tutti_comm_rank(comm) == 1 ? 'b' : 'a';
        const char *list[] = {"one", text};
        tutti_status status = tutti_comm_agree(comm, "schedule", list, 2, 7, NULL);
        const char *said = tutti_error_message();
        if (status != TUTTI_INVALID || !strstr(said, "rank 1 has another schedule than rank 0") ||
            !strstr(said, "operation 2 is '") || !strstr(said, "on rank 0; do"))
            return tutti__error_prefix(TUTTI_CHECK_FAILED, "status %d", (int)status);
        const char *there = strstr(said, "operation 2 is '"), *here = strstr(there, " there and '");
        EXPECT(here != NULL && memchr(there + 16, 'b', (size_t)(here - there) - 16) &&
               memchr(here + 12, 'a', strlen(here + 12) - strlen(strstr(here, "on rank 0"))));
    }
    return TUTTI_OK;
}

TUTTI_TEST(comm_agree_shows_long_texts_where_they_differ)
{
    tutti__test_ranks(3, TUTTI_COMM_OPTIONS(.engine = "local"), agree_on_long_texts, NULL);
}
