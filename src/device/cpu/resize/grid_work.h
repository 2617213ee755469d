/* grid_work.h: what kernels that sample images at places work on, in each of the three operators.
 */
#ifndef TUTTI_DEVICE_CPU_RESIZE_GRID_WORK_H
#define TUTTI_DEVICE_CPU_RESIZE_GRID_WORK_H

#include "device/cpu/row/row.h"
#include "ops/network/grid_sample.h"

enum { PLACES = 64 }; /* of one piece */

typedef struct grid_work {
    tutti_grid g;
    const float *x, *grid, *grad;
    float *to;
} grid_work;

/* Of grid_sample, or, with the gradient as third input, of the gradient of the places. */
static inline grid_work grid_work_of_places(const tutti_kernel_call *call)
{
    return (grid_work){.g = tutti__grid(call, &call->inputs[0], &call->inputs[1]),
                       .x = call->inputs[0].data,
                       .grid = call->inputs[1].data,
                       .grad = call->input_count > 2 ? call->inputs[2].data : NULL,
                       .to = call->outputs[0].data};
}

/* Of the gradient of the image. */
static inline grid_work grid_work_of_image(const tutti_kernel_call *call)
{
    return (grid_work){.g = tutti__grid(call, &call->outputs[0], &call->inputs[0]),
                       .grid = call->inputs[0].data,
                       .grad = call->inputs[1].data,
                       .to = call->outputs[0].data};
}

#endif
