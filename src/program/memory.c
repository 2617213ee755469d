/* memory.c: which values share memory, from when to when each is wanted, and so where it lies.
 *
 * An output takes its input's place where the kernel allows it and nothing else wants the input.
 * What is left wants bytes of its own from its maker to its last use; pack.c finds a place for it.
 */
#include <stdlib.h>
#include <string.h>

#include "program/pack.h"
#include "program/program.h"

typedef struct use {
    int32_t instruction;
    struct use *next;
} use;

typedef struct planner {
    tutti_program *program;
    use **uses; /* by root value: makers and readers of it and of its views */
    /* With several streams, by instruction and stream: one more than the last instruction of the
     * stream that has finished before this one or any later one starts. */
    int32_t (*finished)[TUTTI_MAX_STREAMS];
} planner;

/* Roots that were merged point to what they became a part of. */
static int32_t root_of(const planner *p, int32_t value)
{
    tutti_program_value *values = p->program->values;
    int32_t root = values[value].root;
    while (values[root].root != root)
        root = values[value].root = values[root].root;
    return root;
}

static size_t align(size_t size, size_t alignment)
{
    return (size + alignment - 1) / alignment * alignment;
}

static bool note_use(planner *p, int32_t value, int32_t instruction)
{
    int32_t root = p->program->values[value].root;
    use *one = tutti__arena_take(&p->program->arena, sizeof *one);
    if (!one)
        return false;
    *one = (use){instruction, p->uses[root]};
    p->uses[root] = one;
    return true;
}

static bool collect_uses(planner *p)
{
    tutti_program *program = p->program;
    bool ok = true;
    for (size_t i = 0; i < program->instruction_count; i++) {
        const tutti_instruction *instruction = &program->instructions[i];
        for (int k = 0; k < instruction->input_count; k++)
            ok = ok && note_use(p, instruction->inputs[k], (int32_t)i);
        for (int k = 0; k < instruction->output_count; k++)
            ok = ok && note_use(p, instruction->outputs[k], (int32_t)i);
        if (instruction->workspace >= 0)
            ok = ok && note_use(p, instruction->workspace, (int32_t)i);
    }
    for (int i = 0; i < program->result_count; i++)
        if (program->results[i].copy) /* copied at the end: nothing may take its place */
            ok = ok && note_use(p, program->results[i].value, INT32_MAX);
    return ok;
}

/* Whether output `k` may lie where input `i` lies: same size and type, and nobody else wants it. */
static bool may_take(const planner *p, const tutti_instruction *instruction, int32_t index, int k,
                     int i)
{
    const tutti_program_value *values = p->program->values;
    const tutti_program_value *output = &values[instruction->outputs[k]];
    int32_t root = root_of(p, instruction->inputs[i]);
    if (values[root].space != TUTTI_IN_ARENA || values[root].size != output->size ||
        values[root].type->dtype != output->type->dtype)
        return false;
    for (const use *u = p->uses[root]; u; u = u->next)
        if (u->instruction != index && (u->instruction == INT32_MAX ||
                                        !tutti__happens_before(p->program, u->instruction, index)))
            return false;
    int times = 0;
    for (int other = 0; other < instruction->input_count; other++)
        times += root_of(p, instruction->inputs[other]) == root;
    return times == 1;
}

/* The root whose place output `k` may take, or -1. */
static int32_t reusable(const planner *p, const tutti_instruction *instruction, int32_t index,
                        int k)
{
    const tutti_kernel *kernel = instruction->kernel;
    if (!kernel)
        return -1;
    bool each = (kernel->flags & TUTTI_KERNEL_INPLACE_EACH) != 0;
    for (int i = 0; i < instruction->input_count && (each || i < 32); i++)
        if ((each ? i == k : k == 0 && (kernel->inplace >> i & 1)) &&
            may_take(p, instruction, index, k, i))
            return root_of(p, instruction->inputs[i]);
    return -1;
}

/* Two roots become one: views of the output are views of the input's place. */
static void merge(planner *p, int32_t from, int32_t into)
{
    p->program->values[from].root = into;
    use **last = &p->uses[from];
    while (*last)
        last = &(*last)->next;
    *last = p->uses[into];
    p->uses[into] = p->uses[from];
    p->uses[from] = NULL;
}

/* What a bucket exchanges is born where it is sent from: its inputs lie side by side in memory of
 * their own, and so do its outputs, in their place. An input that somebody else wants too is
 * copied; the outputs lie alike on all devices. */
static void share_bucket(planner *p, int32_t index)
{
    tutti_program *program = p->program;
    tutti_instruction *instruction = &program->instructions[index];
    tutti_program_value *values = program->values;
    for (int k = 0; k < instruction->output_count; k++) {
        int32_t output = instruction->outputs[k], root = root_of(p, instruction->inputs[k]);
        if (values[output].root != output || values[output].space != TUTTI_IN_ARENA ||
            values[output].maker != index || values[output].size == 0)
            continue;
        bool born_there = values[root].maker >= 0 && may_take(p, instruction, index, k, k);
        int32_t shared = born_there ? root : output;
        values[shared].space = TUTTI_IN_SHARED;
        values[shared].offset = program->shared_size;
        program->shared_size += align(values[shared].size, program->device->target->alignment);
        if (born_there)
            merge(p, output, root);
    }
}

static void merge_outputs(planner *p, int32_t index)
{
    tutti_instruction *instruction = &p->program->instructions[index];
    tutti_program_value *values = p->program->values;
    for (int k = 0; k < instruction->output_count; k++) {
        int32_t value = instruction->outputs[k];
        if (values[value].root != value || values[value].space != TUTTI_IN_ARENA ||
            values[value].maker != index)
            continue;
        int32_t input = reusable(p, instruction, index, k);
        if (input >= 0)
            merge(p, value, input);
    }
}

static bool lies_in_arena(const planner *p, size_t value)
{
    const tutti_program_value *one = &p->program->values[value];
    return one->root == (int32_t)value && one->space == TUTTI_IN_ARENA && p->uses[value];
}

static bool is_planned(const tutti_program_value *value, size_t index)
{
    return value->root == (int32_t)index &&
           (value->space == TUTTI_IN_ARENA || value->space == TUTTI_IN_RESULT ||
            value->space == TUTTI_IN_INPUT);
}

static tutti_status too_much(const tutti_program *program, const tutti_program_value *value)
{
    char type[TUTTI_TYPE_TEXT];
    tutti_type_text(value->type, type);
    if (value->maker < 0)
        return tutti_fail(
            TUTTI_TOO_LARGE,
            "input %s, with the values before it, is more bytes than can be addressed", type);
    const tutti_instruction *instruction = &program->instructions[value->maker];
    const tutti_node *node = instruction->node;
    bool workspace =
        instruction->workspace >= 0 && value == &program->values[instruction->workspace];
    return tutti__node_failed(
        node, tutti_fail(TUTTI_TOO_LARGE,
                         "%s '%s': %s %s: that, with the values made before it, is more bytes than "
                         "can be addressed",
                         node->op->name, node->name,
                         workspace ? "its kernel's workspace takes" : "an output would be", type));
}

/* All that lies in the arena, the shared memory, or behind the arena (device/far/layout.c) fits
 * beside each other in half of what a pointer reaches: no sum of sizes and offsets wraps, in
 * whatever order values are placed. */
static tutti_status check_sizes(const tutti_program *program)
{
    size_t alignment = program->device->target->alignment, sum = 0;
    for (size_t i = 0; i < program->value_count; i++) {
        const tutti_program_value *value = &program->values[i];
        if (!is_planned(value, i))
            continue;
        if (value->size > PTRDIFF_MAX / 2 - alignment)
            return too_much(program, value);
        sum += align(value->size ? value->size : 1, alignment);
        if (sum > PTRDIFF_MAX / 2)
            return too_much(program, value);
    }
    return TUTTI_OK;
}

static bool note_finished(planner *p)
{
    const tutti_program *program = p->program;
    size_t count = program->instruction_count;
    p->finished = tutti__arena_array(&p->program->arena, count + 1, sizeof *p->finished);
    for (int k = 0; p->finished && k < TUTTI_MAX_STREAMS; k++) {
        p->finished[count][k] = INT32_MAX;
        for (size_t i = count; i-- > 0;)
            p->finished[i][k] = program->clock[i][k] < p->finished[i + 1][k]
                                    ? program->clock[i][k]
                                    : p->finished[i + 1][k];
    }
    return p->finished != NULL;
}

/* The first instruction from which on all start when this one has finished. */
static int32_t all_start_after(const planner *p, int32_t instruction)
{
    size_t low = (size_t)instruction + 1, high = p->program->instruction_count;
    int stream = p->program->instructions[instruction].stream;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (p->finished[middle][stream] > instruction)
            high = middle;
        else
            low = middle + 1;
    }
    return (int32_t)low;
}

/* From when to when a root is wanted. */
static tutti_packed lifetime(const planner *p, size_t root)
{
    size_t size = p->program->values[root].size;
    tutti_packed one = {.value = (int32_t)root, .first = INT32_MAX, .last = -1};
    one.size = align(size ? size : 1, p->program->device->target->alignment);
    for (const use *u = p->uses[root]; u; u = u->next) {
        one.first = u->instruction < one.first ? u->instruction : one.first;
        one.last = u->instruction > one.last ? u->instruction : one.last;
    }
    for (const use *u = p->uses[root]; u && one.last < INT32_MAX; u = u->next) {
        int32_t gone = p->finished ? all_start_after(p, u->instruction) : u->instruction + 1;
        one.gone = gone > one.gone ? gone : one.gone;
    }
    return one;
}

/* Every use of `a` happens before the making of `b`; with several streams the list's order says
 * nothing of that. */
static bool over_before(const planner *p, const tutti_packed *a, const tutti_packed *b)
{
    if (!p->program->clock)
        return a->last < b->first;
    for (const use *u = p->uses[a->value]; u; u = u->next)
        if (u->instruction == INT32_MAX ||
            !tutti__happens_before(p->program, u->instruction, b->first))
            return false;
    return true;
}

/* What happens before something else comes before it in the list, too. */
static bool collide(const void *context, const tutti_packed *a, const tutti_packed *b)
{
    if (a->last < b->first)
        return !over_before(context, a, b);
    return b->last >= a->first || !over_before(context, b, a);
}

static tutti_status place_roots(planner *p)
{
    tutti_program *program = p->program;
    size_t count = 0;
    for (size_t i = 0; i < program->value_count; i++)
        count += lies_in_arena(p, i);
    tutti_packed *roots = tutti__arena_array(&program->arena, count + 1, sizeof *roots);
    if (!roots || (program->clock && !note_finished(p)))
        return tutti_fail(TUTTI_NO_MEMORY, "no memory to lower a graph");
    count = 0;
    for (size_t i = 0; i < program->value_count; i++)
        if (lies_in_arena(p, i))
            roots[count++] = lifetime(p, i);
    tutti_pack all = {.count = count,
                      .values = roots,
                      .collide = collide,
                      .context = p,
                      .in_turn = !program->clock};
    TUTTI_TRY(tutti__pack_bound(&all, program->instruction_count, &program->arena_bound));
    TUTTI_TRY(tutti__pack(&all, program->arena_bound, &program->arena_size));
    for (size_t i = 0; i < count; i++)
        program->values[roots[i].value].offset = roots[i].offset;
    return TUTTI_OK;
}

tutti_status tutti__program_memory(tutti_program *program)
{
    planner p = {.program = program};
    p.uses = tutti__arena_array(&program->arena, program->value_count + 1, sizeof *p.uses);
    if (!p.uses || !collect_uses(&p))
        return tutti_fail(TUTTI_NO_MEMORY, "no memory to lower a graph");
    TUTTI_TRY(check_sizes(program));
    for (size_t i = 0; program->shares && i < program->instruction_count; i++)
        if (program->instructions[i].kernel &&
            (program->instructions[i].kernel->flags & TUTTI_KERNEL_INPLACE_EACH))
            share_bucket(&p, (int32_t)i);
    for (size_t i = 0; i < program->instruction_count; i++)
        merge_outputs(&p, (int32_t)i);
    TUTTI_TRY(place_roots(&p));
    for (size_t i = 0; i < program->value_count; i++) { /* views lie where their root lies */
        tutti_program_value *value = &program->values[i];
        value->root = root_of(&p, (int32_t)i);
        const tutti_program_value *root = &program->values[value->root];
        if (root->space == TUTTI_IN_ARENA || root->space == TUTTI_IN_SHARED) {
            value->space = root->space;
            value->offset = root->offset;
        }
    }
    return TUTTI_OK;
}
