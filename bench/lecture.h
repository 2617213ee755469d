/* lecture.h: the lecture's MNIST network, for the benchmarks that run it: convolution 32x3x3 relu,
 * max-pool 2, dense 64 relu, dense 10. */
#ifndef TUTTI_BENCH_LECTURE_H
#define TUTTI_BENCH_LECTURE_H

#include "cli/bench.h"

typedef struct tutti_lecture {
    tutti_sym kernel, bias, w1, b1, w2, b2;
} tutti_lecture;

/* Its variables, made in the graph. */
tutti_lecture tutti__lecture_variables(tutti_graph *graph);

/* images f32[batch,28,28,1], labels i64[batch] → the mean loss. */
tutti_sym tutti__lecture_loss(const tutti_lecture *net, tutti_sym images, tutti_sym labels);

/* The training step as a session with Adam, initialised; `step` is the target of a run. */
typedef struct tutti_lecture_session {
    tutti_graph *graph;
    tutti_session *session;
    tutti_sym x, y, step;
    tutti_tensor *images, *labels; /* synthetic; of this process */
    int64_t batch;                 /* of all processes, 0: of one */
} tutti_lecture_session;
/* `batch` examples of each process; without a strategy (NULL) on one device, for itself. */
void tutti__lecture_open(int64_t batch, tutti_strategy *strategy, tutti_lecture_session *ret);
void tutti__lecture_close(tutti_lecture_session *lecture);
/* One step; context is the tutti_lecture_session. */
void tutti__lecture_step(void *context);

#endif
