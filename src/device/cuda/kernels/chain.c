/* chain.c: see chain.h. The kernel of relu(x + row) from bf16 to bf16 is
 *
 *     for (v = first; v < vectors; v += stride) {
 *         vec<bf16, N> x0 = p0[v], x1 = row of p1;
 *         for (k = 0; k < N; k++) {
 *             const float v0 = to_float(x0.at[k]), v1 = to_float(x1.at[k]);
 *             const float v2 = v0 + v1;
 *             const float v3 = fmaxf(v2, 0.0f);
 *             y0.at[k] = from_float<bf16>(v3);
 *         }
 *         q0[v] = y0;
 *     }
 *
 * and the same element by element for what is left behind the last whole vector. */
#include "device/cuda/kernels/chain.h"

#include <string.h>

#include "device/cuda/kernels/common.h"

enum { THREADS = 256, EACH = 4 }; /* vectors a thread has in flight, over all inputs and turns */

/* What an operator is in CUDA C++; A, B and C stand for its operands. */
static const struct {
    const char *name, *text;
} operators[] = {
    {"add", "A + B"},
    {"sub", "A - B"},
    {"mul", "A * B"},
    {"div", "A / B"},
    {"neg", "-A"},
    {"min", "fminf(A, B)"},
    {"max", "fmaxf(A, B)"},
    {"abs", "fabsf(A)"},
    {"exp", "expf(A)"},
    {"log", "logf(A)"},
    {"sqrt", "sqrtf(A)"},
    {"rsqrt", "rsqrtf(A)"},
    {"tanh", "tanhf(A)"},
    {"erf", "erff(A)"},
    {"sin", "sinf(A)"},
    {"cos", "cosf(A)"},
    {"pow", "powf(A, B)"},
    {"square", "A * A"},
    {"relu", "fmaxf(A, 0.0f)"},
    {"sigmoid", "1.0f / (1.0f + expf(-A))"},
    {"gelu", "0.5f * A * (1.0f + tanhf(0.7978845608028654f * (A + 0.044715f * A * A * A)))"},
    {"greater", "A > B ? 1.0f : 0.0f"},
    {"less", "A < B ? 1.0f : 0.0f"},
    {"equal", "A == B ? 1.0f : 0.0f"},
    {"where", "A != 0.0f ? B : C"},
};

static const char *find_operator(const char *name)
{
    for (size_t i = 0; i < TUTTI_COUNT(operators); i++)
        if (strcmp(operators[i].name, name) == 0)
            return operators[i].text;
    return NULL;
}

/* Writes an operator's text with its operands' names. A letter is an operand where it stands alone.
 */
static void write_operator(tutti_text *text, const char *pattern, const tutti_cuda_chain_step *step)
{
    const int operands[] = {step->a, step->b, step->c};
    for (const char *at = pattern; *at; at++)
        if (*at >= 'A' && *at <= 'C')
            tutti__text_add(text, "v%d", operands[*at - 'A']);
        else
            tutti__text_add(text, "%c", *at);
}

static tutti_status write_steps(const tutti_cuda_chain *chain, tutti_text *text)
{
    for (int i = 0; i < chain->step_count; i++) {
        const tutti_cuda_chain_step *step = &chain->steps[i];
        int value = chain->input_count + i;
        if (strcmp(step->op, "constant") == 0) {
            tutti__text_add(text, "    const float v%d = %.9ef;\n", value, step->constant);
            continue;
        }
        const char *pattern = find_operator(step->op);
        if (!pattern)
            return tutti_fail(TUTTI_UNSUPPORTED, "an element-wise kernel has no operator '%s'",
                              step->op);
        if (step->a >= value || (strchr(pattern, 'B') && step->b >= value) ||
            (strchr(pattern, 'C') && step->c >= value) || step->a < 0 || step->b < 0 || step->c < 0)
            return tutti_fail(TUTTI_INVALID, "step %d (%s) reads a value that comes later", i,
                              step->op);
        tutti__text_add(text, "    const float v%d = ", value);
        write_operator(text, pattern, step);
        tutti__text_add(text, ";\n");
    }
    return TUTTI_OK;
}

/* compute: from the elements x0, x1, and so on, of the inputs to those of the outputs. */
static tutti_status write_compute(const tutti_cuda_chain *chain, tutti_text *text)
{
    tutti__text_add(text, "__device__ __forceinline__ void compute(");
    for (int i = 0; i < chain->input_count; i++)
        tutti__text_add(text, "%s x%d, ", tutti__cuda_type_name(chain->inputs[i].type), i);
    for (int i = 0; i < chain->output_count; i++)
        tutti__text_add(text, "%s%s &y%d", i ? ", " : "",
                        tutti__cuda_type_name(chain->outputs[i].type), i);
    tutti__text_add(text, ")\n{\n");
    for (int i = 0; i < chain->input_count; i++)
        tutti__text_add(text, "    const float v%d = to_float(x%d);\n", i, i);
    TUTTI_TRY(write_steps(chain, text));
    for (int i = 0; i < chain->output_count; i++)
        tutti__text_add(text, "    y%d = from_float<%s>(v%d);\n", i,
                        tutti__cuda_type_name(chain->outputs[i].type), chain->outputs[i].value);
    tutti__text_add(text, "}\n\n");
    return TUTTI_OK;
}

/* Elements of a vector: 16 bytes of the smallest type. */
static int vector_of(const tutti_cuda_chain *chain)
{
    int size = 4;
    for (int i = 0; i < chain->input_count; i++)
        if (chain->inputs[i].spread == TUTTI_CUDA_EACH &&
            tutti__cuda_type_size(chain->inputs[i].type) < size)
            size = tutti__cuda_type_size(chain->inputs[i].type);
    for (int i = 0; i < chain->output_count; i++)
        if (tutti__cuda_type_size(chain->outputs[i].type) < size)
            size = tutti__cuda_type_size(chain->outputs[i].type);
    return 16 / size;
}

/* Where element `i` of the chain (or, for vectors, k behind it) finds an input's. */
static const char *index_of(tutti_cuda_spread spread)
{
    static const char *const texts[] = {"i", "i % WIDTH", "i / WIDTH", "0"};
    return texts[spread];
}

/* compute of element k of turn u's vectors. */
static void write_call(const tutti_cuda_chain *chain, tutti_text *text)
{
    tutti__text_add(text, "compute(");
    for (int i = 0; i < chain->input_count; i++)
        tutti__text_add(text, "x%d[u].at[k], ", i);
    for (int i = 0; i < chain->output_count; i++)
        tutti__text_add(text, "%sy%d.at[k]", i ? ", " : "", i);
    tutti__text_add(text, ");\n");
}

/* One vector: loads of TURNS vectors first, so that they are in flight together. */
static void write_vectors(const tutti_cuda_chain *chain, tutti_text *text)
{
    for (int i = 0; i < chain->input_count; i++)
        tutti__text_add(text, "        vec<%s, N> x%d[TURNS];\n",
                        tutti__cuda_type_name(chain->inputs[i].type), i);
    tutti__text_add(text, "#pragma unroll\n"
                          "        for (int u = 0; u < TURNS; u++) {\n"
                          "            const i64 i = (v + (i64)u * THREADS) * N;\n"
                          "            if (i < whole) {\n");
    for (int i = 0; i < chain->input_count; i++) {
        const char *type = tutti__cuda_type_name(chain->inputs[i].type);
        tutti_cuda_spread spread = chain->inputs[i].spread;
        if (spread == TUTTI_CUDA_EACH || (spread == TUTTI_CUDA_ROW && chain->width % 8 == 0))
            tutti__text_add(text, "                x%d[u] = *(const vec<%s, N> *)(p%d + %s);\n", i,
                            type, i, spread == TUTTI_CUDA_EACH ? "i" : "i % WIDTH");
        else
            tutti__text_add(text,
                            "                for (int k = 0; k < N; k++)\n"
                            "                    x%d[u].at[k] = p%d[%s%s];\n",
                            i, i, spread == TUTTI_CUDA_ONE ? "0" : "(i + k)",
                            spread == TUTTI_CUDA_ROW      ? " % WIDTH"
                            : spread == TUTTI_CUDA_COLUMN ? " / WIDTH"
                                                          : "");
    }
    tutti__text_add(text, "            }\n        }\n"
                          "#pragma unroll\n"
                          "        for (int u = 0; u < TURNS; u++) {\n"
                          "            const i64 i = (v + (i64)u * THREADS) * N;\n");
    for (int i = 0; i < chain->output_count; i++)
        tutti__text_add(text, "            vec<%s, N> y%d;\n",
                        tutti__cuda_type_name(chain->outputs[i].type), i);
    tutti__text_add(text, "#pragma unroll\n            for (int k = 0; k < N; k++)\n"
                          "                ");
    write_call(chain, text);
    tutti__text_add(text, "            if (i < whole) {\n");
    for (int i = 0; i < chain->output_count; i++)
        tutti__text_add(text, "                *(vec<%s, N> *)(q%d + i) = y%d;\n",
                        tutti__cuda_type_name(chain->outputs[i].type), i, i);
    tutti__text_add(text, "            }\n        }\n");
}

tutti_status tutti__cuda_chain_text(const tutti_cuda_chain *chain, tutti_text *text)
{
    int turns = chain->input_count > 0 ? EACH / chain->input_count : EACH;
    tutti__text_add(text,
                    "#include \"common.cuh\"\n\n"
                    "enum { N = %d, THREADS = %d, TURNS = %d };\n#define WIDTH %lldLL\n\n",
                    vector_of(chain), (int)THREADS, turns < 1 ? 1 : turns,
                    (long long)(chain->width > 0 ? chain->width : 1));
    TUTTI_TRY(write_compute(chain, text));
    tutti__text_add(text,
                    "extern \"C\" __global__ void __launch_bounds__(THREADS)\nchain(i64 count");
    for (int i = 0; i < chain->input_count; i++)
        tutti__text_add(text, ", const %s *p%d", tutti__cuda_type_name(chain->inputs[i].type), i);
    for (int i = 0; i < chain->output_count; i++)
        tutti__text_add(text, ", %s *q%d", tutti__cuda_type_name(chain->outputs[i].type), i);
    tutti__text_add(text, ")\n{\n    const i64 whole = count / N * N;\n"
                          "    const i64 stride = (i64)gridDim.x * THREADS * TURNS;\n"
                          "    for (i64 v = (i64)blockIdx.x * THREADS * TURNS + threadIdx.x; "
                          "v * N < whole; v += stride) {\n");
    write_vectors(chain, text);
    tutti__text_add(text, "    }\n    const i64 i = whole + threadIdx.x;\n"
                          "    if (blockIdx.x == 0 && i < count)\n        ");
    tutti__text_add(text, "compute(");
    for (int i = 0; i < chain->input_count; i++)
        tutti__text_add(text, "p%d[%s], ", i, index_of(chain->inputs[i].spread));
    for (int i = 0; i < chain->output_count; i++)
        tutti__text_add(text, "%sq%d[i]", i ? ", " : "", i);
    tutti__text_add(text, ");\n}\n");
    return text->failed ? tutti_fail(TUTTI_NO_MEMORY, "no memory for the text of a kernel")
                        : TUTTI_OK;
}

tutti_status tutti__cuda_chain_run(tutti_cuda_stream on, const char *text, int64_t count,
                                   int argument_count, const tutti_cu_pointer *arguments)
{
    tutti_cu_function function;
    tutti_cu_pointer values[TUTTI_CUDA_CHAIN_INPUTS + TUTTI_CUDA_CHAIN_OUTPUTS];
    void *pointers[1 + TUTTI_CUDA_CHAIN_INPUTS + TUTTI_CUDA_CHAIN_OUTPUTS] = {&count};
    int64_t blocks = tutti__cuda_ceil(count, (int64_t)THREADS * 16);
    for (int i = 0; i < argument_count; i++) {
        values[i] = arguments[i];
        pointers[1 + i] = &values[i];
    }
    TUTTI_TRY(tutti__cuda_function(on.device, "chain", text, "", "chain", 0, &function));
    return TUTTI_CU(on.device,
                    cuLaunchKernel(function, (unsigned)(blocks < INT32_MAX ? blocks : INT32_MAX), 1,
                                   1, THREADS, 1, 1, 0, on.stream, pointers, NULL));
}
