/* measure.c: what a sum between the devices of a process takes, by a few of them. Each size's least
 * counts; they are few, so that a busy machine does not hold up the start. */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "base/world.h"
#include "forecast/forecast.h"

enum { SIZES = TUTTI_COMM_AT_MIB + 2, LARGEST = 1 << 20 }; /* 8 bytes, then the model's */
static const struct {
    int64_t bytes;
    int rounds;
} trials[SIZES] = {{8, 12},      {1 << 12, 8}, {1 << 15, 6}, {1 << 16, 6},
                   {1 << 18, 4}, {1 << 19, 4}, {LARGEST, 4}};

typedef struct side {
    tutti_comm *comm;
    double least[SIZES]; /* seconds */
    tutti_status status;
} side;

static tutti_status sum_up(side *s, float *data)
{
    for (int i = 0; i < SIZES; i++) {
        s->least[i] = INFINITY;
        for (int round = 0; round < trials[i].rounds; round++) {
            int64_t start = tutti__now_ns();
            TUTTI_TRY(tutti_comm_all_reduce(s->comm, data, data, trials[i].bytes / 4, TUTTI_F32,
                                            TUTTI_SUM, NULL));
            s->least[i] = fmin(s->least[i], 1e-9 * (double)(tutti__now_ns() - start));
        }
    }
    return TUTTI_OK;
}

static void *measure_side(void *context)
{
    side *s = context;
    float *data = calloc(1, LARGEST);
    s->status = data ? sum_up(s, data) : tutti_fail(TUTTI_NO_MEMORY, "no memory to measure with");
    if (s->status != TUTTI_OK) /* the others do not wait for this one */
        tutti_comm_abort(s->comm, "a device could not measure its collectives");
    free(data);
    return NULL;
}

/* The least of the first side: phase, then seconds a byte beyond two of them. */
static void read_off(const side *s, tutti_comm_cost *cost)
{
    cost->phase = s->least[0];
    for (int i = 0; i < TUTTI_COMM_SIZES; i++) {
        int at = i + 1 < SIZES ? i + 1 : SIZES - 1;
        double beyond = fmax(s->least[at] - 2 * cost->phase, 0.1 * s->least[at]);
        cost->copy[i] = beyond / (double)trials[at].bytes;
    }
}

static tutti_status measure(tutti_axis_group *axis_group, tutti_comm_cost *cost)
{
    side *sides = calloc((size_t)axis_group->local, sizeof *sides);
    pthread_t *threads = calloc((size_t)axis_group->local, sizeof *threads);
    int started = 0;
    tutti_status status = TUTTI_OK;
    if (!sides || !threads) {
        free(sides);
        free(threads);
        return tutti_fail(TUTTI_NO_MEMORY, "no memory to measure with");
    }
    for (; started < axis_group->local; started++) {
        sides[started].comm = axis_group->inner[started];
        if (pthread_create(&threads[started], NULL, measure_side, &sides[started]) != 0)
            break;
    }
    if (started < axis_group->local)
        tutti_comm_abort(axis_group->inner[started], "no thread to measure with");
    for (int i = 0; i < started; i++) {
        pthread_join(threads[i], NULL);
        status = sides[i].status != TUTTI_OK ? sides[i].status : status;
    }
    if (status == TUTTI_OK && started == axis_group->local)
        read_off(&sides[0], cost);
    else
        status = tutti_fail(TUTTI_NO_MEMORY, "collectives between devices could not be measured");
    free(sides);
    free(threads);
    return status;
}

tutti_status tutti__axis_group_cost(tutti_axis_group *axis_group, tutti_comm_cost *ret)
{
    if (!axis_group->cost) {
        tutti_comm_cost cost;
        tutti_comm_get_cost(axis_group->inner[0], &cost);
        if (axis_group->local <= tutti__cpu_count())
            TUTTI_TRY(measure(axis_group, &cost));
        if (!(axis_group->cost = malloc(sizeof *axis_group->cost)))
            return tutti_fail(TUTTI_NO_MEMORY, "no memory for a cost");
        *axis_group->cost = cost;
    }
    *ret = *axis_group->cost;
    return TUTTI_OK;
}
