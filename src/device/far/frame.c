/* frame.c: making, lending and ending frames. Views that never change are filled here; execute.c
 * fills in the pointers that depend on the run. */
#include "device/far/frame.h"

#include <stdlib.h>

static tutti_status allocate_dynamic(const tutti_kernel_call *call, int index, int rank,
                                     const int64_t *dims)
{
    const tutti_far_frame *f =
        (const tutti_far_frame *)(const void *)((const char *)call->context -
                                                offsetof(tutti_far_frame, drive.context));
    return tutti__program_allocate(f->executable->program, (size_t)(call - f->drive.calls), call,
                                   index, rank, dims);
}

static tutti_view planned_view(const tutti_program *program, int32_t value)
{
    const tutti_type *type = program->values[value].type;
    return (tutti_view){.dtype = type->dtype, .rank = type->rank, .dims = type->dims};
}

static void fill_calls(tutti_far_frame *f)
{
    const tutti_program *program = f->executable->program;
    tutti_view *view = f->views;
    for (size_t i = 0; i < program->instruction_count; i++) {
        const tutti_instruction *instruction = &program->instructions[i];
        f->drive.calls[i] = tutti__instruction_call(program, instruction, view, &f->drive.context);
        for (int k = 0; k < instruction->input_count; k++)
            *view++ = planned_view(program, instruction->inputs[k]);
        for (int k = 0; k < instruction->output_count; k++)
            *view++ = planned_view(program, instruction->outputs[k]);
    }
}

static tutti_status find_constants(tutti_far_frame *f)
{
    const tutti_far_executable *e = f->executable;
    for (int i = 0; i < e->program->constant_count; i++) {
        const tutti_far_region *region;
        size_t offset;
        if (!e->constants[i])
            continue;
        TUTTI_TRY(tutti__far_find(e->device->memory, tutti_tensor_data(e->constants[i]), 0, &region,
                                  &offset));
        f->constants[i] = region->read + offset;
    }
    return TUTTI_OK;
}

static bool make_arrays(tutti_far_frame *f)
{
    const tutti_program *program = f->executable->program;
    size_t views = 1, instructions = program->instruction_count + 1;
    for (size_t i = 0; i < program->instruction_count; i++)
        views +=
            (size_t)(program->instructions[i].input_count + program->instructions[i].output_count);
    f->drive.calls = calloc(instructions, sizeof *f->drive.calls);
    f->views = calloc(views, sizeof *f->views);
    f->drive.snapshots = calloc((size_t)program->variable_count + 1, sizeof *f->drive.snapshots);
    f->variables = calloc((size_t)program->variable_count + 1, sizeof *f->variables);
    f->written = calloc((size_t)program->variable_count + 1, sizeof *f->written);
    f->fed = calloc((size_t)program->input_count + 1, sizeof *f->fed);
    f->sources = calloc((size_t)program->input_count + 1, sizeof *f->sources);
    f->constants = calloc((size_t)program->constant_count + 1, sizeof *f->constants);
    f->drive.context.dynamic =
        calloc((size_t)program->dynamic_count + 1, sizeof *f->drive.context.dynamic);
    f->done = calloc(instructions, sizeof *f->done);
    f->known = calloc(instructions, sizeof *f->known);
    f->passes = calloc(instructions, sizeof *f->passes);
    return f->drive.calls && f->views && f->drive.snapshots && f->variables && f->written &&
           f->fed && f->sources && f->constants && f->drive.context.dynamic && f->done &&
           f->known && f->passes;
}

tutti_status tutti__far_frame_create(tutti_far_executable *executable, tutti_far_frame **ret)
{
    tutti_far_frame *f = calloc(1, sizeof *f);
    if (!f)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a run");
    f->executable = executable;
    f->drive.context.device = executable->program->device;
    f->drive.context.host.allocate = allocate_dynamic;
    f->drive.context.host.take = tutti__far_take;
    f->drive.context.host.give = tutti__far_give;
    f->drive.program = executable->program;
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_mutex_init(&f->lock, NULL);
    pthread_cond_init(&f->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    tutti_status status =
        make_arrays(f) ? TUTTI_OK : tutti_fail(TUTTI_NO_MEMORY, "no memory for a run");
    if (status == TUTTI_OK)
        status = tutti__far_region_create(executable->device->memory, executable->layout.size,
                                          TUTTI_FAR_STREAMS, &f->memory);
    if (status == TUTTI_OK)
        status = find_constants(f);
    if (status != TUTTI_OK) {
        tutti__far_frame_destroy(f);
        return status;
    }
    fill_calls(f);
    *ret = f;
    return TUTTI_OK;
}

void tutti__far_frame_destroy(tutti_far_frame *f)
{
    if (!f)
        return;
    tutti__far_region_destroy(f->executable->device->memory, f->memory);
    free(f->drive.calls);
    free(f->views);
    free(f->drive.snapshots);
    free(f->variables);
    free(f->written);
    free(f->fed);
    free(f->sources);
    free(f->constants);
    free(f->drive.context.dynamic);
    free(f->done);
    free(f->known);
    free(f->passes);
    pthread_cond_destroy(&f->changed);
    pthread_mutex_destroy(&f->lock);
    free(f);
}

enum { MOST_AHEAD = 2 };

tutti_status tutti__far_lease(tutti_far_executable *e, tutti_far_frame **ret)
{
    pthread_mutex_lock(&e->lock);
    while (!e->frames && e->ahead >= MOST_AHEAD)
        pthread_cond_wait(&e->freed, &e->lock);
    tutti_far_frame *f = e->frames;
    if (f)
        e->frames = f->next;
    pthread_mutex_unlock(&e->lock);
    if (!f)
        return tutti__far_frame_create(e, ret);
    *ret = f;
    return TUTTI_OK;
}

/* Nothing uses it any more. */
static void set_free(tutti_far_frame *f)
{
    tutti_far_executable *e = f->executable;
    tutti__program_forget(e->program, f->drive.calls, &f->drive.context);
    pthread_mutex_lock(&e->lock);
    e->ahead--;
    f->next = e->frames;
    e->frames = f;
    pthread_cond_broadcast(&e->freed);
    pthread_mutex_unlock(&e->lock);
}

void tutti__far_leave(tutti_far_frame *f)
{
    tutti__tensors_drop(f->executable->program->input_count, f->sources);
    pthread_mutex_lock(&f->executable->lock);
    f->executable->ahead++;
    pthread_mutex_unlock(&f->executable->lock);
    pthread_mutex_lock(&f->lock);
    while (f->telling > 0)
        pthread_cond_wait(&f->changed, &f->lock);
    f->run = NULL;
    f->drive.context.host.cancelled = NULL;
    bool idle = f->running == 0;
    pthread_mutex_unlock(&f->lock);
    if (idle)
        set_free(f);
}

tutti_status tutti__far_put(tutti_far_frame *f, int stream, bool alone,
                            void (*run)(void *context, int stream, int64_t index), void *context,
                            int64_t index)
{
    pthread_mutex_lock(&f->lock);
    f->running++;
    pthread_mutex_unlock(&f->lock);
    tutti_status status =
        tutti__far_streams_put(&f->executable->device->streams, stream, alone,
                               &(tutti_far_work){.run = run, .context = context, .index = index});
    if (status != TUTTI_OK)
        tutti__far_done(f);
    return status;
}

void tutti__far_done(tutti_far_frame *f)
{
    pthread_mutex_lock(&f->lock);
    bool idle = --f->running == 0 && !f->run;
    pthread_cond_broadcast(&f->changed);
    pthread_mutex_unlock(&f->lock);
    if (idle)
        set_free(f);
}
