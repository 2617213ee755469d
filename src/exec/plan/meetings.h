/* meetings.h: the collectives of a plan: which groups they meet in, and that all members do the
 * same there. */
#ifndef TUTTI_EXEC_PLAN_MEETINGS_H
#define TUTTI_EXEC_PLAN_MEETINGS_H

#include "exec/plan/plan.h"

/* Nodes stand on devices of this process, as far as the mesh says which those are. */
tutti_status tutti__plan_check_tasks(const tutti_engine_options *options, const tutti_graph *graph);
/* Of a placed graph: collectives without a channel get one for their number in their group, by
 * which they find their peers on other devices of this process. */
tutti_status tutti__plan_name_channels(const tutti_engine_options *options, tutti_graph *graph);
/* Of the pieces as they are to be compiled: finds the groups, sees that the devices of this process
 * meet in the same collectives, and notes what processes have to compare (plan->schedules). Talks
 * to nobody. `spread`: by the strategy, so that names of nodes are the same everywhere. */
tutti_status tutti__plan_meetings(const tutti_engine_options *options, bool spread, int64_t batch,
                                  int count, const tutti_piece_graph *pieces, tutti_plan *plan);
/* Before a run that meets other processes: connects its groups, which compare their schedules. */
tutti_status tutti__plan_agree(const tutti_plan *plan, const tutti_run *run);

#endif
