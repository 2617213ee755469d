/* profile.h: what ran when in the first steps of a training: steps, what lies between them, and
 * every operator, for TensorBoard's profile page (xplane.pb: trace viewer, overview and operator
 * statistics) and for chrome://tracing or Perfetto (trace.json.gz). */
#ifndef TUTTI_NN_CALLBACKS_PROFILE_H
#define TUTTI_NN_CALLBACKS_PROFILE_H

#include "nn/callbacks/common.h"

#define TUTTI_PROFILE_STEPS 200
#define TUTTI_PROFILE_SPANS 100000

typedef struct tutti_profile_span {
    int64_t begin, end; /* ns */
    const char *name;
    const char *op; /* of an operator; else NULL */
    int64_t step;   /* of a step; else -1 */
    int thread;
} tutti_profile_span;

/* Zeroed is empty. */
typedef struct tutti_profile {
    TUTTI_VEC(tutti_profile_span) spans;
    int64_t ended;         /* the last step, ns; 0: none yet */
    uint64_t ticks, since; /* at the begin; of what was not taken yet */
    int64_t begin;         /* ns, at `ticks` */
    int steps;
} tutti_profile;

/* Before the first batch. */
void tutti__profile_begin(tutti_profile *profile);
/* At the end of a training batch: notes it, its operators, and the time since the one before. */
void tutti__profile_step(tutti_profile *profile, const tutti_event *event);
/* <folder>/plugins/profile/<time>/<host>.trace.json.gz and .xplane.pb. Puts the spans in order. */
tutti_status tutti__profile_write(tutti_profile *profile, const char *folder);
void tutti__profile_free(tutti_profile *profile);

/* profile_planes.c: the spans as an XSpace, which began at `wall` (ns since 1970). */
tutti_status tutti__profile_planes(const tutti_profile *profile, const char *host, int64_t wall,
                                   tutti_text *text);

#endif
