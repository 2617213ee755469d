/* all_reduce.c: everybody gets the reduction of all inputs; of one value, or of a bucket of them.
 */
#include "exec/kernels/axis_group.h"

const tutti_kernel tutti_kernel_all_reduce = {
    .name = "all_reduce.group",
    .version = 1,
    .op = "all_reduce",
    .target = "cpu",
    .isa = "base",
    .inplace = 1,
    .flags = TUTTI_KERNEL_HOST | TUTTI_KERNEL_ROW_INVARIANT,
    .score = tutti__host_score,
    .run = tutti__call_reduce,
};

const tutti_kernel tutti_kernel_all_reduce_many = {
    .name = "all_reduce_many.group",
    .version = 1,
    .op = "all_reduce_many",
    .target = "cpu",
    .isa = "base",
    .flags = TUTTI_KERNEL_HOST | TUTTI_KERNEL_INPLACE_EACH | TUTTI_KERNEL_ROW_INVARIANT,
    .score = tutti__host_score,
    .run = tutti__call_reduce,
};
