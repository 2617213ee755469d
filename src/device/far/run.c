/* run.c: a run of a program. It copies its inputs into the device's memory, launches everything up
 * to the commit point, waits, copies results out, launches the commit, waits, and copies the rest
 * out. */
#include <stdlib.h>
#include <string.h>

#include "base/params.h"
#include "device/far/frame.h"

static const tutti_param seed_param =
    TUTTI_PARAM("FAR_SEED", "0", "seed of the delays on far devices");
static const tutti_param delay_param = TUTTI_PARAM(
    "FAR_DELAY_US", "50", "longest delay before an instruction on far devices, in microseconds");

static tutti_status lease(tutti_far_executable *e, tutti_far_frame **ret)
{
    pthread_mutex_lock(&e->lock);
    tutti_far_frame *f = e->frames;
    if (f)
        e->frames = f->next;
    pthread_mutex_unlock(&e->lock);
    if (!f)
        return tutti__far_frame_create(e, ret);
    *ret = f;
    return TUTTI_OK;
}

static void give_back(tutti_far_executable *e, tutti_far_frame *f)
{
    pthread_mutex_lock(&e->lock);
    f->next = e->frames;
    e->frames = f;
    pthread_mutex_unlock(&e->lock);
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
    f->run = f->context.run = run;
    f->context.host.cancelled = run->watched;
    f->committing = f->failed = f->told = false;
    f->running = 0;
    memset(f->now, 0, sizeof f->now);
    memset(f->done, 0, f->executable->program->instruction_count * sizeof *f->done);
}

static tutti_status see_variable(tutti_far_frame *f, int v, const tutti_tensor *value,
                                 bool writable)
{
    const tutti_far_region *region;
    size_t offset;
    f->variables[v] = (tutti_far_variable){0};
    if (!value)
        return TUTTI_OK;
    void *device = tutti_tensor_data(value);
    TUTTI_TRY(tutti__far_find(f->executable->device->memory, device, 0, &region, &offset));
    f->variables[v] = (tutti_far_variable){.device = device,
                                           .read = region->read + offset,
                                           .write = writable ? region->write + offset : NULL};
    return TUTTI_OK;
}

static tutti_status copy_inputs(tutti_far_frame *f, tutti_tensor *const *inputs)
{
    const tutti_program *program = f->executable->program;
    const tutti_memory *memory = &f->executable->device->memory->memory;
    for (size_t v = 0; v < program->value_count; v++) {
        const tutti_program_value *value = &program->values[v];
        size_t offset;
        if (value->space == TUTTI_IN_INPUT && value->root == (int32_t)v && inputs[value->slot] &&
            tutti__far_layout_offset(&f->executable->layout, value, &offset))
            TUTTI_TRY(memory->copy_in(memory->self, f->memory->device + offset,
                                      tutti_tensor_data(inputs[value->slot]), value->size));
    }
    return TUTTI_OK;
}

static tutti_status run_bind(tutti_far_frame *f, tutti_tensor *const *inputs)
{
    const tutti_program *program = f->executable->program;
    TUTTI_TRY(tutti__program_snapshot(program, f->run, f->snapshots));
    for (int v = 0; v < program->variable_count; v++)
        TUTTI_TRY(see_variable(f, v, f->snapshots[v], false));
    return copy_inputs(f, inputs);
}

static void launch(tutti_far_frame *f, size_t from, size_t to)
{
    pthread_mutex_lock(&f->lock);
    f->running += to - from;
    pthread_mutex_unlock(&f->lock);
    for (size_t i = from; i < to; i++)
        tutti__far_streams_launch(f->streams, f->executable->program->instructions[i].stream);
}

/* Past the deadline the kernels that still run are waited for without one: their memory must not go
 * while they use it, and those that block have the same deadline. */
static tutti_status run_finish(tutti_far_frame *f)
{
    pthread_mutex_lock(&f->lock);
    bool in_time = true;
    while (f->running > 0 && in_time)
        in_time = tutti__far_wait(f);
    size_t left = f->running;
    pthread_mutex_unlock(&f->lock);
    if (left > 0)
        tutti__far_fail(f, tutti_fail(TUTTI_DEADLINE,
                                      "%s: %zu instructions had not finished at the deadline",
                                      f->context.device->name, left));
    pthread_mutex_lock(&f->lock);
    while (f->running > 0)
        pthread_cond_wait(&f->changed, &f->lock);
    pthread_mutex_unlock(&f->lock);
    return f->failed ? tutti__error_restore(&f->error) : TUTTI_OK;
}

/* Inputs and constants are still on the host; everything else is copied out. */
static tutti_status copy_value(tutti_far_frame *f, const tutti_program_value *value,
                               tutti_tensor *const *inputs, tutti_tensor *to)
{
    const tutti_memory *memory = &f->executable->device->memory->memory;
    size_t offset;
    if (value->space == TUTTI_IN_INPUT || value->space == TUTTI_IN_CONSTANT) {
        const tutti_tensor *from = value->space == TUTTI_IN_INPUT
                                       ? inputs[value->slot]
                                       : f->executable->program->constants[value->slot];
        if (value->size > 0)
            memcpy(tutti_tensor_data(to), tutti_tensor_data(from), value->size);
        return tutti__tensor_own_strings(to);
    }
    if (value->space == TUTTI_IN_VARIABLE)
        return memory->copy_out(memory->self, tutti_tensor_data(to),
                                f->variables[value->slot].device, value->size);
    if (!tutti__far_layout_offset(&f->executable->layout, value, &offset))
        return tutti_fail(TUTTI_INTERNAL, "%s: a result lies in no memory of the run",
                          f->context.device->name);
    return memory->copy_out(memory->self, tutti_tensor_data(to), f->memory->device + offset,
                            value->size);
}

static tutti_status copy_results(tutti_far_frame *f, bool after_commit, tutti_tensor *const *inputs,
                                 tutti_tensor **results)
{
    const tutti_program *program = f->executable->program;
    for (int i = 0; i < program->result_count; i++) {
        const tutti_program_value *value = &program->values[program->results[i].value];
        if (program->results[i].after_commit != after_commit)
            continue;
        if (value->space == TUTTI_IN_DYNAMIC) {
            TUTTI_TRY(tutti__program_dynamic(program, &f->context, i, &results[i]));
            continue;
        }
        TUTTI_TRY(tutti__tensor_in(tutti__host_memory(), value->type, &results[i]));
        TUTTI_TRY(copy_value(f, value, inputs, results[i]));
    }
    return TUTTI_OK;
}

/* All streams have stopped and stream 0 goes on alone: it knows of everything. */
static tutti_status commit(tutti_far_frame *f)
{
    const tutti_program *program = f->executable->program;
    f->committing = true;
    for (int v = 0; v < program->variable_count; v++) {
        tutti_tensor *value;
        if (!program->variables[v].updated)
            continue;
        tutti_tensor_release(f->snapshots[v]);
        f->snapshots[v] = NULL;
        TUTTI_TRY(tutti__piece_write(f->run->state, program->variables[v].piece,
                                     program->variables[v].keep, &value));
        TUTTI_TRY(see_variable(f, v, value, true));
    }
    for (int s = 0; s < TUTTI_FAR_STREAMS; s++)
        f->now[0][s] = (int32_t)program->commit_at;
    launch(f, program->commit_at, program->instruction_count);
    return run_finish(f);
}

static tutti_status run_frame(tutti_far_frame *f, tutti_run *run, tutti_tensor *const *inputs,
                              tutti_tensor **results)
{
    tutti_status status = run_bind(f, inputs);
    if (status == TUTTI_OK) {
        launch(f, 0, f->executable->program->commit_at);
        status = run_finish(f);
    }
    if (status == TUTTI_OK)
        status = copy_results(f, false, inputs, results);
    if (!f->told)
        status = run->commit_begin(run, status);
    if (status != TUTTI_OK)
        return status;
    status = commit(f);
    if (status == TUTTI_OK)
        status = copy_results(f, true, inputs, results);
    run->commit_end(run);
    return status;
}

static tutti_status run_leased(tutti_far_executable *e, tutti_far_frame *f, tutti_run *run,
                               tutti_tensor *const *inputs, tutti_tensor **results)
{
    reset(f, run);
    tutti_status status = read_settings(f);
    if (status == TUTTI_OK)
        status = tutti__far_streams_lease(&e->device->streams, tutti__far_execute, f, &f->streams);
    if (status != TUTTI_OK)
        return run->commit_begin(run, status);
    status = run_frame(f, run, inputs, results);
    tutti__far_streams_return(&e->device->streams, f->streams);
    tutti__tensors_drop(e->program->variable_count, f->snapshots);
    tutti__program_forget(e->program, f->calls, &f->context);
    return status;
}

tutti_status tutti__far_run(tutti_executable *executable, tutti_run *run,
                            tutti_tensor *const *inputs, tutti_tensor **ret_results)
{
    tutti_far_executable *e = (tutti_far_executable *)executable;
    int count = e->program->result_count;
    tutti_tensor **results = calloc((size_t)count + 1, sizeof *results);
    tutti_far_frame *f;
    tutti_status status =
        results ? lease(e, &f) : tutti_fail(TUTTI_NO_MEMORY, "no memory for %d results", count);
    if (status == TUTTI_OK) {
        status = run_leased(e, f, run, inputs, results);
        give_back(e, f);
    } else {
        status = run->commit_begin(run, status);
    }
    if (status == TUTTI_OK)
        memcpy(ret_results, results, (size_t)count * sizeof *results);
    else if (results)
        tutti__tensors_drop(count, results);
    free(results);
    return status;
}
