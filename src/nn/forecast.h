/* forecast.h: what a training will take on a number of replicas, before it begins: memory, traffic,
 * time. By FLOPs, the speed of a replica and the cost model of collectives. */
#ifndef TUTTI_NN_FORECAST_H
#define TUTTI_NN_FORECAST_H

#include "nn/model.h"
#include "tutti/comm.h"

/* A model's training step at one batch size. */
typedef struct tutti_model_size {
    double weights, gradients, slots, activations; /* bytes; activations of the whole batch */
    double flops;                                  /* forward, of the whole batch */
} tutti_model_size;
/* ---- summary.c ---- */
/* "1.32 MiB" */
const char *tutti__bytes_text(double bytes, char ret[32]);
tutti_status tutti__model_size(tutti_model *model, int64_t batch, tutti_model_size *ret);

/* ---- planned.c ---- */
/* A training step as it is compiled for one device. */
typedef struct tutti_planned {
    double bytes, bound;      /* of activations and gradients: planned, in use at once */
    double kept;              /* planned when nothing is computed again */
    double flops, recomputed; /* of the step, and of it what is computed again; 0: nothing is */
} tutti_planned;
/* INVALID for a model that has nothing to train; TOO_LARGE above its limit of memory. */
tutti_status tutti__model_planned(tutti_model *model, int64_t batch, tutti_planned *ret);

typedef struct tutti_forecast {
    const char *strategy;
    int replicas;
    double weights, gradients, slots, activations, total; /* bytes of a replica */
    double sent;                                          /* bytes of a replica and step */
    double compute, communication, step;                  /* seconds */
    double efficiency;                                    /* against one device, 0 to 1 */
} tutti_forecast;

/* `flops`: floating-point operations a second of a replica. */
void tutti__forecast(const char *strategy, const tutti_model_size *size, int replicas, double flops,
                     const tutti_comm_cost *cost, tutti_forecast *ret);
/* All strategies for a cluster, as a table with the best one named; from malloc. Known by the
 * settings plan-ranks, plan-hosts, plan-alpha, plan-beta and plan-flops of the job. */
tutti_status tutti__forecast_table(tutti_model *model, int64_t batch, char **ret_text);
/* What is said before the first step of a model under a strategy, some lines; from malloc. */
tutti_status tutti__forecast_text(tutti_model *model, int64_t batch, char **ret_text);

#endif
