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
    f->drive.told = f->committing = f->failed = false;
    f->stop = false;
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
    tutti_far_frame *f = frame_of(drive);
    tutti__far_streams_fence(&f->executable->device->streams);
    f->fence = tutti__far_streams_now(&f->executable->device->streams);
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
    tutti_tensor *source = tutti__tensor_source(value, &offset, NULL);
    if (source && source->buffer->memory == &memory->memory) {
        f->sources[input] = source;
        TUTTI_TRY(tutti__far_find(memory, tutti_tensor_data(source), 0, &region, &at));
        f->fed[input] = region->read + at + offset;
        return TUTTI_OK;
    }
    tutti_tensor_release(source);
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

static const tutti_drive_table far_drive = {.fence = far_fence,
                                            .bind = far_bind,
                                            .feed = far_feed,
                                            .launch = far_launch,
                                            .call_on_host = tutti__far_call_on_host,
                                            .pass = tutti__far_pass,
                                            .settle = far_settle,
                                            .take = tutti__far_take_result};

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
