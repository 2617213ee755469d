/* program.c: from a body to steps. */
#include "device/cpu/tile/program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/cpu/slots.h"
#include "device/cpu/tile/chaining.h"

/* What is known of a value while steps are made. `root`: the value whose place this one shares (a
 * cast that changes nothing); itself otherwise. */
typedef struct state {
    int root, last_use; /* last_use: index of the last value that reads it; END to the end */
    tutti_place place;
} state;

enum { END = 1 << 30 };

typedef struct compiler {
    tutti_tile_program *program;
    const tutti_body *body;
    tutti_dtype type; /* computed in: TUTTI_F32 or TUTTI_F64 */
    state *states;
    bool *taken;         /* per slot */
    int last_input_read; /* the last value that reads an input's memory */
} compiler;

static tutti_status refuse(const char *what)
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

static int input_count(const tutti_body_value *value)
{
    return value->op == NULL ? 0 : value->op->max_inputs;
}

/* Integers only come from memory into a cast, or from a cast into memory. */
static tutti_status check_types(const compiler *c)
{
    for (int v = 0; v < c->body->value_count; v++) {
        const tutti_body_value *value = value_at(c, v);
        bool whole = tutti_dtype_is_int(value->type.dtype);
        if (value->type.dtype == TUTTI_STRING || (whole && value->op != NULL && !is_cast(value)))
            return refuse("this element type");
        if (input_count(value) < 0 || input_count(value) > TUTTI_TILE_INPUTS)
            return refuse(value->op->name);
        for (int i = 0; i < input_count(value); i++) {
            const tutti_body_value *input = value_at(c, value->inputs[i]);
            bool from_whole = tutti_dtype_is_int(input->type.dtype);
            if (from_whole && (whole || !is_cast(value) || input->op != NULL))
                return refuse("integers");
        }
    }
    return TUTTI_OK;
}

static tutti_dtype computed_type(const tutti_body *body)
{
    for (int v = 0; v < body->value_count; v++)
        if (body->values[v].type.dtype == TUTTI_F64)
            return TUTTI_F64;
    return TUTTI_F32;
}

/* Whether a cast needs no step: widening, or to an integer, which storing does. */
static bool cast_is_free(const compiler *c, const tutti_body_value *cast)
{
    tutti_dtype from = value_at(c, cast->inputs[0])->type.dtype, to = cast->type.dtype;
    return from == to || to == c->type || tutti_dtype_is_int(to) ||
           (from == TUTTI_BOOL && tutti_dtype_is_float(to));
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
    for (int i = 0; i < c->body->output_count; i++)
        c->states[root_of(c, c->body->result_values[i])].last_use = END;
}

static int take_slot(compiler *c)
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
        tutti_reach reach = program->space.inputs[v].reach;
        if (s->last_use < 0)
            continue;
        if (dtype == c->type && reach == TUTTI_REACH_LINEAR) {
            s->place = (tutti_place){TUTTI_PLACE_INPUT, v};
            continue;
        }
        s->place = (tutti_place){
            reach == TUTTI_REACH_SCALAR ? TUTTI_PLACE_SCALAR : TUTTI_PLACE_SLOT, take_slot(c)};
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

static tutti_place place_result(compiler *c, int v)
{
    const tutti_body_value *value = value_at(c, v);
    if (value->output >= 0 && value->type.dtype == c->type && v >= c->last_input_read)
        return (tutti_place){TUTTI_PLACE_OUTPUT, value->output};
    return (tutti_place){TUTTI_PLACE_SLOT, take_slot(c)};
}

static void add_step(compiler *c, tutti_tile_step step)
{
    step.chain = 1;
    c->program->steps[c->program->step_count++] = step;
}

/* Results of a smaller type than is computed in are rounded to it. */
static void add_rounding(compiler *c, int v)
{
    tutti_dtype dtype = value_at(c, v)->type.dtype;
    tutti_place place = c->states[v].place;
    if (dtype != c->type && tutti_dtype_is_float(dtype))
        add_step(c, (tutti_tile_step){.loop = type_loop(c, "round", dtype),
                                      .name = ".round",
                                      .inputs = 1,
                                      .x = {place},
                                      .y = place});
}

static tutti_status add_value(compiler *c, int v)
{
    const tutti_body_value *value = value_at(c, v);
    if (root_of(c, v) != v) {
        c->states[v].place = c->states[root_of(c, v)].place;
        return TUTTI_OK;
    }
    if (c->states[v].last_use < 0)
        return TUTTI_OK;
    const char *name = !is_cast(value)                   ? value->op->name
                       : value->type.dtype == TUTTI_BOOL ? ".truth"
                                                         : ".load_f32";
    if (is_cast(value) && value->type.dtype != TUTTI_BOOL && c->type == TUTTI_F64)
        name = ".load_f64"; /* a copy, rounded below */
    const tutti_tile_op *row = tutti__tile_find(name, value->attrs, value->attr_count);
    if (row == NULL || row->inputs != input_count(value))
        return refuse(value->op->name);
    tutti_tile_step step = {.loop = loop_of(c, row), .name = name, .inputs = row->inputs};
    for (int i = 0; i < row->inputs; i++)
        step.x[i] = c->states[root_of(c, value->inputs[i])].place;
    for (int i = 0; i < TUTTI_TILE_PARAMS && row->attrs[i] != NULL; i++)
        step.params[i] = tutti_attr_float(value->attrs, value->attr_count, row->attrs[i]);
    free_slots(c, v);
    step.y = c->states[v].place = place_result(c, v);
    add_step(c, step);
    add_rounding(c, v);
    return TUTTI_OK;
}

static void add_store(compiler *c, int output)
{
    int v = c->body->result_values[output];
    tutti_place place = c->states[root_of(c, v)].place;
    if (place.kind != TUTTI_PLACE_OUTPUT || place.index != output)
        add_step(c, (tutti_tile_step){.loop = type_loop(c, "store", value_at(c, v)->type.dtype),
                                      .name = ".store",
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

static tutti_status make_steps(compiler *c)
{
    find_uses(c);
    place_sources(c);
    for (int v = c->body->source_count; v < c->body->value_count; v++)
        TUTTI_TRY(add_value(c, v));
    add_stores(c);
    if (c->type == TUTTI_F32)
        tutti__tile_make_chains(c->program);
    return TUTTI_OK;
}

static tutti_status make_space(const tutti_kernel_query *query, tutti_tile_program *program,
                               int64_t tile_elements)
{
    const tutti_body *body = program->body;
    tutti_type sources[TUTTI_SPACE_INPUTS];
    const tutti_type *out = &query->node.outputs[0];
    if (body->source_count > TUTTI_SPACE_INPUTS || body->output_count > TUTTI_SPACE_INPUTS ||
        body->output_count < 1)
        return refuse("so many inputs or outputs");
    for (int i = 0; i < body->source_count; i++)
        sources[i] = body->values[i].type;
    for (int i = 0; i < body->output_count; i++) {
        const tutti_type *other = &query->node.outputs[i];
        bool same = other->rank == out->rank &&
                    memcmp(other->dims, out->dims, (size_t)out->rank * sizeof out->dims[0]) == 0;
        if (!same || other->dtype != body->values[body->result_values[i]].type.dtype)
            return refuse("outputs of different shapes");
        program->output_elements[i] = tutti_dtype_size(other->dtype);
    }
    if (!tutti__space_make(out, body->source_count, sources, tile_elements, &program->space))
        return refuse("these shapes");
    return TUTTI_OK;
}

/* Whether no value but repeated scalars goes through a slot: then tiles need not fit in one. */
static bool needs_no_slots(const tutti_tile_program *program)
{
    for (int i = 0; i < program->load_count; i++)
        if (program->space.inputs[program->loads[i].source].reach != TUTTI_REACH_SCALAR)
            return false;
    for (int s = 0; s < program->step_count; s++) {
        const tutti_tile_step *step = &program->steps[s];
        if (step->chain == 1 || (step->keep && step->y.kind == TUTTI_PLACE_SLOT))
            return false;
        for (int i = 0; i < step->inputs; i++)
            if (step->x[i].kind == TUTTI_PLACE_SLOT)
                return false;
    }
    return true;
}

/* The program with room for loads and steps, in one block of memory. */
static tutti_tile_program *allocate(tutti_body *body)
{
    size_t values = (size_t)body->value_count, outputs = (size_t)body->output_count;
    size_t steps = 2 * values + outputs;
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
    compiler c = {.program = program, .body = program->body, .type = computed_type(program->body)};
    program->element = tutti_dtype_size(c.type);
    program->chain = tutti__chain();
    program->threads = query->threads;
    TUTTI_TRY(check_types(&c));
    TUTTI_TRY(make_space(query, program, TUTTI_TILE_BYTES / (int64_t)program->element));
    size_t values = (size_t)program->body->value_count;
    c.states = calloc(values, sizeof *c.states);
    c.taken = calloc(2 * values + 1, sizeof *c.taken);
    tutti_status status = c.states == NULL || c.taken == NULL
                              ? tutti_fail(TUTTI_NO_MEMORY, "no memory to plan tiles")
                              : make_steps(&c);
    free(c.states);
    free(c.taken);
    if (status == TUTTI_OK && needs_no_slots(program))
        status = make_space(query, program, TUTTI_TILE_WIDE);
    return status;
}

tutti_status tutti__tile_compile(const tutti_kernel_query *query, tutti_tile_program **ret_program)
{
    tutti_body *body;
    TUTTI_TRY(tutti__body_read(query, &body));
    tutti_tile_program *program = allocate(body);
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
           tutti__slot_bytes((size_t)program->slot_count * TUTTI_TILE_BYTES);
}
