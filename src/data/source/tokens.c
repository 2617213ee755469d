/* tokens.c: windows of a long row of tokens, in memory or in a file of 16 or 32 bits a token. */
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "base/world.h"
#include "data/dataset.h"
#include "io/stream.h"

typedef struct settings {
    tutti_tensor *tensor; /* what they lie in; NULL: in a file */
    void *file;
    size_t file_size;
    bool mapped;
    const char *name; /* of the file, for messages */
    const uint8_t *data;
    int64_t count, length, vocabulary;
    int bytes; /* of a token, in a file */
    bool random;
    uint64_t seed;
} settings;

static int64_t token_at(const settings *s, int64_t i)
{
    const uint8_t *p = s->data + i * s->bytes;
    if (s->tensor)
        return tutti_tensor_get_int(s->tensor, i);
    return s->bytes == 2 ? (int64_t)(p[0] | p[1] << 8)
                         : (int64_t)((uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
                                     (uint32_t)p[3] << 24);
}

static tutti_status too_large(const settings *s, int64_t place, int64_t token)
{
    return tutti_fail(TUTTI_OUT_OF_RANGE,
                      "%s: token %lld, at place %lld, is none of the vocabulary's 0 to %lld; the "
                      "tokens were made with another vocabulary",
                      s->name, (long long)token, (long long)place, (long long)s->vocabulary - 1);
}

/* Where window i of an epoch begins. */
static int64_t window_at(const settings *s, uint64_t epoch, int64_t i)
{
    if (!s->random)
        return i * s->length;
    return (int64_t)tutti__random_below((tutti_random_key){s->seed, epoch}, (uint64_t)i,
                                        (uint64_t)(s->count - s->length));
}

static tutti_status tokens_gather(tutti_access *access, uint64_t epoch, int64_t count,
                                  const int64_t *indices, tutti_tensor *const *rows, int64_t first)
{
    const settings *s = access->dataset->settings;
    for (int64_t i = 0; i < count; i++) {
        int32_t *x = (int32_t *)tutti_tensor_data(rows[0]) + (first + i) * s->length;
        int32_t *y = (int32_t *)tutti_tensor_data(rows[1]) + (first + i) * s->length;
        int64_t place = window_at(s, epoch, indices[i]);
        for (int64_t k = 0; k <= s->length; k++) {
            int64_t token = token_at(s, place + k);
            if (token < 0 || token >= s->vocabulary)
                return too_large(s, place + k, token);
            if (k < s->length)
                x[k] = (int32_t)token;
            if (k > 0)
                y[k - 1] = (int32_t)token;
        }
    }
    return TUTTI_OK;
}

static void tokens_destroy(tutti_dataset *dataset)
{
    settings *s = dataset->settings;
    const tutti_world *world = tutti__world();
    tutti_tensor_release(s->tensor);
    if (s->mapped)
        world->unmap_file(world->self, s->file, s->file_size);
    else
        free(s->file);
}

static void tokens_reads(const tutti_dataset *dataset, tutti_intake *ret)
{
    const settings *s = dataset->settings;
    ret->files = s->tensor ? 0 : 1;
    ret->bytes = (int64_t)s->file_size;
}

extern const tutti_dataset_def tutti_dataset_def_tokens;

/* Takes over what `from` holds, also where it fails. */
static tutti_dataset *tokens_make(tutti_job *job, const settings *from, uint64_t hash)
{
    tutti_dataset *dataset = tutti__dataset_create(&tutti_dataset_def_tokens, job, 0, NULL);
    if (!dataset) {
        tokens_destroy(&(tutti_dataset){.settings = (void *)from});
        return NULL;
    }
    settings *s = dataset->settings;
    *s = *from;
    s->seed = tutti__dataset_seed(dataset, from->seed);
    dataset->info.reorders = from->random;
    dataset->info.components = 2;
    for (int i = 0; i < 2; i++)
        dataset->info.types[i] = tutti_type_make(TUTTI_I32, 1, &from->length);
    dataset->info.cardinality = (from->count - 1) / from->length;
    dataset->info.classes = from->vocabulary <= INT32_MAX ? from->vocabulary : 0;
    tutti__dataset_note(dataset, (uint64_t)from->length);
    tutti__dataset_note(dataset, (uint64_t)from->count);
    tutti__dataset_note(dataset, from->random ? s->seed : 0);
    tutti__dataset_note(dataset, hash);
    tutti__dataset_default_names(dataset);
    tutti__dataset_set_access(dataset, TUTTI_ACCESS_ROWS);
    return dataset;
}

/* What is wrong with the sizes, or NULL after the defaults were filled in. */
static tutti_status tokens_check(settings *s, const tutti_tokens_options *options)
{
    s->vocabulary =
        options && options->vocabulary > 0 ? options->vocabulary : (int64_t)INT32_MAX + 1;
    s->random = options && options->random;
    s->seed = options ? options->seed : 0;
    if (s->length < 1 || s->length > INT32_MAX)
        return tutti_fail(TUTTI_INVALID, "windows of %lld tokens; needs at least 1",
                          (long long)s->length);
    if (s->count <= s->length)
        return tutti_fail(
            TUTTI_INVALID, "%s has %lld tokens; a window of %lld and the token behind it need %lld",
            s->name, (long long)s->count, (long long)s->length, (long long)s->length + 1);
    return TUTTI_OK;
}

tutti_dataset *(tutti_token_windows_with)(tutti_job *job, tutti_tensor *tokens, int64_t length,
                                          const tutti_tokens_options *options)
{
    const tutti_dataset_def *def = &tutti_dataset_def_tokens;
    if (!job || !tutti__job_able(job))
        return NULL;
    if (!tokens || tutti_tensor_rank(tokens) != 1 ||
        !tutti_dtype_is_int(tutti_tensor_dtype(tokens)))
        return tutti__dataset_wrong(job, def, "needs a row of integers, i32 [tokens]");
    settings s = {.name = "the row", .count = tutti_tensor_count(tokens), .length = length};
    tutti_status status = tokens_check(&s, options);
    if (status != TUTTI_OK)
        return tutti__dataset_fail(job, def, status);
    s.tensor = tutti_tensor_retain(tokens);
    return tokens_make(job, &s, 0);
}

/* llm.c's files begin with 256 words of 32 bits: a magic number, a version, how many tokens. */
static tutti_status read_header(settings *s)
{
    enum { WORDS = 256, GPT2 = 20240520, LLAMA3 = 20240801 };
    const uint8_t *p = s->file;
    uint32_t magic = s->file_size >= 4 * WORDS ? tutti__get_u32(p) : 0;
    size_t skip = magic == GPT2 || magic == LLAMA3 ? 4 * WORDS : 0;
    if (skip)
        s->bytes = magic == GPT2 ? 2 : 4;
    s->data = p + skip;
    s->count = (int64_t)((s->file_size - skip) / (size_t)s->bytes);
    if (skip && (int64_t)tutti__get_u32(p + 8) != s->count)
        return tutti_fail(TUTTI_CORRUPT, "%s holds %lld tokens, its header says %u", s->name,
                          (long long)s->count, tutti__get_u32(p + 8));
    if ((s->file_size - skip) % (size_t)s->bytes)
        return tutti_fail(TUTTI_CORRUPT,
                          "%s has %zu bytes, which is no number of tokens of %d bytes", s->name,
                          s->file_size, s->bytes);
    return TUTTI_OK;
}

static tutti_status open_file(settings *s, const tutti_tokens_options *options)
{
    const tutti_world *world = tutti__world();
    size_t limit = (size_t)1 << 44;
    tutti_status status = world->map_file(world->self, s->name, limit, &s->file, &s->file_size);
    s->mapped = status == TUTTI_OK;
    if (status == TUTTI_UNSUPPORTED)
        status = world->read_file(world->self, s->name, limit, &s->file, &s->file_size);
    TUTTI_TRY(status);
    s->bytes = options && options->token_bytes ? (int)options->token_bytes : 2;
    if (s->bytes != 2 && s->bytes != 4)
        return tutti_fail(TUTTI_INVALID, "tokens of %d bytes; needs 2 or 4", s->bytes);
    TUTTI_TRY(read_header(s));
    return tokens_check(s, options);
}

tutti_dataset *(tutti_token_file_with)(tutti_job *job, const char *path, int64_t length,
                                       const tutti_tokens_options *options)
{
    const tutti_dataset_def *def = &tutti_dataset_def_tokens;
    if (!job || !tutti__job_able(job))
        return NULL;
    if (!path)
        return tutti__dataset_wrong(job, def, "the file's path is NULL");
    settings s = {.name = tutti__dataset_name(job, path), .length = length};
    tutti_status status = open_file(&s, options);
    if (status == TUTTI_OK)
        return tokens_make(job, &s, tutti__hash_string(1, path));
    tokens_destroy(&(tutti_dataset){.settings = &s});
    return tutti__dataset_fail(job, def, status);
}

const tutti_dataset_def tutti_dataset_def_tokens = {
    .name = "tokens",
    .doc = "windows of a long row of tokens, and the same one token later",
    .settings_size = sizeof(settings),
    .destroy = tokens_destroy,
    .gather = tokens_gather,
    .reads = tokens_reads,
};
