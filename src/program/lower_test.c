/* lower_test.c: random graphs lowered for one and for three streams: memory is shared only along
 * happens-before, and any order that streams and tokens allow gives the reference's results. */
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "base/test.h"
#include "ops/reference.h"
#include "program/program.h"

#define NODES 40
#define GRAPHS 200

static int no_devices(void)
{
    return 0;
}

static const tutti_target one_stream = {
    .name = "test", .kernels = "cpu", .streams = 1, .alignment = 64, .count = no_devices};
static const tutti_target three_streams = {
    .name = "test", .kernels = "cpu", .streams = 3, .alignment = 64, .count = no_devices};

typedef struct dice {
    uint64_t seed, count;
} dice;

static int draw(dice *d, int limit)
{
    return (int)tutti__random_below((tutti_random_key){.seed = d->seed}, d->count++,
                                    (uint64_t)limit);
}

static tutti_edge add(tutti_graph *g, const char *op, int count, const tutti_edge *inputs,
                      int attr_count, const tutti_attr *attrs)
{
    tutti_node *node;
    CHECK_OK(tutti__node_add(g, tutti_op_find(op), NULL, count, inputs, attr_count, attrs, &node));
    return (tutti_edge){node, 0};
}

/* All values are [6, 6], so that any may follow any; halves of a split are joined again. */
static tutti_edge grow(tutti_graph *g, dice *d, const tutti_edge *values, int count)
{
    static const char *const unary[] = {"tanh", "neg", "sin", "sigmoid", "abs"};
    static const char *const binary[] = {"add", "sub", "mul", "maximum"};
    tutti_edge a = values[draw(d, count)], b = values[draw(d, count)], pair[2] = {a, b};
    int64_t flat[] = {4, 9}, square[] = {6, 6};
    switch (draw(d, 7)) {
    case 0:
        return add(g, unary[draw(d, 5)], 1, &a, 0, NULL);
    case 1:
    case 2:
        return add(g, binary[draw(d, 4)], 2, pair, 0, NULL);
    case 3:
        return add(g, "tanh", 1, (tutti_edge[]){add(g, "matmul", 2, pair, 0, NULL)}, 0, NULL);
    case 6: { /* little out of much */
        tutti_edge both[2] = {add(g, "mean", 1, &a, 0, NULL), b};
        return add(g, "mul", 2, both, 0, NULL);
    }
    case 4: {
        tutti_edge view = add(g, "reshape", 1, &a, 1, &TUTTI_INTS("dims", 2, flat));
        view = draw(d, 2) ? add(g, "neg", 1, &view, 0, NULL) : view;
        return add(g, "reshape", 1, &view, 1, &TUTTI_INTS("dims", 2, square));
    }
    default: {
        tutti_attr attrs[] = {TUTTI_INT("axis", draw(d, 2)), TUTTI_INT("outputs", 2)};
        tutti_edge halves = add(g, "split", 1, &a, 2, attrs),
                   turned[2] = {{halves.node, 1}, {halves.node, 0}};
        return add(g, "concat", 2, turned, 1, attrs);
    }
    }
}

static tutti_graph *random_graph(uint64_t seed)
{
    dice d = {.seed = seed};
    tutti_graph *g;
    tutti_edge values[NODES];
    CHECK_OK(tutti_graph_create(&g));
    for (int i = 0; i < 2; i++) {
        tutti_attr attrs[] = {TUTTI_INT("index", i), TUTTI_INT("dtype", TUTTI_F32),
                              TUTTI_INTS("dims", 2, ((int64_t[]){6, 6}))};
        values[i] = add(g, "parameter", 0, NULL, 3, attrs);
    }
    for (int n = 2; n < NODES; n++) {
        values[n] = grow(g, &d, values, n);
        if (draw(&d, 4) == 0)
            CHECK_OK(tutti__node_after(values[n].node, values[draw(&d, n)].node));
    }
    for (int i = 0; i < 4; i++)
        CHECK_OK(tutti__graph_result(g, values[i == 0 ? NODES - 1 : draw(&d, NODES)]));
    CHECK_OK(tutti__graph_prune(g));
    return g;
}

/* First and last instructions that touch the memory of a root; -1 when none does. */
static bool all_before(const tutti_program *p, int32_t root, int32_t other)
{
    for (size_t i = 0; i < p->instruction_count; i++) {
        const tutti_instruction *instruction = &p->instructions[i];
        bool touches = instruction->workspace == root;
        for (int k = 0; k < instruction->input_count; k++)
            touches = touches || p->values[instruction->inputs[k]].root == root;
        for (int k = 0; k < instruction->output_count; k++)
            touches = touches || p->values[instruction->outputs[k]].root == root;
        if (touches && !tutti__happens_before(p, (int32_t)i, other))
            return false;
    }
    for (int r = 0; r < p->result_count; r++)
        if (p->results[r].copy && p->values[p->results[r].value].root == root)
            return false;
    return true;
}

static void check_memory(const tutti_program *p)
{
    size_t sum = 0;
    for (size_t a = 0; a < p->value_count; a++) {
        const tutti_program_value *x = &p->values[a];
        if (x->space != TUTTI_IN_ARENA || x->root != (int32_t)a)
            continue;
        sum += (x->size + 63) / 64 * 64;
        CHECK(x->maker >= 0 && x->offset % 64 == 0 && x->offset + x->size <= p->arena_size);
        for (size_t b = 0; b < a; b++) {
            const tutti_program_value *y = &p->values[b];
            if (y->space != TUTTI_IN_ARENA || y->root != (int32_t)b ||
                x->offset >= y->offset + y->size || y->offset >= x->offset + x->size)
                continue;
            CHECK(all_before(p, (int32_t)a, y->maker) || all_before(p, (int32_t)b, x->maker));
        }
    }
    CHECK(p->arena_size <= sum);
}

/* Happens-before is the order of a stream, tokens, and what follows from them. */
static void check_streams(const tutti_program *p)
{
    for (int32_t b = 0; b < (int32_t)p->instruction_count; b++) {
        CHECK(p->instructions[b].stream >= 0 &&
              p->instructions[b].stream < p->device->target->streams);
        for (int k = 0; k < p->instructions[b].await_count; k++) {
            int32_t a = p->instructions[b].awaits[k];
            CHECK(a < b && tutti__happens_before(p, a, b) && p->instructions[a].signals);
        }
        for (int k = 0; k < p->instructions[b].input_count; k++) {
            int32_t maker = p->values[p->instructions[b].inputs[k]].maker;
            CHECK(maker < 0 || tutti__happens_before(p, maker, b));
        }
        for (int32_t a = 0; a < b; a++) {
            CHECK(!tutti__happens_before(p, b, a));
            if (p->instructions[a].stream == p->instructions[b].stream)
                CHECK(tutti__happens_before(p, a, b));
        }
        CHECK(!tutti__happens_before(p, b, b));
    }
}

typedef struct machine {
    const tutti_program *program;
    char *arena;
    tutti_tensor *const *inputs;
    tutti_tensor **results;
    bool *done;
} machine;

static tutti_view view_of(const machine *m, int32_t index)
{
    const tutti_program_value *value = &m->program->values[index];
    tutti_view view = {
        .dtype = value->type->dtype, .rank = value->type->rank, .dims = value->type->dims};
    switch (value->space) {
    case TUTTI_IN_ARENA:
        view.data = m->arena + value->offset;
        break;
    case TUTTI_IN_INPUT:
        view.data = tutti_tensor_data(m->inputs[value->slot]);
        break;
    case TUTTI_IN_RESULT:
        view.data = tutti_tensor_data(m->results[value->slot]);
        break;
    default:
        CHECK(!"a space that these graphs do not have");
    }
    return view;
}

static void execute(machine *m, size_t index)
{
    const tutti_instruction *i = &m->program->instructions[index];
    tutti_view inputs[4], outputs[4];
    for (int k = 0; k < i->input_count; k++)
        inputs[k] = view_of(m, i->inputs[k]);
    for (int k = 0; k < i->output_count; k++)
        outputs[k] = view_of(m, i->outputs[k]);
    tutti_kernel_call call = {.op = i->node->op,
                              .name = i->node->name,
                              .attrs = i->node->attrs,
                              .attr_count = i->node->attr_count,
                              .input_count = i->input_count,
                              .output_count = i->output_count,
                              .inputs = inputs,
                              .outputs = outputs,
                              .plan = i->plan,
                              .workspace =
                                  i->workspace >= 0 ? view_of(m, i->workspace).data : NULL};
    CHECK_OK(i->run(&call));
    m->done[index] = true;
}

/* The next instruction of a stream, when all that it awaits is done; -1 else. */
static int32_t ready(const machine *m, int stream)
{
    for (size_t i = 0; i < m->program->instruction_count; i++) {
        const tutti_instruction *instruction = &m->program->instructions[i];
        if (instruction->stream != stream || m->done[i])
            continue;
        for (int k = 0; k < instruction->await_count; k++)
            if (!m->done[instruction->awaits[k]])
                return -1;
        return (int32_t)i;
    }
    return -1;
}

static void run_in_any_order(machine *m, dice *d)
{
    memset(m->done, 0, m->program->instruction_count);
    for (size_t left = m->program->instruction_count; left > 0;) {
        int32_t index = ready(m, draw(d, m->program->device->target->streams));
        if (index < 0)
            continue;
        execute(m, (size_t)index);
        left--;
    }
    for (int r = 0; r < m->program->result_count; r++) {
        if (!m->program->results[r].copy)
            continue;
        tutti_view from = view_of(m, m->program->results[r].value);
        memcpy(tutti_tensor_data(m->results[r]), from.data, 36 * sizeof(float));
    }
}

static void compare(tutti_tensor *const *results, tutti_tensor *const *expected)
{
    for (int r = 0; r < 4; r++)
        for (int i = 0; i < 36; i++)
            CHECK_NEAR(tutti_tensor_get(results[r], i), tutti_tensor_get(expected[r], i),
                       1e-4 * (1 + 36));
}

static void check_program(tutti_graph *g, const tutti_target *target, uint64_t seed)
{
    tutti_device device = {.target = target, .name = "test:0", .memory = tutti__host_memory()};
    tutti_state *state;
    tutti_program *p;
    CHECK_OK(tutti__state_create(&state));
    CHECK_OK(tutti__program_create(&device, &(tutti_partition){.graph = g, .state = state}, &p));
    CHECK_INT(p->commit_at, p->instruction_count);
    check_memory(p);
    check_streams(p);
    tutti_tensor *inputs[2], *results[4], *expected[4];
    for (int i = 0; i < 2; i++) {
        CHECK_OK(tutti_tensor_create(TUTTI_F32, 2, (int64_t[]){6, 6}, &inputs[i]));
        for (int k = 0; k < 36; k++)
            tutti_tensor_set(
                inputs[i], k,
                tutti__random_f32((tutti_random_key){.seed = seed, .stream = (uint64_t)i},
                                  (uint64_t)k) -
                    0.5);
    }
    for (int r = 0; r < 4; r++)
        CHECK_OK(tutti_tensor_create(TUTTI_F32, 2, (int64_t[]){6, 6}, &results[r]));
    CHECK_OK(tutti__reference_subgraph(g, 2, inputs, expected));
    machine m = {p, aligned_alloc(64, p->arena_size + 64), inputs, results,
                 calloc(p->instruction_count + 1, 1)};
    CHECK(m.arena && m.done);
    dice d = {.seed = ~seed};
    for (int order = 0; order < 5; order++) {
        memset(m.arena, 0xff, p->arena_size);
        run_in_any_order(&m, &d);
        compare(results, expected);
    }
    free(m.arena);
    free(m.done);
    tutti__tensors_drop(2, inputs);
    tutti__tensors_drop(4, results);
    tutti__tensors_drop(4, expected);
    tutti__program_destroy(p);
    tutti__state_destroy(state);
}

TUTTI_TEST(lowered_graphs_share_memory_only_along_happens_before)
{
    for (uint64_t seed = 0; seed < (TUTTI_TEST_SANITIZED ? GRAPHS / 5 : GRAPHS); seed++) {
        tutti_graph *g = random_graph(seed);
        check_program(g, &one_stream, seed);
        check_program(g, &three_streams, seed);
        tutti_graph_destroy(g);
    }
}
