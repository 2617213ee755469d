/* shards.h: the one tree that sums over the shards of a batch are made along. The node [a, b) is
 * the fold of [a, m) and [m, b), m = (a + b) / 2, down to single shards. Whoever has the shards
 * [low, high) folds the nodes that lie wholly in there while their parents do not. */
#ifndef TUTTI_BASE_SHARDS_H
#define TUTTI_BASE_SHARDS_H

/* How many of those nodes there are below [a, b) that end at or before `end`. */
static inline int tutti__shard_nodes(int low, int high, int a, int b, int end)
{
    if (b <= low || a >= high || a >= end)
        return 0;
    if (low <= a && b <= high)
        return b <= end;
    int middle = (a + b) / 2;
    return tutti__shard_nodes(low, high, a, middle, end) +
           tutti__shard_nodes(low, high, middle, b, end);
}

#endif
