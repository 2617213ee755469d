/* 12_agent.c: a policy that learns from rewards alone, which another process gives.
 *
 *     ./12_agent       a pole on a cart, pushed left or right: it stands for at least 150 of 200
 *                      steps, where pushes at random keep it up for about 20
 *
 * The world is a process of its own: it reads pushes from a socket and answers with what is to be
 * seen of 32 carts and who still stands. REINFORCE: after 200 steps each push is made likelier by
 * the reward that came after it, as compared to the mean:
 *     loss = -mean(log p(push | seen) (return - mean) / deviation)
 * The program fails (exit 1) when it ends below that. --save FILE writes the policy, and where the
 * training stands, from where --resume goes on. */
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tutti/tutti.h>

enum { CARTS = 32, STEPS = 200, SEEN = 4, ROUNDS = CARTS * STEPS };

typedef struct view {
    float seen[CARTS][SEEN]; /* place, speed, angle and turning speed */
    float stands[CARTS];     /* 1 until the pole has fallen */
} view;

/* ---- the world ---- */

/* A fiftieth of a second of a cart of 1 kg with a pole of 0.1 kg and 1 m, pushed by 10 N. */
static void push(float *s, int64_t right)
{
    double sine = sin(s[2]), cosine = cos(s[2]), force = right ? 10 : -10;
    double swing = (force + 0.05 * s[3] * s[3] * sine) / 1.1;
    double turning =
        (9.8 * sine - cosine * swing) / (0.5 * (4.0 / 3 - 0.1 * cosine * cosine / 1.1));
    double faster = swing - 0.05 * turning * cosine / 1.1;
    const double change[SEEN] = {s[1], faster, s[3], turning};
    for (int i = 0; i < SEEN; i++)
        s[i] += (float)(0.02 * change[i]);
}

/* Answers until nobody asks any more. Pushes of -n set the carts up for the n-th time. */
static void be_world(int line)
{
    view v = {0};
    int64_t pushes[CARTS];
    signal(SIGINT, SIG_IGN); /* Ctrl-C is the agent's: the world ends with it */
    while (recv(line, pushes, sizeof pushes, MSG_WAITALL) == (ssize_t)sizeof pushes) {
        if (pushes[0] < 0)
            srand((unsigned)-pushes[0]);
        for (int c = 0; c < CARTS; c++) {
            for (int i = 0; pushes[c] < 0 && i < SEEN; i++)
                v.seen[c][i] = (float)(0.1 * rand() / RAND_MAX - 0.05);
            if (pushes[c] < 0)
                v.stands[c] = 1;
            else if (v.stands[c])
                push(v.seen[c], pushes[c]);
            if (fabsf(v.seen[c][0]) > 2.4f || fabsf(v.seen[c][2]) > 0.2094f)
                v.stands[c] = 0;
        }
        if (send(line, &v, sizeof v, MSG_NOSIGNAL) < 0)
            break;
    }
    _exit(0);
}

/* ---- the agent ---- */

typedef struct agent {
    tutti_model *policy;
    tutti_eager *e;
    int line;
    float seen[ROUNDS][SEEN], stood[ROUNDS + CARTS], gains[ROUNDS]; /* CARTS rounds a step */
    int64_t pushes[ROUNDS];
} agent;

/* Memory of the agent's as a value of this step: `rows` rows of `columns`, or a vector. */
static tutti_sym use(agent *a, tutti_dtype dtype, int64_t rows, int64_t columns, void *data)
{
    tutti_tensor *tensor = NULL;
    tutti_tensor_wrap(dtype, columns ? 2 : 1, (int64_t[]){rows, columns}, data, NULL, NULL,
                      &tensor);
    tutti_sym sym = tutti_eager_feed(a->e, tensor);
    tutti_tensor_release(tensor);
    return sym;
}

/* Draws a push for each cart from softmax(policy(seen)). */
static tutti_status choose(agent *a, int64_t at)
{
    tutti_tensor *drawn = NULL;
    TUTTI_STEP(a->e) {
        tutti_sym logits = tutti_apply(a->policy, use(a, TUTTI_F32, CARTS, SEEN, a->seen[at]));
        tutti_value(tutti_random_categorical(logits, 1), &drawn);
    }
    TUTTI_TRY(tutti_eager_check(a->e));
    memcpy(a->pushes + at, tutti_tensor_data(drawn), CARTS * sizeof *a->pushes);
    tutti_tensor_release(drawn);
    return TUTTI_OK;
}

/* Plays: notes what is seen, done and who stands. Gives the mean number of steps that they stood.
 */
static tutti_status play(agent *a, const tutti_progress *progress, double *ret_steps)
{
    view v;
    int64_t pushes[CARTS];
    *ret_steps = 0;
    for (int c = 0; c < CARTS; c++)
        pushes[c] = -1 - tutti_progress_steps(progress);
    for (int at = 0; at <= ROUNDS; at += CARTS) {
        if (send(a->line, pushes, sizeof pushes, MSG_NOSIGNAL) < 0 ||
            recv(a->line, &v, sizeof v, MSG_WAITALL) != (ssize_t)sizeof v)
            return tutti_fail(TUTTI_IO, "the world does not answer");
        memcpy(a->stood + at, v.stands, sizeof v.stands);
        if (at == ROUNDS)
            break;
        memcpy(a->seen[at], v.seen, sizeof v.seen);
        TUTTI_TRY(choose(a, at));
        memcpy(pushes, a->pushes + at, sizeof pushes);
        for (int c = 0; c < CARTS; c++)
            *ret_steps += v.stands[c] / CARTS;
    }
    return TUTTI_OK;
}

/* What each push gained: 1 for standing after it, 0.98 for the step after that, and so on; of mean
 * 0 and deviation 1 over the pushes of those who stood, 0 for the others. */
static void count_gains(agent *a)
{
    double count = 0, sum = 0, squares = 0;
    for (int i = ROUNDS - 1; i >= 0; i--) {
        a->gains[i] = a->stood[i + CARTS] + (i + CARTS < ROUNDS ? 0.98f * a->gains[i + CARTS] : 0);
        count += a->stood[i];
        sum += a->gains[i] * a->stood[i];
        squares += a->gains[i] * a->gains[i] * a->stood[i];
    }
    double mean = sum / count, deviation = sqrt(squares / count - mean * mean) + 1e-6;
    for (int i = 0; i < ROUNDS; i++)
        a->gains[i] = (float)((a->gains[i] - mean) / deviation) * a->stood[i];
}

static double learn(agent *a, tutti_optimizer adam)
{
    double value = 0;
    TUTTI_STEP(a->e) {
        tutti_sym seen = use(a, TUTTI_F32, ROUNDS, SEEN, a->seen), loss;
        tutti_sym pushes = use(a, TUTTI_I64, ROUNDS, 0, a->pushes);
        tutti_sym gains = use(a, TUTTI_F32, ROUNDS, 0, a->gains);
        TUTTI_TAPE(tape, a->e) {
            tutti_sym logits = tutti_apply(a->policy, seen, .training = true);
            loss = tutti_mean(tutti_mul(gains, tutti_nn_sparse_cross_entropy(pushes, logits)));
        }
        tutti_tape_minimize(&tape, adam, loss, a->policy);
        value = tutti_scalar_value(loss);
    }
    return value;
}

static tutti_status train(agent *a, tutti_job *job)
{
    double steps = 0;
    tutti_optimizer adam = tutti_adam(.learning_rate = tutti_flag_number(job, "lr", 0.01));
    tutti_progress *progress = tutti_progress_open(job, 6, 10, .model = a->policy);
    while (tutti_progress_epoch(progress)) {
        do {
            TUTTI_TRY(play(a, progress, &steps));
            count_gains(a);
            tutti_progress_mean(progress, "loss", learn(a, adam));
            tutti_progress_mean(progress, "stood", steps);
            TUTTI_TRY(tutti_eager_check(a->e));
        } while (tutti_progress_step(progress, CARTS));
    }
    if (tutti_job_ok(job))
        TUTTI_TRY(play(a, progress, &steps));
    tutti_expect(job, "mean of steps", steps, 150);
    return TUTTI_OK;
}

int main(int argc, char **argv)
{
    int ends[2] = {-1, -1};
    pid_t world = socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0 ? fork() : -1;
    close(ends[world == 0]);
    if (world == 0)
        be_world(ends[0]);
    tutti_job *job = tutti_open(&argc, &argv);
    tutti_no_other_flags(job, argc, argv);
    if (world < 0)
        tutti_job_fail(job, tutti_fail(TUTTI_IO, "the world cannot be started"));
    static agent a;
    a.line = ends[1];
    a.policy = tutti_sequential(job, tutti_dense(32, .activation = TUTTI_TANH), tutti_dense(2));
    tutti_build(a.policy, TUTTI_F32, SEEN);
    a.e = tutti_model_eager(a.policy);
    if (tutti_job_ok(job))
        tutti_job_fail(job, train(&a, job));
    close(a.line); /* the end of the world */
    waitpid(world, NULL, 0);
    return tutti_close(job);
}
