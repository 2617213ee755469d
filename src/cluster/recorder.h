/* recorder.h: the flight recorder: the last operations of this process, and those that are under
 * way, however many others came since; always on. Writing costs some nanoseconds, allocates nothing
 * and takes no lock; any thread may write. */
#ifndef TUTTI_CLUSTER_RECORDER_H
#define TUTTI_CLUSTER_RECORDER_H

#include <stdatomic.h>

#include "cluster/message.h"

enum {
    TUTTI_RECORDER_ENTRIES = 1024,
    TUTTI_RECORDER_GROUPS = 256, /* open at once; of others the ring alone knows */
    TUTTI_RECORDER_SETS = 256,
};

/* `turn` is 0 while the entry is written, or free, else its number from 1: a reader that sees the
 * same turn before and after has read one entry and no mixture. */
typedef struct tutti_record {
    _Atomic uint64_t turn, group, sequence, ticks;
    _Atomic(const tutti_ranks *) members;
    _Atomic(const char *) operation;
    atomic_bool arrived;
} tutti_record;

typedef struct tutti_recorder {
    _Atomic uint64_t count;
    uint64_t reported; /* by the heartbeat thread only */
    tutti_record ring[TUTTI_RECORDER_ENTRIES];
    /* What is under way: in that of all ranks first, then in those of groups that took a place. */
    tutti_record now[1 + TUTTI_RECORDER_GROUPS];
    bool taken[1 + TUTTI_RECORDER_GROUPS];
    int set_count;
    tutti_ranks sets[TUTTI_RECORDER_SETS]; /* that records point to: kept for good */
} tutti_recorder;

/* One caller at a time; NULL when there is no room for another set. */
const tutti_ranks *tutti__recorder_keep(tutti_recorder *recorder, const tutti_ranks *ranks);
/* A place for what is under way in one more group, until it is given back (NULL is fine); NULL when
 * there is none left. One caller at a time. */
tutti_record *tutti__recorder_take(tutti_recorder *recorder);
void tutti__recorder_give_back(tutti_recorder *recorder, tutti_record *now);
/* Of a group one thread at a time, which has one operation under way at a time; where it has
 * several the latest is known for as long as it takes, the others for as long as the ring goes
 * round. */
void tutti__recorder_note(tutti_recorder *recorder, tutti_rank_group group, const char *operation,
                          uint64_t sequence, bool arrived);
/* For all ranks of the job and for the groups that were used last, those that something is under
 * way in before others, and those that wait the longest before those: the latest operation that was
 * entered and not left; else the last one, not inside. */
void tutti__recorder_where(const tutti_recorder *recorder, tutti_wheres *ret_where);
/* Operations entered since the last call, at most `limit`: of one in so many, by number and group,
 * where that is the least power of two that leaves few enough, so that ranks choose the same ones.
 */
size_t tutti__recorder_arrivals(tutti_recorder *recorder, int64_t now_ns,
                                tutti_arrival *ret_arrivals, size_t limit);

#endif
