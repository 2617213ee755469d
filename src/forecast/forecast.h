/* forecast.h: what a training step will take, before it is taken: memory, traffic, time.
 *
 * Memory is that of the program that the step was compiled to. Compute is the time of its
 * instructions, rehearsed one by one on scratch memory at their shapes; what they exchange is
 * priced by the cost model of collectives, and is hidden where the program goes on beside it. */
#ifndef TUTTI_FORECAST_FORECAST_H
#define TUTTI_FORECAST_FORECAST_H

#include "exec/run/rehearse.h"
#include "parallel/strategies/strategy.h"
#include "tutti/comm.h"

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
    /* Of parameter servers, whose step is compute + pull + push + waiting (+ input). */
    int servers;                       /* 0: another strategy */
    double pull, push, waiting, input; /* seconds; waiting: behind other workers */
} tutti_forecast;

/* What parameter servers make of a worker's step of `compute` seconds with `bytes` of variables, as
 * many of gradients: each message takes alpha and beta a byte, a worker sends and gets one copy a
 * step, a server's link carries its share of all workers' copies. With N - 1 workers and one server
 * 2 alpha + 2 (N - 1) M beta, with S servers the bytes' part is divided by S, until a worker's own
 * link is the limit. */
void tutti__forecast_servers(double bytes, int workers, int servers, double alpha, double beta,
                             tutti_forecast *forecast);

/* ---- course.c ---- */
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

/* Of a step of the strategy at hand, or of NULL: all processes have to ask; the slowest one's
 * compute counts. Frees the rehearsal. */
tutti_status tutti__forecast_here(tutti_strategy *strategy, tutti_rehearsal *rehearsal,
                                  tutti_forecast *ret);
/* What is said of it, some lines; from malloc. */
tutti_status tutti__forecast_text(const char *name, tutti_strategy *strategy,
                                  const tutti_forecast *forecast, char **ret_text);

/* ---- table.c ---- */
/* A step that is to be forecast, of the whole batch. */
typedef struct tutti_forecast_step {
    tutti_job *job;
    const char *name;
    bool deterministic;
    tutti_graph *graph;
    const tutti_run_request *request;
} tutti_forecast_step;
/* All strategies for a cluster that is not there, as a table with the best one named, or with
 * --json as an object a line; from malloc. Known by the settings plan-ranks, plan-hosts,
 * plan-alpha, plan-beta and plan-flops of the job. `batch`: 0: not known. */
tutti_status tutti__forecast_table(const tutti_forecast_step *step, int64_t batch, char **ret_text);
/* The same of a program of a loop that is written by hand. */
tutti_status tutti__forecast_table_of(tutti_job *job, const char *name, const tutti_made *made,
                                      char **ret_text);
/* The step as a replica of a strategy that is not there would have it. */
tutti_status tutti__forecast_rehearse(const tutti_forecast_step *step, tutti_strategy *imagined,
                                      tutti_rehearsal *ret);
/* Operations a second of a product of matrices here: some milliseconds. 0: not known. */
double tutti__measured_flops(void);
/* ---- imagine.c ---- */
/* A strategy of so many replicas of which this process is number `first`, and no other is there:
 * programs can be compiled for it, and not run. `options`: deterministic, shards, buckets, overlap,
 * wire, compression, sparse count, and `devices`, which names one. Carries its error, as
 * tutti_strategy_create's; NULL without memory. */
tutti_strategy *tutti__strategy_imagine(const char *name, int replicas, int first,
                                        const tutti_strategy_options *options);

/* ---- measure.c ---- */
/* What collectives between the devices of this process cost: measured once, in some milliseconds;
 * a guess where they have no cores of their own. */
tutti_status tutti__axis_group_cost(tutti_axis_group *axis_group, tutti_comm_cost *ret);

/* ---- forecast.c ---- */
/* "2.31 ms" */
const char *tutti__seconds_text(double seconds, char ret[32]);

#endif
