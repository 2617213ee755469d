/* trace.c: the traces of a job's processes as one, on the clock of rank 0.
 *
 * Rank 0 asks every other rank for its time, several times; the answer that came back soonest was
 * read in the middle of its way: ahead = theirs - (sent + back) / 2, which is wrong by half of that
 * way at most. Ranks of one machine have one clock, and need no guess. */
#include "program/trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/world.h"
#include "parallel/collectives/axis_group.h"

enum { CLOCK_TAG = 1 << 20, TRACE_TAG, ROUNDS = 32 };

/* What a rank answers. */
typedef struct answer {
    int64_t now;
    uint64_t machine; /* equal where clocks are the same; 0: not known */
} answer;

/* Processes between two starts of a machine have one monotonic clock. */
static uint64_t machine_now(void)
{
    const tutti_world *world = tutti__world();
    tutti_error before;
    void *data;
    size_t size;
    uint64_t number = 0;
    tutti__error_capture(TUTTI_OK, &before);
    if (world->read_file(world->self, "/proc/sys/kernel/random/boot_id", 4096, &data, &size) ==
        TUTTI_OK) {
        number = size > 0 ? tutti__hash_bytes(1, data, size) : 0;
        free(data);
    }
    tutti__error_restore(&before);
    return number;
}

/* Rank 0's side: how far the clock of `rank` is ahead; told to it. */
static tutti_status ask_clock(tutti_comm *world, int rank, uint64_t machine)
{
    int64_t best = INT64_MAX, ahead = 0;
    for (int i = 0; i < ROUNDS; i++) {
        answer theirs;
        int64_t sent = tutti__now_ns();
        TUTTI_TRY(tutti_comm_send(world, rank, CLOCK_TAG, &sent, sizeof sent, NULL));
        TUTTI_TRY(tutti_comm_recv(world, rank, CLOCK_TAG, &theirs, sizeof theirs, NULL));
        int64_t back = tutti__now_ns();
        if (back - sent >= best)
            continue;
        best = back - sent;
        ahead = theirs.machine != 0 && theirs.machine == machine
                    ? 0
                    : theirs.now - (sent + (back - sent) / 2);
    }
    return tutti_comm_send(world, rank, CLOCK_TAG, &ahead, sizeof ahead, NULL);
}

static tutti_status tell_clock(tutti_comm *world, uint64_t machine, int64_t *ret_ahead)
{
    for (int i = 0; i < ROUNDS; i++) {
        int64_t asked;
        TUTTI_TRY(tutti_comm_recv(world, 0, CLOCK_TAG, &asked, sizeof asked, NULL));
        answer mine = {tutti__now_ns(), machine};
        TUTTI_TRY(tutti_comm_send(world, 0, CLOCK_TAG, &mine, sizeof mine, NULL));
    }
    return tutti_comm_recv(world, 0, CLOCK_TAG, ret_ahead, sizeof *ret_ahead, NULL);
}

tutti_status tutti__axis_group_trace_open(tutti_axis_group *axis_group)
{
    int32_t traced = tutti__trace_path()[0] != 0;
    int64_t ahead = 0;
    if (!axis_group->world)
        return TUTTI_OK;
    TUTTI_TRY(
        tutti_comm_all_reduce(axis_group->world, &traced, &traced, 1, TUTTI_I32, TUTTI_MAX, NULL));
    if (!traced)
        return TUTTI_OK;
    int rank = tutti_comm_rank(axis_group->world), size = tutti_comm_size(axis_group->world);
    uint64_t machine = machine_now();
    for (int r = 1; rank == 0 && r < size; r++)
        TUTTI_TRY(ask_clock(axis_group->world, r, machine));
    if (rank > 0)
        TUTTI_TRY(tell_clock(axis_group->world, machine, &ahead));
    tutti__trace_place(rank, ahead);
    axis_group->traced = true;
    return TUTTI_OK;
}

/* The events of rank `from` behind those that are there. */
static tutti_status trace_take(tutti_comm *world, int from, tutti_text *events)
{
    int64_t size;
    TUTTI_TRY(tutti_comm_recv(world, from, TRACE_TAG, &size, sizeof size, NULL));
    char *data = malloc((size_t)size + 1);
    if (!data)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for the trace of rank %d", from);
    tutti_status status =
        size > 0 ? tutti_comm_recv(world, from, TRACE_TAG, data, size, NULL) : TUTTI_OK;
    if (status == TUTTI_OK && size > 0) {
        if (events->size > 0)
            tutti__text_add(events, ",");
        tutti__text_bytes(events, data, (size_t)size);
    }
    free(data);
    return status;
}

static tutti_status give(tutti_comm *world, const tutti_text *events)
{
    int64_t size = events->failed ? 0 : (int64_t)events->size;
    TUTTI_TRY(tutti_comm_send(world, 0, TRACE_TAG, &size, sizeof size, NULL));
    return size > 0 ? tutti_comm_send(world, 0, TRACE_TAG, events->data, size, NULL) : TUTTI_OK;
}

static tutti_status trace_join(tutti_comm *world, tutti_text *events)
{
    if (tutti_comm_rank(world) > 0)
        return give(world, events);
    for (int r = 1; r < tutti_comm_size(world); r++)
        TUTTI_TRY(trace_take(world, r, events));
    return tutti__trace_path()[0] ? tutti__trace_write_events(tutti__trace_path(), events)
                                  : TUTTI_OK;
}

/* What others would have joined is kept by each. */
static void keep_own(int rank)
{
    char path[4096];
    if (!tutti__trace_path()[0])
        return;
    snprintf(path, sizeof path, "%s.rank%d", tutti__trace_path(), rank);
    if (tutti__trace_write(path) != TUTTI_OK)
        tutti__log_job(TUTTI_LOG_WARNING, "TUTTI_TRACE: %s", tutti_error_message());
}

void tutti__axis_group_trace_close(tutti_axis_group *axis_group)
{
    tutti_text events = {0};
    tutti_error before;
    if (!axis_group->traced)
        return;
    axis_group->traced = false;
    tutti__error_capture(TUTTI_OK, &before);
    tutti__trace_events(&events);
    if (trace_join(axis_group->world, &events) != TUTTI_OK) {
        tutti__log_job(TUTTI_LOG_WARNING, "the processes' traces could not be joined: %s",
                       tutti_error_message());
        keep_own(tutti_comm_rank(axis_group->world));
    }
    tutti__text_free(&events);
    tutti__error_restore(&before);
}
