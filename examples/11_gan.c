/* 11_gan.c: two networks trained against each other on the tape, by two optimizers in turn.
 *
 *     ./11_gan      points from a ring of eight clouds: at least 0.65 of those drawn are right
 *     ./11_gan --strategy mirrored --devices cpu:0,cpu:1
 *     tutti run -n 2 ./11_gan         batches are cut, the losses stay the same
 *
 * A Wasserstein GAN with gradient penalty: the critic c scores points x of the ring above those
 * that the generator g makes of noise z, with a slope of 1 in between; g learns to be scored well:
 *     L_c = mean c(g(z)) - mean c(x) + penalty / 10,   L_g = -mean c(g(z))
 * The program fails (exit 1) when it ends below that. At the end it shows what g draws. --save FILE
 * writes both networks, and where the training stands, from where --resume goes on. */
#include <math.h>
#include <stdio.h>

#include <tutti/tutti.h>

enum { CLOUDS = 8, DRAWN = 2048, ROWS = 20, COLUMNS = 40, CRITIC_STEPS = 4, WEIGHTS = 5 };
static const double radius = 2, spread = 0.15, turn = 6.283185307179586 / CLOUDS;

typedef struct network {
    tutti_sym weights[WEIGHTS]; /* three kernels, and biases but for the last: c's would cancel */
    tutti_optimizer adam;
    tutti_dtype precision; /* of its products */
} network;

typedef struct gan {
    tutti_eager *e;
    tutti_graph *graph;
    int64_t seed;
    tutti_dtype precision;
    network critic, generator;
} gan;

static network make_network(const gan *a, const char *name, int64_t outputs, double rate)
{
    const int64_t sizes[] = {2, 64, 64, outputs};
    network n = {.precision = a->precision,
                 .adam =
                     tutti_adam(.learning_rate = rate, .beta1 = 0.5, .beta2 = 0.9, .name = name)};
    for (int i = 0; i < WEIGHTS; i++)
        n.weights[i] = tutti_variable(a->graph,
                                      i % 2 ? tutti_zeros(sizes[i / 2 + 1])
                                            : tutti_glorot_uniform(sizes[i / 2], sizes[i / 2 + 1]),
                                      .seed = a->seed);
    return n;
}

/* x w in the precision that --precision asks for. */
static tutti_sym product(const network *n, tutti_sym x, tutti_sym w)
{
    tutti_dtype p = n->precision;
    return tutti_cast(tutti_matmul(tutti_cast(x, p), tutti_cast(w, p)), TUTTI_F32);
}

static tutti_sym apply(const network *n, tutti_sym x)
{
    for (int i = 0; i < WEIGHTS - 1; i += 2)
        x = tutti_relu(tutti_add(product(n, x, n->weights[i]), n->weights[i + 1]));
    return product(n, x, n->weights[WEIGHTS - 1]);
}

/* What the generator makes of noise of the shape of `like`. */
static tutti_sym make_points(const gan *a, tutti_sym like)
{
    return apply(&a->generator, tutti_random_normal(a->graph, 0, 1, TUTTI_TYPE(TUTTI_F32, 1),
                                                    .like = like, .seed = a->seed));
}

/* mean (|dc/dm| - 1)^2 at places m on the way from x to y. The inner tape's gradient is recorded by
 * the outer one, which differentiates it once more. */
static tutti_sym penalty(const gan *a, tutti_sym x, tutti_sym y)
{
    tutti_sym way =
        tutti_random_uniform(a->graph, 0, 1, TUTTI_TYPE(TUTTI_F32, 1), .seed = a->seed,
                             .like = tutti_sum(x, .axes = TUTTI_AXES(1), .keepdims = true));
    tutti_sym m = tutti_add(x, tutti_mul(way, tutti_sub(y, x))), score;
    TUTTI_TAPE(inner, a->e) {
        tutti_tape_watch(&inner, m);
        score = apply(&a->critic, m);
    }
    tutti_grad slope;
    tutti_tape_gradients(&inner, score, 1, &m, &slope);
    tutti_sym length = tutti_sqrt(tutti_sum(tutti_square(slope.value), .axes = TUTTI_AXES(1)));
    return tutti_mean(tutti_square(tutti_add(length, -1)));
}

/* Trains one of the two on a batch of the ring. */
static double step(const gan *a, const network *which, tutti_tensor *points)
{
    double value = 0;
    TUTTI_STEP(a->e) {
        tutti_sym x = tutti_eager_feed(a->e, points), loss;
        TUTTI_TAPE(tape, a->e) {
            tutti_sym made = make_points(a, x), score = tutti_mean(apply(&a->critic, made));
            if (which == &a->critic)
                loss = tutti_add(tutti_sub(score, tutti_mean(apply(&a->critic, x))),
                                 tutti_mul(penalty(a, x, made), 0.1));
            else
                loss = tutti_neg(score);
        }
        tutti_grad grads[WEIGHTS];
        tutti_tape_gradients(&tape, loss, WEIGHTS, which->weights, grads);
        tutti_apply_gradients(which->adam, WEIGHTS, which->weights, grads);
        value = tutti_scalar_value(loss);
    }
    return value;
}

/* A point of the ring: in one of the clouds, by Box and Muller. */
static tutti_status draw(void *context, tutti_element *element)
{
    (void)context;
    double cloud = turn * (double)(element->random % CLOUDS);
    double angle = turn * CLOUDS * (double)(element->random >> 40) * 0x1p-24;
    double far = spread * sqrt(-2 * log((double)((element->random >> 8 & 0xffffff) + 1) * 0x1p-24));
    tutti_tensor *point;
    TUTTI_TRY(tutti_tensor_create(TUTTI_F32, 1, (int64_t[]){2}, &point));
    tutti_tensor_set(point, 0, radius * cos(cloud) + far * cos(angle));
    tutti_tensor_set(point, 1, radius * sin(cloud) + far * sin(angle));
    return tutti_element_set(element, 0, point);
}

/* The share of drawn points within three deviations of a cloud's middle, where each cloud counts
 * for at most its part. */
static double judge(const gan *a, bool show)
{
    int near[CLOUDS] = {0}, right = 0;
    char picture[ROWS][COLUMNS + 1] = {{0}};
    tutti_tensor *points = NULL;
    TUTTI_STEP(a->e)
        tutti_value(make_points(a, tutti_fill(a->graph, TUTTI_F32, 0, DRAWN, 2)), &points);
    for (int64_t i = 0; points && i < DRAWN; i++) {
        double x = tutti_tensor_get(points, 2 * i), y = tutti_tensor_get(points, 2 * i + 1);
        int cloud = ((int)lround(atan2(y, x) / turn) + CLOUDS) % CLOUDS;
        double far = hypot(x - radius * cos(turn * cloud), y - radius * sin(turn * cloud));
        right += far < 3 * spread && near[cloud]++ < DRAWN / CLOUDS;
        if (fabs(x) < 3 && fabs(y) < 3)
            picture[(int)((3 - y) / 6 * ROWS)][(int)((3 + x) / 6 * COLUMNS)] = '*';
    }
    for (int i = 0; show && i < ROWS * (COLUMNS + 1); i++)
        putchar(i % (COLUMNS + 1) == COLUMNS ? '\n' : picture[0][i] ? '*' : ' ');
    tutti_tensor_release(points);
    return (double)right / DRAWN;
}

static void train(gan *a, tutti_job *job)
{
    double rate = tutti_flag_number(job, "lr", 2e-3);
    int64_t batch = tutti_flag_int(job, "batch", 256);
    tutti_dataset *ring =
        tutti_batch(tutti_map(tutti_range_dataset(job, 0, 500 * batch, 1), draw), batch);
    a->critic = make_network(a, "critic", 1, rate);
    a->generator = make_network(a, "generator", 2, rate);
    tutti_progress *progress = tutti_progress_open(job, 8, tutti_cardinality(ring), .eager = a->e);
    int64_t at = tutti_progress_steps(progress);
    while (tutti_progress_epoch(progress)) {
        TUTTI_EACH_BATCH(ring, points, none) {
            (void)none;
            tutti_progress_mean(progress, "critic_loss", step(a, &a->critic, points));
            if (++at % CRITIC_STEPS == 0)
                tutti_progress_mean(progress, "generator_loss", step(a, &a->generator, points));
            if (!tutti_progress_step(progress, batch))
                break;
        }
        tutti_progress_set(progress, "right", judge(a, false));
        tutti_job_fail(job, tutti_eager_check(a->e));
    }
    if (tutti_job_ok(job))
        tutti_expect(job, "share of right points", judge(a, !tutti_job_quiet(job)), 0.65);
}

int main(int argc, char **argv)
{
    tutti_job *job = tutti_open(&argc, &argv);
    tutti_no_other_flags(job, argc, argv);
    gan a = {.seed = (int64_t)tutti_job_seed(job), .precision = tutti_job_precision(job)};
    if (tutti_job_ok(job))
        tutti_job_fail(job, tutti_eager_open(&a.e, .strategy = tutti_job_strategy(job)));
    if (a.e) {
        a.graph = tutti_eager_graph(a.e);
        train(&a, job);
    }
    tutti_eager_close(a.e);
    return tutti_close(job);
}
