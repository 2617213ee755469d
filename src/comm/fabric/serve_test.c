/* serve_test.c: what one rank reads of another that does something else; sums and gathers whose
 * blocks lie apart. */
#include "comm/fabric/serve.h"

#include <stdlib.h>
#include <string.h>

#include "base/world.h"
#include "comm/group/testing.h"

static const char *const engines[] = {"local", "shm", "tcp"};

enum { LARGE = (16 << 20) + 4711 };

typedef struct shelf {
    int rank;
    uint64_t stamp;
} shelf;

static char byte_of(int rank, int64_t at)
{
    return (char)(rank * 31 + at % 127);
}

static int give(void *context, const tutti_wanted *wanted, void *to)
{
    const shelf *s = context;
    if (wanted->what[0] != 7 || wanted->what[1] != 8)
        return TUTTI_FETCH_NONE;
    if (wanted->stamp != s->stamp)
        return TUTTI_FETCH_STALE;
    for (int64_t i = 0; i < wanted->bytes; i++)
        ((char *)to)[i] = byte_of(s->rank, wanted->offset + i);
    return TUTTI_FETCH_ALL;
}

static tutti_status fetch(tutti_comm *comm, int from, int64_t offset, int64_t bytes)
{
    tutti_fetch_answer given;
    tutti_wanted wanted = {.what = {7, 8}, .stamp = 5, .offset = offset, .bytes = bytes};
    char *to = calloc(1, (size_t)bytes + 1);
    tutti_status status = tutti__comm_fetch(comm, from, &wanted, to, &given);
    bool good = status == TUTTI_OK && given == TUTTI_FETCH_ALL;
    for (int64_t i = 0; good && i < bytes; i++)
        good = to[i] == byte_of(from, offset + i);
    free(to);
    TUTTI_TRY(status);
    EXPECT(good);
    return TUTTI_OK;
}

/* The last rank asks while the others wait for it in a collective, then all ask each other. */
static tutti_status ask(tutti_comm *comm, void *context)
{
    int rank = tutti_comm_rank(comm), size = tutti_comm_size(comm);
    shelf mine = {rank, 5};
    tutti_fetch_answer given;
    char byte;
    (void)context;
    tutti__comm_serve(comm, &(tutti_server){give, &mine});
    TUTTI_TRY(tutti_comm_barrier(comm, NULL));
    for (int r = 0; rank == size - 1 && r < rank; r++) {
        TUTTI_TRY(fetch(comm, r, 0, 1));
        TUTTI_TRY(fetch(comm, r, 1001, 100000));
        tutti_wanted late = {.what = {7, 8}, .stamp = 6, .bytes = 1};
        tutti_wanted none = {.what = {7, 9}, .stamp = 5, .bytes = 1};
        TUTTI_TRY(tutti__comm_fetch(comm, r, &late, &byte, &given));
        EXPECT(given == TUTTI_FETCH_STALE);
        TUTTI_TRY(tutti__comm_fetch(comm, r, &none, &byte, &given));
        EXPECT(given == TUTTI_FETCH_NONE);
    }
    TUTTI_TRY(tutti_comm_barrier(comm, NULL));
    for (int r = 0; r < size; r++)
        if (r != rank)
            TUTTI_TRY(fetch(comm, r, 5, rank == 0 && size == 2 ? LARGE : 3000));
    TUTTI_TRY(tutti_comm_barrier(comm, NULL));
    tutti__comm_serve(comm, &(tutti_server){0});
    return tutti_comm_barrier(comm, NULL);
}

TUTTI_TEST(comm_a_rank_is_asked_while_it_waits_for_others)
{
    for (size_t e = 0; e < TUTTI_COUNT(engines); e++)
        for (int size = 2; size <= 4; size++)
            tutti__test_ranks(size, TUTTI_COMM_OPTIONS(.engine = engines[e], .timeout = 60), ask,
                              NULL);
}

/* Who does not answer at all is named when the time is over, and the group lives on. */
static tutti_status ask_in_vain(tutti_comm *comm, void *context)
{
    char byte;
    tutti_fetch_answer given;
    (void)context;
    tutti_wanted wanted = {.what = {7, 8}, .bytes = 1};
    if (tutti_comm_rank(comm) == 0) {
        EXPECT(tutti__comm_fetch(comm, 1, &wanted, &byte, &given) == TUTTI_DEADLINE);
        EXPECT(strstr(tutti_error_message(), "rank 1") != NULL);
    } else {
        const tutti_world *world = tutti__world();
        world->sleep_ns(world->self, 700000000); /* computes */
    }
    return tutti_comm_barrier(comm, TUTTI_CALL(.timeout = 60));
}

TUTTI_TEST(comm_a_rank_that_does_not_answer_is_named)
{
    tutti__test_ranks(2, TUTTI_COMM_OPTIONS(.engine = "tcp", .timeout = 0.3), ask_in_vain, NULL);
}

typedef struct message {
    int64_t block, common;
    bool arena; /* where all reach it */
} message;

typedef struct blocks {
    float *out;
    int64_t starts[16];
} blocks;

static void place(void *context, int rank, size_t offset, const void *bytes, size_t size)
{
    const blocks *b = context;
    memcpy((char *)(b->out + b->starts[rank]) + offset, bytes, size);
}

/* Each sums its block, doubles it, and all get all of it, in memory of their own. */
static tutti_status sum_and_gather(tutti_comm *comm, void *context)
{
    const message *m = context;
    int rank = tutti_comm_rank(comm), size = tutti_comm_size(comm);
    int64_t all = m->block * size, left = 3; /* the last block is longer */
    void *memory = NULL;
    float *common = calloc((size_t)m->common + 1, sizeof *common);
    float *out = calloc((size_t)(all + left), sizeof *out);
    if (m->arena)
        TUTTI_TRY(tutti_comm_allocate(comm, (all + left) * 4, &memory));
    float *data = m->arena ? memory : calloc((size_t)(all + left), sizeof *data);
    for (int round = 0; round < 3; round++) {
        int64_t counts[16];
        blocks b = {.out = out};
        for (int64_t i = 0; i < all + left; i++)
            data[i] = (float)tutti__test_value(rank, i + round);
        for (int64_t i = 0; i < m->common; i++)
            common[i] = (float)tutti__test_value(rank, 3 * i + round);
        TUTTI_TRY(
            tutti__reduce_scatter_common(comm, data, m->block, TUTTI_F32, common, m->common, NULL));
        for (int r = 0; r < size; r++) {
            counts[r] = m->block + (r + 1 == size ? left : 0);
            b.starts[r] = r * m->block;
        }
        for (int64_t i = b.starts[rank]; i < b.starts[rank] + counts[rank]; i++)
            out[i] = data[i] *= 2;
        TUTTI_TRY(tutti__all_gather_into(comm, data + b.starts[rank], counts, data, TUTTI_F32,
                                         &(tutti_comm_into){place, &b}, NULL));
        for (int64_t i = 0; i < all; i++) {
            float sum = 0;
            for (int r = 0; r < size; r++)
                sum += (float)tutti__test_value(r, i + round);
            EXPECT(out[i] == 2 * sum);
        }
        for (int64_t i = all; i < all + left; i++)
            EXPECT(out[i] == 2 * (float)tutti__test_value(size - 1, i + round));
        for (int64_t i = 0; i < m->common; i++) {
            float sum = 0;
            for (int r = 0; r < size; r++)
                sum += (float)tutti__test_value(r, 3 * i + round);
            EXPECT(common[i] == sum);
        }
    }
    if (m->arena)
        tutti_comm_free(comm, memory);
    else
        free(data);
    free(common);
    free(out);
    return TUTTI_OK;
}

TUTTI_TEST(comm_sums_in_blocks_and_gathers_what_became_of_them)
{
    static const message messages[] = {
        {0, 2, true}, {16, 5, false}, {5000, 3, true}, {20000, 2000, true}, {70000, 1, false}};
    static const int sizes[] = {1, 2, 3, 9};
    for (size_t e = 0; e < TUTTI_COUNT(engines); e++)
        for (size_t s = 0; s < TUTTI_COUNT(sizes); s++)
            for (size_t i = 0; i < (sizes[s] > 4 ? 4 : TUTTI_COUNT(messages)); i++)
                tutti__test_ranks(sizes[s], TUTTI_COMM_OPTIONS(.engine = engines[e], .timeout = 60),
                                  sum_and_gather, (void *)(uintptr_t)&messages[i]);
}
