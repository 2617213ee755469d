/* 15_gpt.c: GPT-2, trained, fine-tuned or sampled from.
 *
 *     ./15_gpt                    a tiny one learns a song by heart, byte by byte: at least 0.85 of
 *                                 the next bytes are right; then it sings
 *     ./15_gpt --data FILE        learns a text: 124M weights, bytes as tokens
 *     ./15_gpt --data FILE --set vocab=DIR      with DIR/vocab.json and DIR/merges.txt
 *     ./15_gpt --data train.bin --set validation=val.bin     files of tokens, as nanoGPT's or
 * llm.c's
 *     ./15_gpt --set from=DIR --set train=0 --set prompt="The answer is"
 *                                 writes with the weights of a folder from Hugging Face:
 * config.json, model.safetensors, vocab.json, merges.txt
 *     ./15_gpt --set export=DIR   writes such a folder, without the vocabulary
 *
 * Sizes: --set preset=tiny, gpt2 (124M), gpt2-medium, gpt2-large or gpt2-xl, and each by itself:
 * layers, heads, width, context. Training: --batch, --lr, --epochs, --steps-per-epoch, --save,
 * --resume and --strategy, as always, and --set accumulate=8, warmup=200, decay=0.1, clip=1,
 * dropout=0.1, remat=1. Sampling: --set sample=300, temperature=0.8, top_k=40, top_p=0.95, cache=0.
 * The program fails (exit 1) when the tiny one ends below that. */
#define _POSIX_C_SOURCE 200809L /* open_memstream */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <tutti/tutti.h>

typedef struct sizes {
    const char *name;
    int64_t layers, heads, width, context, batch;
    double rate;
} sizes;

static const sizes presets[] = {
    {"tiny", 2, 4, 64, 64, 12, 3e-3},
    {"gpt2", 12, 12, 768, 1024, 4, 6e-4},
    {"gpt2-medium", 24, 16, 1024, 1024, 4, 3e-4},
    {"gpt2-large", 36, 20, 1280, 1024, 2, 2.5e-4},
    {"gpt2-xl", 48, 25, 1600, 1024, 1, 2e-4},
};

/* What weights are called in the files of Hugging Face. */
static const tutti_weight_name names[] = {
    {"wte/embeddings", "wte.weight"},
    {"wpe/embeddings", "wpe.weight"},
    {"ln_f/gamma", "ln_f.weight"},
    {"ln_f/beta", "ln_f.bias"},
    {"h_*/attention_norm/gamma", "h.*.ln_1.weight"},
    {"h_*/attention_norm/beta", "h.*.ln_1.bias"},
    {"h_*/attention/qkv/kernel", "h.*.attn.c_attn.weight"},
    {"h_*/attention/qkv/bias", "h.*.attn.c_attn.bias"},
    {"h_*/attention/attention_output/kernel", "h.*.attn.c_proj.weight"},
    {"h_*/attention/attention_output/bias", "h.*.attn.c_proj.bias"},
    {"h_*/mlp_norm/gamma", "h.*.ln_2.weight"},
    {"h_*/mlp_norm/beta", "h.*.ln_2.bias"},
    {"h_*/mlp/up/kernel", "h.*.mlp.c_fc.weight"},
    {"h_*/mlp/up/bias", "h.*.mlp.c_fc.bias"},
    {"h_*/mlp/down/kernel", "h.*.mlp.c_proj.weight"},
    {"h_*/mlp/down/bias", "h.*.mlp.c_proj.bias"},
};
enum { NAMES = sizeof names / sizeof names[0] };

/* ---- sizes ---- */

static tutti_status read_config(const char *folder, sizes *s, int64_t *vocabulary)
{
    char path[1024];
    struct {
        const char *key;
        int64_t *to;
    } list[] = {{"n_layer", &s->layers},
                {"n_head", &s->heads},
                {"n_embd", &s->width},
                {"n_positions", &s->context},
                {"vocab_size", vocabulary}};
    snprintf(path, sizeof path, "%s/config.json", folder);
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) {
        double value;
        TUTTI_TRY(tutti_json_number(path, list[i].key, &value));
        if (!(value >= 1 && value <= 1e9))
            return tutti_fail(TUTTI_INVALID, "%s: %s is %g", path, list[i].key, value);
        *list[i].to = (int64_t)value;
    }
    return TUTTI_OK;
}

static sizes choose_sizes(tutti_job *job, const char *from, int64_t *vocabulary)
{
    bool own = from || tutti_flag_text(job, "data", NULL);
    const char *name = tutti_flag_text(job, "preset", own ? "gpt2" : "tiny");
    sizes s = {0};
    for (size_t i = 0; i < sizeof presets / sizeof presets[0]; i++)
        if (strcmp(name, presets[i].name) == 0)
            s = presets[i];
    if (!s.name)
        tutti_job_fail(job,
                       tutti_fail(TUTTI_INVALID,
                                  "there is no preset '%s'; there are tiny, gpt2, gpt2-medium, "
                                  "gpt2-large and gpt2-xl",
                                  name));
    else if (from)
        tutti_job_fail(job, read_config(from, &s, vocabulary));
    s.layers = tutti_flag_int(job, "layers", s.layers);
    s.heads = tutti_flag_int(job, "heads", s.heads);
    s.width = tutti_flag_int(job, "width", s.width);
    s.context = tutti_flag_int(job, "context", s.context);
    s.batch = tutti_flag_int(job, "batch", s.batch);
    return s;
}

/* ---- data ---- */

/* The twelve days of Christmas: each verse has all presents of the days before. */
static char *write_song(int64_t *ret_size)
{
    static const char *const days[] = {"first", "second", "third",    "fourth",
                                       "fifth", "sixth",  "seventh",  "eighth",
                                       "ninth", "tenth",  "eleventh", "twelfth"};
    static const char *const presents[] = {"a partridge in a pear tree.\n\n",
                                           "two turtle doves and\n",
                                           "three French hens,\n",
                                           "four calling birds,\n",
                                           "five gold rings,\n",
                                           "six geese a-laying,\n",
                                           "seven swans a-swimming,\n",
                                           "eight maids a-milking,\n",
                                           "nine ladies dancing,\n",
                                           "ten lords a-leaping,\n",
                                           "eleven pipers piping,\n",
                                           "twelve drummers drumming,\n"};
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);
    for (int day = 0; to && day < 12; day++) {
        fprintf(to, "On the %s day of Christmas my true love sent to me\n", days[day]);
        for (int i = day; i >= 0; i--)
            fputs(presents[i], to);
    }
    if (to)
        fclose(to);
    *ret_size = (int64_t)size;
    return text;
}

static tutti_status read_text(const char *path, char **ret_text, int64_t *ret_size)
{
    struct stat about; /* a pipe would be waited for, a device has no end */
    FILE *from = stat(path, &about) == 0 && S_ISREG(about.st_mode) ? fopen(path, "rb") : NULL;
    char *text = from ? malloc((size_t)about.st_size + 1) : NULL;
    if (text)
        *ret_size = (int64_t)fread(text, 1, (size_t)about.st_size, from);
    bool failed = !text || ferror(from);
    if (from)
        fclose(from);
    if (failed) {
        free(text);
        return tutti_fail(TUTTI_IO, "%s cannot be read; --data takes a text, or tokens in x.bin",
                          path);
    }
    *ret_text = text;
    return TUTTI_OK;
}

/* Windows out of [first, last) of all tokens, as parts of 1. */
static tutti_dataset *part(tutti_job *job, tutti_tensor *ids, double first, double last,
                           int64_t context, int64_t vocabulary, bool random)
{
    tutti_tensor *some = NULL;
    double count = (double)tutti_tensor_count(ids);
    int64_t begin = (int64_t)(first * count), end = (int64_t)(last * count);
    tutti_job_fail(job, tutti_tensor_slice(ids, 0, begin, end - begin, 1, &some));
    tutti_dataset *data =
        tutti_token_windows(job, some, context, .vocabulary = vocabulary, .random = random);
    tutti_tensor_release(some);
    return data;
}

static tutti_status encode(tutti_job *job, const tutti_tokenizer *tokenizer, const char *path,
                           tutti_tensor **ret_ids)
{
    char *text = NULL;
    int64_t size = 0;
    if (path)
        TUTTI_TRY(read_text(path, &text, &size));
    else
        text = write_song(&size);
    if (!text)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for the text");
    tutti_status status = tutti_encode(tokenizer, text, size, ret_ids);
    free(text);
    if (status == TUTTI_OK && path && !tutti_job_quiet(job))
        printf("%s: %lld bytes, %lld tokens\n", path, (long long)size,
               (long long)tutti_tensor_count(*ret_ids));
    return status;
}

/* Tokens of x.bin, with those of another file to validate; or of a text, whose last tenth does
 * that. The song is learnt by heart: it validates itself. */
static void open_data(tutti_job *job, const tutti_tokenizer *tokenizer, const sizes *s,
                      int64_t vocabulary, tutti_dataset **train, tutti_dataset **test)
{
    const char *path = tutti_flag_text(job, "data", NULL);
    const char *other = tutti_flag_text(job, "validation", NULL);
    const char *dot = path ? strrchr(path, '.') : NULL;
    tutti_tensor *ids = NULL;
    if (!tutti_job_ok(job))
        return;
    if (dot && strcmp(dot, ".bin") == 0) {
        *train = tutti_token_file(job, path, s->context, .vocabulary = vocabulary, .random = true);
        *test = other ? tutti_token_file(job, other, s->context, .vocabulary = vocabulary) : NULL;
        return;
    }
    if (tutti_job_fail(job, encode(job, tokenizer, path, &ids)) != TUTTI_OK)
        return;
    *train = part(job, ids, 0, path ? 0.9 : 1, s->context, vocabulary, true);
    *test = part(job, ids, path ? 0.9 : 0, 1, s->context, vocabulary, false);
    tutti_tensor_release(ids);
}

static tutti_tokenizer *open_tokenizer(tutti_job *job, const char *folder)
{
    tutti_tokenizer *tokenizer = NULL;
    char vocab[1024], merges[1024];
    struct stat about;
    snprintf(vocab, sizeof vocab, "%s/vocab.json", folder ? folder : "");
    snprintf(merges, sizeof merges, "%s/merges.txt", folder ? folder : "");
    if (folder && !tutti_flag_text(job, "vocab", NULL) && stat(vocab, &about) != 0)
        folder = NULL; /* of weights that know bytes */
    if (tutti_job_ok(job))
        tutti_job_fail(job, folder ? tutti_tokenizer_load(vocab, merges, &tokenizer)
                                   : tutti_tokenizer_bytes(&tokenizer));
    return tokenizer;
}

/* ---- the model ---- */

/* Pre-norm blocks; the table of tokens scores them at the end, too. What is added to the residual
 * stream begins smaller in deeper models. */
static tutti_model *make_model(tutti_job *job, const sizes *s, int64_t vocabulary)
{
    char name[32], output[48];
    double dropout = tutti_flag_number(job, "dropout", 0);
    bool read = tutti_flag_text(job, "from", NULL) != NULL; /* weights come from a file */
    const char *normal = read ? "zeros" : "normal(0,0.02)";
    tutti_model *m = tutti_functional(job, .name = "gpt");
    tutti_layer *words =
        tutti_embedding(vocabulary, s->width, .name = "wte", .embeddings_initializer = normal);
    tutti_sym x = tutti_call(words, tutti_input(m, "tokens", TUTTI_I32, s->context));
    x = tutti_call(tutti_position_embedding(s->context, .name = "wpe", .initializer = normal), x);
    if (dropout > 0)
        x = tutti_call(tutti_dropout(dropout), x);
    snprintf(output, sizeof output, "normal(0,%g)", 0.02 / sqrt(2 * (double)s->layers));
    for (int64_t i = 0; i < s->layers; i++) {
        snprintf(name, sizeof name, "h_%lld", (long long)i);
        x = tutti_call(tutti_transformer_block(s->heads, .name = name, .use_causal_mask = true,
                                               .normalize_first = true,
                                               .activation = TUTTI_GELU_TANH, .dropout = dropout,
                                               .fused_qkv = true, .kernel_initializer = normal,
                                               .output_initializer = read ? normal : output,
                                               .remat = tutti_flag_on(job, "remat")),
                       x);
    }
    x = tutti_call(tutti_layer_norm(.name = "ln_f", .epsilon = 1e-5), x);
    tutti_output(m, "logits", tutti_call(words, x));
    (tutti_build)(m, 0, NULL);
    return m;
}

static void load(tutti_model *m, const char *folder)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    tutti_load_weights(m, path, .names = {NAMES, names}, .maybe_prefix = "transformer.",
                       .ignored = "h.*.attn.bias, h.*.attn.masked_bias, lm_head.weight");
}

/* The folder that transformers' GPT2LMHeadModel.from_pretrained reads. */
static tutti_status export(tutti_model *m, const char *folder, const sizes *s, int64_t vocabulary)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    TUTTI_TRY(tutti_save_weights(m, path, .names = {NAMES, names}, .prefix = "transformer."));
    snprintf(path, sizeof path, "%s/config.json", folder);
    FILE *to = fopen(path, "w");
    if (!to)
        return tutti_fail(TUTTI_IO, "%s cannot be written", path);
    fprintf(
        to,
        "{\n  \"architectures\": [\"GPT2LMHeadModel\"],\n  \"model_type\": \"gpt2\",\n"
        "  \"activation_function\": \"gelu_new\",\n  \"layer_norm_epsilon\": 1e-05,\n"
        "  \"n_layer\": %lld,\n  \"n_head\": %lld,\n  \"n_embd\": %lld,\n"
        "  \"n_positions\": %lld,\n  \"vocab_size\": %lld,\n  \"bos_token_id\": null,\n  \"eos_token_id\": null,\n  \"tie_word_embeddings\": true\n}\n",
        (long long)s->layers, (long long)s->heads, (long long)s->width, (long long)s->context,
        (long long)vocabulary);
    bool failed = ferror(to);
    return fclose(to) || failed ? tutti_fail(TUTTI_IO, "%s cannot be written", path) : TUTTI_OK;
}

/* ---- training, writing ---- */

static const tutti_history *train_model(tutti_model *m, tutti_dataset *train, tutti_dataset *test,
                                        const sizes *s)
{
    tutti_job *job = tutti_model_job(m);
    int accumulate = (int)tutti_flag_int(job, "accumulate", 1);
    int64_t epochs = tutti_flag_int(job, "epochs", 8);
    int64_t batches = tutti_cardinality(train) / s->batch;
    int64_t steps = tutti_flag_int(job, "steps-per-epoch", batches < 60 ? 60 : batches);
    double total = (double)(epochs * steps / (accumulate > 0 ? accumulate : 1));
    tutti_dataset *data = tutti_batch(tutti_repeat(train, 0), s->batch);
    tutti_dataset *check = test ? tutti_batch(test, s->batch) : NULL;
    /* clang-format off */
    tutti_compile(m,
        .optimizer = tutti_adamw(
            .schedule = tutti_cosine_decay(
                .learning_rate = tutti_flag_number(job, "lr", s->rate),
                .alpha = 0.1,
                .warmup_steps = tutti_flag_number(job, "warmup", total * 0.05),
                .decay_steps = total),
            .beta2 = 0.95,
            .weight_decay = tutti_flag_number(job, "decay", 0.1),
            .decay = "matrices",
            .global_clip_norm = tutti_flag_number(job, "clip", 1)),
        .loss = tutti_sparse_cross_entropy(.from_logits = true),
        .metrics = "accuracy,perplexity",
        .accumulate = accumulate);
    /* clang-format on */
    return tutti_fit(m, data, .epochs = (int)epochs, .steps_per_epoch = steps, .validation = check,
                     .validation_steps = tutti_flag_int(job, "validation_steps", 0));
}

static bool show(void *context, int64_t count, const int32_t *made)
{
    tutti_tensor *id;
    char *text;
    int64_t size;
    (void)count;
    if (tutti_tensor_from(TUTTI_I32, 0, NULL, made, &id) != TUTTI_OK)
        return false;
    tutti_status status = tutti_decode(context, id, &text, &size);
    tutti_tensor_release(id);
    if (status != TUTTI_OK) /* the model has more scores than the vocabulary tokens */
        return true;
    fwrite(text, 1, (size_t)size, stdout);
    fflush(stdout);
    free(text);
    return true;
}

static tutti_status write_text(tutti_model *m, tutti_tokenizer *tokenizer, const sizes *s)
{
    tutti_job *job = tutti_model_job(m);
    const char *text =
        tutti_flag_text(job, "prompt", tutti_flag_text(job, "data", NULL) ? "\n" : "On the ");
    int64_t end = tutti_tokenizer_find(tokenizer, "<|endoftext|>");
    tutti_tensor *prompt, *all;
    tutti_generate_report report;
    TUTTI_TRY(tutti_encode_with(tokenizer, text, -1,
                                TUTTI_OPTIONS(tutti_encode_options, .special = true), &prompt));
    int64_t room = s->context - tutti_tensor_count(prompt);
    int64_t count = tutti_flag_int(job, "sample", room < 200 ? room : 200);
    double temperature = tutti_flag_number(job, "temperature", 0.8);
    fputs(text, stdout);
    tutti_status status = tutti_generate(
        m, prompt, count, &all, .temperature = temperature > 0 ? temperature : TUTTI_ZERO,
        .top_k = tutti_flag_int(job, "top_k", 0), .top_p = tutti_flag_number(job, "top_p", 0),
        .no_cache = strcmp(tutti_flag_text(job, "cache", "1"), "0") == 0, .has_stop = end >= 0,
        .stop = end, .each = show, .context = tokenizer, .report = &report);
    tutti_tensor_release(prompt);
    TUTTI_TRY(status);
    tutti_tensor_release(all);
    printf("\n\n%lld tokens, %.0f tokens/s (the first after %.0f ms)\n", (long long)report.tokens,
           report.seconds > 0 ? (double)(report.tokens - 1) / report.seconds : 0,
           report.prompt_seconds * 1e3);
    return TUTTI_OK;
}

int main(int argc, char **argv)
{
    tutti_job *job = tutti_open(&argc, &argv);
    const char *from = tutti_flag_text(job, "from", NULL);
    const char *out = tutti_flag_text(job, "export", NULL);
    int64_t vocabulary = 0;
    sizes s = choose_sizes(job, from, &vocabulary);
    tutti_tokenizer *tokenizer = open_tokenizer(job, tutti_flag_text(job, "vocab", from));
    bool tiny = !from && !tutti_flag_text(job, "data", NULL);
    bool trains = strcmp(tutti_flag_text(job, "train", "1"), "0") != 0;
    if (vocabulary == 0)
        vocabulary = tutti_flag_int(job, "words", tutti_tokenizer_size(tokenizer));

    tutti_dataset *train = NULL, *test = NULL;
    if (trains)
        open_data(job, tokenizer, &s, vocabulary, &train, &test);
    tutti_model *m = tutti_job_ok(job) ? make_model(job, &s, vocabulary) : NULL;
    if (from && tutti_job_ok(job))
        load(m, from);
    double accuracy = 1;
    if (trains && tutti_job_ok(job))
        accuracy = tutti_history_get(train_model(m, train, test, &s), "val_accuracy", -1);
    if (tutti_job_ok(job) && !tutti_job_quiet(job))
        tutti_job_fail(job, write_text(m, tokenizer, &s));
    if (out && tutti_job_ok(job))
        tutti_job_fail(job, export(m, out, &s, vocabulary));
    if (tiny && trains)
        tutti_expect(job, "accuracy of the next byte", accuracy, 0.85);
    int code = tutti_close(job);
    tutti_tokenizer_destroy(tokenizer);
    return code;
}
