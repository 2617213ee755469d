/* 13_encoder.c: a transformer that reads both ways and puts in hidden words.
 *
 *     ./13_encoder                   drawn stories: at least 0.93 of the hidden words are right
 *     ./13_encoder --set width=64 --set blocks=4
 *
 * A story is four sentences: "two old cats sleep in barns". Numbers agree with animals and verbs,
 * each animal has its verb and its place, and one colour or age goes through the whole story, so a
 * gap is filled by what stands on both sides of it, near and far. A fifth of the words is hidden.
 * Loss and accuracy count those only: they have weight 1, the others 0. The program fails (exit 1)
 * when it ends below that. At the end it shows a story with gaps, and what was put in. */
#include <stdio.h>

#include <tutti/tutti.h>

enum { SENTENCES = 4, LENGTH = 6, STORY = SENTENCES * LENGTH };
enum { GAP, ONE, TWO, KINDS, IN = KINDS + 4, ANIMALS, WORDS = ANIMALS + 6 * 5 };

/* For each animal: one and several of it, what it does and they do, and where. */
static const char *const words[WORDS] = {
    "___",    "one",   "two",   "red",   "old",    "small", "happy", "in",     "cat",  "cats",
    "sleeps", "sleep", "barns", "dog",   "dogs",   "barks", "bark",  "yards",  "bird", "birds",
    "sings",  "sing",  "trees", "horse", "horses", "runs",  "run",   "fields", "frog", "frogs",
    "jumps",  "jump",  "ponds", "bear",  "bears",  "eats",  "eat",   "woods"};

static uint64_t next(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

/* A story: its words with gaps, all its words, and 1 where a gap is. */
static tutti_status tell(void *context, tutti_element *element)
{
    (void)context;
    tutti_tensor *parts[3];
    uint64_t state = element->random;
    int64_t kind = KINDS + (int64_t)(next(&state) % 4), story[STORY];
    for (int64_t *to = story; to < story + STORY; to += LENGTH) {
        int64_t two = next(&state) % 2, animal = ANIMALS + 5 * (int64_t)(next(&state) % 6);
        to[0] = ONE + two, to[1] = kind, to[2] = animal + two;
        to[3] = animal + 2 + two, to[4] = IN, to[5] = animal + 4;
    }
    for (int i = 0; i < 3; i++) {
        TUTTI_TRY(
            tutti_tensor_create(i < 2 ? TUTTI_I32 : TUTTI_F32, 1, (int64_t[]){STORY}, &parts[i]));
        TUTTI_TRY(tutti_element_set(element, i, parts[i]));
    }
    for (int i = 0; i < STORY; i++) {
        bool hidden = next(&state) % 5 == 0;
        tutti_tensor_set_int(parts[0], i, hidden ? GAP : story[i]);
        tutti_tensor_set_int(parts[1], i, story[i]);
        tutti_tensor_set(parts[2], i, hidden);
    }
    return TUTTI_OK;
}

/* A story with gaps, and with what the model puts there. */
static tutti_status show(tutti_model *m, tutti_dataset *stories)
{
    tutti_tensor *gaps, *scores;
    TUTTI_TRY(tutti_next_batch(stories, &gaps, NULL));
    TUTTI_TRY(tutti_predict_on_batch(m, 1, &gaps, 1, &scores));
    for (int fill = 0; fill < 2; fill++)
        for (int64_t i = 0; i < STORY; i++) {
            const float *row = (const float *)tutti_tensor_data(scores) + i * WORDS;
            int64_t word = tutti_tensor_get_int(gaps, i);
            if (word == GAP && fill)
                for (int64_t k = word = 1; k < WORDS; k++)
                    word = row[k] > row[word] ? k : word;
            printf("%s%s", words[word],
                   i == STORY - 1            ? ".\n"
                   : i % LENGTH < LENGTH - 1 ? " "
                                             : ", ");
        }
    tutti_tensor_release(scores);
    return TUTTI_OK;
}

int main(int argc, char **argv)
{
    tutti_job *job = tutti_open(&argc, &argv);
    int64_t batch = tutti_flag_int(job, "batch", 32), width = tutti_flag_int(job, "width", 32);
    tutti_dataset *stories = tutti_map(tutti_range_dataset(job, 0, 200 * batch, 1), tell);
    tutti_dataset *test =
        tutti_batch(tutti_map(tutti_range_dataset(job, 0, 512, 1), tell, .seed = 77), 64);

    tutti_model *m =
        tutti_sequential(job, tutti_embedding(WORDS, width), tutti_position_embedding(STORY));
    for (int64_t i = 0; i < tutti_flag_int(job, "blocks", 2); i++)
        tutti_model_add(m, tutti_transformer_block(4, .normalize_first = true));
    tutti_model_add(m, tutti_layer_norm());
    tutti_model_add(m, tutti_dense(WORDS));
    tutti_compile(m, .optimizer = tutti_adamw(.learning_rate = 4e-3, .global_clip_norm = 1),
                  .loss = tutti_sparse_cross_entropy(.from_logits = true,
                                                     .reduction = TUTTI_LOSS_WEIGHTED_MEAN),
                  .metrics = "accuracy");
    const tutti_history *history =
        tutti_fit(m, tutti_batch(stories, batch), .epochs = 3, .validation = test);

    if (tutti_job_ok(job) && !tutti_job_quiet(job))
        tutti_job_fail(job, show(m, test));
    tutti_expect(job, "accuracy of hidden words", tutti_history_get(history, "val_accuracy", -1),
                 0.93);
    return tutti_close(job);
}
