/* 12_agent.c: a policy that learns from rewards alone, which another process gives.
 *
 *     ./12_agent       a pole on a cart, pushed left or right: it stands for at least 150 of 200
 *                      steps, where pushes at random keep it up for about 20
 *
 * The world is a process of its own: it reads pushes from a socket and answers with what is to be
 * seen of 32 carts and who still stands. REINFORCE: after 200 steps each push is made likelier by
 * the reward that came after it, as compared to the mean:
 *     loss = -mean(log p(push | seen) (return - mean) / deviation)
 * The program fails (exit 1) when it ends below that. */
#include <math.h>
#include <stdlib.h>
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
    double turning = (9.8 * sine - cosine * swing) / (0.5 * (4.0 / 3 - 0.1 * cosine * cosine / 1.1));
    double faster = swing - 0.05 * turning * cosine / 1.1;
    const double change[SEEN] = {s[1], faster, s[3], turning};
    for (int i = 0; i < SEEN; i++)
        s[i] += (float)(0.02 * change[i]);
}

/* Answers until nobody asks any more. A push of -1 sets the carts up again. */
static void be_world(int line)
{
    view v = {0};
    int64_t pushes[CARTS];
    while (recv(line, pushes, sizeof pushes, MSG_WAITALL) == (ssize_t)sizeof pushes) {
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
    tutti_job *job;
    tutti_model *policy;
    tutti_eager *e;
    int line;
    tutti_tensor *seen, *pushes, *gains; /* [ROUNDS, SEEN], [ROUNDS], [ROUNDS]: step by step */
} agent;

static tutti_status ask(const agent *a, const int64_t *pushes, view *ret_view)
{
    if (send(a->line, pushes, CARTS * sizeof *pushes, MSG_NOSIGNAL) < 0 ||
        recv(a->line, ret_view, sizeof *ret_view, MSG_WAITALL) != (ssize_t)sizeof *ret_view)
        return tutti_fail(TUTTI_IO, "the world does not answer");
    return TUTTI_OK;
}
