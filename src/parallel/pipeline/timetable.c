/* timetable.c: the nodes of a pipeline's graph in the order in which the schedule has them.
 *
 * The schedule is run on paper; the actions of all devices, by the time at which they begin, are
 * the order of the graph, which partitioning and lowering keep on each device. What belongs to no
 * micro-batch stands where all that it is made from is there. */
#include <stdlib.h>

#include "parallel/pipeline/inside.h"

/* An action F, B or W and when it begins. */
typedef struct timed {
    double begin;
    int device;
    size_t place; /* in its device's list */
    tutti_pipeline_action action;
} timed;

/* Of those that begin at one time the one that comes first on its device does, else the one of the
 * later device: it waits for what has just been made. */
static int by_time(const void *a, const void *b)
{
    const timed *x = a, *y = b;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    if (x->device != y->device)
        return x->device > y->device ? -1 : 1;
    return (x->place > y->place) - (x->place < y->place);
}

typedef struct timetable {
    int stages, micro;
    double *when; /* [kind][stage][micro]: 1, 2, … */
} timetable;

static double *when_of(const timetable *t, int kind, int stage, int micro)
{
    return &t->when[((size_t)kind * (size_t)t->stages + (size_t)stage) * (size_t)t->micro +
                    (size_t)micro];
}

static size_t collect(const tutti_pipeline_schedule *s, const tutti_pipeline_times *times,
                      timed *ret)
{
    size_t count = 0;
    for (int d = 0; d < s->devices; d++)
        for (size_t i = 0; i < s->of[d].list.count; i++) {
            const tutti_pipeline_action *a = &s->of[d].list.data[i];
            if (a->kind > TUTTI_WEIGHT)
                continue;
            if (ret)
                ret[count] = (timed){times->times[d][i].begin, d, i, *a};
            count++;
        }
    return count;
}

static tutti_status fill_table(const tutti_pipeline_schedule *s, const tutti_pipeline_times *times,
                               const timetable *t)
{
    size_t count = collect(s, times, NULL);
    timed *all = calloc(count + 1, sizeof *all);
    if (!all)
        return tutti__spmd_no_memory();
    collect(s, times, all);
    qsort(all, count, sizeof *all, by_time);
    for (size_t i = 0; i < count; i++)
        *when_of(t, all[i].action.kind, all[i].action.stage, all[i].action.micro) = (double)i + 1;
    free(all);
    return TUTTI_OK;
}

static tutti_status make_table(const tutti_pipeline *p, int micro, tutti_arena *arena,
                               timetable *ret)
{
    tutti_pipeline_schedule *s;
    tutti_pipeline_times times;
    TUTTI_TRY(tutti__pipeline_schedule_create(p->kind, p->device_count, p->chunks, micro, &s));
    *ret = (timetable){.stages = s->stages, .micro = micro};
    ret->when = tutti__arena_array(arena, (size_t)s->stages * (size_t)micro * (TUTTI_WEIGHT + 1),
                                   sizeof *ret->when);
    tutti_status status =
        ret->when ? tutti__pipeline_schedule_simulate(s, NULL, &times) : tutti__spmd_no_memory();
    if (status == TUTTI_OK) {
        status = fill_table(s, &times, ret);
        tutti__pipeline_times_free(s, &times);
    }
    tutti__pipeline_schedule_free(s);
    return status;
}

static void find_time(const timetable *t, const tutti_node *node)
{
    tutti_pipeline_mark *mark = tutti__pipeline_mark(node);
    mark->when = 0;
    if (mark->micro >= 0 && !mark->first)
        mark->when = *when_of(t, mark->kind, mark->stage, mark->micro);
    for (int i = 0; i < node->input_count; i++) {
        double before = tutti__pipeline_mark(node->inputs[i].node)->when;
        mark->when = before > mark->when ? before : mark->when;
    }
    for (int i = 0; i < node->control_count; i++) {
        double before = tutti__pipeline_mark(node->controls[i])->when;
        mark->when = before > mark->when ? before : mark->when;
    }
}

static int by_when(const void *a, const void *b)
{
    const tutti_node *x = *(tutti_node *const *)a, *y = *(tutti_node *const *)b;
    double at = tutti__pipeline_mark(x)->when, other = tutti__pipeline_mark(y)->when;
    if (at != other)
        return at < other ? -1 : 1;
    return (x->id > y->id) - (x->id < y->id);
}

tutti_status tutti__pipeline_order(tutti_graph *graph, const tutti_pipeline *pipeline, int micro)
{
    timetable t;
    tutti_arena arena = {0};
    tutti_status status = make_table(pipeline, micro, &arena, &t);
    for (size_t n = 0; status == TUTTI_OK && n < graph->nodes.count; n++)
        find_time(&t, graph->nodes.data[n]);
    tutti__arena_free(&arena);
    TUTTI_TRY(status);
    qsort(graph->nodes.data, graph->nodes.count, sizeof(tutti_node *), by_when);
    for (size_t n = 0; n < graph->nodes.count; n++)
        graph->nodes.data[n]->id = (uint32_t)n;
    return tutti__graph_sort(graph);
}
