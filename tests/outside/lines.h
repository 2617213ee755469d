/* lines.h: the names that lines of code in the documentation use without declaring them, and what
 * they stand for when the lines are run. What else a block needs stands before it on its page, in a
 * comment that readers do not see: see docs.py. */
#ifndef LINES_H
#define LINES_H

#include <stdio.h>
#include <stdlib.h>

#include <tutti/tutti.h>

static tutti_graph *g;
static tutti_session *s;
static tutti_sym a, b, w, x, y, loss, step, next;
static tutti_tensor *images, *digits, *tensor;
static tutti_job *job;
static tutti_dataset *train, *test;
static tutti_model *m;

#ifdef LINES_RUN
/* y = (x w + b)^2 with x [4,3]; loss its mean; a session in which w and b have values. */
static inline void lines_graph(void)
{
    tutti_graph_create(&g);
    x = tutti_placeholder(g, TUTTI_F32, 4, 3);
    w = tutti_variable(g, tutti_glorot_uniform(3, 2), .name = "lines_w");
    b = tutti_variable(g, tutti_zeros(2), .name = "lines_b");
    a = tutti_variable(g, tutti_zeros(), .name = "lines_a", .not_trainable = true);
    y = tutti_square(tutti_add(tutti_matmul(x, w), b));
    loss = tutti_mean(y);
    step = tutti_minimize(tutti_sgd(0.1, .name = "lines_sgd"), loss);
    next = tutti_assign_add(a, tutti_scalar(g, TUTTI_F32, 1));
    tutti_session_open(&s, g);
    tutti_run(s, .target = tutti_initialize_variables(g));
}

/* A small model with weights, compiled, and a little data for it. */
static inline void lines_model(void)
{
    tutti_mnist_load(NULL, "train", 64, &images, &digits);
    train = tutti_batch(tutti_from_tensor_slices(job, images, digits), 32);
    test = tutti_batch(tutti_from_tensor_slices(job, images, digits), 64);
    m = tutti_sequential(job, tutti_flatten(), tutti_dense(10, .name = "dense"));
    tutti_build(m, TUTTI_F32, 28, 28, 1);
    tutti_compile(m, .optimizer = tutti_adam(.learning_rate = 1e-3, .ema_decay = 0.9),
                  .loss = tutti_sparse_cross_entropy(.from_logits = true), .metrics = "accuracy");
}

static inline void lines_begin(int *argc, char ***argv)
{
    job = tutti_open(argc, argv);
    lines_graph();
    lines_model();
}

/* Lines may let a failure pass; here it counts. */
static int lines_failures;
static inline tutti_status lines_try(tutti_status status)
{
    if (status != TUTTI_OK) {
        fprintf(stderr, "%s\n", tutti_error_message());
        lines_failures++;
    }
    return status;
}
#define tutti_run_with(...) lines_try((tutti_run_with)(__VA_ARGS__))
#define tutti_session_set(...) lines_try((tutti_session_set)(__VA_ARGS__))
#define tutti_eager_step(...) lines_try((tutti_eager_step)(__VA_ARGS__))
#define tutti_npz_load(...) lines_try((tutti_npz_load)(__VA_ARGS__))
#define tutti_cluster_resolve(...) lines_try((tutti_cluster_resolve)(__VA_ARGS__))
#define tutti_graph_deserialize(...) lines_try((tutti_graph_deserialize)(__VA_ARGS__))

/* Exit code: 1 when anything failed. */
static inline int lines_end(void)
{
    lines_try(tutti_graph_check(g));
    tutti_session_close(s);
    tutti_graph_destroy(g);
    tutti_tensor_release(images);
    tutti_tensor_release(digits);
    tutti_tensor_release(tensor);
    return tutti_close(job) || lines_failures > 0;
}
#endif
#endif
