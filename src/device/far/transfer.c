/* transfer.c: what leaves the memory of a run and what comes into it: results, values that are sent
 * to other devices and received from them. The host only says where they go; streams copy them. */
#include <stdlib.h>
#include <string.h>

#include "device/far/frame.h"
#include "tensor/pending.h"

/* A copy of a value in memory of its own, on its way; the event of whoever waits for it. */
typedef struct tutti_far_delivery {
    tutti_device_event event;
    tutti_far_streams *streams;
    tutti_far_moment moment; /* when it has come */
    tutti_far_frame *frame;  /* the rest: until it has come */
    tutti_tensor *to;
    char *at; /* where a stream writes it */
    size_t size;
    const char *from;  /* of a result */
    tutti_error error; /* what failed meanwhile */
} tutti_far_delivery;

static tutti_status delivery_wait(tutti_device_event *event)
{
    tutti_far_delivery *d = (tutti_far_delivery *)event;
    tutti__far_streams_wait(d->streams, &d->moment);
    return tutti__error_restore(&d->error);
}

static void delivery_destroy(tutti_device_event *event)
{
    free(event);
}

static const tutti_device_event_table delivery_table = {delivery_wait, delivery_destroy};

/* With two references: the caller's, and that of the copy. */
static tutti_status delivery_create(tutti_far_frame *f, const tutti_type *type,
                                    tutti_far_delivery **ret)
{
    tutti_far_memory *memory = f->executable->device->memory;
    const tutti_far_region *region;
    size_t offset;
    tutti_far_delivery *d = calloc(1, sizeof *d);
    if (!d)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a result");
    tutti_status status = tutti__tensor_in(&memory->memory, type, &d->to);
    if (status == TUTTI_OK)
        status = tutti__far_find(memory, tutti_tensor_data(d->to), 0, &region, &offset);
    if (status != TUTTI_OK) {
        tutti_tensor_release(d->to);
        free(d);
        return status;
    }
    d->event.table = &delivery_table;
    atomic_init(&d->event.references, 2);
    d->frame = f;
    d->streams = &f->executable->device->streams;
    d->at = region->write + offset;
    d->size = (size_t)tutti_tensor_count(d->to) * tutti_dtype_size(type->dtype);
    *ret = d;
    return TUTTI_OK;
}

/* The copy is made, or it will never be. */
static void delivery_end(tutti_far_delivery *d)
{
    tutti_far_frame *f = d->frame;
    pthread_mutex_lock(&f->lock);
    if (f->failed)
        d->error = f->error;
    pthread_mutex_unlock(&f->lock);
    tutti_tensor_release(d->to);
    tutti__device_event_release(&d->event);
}

/* ---- results ---- */

static void deliver(void *context, int stream, int64_t index)
{
    tutti_far_delivery *d = context;
    tutti_far_frame *f = d->frame;
    TUTTI_UNUSED(stream);
    TUTTI_UNUSED(index);
    if (d->size > 0)
        memcpy(d->at, d->from, d->size);
    delivery_end(d);
    tutti__far_done(f);
}

static tutti_status result_from(const tutti_far_frame *f, int result, const char **ret)
{
    const tutti_program *program = f->drive.program;
    const tutti_program_value *value = &program->values[program->results[result].value];
    size_t offset;
    if (value->space == TUTTI_IN_VARIABLE) {
        bool late = program->results[result].after_commit;
        *ret = (late ? f->written : f->variables)[value->slot].read;
        return TUTTI_OK;
    }
    if (!tutti__far_layout_offset(&f->executable->layout, value, &offset))
        return tutti_fail(TUTTI_INTERNAL, "%s: a result lies in no memory of the run",
                          f->drive.context.device->name);
    *ret = f->memory->read + offset;
    return TUTTI_OK;
}

tutti_status tutti__far_take_result(tutti_drive *drive, int result, tutti_tensor **ret)
{
    tutti_far_frame *f = (tutti_far_frame *)drive;
    const tutti_program_value *value =
        &drive->program->values[drive->program->results[result].value];
    const char *from;
    tutti_far_delivery *d;
    TUTTI_TRY(result_from(f, result, &from));
    TUTTI_TRY(delivery_create(f, value->type, &d));
    d->from = from;
    tutti_tensor *to = tutti_tensor_retain(d->to);
    tutti_status status = tutti__far_put(f, 0, true, deliver, d, 0);
    d->moment = tutti__far_streams_now(d->streams);
    if (status == TUTTI_OK)
        status = tutti__tensor_awaited(to, &d->event, ret);
    else
        delivery_end(d);
    tutti_tensor_release(to);
    tutti__device_event_release(&d->event);
    return status;
}

/* ---- values for other devices, and from them ---- */

static tutti_far_frame *frame_of(const tutti_kernel_call *call)
{
    return (tutti_far_frame *)((char *)call->context - offsetof(tutti_far_frame, drive.context));
}

/* Puts the instruction on its stream, where it copies what it passes on. */
static tutti_status put_pass(tutti_far_frame *f, int32_t index)
{
    int stream = f->executable->program->instructions[index].stream;
    f->put = true;
    f->last[stream] = index;
    return tutti__far_put(f, stream, false, tutti__far_execute, f, index);
}

tutti_status tutti__far_take(const tutti_kernel_call *call, int index, tutti_tensor **ret)
{
    tutti_far_frame *f = frame_of(call);
    int32_t at = (int32_t)(call - f->drive.calls);
    tutti_far_pass *pass = &f->passes[at];
    const tutti_view *view = &call->inputs[index];
    const tutti_program *program = f->executable->program;
    const tutti_program_value *value = &program->values[program->instructions[at].inputs[index]];
    if (!f->passing)
        return tutti_tensor_from(view->dtype, view->rank, view->dims, view->data, ret);
    if (index != 0 || f->put)
        return tutti_fail(TUTTI_INTERNAL, "%s '%s' passes on more than one value", call->op->name,
                          call->name);
    TUTTI_TRY(delivery_create(f, value->type, &pass->out));
    tutti_far_delivery *d = pass->out;
    tutti_tensor *to = tutti_tensor_retain(d->to);
    tutti_status status = put_pass(f, at);
    d->moment = tutti__far_streams_now(d->streams);
    if (status == TUTTI_OK)
        status = tutti__tensor_awaited(to, &d->event, ret);
    tutti_tensor_release(to);
    tutti__device_event_release(&d->event);
    return status;
}

tutti_status tutti__far_give(const tutti_kernel_call *call, int index, tutti_tensor *tensor)
{
    tutti_far_frame *f = frame_of(call);
    int32_t at = (int32_t)(call - f->drive.calls);
    tutti_far_pass *pass = &f->passes[at];
    const tutti_far_region *region;
    size_t offset, inside;
    if (!f->passing)
        return tutti__program_give(f->executable->program, (size_t)at, call, index, tensor);
    tutti_tensor *source = tutti__tensor_source(tensor, &offset, &pass->event);
    const tutti_memory *memory = source ? source->buffer->memory : NULL;
    if (memory && memory->copy_out == f->executable->device->memory->memory.copy_out &&
        tutti__far_find(memory->self, tutti_tensor_data(source), 0, &region, &inside) == TUTTI_OK) {
        pass->in = source;
        pass->from = region->read + inside + offset;
        return TUTTI_OK;
    }
    tutti_tensor_release(source);
    tutti__device_event_release(pass->event);
    pass->event = NULL;
    pass->in = tutti_tensor_retain(tensor);
    pass->from = tutti_tensor_data(tensor);
    return TUTTI_OK;
}

tutti_status tutti__far_pass(tutti_drive *drive, size_t instruction)
{
    tutti_far_frame *f = (tutti_far_frame *)drive;
    tutti_kernel_call *call = &drive->calls[instruction];
    f->passes[instruction] = (tutti_far_pass){0};
    f->passing = true;
    f->put = false;
    call->deadline = drive->run->deadline;
    tutti__error_forget();
    tutti_status status = drive->program->instructions[instruction].run(call);
    if (status != TUTTI_OK) {
        status = tutti__node_failed(drive->program->instructions[instruction].node, status);
        tutti__far_fail(f, status);
    }
    f->passing = false;
    if (f->put)
        return status;
    tutti_status put = put_pass(f, (int32_t)instruction);
    return status == TUTTI_OK ? put : status;
}

tutti_status tutti__far_pass_on(tutti_far_pass *pass, const char *input, char *output, size_t size)
{
    if (pass->out && size > 0)
        memcpy(pass->out->at, input, size);
    if (!pass->in)
        return TUTTI_OK;
    TUTTI_TRY(tutti__device_event_wait(pass->event));
    if (size > 0)
        memcpy(output, pass->from, size);
    return TUTTI_OK;
}

void tutti__far_pass_end(tutti_far_pass *pass)
{
    if (pass->out)
        delivery_end(pass->out);
    tutti_tensor_release(pass->in);
    tutti__device_event_release(pass->event);
    *pass = (tutti_far_pass){0};
}
