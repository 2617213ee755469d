/* pipeline.h: a job of one device as a pipeline: stages on devices, the batch in micro-batches.
 *
 * The batch is cut along an axis of the mesh that no device stands for: micro-batch i is rank i
 * along it, and the rewrite for replicas (parallel/spmd) gives each micro-batch its nodes, with
 * counts, random numbers and uneven blocks as for replicas. What would be a collective along that
 * axis is a sum that grows from micro-batch to micro-batch (micro.c). Then every node gets the
 * device of its stage (stages.c) and its place in the order that the schedule says (timetable.c);
 * partitioning makes the sends and receives.
 */
#ifndef TUTTI_PARALLEL_PIPELINE_PIPELINE_H
#define TUTTI_PARALLEL_PIPELINE_PIPELINE_H

#include "parallel/pipeline/schedule.h"
#include "parallel/spmd/spmd.h"

/* The name of the axis that stages lie along. */
#define TUTTI_PIPE_AXIS "pipe"

typedef struct tutti_pipeline {
    const tutti_pipeline_schedule_kind *kind;
    int device_count;           /* K */
    const char *const *devices; /* of stages 0 to K-1; stage s stands on s mod K; as they are called
                                   here */
    const char *const *names;   /* as all processes call them, /job:worker/task:1/cpu:0 */
    int front_count;            /* processes */
    const char *const *fronts;  /* the first device of each, as devices */
    int chunks;                 /* stages to a device */
    int micro; /* micro-batches that a batch is cut into, where it has as many rows */
} tutti_pipeline;

/* `spmd`: how the job lies otherwise. `job` is used up. INVALID where stages are marked that the
 * pipeline does not have. */
tutti_status tutti__pipeline_rewrite(tutti_graph *job, const tutti_spmd *spmd,
                                     const tutti_pipeline *pipeline, tutti_graph **ret);

#endif
