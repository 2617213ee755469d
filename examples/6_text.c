/* 6_text.c: a transformer that learns a text character by character, then writes.
 *
 *     ./6_text                   on a nursery rhyme: at least 0.90 of the next characters are right
 *     ./6_text --data FILE       on a text of yours, of 10,000 bytes or more: at least 0.40 (0.49
 * of Tiny Shakespeare)
 *     ./6_text --set context=128 --set width=256 --set blocks=6 --set sample=1000
 *     ./6_text --set remat=1     takes less memory and more time: blocks are computed again for the
 * gradients
 *
 * The program fails (exit 1) when it ends below that. */
#define _POSIX_C_SOURCE 200809L /* open_memstream */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <tutti/tutti.h>

#define BYTES 256 /* a character is a byte: every text has at most so many kinds */

typedef struct text {
    char *data;
    int64_t size, first, last; /* windows are cut out of [first, last) */
    int64_t context;
} text;

/* The house that Jack built: each verse is a new line and all the lines before it. */
static tutti_status write_rhyme(text *t)
{
    static const char *const lines[] = {"house that Jack built.\n\n",
                                        "malt\nThat lay in the ",
                                        "rat\nThat ate the ",
                                        "cat\nThat killed the ",
                                        "dog\nThat worried the ",
                                        "cow with the crumpled horn\nThat tossed the ",
                                        "maiden all forlorn\nThat milked the ",
                                        "man all tattered and torn\nThat kissed the ",
                                        "priest all shaven and shorn\nThat married the ",
                                        "cock that crowed in the morn\nThat waked the ",
                                        "farmer sowing his corn\nThat kept the "};
    FILE *to = open_memstream(&t->data, &(size_t){0});
    if (!to)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for the text");
    for (int verse = 0; verse < 11; verse++) {
        fprintf(to, "This is the ");
        for (int line = verse; line >= 0; line--)
            fputs(lines[line], to);
    }
    fclose(to);
    t->size = (int64_t)strlen(t->data);
    return TUTTI_OK;
}

static tutti_status read_text(const char *path, text *t)
{
    struct stat about; /* a pipe would be waited for, a device has no end */
    FILE *from = stat(path, &about) == 0 && S_ISREG(about.st_mode) ? fopen(path, "rb") : NULL;
    if (!from)
        return tutti_fail(TUTTI_IO, "%s cannot be read; --data takes a text file", path);
    size_t size = 0, room = (size_t)1 << 30;
    t->data = malloc(room);
    if (t->data)
        size = fread(t->data, 1, room, from);
    bool failed = ferror(from) != 0; /* a folder, for one */
    fclose(from);
    t->size = (int64_t)size;
    if (failed)
        return tutti_fail(TUTTI_IO, "%s cannot be read; --data takes a text file", path);
    if (t->size < 10000)
        return tutti_fail(TUTTI_INVALID, "%s has %zu bytes, at least 10,000 are needed", path,
                          size);
    return TUTTI_OK;
}

/* A window at a random place: its bytes, and for each the one that follows it. */
static tutti_status cut(void *context, tutti_element *element)
{
    const text *t = context;
    uint64_t room = (uint64_t)(t->last - t->first - t->context);
    const char *from = t->data + t->first + (int64_t)(element->random % room);
    for (int which = 0; which < 2; which++) {
        tutti_tensor *window;
        TUTTI_TRY(tutti_tensor_create(TUTTI_I32, 1, &t->context, &window));
        for (int64_t i = 0; i < t->context; i++)
            ((int32_t *)tutti_tensor_data(window))[i] = (unsigned char)from[i + which];
        TUTTI_TRY(tutti_element_set(element, which, window));
    }
    return TUTTI_OK;
}

/* Draws the next byte from the model's answer at place `at`; low temperatures dare less. */
static int32_t draw(const tutti_tensor *logits, int64_t at, double temperature, uint64_t *state)
{
    const float *row = (const float *)tutti_tensor_data(logits) + at * BYTES;
    double top = row[0], sum = 0;
    for (int i = 1; i < BYTES; i++)
        top = row[i] > top ? row[i] : top;
    for (int i = 0; i < BYTES; i++)
        sum += exp((row[i] - top) / temperature);
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    double rest = sum * (double)(*state >> 11) * 0x1p-53;
    int32_t byte = 0;
    while (byte < BYTES - 1 && (rest -= exp((row[byte] - top) / temperature)) > 0)
        byte++;
    return byte;
}

static tutti_status write_sample(tutti_model *m, const text *t, int64_t count)
{
    tutti_job *job = tutti_model_job(m);
    tutti_tensor *window, *logits;
    uint64_t state = tutti_job_seed(job);
    double temperature = tutti_flag_number(job, "temperature", 0.7);
    TUTTI_TRY(tutti_tensor_create(TUTTI_I32, 2, (int64_t[]){1, t->context}, &window));
    int32_t *bytes = tutti_tensor_data(window);
    bytes[0] = '\n';
    tutti_status status = TUTTI_OK;
    for (int64_t i = 0, at = 0; status == TUTTI_OK && i < count; i++) {
        status = tutti_predict_on_batch(m, 1, &window, 1, &logits);
        if (status != TUTTI_OK)
            break;
        int32_t byte = draw(logits, at, temperature, &state);
        tutti_tensor_release(logits);
        if (at + 1 == t->context)
            memmove(bytes, bytes + 1, (size_t)at * sizeof *bytes);
        else
            at++;
        bytes[at] = byte;
        putchar(byte);
        fflush(stdout);
    }
    putchar('\n');
    tutti_tensor_release(window);
    return status;
}

int main(int argc, char **argv)
{
    tutti_job *job = tutti_open(&argc, &argv);
    const char *path = tutti_flag_text(job, "data", NULL);
    text all = {.context = tutti_flag_int(job, "context", 64)};
    if (tutti_job_ok(job))
        tutti_job_fail(job, path ? read_text(path, &all) : write_rhyme(&all));
    text train = all, test = all;
    train.last = path ? all.size * 9 / 10 : all.size;
    test.first = path ? train.last : 0;
    test.last = all.size;
    if (tutti_job_ok(job) && test.last - test.first <= all.context)
        tutti_job_fail(job, tutti_fail(TUTTI_INVALID, "the text is too short for the context"));

    int64_t batch = tutti_flag_int(job, "batch", 16), width = tutti_flag_int(job, "width", 128);
    tutti_dataset *numbers = tutti_range_dataset(job, 0, 100 * batch, 1);
    tutti_dataset *data = tutti_batch(tutti_map(numbers, cut, .context = &train), batch);
    tutti_dataset *check =
        tutti_batch(tutti_map(tutti_range_dataset(job, 0, 320, 1), cut, .context = &test), 32);

    tutti_model *m =
        tutti_sequential(job, tutti_embedding(BYTES, width), tutti_position_embedding(all.context));
    for (int64_t i = 0; i < tutti_flag_int(job, "blocks", path ? 4 : 2); i++)
        tutti_model_add(m,
                        tutti_transformer_block(4, .use_causal_mask = true, .normalize_first = true,
                                                .remat = tutti_flag_on(job, "remat")));
    tutti_model_add(m, tutti_layer_norm());
    tutti_model_add(m, tutti_dense(BYTES));
    tutti_compile(m,
                  .optimizer = tutti_adamw(.learning_rate = 1e-3, .global_clip_norm = 1,
                                           .weight_decay = 0.01),
                  .loss = tutti_sparse_cross_entropy(.from_logits = true), .metrics = "accuracy");
    const tutti_history *history = tutti_fit(m, data, .epochs = path ? 20 : 5, .validation = check);

    if (tutti_job_ok(job) && !tutti_job_quiet(job))
        tutti_job_fail(job, write_sample(m, &all, tutti_flag_int(job, "sample", 300)));
    tutti_expect(job, "accuracy of the next character",
                 tutti_history_get(history, "val_accuracy", -1), path ? 0.40 : 0.90);
    int code = tutti_close(job);
    free(all.data);
    return code;
}
