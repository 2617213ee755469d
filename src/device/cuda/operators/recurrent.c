/* recurrent.c: see recurrent.cu: simple_rnn, gru and lstm and their gradients. */
#include <string.h>

#include "device/cuda/kernels/common.h"
#include "device/cuda/operators/lines.h"
#include "tables/cuda_texts.h"

typedef struct cell {
    int number, gates, states, kept, biases;
} cell;

typedef struct sizes {
    int64_t batch, time, units;
    int reverse;
} sizes;

typedef struct incoming {
    tutti_cu_pointer y, h, c, reserve;
} incoming;

static cell cell_of(const char *op)
{
    return op[0] == 's'   ? (cell){0, 1, 1, 0, 1}
           : op[0] == 'g' ? (cell){1, 3, 1, 4, 2}
                          : (cell){2, 4, 2, 5, 1};
}

static int64_t align(int64_t bytes)
{
    return tutti__cuda_ceil(bytes, 256) * 256;
}

#define START(entry, blocks, ...)                                                                  \
    tutti__cuda_start(c, &tutti_cuda_source_recurrent, entry, blocks, 256,                         \
                      (void *[]){__VA_ARGS__}, "-DTYPE=%s -DCELL=%d -DLENGTHS=%s",                 \
                      tutti__cuda_dtype(c->call->inputs[0].dtype), of.number, lengths_type)

/* Whether a block keeps the recurrent matrix, and how: HELD rows in registers, the rest in shared
 * memory. */
typedef struct holding {
    bool can;
    int held, bytes;
} holding;

static holding holding_of(const tutti_cuda_call *c, const cell *of, int64_t units)
{
    enum {
        STATIC = 40 << 10,
        MOST_THREADS = 1024,
        FEW_THREADS = 512,
        MANY_HELD = 64,
        FEW_HELD = 32
    };
    int64_t wide = of->gates * units, most = wide <= FEW_THREADS ? MANY_HELD : FEW_HELD;
    int64_t held = units < most ? units : most;
    int64_t bytes = (units + 2 * wide + (units - held) * wide) * 4;
    bool can = c->call->inputs[0].dtype != TUTTI_F64 && units % 4 == 0 && units > 0 &&
               wide <= MOST_THREADS && bytes <= c->on.device->shared_bytes - 1024;
    return (holding){can, (int)held, bytes > STATIC ? (int)bytes : 0};
}

static tutti_status start_held(const tutti_cuda_call *c, const char *entry, const cell *of,
                               const sizes *s, const holding *h, const char *lengths_type,
                               void **arguments)
{
    char options[TUTTI_CUDA_OPTIONS_SIZE];
    snprintf(options, sizeof options, "-DTYPE=%s -DCELL=%d -DLENGTHS=%s -DUNITS=%d -DHELD=%d%s",
             tutti__cuda_dtype(c->call->inputs[0].dtype), of->number, lengths_type, (int)s->units,
             h->held, h->bytes ? " -DDYNAMIC" : "");
    if (s->batch == 0)
        return TUTTI_OK;
    return tutti__cuda_launch_on(c->on.device, c->on.stream,
                                 &(tutti_cuda_launch){.source = &tutti_cuda_source_recurrent,
                                                      .options = options,
                                                      .entry = entry,
                                                      .grid = {(unsigned)s->batch},
                                                      .threads = (unsigned)(of->gates * s->units),
                                                      .shared = h->bytes},
                                 arguments);
}

/* Sums of columns. */
static tutti_status bias_sums(const tutti_cuda_call *c, const cell *given, const char *lengths_type,
                              tutti_cu_pointer d, int64_t rows, int64_t wide,
                              tutti_cu_pointer workspace, tutti_cu_pointer sums)
{
    cell of = *given;
    tutti_dtype dtype = c->call->inputs[0].dtype;
    tutti_cuda_type type = dtype == TUTTI_F32    ? TUTTI_CUDA_F32
                           : dtype == TUTTI_BF16 ? TUTTI_CUDA_BF16
                                                 : TUTTI_CUDA_F16;
    if (dtype == TUTTI_F64 || rows < 1)
        return START("recurrent_bias", tutti__cuda_ceil(wide, 32), &d, &rows, &wide, &sums);
    return tutti__cuda_reduce_columns(c->on, &(tutti_cuda_reduce){.type = type,
                                                                  .out = type,
                                                                  .x = d,
                                                                  .y = sums,
                                                                  .workspace = workspace,
                                                                  .rows = rows,
                                                                  .width = wide});
}

static sizes sizes_of(const tutti_cuda_call *c, const cell *of)
{
    const tutti_view *x = &c->call->inputs[0], *recurrent = &c->call->inputs[2 + of->states];
    return (sizes){x->dims[0], x->dims[1], recurrent->dims[0],
                   tutti_attr_int(c->call->attrs, c->call->attr_count, "reverse") != 0};
}

/* Work space: x kernel, then the rows' states. */
static tutti_status forward(const tutti_cuda_call *c)
{
    cell of = cell_of(c->call->op->name);
    sizes s = sizes_of(c, &of);
    int kernel = 1 + of.states, slot = kernel + 3;
    bool ends = c->call->input_count > slot;
    const char *lengths_type = ends ? tutti__cuda_dtype(c->call->inputs[slot].dtype) : "i32";
    int64_t steps = s.batch * s.time, wide = of.gates * s.units;
    int64_t bytes = (int64_t)tutti_dtype_size(c->call->inputs[0].dtype);
    tutti_cu_pointer a = tutti__cuda_work(c), scratch = a + (uint64_t)align(steps * wide * bytes);
    tutti_cu_pointer h0 = tutti__cuda_in(c, 1), c0 = of.states == 2 ? tutti__cuda_in(c, 2) : 0;
    tutti_cu_pointer matrix = tutti__cuda_in(c, kernel + 1), bias = tutti__cuda_in(c, kernel + 2);
    tutti_cu_pointer lengths = ends ? tutti__cuda_in(c, slot) : 0, y = tutti__cuda_out(c, 0);
    tutti_cu_pointer h_end = tutti__cuda_out(c, 1);
    tutti_cu_pointer c_end = of.states == 2 ? tutti__cuda_out(c, 2) : 0;
    tutti_cu_pointer reserve = of.kept > 0 ? tutti__cuda_out(c, 1 + of.states) : 0;
    TUTTI_TRY(tutti__cuda_matmul(c, &(tutti_cuda_matmul){.dtype = c->call->inputs[0].dtype,
                                                         .a = tutti__cuda_in(c, 0),
                                                         .b = tutti__cuda_in(c, kernel),
                                                         .y = a,
                                                         .batch = 1,
                                                         .m = steps,
                                                         .n = wide,
                                                         .k = c->call->inputs[0].dims[2]}));
    holding held = holding_of(c, &of, s.units);
    if (held.can)
        return start_held(
            c, "recurrent_held", &of, &s, &held, lengths_type,
            (void *[]){&a, &h0, &c0, &matrix, &bias, &lengths, &s, &y, &h_end, &c_end, &reserve});
    return START("recurrent", s.batch, &a, &h0, &c0, &matrix, &bias, &lengths, &s, &y, &h_end,
                 &c_end, &reserve, &scratch);
}

/* Where the inputs of a gradient stand; -1: there is none. */
typedef struct slots {
    int kernel, recurrent, y, reserve, grads[4], lengths;
} slots;

static slots slots_of(const cell *of, int64_t grads, int input_count)
{
    int next = 1 + of->states, outputs = 1 + of->states + (of->kept > 0);
    slots at = {.reserve = -1, .grads = {-1, -1, -1, -1}, .lengths = -1};
    at.kernel = next++;
    at.recurrent = next++;
    at.y = next++;
    if (of->kept > 0)
        at.reserve = next++;
    for (int i = 0; i < outputs; i++)
        if (grads >> i & 1)
            at.grads[i] = next++;
    if (input_count > next)
        at.lengths = next;
    return at;
}

static tutti_cu_pointer optional(const tutti_cuda_call *c, int slot)
{
    return slot >= 0 ? tutti__cuda_in(c, slot) : 0;
}

static tutti_status backward(const tutti_cuda_call *c)
{
    cell of = cell_of(c->call->op->name);
    sizes s = sizes_of(c, &of);
    tutti_dtype dtype = c->call->inputs[0].dtype;
    slots at = slots_of(&of, tutti_attr_int(c->call->attrs, c->call->attr_count, "grads"),
                        c->call->input_count);
    const char *lengths_type =
        at.lengths >= 0 ? tutti__cuda_dtype(c->call->inputs[at.lengths].dtype) : "i32";
    int64_t steps = s.batch * s.time, wide = of.gates * s.units,
            bytes = (int64_t)tutti_dtype_size(dtype);
    int64_t features = c->call->inputs[0].dims[2], all = steps * features;
    tutti_cu_pointer da = tutti__cuda_work(c), db = da + (uint64_t)align(steps * wide * bytes);
    tutti_cu_pointer before = db + (uint64_t)align(steps * wide * bytes);
    tutti_cu_pointer x = before + (uint64_t)align(steps * s.units * bytes);
    tutti_cu_pointer scratch = x + (uint64_t)align(all * bytes), given = tutti__cuda_in(c, 0);
    tutti_cu_pointer h0 = tutti__cuda_in(c, 1), c0 = of.states == 2 ? tutti__cuda_in(c, 2) : 0;
    tutti_cu_pointer matrix = tutti__cuda_in(c, at.recurrent), y = tutti__cuda_in(c, at.y);
    tutti_cu_pointer reserve = optional(c, at.reserve), lengths = optional(c, at.lengths);
    tutti_cu_pointer dh = tutti__cuda_out(c, 1), dc = of.states == 2 ? tutti__cuda_out(c, 2) : 0;
    tutti_cu_pointer dbias = tutti__cuda_out(c, at.recurrent + 1);
    incoming grads = {optional(c, at.grads[0]), optional(c, at.grads[1]),
                      of.states == 2 ? optional(c, at.grads[2]) : 0,
                      of.kept > 0 ? optional(c, at.grads[1 + of.states]) : 0};
    holding held = holding_of(c, &of, s.units);
    if (held.can)
        TUTTI_TRY(start_held(c, "recurrent_gradient_held", &of, &s, &held, lengths_type,
                             (void *[]){&h0, &c0, &matrix, &y, &reserve, &lengths, &grads, &s, &dh,
                                        &dc, &da, &db, &before}));
    else
        TUTTI_TRY(START("recurrent_gradient", s.batch, &h0, &c0, &matrix, &y, &reserve, &lengths,
                        &grads, &s, &dh, &dc, &da, &db, &before, &scratch));
    db = of.biases == 2 ? db : da;
    if (at.lengths >= 0)
        TUTTI_TRY(START("recurrent_ends", tutti__cuda_blocks(all), &given, &lengths, &s.time,
                        &features, &all, &x));
    else
        x = given;
    TUTTI_TRY(bias_sums(c, &of, lengths_type, da, steps, wide, scratch, dbias));
    if (of.biases == 2)
        TUTTI_TRY(bias_sums(c, &of, lengths_type, db, steps, wide, scratch,
                            dbias + (uint64_t)(wide * bytes)));
    TUTTI_TRY(tutti__cuda_matmul(c, &(tutti_cuda_matmul){.dtype = dtype,
                                                         .a = da,
                                                         .b = tutti__cuda_in(c, at.kernel),
                                                         .y = tutti__cuda_out(c, 0),
                                                         .batch = 1,
                                                         .m = steps,
                                                         .n = features,
                                                         .k = wide,
                                                         .transpose_b = true}));
    TUTTI_TRY(tutti__cuda_matmul(c, &(tutti_cuda_matmul){.dtype = dtype,
                                                         .a = x,
                                                         .b = da,
                                                         .y = tutti__cuda_out(c, at.kernel),
                                                         .batch = 1,
                                                         .m = features,
                                                         .n = wide,
                                                         .k = steps,
                                                         .transpose_a = true}));
    return tutti__cuda_matmul(c, &(tutti_cuda_matmul){.dtype = dtype,
                                                      .a = before,
                                                      .b = db,
                                                      .y = tutti__cuda_out(c, at.recurrent),
                                                      .batch = 1,
                                                      .m = s.units,
                                                      .n = wide,
                                                      .k = steps,
                                                      .transpose_a = true});
}

static const char *const others[] = {"simple_rnn_backward", "gru", "gru_backward", "lstm",
                                     "lstm_backward",       NULL};

static tutti_status recurrent_run(const tutti_cuda_call *c)
{
    return strstr(c->call->op->name, "_backward") ? backward(c) : forward(c);
}

/* Work space for either way. */
static size_t recurrent_workspace(const tutti_kernel_query *query)
{
    const tutti_infer *node = &query->node;
    cell of = cell_of(node->op->name);
    int64_t steps = node->inputs[0].dims[0] * node->inputs[0].dims[1];
    int64_t units = node->inputs[2 + of.states].dims[0];
    int64_t bytes = (int64_t)tutti_dtype_size(node->inputs[0].dtype);
    size_t scratch = (size_t)align(node->inputs[0].dims[0] * (of.gates + 2) * units * 8);
    size_t sums = tutti__cuda_reduce_workspace(
        &(tutti_cuda_reduce){.rows = steps, .width = of.gates * units});
    return (size_t)(2 * align(steps * of.gates * units * bytes) + align(steps * units * bytes) +
                    align(steps * node->inputs[0].dims[2] * bytes)) +
           (scratch > sums ? scratch : sums);
}

static const char *const variants[] = {"-DTYPE=float -DCELL=2 -DLENGTHS=i32",
                                       "-DTYPE=float -DCELL=1 -DLENGTHS=i64",
                                       "-DTYPE=bf16 -DCELL=0 -DLENGTHS=i32",
                                       "-DTYPE=float -DCELL=2 -DLENGTHS=i32 -DUNITS=128 -DHELD=64 "
                                       "-DDYNAMIC",
                                       "-DTYPE=bf16 -DCELL=1 -DLENGTHS=i32 -DUNITS=32 -DHELD=32",
                                       NULL};

const tutti_cuda_source tutti_cuda_source_recurrent = {
    .name = "recurrent",
    .text = &tutti__cuda_text_recurrent_cu,
    .variants = variants,
};

const tutti_cuda_kernel tutti_cuda_kernel_recurrent = {
    .name = "recurrent",
    .version = 1,
    .op = "simple_rnn",
    .ops = others,
    .workspace = recurrent_workspace,
    .run = recurrent_run,
};
