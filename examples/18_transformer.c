/* 18_transformer.c: a small transformer that learns to sort digits, trained by a loop of its own.
 *
 *     ./18_transformer                   at least 0.98 of the digits stand in their right place
 *     ./18_transformer --save sort       saves the model, and where the training stands
 *     ./18_transformer --save sort --resume    goes on there, to the same bits
 *     ./18_transformer --precision f32   computes in f32 instead of bf16
 *
 * What a language model's training has: a learning rate that warms up and falls along a cosine,
 * weight decay on matrices only, clipping by the norm of all gradients, layers in bf16 with weights
 * in f32, and a parameter group: embeddings learn at half the rate. The program fails (exit 1) when
 * it ends below that. */
#include <stdlib.h>

#include <tutti/tutti.h>

enum { DIGITS = 8, LENGTH = 2 * DIGITS, SORT = 10, WORDS = 11 };

static int rising(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

/* x: 8 digits, "sort", the first 7 of them in order; y: all 8 in order. */
static tutti_status draw(void *context, tutti_element *element)
{
    (void)context;
    tutti_tensor *x, *y;
    int digits[DIGITS];
    uint64_t state = element->random;
    TUTTI_TRY(tutti_tensor_create(TUTTI_I32, 1, (int64_t[]){LENGTH}, &x));
    TUTTI_TRY(tutti_element_set(element, 0, x));
    TUTTI_TRY(tutti_tensor_create(TUTTI_I32, 1, (int64_t[]){DIGITS}, &y));
    TUTTI_TRY(tutti_element_set(element, 1, y));
    for (int i = 0; i < DIGITS; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        digits[i] = (int)((state >> 33) % 10);
        tutti_tensor_set_int(x, i, digits[i]);
    }
    qsort(digits, DIGITS, sizeof *digits, rising);
    tutti_tensor_set_int(x, DIGITS, SORT);
    for (int i = 0; i < DIGITS; i++) {
        if (i < DIGITS - 1)
            tutti_tensor_set_int(x, DIGITS + 1 + i, digits[i]);
        tutti_tensor_set_int(y, i, digits[i]);
    }
    return TUTTI_OK;
}

static tutti_model *make_model(tutti_job *job, int64_t width, int64_t blocks)
{
    tutti_model *m = tutti_functional(job, .name = "sorter",
                                      .precision = tutti_flag_text(job, "precision", "bf16"));
    tutti_sym x = tutti_input(m, "digits", TUTTI_I32, LENGTH);
    x = tutti_call(tutti_embedding(WORDS, width), x);
    x = tutti_call(tutti_position_embedding(LENGTH), x);
    for (int64_t i = 0; i < blocks; i++)
        x = tutti_call(tutti_transformer_block(4, .use_causal_mask = true, .normalize_first = true),
                       x);
    x = tutti_call(tutti_layer_norm(), x);
    tutti_output(m, "scores", tutti_call(tutti_dense(WORDS), x));
    (tutti_build)(m, 0, NULL);
    return m;
}

/* The scores of the sorted half: what stands at place i says what comes at i + 1. */
static tutti_sym answers(tutti_model *m, tutti_sym x, bool training)
{
    return tutti_slice_axis(tutti_apply(m, x, .training = training), 1, DIGITS, LENGTH);
}

static double evaluate(tutti_model *m, tutti_dataset *data)
{
    tutti_eager *e = tutti_model_eager(m);
    double right = 0, seen = 0;
    TUTTI_EACH_BATCH(data, bx, by) {
        TUTTI_STEP(e) {
            tutti_sym guess = tutti_argmax(answers(m, tutti_eager_feed(e, bx), false), -1);
            tutti_sym same = tutti_equal(tutti_cast(guess, TUTTI_I32), tutti_eager_feed(e, by));
            right += tutti_scalar_value(tutti_sum(tutti_cast(same, TUTTI_F32)));
            seen += (double)tutti_tensor_count(by);
        }
    }
    return right / seen;
}

int main(int argc, char **argv)
{
    tutti_job *job = tutti_open(&argc, &argv);
    int64_t batch = tutti_flag_int(job, "batch", 32), steps = 150;
    tutti_dataset *numbers = tutti_range_dataset(job, 0, steps * batch, 1);
    tutti_dataset *train = tutti_batch(tutti_map(numbers, draw), batch);
    tutti_dataset *test =
        tutti_batch(tutti_map(tutti_range_dataset(job, 0, 500, 1), draw, .seed = 77), 100);

    tutti_model *m =
        make_model(job, tutti_flag_int(job, "width", 32), tutti_flag_int(job, "blocks", 2));
    /* clang-format off */
    tutti_optimizer adamw = tutti_adamw(
        .schedule = tutti_cosine_decay(.learning_rate = tutti_flag_number(job, "lr", 5e-3),
                                       .warmup_steps = 40, .decay_steps = 3 * (double)steps),
        .weight_decay = 0.05,
        .decay = "matrices",
        .global_clip_norm = 1,
        .groups = TUTTI_PARAM_GROUPS({"*embeddings", .learning_rate_factor = 0.5}));
    /* clang-format on */
    tutti_loss cross_entropy = tutti_sparse_cross_entropy(.from_logits = true);
    tutti_eager *e = tutti_model_eager(m);

    tutti_progress *progress = tutti_progress_open(job, 3, tutti_cardinality(train), .model = m);
    while (tutti_progress_epoch(progress)) {
        TUTTI_EACH_BATCH(train, bx, by) {
            TUTTI_STEP(e) {
                tutti_sym x = tutti_eager_feed(e, bx), y = tutti_eager_feed(e, by), loss;
                TUTTI_TAPE(tape, e)
                    loss = tutti_compute_loss(&cross_entropy, y, answers(m, x, true));
                tutti_tape_minimize(&tape, adamw, loss, m);
                tutti_progress_mean(progress, "loss", tutti_scalar_value(loss));
            }
            if (!tutti_progress_step(progress, batch))
                break;
        }
        tutti_job_fail(job, tutti_eager_check(e));
        tutti_progress_set(progress, "lr", tutti_get_learning_rate(m));
        if (tutti_job_ok(job))
            tutti_progress_set(progress, "val_accuracy", evaluate(m, test));
    }
    tutti_expect(job, "digits in their place", tutti_progress_get(progress, "val_accuracy"), 0.98);
    return tutti_close(job);
}
