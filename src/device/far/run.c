/* run.c: what tutti__drive asks of a far device: its run's memory, what is put on its streams. */
#include <stdlib.h>
#include <string.h>

#include "base/params.h"
#include "device/far/frame.h"
#include "tensor/pending.h"

static const tutti_param seed_param =
    TUTTI_PARAM("FAR_SEED", "0", "seed of the delays on far devices");
static const tutti_param delay_param = TUTTI_PARAM(
    "FAR_DELAY_US", "50", "longest delay before an instruction on far devices, in microseconds");

static tutti_far_frame *frame_of(tutti_drive *drive)
{
    return (tutti_far_frame *)drive;
}

static tutti_status read_settings(tutti_far_frame *f)
{
    enum { MOST_US = 60 * 1000000 };
    int64_t seed, delay;
    TUTTI_TRY(tutti__param_in(&seed_param, 0, INT64_MAX, &seed));
    TUTTI_TRY(tutti__param_in(&delay_param, 0, MOST_US, &delay));
    f->seed = (uint64_t)seed;
    f->delay_ns = delay * 1000;
    return TUTTI_OK;
}

static void reset(tutti_far_frame *f, tutti_run *run)
{
    f->drive.run = f->drive.context.run = run;
    f->drive.told = f->committing = f->failed = f->stop = false;
    f->drive.context.host.cancelled = run->watched; /* for kernels on the host */
    f->id = run->id;
    memset(f->now, 0, sizeof f->now);
    memset(f->last, 0xff, sizeof f->last);
    memset(f->done, 0, f->executable->program->instruction_count * sizeof *f->done);
    memset(f->fed, 0, (size_t)f->executable->program->input_count * sizeof *f->fed);
    pthread_mutex_lock(&f->lock);
    f->run = run;
    pthread_mutex_unlock(&f->lock);
}

static void far_fence(tutti_drive *drive)
{
    tutti__far_streams_fence(&frame_of(drive)->executable->device->streams);
}

static tutti_status far_bind(tutti_drive *drive, int v, tutti_tensor *value, bool written)
{
    tutti_far_frame *f = frame_of(drive);
    const tutti_far_region *region;
    size_t offset;
    tutti_far_place place = {0};
    if (value) {
        place.device = tutti_tensor_data(value);
        TUTTI_TRY(
            tutti__far_find(f->executable->device->memory, place.device, 0, &region, &offset));
        place.read = region->read + offset;
        place.write = written ? region->write + offset : NULL;
    }
    f->written[v] = place;
    if (!written)
        f->variables[v] = place;
    return TUTTI_OK;
}

/* An input that lies on the device is taken from there; one of the host is copied into the memory
 * of the run, which nothing uses yet. */
static tutti_status far_feed(tutti_drive *drive, int input, tutti_tensor *value)
{
    tutti_far_frame *f = frame_of(drive);
    const tutti_program *program = drive->program;
    tutti_far_memory *memory = f->executable->device->memory;
    const tutti_far_region *region;
    size_t offset, at;
    f->sources[input] = tutti__tensor_source(value, &memory->memory, &offset);
    if (f->sources[input]) {
        TUTTI_TRY(tutti__far_find(memory, tutti_tensor_data(f->sources[input]), 0, &region, &at));
        f->fed[input] = region->read + at + offset;
        return TUTTI_OK;
    }
    for (size_t v = 0; v < program->value_count; v++) {
        const tutti_program_value *to = &program->values[v];
        if (to->space == TUTTI_IN_INPUT && to->slot == (uint32_t)input && to->root == (int32_t)v &&
            to->size > 0 && tutti__far_layout_offset(&f->executable->layout, to, &offset))
            memcpy(f->memory->write + offset, tutti_tensor_data(value), to->size);
    }
    return TUTTI_OK;
}

static tutti_status far_launch(tutti_drive *drive, size_t instruction)
{
    tutti_far_frame *f = frame_of(drive);
    int stream = drive->program->instructions[instruction].stream;
    if (instruction == drive->program->commit_at) {
        pthread_mutex_lock(&f->lock);
        f->committing = true;
        pthread_mutex_unlock(&f->lock);
    }
    drive->calls[instruction].deadline = drive->run->deadline;
    f->last[stream] = (int32_t)instruction;
    return tutti__far_put(f, stream, false, tutti__far_execute, f, (int64_t)instruction);
}

/* Past the deadline what still runs is left to itself: those that block have the same deadline. */
static tutti_status far_settle(tutti_drive *drive)
{
    tutti_far_frame *f = frame_of(drive);
    bool in_time = true;
    pthread_mutex_lock(&f->lock);
    while (f->running > 0 && in_time)
        in_time = tutti__far_wait(f);
    size_t left = f->running;
    bool stopped = f->stop;
    pthread_mutex_unlock(&f->lock);
    if (left > 0)
        tutti__far_fail(f, tutti_fail(TUTTI_DEADLINE,
                                      "%s: %zu instructions had not finished at the deadline",
                                      drive->context.device->name, left));
    if (f->failed)
        return tutti__error_restore(&f->error);
    return stopped && !drive->run->cancelled
               ? tutti_fail(TUTTI_CANCELLED, "%s: the run was cancelled",
                            drive->context.device->name)
               : TUTTI_OK;
}

/* ---- results ---- */

/* A copy of a result, on its way; the event of whoever waits for it. */
typedef struct delivery {
    tutti_device_event event;
    tutti_far_frame *frame; /* until it has come */
    tutti_far_streams *streams;
    tutti_far_moment moment; /* when it has come */
    tutti_tensor *to;        /* until it has come */
    const char *from;
    size_t size;
    tutti_error error; /* what failed meanwhile */
} delivery;

static tutti_status delivery_wait(tutti_device_event *event)
{
    delivery *d = (delivery *)event;
    tutti__far_streams_wait(d->streams, &d->moment);
    return tutti__error_restore(&d->error);
}

static void delivery_destroy(tutti_device_event *event)
{
    free(event);
}

static const tutti_device_event_table delivery_table = {delivery_wait, delivery_destroy};

static void deliver(void *context, int stream, int64_t index)
{
    delivery *d = context;
    tutti_far_frame *f = d->frame;
    const tutti_far_region *region;
    size_t offset;
    TUTTI_UNUSED(stream);
    TUTTI_UNUSED(index);
    pthread_mutex_lock(&f->lock);
    if (f->failed)
        d->error = f->error;
    pthread_mutex_unlock(&f->lock);
    if (d->error.status == TUTTI_OK && d->size > 0 &&
        tutti__far_find(f->executable->device->memory, tutti_tensor_data(d->to), 0, &region,
                        &offset) == TUTTI_OK)
        memcpy(region->write + offset, d->from, d->size);
    tutti_tensor_release(d->to);
    tutti__device_event_release(&d->event);
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

static tutti_status send_out(tutti_far_frame *f, delivery *d)
{
    atomic_init(&d->event.references, 2);
    tutti_tensor_retain(d->to);
    tutti_status status = tutti__far_put(f, 0, true, deliver, d, 0);
    if (status == TUTTI_OK) {
        d->moment = tutti__far_streams_now(d->streams);
    } else {
        atomic_store(&d->event.references, 1);
        tutti_tensor_release(d->to);
    }
    return status;
}

static tutti_status far_take(tutti_drive *drive, int result, tutti_tensor **ret)
{
    tutti_far_frame *f = frame_of(drive);
    const tutti_program_value *value =
        &drive->program->values[drive->program->results[result].value];
    tutti_tensor *to = NULL;
    delivery *d = calloc(1, sizeof *d);
    if (!d)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a result");
    tutti_status status = result_from(f, result, &d->from);
    if (status == TUTTI_OK)
        status = tutti__tensor_in(&f->executable->device->memory->memory, value->type, &to);
    d->event.table = &delivery_table;
    atomic_init(&d->event.references, 1);
    d->frame = f;
    d->streams = &f->executable->device->streams;
    d->to = to;
    d->size = value->size;
    if (status == TUTTI_OK)
        status = send_out(f, d);
    if (status == TUTTI_OK)
        status = tutti__tensor_awaited(to, &d->event, ret);
    tutti_tensor_release(to);
    tutti__device_event_release(&d->event);
    return status;
}

static const tutti_drive_table far_drive = {.fence = far_fence,
                                            .bind = far_bind,
                                            .feed = far_feed,
                                            .launch = far_launch,
                                            .call_on_host = tutti__far_call_on_host,
                                            .settle = far_settle,
                                            .take = far_take};

tutti_status tutti__far_enqueue(tutti_executable *executable, tutti_run *run,
                                tutti_tensor *const *inputs, tutti_tensor **ret_results)
{
    tutti_far_frame *f;
    tutti_status status = tutti__far_lease((tutti_far_executable *)executable, &f);
    if (status != TUTTI_OK)
        return run->commit_begin(run, status);
    reset(f, run);
    f->drive.table = &far_drive;
    status = read_settings(f);
    if (status == TUTTI_OK)
        status = tutti__drive(&f->drive, run, inputs, ret_results);
    else
        status = run->commit_begin(run, status);
    tutti__far_leave(f);
    return status;
}
