/* 10_queues.c: streaming: threads put digits into queues, the trainer takes them out.
 *
 *     ./10_queues                 digits as they are drawn: at least 0.88 of the test digits are
 *                                 right, none of which was seen before
 *     ./10_queues --data DIR      MNIST's files in DIR: at least 0.88
 *     tutti run -n 2 ./10_queues  each process fills queues of its own, with its rows of each batch
 *                                 (tutti_strategy_own_rows); the losses stay the same
 *
 * Nobody waits longer than needed: a full queue holds up the thread that fills it, an empty one the
 * trainer, who takes a batch out of each in turn. So its batches do not depend on who is faster.
 * --save FILE writes w and b, and where the training stands with what is in the queues, from where
 * --resume goes on. The program fails (exit 1) when it ends below that. */
#include <pthread.h>

#include <tutti/tutti.h>

enum { FILLERS = 2, DRAWN = 60000 };

typedef struct stream {
    tutti_job *job;
    tutti_graph *graph;
    tutti_session *session;
    tutti_tensor *images, *labels;    /* of --data; NULL: they are drawn */
    int64_t batch, batches, all;      /* rows; batches of an epoch, and of all epochs */
    int64_t first, rows;              /* of each batch: those of this process */
    tutti_sym new_images, new_labels; /* placeholders: for the queues */
    tutti_sym put[FILLERS], size[FILLERS], close[FILLERS], loss[FILLERS], step[FILLERS];
    tutti_sym w, b, test_images, test_labels, accuracy;
} stream;

typedef struct filler {
    const stream *stream;
    int which;
    int64_t next, there; /* the batch that it goes on with, and how many of its rows are in */
    pthread_t thread;
} filler;

/* Rows of a batch, numbered through all epochs. Files begin anew with each of these. */
static tutti_status rows_of(const stream *s, int64_t batch, int64_t first, int64_t count,
                            tutti_tensor **images, tutti_tensor **labels)
{
    if (!s->images)
        return tutti_digits_draw(1000 + tutti_job_seed(s->job), batch * s->batch + first, count,
                                 images, labels);
    first += batch % s->batches * s->batch;
    TUTTI_TRY(tutti_tensor_slice(s->images, 0, first, count, 1, images));
    return tutti_tensor_slice(s->labels, 0, first, count, 1, labels);
}

/* This process's rows of every FILLERS-th batch into a queue, until all are in or it is closed. A
 * queue that is closed stays so after --resume: it is left open for more --epochs, unless no more
 * can come. */
static void *fill(void *context)
{
    filler *f = context;
    const stream *s = f->stream;
    tutti_status status = TUTTI_OK;
    int64_t end = s->rows > 0 ? s->all : 0;
    for (; status == TUTTI_OK && f->next < end; f->next += FILLERS, f->there = 0) {
        tutti_tensor *images = NULL, *labels = NULL;
        status = rows_of(s, f->next, s->first + f->there, s->rows - f->there, &images, &labels);
        if (status == TUTTI_OK)
            status = tutti_run(s->session,
                               .feed = TUTTI_FEED({s->new_images, images}, {s->new_labels, labels}),
                               .target = s->put[f->which]);
        tutti_tensor_release(images);
        tutti_tensor_release(labels);
    }
    if (status != TUTTI_OK)
        tutti_run(s->session, .target = s->close[f->which]);
    return NULL;
}

/* Behind the batches that were taken, and what is in the queue: after --resume not from the start.
 */
static tutti_status start(filler *f, const stream *s, int which, int64_t steps)
{
    tutti_tensor *size;
    TUTTI_TRY(tutti_run(s->session, .fetch = TUTTI_FETCH({s->size[which], &size})));
    int64_t in = tutti_tensor_get_int(size, 0), rows = s->rows > 0 ? s->rows : 1;
    int64_t taken = (steps + FILLERS - 1 - which) / FILLERS;
    tutti_tensor_release(size);
    *f = (filler){s, which, .next = which + (taken + in / rows) * FILLERS, .there = in % rows};
    return pthread_create(&f->thread, NULL, fill, f) == 0
               ? TUTTI_OK
               : tutti_fail(TUTTI_NO_MEMORY, "no thread for a queue");
}

static tutti_sym scores(const stream *s, tutti_sym x)
{
    tutti_dtype p = tutti_job_precision(s->job); /* --precision: of the product */
    tutti_sym product = tutti_matmul(tutti_cast(tutti_reshape(x, -1, 784), p), tutti_cast(s->w, p));
    return tutti_add(tutti_cast(product, TUTTI_F32), s->b);
}

static void build(stream *s)
{
    tutti_graph *g = s->graph;
    s->new_images = tutti_placeholder(g, TUTTI_F32, TUTTI_ANY, 28, 28, 1);
    s->new_labels = tutti_placeholder(g, TUTTI_I64, TUTTI_ANY);
    s->w = tutti_variable(g, tutti_zeros(784, 10), .name = "w");
    s->b = tutti_variable(g, tutti_zeros(10), .name = "b");
    for (int i = 0; i < FILLERS; i++) {
        tutti_sym queue =
            tutti_fifo_queue(g, 1000, TUTTI_TYPE(TUTTI_F32, 28, 28, 1), TUTTI_TYPE(TUTTI_I64));
        s->put[i] = tutti_enqueue_many(queue, s->new_images, s->new_labels);
        s->size[i] = tutti_queue_size(queue);
        s->close[i] = tutti_queue_close(queue, true);
        tutti_sym x = tutti_split_batch(tutti_dequeue_many(queue, s->batch));
        s->loss[i] =
            tutti_mean(tutti_nn_sparse_cross_entropy(tutti_sym_output(x, 1), scores(s, x)));
        s->step[i] = tutti_minimize(tutti_sgd(tutti_flag_number(s->job, "lr", 0.1)), s->loss[i]);
    }
    s->test_images = tutti_split_batch(tutti_placeholder(g, TUTTI_F32, TUTTI_ANY, 28, 28, 1));
    s->test_labels = tutti_split_batch(tutti_placeholder(g, TUTTI_I64, TUTTI_ANY));
    tutti_sym guess = tutti_argmax(scores(s, s->test_images), 1);
    s->accuracy = tutti_mean(tutti_cast(tutti_equal(guess, s->test_labels), TUTTI_F32));
}

static tutti_status evaluate(const stream *s, tutti_dataset *test, double *ret_accuracy)
{
    tutti_tensor *images, *labels, *value;
    TUTTI_TRY(tutti_next_batch(test, &images, &labels));
    TUTTI_TRY(tutti_run(s->session,
                        .feed = TUTTI_FEED({s->test_images, images}, {s->test_labels, labels}),
                        .fetch = TUTTI_FETCH({s->accuracy, &value})));
    *ret_accuracy = tutti_tensor_get(value, 0);
    tutti_tensor_release(value);
    return TUTTI_OK;
}

static tutti_status train(const stream *s, tutti_dataset *test, tutti_progress *progress)
{
    double accuracy;
    tutti_tensor *loss;
    while (tutti_progress_epoch(progress)) {
        while (tutti_progress_steps(progress) < s->all) {
            int turn = (int)(tutti_progress_steps(progress) % FILLERS);
            TUTTI_TRY(tutti_run(s->session, .fetch = TUTTI_FETCH({s->loss[turn], &loss}),
                                .target = s->step[turn]));
            tutti_progress_mean(progress, "loss", tutti_tensor_get(loss, 0));
            tutti_tensor_release(loss);
            if (!tutti_progress_step(progress, s->batch))
                break;
        }
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
    int64_t digits = s->images ? tutti_tensor_dims(s->images)[0] : DRAWN;
    s->batch = tutti_flag_int(s->job, "batch", 50);
    if (s->batch < 1 || s->batch > digits)
        return tutti_fail(TUTTI_INVALID, "a batch of %lld digits; there are %lld",
                          (long long)s->batch, (long long)digits);
    s->batches = digits / s->batch;
    tutti_strategy_own_rows(tutti_job_strategy(s->job), s->batch, &s->first, &s->rows);
    s->all = s->batches * tutti_flag_int(s->job, "epochs", 1);
    build(s);
    TUTTI_TRY(tutti_run(s->session, .target = tutti_initialize_variables(s->graph)));
    tutti_dataset *test = tutti_batch(tutti_mnist(s->job, "test"), 10000);
    tutti_progress *progress = tutti_progress_open(s->job, 1, s->batches, .session = s->session);
    tutti_status status = tutti_job_check(s->job);
    for (; status == TUTTI_OK && count < FILLERS; count += status == TUTTI_OK)
        status = start(&fillers[count], s, count, tutti_progress_steps(progress));
    tutti_job_fail(s->job, status == TUTTI_OK ? train(s, test, progress) : status);
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
    stream s = {.job = job};
    if (tutti_job_ok(job) && data)
        tutti_job_fail(job, tutti_mnist_load(data, "train", 0, &s.images, &s.labels));
    if (tutti_job_ok(job) && tutti_job_fail(job, tutti_graph_create(&s.graph)) == TUTTI_OK &&
        tutti_job_fail(job, tutti_session_open(&s.session, s.graph,
                                               .strategy = tutti_job_strategy(job))) == TUTTI_OK)
        tutti_job_fail(job, stream_and_train(&s));
    tutti_session_close(s.session);
    tutti_graph_destroy(s.graph);
    tutti_tensor_release(s.images);
    tutti_tensor_release(s.labels);
    return tutti_close(job);
}
