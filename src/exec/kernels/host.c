/* host.c: tensors in and out of calls on the host. */
#include "exec/kernels/host.h"

#include <string.h>

int tutti__host_score(const tutti_kernel_query *query)
{
    TUTTI_UNUSED(query);
    return 1000;
}

tutti_status tutti__borrow_input(const tutti_kernel_call *call, int index, tutti_tensor **ret)
{
    const tutti_view *view = &call->inputs[index];
    return tutti_tensor_wrap(view->dtype, view->rank, view->dims, view->data, NULL, NULL, ret);
}

tutti_status tutti__copy_input(const tutti_kernel_call *call, int index, tutti_tensor **ret)
{
    const tutti_call_host *host = call->context;
    if (host->take)
        return host->take(call, index, ret);
    const tutti_view *view = &call->inputs[index];
    return tutti_tensor_from(view->dtype, view->rank, view->dims, view->data, ret);
}

static bool same_dims(const tutti_view *view, const tutti_type *type)
{
    return view->rank == type->rank && view->dtype == type->dtype &&
           (type->rank == 0 ||
            memcmp(view->dims, type->dims, (size_t)type->rank * sizeof *type->dims) == 0);
}

tutti_status tutti__fill_output(const tutti_kernel_call *call, int index, tutti_tensor *value)
{
    const tutti_type *type = tutti_tensor_type(value);
    tutti_view *output = &call->outputs[index];
    bool known = true;
    for (int i = 0; i < output->rank; i++)
        known = known && output->dims[i] >= 0;
    if (!known || !output->data)
        TUTTI_TRY(tutti_kernel_call_allocate(call, index, type->rank, type->dims));
    if (!same_dims(output, type)) {
        char text[TUTTI_TYPE_TEXT];
        return tutti_fail(TUTTI_INTERNAL,
                          "%s '%s': output %d came out as %s, which is not what was planned",
                          call->op->name, call->name, index, tutti_type_text(type, text));
    }
    const tutti_call_host *host = call->context;
    bool elsewhere = !output->data && tutti_tensor_count(value) > 0; /* in a device's memory */
    if (host->give && (elsewhere || type->dtype == TUTTI_STRING)) /* strings live with the output */
        return host->give(call, index, value);
    size_t size = (size_t)tutti_tensor_count(value) * tutti_dtype_size(type->dtype);
    if (size)
        memcpy(output->data, tutti_tensor_data(value), size);
    return TUTTI_OK;
}
