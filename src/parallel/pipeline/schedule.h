/* schedule.h: what the devices of a pipeline do, in which order: data that is checked before
 * anything runs.
 *
 * A model is cut into K*v stages, which follow each other; device d has the stages d, d+K, d+2K, …
 * (v of them: its chunks). A batch is cut into M micro-batches. For each stage and micro-batch
 * there is one forward pass F, the gradients of the stage's inputs B, and of its weights W. Most
 * schedules compute B and W together, as B.
 *
 * A schedule is a list of actions for each device. Its own file gives F, B and W;
 * tutti__pipeline_schedule_create puts SEND and RECV between them, where the neighbour stage is on
 * another device.
 *
 * tables: tutti_pipeline_schedule_kind */
#ifndef TUTTI_PARALLEL_PIPELINE_SCHEDULE_H
#define TUTTI_PARALLEL_PIPELINE_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/container.h"
#include "base/status.h"

typedef enum tutti_pipeline_action_kind {
    TUTTI_FORWARD,
    TUTTI_BACKWARD, /* of the inputs; of the weights too, where the schedule has no W */
    TUTTI_WEIGHT,
    TUTTI_SEND, /* beside compute */
    TUTTI_RECV, /* waits until the value is there */
} tutti_pipeline_action_kind;

typedef struct tutti_pipeline_action {
    tutti_pipeline_action_kind kind;
    int stage, micro;
    bool gradient; /* of SEND and RECV: a gradient, on its way back; else activations */
    int peer;      /* of SEND and RECV: the stage that it goes to or comes from */
} tutti_pipeline_action;

typedef struct tutti_pipeline_actions {
    TUTTI_VEC(tutti_pipeline_action) list;
} tutti_pipeline_actions;

enum { TUTTI_SCHEDULE_MOST = 1 << 20 }; /* actions F, B, W of all devices */

typedef struct tutti_pipeline_schedule {
    const struct tutti_pipeline_schedule_kind *kind;
    int devices, chunks, micro; /* K, v, M */
    int stages;                 /* K*v */
    tutti_pipeline_actions *of; /* [devices] */
} tutti_pipeline_schedule;

typedef struct tutti_pipeline_schedule_kind {
    const char *name; /* "1f1b" */
    const char *doc;  /* one line */
    bool chunks;      /* several stages to a device; 2 where no number is given */
    bool weights;     /* W apart from B */
    /* F, B and W of a device, in order. */
    tutti_status (*fill)(tutti_pipeline_schedule *s, int device);
} tutti_pipeline_schedule_kind;

/* By name. NOT_FOUND lists those that there are. */
tutti_status tutti__pipeline_schedule_find(const char *name,
                                           const tutti_pipeline_schedule_kind **ret);
/* `chunks` 0: the kind's default. Filled, with transfers, and simulated once: a schedule that is
 * returned runs to its end. */
tutti_status tutti__pipeline_schedule_create(const tutti_pipeline_schedule_kind *kind, int devices,
                                             int chunks, int micro, tutti_pipeline_schedule **ret);
void tutti__pipeline_schedule_free(tutti_pipeline_schedule *s); /* NULL is fine */

static inline int tutti__stage_device(const tutti_pipeline_schedule *s, int stage)
{
    return stage % s->devices;
}

/* For `fill`. */
tutti_status tutti__pipeline_schedule_add(tutti_pipeline_schedule *s, int device,
                                          tutti_pipeline_action_kind kind, int stage, int micro);

/* ---- simulate.c ---- */

/* What an action takes, in any unit of time. */
typedef struct tutti_stage_cost {
    double forward, backward, weight; /* of one micro-batch; `backward` without `weight` */
    double send, send_gradient;       /* of its output to the next stage, of its gradient back */
} tutti_stage_cost;

typedef struct tutti_pipeline_action_time {
    double begin, end;
} tutti_pipeline_action_time;

typedef struct tutti_pipeline_times {
    double end;   /* of the step */
    double idle;  /* share of all devices' time: the bubble */
    double *busy; /* [devices] */
    int *peak;    /* [devices]: micro-batches whose activations are held, most at once */
    tutti_pipeline_action_time **times; /* [devices][actions] */
} tutti_pipeline_times;

/* Runs the schedule on paper. `costs`: [stages]; NULL: each of F, B and W takes 1, transfers
 * nothing. INVALID says which actions wait for each other when it does not end, or what is done
 * twice, out of order or not at all. */
tutti_status tutti__pipeline_schedule_simulate(const tutti_pipeline_schedule *s,
                                               const tutti_stage_cost *costs,
                                               tutti_pipeline_times *ret);
void tutti__pipeline_times_free(const tutti_pipeline_schedule *s, tutti_pipeline_times *times);

#endif
