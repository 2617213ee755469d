/* step.c: a training step of two dense layers as one CUDA graph: its losses beside those of the
 * same step in f64 on the CPU over 50 steps, and the time of its replays. */
#include "device/cuda/kernels/chain.h"
#include "device/cuda/lab/checks.h"

enum { CLASSES = 10, WIDE = 16 /* of a row of logits */, STEPS = 50, PARAMETERS = 4 };

typedef struct step {
    int batch, in, hidden;
    int64_t counts[PARAMETERS]; /* w1 [in, hidden], b1, w2 [hidden, WIDE], b2 */
    tutti_cu_pointer x, labels, h, z, dh, loss, mean_loss, workspace;
    tutti_cuda_adamw_tensor host[PARAMETERS];
    tutti_cu_pointer tensors, state;
    uint32_t blocks;
    tutti_text relu_gradient;
    const tutti_cuda_product_plan *forward1, *forward2, *dw2, *back, *dw1;
    tutti_cu_graph graph;
    tutti_cu_graph_exec exec;
    double *x0, *w0[PARAMETERS];
    int32_t *labels0;
} step;

static const tutti_cuda_adamw_state first_state = {1e-3f, 0.9f, 0.999f, 1e-8f, 1, 0, 0};

static tutti_status plan_of(lab_bench *lab, tutti_cuda_product shape,
                            const tutti_cuda_product_plan **ret)
{
    shape.type = shape.out = TUTTI_CUDA_F32;
    return tutti__cuda_product_plan(lab->products, lab->on.stream, &shape, true, ret);
}

static tutti_status plan(lab_bench *lab, step *s)
{
    int b = s->batch, i = s->in, h = s->hidden;
    TUTTI_TRY(
        plan_of(lab, (tutti_cuda_product){.m = b, .n = h, .k = i, .epilogue = TUTTI_CUDA_BIAS_RELU},
                &s->forward1));
    TUTTI_TRY(plan_of(lab,
                      (tutti_cuda_product){.m = b, .n = WIDE, .k = h, .epilogue = TUTTI_CUDA_BIAS},
                      &s->forward2));
    TUTTI_TRY(plan_of(lab, (tutti_cuda_product){.m = h, .n = WIDE, .k = b, .transpose_a = true},
                      &s->dw2));
    TUTTI_TRY(plan_of(lab, (tutti_cuda_product){.m = b, .n = h, .k = WIDE, .transpose_b = true},
                      &s->back));
    return plan_of(lab, (tutti_cuda_product){.m = i, .n = h, .k = b, .transpose_a = true}, &s->dw1);
}

/* dh = h > 0 ? dh : 0 */
static tutti_status write_relu_gradient(tutti_text *text)
{
    static const tutti_cuda_chain_step steps[] = {
        {"constant", 0, 0, 0, 0}, {"greater", 0, 2, 0, 0}, {"mul", 1, 3, 0, 0}};
    tutti_cuda_chain chain = {.input_count = 2, .step_count = 3, .output_count = 1, .steps = steps};
    chain.outputs[0].value = 4;
    return tutti__cuda_chain_text(&chain, text);
}

/* Parameters as they were at first. */
static tutti_status reset(lab_bench *lab, step *s)
{
    for (int p = 0; p < PARAMETERS; p++) {
        size_t bytes = (size_t)s->counts[p] * 4;
        float *values = malloc(bytes);
        for (int64_t i = 0; i < s->counts[p]; i++)
            values[i] = (float)s->w0[p][i];
        TUTTI_TRY(TUTTI_CU(lab->on.device,
                           cuMemcpyHtoDAsync(s->host[p].master, values, bytes, lab->on.stream)));
        TUTTI_TRY(TUTTI_CU(lab->on.device, cuStreamSynchronize(lab->on.stream)));
        free(values);
        TUTTI_TRY(
            TUTTI_CU(lab->on.device, cuMemsetD8Async(s->host[p].m, 0, bytes, lab->on.stream)));
        TUTTI_TRY(
            TUTTI_CU(lab->on.device, cuMemsetD8Async(s->host[p].v, 0, bytes, lab->on.stream)));
    }
    TUTTI_TRY(TUTTI_CU(lab->on.device, cuMemcpyHtoDAsync(s->state, &first_state, sizeof first_state,
                                                         lab->on.stream)));
    return TUTTI_CU(lab->on.device, cuStreamSynchronize(lab->on.stream));
}

static tutti_status make(lab_bench *lab, step *s)
{
    int64_t counts[] = {(int64_t)s->in * s->hidden, s->hidden, (int64_t)s->hidden * WIDE, WIDE};
    size_t b = (size_t)s->batch, h = (size_t)s->hidden;
    tutti_cu_pointer none;
    memcpy(s->counts, counts, sizeof counts);
    TUTTI_TRY(lab_numbers(lab, TUTTI_CUDA_F32, (int64_t)s->batch * s->in, -1, 1, &s->x0, &s->x));
    s->labels0 = malloc(b * 4);
    for (int i = 0; i < s->batch; i++)
        s->labels0[i] =
            (int32_t)(tutti__random_u32((tutti_random_key){6, 6}, (uint64_t)i) % CLASSES);
    TUTTI_TRY(lab_put(lab, s->labels0, b * 4, &s->labels));
    for (int p = 0; p < PARAMETERS; p++) {
        double most = p == 1 || p == 3 ? 0.1 : 1 / sqrt(p == 0 ? s->in : s->hidden);
        TUTTI_TRY(lab_numbers(lab, TUTTI_CUDA_F32, counts[p], -most, most, &s->w0[p], &none));
        tutti_cu_pointer *all[] = {&s->host[p].master, &s->host[p].m, &s->host[p].v,
                                   &s->host[p].gradient};
        for (int i = 0; i < 4; i++)
            TUTTI_TRY(lab_memory(lab, (size_t)counts[p] * 4, all[i]));
        s->host[p].count = counts[p];
    }
    TUTTI_TRY(lab_memory(lab, b * h * 4, &s->h));
    TUTTI_TRY(lab_memory(lab, b * h * 4, &s->dh));
    TUTTI_TRY(lab_memory(lab, b * WIDE * 4, &s->z));
    TUTTI_TRY(lab_memory(lab, b * 4, &s->loss));
    TUTTI_TRY(lab_memory(lab, 4, &s->mean_loss));
    TUTTI_TRY(lab_memory(lab, 1 << 20, &s->workspace));
    s->blocks = tutti__cuda_adamw_blocks(s->host, PARAMETERS);
    TUTTI_TRY(lab_put(lab, s->host, sizeof s->host, &s->tensors));
    TUTTI_TRY(lab_put(lab, &first_state, sizeof first_state, &s->state));
    TUTTI_TRY(write_relu_gradient(&s->relu_gradient));
    return plan(lab, s);
}

static tutti_status sum_columns(lab_bench *lab, const step *s, tutti_cu_pointer x, int width,
                                tutti_cu_pointer y)
{
    return tutti__cuda_reduce_columns(
        lab->on, &(tutti_cuda_reduce){
                     .x = x, .y = y, .workspace = s->workspace, .rows = s->batch, .width = width});
}

static tutti_status enqueue(lab_bench *lab, void *context)
{
    step *s = context;
    tutti_cu_stream stream = lab->on.stream;
    const tutti_cuda_adamw_tensor *p = s->host;
    const tutti_cu_pointer chain[] = {s->h, s->dh, s->dh};
    TUTTI_TRY(
        tutti__cuda_product_run(s->forward1, stream, s->x, p[0].master, s->h, p[1].master, 0));
    TUTTI_TRY(
        tutti__cuda_product_run(s->forward2, stream, s->h, p[2].master, s->z, p[3].master, 0));
    TUTTI_TRY(tutti__cuda_softmax_cross_entropy(
        lab->on, &(tutti_cuda_cross_entropy){.logits = s->z,
                                             .labels = s->labels,
                                             .rows = s->batch,
                                             .width = CLASSES,
                                             .stride = WIDE,
                                             .scale = 1.0f / (float)s->batch,
                                             .loss = s->loss,
                                             .gradient = s->z}));
    TUTTI_TRY(tutti__cuda_reduce_all(lab->on, &(tutti_cuda_reduce){.x = s->loss,
                                                                   .y = s->mean_loss,
                                                                   .workspace = s->workspace,
                                                                   .rows = 1,
                                                                   .width = s->batch}));
    TUTTI_TRY(tutti__cuda_product_run(s->dw2, stream, s->h, s->z, p[2].gradient, 0, 0));
    TUTTI_TRY(sum_columns(lab, s, s->z, WIDE, p[3].gradient));
    TUTTI_TRY(tutti__cuda_product_run(s->back, stream, s->z, p[2].master, s->dh, 0, 0));
    TUTTI_TRY(tutti__cuda_chain_run(lab->on, s->relu_gradient.data, (int64_t)s->batch * s->hidden,
                                    3, chain));
    TUTTI_TRY(tutti__cuda_product_run(s->dw1, stream, s->x, s->dh, p[0].gradient, 0, 0));
    TUTTI_TRY(sum_columns(lab, s, s->dh, s->hidden, p[1].gradient));
    return tutti__cuda_adamw(lab->on, TUTTI_CUDA_F32, s->tensors, PARAMETERS, s->blocks, s->state);
}

static tutti_status capture(lab_bench *lab, step *s)
{
    tutti_cuda_device *device = lab->on.device;
    TUTTI_TRY(enqueue(lab, s)); /* compiles and loads what it needs */
    TUTTI_TRY(TUTTI_CU(device, cuStreamSynchronize(lab->on.stream)));
    TUTTI_TRY(TUTTI_CU(device, cuStreamBeginCapture(lab->on.stream, TUTTI_CU_CAPTURE_THREAD)));
    tutti_status status = enqueue(lab, s);
    tutti_status ended = TUTTI_CU(device, cuStreamEndCapture(lab->on.stream, &s->graph));
    TUTTI_TRY(status);
    TUTTI_TRY(ended);
    return TUTTI_CU(device, cuGraphInstantiateWithFlags(&s->exec, s->graph, 0));
}

static tutti_status replay(lab_bench *lab, void *context)
{
    step *s = context;
    return TUTTI_CU(lab->on.device, cuGraphLaunch(s->exec, lab->on.stream));
}

static void update(const step *s, int p, double *w, const double *g, double *m, double *v, int t)
{
    for (int64_t i = 0; i < s->counts[p]; i++) {
        m[i] = 0.9 * m[i] + 0.1 * g[i];
        v[i] = 0.999 * v[i] + 0.001 * g[i] * g[i];
        w[i] -= 1e-3 * (m[i] / (1 - pow(0.9, t)) / (sqrt(v[i] / (1 - pow(0.999, t))) + 1e-8));
    }
}

/* The same in f64. Works on s->w0. */
static double reference(const step *s, double *const *m, double *const *v, double *const *g, int t)
{
    int B = s->batch, I = s->in, H = s->hidden;
    double *h = calloc((size_t)(B * H), 8), *dh = calloc((size_t)H, 8), loss = 0;
    double *w1 = s->w0[0], *b1 = s->w0[1], *w2 = s->w0[2], *b2 = s->w0[3];
    for (int p = 0; p < PARAMETERS; p++)
        memset(g[p], 0, (size_t)s->counts[p] * 8);
    for (int b = 0; b < B; b++) {
        double z[WIDE], sum = 0;
        for (int j = 0; j < H; j++)
            h[b * H + j] = b1[j];
        for (int i = 0; i < I; i++)
            for (int j = 0; j < H; j++)
                h[b * H + j] += s->x0[b * I + i] * w1[i * H + j];
        for (int c = 0; c < CLASSES; c++)
            z[c] = b2[c];
        for (int j = 0; j < H; j++) {
            h[b * H + j] = h[b * H + j] > 0 ? h[b * H + j] : 0;
            for (int c = 0; c < CLASSES; c++)
                z[c] += h[b * H + j] * w2[j * WIDE + c];
        }
        for (int c = 0; c < CLASSES; c++)
            sum += exp(z[c]);
        loss += log(sum) - z[s->labels0[b]];
        memset(dh, 0, (size_t)H * 8);
        for (int c = 0; c < CLASSES; c++) {
            double d = (exp(z[c]) / sum - (c == s->labels0[b])) / B;
            g[3][c] += d;
            for (int j = 0; j < H; j++) {
                g[2][j * WIDE + c] += h[b * H + j] * d;
                dh[j] += h[b * H + j] > 0 ? d * w2[j * WIDE + c] : 0;
            }
        }
        for (int j = 0; j < H; j++)
            g[1][j] += dh[j];
        for (int i = 0; i < I; i++)
            for (int j = 0; j < H; j++)
                g[0][i * H + j] += s->x0[b * I + i] * dh[j];
    }
    for (int p = 0; p < PARAMETERS; p++)
        update(s, p, s->w0[p], g[p], m[p], v[p], t);
    free(h), free(dh);
    return loss / B;
}

static tutti_status compare(lab_bench *lab, step *s)
{
    double *m[PARAMETERS], *v[PARAMETERS], *g[PARAMETERS], worst = 0, first = 0, last = 0;
    for (int p = 0; p < PARAMETERS; p++) {
        m[p] = calloc((size_t)s->counts[p], 8);
        v[p] = calloc((size_t)s->counts[p], 8);
        g[p] = calloc((size_t)s->counts[p], 8);
    }
    TUTTI_TRY(reset(lab, s));
    for (int t = 1; t <= STEPS; t++) {
        float loss;
        TUTTI_TRY(replay(lab, s));
        TUTTI_TRY(lab_get(lab, s->mean_loss, &loss, 4));
        double mine = (double)loss / s->batch;
        last = reference(s, m, v, g, t);
        first = t == 1 ? last : first;
        worst = fmax(worst, fabs(mine - last) / last);
        worst = mine == mine ? worst : INFINITY;
    }
    lab_pass(lab, worst < 1e-4 && last < first, "50 replays beside f64",
             "loss %.4f to %.6f, largest relative difference %.1e", first, last, worst);
    for (int p = 0; p < PARAMETERS; p++)
        free(m[p]), free(v[p]), free(g[p]);
    return TUTTI_OK;
}

/* Two times 50 replays end in the same bits. */
static tutti_status repeat(lab_bench *lab, step *s)
{
    size_t bytes = (size_t)s->counts[0] * 4;
    char *bits = malloc(bytes);
    for (int turn = 0; turn < 2; turn++) {
        TUTTI_TRY(reset(lab, s));
        for (int t = 0; t < STEPS; t++)
            TUTTI_TRY(replay(lab, s));
        if (turn == 0)
            TUTTI_TRY(lab_get(lab, s->host[0].master, bits, bytes));
    }
    lab_same(lab, "weights after 50", s->host[0].master, bits, bytes);
    free(bits);
    return TUTTI_OK;
}

static void discard(lab_bench *lab, step *s)
{
    if (s->exec)
        (void)lab->on.device->cu->cuGraphExecDestroy(s->exec);
    if (s->graph)
        (void)lab->on.device->cu->cuGraphDestroy(s->graph);
    free(s->x0), free(s->labels0);
    for (int p = 0; p < PARAMETERS; p++)
        free(s->w0[p]);
    tutti__text_free(&s->relu_gradient);
}

static tutti_status check_step(lab_bench *lab, step *s, bool timed)
{
    size_t nodes = 0;
    double us;
    TUTTI_TRY(make(lab, s));
    TUTTI_TRY(capture(lab, s));
    TUTTI_TRY(TUTTI_CU(lab->on.device, cuGraphGetNodes(s->graph, NULL, &nodes)));
    if (!timed) {
        TUTTI_TRY(repeat(lab, s));
        return compare(lab, s);
    }
    TUTTI_TRY(lab_microseconds(lab, replay, s, &us));
    printf("time %-22s %-26s %9.1f us  %.0f steps/s, %zu nodes\n", lab->check,
           "784-512-10 b64, graph", us, 1e6 / us, nodes);
    TUTTI_TRY(lab_microseconds(lab, enqueue, s, &us));
    printf("time %-22s %-26s %9.1f us  %.0f steps/s\n", lab->check, "the same, no graph", us,
           1e6 / us);
    return TUTTI_OK;
}

tutti_status lab_check_step(lab_bench *lab)
{
    step small = {.batch = 64, .in = 64, .hidden = 128},
         large = {.batch = 64, .in = 784, .hidden = 512};
    tutti_status status = check_step(lab, &small, false);
    discard(lab, &small);
    if (status == TUTTI_OK) {
        status = check_step(lab, &large, true);
        discard(lab, &large);
    }
    return status;
}
