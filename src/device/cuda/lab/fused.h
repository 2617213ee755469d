/* fused.h: bodies of fused nodes, as samples. */
#ifndef TUTTI_CUDA_LAB_FUSED_H
#define TUTTI_CUDA_LAB_FUSED_H

#include "ops/sample.h"

int lab_fused_count(void);
/* Whether the case is for deterministic mode; some kernels refuse it. */
bool lab_fused_deterministic(int index);
/* Lives as long as the program. */
tutti_status lab_fused_make(int index, tutti_sample *ret);

#endif
