/* target.c: far devices: CPU kernels behind a memory that host code cannot touch, on asynchronous
 * streams with random delays. For tests: a real accelerator must need only its own folder. */
#include <stdio.h>
#include <stdlib.h>

#include "device/cpu/gemm/tile.h"
#include "device/far/frame.h"
#include "program/trace.h"

/* ---- executables ---- */

static void far_destroy(tutti_executable *executable)
{
    tutti_far_executable *e = (tutti_far_executable *)executable;
    pthread_mutex_lock(&e->lock);
    while (e->ahead > 0)
        pthread_cond_wait(&e->freed, &e->lock);
    pthread_mutex_unlock(&e->lock);
    while (e->frames) {
        tutti_far_frame *next = e->frames->next;
        tutti__far_frame_destroy(e->frames);
        e->frames = next;
    }
    if (e->constants)
        tutti__tensors_drop(e->program->constant_count, e->constants);
    tutti__program_destroy(e->program);
    tutti__far_layout_free(&e->layout);
    pthread_cond_destroy(&e->freed);
    pthread_mutex_destroy(&e->lock);
    free(e->constants);
    free(e);
}

static size_t far_memory(const tutti_executable *executable)
{
    return ((const tutti_far_executable *)executable)->layout.size;
}

static void far_usage(const tutti_executable *executable, tutti_usage *usage)
{
    tutti__program_usage(((const tutti_far_executable *)executable)->program, usage);
}

static void far_print(const tutti_executable *executable, tutti_text *text)
{
    tutti__program_print(((const tutti_far_executable *)executable)->program, text);
}

static const tutti_executable_table far_table = {.enqueue = tutti__far_enqueue,
                                                 .destroy = far_destroy,
                                                 .memory = far_memory,
                                                 .usage = far_usage,
                                                 .print = far_print};

tutti_program *tutti__far_program(tutti_executable *executable)
{
    return ((tutti_far_executable *)executable)->program;
}

static tutti_status fill_executable(tutti_far_executable *e, tutti_device *device,
                                    const tutti_partition *partition)
{
    TUTTI_TRY(tutti__program_create(device, partition, &e->program));
    e->executable.shadows = e->program->shadows;
    for (int s = 0; s < TUTTI_FAR_STREAMS; s++) {
        char lane[96];
        snprintf(lane, sizeof lane, "%s stream %d", device->name, s);
        e->lanes[s] = tutti__trace_name(lane);
    }
    TUTTI_TRY(tutti__far_layout_make(e->program, &e->layout));
    return tutti__drive_constants(e->program, &e->device->memory->memory, &e->constants);
}

static tutti_status far_compile(tutti_device *device, const tutti_partition *partition,
                                tutti_executable **ret)
{
    TUTTI_TRY(tutti__gemm_check_build());
    tutti_far_executable *e = calloc(1, sizeof *e);
    if (!e)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a program");
    e->executable.table = &far_table;
    e->device = device->self;
    pthread_mutex_init(&e->lock, NULL);
    pthread_cond_init(&e->freed, NULL);
    tutti_status status = fill_executable(e, device, partition);
    if (status != TUTTI_OK)
        far_destroy(&e->executable);
    else
        *ret = &e->executable;
    return status;
}

/* ---- devices ---- */

static int far_count(void)
{
    return -1;
}

static tutti_status far_open(tutti_device *device)
{
    tutti_far_device *self = calloc(1, sizeof *self);
    if (!self)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for device %s", device->name);
    tutti_status status = tutti__far_memory_create(device->name, &self->streams, &self->memory);
    if (status != TUTTI_OK) {
        free(self);
        return status;
    }
    tutti__far_streams_init(&self->streams);
    pthread_mutex_init(&self->lock, NULL);
    device->memory = &self->memory->memory;
    device->self = self;
    return TUTTI_OK;
}

static void far_close(tutti_device *device)
{
    tutti_far_device *self = device->self;
    tutti__far_streams_end(&self->streams);
    tutti__far_memory_destroy(self->memory);
    pthread_mutex_destroy(&self->lock);
    free(self);
}

static tutti_status far_finish(tutti_device *device)
{
    tutti_far_device *self = device->self;
    tutti_far_moment now = tutti__far_streams_now(&self->streams);
    tutti__far_streams_wait(&self->streams, &now);
    pthread_mutex_lock(&self->lock);
    tutti_error failed = self->failed;
    self->failed = (tutti_error){0};
    pthread_mutex_unlock(&self->lock);
    return tutti__error_restore(&failed);
}

const tutti_target tutti_target_far = {
    .name = "far",
    .doc =
        "for tests: CPU kernels behind a separate memory, on asynchronous streams (TUTTI_FAR_SEED)",
    .kernels = "cpu",
    .streams = TUTTI_FAR_STREAMS,
    .alignment = TUTTI_FAR_ALIGNMENT,
    .count = far_count,
    .open = far_open,
    .close = far_close,
    .finish = far_finish,
    .supports = tutti__without_strings,
    .compile = far_compile,
};
