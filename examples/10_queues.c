/* 10_queues.c: streaming: threads put digits into queues, the trainer takes them out.
 *
 *     ./10_queues                 digits as they are drawn: at least 0.88 of the test digits are
 *                                 right, none of which was seen before
 *     ./10_queues --data DIR      MNIST's files in DIR: at least 0.88
 *
 * Nobody waits longer than needed: a full queue holds up the thread that fills it, an empty one the
 * trainer, who takes as many out of each. So its batches do not depend on who is faster. --save
 * FILE writes w and b, and where the training stands with what is in the queues, from where
 * --resume goes on. The program fails (exit 1) when it ends below that. */
#include <pthread.h>

#include <tutti/tutti.h>

enum { FILLERS = 2, PIECE = 100, DIGITS = 60000 };

typedef struct stream {
    tutti_job *job;
    tutti_graph *graph;
    tutti_session *session;
    tutti_tensor *images, *labels;    /* of --data; NULL: they are drawn */
    int64_t count;                    /* of digits that each filler puts into its queue */
    tutti_sym new_images, new_labels; /* placeholders */
    tutti_sym put[FILLERS], arrived[FILLERS], close[FILLERS]; /* of each queue */
    tutti_sym w, b, loss, step, accuracy;
} stream;

typedef struct filler {
    stream *stream;
    int which;
    pthread_t thread;
} filler;

static tutti_status piece_at(const stream *s, int64_t at, int64_t count, tutti_tensor **images,
                             tutti_tensor **labels)
{
    if (!s->images)
        return tutti_digits_draw(1000 + tutti_job_seed(s->job), at, count, images, labels);
    TUTTI_TRY(tutti_tensor_slice(s->images, 0, at % DIGITS, count, 1, images));
    return tutti_tensor_slice(s->labels, 0, at % DIGITS, count, 1, labels);
}

/* Digits into a queue of its own, from the first that has not arrived there, until all are in or
 * the queue is closed. */
static void *fill(void *context)
{
    const filler *f = context;
    const stream *s = f->stream;
    tutti_tensor *arrived;
    tutti_status status =
        tutti_run(s->session, .fetch = TUTTI_FETCH({s->arrived[f->which], &arrived}));
    int64_t at = status == TUTTI_OK ? tutti_tensor_get_int(arrived, 0) : 0, count;
    tutti_tensor_release(status == TUTTI_OK ? arrived : NULL);
    for (; status == TUTTI_OK && at < s->count; at += count) {
        tutti_tensor *images = NULL, *labels = NULL;
        count = PIECE - at % PIECE;
        status = piece_at(s, (at / PIECE * FILLERS + f->which) * PIECE + at % PIECE, count, &images,
                          &labels);
        if (status == TUTTI_OK)
            status = tutti_run(s->session,
                               .feed = TUTTI_FEED({s->new_images, images}, {s->new_labels, labels}),
                               .target = s->put[f->which]);
        tutti_tensor_release(images);
        tutti_tensor_release(labels);
    }
    tutti_run(s->session, .target = s->close[f->which]);
    return NULL;
}

static tutti_sym scores(const stream *s, tutti_sym x)
{
    tutti_dtype p = tutti_job_precision(s->job); /* --precision: of the product */
    tutti_sym product = tutti_matmul(tutti_cast(tutti_reshape(x, -1, 784), p), tutti_cast(s->w, p));
    return tutti_add(tutti_cast(product, TUTTI_F32), s->b);
}

static void build(stream *s, int64_t batch)
{
    tutti_graph *g = s->graph;
    s->new_images = tutti_placeholder(g, TUTTI_F32, TUTTI_ANY, 28, 28, 1);
    s->new_labels = tutti_placeholder(g, TUTTI_I64, TUTTI_ANY);
    s->w = tutti_variable(g, tutti_zeros(784, 10), .name = "w");
    s->b = tutti_variable(g, tutti_zeros(10), .name = "b");
    tutti_sym xs[FILLERS], ys[FILLERS];
    for (int i = 0; i < FILLERS; i++) {
        tutti_sym queue =
            tutti_fifo_queue(g, 1000, TUTTI_TYPE(TUTTI_F32, 28, 28, 1), TUTTI_TYPE(TUTTI_I64));
        s->put[i] = tutti_enqueue_many(queue, s->new_images, s->new_labels);
        s->arrived[i] = tutti_queue_arrived(queue);
        s->close[i] = tutti_queue_close(queue, true);
        xs[i] = tutti_dequeue_many(queue, batch / FILLERS);
        ys[i] = tutti_output_of(xs[i], 1);
    }
    tutti_sym x = tutti_concat(0, xs[0], xs[1]), y = tutti_concat(0, ys[0], ys[1]);
    s->loss = tutti_mean(tutti_sparse_cross_entropy_of(y, scores(s, x)));
    s->step = tutti_minimize(tutti_sgd(tutti_flag_number(s->job, "lr", 0.1)), s->loss);
    tutti_sym guess = tutti_argmax(scores(s, s->new_images), 1);
    s->accuracy = tutti_mean(tutti_cast(tutti_equal(guess, s->new_labels), TUTTI_F32));
}

static tutti_status evaluate(const stream *s, tutti_dataset *test, double *ret_accuracy)
{
    tutti_tensor *images, *labels, *value;
    TUTTI_TRY(tutti_next_batch(test, &images, &labels));
    TUTTI_TRY(tutti_run(s->session,
                        .feed = TUTTI_FEED({s->new_images, images}, {s->new_labels, labels}),
                        .fetch = TUTTI_FETCH({s->accuracy, &value})));
    *ret_accuracy = tutti_tensor_get(value, 0);
    tutti_tensor_release(value);
    return TUTTI_OK;
}

static tutti_status train(const stream *s, tutti_dataset *test, int64_t batch,
                          tutti_progress *progress)
{
    double accuracy;
    tutti_tensor *loss;
    while (tutti_progress_epoch(progress)) {
        do {
            tutti_status status =
                tutti_run(s->session, .fetch = TUTTI_FETCH({s->loss, &loss}), .target = s->step);
            if (status == TUTTI_OUT_OF_RANGE) /* the queues are closed, and too few are left */
                break;
            TUTTI_TRY(status);
            tutti_progress_mean(progress, "loss", tutti_tensor_get(loss, 0));
            tutti_tensor_release(loss);
        } while (tutti_progress_step(progress, batch));
        TUTTI_TRY(evaluate(s, test, &accuracy));
        tutti_progress_set(progress, "val_accuracy", accuracy);
    }
    tutti_expect(s->job, "test accuracy", tutti_progress_get(progress, "val_accuracy"), 0.88);
    return TUTTI_OK;
}

/* Builds, fills and trains, each side on its own threads. */
static tutti_status stream_and_train(stream *s)
{
    filler fillers[FILLERS];
    int count = 0;
    int64_t batch = (tutti_flag_int(s->job, "batch", 50) + 1) / FILLERS * FILLERS;
    build(s, batch);
    TUTTI_TRY(tutti_run(s->session, .target = tutti_initialize_all(s->graph)));
    tutti_dataset *test = tutti_batch(tutti_mnist(s->job, "test"), 10000);
    tutti_progress *progress =
        tutti_progress_open(s->job, 1, DIGITS / batch, .session = s->session);
    for (; count < FILLERS; count++) {
        fillers[count] = (filler){.stream = s, .which = count};
        if (pthread_create(&fillers[count].thread, NULL, fill, &fillers[count]) != 0)
            break;
    }
    tutti_job_fail(s->job, count == FILLERS ? train(s, test, batch, progress)
                                            : tutti_fail(TUTTI_NO_MEMORY, "no thread for a queue"));
    for (int i = 0; i < FILLERS; i++) /* those that still fill give up */
        tutti_run(s->session, .target = s->close[i]);
    for (int i = 0; i < count; i++)
        pthread_join(fillers[i].thread, NULL);
    return tutti_job_check(s->job);
}

int main(int argc, char **argv)
{
    tutti_job *job = tutti_open(&argc, &argv);
    tutti_no_other_flags(job, argc, argv);
    const char *data = tutti_flag_text(job, "data", NULL);
    stream s = {.job = job, .count = DIGITS / FILLERS * tutti_flag_int(job, "epochs", 1)};
    if (tutti_job_ok(job) && data)
        tutti_job_fail(job, tutti_mnist_load(data, "train", 0, &s.images, &s.labels));
    if (tutti_job_ok(job) && tutti_job_fail(job, tutti_graph_create(&s.graph)) == TUTTI_OK &&
        tutti_job_fail(job, tutti_session_open(&s.session, s.graph)) == TUTTI_OK)
        tutti_job_fail(job, stream_and_train(&s));
    tutti_session_close(s.session);
    tutti_graph_destroy(s.graph);
    tutti_tensor_release(s.images);
    tutti_tensor_release(s.labels);
    return tutti_close(job);
}
