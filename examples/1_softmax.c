/* 1_softmax.c: softmax regression as a graph and a session, in the manner of TensorFlow 1.
 *
 *     ./1_softmax                 on drawn digits: at least 0.90 of the test digits are right
 *     ./1_softmax --data DIR      on MNIST's files in DIR: at least 0.91
 *     tutti run -n 2 ./1_softmax  batches are cut (tutti_split_batch), the losses stay the same
 *
 * The program fails (exit 1) when it ends below that. --save FILE writes W and b, and where the
 * training stands, from where --resume goes on. */
#include <tutti/tutti.h>

static tutti_status train(tutti_job *job, tutti_graph *g, tutti_session *session)
{
    int64_t batch = tutti_flag_int(job, "batch", 100);
    tutti_dataset *digits = tutti_batch(tutti_shuffle(tutti_mnist(job, "train"), 0), batch);
    tutti_dataset *test = tutti_batch(tutti_mnist(job, "test"), 10000);

    tutti_sym x = tutti_split_batch(tutti_placeholder(g, TUTTI_F32, TUTTI_ANY, 28, 28, 1)),
              y_ = tutti_split_batch(tutti_placeholder(g, TUTTI_I64, TUTTI_ANY));
    tutti_sym W = tutti_variable(g, tutti_zeros(784, 10), .name = "W");
    tutti_sym b = tutti_variable(g, tutti_zeros(10), .name = "b");
    tutti_dtype p = tutti_job_precision(job); /* --precision: of the product */
    tutti_sym rows = tutti_cast(tutti_reshape(x, -1, 784), p);
    tutti_sym y = tutti_add(tutti_cast(tutti_matmul(rows, tutti_cast(W, p)), TUTTI_F32), b);
    tutti_sym loss = tutti_mean(tutti_nn_sparse_cross_entropy(y_, y));
    tutti_sym step = tutti_minimize(tutti_sgd(tutti_flag_number(job, "lr", 0.5)), loss);
    tutti_sym right = tutti_equal(tutti_argmax(y, 1), y_);
    tutti_sym accuracy = tutti_mean(tutti_cast(right, TUTTI_F32));
    TUTTI_TRY(tutti_run(session, .target = tutti_initialize_variables(g)));

    tutti_tensor *bx, *by, *value;
    tutti_progress *progress = tutti_progress_open(job, 4, 500, .session = session);
    while (tutti_progress_epoch(progress)) {
        do {
            TUTTI_TRY(tutti_next_batch(digits, &bx, &by));
            TUTTI_TRY(tutti_run(session, .feed = TUTTI_FEED({x, bx}, {y_, by}),
                                .fetch = TUTTI_FETCH({loss, &value}), .target = step));
            tutti_progress_mean(progress, "loss", tutti_tensor_get(value, 0));
            tutti_tensor_release(value);
        } while (tutti_progress_step(progress, tutti_tensor_dims(bx)[0]));

        TUTTI_TRY(tutti_next_batch(test, &bx, &by));
        TUTTI_TRY(tutti_run(session, .feed = TUTTI_FEED({x, bx}, {y_, by}),
                            .fetch = TUTTI_FETCH({accuracy, &value})));
        tutti_progress_set(progress, "val_accuracy", tutti_tensor_get(value, 0));
        tutti_tensor_release(value);
    }
    tutti_expect(job, "test accuracy", tutti_progress_get(progress, "val_accuracy"),
                 tutti_flag_text(job, "data", NULL) ? 0.91 : 0.90);
    return TUTTI_OK;
}

int main(int argc, char **argv)
{
    tutti_job *job = tutti_open(&argc, &argv);
    tutti_no_other_flags(job, argc, argv);
    tutti_graph *g = NULL;
    tutti_session *session = NULL;
    if (tutti_job_ok(job) && tutti_job_fail(job, tutti_graph_create(&g)) == TUTTI_OK &&
        tutti_job_fail(job, tutti_session_open(&session, g, .strategy = tutti_job_strategy(job))) ==
            TUTTI_OK)
        tutti_job_fail(job, train(job, g, session));
    tutti_session_close(session);
    tutti_graph_destroy(g);
    return tutti_close(job);
}
