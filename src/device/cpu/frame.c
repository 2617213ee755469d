/* frame.c: see frame.h. */
#include "device/cpu/frame.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* From the memory that others reach, or, when there is none left, from that of this process: then
 * values are copied when they are exchanged. */
static bool take_shared(tutti_cpu_frame *f, const tutti_program *program)
{
    const tutti_shared_memory *from = program->shared;
    size_t bytes = (program->shared_size + 127) / 64 * 64;
    if (program->shared_size == 0)
        return true;
    f->shared = from ? from->allocate(from->self, bytes) : NULL;
    f->shared_from = f->shared ? from : NULL;
    if (!f->shared)
        f->shared = tutti__aligned_alloc(64, bytes);
    if (f->shared) {
        memset(f->shared, 0, bytes);
        tutti__memory_count((int64_t)bytes);
    }
    return f->shared != NULL;
}

static void release_shared(tutti_cpu_frame *f)
{
    if (f->shared)
        tutti__memory_count(-(int64_t)((f->program->shared_size + 127) / 64 * 64));
    if (f->shared_from)
        f->shared_from->release(f->shared_from->self, f->shared);
    else
        free(f->shared);
}

void tutti__cpu_frame_destroy(tutti_cpu_frame *f)
{
    if (!f)
        return;
    if (f->memory)
        tutti__memory_count(-(int64_t)((f->program->arena_size + 127) / 64 * 64));
    free(f->memory);
    release_shared(f);
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

static tutti_cpu_patch *patch_of(tutti_cpu_frame *f, const tutti_program_value *value)
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

/* Whether the instruction's kernel reads input k. */
static bool reads(const tutti_instruction *instruction, int k)
{
    const tutti_kernel *kernel = instruction->kernel;
    return kernel == NULL || kernel->reads == NULL || kernel->reads(instruction->plan, k);
}

/* Fills one view; false when out of memory. The data of a constant that is not wanted is left where
 * it stands. */
static bool frame_resolve(tutti_cpu_frame *f, const tutti_program *program, int32_t index,
                          bool wanted, tutti_view *view)
{
    const tutti_program_value *value = &program->values[index];
    *view = (tutti_view){
        .dtype = value->type->dtype, .rank = value->type->rank, .dims = value->type->dims};
    if (value->space == TUTTI_IN_ARENA)
        view->data = (char *)f->memory + value->offset;
    else if (value->space == TUTTI_IN_SHARED)
        view->data = (char *)f->shared + value->offset;
    else if (value->space == TUTTI_IN_CONSTANT && wanted)
        view->data = tutti_tensor_data(program->constants[value->slot]);
    else if (value->space == TUTTI_IN_QUEUE)
        view->data = program->queues[value->slot];
    tutti_cpu_patch *p = patch_of(f, value);
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

static bool fill_calls(tutti_cpu_frame *f, const tutti_program *program)
{
    tutti_view *view = f->views;
    for (size_t i = 0; i < program->instruction_count; i++) {
        const tutti_instruction *instruction = &program->instructions[i];
        f->calls[i] = tutti__instruction_call(program, instruction, view, &f->context);
        for (int k = 0; k < instruction->input_count; k++)
            if (!frame_resolve(f, program, instruction->inputs[k], reads(instruction, k), view++))
                return false;
        for (int k = 0; k < instruction->output_count; k++)
            if (!frame_resolve(f, program, instruction->outputs[k], true, view++))
                return false;
        if (instruction->workspace >= 0)
            f->calls[i].workspace =
                (char *)f->memory + program->values[instruction->workspace].offset;
    }
    return true;
}

/* A kernel's output whose size depends on data. */
static tutti_status allocate_dynamic(const tutti_kernel_call *call, int index, int rank,
                                     const int64_t *dims)
{
    const tutti_cpu_frame *f =
        (const tutti_cpu_frame *)(const void *)((const char *)call->context -
                                                offsetof(tutti_cpu_frame, context));
    return tutti__program_allocate(f->program, (size_t)(call - f->calls), call, index, rank, dims);
}

static tutti_status give(const tutti_kernel_call *call, int index, tutti_tensor *tensor)
{
    const tutti_cpu_frame *f =
        (const tutti_cpu_frame *)(const void *)((const char *)call->context -
                                                offsetof(tutti_cpu_frame, context));
    return tutti__program_give(f->program, (size_t)(call - f->calls), call, index, tensor);
}

/* Names what makes the largest value: where the layer is far too large, that is the one. */
static tutti_status no_memory(const tutti_program *program)
{
    const tutti_program_value *largest = NULL;
    char type[TUTTI_TYPE_TEXT];
    for (size_t i = 0; i < program->value_count; i++) {
        const tutti_program_value *value = &program->values[i];
        if (value->maker >= 0 && value->type && program->instructions[value->maker].node &&
            (value->space == TUTTI_IN_ARENA || value->space == TUTTI_IN_SHARED) &&
            (!largest || value->size > largest->size))
            largest = value;
    }
    if (!largest)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a run, whose values take %zu bytes",
                          program->arena_size);
    const tutti_node *node = program->instructions[largest->maker].node;
    return tutti__node_failed(
        node, tutti_fail(TUTTI_NO_MEMORY,
                         "%s '%s': no memory for a run, whose values take %zu bytes; the largest "
                         "is this %s of %zu bytes",
                         node->op->name, node->name, program->arena_size,
                         tutti_type_text(largest->type, type), largest->size));
}

static tutti_status frame_create(const tutti_program *program, tutti_cpu_frame **ret)
{
    tutti_cpu_frame *f = calloc(1, sizeof *f);
    size_t views = 1,
           patches =
               (size_t)(program->input_count + program->result_count + program->variable_count) + 1;
    for (size_t i = 0; i < program->instruction_count; i++)
        views +=
            (size_t)(program->instructions[i].input_count + program->instructions[i].output_count);
    bool ok = f != NULL;
    if (ok) {
        f->program = program;
        f->calls = calloc(program->instruction_count + 1, sizeof *f->calls);
        f->views = calloc(views, sizeof *f->views);
        f->inputs = calloc(patches, sizeof *f->inputs);
        f->snapshots = calloc((size_t)program->variable_count + 1, sizeof *f->snapshots);
        f->context.dynamic = calloc((size_t)program->dynamic_count + 1, sizeof *f->context.dynamic);
        f->memory = tutti__aligned_alloc(64, (program->arena_size + 127) / 64 * 64);
        if (f->memory)
            tutti__memory_count((int64_t)((program->arena_size + 127) / 64 * 64));
        if (f->inputs)
            f->inputs[patches - 1].count = -1; /* ends the list */
        ok = f->calls && f->views && f->inputs && f->snapshots && f->context.dynamic && f->memory &&
             take_shared(f, program);
    }
    if (ok) {
        f->results = f->inputs + program->input_count;
        f->variables = f->results + program->result_count;
        f->context.device = program->device;
        f->context.host.allocate = allocate_dynamic;
        f->context.host.give = give;
        ok = fill_calls(f, program);
    }
    if (!ok) {
        tutti__cpu_frame_destroy(f);
        return no_memory(program);
    }
    *ret = f;
    return TUTTI_OK;
}

tutti_status tutti__cpu_frame_lease(tutti_cpu_executable *e, tutti_cpu_frame **ret)
{
    pthread_mutex_lock(&e->lock);
    tutti_cpu_frame *f = e->frames;
    if (f)
        e->frames = f->next;
    pthread_mutex_unlock(&e->lock);
    if (!f)
        return frame_create(e->program, ret);
    *ret = f;
    return TUTTI_OK;
}

void tutti__cpu_frame_return(tutti_cpu_executable *e, tutti_cpu_frame *f)
{
    pthread_mutex_lock(&e->lock);
    f->next = e->frames;
    e->frames = f;
    pthread_mutex_unlock(&e->lock);
}

void tutti__cpu_patch_set(tutti_cpu_patch *p, void *pointer)
{
    if (p->pointer == pointer)
        return;
    for (int i = 0; i < p->count; i++)
        p->views[i]->data = pointer;
    p->pointer = pointer;
}
