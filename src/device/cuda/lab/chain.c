/* chain.c: checks of element-wise kernels whose text is generated. */
#include "device/cuda/kernels/chain.h"
#include "device/cuda/lab/checks.h"

typedef struct chained {
    const char *text;
    int64_t count;
    int arguments;
    tutti_cu_pointer pointers[4];
} chained;

static tutti_status call_chain(lab_bench *lab, void *context)
{
    chained *c = context;
    return tutti__cuda_chain_run(lab->on, c->text, c->count, c->arguments, c->pointers);
}

static double gelu(double x)
{
    return 0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
}

/* y = gelu(x + row) * 0.5 + column, to two types. */
static const tutti_cuda_chain_step steps[] = {{"add", 0, 1, 0, 0},
                                              {"gelu", 3, 0, 0, 0},
                                              {"constant", 0, 0, 0, 0.5},
                                              {"mul", 4, 5, 0, 0},
                                              {"add", 6, 2, 0, 0}};

static tutti_status check_chain(lab_bench *lab, tutti_cuda_type type, int64_t rows, int64_t width)
{
    tutti_cuda_chain chain = {
        .width = width, .input_count = 3, .step_count = 5, .output_count = 1, .steps = steps};
    chained c = {.count = rows * width, .arguments = 4};
    tutti_text text = {0};
    double *x, *row, *column, *y, *y0 = malloc((size_t)c.count * 8);
    char what[64];
    chain.inputs[0].type = chain.inputs[1].type = chain.outputs[0].type = type;
    chain.inputs[1].spread = TUTTI_CUDA_ROW;
    chain.inputs[2].spread = TUTTI_CUDA_COLUMN;
    chain.outputs[0].value = 7;
    TUTTI_TRY(tutti__cuda_chain_text(&chain, &text));
    c.text = text.data;
    TUTTI_TRY(lab_numbers(lab, type, c.count, -3, 3, &x, &c.pointers[0]));
    TUTTI_TRY(lab_numbers(lab, type, width, -1, 1, &row, &c.pointers[1]));
    TUTTI_TRY(lab_numbers(lab, TUTTI_CUDA_F32, rows, -1, 1, &column, &c.pointers[2]));
    TUTTI_TRY(lab_memory(lab, (size_t)c.count * 4, &c.pointers[3]));
    TUTTI_TRY(call_chain(lab, &c));
    TUTTI_TRY(lab_read(lab, type, c.pointers[3], c.count, &y));
    for (int64_t i = 0; i < c.count; i++)
        y0[i] = gelu(x[i] + row[i % width]) * 0.5 + column[i / width];
    snprintf(what, sizeof what, "%s %lldx%lld", tutti__cuda_type_name(type), (long long)rows,
             (long long)width);
    lab_compare(lab, what, y, y0, c.count, type == TUTTI_CUDA_F32 ? 1e-6 : 3e-3);
    free(x), free(row), free(column), free(y), free(y0);
    tutti__text_free(&text);
    return TUTTI_OK;
}

/* z = relu(x) * y on 1 GiB a tensor. */
static tutti_status time_chain(lab_bench *lab, tutti_cuda_type type, bool unary, const char *what)
{
    static const tutti_cuda_chain_step two[] = {{"relu", 0, 0, 0, 0}, {"mul", 2, 1, 0, 0}};
    static const tutti_cuda_chain_step one[] = {{"gelu", 0, 0, 0, 0}};
    tutti_cuda_chain chain = {.input_count = unary ? 1 : 2,
                              .step_count = unary ? 1 : 2,
                              .output_count = 1,
                              .steps = unary ? one : two};
    chained c = {.count = ((int64_t)1 << 30) / tutti__cuda_type_size(type),
                 .arguments = unary ? 2 : 3};
    tutti_text text = {0};
    chain.inputs[0].type = chain.inputs[1].type = chain.outputs[0].type = type;
    chain.outputs[0].value = unary ? 1 : 3;
    TUTTI_TRY(tutti__cuda_chain_text(&chain, &text));
    c.text = text.data;
    for (int i = 0; i < c.arguments; i++) {
        TUTTI_TRY(lab_memory(lab, (size_t)1 << 30, &c.pointers[i]));
        TUTTI_TRY(tutti__cuda_random_uniform(lab->on, type, (tutti_random_key){4, (uint64_t)i}, 0,
                                             c.count, -1, 2, c.pointers[i]));
    }
    tutti_status status = lab_time(lab, what, call_chain, &c, c.arguments * 0x1p30, 0);
    tutti__text_free(&text);
    return status;
}

tutti_status lab_check_chain(lab_bench *lab)
{
    TUTTI_TRY(check_chain(lab, TUTTI_CUDA_F32, 33, 768));
    TUTTI_TRY(check_chain(lab, TUTTI_CUDA_BF16, 1001, 77));
    TUTTI_TRY(check_chain(lab, TUTTI_CUDA_F16, 501, 4104));
    TUTTI_TRY(time_chain(lab, TUTTI_CUDA_F32, false, "f32 relu(x) y, 1 GiB"));
    TUTTI_TRY(time_chain(lab, TUTTI_CUDA_BF16, false, "bf16 relu(x) y, 1 GiB"));
    TUTTI_TRY(time_chain(lab, TUTTI_CUDA_F32, true, "f32 gelu(x), 1 GiB"));
    return time_chain(lab, TUTTI_CUDA_BF16, true, "bf16 gelu(x), 1 GiB");
}
