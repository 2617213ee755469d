/* reducing.c: fused element-wise work with its reductions, as one kernel whose text is written for
 * it: reductions of rows, whose results may be used at once, and sums over leading axes or over
 * everything.
 *
 * A group of LANES threads takes a share of the rows, one after the other. What is done to a row's
 * elements falls into phases: phase p computes again from the inputs what its reductions need, and
 * they what the next phase needs; the last one writes. softmax written out has three: the largest;
 * the sum of exponentials; the quotient. Sums over rows stay in registers and go to a buffer at the
 * end, one for each group, which a second launch adds in their order. Everything follows from the
 * shapes. */
#include <stdlib.h>
#include <string.h>

#include "device/cuda/kernels/common.h"
#include "device/cuda/operators/space.h"

enum { THREADS = 256, MOST_GROUPS = 1024, MOST_EACH = 16 };

typedef struct reducing_plan {
    tutti_cuda_body *body;
    tutti_cuda_space space;
    tutti_text text;
    int lanes, each; /* each: columns of a thread */
    int64_t groups, share;
} reducing_plan;

static bool is_total(const tutti_cuda_value *v)
{
    return v->reach == TUTTI_CUDA_TOTAL;
}

/* Marks what value i takes of a row's elements. */
static void need(const tutti_cuda_body *body, int i, bool *needed)
{
    const tutti_cuda_value *v = &body->values[i];
    if (needed[i] || (v->reach != TUTTI_CUDA_FULL && !is_total(v)))
        return;
    needed[i] = true;
    for (int k = 0; k < v->input_count; k++)
        need(body, v->inputs[k], needed);
}

static bool is_last(const tutti_cuda_body *body, int phase)
{
    return phase == body->phase_count;
}

/* What phase p needs: its reductions' operands; in the last one what is written or added up. */
static bool find_needed(const tutti_cuda_body *body, int phase, bool *needed)
{
    bool any = false;
    memset(needed, 0, (size_t)body->count * sizeof *needed);
    for (int i = 0; i < body->count; i++) {
        const tutti_cuda_value *v = &body->values[i];
        if ((v->reduces && !is_total(v) && v->phase == phase) ||
            (is_total(v) && is_last(body, phase)))
            need(body, v->inputs[0], needed);
    }
    for (int o = 0; o < body->output_count && is_last(body, phase); o++)
        if (body->values[body->results[o]].reach == TUTTI_CUDA_FULL)
            need(body, body->results[o], needed);
    for (int i = 0; i < body->count; i++)
        any |= needed[i];
    return any;
}

static const char *start_of(const tutti_cuda_value *v)
{
    return strcmp(v->op->name, "max") == 0   ? "-INFINITY"
           : strcmp(v->op->name, "min") == 0 ? "INFINITY"
                                             : "0";
}

/* Joins b into a. */
static void write_join(const tutti_cuda_value *v, const char *a, const char *b, tutti_text *text)
{
    if (v->op->name[0] == 'm' && v->op->name[1] != 'e')
        tutti__text_add(text, "%s = op_%s(%s, %s);\n", a,
                        strcmp(v->op->name, "max") == 0 ? "maximum" : "minimum", a, b);
    else
        tutti__text_add(text, "%s += %s;\n", a, b);
}

/* Loads of the inputs, then the values, of one element. */
static void write_elements(const reducing_plan *plan, const bool *needed, tutti_text *text)
{
    const tutti_cuda_body *body = plan->body;
    int strided = 0;
    for (int i = 0; i < body->count; i++) {
        const tutti_cuda_value *v = &body->values[i];
        bool offset = i < body->source_count && tutti__cuda_space_strides(&plan->space, i);
        if (needed[i] && !is_total(v)) {
            tutti__text_add(text, "            ");
            if (i >= body->source_count)
                tutti__cuda_body_write(body, i, text);
            else if (offset)
                tutti__text_add(text, "const %s v%d = widen(p%d[o%d]);\n",
                                tutti__cuda_computed(v->type.dtype), i, i, strided);
            else
                tutti__text_add(text, "const %s v%d = widen(p%d[%s]);\n",
                                tutti__cuda_computed(v->type.dtype), i, i,
                                plan->space.step[i] == TUTTI_CUDA_ALWAYS ? "0" : "i");
        }
        strided += offset;
    }
}

/* Where an element of a result goes that is made element by element, and which of them does:
 * results may have one for each row, or column, only. index NULL: neither. */
typedef struct result_place {
    const char *condition, *index;
} result_place;

static result_place place_of(const tutti_cuda_body *body, const tutti_type *type)
{
    const tutti_type *full = &body->full;
    int lead = full->rank - type->rank, first = full->rank; /* of the dimensions of a row */
    int64_t columns = 1;
    bool rows = true, every = true, is_row = lead == 0;
    while (first > 0 && columns < body->columns)
        columns *= full->dims[--first];
    for (int i = 0; lead >= 0 && i < full->rank; i++) {
        int64_t own = i < lead ? 1 : type->dims[i - lead];
        rows &= own == (i < first ? full->dims[i] : 1);
        is_row &= own == (i < first ? 1 : full->dims[i]);
        every &= own == full->dims[i];
    }
    is_row |= lead == first && tutti__cuda_type_count(type) == columns;
    if (lead < 0 || columns != body->columns)
        return (result_place){
            "", tutti__cuda_type_count(type) == body->rows * body->columns ? "i" : NULL};
    return every    ? (result_place){"", "i"}
           : rows   ? (result_place){"if (c == 0) ", "r"}
           : is_row ? (result_place){"if (r == 0) ", "c"}
                    : (result_place){"", NULL};
}

/* What becomes of the elements in this phase. */
static void write_uses(const tutti_cuda_body *body, const tutti_infer *node, int phase,
                       tutti_text *text)
{
    char a[32], b[32];
    for (int i = 0; i < body->count; i++) {
        const tutti_cuda_value *v = &body->values[i];
        if (!v->reduces || (is_total(v) ? !is_last(body, phase) : v->phase != phase))
            continue;
        snprintf(b, sizeof b, "v%d", v->inputs[0]);
        if (is_total(v))
            snprintf(a, sizeof a, v->whole_total ? "t%d" : "t%d[e]", v->total);
        else
            snprintf(a, sizeof a, "a%d", i);
        tutti__text_add(text, "            ");
        write_join(v, a, b, text);
    }
    for (int o = 0; o < body->output_count && is_last(body, phase); o++)
        if (body->values[body->results[o]].reach == TUTTI_CUDA_FULL) {
            result_place place = place_of(body, &node->outputs[o]);
            tutti__text_add(text, "            %sq%d[%s] = narrow<%s>(v%d);\n", place.condition, o,
                            place.index, tutti__cuda_dtype(node->outputs[o].dtype),
                            body->results[o]);
        }
}

/* The group's result of each reduction of the phase, and what follows from them once for the row.
 */
static void write_row_values(const reducing_plan *plan, int phase, tutti_text *text)
{
    const tutti_cuda_body *body = plan->body;
    for (int i = body->source_count; i < body->count; i++) {
        const tutti_cuda_value *v = &body->values[i];
        if (v->reach != TUTTI_CUDA_ROW)
            continue;
        if (v->reduces && v->phase == phase) {
            const char *kind = strcmp(v->op->name, "max") == 0   ? "most_of_group"
                               : strcmp(v->op->name, "min") == 0 ? "least_of_group"
                                                                 : "sum_of_group";
            tutti__text_add(text, "        const %s v%d = settle<%s>(%s(a%d)%s);\n",
                            tutti__cuda_computed(v->type.dtype), i,
                            tutti__cuda_dtype(v->type.dtype), kind, i,
                            strcmp(v->op->name, "mean") == 0 ? " / columns" : "");
        } else if (!v->reduces && v->phase == phase + 1) {
            tutti__text_add(text, "        ");
            tutti__cuda_body_write(body, i, text);
        }
    }
}

static void write_phase(const reducing_plan *plan, const tutti_infer *node, int phase, bool *needed,
                        tutti_text *text)
{
    const tutti_cuda_body *body = plan->body;
    for (int i = 0; i < body->count; i++) {
        const tutti_cuda_value *v = &body->values[i];
        if (v->reduces && !is_total(v) && v->phase == phase)
            tutti__text_add(text, "        %s a%d = %s;\n", tutti__cuda_computed(v->type.dtype), i,
                            start_of(v));
    }
    if (find_needed(body, phase, needed)) {
        tutti__text_add(text, "#pragma unroll\n"
                              "        for (int e = 0; e < EACH; e++) {\n"
                              "            const I c = lane + e * LANES, i = (I)r * columns + c;\n"
                              "            if (c >= columns)\n                break;\n"
                              "            OFFSETS(i)\n            bool bad = false;\n");
        write_elements(plan, needed, text);
        write_uses(body, node, phase, text);
        tutti__text_add(text, "            if (bad)\n                fail_at(fault, i);\n"
                              "        }\n");
    }
    write_row_values(plan, phase, text);
}

/* Sums, largest and smallest of a group. */
static void write_groups(tutti_text *text)
{
    static const struct {
        const char *name, *join;
    } kinds[] = {{"sum_of_group", "x + y"},
                 {"most_of_group", "op_maximum(x, y)"},
                 {"least_of_group", "op_minimum(x, y)"}};
    for (size_t i = 0; i < TUTTI_COUNT(kinds); i++)
        tutti__text_add(text,
                        "template <class F> __device__ __forceinline__ F %s(F x)\n{\n"
                        "    for (int step = 16; step > 0; step /= 2) {\n"
                        "        const F y = __shfl_xor_sync(0xffffffff, x, step);\n"
                        "        x = %s;\n    }\n"
                        "    if (LANES == 32)\n        return x;\n"
                        "    __shared__ F parts[8];\n    __syncthreads();\n"
                        "    if (threadIdx.x %% 32 == 0)\n        parts[threadIdx.x / 32] = x;\n"
                        "    __syncthreads();\n    x = parts[0];\n"
                        "    for (int w = 1; w < 8; w++) {\n        const F y = parts[w];\n"
                        "        x = %s;\n    }\n    return x;\n}\n",
                        kinds[i].name, kinds[i].join, kinds[i].join);
}

/* partial: for each total in turn groups, or groups x columns, numbers. */
static void write_totals_end(const tutti_cuda_body *body, tutti_text *text)
{
    tutti__text_add(text, "    double *to = partial;\n");
    for (int i = 0; i < body->count; i++) {
        const tutti_cuda_value *v = &body->values[i];
        if (!is_total(v))
            continue;
        if (v->whole_total)
            tutti__text_add(text,
                            "    { const double all = sum_of_group(t%d);\n"
                            "    if (lane == 0)\n        to[group] = all;\n"
                            "    to += groups; }\n",
                            v->total);
        else
            tutti__text_add(text,
                            "    for (int e = 0; e < EACH; e++)\n"
                            "        if (lane + e * LANES < columns)\n"
                            "            to[(i64)group * columns + lane + e * LANES] = t%d[e];\n"
                            "    to += (i64)groups * columns;\n",
                            v->total);
    }
}

static int output_of(const tutti_cuda_body *body, int value)
{
    for (int o = 0; o < body->output_count; o++)
        if (body->results[o] == value)
            return o;
    return -1;
}

/* The second launch: blocks of 32 x 32 threads, 32 of a column's groups side by side. */
static void write_join_kernel(const tutti_cuda_body *body, const tutti_infer *node,
                              tutti_text *text)
{
    tutti__text_add(text, "extern \"C\" __global__ void __launch_bounds__(1024)\n"
                          "reduce_join(i64 rows, i64 columns, i64 groups, const double *partial");
    for (int o = 0; o < body->output_count; o++)
        tutti__text_add(text, ", %s *q%d", tutti__cuda_dtype(node->outputs[o].dtype), o);
    tutti__text_add(text, ")\n{\n    __shared__ double tile[32][33];\n"
                          "    const int x = threadIdx.x %% 32, part = threadIdx.x / 32;\n"
                          "    const i64 from = (i64)blockIdx.x * 32 + x, "
                          "at = (i64)blockIdx.x * 32 + part;\n");
    for (int i = 0; i < body->count; i++) {
        const tutti_cuda_value *v = &body->values[i];
        int output = is_total(v) ? output_of(body, i) : -1;
        if (!is_total(v))
            continue;
        const char *width = v->whole_total ? "1" : "columns";
        if (output >= 0) {
            tutti__text_add(text,
                            "    {\n        double sum = 0;\n"
                            "        for (i64 g = part; from < %s && g < groups; g += 32)\n"
                            "            sum += partial[g * %s + from];\n"
                            "        __syncthreads();\n        tile[part][x] = sum;\n"
                            "        __syncthreads();\n        sum = tile[x][part];\n"
                            "        for (int step = 16; step > 0; step /= 2)\n"
                            "            sum += __shfl_xor_sync(0xffffffff, sum, step);\n"
                            "        if (x == 0 && at < %s) {\n",
                            width, width, width);
            for (int o = 0; o < body->output_count; o++)
                if (body->results[o] == i)
                    tutti__text_add(text, "        q%d[at] = narrow<%s>(sum%s);\n", o,
                                    tutti__cuda_dtype(node->outputs[o].dtype),
                                    strcmp(v->op->name, "mean") != 0 ? ""
                                    : v->whole_total                 ? " / (rows * columns)"
                                                                     : " / rows");
            tutti__text_add(text, "        }\n    }\n");
        }
        tutti__text_add(text, "    partial += groups * %s;\n", width);
    }
    tutti__text_add(text, "}\n");
}

static void write_kernel(reducing_plan *plan, const tutti_infer *node, bool *needed)
{
    const tutti_cuda_body *body = plan->body;
    tutti_text *text = &plan->text;
    tutti__text_add(text,
                    "#include \"common.cuh\"\n#include \"elementwise.cuh\"\n\n"
                    "enum { THREADS = %d, LANES = %d, EACH = %d };\n",
                    (int)THREADS, plan->lanes, plan->each);
    tutti__cuda_space_write(&plan->space, body, text);
    write_groups(text);
    tutti__text_add(text, "extern \"C\" __global__ void __launch_bounds__(THREADS)\n"
                          "reduce(i64 rows, i64 columns_given, i64 share, i64 groups, "
                          "const space space, u64 *fault, double *partial");
    tutti__cuda_space_parameters(node, text);
    tutti__text_add(text,
                    ")\n{\n    const int lane = threadIdx.x %% LANES;\n"
                    "    const I columns = (I)columns_given;\n"
                    "    const i64 group = ((i64)blockIdx.x * THREADS + threadIdx.x) / LANES;\n"
                    "    if (group >= groups)\n        return;\n");
    for (int i = 0; i < body->count; i++) {
        const tutti_cuda_value *v = &body->values[i];
        if (is_total(v))
            tutti__text_add(text, v->whole_total ? "    %s t%d = 0;\n" : "    %s t%d[EACH] = {};\n",
                            tutti__cuda_computed(v->type.dtype), v->total);
    }
    tutti__text_add(text, "    for (i64 r = group * share; r < rows && r < (group + 1) * share; "
                          "r++) {\n        bool bad = false;\n");
    for (int i = body->source_count; i < body->count; i++) /* numbers */
        if (!body->values[i].op) {
            tutti__text_add(text, "        ");
            tutti__cuda_body_write(body, i, text);
        }
    for (int phase = 0; phase <= body->phase_count; phase++)
        write_phase(plan, node, phase, needed, text);
    for (int o = 0; o < body->output_count; o++)
        if (body->values[body->results[o]].reach == TUTTI_CUDA_ROW)
            tutti__text_add(text, "        if (lane == 0)\n            q%d[r] = narrow<%s>(v%d);\n",
                            o, tutti__cuda_dtype(node->outputs[o].dtype), body->results[o]);
    tutti__text_add(text, "        if (bad && lane == 0)\n            fail_at(fault, r);\n    }\n");
    if (body->total_count > 0)
        write_totals_end(body, text);
    tutti__text_add(text, "}\n");
    write_join_kernel(body, node, text);
}

/* Cuts rows among groups, and looks whether a group's registers hold a row. Where there are only
 * totals over everything, rows are as long as suits. */
static bool make_shape(reducing_plan *plan)
{
    tutti_cuda_body *body = plan->body;
    bool columns_matter = body->reduction_count > 0;
    for (int i = 0; i < body->count; i++) {
        const tutti_cuda_value *v = &body->values[i];
        columns_matter |= is_total(v) && !v->whole_total;
        if (is_total(v) && strcmp(v->op->name, "sum") != 0 && strcmp(v->op->name, "mean") != 0)
            return false;
    }
    if (!columns_matter) {
        int64_t count = body->rows * body->columns, columns = 2048;
        while (columns > 1 && count % columns != 0)
            columns /= 2;
        body->columns = columns;
        body->rows = count / columns;
    }
    plan->lanes = body->columns <= 256 ? 32 : THREADS;
    plan->each = (int)tutti__cuda_ceil(body->columns, plan->lanes);
    plan->groups = body->total_count > 0 && body->rows > MOST_GROUPS ? MOST_GROUPS : body->rows;
    plan->share = plan->groups > 0 ? tutti__cuda_ceil(body->rows, plan->groups) : 0;
    plan->groups = plan->share > 0 ? tutti__cuda_ceil(body->rows, plan->share) : 0;
    return plan->each <= MOST_EACH && body->rows > 0 && body->columns > 0;
}

/* Whether every result has a place: one for each element, row or column; a number of its own only
 * behind a reduction. */
static bool has_places(const tutti_cuda_body *body, const tutti_infer *node)
{
    bool all = true;
    for (int o = 0; o < body->output_count; o++)
        all &= body->values[body->results[o]].reach != TUTTI_CUDA_FULL ||
               place_of(body, &node->outputs[o]).index != NULL;
    return all;
}

static bool make_plan(reducing_plan *plan, const tutti_infer *node)
{
    plan->body = tutti__cuda_body_read(node);
    return plan->body && plan->body->reduction_count + plan->body->total_count > 0 &&
           tutti__cuda_space_make(plan->body, node, false, &plan->space) && make_shape(plan) &&
           has_places(plan->body, node);
}

static void reducing_discard(void *given)
{
    reducing_plan *plan = given;
    if (!plan)
        return;
    free(plan->body);
    tutti__text_free(&plan->text);
    free(plan);
}

static tutti_status reducing_prepare(const tutti_kernel_query *query, void **ret_plan)
{
    reducing_plan *plan = calloc(1, sizeof *plan);
    bool *needed = NULL;
    if (!plan || !make_plan(plan, &query->node) ||
        !(needed = calloc((size_t)plan->body->count, sizeof *needed))) {
        reducing_discard(plan);
        return tutti_fail(TUTTI_UNSUPPORTED, "'%s' is no reduction for a GPU", query->node.name);
    }
    plan->body->rounds = query->deterministic;
    write_kernel(plan, &query->node, needed);
    free(needed);
    if (plan->text.failed) {
        reducing_discard(plan);
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for the text of a kernel");
    }
    *ret_plan = plan;
    return TUTTI_OK;
}

static int reducing_score(const tutti_kernel_query *query)
{
    reducing_plan plan = {0};
    bool takes = make_plan(&plan, &query->node);
    free(plan.body);
    return takes ? 100 : 0;
}

static size_t reducing_workspace(const tutti_kernel_query *query)
{
    reducing_plan plan = {0};
    size_t numbers = 0;
    if (make_plan(&plan, &query->node))
        for (int i = 0; i < plan.body->count; i++)
            if (is_total(&plan.body->values[i]))
                numbers += (size_t)(plan.body->values[i].whole_total ? 1 : plan.body->columns);
    numbers *= (size_t)plan.groups;
    free(plan.body);
    return numbers * sizeof(double);
}

static tutti_status reducing_run(const tutti_cuda_call *c)
{
    reducing_plan *plan = c->call->plan;
    int64_t rows = plan->body->rows, columns = plan->body->columns, share = plan->share;
    int64_t groups = plan->groups, strides[TUTTI_CUDA_SPACE_BYTES / 8];
    tutti_cu_pointer fault = c->fault, partial = tutti__cuda_work(c);
    tutti_cu_pointer values[TUTTI_CUDA_SOURCES + TUTTI_CUDA_RESULTS];
    void *arguments[7 + TUTTI_CUDA_SOURCES + TUTTI_CUDA_RESULTS] = {
        &rows, &columns, &share, &groups, strides, &fault, &partial};
    tutti_cu_function function;
    int at = 0;
    tutti__cuda_space_fill(&plan->space, plan->body, strides);
    for (int i = 0; i < c->call->input_count; i++)
        values[at++] = tutti__cuda_in(c, i);
    for (int i = 0; i < c->call->output_count; i++)
        values[at++] = tutti__cuda_out(c, i);
    for (int i = 0; i < at; i++)
        arguments[7 + i] = &values[i];
    unsigned blocks = (unsigned)tutti__cuda_ceil(groups * plan->lanes, THREADS);
    TUTTI_TRY(tutti__cuda_function(c->on.device, "reduce", plan->text.data,
                                   tutti__cuda_body_options(plan->body), "reduce", 0, &function));
    TUTTI_TRY(TUTTI_CU(c->on.device, cuLaunchKernel(function, blocks, 1, 1, THREADS, 1, 1, 0,
                                                    c->on.stream, arguments, NULL)));
    if (plan->body->total_count == 0)
        return TUTTI_OK;
    void *joined[4 + TUTTI_CUDA_RESULTS] = {&rows, &columns, &groups, &partial};
    for (int i = 0; i < c->call->output_count; i++)
        joined[4 + i] = &values[c->call->input_count + i];
    blocks = (unsigned)tutti__cuda_ceil(columns, 32);
    TUTTI_TRY(tutti__cuda_function(c->on.device, "reduce", plan->text.data,
                                   tutti__cuda_body_options(plan->body), "reduce_join", 0,
                                   &function));
    return TUTTI_CU(c->on.device, cuLaunchKernel(function, blocks, 1, 1, 1024, 1, 1, 0,
                                                 c->on.stream, joined, NULL));
}

static const char *const others[] = {"fused_checked", NULL};

const tutti_cuda_kernel tutti_cuda_kernel_fused_reduce = {
    .name = "fused.reduce",
    .version = 2,
    .op = "fused",
    .ops = others,
    .score = reducing_score,
    .workspace = reducing_workspace,
    .prepare = reducing_prepare,
    .discard = reducing_discard,
    .run = reducing_run,
};
