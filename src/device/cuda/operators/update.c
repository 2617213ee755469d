/* update.c: see update.cu: the update operators of all optimizers, of whole variables and of rows.
 */
#include <string.h>

#include "device/cuda/kernels/common.h"
#include "device/cuda/operators/scatter.h"
#include "tables/cuda_texts.h"

enum { CHUNK = 4096, VARIABLES = 32, ATTRIBUTES = 6, NUMBERS_BYTES = 256 };

/* In the order of update.cu; attributes by place. */
static const struct {
    const char *name;
    const char *attributes[ATTRIBUTES];
    int slots;
    bool counts_steps, no_rate, measures;
} rules[] = {
    {"sgd", {"momentum", "nesterov", "torch_form"}, 0, false, false, false},
    {"adam", {"beta1", "beta2", "epsilon", "amsgrad", "torch_form"}, 2, true, false, false},
    {"adagrad", {"epsilon", "torch_form"}, 1, false, false, false},
    {"adadelta", {"rho", "epsilon"}, 2, false, false, false},
    {"rmsprop", {"rho", "epsilon", "momentum", "centered", "torch_form"}, 1, false, false, false},
    {"adamax", {"beta1", "beta2", "epsilon", "torch_form"}, 2, true, false, false},
    {"nadam", {"beta1", "beta2", "epsilon", "momentum_decay"}, 2, true, false, false},
    {"lamb", {"beta1", "beta2", "epsilon"}, 2, true, false, true},
    {"ema", {"decay"}, 0, true, true, false},
    {"lars", {"momentum", "nesterov", "trust", "epsilon"}, 1, false, false, true},
    {"lion", {"beta1", "beta2"}, 1, false, false, false},
};

static int rule_of(const char *op)
{
    for (size_t i = 0; i < TUTTI_COUNT(rules); i++) {
        size_t length = strlen(rules[i].name);
        if (strncmp(op, rules[i].name, length) == 0 && strncmp(op + length, "_update", 7) == 0)
            return (int)i;
    }
    return -1;
}

typedef struct layout {
    int rule, slots, indices, gradient, lr, step, scale, apply; /* -1: there is none */
} layout;

static double number(const tutti_attr *attrs, int count, const char *name)
{
    const tutti_attr *attr = tutti_attr_find(attrs, count, name);
    return !attr ? 0 : attr->kind == TUTTI_ATTR_FLOAT ? attr->value.f : (double)attr->value.i;
}

static layout layout_of(const tutti_op *op, const tutti_attr *attrs, int count, int inputs)
{
    layout at = {.rule = rule_of(op->name)};
    at.slots = rules[at.rule].slots;
    if (strcmp(rules[at.rule].name, "sgd") == 0)
        at.slots = number(attrs, count, "momentum") != 0;
    else if (strcmp(rules[at.rule].name, "adam") == 0)
        at.slots += number(attrs, count, "amsgrad") != 0;
    else if (strcmp(rules[at.rule].name, "rmsprop") == 0)
        at.slots +=
            (number(attrs, count, "centered") != 0) + (number(attrs, count, "momentum") != 0);
    int next = 1 + at.slots;
    at.indices = strstr(op->name, "_update_rows") ? next++ : -1;
    at.gradient = next++;
    at.lr = rules[at.rule].no_rate ? -1 : next++;
    at.step = rules[at.rule].counts_steps ? next++ : -1;
    at.scale = number(attrs, count, "scaled") != 0 ? next++ : -1;
    at.apply = inputs > next ? next : -1;
    return at;
}

static layout layout_of_call(const tutti_cuda_call *c)
{
    return layout_of(c->call->op, c->call->attrs, c->call->attr_count, c->call->input_count);
}

/* As the kernels have them. */
typedef struct given {
    double a[ATTRIBUTES], decay, clip;
    tutti_cu_pointer rate, step, scale, apply;
} given;
typedef struct variables {
    tutti_cu_pointer x[VARIABLES][4], g[VARIABLES], y[VARIABLES];
    int64_t count[VARIABLES];
    uint32_t first[VARIABLES];
    int number;
} variables;
typedef struct rows_of {
    tutti_cu_pointer x[4];
} rows_of;

static tutti_cu_pointer optional(const tutti_cuda_call *c, int input)
{
    return input >= 0 ? tutti__cuda_in(c, input) : 0;
}

static double clip_of(const tutti_cuda_call *c)
{
    return number(c->call->attrs, c->call->attr_count, "clip");
}

static void options_of(const tutti_cuda_call *c, const layout *at, char *ret)
{
    snprintf(ret, TUTTI_CUDA_OPTIONS_SIZE, "-DRULE=%d -DTYPE=%s -DGRADIENT=%s -DSLOTS=%d", at->rule,
             tutti__cuda_dtype(c->call->inputs[0].dtype),
             tutti__cuda_dtype(c->call->inputs[at->gradient].dtype), at->slots);
}

static tutti_status start_numbers(const tutti_cuda_call *c, const layout *at, const char *options,
                                  tutti_cu_pointer numbers)
{
    given in = {.rate = optional(c, at->lr),
                .step = optional(c, at->step),
                .scale = optional(c, at->scale),
                .apply = optional(c, at->apply)};
    for (int i = 0; i < ATTRIBUTES && rules[at->rule].attributes[i]; i++)
        in.a[i] = number(c->call->attrs, c->call->attr_count, rules[at->rule].attributes[i]);
    in.decay = number(c->call->attrs, c->call->attr_count, "weight_decay");
    in.clip = clip_of(c);
    return tutti__cuda_start(c, &tutti_cuda_source_update, "update_numbers", 1, 1,
                             (void *[]){&in, &numbers}, "%s", options);
}

static rows_of all_of(const tutti_cuda_call *c, const layout *at)
{
    rows_of v = {{0}};
    for (int s = 0; s <= at->slots; s++)
        v.x[s] = tutti__cuda_in(c, s);
    return v;
}

static tutti_status measure(const tutti_cuda_call *c, const layout *at, const char *options,
                            tutti_cu_pointer numbers)
{
    rows_of v = all_of(c, at);
    tutti_cu_pointer g = tutti__cuda_in(c, at->gradient), partial = numbers + NUMBERS_BYTES;
    int64_t count = tutti__cuda_count(&c->call->inputs[0]), blocks = tutti__cuda_ceil(count, CHUNK);
    double clip = clip_of(c);
    TUTTI_TRY(tutti__cuda_start(c, &tutti_cuda_source_update, "update_measure", blocks, 256,
                                (void *[]){&v, &g, &count, &clip, &numbers, &partial}, "%s",
                                options));
    return tutti__cuda_start(c, &tutti_cuda_source_update, "update_trust", 1, 1,
                             (void *[]){&partial, &blocks, &numbers}, "%s", options);
}

static tutti_status update_many(const tutti_cuda_call *calls, int count)
{
    layout at = layout_of_call(&calls[0]);
    tutti_cu_pointer numbers = tutti__cuda_work(&calls[0]);
    char options[TUTTI_CUDA_OPTIONS_SIZE];
    double clip = clip_of(&calls[0]);
    options_of(&calls[0], &at, options);
    TUTTI_TRY(start_numbers(&calls[0], &at, options, numbers));
    if (rules[at.rule].measures)
        TUTTI_TRY(measure(&calls[0], &at, options, numbers));
    for (int i = 0; i < count;) {
        variables all = {.number = 0};
        int64_t blocks = 0;
        for (; i < count && all.number < VARIABLES; i++, all.number++) {
            const tutti_cuda_call *c = &calls[i];
            int n = all.number;
            for (int s = 0; s <= at.slots; s++)
                all.x[n][s] = tutti__cuda_in(c, s);
            all.g[n] = tutti__cuda_in(c, at.gradient);
            all.y[n] = tutti__cuda_out(c, 0) == all.x[n][0] ? 0 : tutti__cuda_out(c, 0);
            all.count[n] = tutti__cuda_count(&c->call->inputs[0]);
            all.first[n] = (uint32_t)blocks;
            blocks += tutti__cuda_ceil(all.count[n], CHUNK);
        }
        TUTTI_TRY(tutti__cuda_start(&calls[0], &tutti_cuda_source_update, "update", blocks, 256,
                                    (void *[]){&all, &clip, &numbers}, "%s", options));
    }
    return TUTTI_OK;
}

static int64_t align(int64_t bytes)
{
    return tutti__cuda_ceil(bytes, 256) * 256;
}

static tutti_status update_rows(const tutti_cuda_call *c)
{
    const tutti_view *v = &c->call->inputs[0];
    layout at = layout_of_call(c);
    const tutti_view *indices = &c->call->inputs[at.indices], *g = &c->call->inputs[at.gradient];
    int64_t count = tutti__cuda_count(indices), bytes = (int64_t)tutti_dtype_size(g->dtype);
    int64_t length = count > 0 ? tutti__cuda_count(g) / count : 0;
    tutti_cu_pointer numbers = tutti__cuda_work(c), combined = numbers + NUMBERS_BYTES;
    tutti_cuda_scatter s = {.dtype = g->dtype,
                            .count = count,
                            .length = length,
                            .rows = (uint32_t)v->dims[0],
                            .store = 3,
                            .updates = tutti__cuda_in(c, at.gradient),
                            .y = combined,
                            .workspace = combined + (uint64_t)align(count * length * bytes)};
    char options[TUTTI_CUDA_OPTIONS_SIZE];
    double clip = clip_of(c);
    rows_of all = all_of(c, &at);
    tutti_cu_pointer keys = s.workspace + (uint64_t)align(count * 4);
    tutti_cu_pointer positions = keys + (uint64_t)align(count * 4);
    options_of(c, &at, options);
    TUTTI_TRY(start_numbers(c, &at, options, numbers));
    TUTTI_TRY(tutti__cuda_scatter_keys(c, indices, 1, v->dims[0], s.rows, s.workspace));
    TUTTI_TRY(tutti__cuda_scatter(c, &s));
    TUTTI_TRY(tutti__cuda_start(
        c, &tutti_cuda_source_update, "update_rows", tutti__cuda_blocks(count * length), 256,
        (void *[]){&all, &combined, &keys, &positions, &count, &length, &s.rows, &clip, &numbers},
        "%s", options));
    return tutti__cuda_copy(c, tutti__cuda_out(c, 0), all.x[0],
                            tutti__cuda_count(v) * (int64_t)tutti_dtype_size(v->dtype));
}

static tutti_status update_run(const tutti_cuda_call *c)
{
    if (layout_of_call(c).indices >= 0)
        return update_rows(c);
    return update_many(c, 1);
}

/* One rule, types and numbers. */
static bool update_joins(const tutti_cuda_call *a, const tutti_cuda_call *b)
{
    layout at = layout_of_call(a), other = layout_of_call(b);
    if (memcmp(&at, &other, sizeof at) != 0 || at.indices >= 0 || rules[at.rule].measures ||
        a->call->inputs[0].dtype != b->call->inputs[0].dtype ||
        a->call->inputs[at.gradient].dtype != b->call->inputs[at.gradient].dtype)
        return false;
    for (int i = at.gradient + 1; i < a->call->input_count; i++)
        if (a->call->inputs[i].data != b->call->inputs[i].data)
            return false;
    for (int i = 0; i < a->call->attr_count; i++)
        if (number(a->call->attrs, a->call->attr_count, a->call->attrs[i].name) !=
            number(b->call->attrs, b->call->attr_count, a->call->attrs[i].name))
            return false;
    return true;
}

static bool update_covers(const tutti_op *op)
{
    return rule_of(op->name) >= 0;
}

/* Slots and variable of one type. */
static int update_score(const tutti_kernel_query *query)
{
    const tutti_infer *node = &query->node;
    layout at = layout_of(node->op, node->attrs, node->attr_count, node->input_count);
    for (int s = 1; s <= at.slots; s++)
        if (node->inputs[s].dtype != node->inputs[0].dtype)
            return 0;
    if (at.lr >= 0 && node->inputs[at.lr].dtype != TUTTI_F32)
        return 0;
    if (at.scale >= 0 && node->inputs[at.scale].dtype != TUTTI_F32)
        return 0;
    return at.step < 0 || node->inputs[at.step].dtype == TUTTI_I64 ? 100 : 0;
}

static size_t update_workspace(const tutti_kernel_query *query)
{
    const tutti_infer *node = &query->node;
    layout at = layout_of(node->op, node->attrs, node->attr_count, node->input_count);
    size_t bytes = NUMBERS_BYTES;
    if (rules[at.rule].measures)
        bytes += (size_t)tutti__cuda_ceil(tutti__cuda_type_count(&node->inputs[0]), CHUNK) * 16;
    if (at.indices >= 0) {
        int64_t count = tutti__cuda_type_count(&node->inputs[at.indices]);
        int64_t all = tutti__cuda_type_count(&node->inputs[at.gradient]);
        bytes += (size_t)align(all * 8);
        bytes += count > 0 ? tutti__cuda_scatter_workspace(count, all / count) : 0;
    }
    return bytes;
}

static const char *const variants[] = {"-DRULE=1 -DTYPE=float -DGRADIENT=float -DSLOTS=2",
                                       "-DRULE=0 -DTYPE=bf16 -DGRADIENT=bf16 -DSLOTS=1", NULL};

const tutti_cuda_source tutti_cuda_source_update = {
    .name = "update",
    .text = &tutti__cuda_text_update_cu,
    .variants = variants,
};

const tutti_cuda_kernel tutti_cuda_kernel_update = {
    .name = "update",
    .version = 1,
    .op = TUTTI_KERNEL_ANY,
    .covers = update_covers,
    .score = update_score,
    .workspace = update_workspace,
    .run = update_run,
    .joins = update_joins,
    .run_many = update_many,
};
