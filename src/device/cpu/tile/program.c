/* program.c: from a body to steps. */
#include "device/cpu/tile/program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/cpu/slots.h"
#include "device/cpu/tile/chaining.h"
#include "device/cpu/tile/compiler.h"

typedef tutti_tile_state state;
typedef tutti_tile_compiler compiler;

enum { END = 1 << 30 };

tutti_status tutti__tile_refuse(const char *what)
{
    return tutti_fail(TUTTI_UNSUPPORTED, "no tile loops for %s", what);
}

static const tutti_body_value *value_at(const compiler *c, int v)
{
    return &c->body->values[v];
}

static bool is_cast(const tutti_body_value *value)
{
    return value->op != NULL && strcmp(value->op->name, "cast") == 0;
}

bool tutti__tile_covers(const tutti_op *op)
{
    return strcmp(op->name, "cast") == 0 || tutti__tile_find(op->name, NULL, 0) != NULL;
}

static int input_count(const tutti_body_value *value)
{
    return value->op == NULL ? 0 : value->op->max_inputs;
}

/* Whether a cast of an integer through f32 would round it twice. */
static bool rounds_twice(tutti_dtype from, tutti_dtype to)
{
    return (from == TUTTI_I32 || from == TUTTI_I64) && to == TUTTI_BF16;
}

/* Integers only come from memory into a cast, or from a cast into memory. */
static tutti_status check_types(const compiler *c)
{
    for (int v = 0; v < c->body->value_count; v++) {
        const tutti_body_value *value = value_at(c, v);
        bool whole = tutti_dtype_is_int(value->type.dtype);
        if (value->type.dtype == TUTTI_STRING || (whole && value->op != NULL && !is_cast(value)))
            return tutti__tile_refuse("this element type");
        if (input_count(value) < 0 || input_count(value) > TUTTI_TILE_INPUTS)
            return tutti__tile_refuse(value->op->name);
        for (int i = 0; i < input_count(value); i++) {
            const tutti_body_value *input = value_at(c, value->inputs[i]);
            bool from_whole = tutti_dtype_is_int(input->type.dtype);
            if (from_whole && (whole || !is_cast(value) || input->op != NULL ||
                               rounds_twice(input->type.dtype, value->type.dtype)))
                return tutti__tile_refuse("integers");
        }
    }
    return TUTTI_OK;
}

static tutti_dtype computed_type(const tutti_tile_body *body)
{
    for (int v = 0; v < body->value_count; v++)
        if (body->values[v].type.dtype == TUTTI_F64)
            return TUTTI_F64;
    return TUTTI_F32;
}

/* Whether a value goes nowhere but to memory. */
static bool only_leaves(const compiler *c, const tutti_body_value *value)
{
    for (int v = c->body->source_count; v < c->body->value_count; v++)
        for (int i = 0; i < input_count(value_at(c, v)); i++)
            if (value_at(c, value_at(c, v)->inputs[i]) == value)
                return false;
    return true;
}

/* Whether a cast needs no step: widening, or to an integer or to 16 bits, which storing does. */
static bool cast_is_free(const compiler *c, const tutti_body_value *cast)
{
    tutti_dtype from = value_at(c, cast->inputs[0])->type.dtype, to = cast->type.dtype;
    return from == to || to == c->type || tutti_dtype_is_int(to) ||
           (from == TUTTI_BOOL && tutti_dtype_is_float(to)) ||
           ((to == TUTTI_BF16 || to == TUTTI_F16) && only_leaves(c, cast));
}

static int root_of(const compiler *c, int v)
{
    return c->states[v].root;
}

static void find_uses(compiler *c)
{
    for (int v = 0; v < c->body->value_count; v++) {
        const tutti_body_value *value = value_at(c, v);
        bool shares = is_cast(value) && cast_is_free(c, value);
        c->states[v].root = shares ? root_of(c, value->inputs[0]) : v;
        c->states[v].last_use = -1;
        for (int i = 0; i < input_count(value); i++)
            c->states[root_of(c, value->inputs[i])].last_use = v;
    }
}

/* Results are used to the end, but totals, which go to their output by themselves. */
static void keep_results(compiler *c)
{
    for (int i = 0; i < c->body->output_count; i++)
        if (c->states[c->body->result_values[i]].total < 0)
            c->states[root_of(c, c->body->result_values[i])].last_use = END;
}

int tutti__tile_take_slot(compiler *c)
{
    int slot = 0;
    while (c->taken[slot])
        slot++;
    c->taken[slot] = true;
    if (slot >= c->program->slot_count)
        c->program->slot_count = slot + 1;
    return slot;
}

static tutti_tile_loop *loop_of(const compiler *c, const tutti_tile_op *row)
{
    return c->type == TUTTI_F32 ? row->f32 : row->f64;
}

/* ".load_bf16" and its kin; every type has them. */
static tutti_tile_loop *type_loop(const compiler *c, const char *prefix, tutti_dtype dtype)
{
    char name[32];
    snprintf(name, sizeof name, ".%s_%s", prefix, tutti_dtype_name(dtype));
    return loop_of(c, tutti__tile_find(name, NULL, 0));
}

/* Places of inputs and constants. Repeated ones keep their slot: they are loaded once for many
 * tiles. */
static void place_sources(compiler *c)
{
    tutti_tile_program *program = c->program;
    for (int v = 0; v < c->body->source_count; v++) {
        state *s = &c->states[v];
        tutti_dtype dtype = value_at(c, v)->type.dtype;
        tutti_tile_reach reach = program->space.inputs[v].reach;
        if (s->last_use < 0)
            continue;
        if (dtype == c->type && reach == TUTTI_REACH_LINEAR) {
            s->place = (tutti_tile_place){TUTTI_PLACE_INPUT, v};
            continue;
        }
        s->place =
            (tutti_tile_place){reach == TUTTI_REACH_SCALAR ? TUTTI_PLACE_SCALAR : TUTTI_PLACE_SLOT,
                               tutti__tile_take_slot(c)};
        program->loads[program->load_count++] =
            (tutti_tile_load){.source = v,
                              .slot = s->place.index,
                              .element = tutti_dtype_size(dtype),
                              .convert = type_loop(c, "load", dtype)};
    }
    c->last_input_read = -1;
    for (int v = c->body->source_count; v < c->body->value_count; v++)
        for (int i = 0; i < input_count(value_at(c, v)); i++)
            if (c->states[root_of(c, value_at(c, v)->inputs[i])].place.kind == TUTTI_PLACE_INPUT)
                c->last_input_read = v;
    for (int i = 0; i < c->body->output_count; i++)
        if (root_of(c, c->body->result_values[i]) < c->body->source_count)
            c->last_input_read = END;
}

/* After value v: gives back the slots of what v read for the last time. */
static void free_slots(compiler *c, int v)
{
    const tutti_body_value *value = value_at(c, v);
    for (int i = 0; i < input_count(value); i++) {
        int root = root_of(c, value->inputs[i]);
        bool kept = root < c->body->source_count &&
                    c->program->space.inputs[root].reach != TUTTI_REACH_LINEAR;
        if (c->states[root].last_use <= v && c->states[root].place.kind == TUTTI_PLACE_SLOT &&
            !kept)
            c->taken[c->states[root].place.index] = false;
    }
}

static tutti_tile_place place_result(compiler *c, int v)
{
    const tutti_body_value *value = value_at(c, v);
    if (c->states[v].total >= 0)
        return (tutti_tile_place){TUTTI_PLACE_TOTAL, c->states[v].total};
    if (value->output >= 0 && value->type.dtype == c->type && v >= c->last_input_read &&
        !c->states[v].by_row)
        return (tutti_tile_place){TUTTI_PLACE_OUTPUT, value->output};
    return (tutti_tile_place){TUTTI_PLACE_SLOT, tutti__tile_take_slot(c)};
}

void tutti__tile_add_step(compiler *c, tutti_tile_step step)
{
    step.chain = 1;
    c->program->steps[c->program->step_count++] = step;
}

static tutti_step_kind kind_for(const compiler *c, int v)
{
    return c->states[v].by_row ? TUTTI_STEP_BY_ROW : TUTTI_STEP_ELEMENTS;
}

/* Compared, tested or made an integer: whoever looks at the value itself sees the same. The
 * gradient of a maximum finds its elements so. */
static bool is_tested(const compiler *c, int v)
{
    for (const tutti_body_value *u = value_at(c, v); u < value_at(c, c->body->value_count); u++)
        for (int i = 0; u->op != NULL && !tutti_dtype_is_float(u->type.dtype) && i < input_count(u);
             i++)
            if (root_of(c, u->inputs[i]) == v)
                return true;
    return false;
}

/* Results of a smaller type than is computed in are rounded to it: in a chain of f32, those of 16
 * bits where a cast asks for it, where they are tested and, by the store, where they leave; in
 * deterministic mode all of them. */
static void add_rounding(compiler *c, int v)
{
    tutti_dtype dtype = value_at(c, v)->type.dtype;
    tutti_tile_place place = c->states[v].place;
    if (c->type == TUTTI_F32 && !c->deterministic && !is_cast(value_at(c, v)) && !is_tested(c, v))
        return;
    if (dtype != c->type && tutti_dtype_is_float(dtype) && c->states[v].total < 0)
        tutti__tile_add_step(c, (tutti_tile_step){.loop = type_loop(c, "round", dtype),
                                                  .name = ".round",
                                                  .kind = kind_for(c, v),
                                                  .inputs = 1,
                                                  .x = {place},
                                                  .y = place});
}

/* The loop that computes a value, and its name. */
static const tutti_tile_op *find_loop(const compiler *c, int v, const char **ret_name)
{
    const tutti_body_value *value = value_at(c, v);
    if (value->kind != TUTTI_BODY_ELEMENTS) {
        const tutti_tile_op *row = tutti__tile_row_loop(c, v);
        *ret_name = row != NULL ? row->name : value->op->name;
        return row;
    }
    *ret_name = !is_cast(value)                   ? value->op->name
                : value->type.dtype == TUTTI_BOOL ? ".truth"
                                                  : ".load_f32";
    if (is_cast(value) && value->type.dtype != TUTTI_BOOL && c->type == TUTTI_F64)
        *ret_name = ".load_f64"; /* a copy, rounded below */
    return tutti__tile_find(*ret_name, value->attrs, value->attr_count);
}

static tutti_status add_value(compiler *c, int v)
{
    const tutti_body_value *value = value_at(c, v);
    if (root_of(c, v) != v) {
        c->states[v].place = c->states[root_of(c, v)].place;
        return TUTTI_OK;
    }
    if (c->states[v].last_use < 0 && c->states[v].total < 0)
        return TUTTI_OK;
    const char *name;
    const tutti_tile_op *row = find_loop(c, v, &name);
    if (row == NULL || row->inputs != input_count(value))
        return tutti__tile_refuse(value->op->name);
    tutti_tile_step step = {.loop = loop_of(c, row), .name = name, .inputs = row->inputs};
    bool rows = value->kind != TUTTI_BODY_ELEMENTS;
    step.kind = rows ? TUTTI_STEP_ROWS : kind_for(c, v);
    for (int i = 0; i < row->inputs; i++) {
        int root = root_of(c, value->inputs[i]);
        step.x[i] = step.kind == TUTTI_STEP_ELEMENTS && c->states[root].by_row
                        ? tutti__tile_widened(c, root)
                        : c->states[root].place;
    }
    for (int i = 0; i < TUTTI_TILE_PARAMS && row->attrs[i] != NULL; i++)
        step.params[i + rows] = tutti_attr_float(value->attrs, value->attr_count, row->attrs[i]);
    free_slots(c, v);
    step.y = c->states[v].place = place_result(c, v);
    tutti__tile_add_step(c, step);
    add_rounding(c, v);
    return TUTTI_OK;
}

static void add_store(compiler *c, int output)
{
    int v = c->body->result_values[output];
    tutti_tile_place place = c->states[root_of(c, v)].place;
    tutti_tile_loop *store = type_loop(c, "store", value_at(c, v)->type.dtype);
    if (c->states[v].total >= 0) {
        c->program->totals[c->states[v].total].store = store;
        return;
    }
    c->program->output_by_row[output] = c->states[root_of(c, v)].by_row;
    if (place.kind != TUTTI_PLACE_OUTPUT || place.index != output)
        tutti__tile_add_step(c, (tutti_tile_step){.loop = store,
                                                  .name = ".store",
                                                  .kind = kind_for(c, root_of(c, v)),
                                                  .inputs = 1,
                                                  .x = {place},
                                                  .y = {TUTTI_PLACE_OUTPUT, output}});
}

static bool reads_input(const compiler *c, int output)
{
    return c->states[root_of(c, c->body->result_values[output])].place.kind == TUTTI_PLACE_INPUT;
}

/* Results that do not stand in their output yet. Output 0 may share an input's memory, so what
 * reads inputs goes before it. */
static void add_stores(compiler *c)
{
    for (int i = 1; i < c->body->output_count; i++)
        if (reads_input(c, i))
            add_store(c, i);
    add_store(c, 0);
    for (int i = 1; i < c->body->output_count; i++)
        if (!reads_input(c, i))
            add_store(c, i);
}

static tutti_status make_steps(const tutti_kernel_query *query, compiler *c)
{
    find_uses(c);
    TUTTI_TRY(tutti__tile_classify(query, c));
    keep_results(c);
    place_sources(c);
    for (int v = c->body->source_count; v < c->body->value_count; v++)
        TUTTI_TRY(add_value(c, v));
    add_stores(c);
    if (c->type == TUTTI_F32)
        tutti__tile_make_chains(c->program);
    return TUTTI_OK;
}

/* The program with room for loads and steps, in one block of memory. */
static tutti_tile_program *program_allocate(tutti_tile_body *body)
{
    size_t values = (size_t)body->value_count, outputs = (size_t)body->output_count;
    size_t steps = 3 * values + outputs; /* computed, rounded, widened */
    tutti_tile_program *program = calloc(1, sizeof *program + values * sizeof(tutti_tile_load) +
                                                steps * sizeof(tutti_tile_step));
    if (program == NULL) {
        free(body);
        return NULL;
    }
    program->body = body;
    program->steps = (tutti_tile_step *)(program + 1);
    program->loads = (tutti_tile_load *)(program->steps + steps);
    return program;
}

static tutti_status compile(const tutti_kernel_query *query, tutti_tile_program *program)
{
    compiler c = {.program = program,
                  .body = program->body,
                  .type = computed_type(program->body),
                  .deterministic = query->deterministic};
    program->element = tutti_dtype_size(c.type);
    program->chain = tutti__chain();
    program->threads = query->threads;
    TUTTI_TRY(check_types(&c));
    TUTTI_TRY(tutti__tile_check_outputs(query, program));
    TUTTI_TRY(tutti__tile_make_space(program, TUTTI_TILE_BYTES / (int64_t)program->element));
    size_t values = (size_t)program->body->value_count;
    c.states = calloc(values, sizeof *c.states);
    c.taken = calloc(3 * values + 1, sizeof *c.taken);
    tutti_status status = c.states == NULL || c.taken == NULL
                              ? tutti_fail(TUTTI_NO_MEMORY, "no memory to plan tiles")
                              : make_steps(query, &c);
    free(c.states);
    free(c.taken);
    if (status == TUTTI_OK && program->body->row_count == 0 && tutti__tile_needs_no_slots(program))
        status = tutti__tile_make_space(program, TUTTI_TILE_WIDE);
    if (status == TUTTI_OK && program->total_count > 0 && !tutti__tile_plan_totals(program))
        return tutti__tile_refuse("totals of wide rows and of everything together");
    return status;
}

tutti_status tutti__tile_compile(const tutti_kernel_query *query, tutti_tile_program **ret_program)
{
    tutti_tile_body *body;
    TUTTI_TRY(tutti__body_read(query, &body));
    tutti_tile_program *program = program_allocate(body);
    if (program == NULL)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory to plan tiles");
    tutti_status status = compile(query, program);
    if (status != TUTTI_OK) {
        tutti__tile_discard(program);
        return status;
    }
    *ret_program = program;
    return TUTTI_OK;
}

void tutti__tile_discard(void *program)
{
    if (program == NULL)
        return;
    free(((tutti_tile_program *)program)->body);
    free(program);
}

size_t tutti__tile_workspace(const tutti_tile_program *program)
{
    return (size_t)tutti__slot_count(program->threads) *
               tutti__slot_bytes((size_t)program->slot_count * TUTTI_TILE_BYTES) +
           (size_t)program->chunks * program->chunk_bytes;
}
