/* elementwise.c: element-wise operators, alone or fused, as one kernel whose text is written for
 * them: every input is read once, every output written once, 16 bytes at a time where that can be,
 * and what is between them stays in registers. The text depends on operators, types and on which
 * inputs are repeated along which dimensions; sizes come with the call. The kernel of relu(x + row)
 * from bf16 to bf16 is
 *
 *     compute(x0, x1, &y0): v0 = widen(x0); v1 = widen(x1);
 *                           v2 = settle<bf16>(op_add(v0, v1)); v3 = settle<bf16>(op_relu(v2));
 *                           y0 = narrow<bf16>(v3)
 *     for (i = first; i < whole; i += stride)
 *         load vectors x0, x1; compute of each element; store vector y0
 *
 * and the same element by element for what is left behind the last whole vector. Products are not
 * contracted into sums: a chain has the bits of its operators one by one. In chains of 16 bits only
 * results round, as on the CPU; in deterministic mode, whose bits do not depend on what is fused,
 * every operator's value does, as above. */
#include <stdlib.h>
#include <string.h>

#include "device/cuda/kernels/common.h"
#include "device/cuda/operators/space.h"

enum { THREADS = 256, IN_FLIGHT = 4 }; /* vectors that a thread has in flight over all inputs */

typedef struct elementwise_plan {
    tutti_cuda_body *body;
    tutti_cuda_space space;
    tutti_text text;
} elementwise_plan;

static const char *type_of(const tutti_cuda_body *body, int value)
{
    return tutti__cuda_dtype(body->values[value].type.dtype);
}

/* compute: from the elements of the inputs to those of the outputs; true for a bad value. */
static void write_compute(const tutti_cuda_body *body, const tutti_infer *node, tutti_text *text)
{
    tutti__text_add(text, "__device__ __forceinline__ bool compute(");
    for (int i = 0; i < body->source_count; i++)
        tutti__text_add(text, "%s x%d, ", type_of(body, i), i);
    for (int i = 0; i < body->output_count; i++)
        tutti__text_add(text, "%s%s &y%d", i ? ", " : "", tutti__cuda_dtype(node->outputs[i].dtype),
                        i);
    tutti__text_add(text, ")\n{\n    bool bad = false;\n");
    for (int i = 0; i < body->count; i++) {
        tutti__text_add(text, "    ");
        if (i < body->source_count)
            tutti__text_add(text, "const %s v%d = widen(x%d);\n",
                            tutti__cuda_computed(body->values[i].type.dtype), i, i);
        else
            tutti__cuda_body_write(body, i, text);
    }
    for (int i = 0; i < body->output_count; i++)
        tutti__text_add(text, "    y%d = narrow<%s>(v%d);\n", i,
                        tutti__cuda_dtype(node->outputs[i].dtype), body->results[i]);
    tutti__text_add(text, "    return bad;\n}\n\n");
}

/* Loads of one vector into xK[u]. */
static void write_loads(const tutti_cuda_body *body, const tutti_cuda_space *space,
                        tutti_text *text)
{
    int strided = 0;
    for (int i = 0; i < body->source_count; i++) {
        const char *type = type_of(body, i);
        switch (space->step[i]) {
        case TUTTI_CUDA_LINEAR:
            tutti__text_add(text, "                x%d[u] = *(const vec<%s, N> *)(p%d + i);\n", i,
                            type, i);
            break;
        case TUTTI_CUDA_ALONG:
            tutti__text_add(text, "                x%d[u] = *(const vec<%s, N> *)(p%d + o%d);\n", i,
                            type, i, strided);
            break;
        default:
            tutti__text_add(text,
                            "                for (int k = 0; k < N; k++)\n"
                            "                    x%d[u].at[k] = p%d[",
                            i, i);
            if (space->step[i] == TUTTI_CUDA_ACROSS)
                tutti__text_add(text, "o%d];\n", strided);
            else
                tutti__text_add(text, "0];\n");
        }
        strided += tutti__cuda_space_strides(space, i);
    }
}

/* One turn: loads of TURNS vectors first, so that they are in flight together. */
static void write_turn(const tutti_cuda_body *body, const tutti_infer *node,
                       const tutti_cuda_space *space, tutti_text *text)
{
    for (int i = 0; i < body->source_count; i++)
        tutti__text_add(text, "        vec<%s, N> x%d[TURNS];\n", type_of(body, i), i);
    tutti__text_add(text, "#pragma unroll\n"
                          "        for (int u = 0; u < TURNS; u++) {\n"
                          "            const I i = (v + (I)u * THREADS) * N;\n"
                          "            if (i < whole) {\n"
                          "                OFFSETS(i)\n");
    write_loads(body, space, text);
    tutti__text_add(text, "            }\n        }\n"
                          "#pragma unroll\n"
                          "        for (int u = 0; u < TURNS; u++) {\n"
                          "            const I i = (v + (I)u * THREADS) * N;\n");
    for (int i = 0; i < body->output_count; i++)
        tutti__text_add(text, "            vec<%s, N> y%d;\n",
                        tutti__cuda_dtype(node->outputs[i].dtype), i);
    tutti__text_add(text, "            if (i < whole) {\n"
                          "#pragma unroll\n"
                          "                for (int k = 0; k < N; k++)\n"
                          "                    if (compute(");
    for (int i = 0; i < body->source_count; i++)
        tutti__text_add(text, "x%d[u].at[k], ", i);
    for (int i = 0; i < body->output_count; i++)
        tutti__text_add(text, "%sy%d.at[k]", i ? ", " : "", i);
    tutti__text_add(text, "))\n                        fail_at(fault, i + k);\n");
    for (int i = 0; i < body->output_count; i++)
        tutti__text_add(text, "                *(vec<%s, N> *)(q%d + i) = y%d;\n",
                        tutti__cuda_dtype(node->outputs[i].dtype), i, i);
    tutti__text_add(text, "            }\n        }\n");
}

static void write_rest(const tutti_cuda_body *body, const tutti_cuda_space *space, tutti_text *text)
{
    int strided = 0;
    tutti__text_add(text, "    }\n    const I i = whole + threadIdx.x;\n"
                          "    if (blockIdx.x == 0 && i < count) {\n        OFFSETS(i)\n"
                          "        if (compute(");
    for (int i = 0; i < body->source_count; i++) {
        if (tutti__cuda_space_strides(space, i))
            tutti__text_add(text, "p%d[o%d], ", i, strided++);
        else
            tutti__text_add(text, "p%d[%s], ", i, space->step[i] == TUTTI_CUDA_ALWAYS ? "0" : "i");
    }
    for (int i = 0; i < body->output_count; i++)
        tutti__text_add(text, "%sq%d[i]", i ? ", " : "", i);
    tutti__text_add(text, "))\n            fail_at(fault, i);\n    }\n}\n");
}

static int turns_of(const tutti_cuda_body *body)
{
    int sources = body->source_count > 0 ? body->source_count : 1;
    return sources < IN_FLIGHT ? IN_FLIGHT / sources : 1;
}

static void write_kernel(elementwise_plan *plan, const tutti_infer *node)
{
    tutti_text *text = &plan->text;
    tutti__text_add(text,
                    "#include \"common.cuh\"\n#include \"elementwise.cuh\"\n\n"
                    "enum { N = %d, THREADS = %d, TURNS = %d };\n",
                    plan->space.vector, (int)THREADS, turns_of(plan->body));
    tutti__cuda_space_write(&plan->space, plan->body, text);
    write_compute(plan->body, node, text);
    tutti__text_add(text, "extern \"C\" __global__ void __launch_bounds__(THREADS)\n"
                          "elementwise(I count, const space space, u64 *fault");
    tutti__cuda_space_parameters(node, text);
    tutti__text_add(text, ")\n{\n    const I whole = count / N * N;\n"
                          "    const I stride = (I)gridDim.x * THREADS * TURNS;\n"
                          "    for (I v = (I)blockIdx.x * THREADS * TURNS + threadIdx.x; "
                          "v * N < whole; v += stride) {\n");
    write_turn(plan->body, node, &plan->space, text);
    write_rest(plan->body, &plan->space, text);
}

static void elementwise_discard(void *given)
{
    elementwise_plan *plan = given;
    if (!plan)
        return;
    free(plan->body);
    tutti__text_free(&plan->text);
    free(plan);
}

static tutti_status elementwise_prepare(const tutti_kernel_query *query, void **ret_plan)
{
    elementwise_plan *plan = calloc(1, sizeof *plan);
    if (!plan || !(plan->body = tutti__cuda_body_read(&query->node)) ||
        !tutti__cuda_space_make(plan->body, &query->node, false, &plan->space)) {
        elementwise_discard(plan);
        return tutti_fail(TUTTI_UNSUPPORTED, "'%s' is no element-wise work for a GPU",
                          query->node.name);
    }
    plan->body->rounds = query->deterministic;
    write_kernel(plan, &query->node);
    if (plan->text.failed) {
        elementwise_discard(plan);
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for the text of a kernel");
    }
    *ret_plan = plan;
    return TUTTI_OK;
}

tutti_status tutti__cuda_elementwise_text(const tutti_kernel_query *query, tutti_text *text)
{
    void *plan;
    TUTTI_TRY(elementwise_prepare(query, &plan));
    tutti__text_add(text, "%s", ((elementwise_plan *)plan)->text.data);
    elementwise_discard(plan);
    return TUTTI_OK;
}

static int elementwise_score(const tutti_kernel_query *query)
{
    tutti_cuda_space space;
    tutti_cuda_body *body = tutti__cuda_body_read(&query->node);
    bool takes = body && body->reduction_count + body->total_count == 0 &&
                 tutti__cuda_space_make(body, &query->node, false, &space);
    for (int o = 0; takes && o < query->node.output_count; o++)
        takes = tutti__cuda_type_count(&query->node.outputs[o]) == space.count;
    free(body);
    return takes ? 100 : 0;
}

static tutti_status elementwise_run(const tutti_cuda_call *c)
{
    elementwise_plan *plan = c->call->plan;
    int64_t count = plan->space.count, strides[TUTTI_CUDA_SPACE_BYTES / 8];
    tutti_cu_pointer fault = c->fault, values[TUTTI_CUDA_SOURCES + TUTTI_CUDA_RESULTS];
    void *arguments[3 + TUTTI_CUDA_SOURCES + TUTTI_CUDA_RESULTS] = {&count, strides, &fault};
    tutti_cu_function function;
    int at = 0;
    if (count == 0)
        return TUTTI_OK;
    tutti__cuda_space_fill(&plan->space, plan->body, strides);
    for (int i = 0; i < c->call->input_count; i++)
        values[at++] = tutti__cuda_in(c, i);
    for (int i = 0; i < c->call->output_count; i++)
        values[at++] = tutti__cuda_out(c, i);
    for (int i = 0; i < at; i++)
        arguments[3 + i] = &values[i];
    int64_t blocks =
        tutti__cuda_ceil(count, (int64_t)THREADS * plan->space.vector * turns_of(plan->body));
    TUTTI_TRY(tutti__cuda_function(c->on.device, "elementwise", plan->text.data,
                                   tutti__cuda_body_options(plan->body), "elementwise", 0,
                                   &function));
    return TUTTI_CU(c->on.device,
                    cuLaunchKernel(function, (unsigned)(blocks < INT32_MAX ? blocks : INT32_MAX), 1,
                                   1, THREADS, 1, 1, 0, c->on.stream, arguments, NULL));
}

static const char *const fused[] = {"fused", "fused_checked", NULL};

static bool elementwise_covers(const tutti_op *op)
{
    return strncmp(op->name, "fused", 5) == 0 || tutti__cuda_has_text(op);
}

const tutti_cuda_kernel tutti_cuda_kernel_elementwise = {
    .name = "elementwise",
    .version = 1,
    .op = TUTTI_KERNEL_ELEMENTWISE,
    .ops = fused,
    .inplace = ~UINT32_C(0),
    .each = true,
    .covers = elementwise_covers,
    .score = elementwise_score,
    .prepare = elementwise_prepare,
    .discard = elementwise_discard,
    .run = elementwise_run,
};
