/* plan.c: plans of products of bytes: constants are packed once. */
#include <stdlib.h>

#include "base/memory.h"
#include "device/cpu/int8/kernels.h"
#include "tensor/tensor.h"

static tutti_status pack(const tutti_int8_shape *shape, tutti_tensor *value, void **ret_right)
{
    tutti_tensor *whole;
    TUTTI_TRY(tutti_tensor_contiguous(value, &whole));
    void *right = tutti__aligned_alloc(64, (tutti__int8_right_bytes(shape) + 63) / 64 * 64);
    if (right != NULL) {
        tutti_view view = tutti__tensor_view_of(whole);
        tutti__int8_pack_right(NULL, shape, &view, right);
        *ret_right = right;
    }
    tutti_tensor_release(whole);
    return right != NULL ? TUTTI_OK : tutti_fail(TUTTI_NO_MEMORY, "no memory for packed weights");
}

tutti_status tutti__int8_plan(const tutti_kernel_query *query, const tutti_int8_shape *shape,
                              int index, void **ret_plan)
{
    tutti_tensor *value = query->node.values != NULL ? query->node.values[index] : NULL;
    tutti_int8_plan *plan = calloc(1, sizeof *plan);
    if (plan == NULL)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a plan");
    plan->threads = query->threads;
    tutti_status status = value != NULL ? pack(shape, value, &plan->right) : TUTTI_OK;
    if (status != TUTTI_OK) {
        free(plan);
        return status;
    }
    *ret_plan = plan;
    return TUTTI_OK;
}

void tutti__int8_discard(void *plan)
{
    tutti_int8_plan *p = plan;
    if (p != NULL)
        free(p->right);
    free(p);
}

const void *tutti__int8_right(const tutti_kernel_call *call, const tutti_int8_shape *shape,
                              const tutti_view *right)
{
    const tutti_int8_plan *plan = call->plan;
    if (plan->right != NULL)
        return plan->right;
    char *packed = (char *)call->workspace + tutti__int8_scratch_bytes(shape, plan->threads);
    tutti__int8_pack_right(call, shape, right, packed);
    return packed;
}
