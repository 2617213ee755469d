/* recorder.h: the flight recorder: the last operations of this process, always on. Writing costs
 * some nanoseconds, allocates nothing and takes no lock; any thread may write. */
#ifndef TUTTI_CLUSTER_RECORDER_H
#define TUTTI_CLUSTER_RECORDER_H

#include <stdatomic.h>

#include "cluster/message.h"

enum { TUTTI_RECORDER_ENTRIES = 1024, TUTTI_RECORDER_SETS = 256 };

/* `turn` is 0 while the entry is written, else its number from 1: a reader that sees the same turn
 * before and after has read one entry and no mixture. */
typedef struct tutti_record {
    _Atomic uint64_t turn, group, sequence, ticks;
    _Atomic(const tutti_ranks *) members;
    _Atomic(const char *) operation;
    atomic_bool arrived;
} tutti_record;

typedef struct tutti_recorder {
    _Atomic uint64_t count;
    uint64_t reported; /* by the keeper only */
    tutti_record ring[TUTTI_RECORDER_ENTRIES];
    int set_count;
    tutti_ranks sets[TUTTI_RECORDER_SETS]; /* that records point to: kept for good */
} tutti_recorder;

/* One caller at a time; NULL when there is no room for another set. */
const tutti_ranks *tutti__recorder_keep(tutti_recorder *recorder, const tutti_ranks *ranks);
void tutti__recorder_note(tutti_recorder *recorder, tutti_rank_group group, const char *operation,
                          uint64_t sequence, bool arrived);
/* For all ranks of the job and for the groups that were used last, those that something is under
 * way in before others: the latest operation that was entered and not left; else the last one, not
 * inside. */
void tutti__recorder_where(const tutti_recorder *recorder, tutti_wheres *ret_where);
/* Operations of all ranks entered since the last call, at most `limit`: those whose number is a
 * multiple of the least power of two that leaves few enough, so that ranks choose the same ones. */
size_t tutti__recorder_arrivals(tutti_recorder *recorder, int64_t now_ns,
                                tutti_arrival *ret_arrivals, size_t limit);

#endif
