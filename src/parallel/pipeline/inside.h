/* inside.h: the parts of the rewrite for a pipeline to each other. */
#ifndef TUTTI_PARALLEL_PIPELINE_INSIDE_H
#define TUTTI_PARALLEL_PIPELINE_INSIDE_H

#include "parallel/pipeline/pipeline.h"
#include "parallel/spmd/rewrite.h"

/* node->scratch. */
typedef struct tutti_pipeline_mark {
    int micro;   /* the micro-batch that it works on, or adds to a sum; -1: none */
    bool first;  /* it comes before all stages: it depends on data only, and on all of it */
    int stage;   /* resolved */
    int kind;    /* tutti_pipeline_action_kind of the micro-batch's */
    bool named;  /* its device is the one that the user named, or follows from that */
    bool leaves; /* a gradient of an earlier stage depends on it: B, not W */
    double when; /* its place in the order */
} tutti_pipeline_mark;

static inline tutti_pipeline_mark *tutti__pipeline_mark(const tutti_node *node)
{
    return node->scratch;
}

/* micro.c: the graph of `micro` micro-batches, marked (micro, first); marks lie in the arena. */
tutti_status tutti__pipeline_micro(tutti_graph *job, const tutti_spmd *spmd, int micro,
                                   tutti_arena *arena, tutti_graph **ret);
/* stages.c: stage, device, kind of every node. */
tutti_status tutti__pipeline_place(tutti_graph *graph, const tutti_pipeline *pipeline);
/* shared.c: variables that belong to the job and to no stage are in all processes. */
tutti_status tutti__pipeline_share(tutti_graph *graph, const tutti_pipeline *pipeline,
                                   tutti_arena *arena);
/* timetable.c: the order of the schedule; leaves the graph sorted. `micro`: those that there are.
 */
tutti_status tutti__pipeline_order(tutti_graph *graph, const tutti_pipeline *pipeline, int micro);

#endif
