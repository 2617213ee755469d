/* target.c: the CPU as a device: logical devices that split the cores. */
#include <stdlib.h>

#include "base/kill.h"
#include "base/params.h"
#include "device/cpu/conv/winograd_setting.h"
#include "device/cpu/frame.h"
#include "device/cpu/gemm/tile.h"
#include "program/debug.h"
#include "program/trace.h"

static const tutti_param devices_param =
    TUTTI_PARAM("CPU_DEVICES", "1", "logical CPU devices that split the cores");
static const tutti_param threads_param =
    TUTTI_PARAM("THREADS", "0", "CPU threads; 0 takes all that are granted");
static const tutti_param pin_param = TUTTI_PARAM("PIN", "0", "pin the pool's threads to CPUs");
static const tutti_param help_param =
    TUTTI_PARAM("HELP", "1", "logical CPU devices that wait help the others meanwhile");

static void cpu_destroy(tutti_executable *executable)
{
    tutti_cpu_executable *e = (tutti_cpu_executable *)executable;
    while (e->frames) {
        tutti_cpu_frame *next = e->frames->next;
        tutti__cpu_frame_destroy(e->frames);
        e->frames = next;
    }
    tutti__program_destroy(e->program);
    pthread_mutex_destroy(&e->lock);
    free(e);
}

static size_t cpu_memory(const tutti_executable *executable)
{
    const tutti_program *program = ((const tutti_cpu_executable *)executable)->program;
    return program->arena_size + program->shared_size;
}

static size_t cpu_memory_bound(const tutti_executable *executable)
{
    const tutti_program *program = ((const tutti_cpu_executable *)executable)->program;
    return program->arena_bound + program->shared_size;
}

static void cpu_print(const tutti_executable *executable, tutti_text *text)
{
    tutti__program_print(((const tutti_cpu_executable *)executable)->program, text);
}

static const tutti_executable_table cpu_table = {.enqueue = tutti__cpu_enqueue,
                                                 .destroy = cpu_destroy,
                                                 .memory = cpu_memory,
                                                 .usage = tutti__cpu_usage,
                                                 .rehearse = tutti__cpu_rehearse,
                                                 .memory_bound = cpu_memory_bound,
                                                 .print = cpu_print};

static tutti_status cpu_compile(tutti_device *device, const tutti_partition *partition,
                                tutti_executable **ret)
{
    TUTTI_TRY(tutti__gemm_check_build());
    tutti_cpu_executable *e = calloc(1, sizeof *e);
    if (!e)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a program");
    tutti_status status = tutti__program_create(device, partition, &e->program);
    if (status != TUTTI_OK) {
        free(e);
        return status;
    }
    e->executable = (tutti_executable){.table = &cpu_table, .shadows = e->program->shadows};
    pthread_mutex_init(&e->lock, NULL);
    e->looks = tutti__debug_nan();
    e->kills = tutti__kill_counts();
    e->lane = tutti__trace_name(device->name);
    *ret = &e->executable;
    return TUTTI_OK;
}

enum { MOST = 4096 };

/* What is no number is refused when a device is opened. */
static int cpu_count(void)
{
    int64_t count;
    return tutti__param_in(&devices_param, 1, MOST, &count) == TUTTI_OK ? (int)count : 1;
}

/* The cores are dealt out evenly; every logical device has at least one thread. */
static tutti_status cpu_open(tutti_device *device)
{
    int64_t threads, devices;
    bool pins, helps;
    TUTTI_TRY(tutti__param_in(&threads_param, 0, MOST, &threads));
    TUTTI_TRY(tutti__param_in(&devices_param, 1, MOST, &devices));
    TUTTI_TRY(tutti__param_switch(&pin_param, &pins));
    TUTTI_TRY(tutti__param_switch(&help_param, &helps));
    TUTTI_TRY(tutti__winograd_check_setting());
    int cores = threads > 0 ? (int)threads : tutti__cpu_count(), count = cpu_count();
    int first = cores * device->index / count, last = cores * (device->index + 1) / count;
    device->memory = tutti__host_memory();
    TUTTI_TRY(
        tutti__pool_create(last > first ? last - first : 1, pins ? first : -1, &device->pool));
    if (count > 1 && helps)
        tutti__pool_welcome(device->pool, count - 1);
    return TUTTI_OK;
}

static void cpu_close(tutti_device *device)
{
    tutti__pool_destroy(device->pool);
}

const tutti_target tutti_target_cpu = {
    .name = "cpu",
    .doc = "this machine's processors; cpu:0, cpu:1, … split the cores (TUTTI_CPU_DEVICES)",
    .kernels = "cpu",
    .streams = 1,
    .alignment = 64,
    .shares = true,
    .count = cpu_count,
    .open = cpu_open,
    .close = cpu_close,
    .compile = cpu_compile,
};
