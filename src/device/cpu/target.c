/* target.c: the CPU as a device: logical devices that split the cores, and a runner that calls one
 * kernel after the other on the thread of the caller.
 *
 * A run leases a frame: an arena and the kernel calls resolved to pointers into it. Pointers to
 * inputs, results and variables are patched where they changed since the frame's last run; a steady
 * step allocates nothing but its results.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/params.h"
#include "program/program.h"
#include "program/trace.h"

static const tutti_param devices_param =
    TUTTI_PARAM("CPU_DEVICES", "1", "logical CPU devices that split the cores");
static const tutti_param threads_param =
    TUTTI_PARAM("THREADS", "0", "CPU threads; 0 takes all that are granted");
static const tutti_param pin_param = TUTTI_PARAM("PIN", "0", "pin the pool's threads to CPUs");

/* All views that hold one slot's pointer. */
typedef struct patch {
    int count;
    tutti_view **views;
    void *pointer; /* as patched last */
} patch;

typedef struct frame {
    struct frame *next;
    const tutti_program *program;
    void *memory;
    tutti_context context;
    tutti_call *calls;
    tutti_view *views;
    patch *inputs, *results, *variables;
    tutti_tensor **snapshots; /* by variable, during a run */
} frame;

typedef struct cpu_executable {
    tutti_executable executable;
    tutti_program *program;
    uint32_t *names; /* of instructions, for the trace */
    uint32_t lane;
    pthread_mutex_t lock; /* of the list of free frames */
    frame *frames;
} cpu_executable;

static void frame_destroy(frame *f)
{
    if (!f)
        return;
    free(f->memory);
    free(f->calls);
    free(f->views);
    free(f->snapshots);
    free(f->context.dynamic);
    TUTTI_VEC_FREE(&f->context.kept);
    for (int i = 0; f->inputs && f->inputs[i].count >= 0; i++)
        free(f->inputs[i].views);
    free(f->inputs);
    free(f);
}

static patch *patch_of(frame *f, const tutti_program_value *value)
{
    switch (value->space) {
    case TUTTI_IN_INPUT:
        return &f->inputs[value->slot];
    case TUTTI_IN_RESULT:
        return &f->results[value->slot];
    case TUTTI_IN_VARIABLE:
        return &f->variables[value->slot];
    default:
        return NULL;
    }
}

/* Fills one view; false when out of memory. */
static bool resolve(frame *f, const tutti_program *program, int32_t index, tutti_view *view)
{
    const tutti_program_value *value = &program->values[index];
    *view = (tutti_view){
        .dtype = value->type->dtype, .rank = value->type->rank, .dims = value->type->dims};
    if (value->space == TUTTI_IN_ARENA)
        view->data = (char *)f->memory + value->offset;
    else if (value->space == TUTTI_IN_CONSTANT)
        view->data = tutti_tensor_data(program->constants[value->slot]);
    else if (value->space == TUTTI_IN_QUEUE)
        view->data = program->queues[value->slot];
    patch *p = patch_of(f, value);
    if (!p)
        return true;
    if ((p->count & (p->count - 1)) == 0) { /* grows by doubling */
        tutti_view **views =
            realloc(p->views, (size_t)(p->count ? 2 * p->count : 1) * sizeof *views);
        if (!views)
            return false;
        p->views = views;
    }
    p->views[p->count++] = view;
    return true;
}

static bool fill_calls(frame *f, const tutti_program *program)
{
    tutti_view *view = f->views;
    for (size_t i = 0; i < program->instruction_count; i++) {
        const tutti_instruction *instruction = &program->instructions[i];
        f->calls[i] = (tutti_call){.op = instruction->node->op,
                                   .name = instruction->node->name,
                                   .attrs = instruction->node->attrs,
                                   .attr_count = instruction->node->attr_count,
                                   .input_count = instruction->input_count,
                                   .output_count = instruction->output_count,
                                   .inputs = view,
                                   .outputs = view + instruction->input_count,
                                   .plan = instruction->plan,
                                   .pool = program->device->pool,
                                   .context = &f->context};
        for (int k = 0; k < instruction->input_count; k++)
            if (!resolve(f, program, instruction->inputs[k], view++))
                return false;
        for (int k = 0; k < instruction->output_count; k++)
            if (!resolve(f, program, instruction->outputs[k], view++))
                return false;
        if (instruction->workspace >= 0)
            f->calls[i].workspace =
                (char *)f->memory + program->values[instruction->workspace].offset;
    }
    return true;
}

/* A kernel's output whose size depends on data. */
static tutti_status allocate_dynamic(const tutti_call *call, int index, int rank,
                                     const int64_t *dims)
{
    const frame *f =
        (const frame *)(const void *)((const char *)call->context - offsetof(frame, context));
    return tutti__program_allocate(f->program, (size_t)(call - f->calls), call, index, rank, dims);
}

static tutti_status give(const tutti_call *call, int index, tutti_tensor *tensor)
{
    const frame *f =
        (const frame *)(const void *)((const char *)call->context - offsetof(frame, context));
    return tutti__program_give(f->program, (size_t)(call - f->calls), call, index, tensor);
}

static tutti_status frame_create(const tutti_program *program, frame **ret)
{
    frame *f = calloc(1, sizeof *f);
    size_t views = 1,
           patches =
               (size_t)(program->input_count + program->result_count + program->variable_count) + 1;
    for (size_t i = 0; i < program->instruction_count; i++)
        views +=
            (size_t)(program->instructions[i].input_count + program->instructions[i].output_count);
    bool ok = f != NULL;
    if (ok) {
        f->calls = calloc(program->instruction_count + 1, sizeof *f->calls);
        f->views = calloc(views, sizeof *f->views);
        f->inputs = calloc(patches, sizeof *f->inputs);
        f->snapshots = calloc((size_t)program->variable_count + 1, sizeof *f->snapshots);
        f->context.dynamic = calloc((size_t)program->dynamic_count + 1, sizeof *f->context.dynamic);
        f->memory = aligned_alloc(64, (program->arena_size + 127) / 64 * 64);
        ok = f->calls && f->views && f->inputs && f->snapshots && f->context.dynamic && f->memory;
    }
    if (ok) {
        f->results = f->inputs + program->input_count;
        f->variables = f->results + program->result_count;
        f->program = program;
        f->context.device = program->device;
        f->context.host.allocate = allocate_dynamic;
        f->context.host.give = give;
        f->inputs[patches - 1].count = -1; /* ends the list */
        ok = fill_calls(f, program);
    }
    if (!ok) {
        frame_destroy(f);
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a run: the arena takes %zu bytes",
                          program->arena_size);
    }
    *ret = f;
    return TUTTI_OK;
}

static tutti_status lease(cpu_executable *e, frame **ret)
{
    pthread_mutex_lock(&e->lock);
    frame *f = e->frames;
    if (f)
        e->frames = f->next;
    pthread_mutex_unlock(&e->lock);
    if (!f)
        return frame_create(e->program, ret);
    *ret = f;
    return TUTTI_OK;
}

static void give_back(cpu_executable *e, frame *f)
{
    pthread_mutex_lock(&e->lock);
    f->next = e->frames;
    e->frames = f;
    pthread_mutex_unlock(&e->lock);
}

static void set_pointer(patch *p, void *pointer)
{
    if (p->pointer == pointer)
        return;
    for (int i = 0; i < p->count; i++)
        p->views[i]->data = pointer;
    p->pointer = pointer;
}

static tutti_status bind(const tutti_program *program, frame *f, tutti_run *run,
                         tutti_tensor *const *inputs, tutti_tensor **results)
{
    f->context.run = run;
    for (int i = 0; i < program->input_count; i++)
        set_pointer(&f->inputs[i], inputs[i] ? tutti_tensor_data(inputs[i]) : NULL);
    TUTTI_TRY(tutti__program_snapshot(program, run->state, f->snapshots));
    for (int v = 0; v < program->variable_count; v++)
        set_pointer(&f->variables[v], f->snapshots[v] ? tutti_tensor_data(f->snapshots[v]) : NULL);
    for (int i = 0; i < program->result_count; i++) {
        const tutti_program_value *value = &program->values[program->results[i].value];
        if (value->space == TUTTI_IN_DYNAMIC)
            continue;
        TUTTI_TRY(tutti__tensor_in(tutti__host_memory(), value->type, &results[i]));
        if (!program->results[i].copy && value->slot == (uint32_t)i)
            set_pointer(&f->results[i], tutti_tensor_data(results[i]));
    }
    return TUTTI_OK;
}

static tutti_status execute(const cpu_executable *e, frame *f, size_t from, size_t to)
{
    tutti_call *calls = f->calls;
    const tutti_instruction *instructions = e->program->instructions;
    tutti_trace *trace = tutti__trace_mine();
    int64_t deadline = f->context.run->deadline;
    if (!trace) {
        for (size_t i = from; i < to; i++) {
            calls[i].deadline = deadline;
            TUTTI_TRY(instructions[i].run(&calls[i]));
        }
        return TUTTI_OK;
    }
    uint64_t start = tutti__ticks();
    for (size_t i = from; i < to; i++) {
        calls[i].deadline = deadline;
        TUTTI_TRY(instructions[i].run(&calls[i]));
        uint64_t end = tutti__ticks();
        tutti__trace_add(trace, e->names[i], e->lane, start, end);
        start = end;
    }
    return TUTTI_OK;
}

/* Results whose value lies in memory that is not the result's own. */
static tutti_status copy_results(const tutti_program *program, frame *f, bool after_commit,
                                 tutti_tensor *const *inputs, tutti_tensor **results)
{
    for (int i = 0; i < program->result_count; i++) {
        const tutti_program_result *result = &program->results[i];
        const tutti_program_value *value = &program->values[result->value];
        if (result->after_commit != after_commit)
            continue;
        if (value->space == TUTTI_IN_DYNAMIC) {
            results[i] = tutti_tensor_retain(f->context.dynamic[value->slot]);
            TUTTI_TRY(tutti__tensor_own_strings(results[i]));
            continue;
        }
        const void *from = NULL;
        if (value->space == TUTTI_IN_ARENA)
            from = (char *)f->memory + value->offset;
        else if (value->space == TUTTI_IN_CONSTANT)
            from = tutti_tensor_data(program->constants[value->slot]);
        else if (value->space == TUTTI_IN_INPUT)
            from = tutti_tensor_data(inputs[value->slot]);
        else if (value->space == TUTTI_IN_VARIABLE)
            from = f->variables[value->slot].pointer;
        else if (value->space == TUTTI_IN_RESULT && value->slot != (uint32_t)i)
            from = f->results[value->slot].pointer;
        if (from && value->size)
            memcpy(tutti_tensor_data(results[i]), from, value->size);
        if (value->type->dtype == TUTTI_STRING)
            TUTTI_TRY(tutti__tensor_own_strings(results[i]));
    }
    return TUTTI_OK;
}

static tutti_status commit(const cpu_executable *e, frame *f, tutti_run *run)
{
    const tutti_program *program = e->program;
    for (int v = 0; v < program->variable_count; v++) {
        if (!program->variables[v].updated)
            continue;
        tutti_tensor *value;
        tutti_tensor_release(f->snapshots[v]);
        f->snapshots[v] = NULL;
        TUTTI_TRY(tutti__piece_write(run->state, program->variables[v].piece,
                                     program->variables[v].keep, &value));
        set_pointer(&f->variables[v], tutti_tensor_data(value));
    }
    TUTTI_TRY(execute(e, f, program->commit_at, program->instruction_count));
    for (int v = 0; v < program->variable_count; v++) /* kernels moved elements, not their bytes */
        if (program->variables[v].updated &&
            program->variables[v].piece->type.dtype == TUTTI_STRING)
            TUTTI_TRY(tutti__tensor_own_strings(program->variables[v].piece->value));
    return TUTTI_OK;
}

static tutti_status run_frame(const cpu_executable *e, frame *f, tutti_run *run,
                              tutti_tensor *const *inputs, tutti_tensor **results)
{
    const tutti_program *program = e->program;
    tutti_status status = bind(program, f, run, inputs, results);
    if (status == TUTTI_OK)
        status = execute(e, f, 0, program->commit_at);
    if (status == TUTTI_OK)
        status = copy_results(program, f, false, inputs, results);
    status = run->commit_begin(run, status);
    if (status != TUTTI_OK)
        return status;
    status = commit(e, f, run);
    if (status == TUTTI_OK)
        status = copy_results(program, f, true, inputs, results);
    run->commit_end(run);
    return status;
}

static tutti_status cpu_run(tutti_executable *executable, tutti_run *run,
                            tutti_tensor *const *inputs, tutti_tensor **ret_results)
{
    cpu_executable *e = (cpu_executable *)executable;
    tutti_tensor *few[8], **results = few;
    int count = e->program->result_count;
    frame *f;
    if (count > 8 && !(results = malloc((size_t)count * sizeof *results)))
        return run->commit_begin(run,
                                 tutti_fail(TUTTI_NO_MEMORY, "no memory for %d results", count));
    memset(results, 0, (size_t)count * sizeof *results);
    tutti_status status = lease(e, &f);
    if (status == TUTTI_OK) {
        status = run_frame(e, f, run, inputs, results);
        tutti__tensors_drop(e->program->variable_count, f->snapshots);
        tutti__program_forget(e->program, f->calls, &f->context);
        give_back(e, f);
    } else {
        status = run->commit_begin(run, status);
    }
    for (int i = 0; i < count; i++) {
        if (status == TUTTI_OK)
            ret_results[i] = results[i];
        else
            tutti_tensor_release(results[i]);
    }
    if (results != few)
        free(results);
    return status;
}

static void cpu_destroy(tutti_executable *executable)
{
    cpu_executable *e = (cpu_executable *)executable;
    while (e->frames) {
        frame *next = e->frames->next;
        frame_destroy(e->frames);
        e->frames = next;
    }
    tutti__program_destroy(e->program);
    pthread_mutex_destroy(&e->lock);
    free(e->names);
    free(e);
}

static size_t cpu_memory(const tutti_executable *executable)
{
    return ((const cpu_executable *)executable)->program->arena_size;
}

static void cpu_print(const tutti_executable *executable, tutti_text *text)
{
    tutti__program_print(((const cpu_executable *)executable)->program, text);
}

static const tutti_executable_table cpu_table = {
    .run = cpu_run, .destroy = cpu_destroy, .memory = cpu_memory, .print = cpu_print};

static tutti_status cpu_compile(tutti_device *device, const tutti_partition *partition,
                                tutti_executable **ret)
{
    cpu_executable *e = calloc(1, sizeof *e);
    if (!e)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a program");
    tutti_status status = tutti__program_create(device, partition, &e->program);
    if (status != TUTTI_OK) {
        free(e);
        return status;
    }
    e->executable = (tutti_executable){.table = &cpu_table, .hash = e->program->hash};
    pthread_mutex_init(&e->lock, NULL);
    e->lane = tutti__trace_name(device->name);
    e->names = calloc(e->program->instruction_count + 1, sizeof *e->names);
    for (size_t i = 0; e->names && i < e->program->instruction_count; i++)
        e->names[i] = tutti__trace_name(e->program->instructions[i].node->name);
    if (!e->names) {
        cpu_destroy(&e->executable);
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a program");
    }
    *ret = &e->executable;
    return TUTTI_OK;
}

static int cpu_count(void)
{
    int64_t count = tutti__param_int(&devices_param);
    return count < 1 ? 1 : (int)count;
}

/* The cores are dealt out evenly; every logical device has at least one thread. */
static tutti_status cpu_open(tutti_device *device)
{
    int64_t threads = tutti__param_int(&threads_param);
    int cores = threads > 0 ? (int)threads : tutti__cpu_count(), count = cpu_count();
    int first = cores * device->index / count, last = cores * (device->index + 1) / count;
    device->memory = tutti__host_memory();
    return tutti__pool_create(last > first ? last - first : 1,
                              tutti__param_flag(&pin_param) ? first : -1, &device->pool);
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
    .count = cpu_count,
    .open = cpu_open,
    .close = cpu_close,
    .compile = cpu_compile,
};
