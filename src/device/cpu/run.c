/* run.c: calls one kernel after the other on the thread of the caller, then commits. */
#include <stdlib.h>
#include <string.h>

#include "base/kill.h"
#include "device/cpu/frame.h"
#include "device/cpu/nan.h"
#include "program/trace.h"

static tutti_status run_bind(const tutti_program *program, tutti_cpu_frame *f, tutti_run *run,
                             tutti_tensor *const *inputs, tutti_tensor **results)
{
    f->context.run = run;
    f->context.host.cancelled = run->watched;
    for (int i = 0; i < program->input_count; i++)
        tutti__cpu_patch_set(&f->inputs[i], inputs[i] ? tutti_tensor_data(inputs[i]) : NULL);
    TUTTI_TRY(tutti__program_snapshot(program, run, f->snapshots));
    for (int v = 0; v < program->variable_count; v++)
        tutti__cpu_patch_set(&f->variables[v],
                             f->snapshots[v] ? tutti_tensor_data(f->snapshots[v]) : NULL);
    for (int i = 0; i < program->result_count; i++) {
        const tutti_program_value *value = &program->values[program->results[i].value];
        if (value->space == TUTTI_IN_DYNAMIC)
            continue;
        TUTTI_TRY(tutti__tensor_in(tutti__host_memory(), value->type, &results[i]));
        if (!program->results[i].copy && value->slot == (uint32_t)i)
            tutti__cpu_patch_set(&f->results[i], tutti_tensor_data(results[i]));
    }
    return TUTTI_OK;
}

static tutti_status run_one(const tutti_instruction *instruction, tutti_kernel_call *call)
{
    tutti_status status = instruction->run(call);
    return status == TUTTI_OK ? TUTTI_OK : tutti__node_failed(instruction->node, status);
}

static tutti_status execute(const tutti_cpu_executable *e, tutti_cpu_frame *f, size_t from,
                            size_t to)
{
    tutti_kernel_call *calls = f->calls;
    const tutti_instruction *instructions = e->program->instructions;
    tutti_trace *trace = tutti__trace_mine();
    int64_t deadline = f->context.run->deadline;
    for (size_t i = from; (e->looks || e->kills) && i < to; i++) {
        calls[i].deadline = deadline;
        if (e->kills)
            tutti__kill_point();
        tutti_status status = e->looks ? tutti__cpu_run_looking(e->program, i, &calls[i])
                                       : instructions[i].run(&calls[i]);
        if (status != TUTTI_OK)
            return tutti__node_failed(instructions[i].node, status);
    }
    if (e->looks || e->kills)
        return TUTTI_OK;
    if (!trace) {
        for (size_t i = from; i < to; i++) {
            calls[i].deadline = deadline;
            TUTTI_TRY(run_one(&instructions[i], &calls[i]));
        }
        return TUTTI_OK;
    }
    uint64_t start = tutti__ticks();
    for (size_t i = from; i < to; i++) {
        calls[i].deadline = deadline;
        TUTTI_TRY(run_one(&instructions[i], &calls[i]));
        uint64_t end = tutti__ticks();
        tutti__trace_add(trace, instructions[i].traced, e->lane, start, end);
        start = end;
    }
    return TUTTI_OK;
}

/* Results whose value lies in memory that is not the result's own. */
static tutti_status copy_results(const tutti_program *program, tutti_cpu_frame *f,
                                 bool after_commit, tutti_tensor *const *inputs,
                                 tutti_tensor **results)
{
    for (int i = 0; i < program->result_count; i++) {
        const tutti_program_result *result = &program->results[i];
        const tutti_program_value *value = &program->values[result->value];
        if (result->after_commit != after_commit)
            continue;
        if (value->space == TUTTI_IN_DYNAMIC) {
            TUTTI_TRY(tutti__program_dynamic(program, &f->context, i, &results[i]));
            TUTTI_TRY(tutti__tensor_own_strings(results[i]));
            continue;
        }
        const void *from = NULL;
        if (value->space == TUTTI_IN_ARENA)
            from = (char *)f->memory + value->offset;
        else if (value->space == TUTTI_IN_SHARED)
            from = (char *)f->shared + value->offset;
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

static tutti_status commit(const tutti_cpu_executable *e, tutti_cpu_frame *f, tutti_run *run)
{
    const tutti_program *program = e->program;
    for (int v = 0; v < program->variable_count; v++) {
        if (!program->variables[v].updated)
            continue;
        const tutti_program_variable *variable = &program->variables[v];
        tutti_tensor *value;
        if (e->kills)
            tutti__kill_point();
        tutti_tensor_release(f->snapshots[v]);
        f->snapshots[v] = NULL;
        TUTTI_TRY(tutti__piece_write(run->state, variable->piece, variable->keep, &value));
        tutti__cpu_patch_set(&f->variables[v], tutti_tensor_data(value));
    }
    tutti_status status = execute(e, f, program->commit_at, program->instruction_count);
    tutti__program_committed(program, status);
    TUTTI_TRY(status);
    for (int v = 0; v < program->variable_count; v++) /* kernels moved elements, not their bytes */
        if (program->variables[v].updated &&
            program->variables[v].piece->type.dtype == TUTTI_STRING)
            TUTTI_TRY(tutti__tensor_own_strings(program->variables[v].piece->value));
    return TUTTI_OK;
}

static tutti_status run_frame(const tutti_cpu_executable *e, tutti_cpu_frame *f, tutti_run *run,
                              tutti_tensor *const *inputs, tutti_tensor **results)
{
    const tutti_program *program = e->program;
    tutti_status status = run_bind(program, f, run, inputs, results);
    if (status == TUTTI_OK)
        status = execute(e, f, 0, program->commit_at);
    if (status == TUTTI_OK)
        status = copy_results(program, f, false, inputs, results);
    status = run->commit_begin(run, status);
    if (status != TUTTI_OK)
        return status;
    if (e->kills && program->updates && run->numbered)
        tutti__kill_begin();
    status = commit(e, f, run);
    if (status == TUTTI_OK)
        status = copy_results(program, f, true, inputs, results);
    if (e->kills)
        tutti__kill_point();
    run->commit_end(run);
    if (e->kills)
        tutti__kill_point();
    return status;
}

tutti_status tutti__cpu_enqueue(tutti_executable *executable, tutti_run *run,
                                tutti_tensor *const *inputs, tutti_tensor **ret_results)
{
    tutti_cpu_executable *e = (tutti_cpu_executable *)executable;
    tutti_tensor *few[8], **results = few;
    int count = e->program->result_count;
    tutti_cpu_frame *f;
    if (count > 8 && !(results = malloc((size_t)count * sizeof *results)))
        return run->commit_begin(run,
                                 tutti_fail(TUTTI_NO_MEMORY, "no memory for %d results", count));
    memset(results, 0, (size_t)count * sizeof *results);
    tutti_status status = tutti__cpu_frame_lease(e, &f);
    if (status == TUTTI_OK) {
        status = run_frame(e, f, run, inputs, results);
        tutti__tensors_drop(e->program->variable_count, f->snapshots);
        tutti__program_forget(e->program, f->calls, &f->context);
        tutti__cpu_frame_return(e, f);
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
