/* profile.h: the steps of an epoch as a trace, for TensorBoard's profile page (xplane.pb) and for
 * chrome://tracing or Perfetto (trace.json). */
#ifndef TUTTI_NN_CALLBACKS_PROFILE_H
#define TUTTI_NN_CALLBACKS_PROFILE_H

#include "nn/callbacks/common.h"

typedef struct tutti_span {
    int64_t begin, end; /* ns */
    int64_t step;       /* -1: between steps */
} tutti_span;

/* Zeroed is empty. */
typedef struct tutti_profile {
    TUTTI_VEC(tutti_span) spans;
    int64_t ended; /* the last step */
} tutti_profile;

#define TUTTI_PROFILE_SPANS 20000

/* At the end of a training batch: notes it, and the time since the one before. */
void tutti__profile_step(tutti_profile *profile, const tutti_event *event);
/* <folder>/plugins/profile/<time>/<host>.trace.json and .xplane.pb */
tutti_status tutti__profile_write(const tutti_profile *profile, const char *folder);
void tutti__profile_free(tutti_profile *profile);

#endif
