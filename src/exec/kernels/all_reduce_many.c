/* all_reduce_many.c: the replicas' values of a bucket, each reduced. */
#include "exec/kernels/axis_group.h"

const tutti_kernel tutti_kernel_all_reduce_many = {
    .name = "all_reduce_many.team",
    .version = 1,
    .op = "all_reduce_many",
    .target = "cpu",
    .isa = "base",
    .flags = TUTTI_KERNEL_HOST | TUTTI_KERNEL_INPLACE_EACH | TUTTI_KERNEL_ROW_INVARIANT,
    .score = tutti__host_score,
    .run = tutti__call_reduce,
};
