/* drive.c: see drive.h. */
#include "program/drive.h"

#include <stdlib.h>
#include <string.h>

#include "base/kill.h"

static tutti_status bind_all(tutti_drive *d, tutti_tensor *const *inputs)
{
    const tutti_program *program = d->program;
    TUTTI_TRY(tutti__program_snapshot(program, d->run, d->snapshots));
    for (int v = 0; v < program->variable_count; v++)
        TUTTI_TRY(d->table->bind(d, v, d->snapshots[v], false));
    for (int i = 0; i < program->input_count; i++)
        if (inputs[i])
            TUTTI_TRY(d->table->feed(d, i, inputs[i]));
    return TUTTI_OK;
}

static tutti_status launch_all(tutti_drive *d, size_t from, size_t to, bool *ret)
{
    *ret = false;
    for (size_t i = from; i < to; i++)
        if (d->program->instructions[i].host)
            return TUTTI_OK;
    return d->table->launch_all && from < to ? d->table->launch_all(d, from, to, ret) : TUTTI_OK;
}

/* Another device's failure ends it: the commit point says which. */
static tutti_status put(tutti_drive *d, size_t from, size_t to, bool committing)
{
    bool all;
    TUTTI_TRY(launch_all(d, from, to, &all));
    if (all)
        return TUTTI_OK;
    for (size_t i = from; i < to; i++) {
        if (!committing && d->run->cancelled)
            return TUTTI_OK;
        const tutti_instruction *instruction = &d->program->instructions[i];
        tutti__kill_point();
        if (!instruction->host)
            TUTTI_TRY(d->table->launch(d, i));
        else if (instruction->kernel && (instruction->kernel->flags & TUTTI_KERNEL_TENSORS))
            TUTTI_TRY(d->table->pass(d, i));
        else
            TUTTI_TRY(d->table->call_on_host(d, i));
    }
    return TUTTI_OK;
}

/* Inputs and constants are on the host, and may be seen under another shape. */
static tutti_status copy_of(tutti_tensor *from, const tutti_type *type, tutti_tensor **ret)
{
    TUTTI_TRY(tutti_tensor_from(type->dtype, type->rank, type->dims, tutti_tensor_data(from), ret));
    return tutti__tensor_own_strings(*ret);
}

static tutti_status take_results(tutti_drive *d, bool after_commit, tutti_tensor *const *inputs,
                                 tutti_tensor **results)
{
    const tutti_program *program = d->program;
    for (int i = 0; i < program->result_count; i++) {
        const tutti_program_value *value = &program->values[program->results[i].value];
        if (program->results[i].after_commit != after_commit)
            continue;
        if (value->space == TUTTI_IN_DYNAMIC)
            TUTTI_TRY(tutti__program_dynamic(program, &d->context, i, &results[i]));
        else if (value->space == TUTTI_IN_INPUT)
            TUTTI_TRY(copy_of(inputs[value->slot], value->type, &results[i]));
        else if (value->space == TUTTI_IN_CONSTANT)
            TUTTI_TRY(copy_of(program->constants[value->slot], value->type, &results[i]));
        else
            TUTTI_TRY(d->table->take(d, i, &results[i]));
    }
    return TUTTI_OK;
}

static tutti_status before_commit(tutti_drive *d, tutti_tensor *const *inputs,
                                  tutti_tensor **results)
{
    d->table->fence(d);
    TUTTI_TRY(bind_all(d, inputs));
    TUTTI_TRY(put(d, 0, d->program->checked_at, false));
    if (d->program->fallible && d->table->checked)
        TUTTI_TRY(d->table->checked(d));
    TUTTI_TRY(put(d, d->program->checked_at, d->program->commit_at, false));
    if (d->program->fallible || d->program->dynamic_count > 0)
        TUTTI_TRY(d->table->settle(d));
    return d->run->cancelled ? TUTTI_OK : take_results(d, false, inputs, results);
}

static tutti_status write_variables(tutti_drive *d)
{
    const tutti_program *program = d->program;
    for (int v = 0; v < program->variable_count; v++) {
        tutti_tensor *value;
        if (!program->variables[v].updated)
            continue;
        tutti_tensor_release(d->snapshots[v]);
        d->snapshots[v] = NULL;
        TUTTI_TRY(tutti__piece_write(d->run->state, program->variables[v].piece,
                                     program->variables[v].keep, &value));
        TUTTI_TRY(d->table->bind(d, v, value, true));
        tutti__kill_point();
    }
    return TUTTI_OK;
}

static tutti_status commit(tutti_drive *d, tutti_tensor *const *inputs, tutti_tensor **results)
{
    const tutti_program *program = d->program;
    TUTTI_TRY(write_variables(d));
    d->table->fence(d);
    tutti__program_committed(program, TUTTI_OK); /* what fails later says so itself */
    tutti_status status = put(d, program->commit_at, program->instruction_count, true);
    if (status == TUTTI_OK && program->dynamic_count > 0)
        status = d->table->settle(d);
    if (status != TUTTI_OK)
        tutti__program_committed(program, status);
    return status == TUTTI_OK ? take_results(d, true, inputs, results) : status;
}

tutti_status tutti__drive(tutti_drive *d, tutti_run *run, tutti_tensor *const *inputs,
                          tutti_tensor **ret_results)
{
    const tutti_program *program = d->program;
    memset(ret_results, 0, (size_t)program->result_count * sizeof *ret_results);
    tutti_status status = before_commit(d, inputs, ret_results);
    if (!d->told)
        status = run->commit_begin(run, status);
    if (status == TUTTI_OK) {
        if (program->updates && run->numbered && tutti__kill_counts())
            tutti__kill_begin();
        status = commit(d, inputs, ret_results);
        run->commit_end(run);
    }
    tutti__tensors_drop(program->variable_count, d->snapshots);
    if (status != TUTTI_OK)
        tutti__tensors_drop(program->result_count, ret_results);
    return status;
}

tutti_status tutti__drive_constants(const tutti_program *program, const tutti_memory *memory,
                                    tutti_tensor ***ret)
{
    tutti_tensor **constants = *ret =
        calloc((size_t)program->constant_count + 1, sizeof *constants);
    if (!constants)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a program");
    for (int i = 0; i < program->constant_count; i++) {
        const tutti_type *type = tutti_tensor_type(program->constants[i]);
        tutti_tensor *host;
        if (type->dtype == TUTTI_STRING)
            continue;
        TUTTI_TRY(tutti__tensor_in(memory, type, &constants[i]));
        TUTTI_TRY(tutti_tensor_contiguous(program->constants[i], &host));
        tutti_status status =
            memory->copy_in(memory->self, tutti_tensor_data(constants[i]), tutti_tensor_data(host),
                            (size_t)tutti_tensor_count(host) * tutti_dtype_size(type->dtype));
        tutti_tensor_release(host);
        TUTTI_TRY(status);
    }
    return TUTTI_OK;
}
