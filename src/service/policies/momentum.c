/* momentum.c: see momentum.h. */
#include "service/policies/momentum.h"

tutti_status tutti__worker_momentum_push(tutti_worker_momentum *momentum, double m,
                                         tutti_tensor *gradient, tutti_tensor **ret_pushed)
{
    const tutti_type *type = tutti_tensor_type(gradient);
    tutti_tensor *velocity = NULL, *pushed = NULL;
    if (!tutti_dtype_is_float(type->dtype))
        return tutti_fail(TUTTI_INVALID, "momentum of a gradient of %s; it needs floats",
                          tutti_dtype_name(type->dtype));
    if (momentum->velocity && !tutti_type_equal(tutti_tensor_type(momentum->velocity), type))
        return tutti_fail(TUTTI_INVALID, "momentum of a gradient of another shape than before");
    TUTTI_TRY(tutti_tensor_create(type->dtype, type->rank, type->dims, &pushed));
    tutti_status status = tutti_tensor_create(type->dtype, type->rank, type->dims, &velocity);
    if (status != TUTTI_OK) {
        tutti_tensor_release(pushed);
        return status;
    }
    for (int64_t i = 0; i < tutti_tensor_count(gradient); i++) {
        double g = tutti_tensor_get(gradient, i);
        double v = g + (momentum->velocity ? m * tutti_tensor_get(momentum->velocity, i) : 0);
        tutti_tensor_set(velocity, i, v);
        tutti_tensor_set(pushed, i, g + m * v);
    }
    tutti_tensor_release(momentum->velocity);
    momentum->velocity = velocity;
    *ret_pushed = pushed;
    return TUTTI_OK;
}

void tutti__worker_momentum_free(tutti_worker_momentum *momentum)
{
    tutti_tensor_release(momentum->velocity);
    momentum->velocity = NULL;
}
