/* lane.h: a large operation on several threads at once, each with a part of it and connections of
 * its own. What goes through the kernel is copied into and out of it by whoever sends and receives:
 * one thread moves a tenth of what memory could.
 *
 * Invariants:
 *  1. A group's calls come one after the other, so its lanes have one piece of work at a time. Each
 *     group has threads of its own: those of two groups may meet in any order.
 *  2. All ranks take as many lanes: that depends on the call and on what they have agreed upon. */
#ifndef TUTTI_COMM_COLL_LANE_H
#define TUTTI_COMM_COLL_LANE_H

#include "comm/comm.h"

enum { TUTTI_LANES_MOST = 8 };

/* How many a rank would have, of those that share so many CPUs; TUTTI_LANES says it otherwise. */
tutti_status tutti__lanes_wanted(int cpus, int neighbours, int *ret_lanes);
/* How many ranks of one machine, and of different ones, have between each other. */
void tutti__lanes_count(const tutti_fabric *fabric, int ret_lanes[TUTTI_LINK_COUNT]);
/* How many the ranks of a group have, at least 1, and over how many of them an operation goes. */
int tutti__lanes_among(const tutti_comm_cost *cost, int ranks);
int tutti__lanes_for(const tutti_comm_cost *cost, int ranks, const tutti_coll *by,
                     tutti_operation operation, double bytes);

/* A part, whose group is the lane's. */
typedef tutti_status tutti_lane_work(tutti_collective *part, const void *context);
/* Runs `work` on so many parts at the same time, one of them on this thread. Where one fails, the
 * others end soon, and the first failure is returned. */
tutti_status tutti__lanes_run(tutti_collective *whole, int lanes, tutti_lane_work *work,
                              const void *context);
void tutti__lanes_end(tutti_comm *comm);

#endif
