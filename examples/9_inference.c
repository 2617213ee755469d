/* 9_inference.c: loads a saved model and classifies with it; trains nothing.
 *
 *     ./2_mnist --save mnist
 *     ./9_inference mnist              the test digits: at least 0.97 are right
 *     ./9_inference mnist --data DIR   those of MNIST
 *
 * The program fails (exit 1) when it ends below that. */
#include <stdio.h>

#include <tutti/tutti.h>

/* The class with the largest of ten numbers. */
static int64_t largest(const tutti_tensor *scores, int64_t row)
{
    int64_t best = 0;
    for (int64_t k = 1; k < 10; k++)
        if (tutti_tensor_get(scores, 10 * row + k) > tutti_tensor_get(scores, 10 * row + best))
            best = k;
    return best;
}

int main(int argc, char **argv)
{
    tutti_job *job = tutti_open(&argc, &argv);
    if (argc != 2 && tutti_job_ok(job)) {
        fprintf(stderr, "usage: %s FILE [--data DIR]\n", argv[0]);
        tutti_close(job);
        return 2;
    }
    tutti_model *m = tutti_load_model(job, argv[1]);
    tutti_dataset *test = tutti_batch(tutti_mnist(job, "test"), 500);

    double right = 0, seen = 0;
    TUTTI_EACH_BATCH(test, images, labels) {
        tutti_tensor *scores;
        if (tutti_job_fail(job, tutti_predict_on_batch(m, 1, &images, 1, &scores)) != TUTTI_OK)
            break;
        for (int64_t i = 0; i < tutti_tensor_dims(scores)[0]; i++, seen++) {
            int64_t guess = largest(scores, i), truth = tutti_tensor_get_int(labels, i);
            right += guess == truth;
            if (seen < 10 && !tutti_job_quiet(job))
                printf("image %.0f: a %lld%s\n", seen, (long long)guess,
                       guess == truth ? "" : ", which is wrong");
        }
        tutti_tensor_release(scores);
    }
    if (tutti_job_ok(job) && !tutti_flag_on(job, "quiet"))
        printf(tutti_flag_on(job, "json") ? "{\"accuracy\": %.4f}\n" : "accuracy %.4f\n",
               right / seen);
    tutti_expect(job, "test accuracy", right / seen, 0.97);
    return tutti_close(job);
}
