/* forecast.h: what a training step will take, before it is taken: memory, traffic, time.
 *
 * Memory is that of the program that the step was compiled to. Compute is the time of its
 * instructions, rehearsed one by one on scratch memory at their shapes; what they exchange is
 * priced by the cost model of collectives, and is hidden where the program goes on beside it. */
#ifndef TUTTI_NN_TRAINING_FORECAST_H
#define TUTTI_NN_TRAINING_FORECAST_H

#include "exec/run/rehearse.h"
#include "nn/model/model.h"
#include "tutti/comm.h"

/* ---- summary.c ---- */
/* "1.32 MiB" */
const char *tutti__bytes_text(double bytes, char ret[32]);

/* How replicas reach each other, for prices. */
typedef struct tutti_forecast_reach {
    tutti_comm_cost cost;  /* between processes; between devices where there is one process */
    tutti_comm_cost inner; /* between the devices of a process, where there are several of both */
    int processes, local;
    bool memory;           /* what `cost` is of goes through memory that all reach */
    const char *algorithm; /* of all_reduce; NULL: the cheapest */
} tutti_forecast_reach;
/* Of a strategy at hand; with `measures` devices of one process are measured for it. */
tutti_status tutti__reach_of(tutti_strategy *strategy, bool measures, tutti_forecast_reach *ret);

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
    int64_t batch; /* rows that the replicas share; 0: not known */
    bool timed;    /* false: some device cannot rehearse; times are 0 */
    /* bytes of a replica */
    double weights, slots, gradients, activations, data, total;
    double sent;          /* bytes of a replica and step */
    double summed;        /* bytes whose sum over the replicas is taken in a step */
    double compute;       /* seconds of the slowest device */
    double communication; /* seconds of all collectives */
    double exposed;       /* those in which nothing else runs */
    double step;          /* compute + exposed */
    double efficiency;    /* compute / step, of those replicas that have rows */
    double flops;         /* of a replica and step */
} tutti_forecast;

/* ---- forecast_course.c ---- */
/* A device's step. */
typedef struct tutti_course {
    double step, compute, communication, exposed; /* seconds, as in tutti_forecast */
    double sent, summed, flops;
} tutti_course;
/* The devices that were rehearsed, side by side: what one sends another one waits for. ret: one for
 * each. */
tutti_status tutti__forecast_courses(const tutti_rehearsal *rehearsal,
                                     const tutti_forecast_reach *reach, double slowdown,
                                     tutti_course *ret);

/* ---- forecast.c ---- */
/* `slowdown`: of the machines that are meant, against this one; 1. */
tutti_status tutti__forecast(const tutti_rehearsal *rehearsal, const tutti_forecast_reach *reach,
                             double slowdown, tutti_forecast *ret);

/* Of all processes of the strategy, which have to ask: the slowest one's counts. */
tutti_status tutti__forecast_join(const tutti_strategy *strategy, tutti_forecast *forecast);

/* The programs that train which an engine has made so far: they take turns, and what one leaves in
 * the caches the next one does not find there. Zeroed: none. */
typedef struct tutti_forecast_past {
    uint64_t runs; /* of the engine, when the last of them was made */
    int count;
    struct {
        uint64_t updates;      /* tutti__plan_updates */
        tutti_between between; /* what a run of it is for the others, on one device */
    } programs[8];
} tutti_forecast_past;
/* `seconds`: of its step; 0: it is not foretold, and will not run again. */
void tutti__forecast_note(tutti_forecast_past *past, const tutti_made *made, double seconds);
/* What the others will do between two runs of this program, for tutti_run.between. */
tutti_between tutti__forecast_between(const tutti_forecast_past *past, const tutti_made *made);
/* A plan's step, before it is run; made->run->between is read. All processes have to ask. */
tutti_status tutti__forecast_plan(const tutti_made *made, tutti_forecast *ret);

struct tutti_step_function;
/* A form's step on these tensors, as tutti__step_function_run would run it under the model's
 * strategy. All processes have to ask; the slowest one's compute counts. */
tutti_status tutti__forecast_step_function(tutti_model *model, struct tutti_step_function *function,
                                           int64_t batch, bool own, int count,
                                           tutti_tensor *const *tensors, tutti_forecast *ret);
/* What is said of it, some lines; from malloc. */
tutti_status tutti__forecast_text(const char *name, tutti_strategy *strategy,
                                  const tutti_forecast *forecast, char **ret_text);

/* ---- forecast_table.c ---- */
/* All strategies for a cluster that is not there, as a table with the best one named, or with
 * --json as an object a line; from malloc. Known by the settings plan-ranks, plan-hosts,
 * plan-alpha, plan-beta and plan-flops of the job. */
tutti_status tutti__forecast_table(tutti_model *model, tutti_dataset *data, char **ret_text);
/* The same of a program of a loop that is written by hand. */
tutti_status tutti__forecast_table_of(tutti_job *job, const char *name, const tutti_made *made,
                                      char **ret_text);
/* Operations a second of a product of matrices here: some milliseconds. 0: not known. */
double tutti__measured_flops(void);
/* A form's step as replica `replica` of a strategy that is not there would have it. */
tutti_status tutti__forecast_imagined(tutti_model *model, struct tutti_step_function *function,
                                      int count, tutti_tensor *const *tensors,
                                      tutti_strategy *imagined, tutti_rehearsal *ret);

/* "2.31 ms" */
const char *tutti__seconds_text(double seconds, char ret[32]);

#endif
