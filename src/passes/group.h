/* group.h: several nodes as one node of operator "fused", when a kernel wants them.
 *
 * The fused node's body holds copies of the nodes. What they take from outside are the body's
 * parameters, but constants of one element, which go into the body; what is used outside, and only
 * that, are its results. */
#ifndef TUTTI_PASSES_GROUP_H
#define TUTTI_PASSES_GROUP_H

#include "passes/rewrite.h"

/* Who uses a node's outputs, by the ids at the time it was made. */
typedef struct tutti_uses {
    uint32_t *first;    /* by id: users[first[id]] … users[first[id + 1] - 1] */
    tutti_node **users; /* one entry for each input or control edge */
    bool *wanted;       /* by id: a result or a target */
    uint64_t *follows;  /* by id: names the updates that it follows; 0: none */
    bool watched;       /* something that waits goes to other devices, or reads a variable */
} tutti_uses;
tutti_status tutti__uses_create(const tutti_graph *graph, tutti_uses *ret_uses);
void tutti__uses_free(tutti_uses *uses); /* zeroed is fine */

enum { TUTTI_GROUP_NODES = 64, TUTTI_GROUP_INPUTS = 16, TUTTI_GROUP_OUTPUTS = 8 };

typedef struct tutti_node_group {
    int count;
    tutti_node *nodes[TUTTI_GROUP_NODES]; /* in topological order */
} tutti_node_group;

bool tutti__group_has(const tutti_node_group *group, const tutti_node *node);
/* Values from outside that will be inputs, each once: their number, even if above the capacity. */
int tutti__group_inputs(const tutti_node_group *group, int capacity, tutti_edge *ret_inputs);
/* Values that are used outside, the same way. */
int tutti__group_outputs(const tutti_node_group *group, const tutti_uses *uses, int capacity,
                         tutti_edge *ret_outputs);

/* Whether something outside the group would follow more updates than it does: of fused nodes all
 * follow what one of them follows. Another device would wait in vain for what now comes after the
 * commit; a read that waits for one of before an update would see what the update wrote. */
bool tutti__group_straddles(const tutti_node_group *group, const tutti_uses *uses);

/* Replaces the group by a fused node, if it keeps the limits, does not straddle an update and a
 * kernel of the pass's device bids for it under this pattern; *ret_fused says whether. The nodes
 * were there at the start of the rewrite and are not replaced yet. */
tutti_status tutti__group_fuse(tutti_rewrite *rewrite, const tutti_uses *uses,
                               const tutti_node_group *group, const char *pattern, bool *ret_fused);

/* Whether the device of a pass has kernels for fused nodes at all, and TUTTI_FUSE=0 does not forbid
 * them. */
bool tutti__group_device_fuses(const tutti_pass_context *context);
/* Whether TUTTI_FUSE says anything. */
tutti_status tutti__group_check_setting(void);

#endif
