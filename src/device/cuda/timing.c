/* timing.c: when each instruction of a run began and ended on the GPU: for the trace, and for
 * tables of where a step's time goes. A stretch of instructions is enqueued while the stream is
 * held, so that no kernel waits for the host. */
#include <math.h>
#include <stdlib.h>

#include "device/cuda/run.h"
#include "program/trace.h"

#define SECONDS_TO_LAUNCH 15e-6 /* one instruction, at most, as a rule */

tutti_status tutti__gpu_time(tutti_gpu_executable *e)
{
    size_t count = e->program->instruction_count;
    double *seconds = calloc(count + 1, sizeof *seconds);
    if (!seconds)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for times");
    for (size_t i = 0; i < count; i++)
        seconds[i] = INFINITY;
    pthread_mutex_lock(&e->lock);
    free(e->seconds);
    e->seconds = seconds;
    e->timed = true;
    pthread_mutex_unlock(&e->lock);
    return TUTTI_OK;
}

tutti_status tutti__gpu_timing_start(tutti_gpu_frame *f)
{
    if (!f->executable->timed && !tutti__trace_path()[0])
        return TUTTI_OK;
    f->marks = calloc(2 * f->drive.program->instruction_count + 1, sizeof *f->marks);
    return f->marks ? TUTTI_OK : tutti_fail(TUTTI_NO_MEMORY, "no memory for times");
}

void tutti__gpu_timing_hold(tutti_gpu_frame *f, size_t instructions)
{
    const tutti_gpu_device *device = f->executable->device;
    if (device->table->hold(device->gpu, (double)instructions * SECONDS_TO_LAUNCH) != TUTTI_OK)
        tutti__error_forget();
}

void tutti__gpu_timing_mark(tutti_gpu_frame *f, size_t i, bool after)
{
    const tutti_gpu_device *device = f->executable->device;
    if (f->marks && !f->marks[2 * i + after] &&
        device->table->mark(device->gpu, &f->marks[2 * i + after]) != TUTTI_OK)
        tutti__error_forget();
}

/* Its ticks on the host's clock follow from the end of all of them, which is now. */
static void note(tutti_gpu_frame *f, size_t i, void *last, uint64_t now)
{
    tutti_gpu_executable *e = f->executable;
    tutti_trace *trace = tutti__trace_mine();
    void *from = f->marks[2 * i], *to = f->marks[2 * i + 1];
    double took, before;
    if (!from || !to || e->device->table->between(from, to, &took) != TUTTI_OK ||
        e->device->table->between(to, last, &before) != TUTTI_OK)
        return;
    if (e->seconds && took < e->seconds[i])
        e->seconds[i] = took;
    uint64_t end = now - (uint64_t)(before * 1e9 / tutti__tick_ns());
    if (trace)
        tutti__trace_add(trace, f->drive.program->instructions[i].traced, e->lane,
                         end - (uint64_t)(took * 1e9 / tutti__tick_ns()), end);
}

void tutti__gpu_timing_end(tutti_gpu_frame *f)
{
    tutti_gpu_executable *e = f->executable;
    const tutti_cuda_gpu_table *table = e->device->table;
    size_t count = f->drive.program->instruction_count;
    void *last = NULL;
    tutti_error before;
    if (!f->marks)
        return;
    tutti__error_capture(TUTTI_OK, &before);
    bool whole =
        table->mark(e->device->gpu, &last) == TUTTI_OK && table->finish(e->device->gpu) == TUTTI_OK;
    uint64_t now = tutti__ticks();
    pthread_mutex_lock(&e->lock);
    for (size_t i = 0; i < count && whole; i++)
        note(f, i, last, now);
    pthread_mutex_unlock(&e->lock);
    for (size_t i = 0; i < 2 * count; i++)
        if (f->marks[i])
            table->forget(f->marks[i]);
    if (last)
        table->forget(last);
    free(f->marks);
    f->marks = NULL;
    tutti__error_restore(&before);
}
