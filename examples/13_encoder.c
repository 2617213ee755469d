/* 13_encoder.c: a transformer that reads both ways and fills in what is hidden.
 *
 *     ./13_encoder                   drawn sentences: at least 0.85 of the hidden letters are right
 *     ./13_encoder --data FILE       a text of yours, of 10,000 bytes or more: at least 0.30
 *     ./13_encoder --epochs 20 --set width=128 --set blocks=4
 *
 * Of each window of 32 letters a seventh is hidden. The loss and the accuracy count hidden letters
 * only: those have weight 1, the others 0. Words agree over some distance ("one small cat sleeps",
 * "two small cats sleep"), so both sides of a gap matter. The program fails (exit 1) when it ends
 * below that. At the end it shows gaps and what was put in. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tutti/tutti.h>

enum { BYTES = 128, WINDOW = 32, HIDDEN = '_' };

typedef struct text {
    char *data; /* NULL: sentences are drawn */
    int64_t first, last;
} text;

static uint64_t next(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

/* Sentences, cut at both ends of the window. */
static void draw_sentences(char *to, uint64_t *state)
{
    static const char *const colours[] = {"red", "small", "old", "happy", "green", "clever"};
    static const char *const animals[] = {"cat", "dog", "bird", "horse", "frog", "bear"};
    static const char *const verbs[] = {"sleep", "run", "sing", "eat", "jump", "swim"};
    static const char *const places[] = {"at home", "in the wood", "by the sea", "on a hill"};
    char line[4 * WINDOW] = "";
    for (size_t size = 0; size < 2 * WINDOW; size = strlen(line)) {
        bool one = next(state) % 2;
        snprintf(line + size, sizeof line - size, "%s %s %s%s %s%s %s.\n", one ? "one" : "two",
                 colours[next(state) % 6], animals[next(state) % 6], one ? "" : "s",
                 verbs[next(state) % 6], one ? "s" : "", places[next(state) % 4]);
    }
    memcpy(to, line + next(state) % WINDOW, WINDOW);
}

/* A window: its letters with gaps, all letters, and 1 where a gap is. */
static tutti_status cut(void *context, tutti_element *element)
{
    const text *t = context;
    uint64_t state = element->random;
    char letters[WINDOW];
    tutti_tensor *parts[3];
    if (t->data)
        memcpy(letters, t->data + t->first + (int64_t)next(&state) % (t->last - t->first - WINDOW),
               WINDOW);
    else
        draw_sentences(letters, &state);
    for (int which = 0; which < 3; which++) {
        TUTTI_TRY(tutti_tensor_create(which < 2 ? TUTTI_I32 : TUTTI_F32, 1, (int64_t[]){WINDOW},
                                      &parts[which]));
        TUTTI_TRY(tutti_element_set(element, which, parts[which]));
    }
    for (int i = 0; i < WINDOW; i++) {
        bool hidden = next(&state) % 7 == 0;
        tutti_tensor_set_int(parts[0], i, hidden ? HIDDEN : letters[i] & 127);
        tutti_tensor_set_int(parts[1], i, letters[i] & 127);
        tutti_tensor_set(parts[2], i, hidden);
    }
    return TUTTI_OK;
}

static tutti_status read_text(const char *path, text *t)
{
    const size_t room = (size_t)1 << 30;
    FILE *from = fopen(path, "rb");
    if (!from)
        return tutti_fail(TUTTI_IO, "%s cannot be read; --data takes a text file", path);
    t->data = malloc(room);
    t->last = t->data ? (int64_t)fread(t->data, 1, room, from) : 0;
    fclose(from);
    return t->last >= 10000 ? TUTTI_OK
                            : tutti_fail(TUTTI_INVALID, "%s has %lld bytes, 10,000 are needed",
                                         path, (long long)t->last);
}

/* Two windows with gaps, and what the model puts in. */
static tutti_status show(tutti_model *m, tutti_dataset *test)
{
    tutti_tensor *gaps, *scores;
    TUTTI_TRY(tutti_next_batch(test, &gaps, NULL));
    TUTTI_TRY(tutti_predict_on_batch(m, 1, &gaps, 1, &scores));
    for (int i = 0; i < 4 * WINDOW; i++) {
        int64_t at = i % WINDOW + i / WINDOW / 2 * WINDOW, letter = tutti_tensor_get_int(gaps, at);
        const float *row = (const float *)tutti_tensor_data(scores) + at * BYTES;
        for (int k = 0; letter == HIDDEN && i / WINDOW % 2 == 1 && k < BYTES; k++)
            letter = row[k] > row[letter] ? k : letter;
        printf("%c%s", letter == '\n' ? '/' : (char)letter, i % WINDOW == WINDOW - 1 ? "\n" : "");
    }
    tutti_tensor_release(scores);
    return TUTTI_OK;
}

int main(int argc, char **argv)
{
    tutti_job *job = tutti_open(&argc, &argv);
    tutti_no_other_flags(job, argc, argv);
    const char *path = tutti_flag_text(job, "data", NULL);
    text train = {0};
    if (tutti_job_ok(job) && path)
        tutti_job_fail(job, read_text(path, &train));
    text held = {train.data, train.last * 9 / 10, train.last};
    train.last = held.first;

    int64_t batch = tutti_flag_int(job, "batch", 32), width = tutti_flag_int(job, "width", 64);
    tutti_dataset *data =
        tutti_map(tutti_range_dataset(job, 0, 100 * batch, 1), cut, .context = &train);
    tutti_dataset *test =
        tutti_map(tutti_range_dataset(job, 0, 256, 1), cut, .context = &held, .seed = 99);
    test = tutti_batch(test, 64);
    tutti_model *m =
        tutti_sequential(job, tutti_embedding(BYTES, width), tutti_position_embedding(WINDOW));
    for (int64_t i = 0; i < tutti_flag_int(job, "blocks", 2); i++)
        tutti_model_add(m, tutti_transformer_block(4, .normalize_first = true));
    tutti_model_add(m, tutti_layer_norm());
    tutti_model_add(m, tutti_dense(BYTES));
    tutti_compile(m, .optimizer = tutti_adamw(.learning_rate = tutti_flag_number(job, "lr", 1e-3), .global_clip_norm = 1),
                  .loss = tutti_sparse_cross_entropy(.from_logits = true,
                                                     .reduction = TUTTI_LOSS_WEIGHTED_MEAN),
                  .metrics = "accuracy");
    const tutti_history *history =
        tutti_fit(m, tutti_batch(data, batch), .epochs = path ? 20 : 6, .validation = test);

    if (tutti_job_ok(job) && !tutti_job_quiet(job))
        tutti_job_fail(job, show(m, test));
    tutti_expect(job, "accuracy of hidden letters", tutti_history_get(history, "val_accuracy", -1),
                 path ? 0.30 : 0.85);
    int code = tutti_close(job);
    free(held.data);
    return code;
}
