/* tokenizer.c: vocabularies: GPT-2's two files, and plain bytes. */
#include "data/tokenizer/tokenizer.h"

#include <stdlib.h>
#include <string.h>

#include "base/require.h"
#include "data/bytes.h"
#include "io/json.h"

enum { MOST_TOKENS = 1 << 24 };

/* ---- GPT-2's letters for bytes ---- */

/* The files write a byte as a character that can be seen: itself where it is one of these, else
 * 256, 257, … in the order of the bytes. */
static bool is_shown(int byte)
{
    return (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
}

/* Bytes by their characters, which are below 324; -1: none. */
static void letters_make(int16_t ret_bytes[324])
{
    int next = 256;
    memset(ret_bytes, -1, 324 * sizeof *ret_bytes);
    for (int byte = 0; byte < 256; byte++)
        ret_bytes[is_shown(byte) ? byte : next++] = (int16_t)byte;
}

/* What the files write as `text`; false where a character stands for no byte. */
static bool bytes_of(const int16_t letters[324], const char *text, size_t size, tutti_text *ret)
{
    for (size_t at = 0, length; at < size; at += length) {
        length = tutti__utf8_length(text + at, size - at);
        const uint8_t *p = (const uint8_t *)text + at;
        uint32_t code = length == 1   ? p[0]
                        : length == 2 ? (p[0] & 0x1fu) << 6 | (p[1] & 0x3f)
                                      : 999;
        if (length == 0 || code >= 324 || letters[code] < 0)
            return false;
        char byte = (char)letters[code];
        tutti__text_bytes(ret, &byte, 1);
    }
    return true;
}

/* ---- looking up ---- */

static int compare(const tutti_tokenizer *t, const char *bytes, size_t size,
                   const tutti_token *token)
{
    size_t least = size < token->size ? size : token->size;
    int order = least ? memcmp(bytes, t->bytes.data + token->start, least) : 0;
    return order ? order : (size > token->size) - (size < token->size);
}

int64_t tutti__token_find(const tutti_tokenizer *t, const char *bytes, size_t size)
{
    int64_t low = 0, high = t->known;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        int order = compare(t, bytes, size, &t->tokens[t->sorted[middle]]);
        if (order == 0)
            return t->sorted[middle];
        if (order > 0)
            low = middle + 1;
        else
            high = middle;
    }
    return -1;
}

const tutti_merge *tutti__merge_find(const tutti_tokenizer *t, int32_t left, int32_t right)
{
    uint64_t pair = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
    if (!t->mask)
        return NULL;
    for (uint64_t slot = tutti__hash_mix(1, pair) & t->mask;; slot = (slot + 1) & t->mask) {
        const tutti_merge *merge = &t->merges[slot];
        if (merge->rank < 0)
            return NULL;
        if (merge->pair == pair)
            return merge;
    }
}

static void merge_put(tutti_tokenizer *t, tutti_merge merge)
{
    uint64_t slot = tutti__hash_mix(1, merge.pair) & t->mask;
    while (t->merges[slot].rank >= 0 && t->merges[slot].pair != merge.pair)
        slot = (slot + 1) & t->mask;
    if (t->merges[slot].rank < 0)
        t->merges[slot] = merge; /* of equal pairs the first counts */
}

/* ---- reading the vocabulary ---- */

static tutti_status no_memory(void)
{
    return tutti_fail(TUTTI_NO_MEMORY, "no memory for a vocabulary");
}

static tutti_status vocab_check(const char *path, const tutti_json *root, int64_t *ret_size)
{
    int64_t size = 0;
    if (root->kind != TUTTI_JSON_OBJECT || root->count == 0)
        return tutti_fail(TUTTI_CORRUPT,
                          "%s holds %s; expected an object with the number of each token", path,
                          tutti__json_kind_text(root));
    for (const tutti_json *each = tutti__json_first(root); each; each = each->next) {
        if (each->kind != TUTTI_JSON_INT || each->as.integer < 0 || each->as.integer >= MOST_TOKENS)
            return tutti_fail(TUTTI_CORRUPT,
                              "%s, byte %u: token \"%.40s\" has %s; expected a number from 0 to %d",
                              path, each->offset, each->key,
                              each->kind == TUTTI_JSON_INT
                                  ? "a number that is too large or negative"
                                  : tutti__json_kind_text(each),
                              MOST_TOKENS - 1);
        size = each->as.integer >= size ? each->as.integer + 1 : size;
    }
    *ret_size = size;
    return TUTTI_OK;
}

static tutti_status vocab_take(tutti_tokenizer *t, const char *path, const tutti_json *root)
{
    int16_t letters[324];
    letters_make(letters);
    for (const tutti_json *each = tutti__json_first(root); each; each = each->next) {
        tutti_token *token = &t->tokens[each->as.integer];
        size_t start = t->bytes.size, size = strlen(each->key);
        if (token->known)
            return tutti_fail(TUTTI_CORRUPT,
                              "%s, byte %u: token \"%.40s\" has number %lld, which another one has",
                              path, each->offset, each->key, (long long)each->as.integer);
        if (!bytes_of(letters, each->key, size, &t->bytes)) {
            t->bytes.size = start; /* a token of its own, such as added ones: as it stands */
            tutti__text_bytes(&t->bytes, each->key, size);
        }
        *token = (tutti_token){(uint32_t)start, (uint32_t)(t->bytes.size - start), true, true};
    }
    return t->bytes.failed ? no_memory() : TUTTI_OK;
}

static void sift(const tutti_tokenizer *t, int64_t at, int64_t count)
{
    int32_t *sorted = t->sorted, one = sorted[at];
    for (int64_t child = 2 * at + 1; child < count; child = 2 * at + 1) {
        const tutti_token *a = &t->tokens[sorted[child]], *b = a;
        if (child + 1 < count) {
            b = &t->tokens[sorted[child + 1]];
            if (compare(t, t->bytes.data + b->start, b->size, a) > 0) {
                child++;
                a = b;
            }
        }
        const tutti_token *own = &t->tokens[one];
        if (compare(t, t->bytes.data + own->start, own->size, a) >= 0)
            break;
        sorted[at] = sorted[child];
        at = child;
    }
    sorted[at] = one;
}

/* Heap sort: qsort has no context. */
static void sort_tokens(tutti_tokenizer *t)
{
    for (int64_t at = t->known / 2; at-- > 0;)
        sift(t, at, t->known);
    for (int64_t count = t->known; count-- > 1;) {
        int32_t last = t->sorted[count];
        t->sorted[count] = t->sorted[0];
        t->sorted[0] = last;
        sift(t, 0, count);
    }
}

/* Makes room for `size` numbers; then, of what was put there, the lists that are looked up in. */
static tutti_status tokens_create(tutti_tokenizer *t, int64_t size)
{
    t->size = size;
    t->tokens = calloc((size_t)size, sizeof *t->tokens);
    t->sorted = malloc((size_t)size * sizeof *t->sorted);
    t->specials = malloc((size_t)size * sizeof *t->specials);
    return t->tokens && t->sorted && t->specials ? TUTTI_OK : no_memory();
}

static tutti_status tokens_index(tutti_tokenizer *t, const char *path)
{
    for (int64_t i = 0; i < t->size; i++)
        if (t->tokens[i].known)
            t->sorted[t->known++] = (int32_t)i;
    sort_tokens(t);
    for (int64_t i = 1; i < t->known; i++) {
        const tutti_token *token = &t->tokens[t->sorted[i]];
        if (compare(t, t->bytes.data + token->start, token->size, &t->tokens[t->sorted[i - 1]]) ==
            0)
            return tutti_fail(TUTTI_CORRUPT, "%s: tokens %d and %d are the same bytes", path,
                              t->sorted[i - 1], t->sorted[i]);
    }
    for (int byte = 0; byte < 256; byte++) {
        char letter = (char)byte;
        int64_t token = tutti__token_find(t, &letter, 1);
        t->byte_tokens[byte] = (int32_t)token;
        if (token >= 0)
            t->tokens[token].special = false;
    }
    return TUTTI_OK;
}

static tutti_status vocab_parse(tutti_tokenizer *t, const char *path, const char *text, size_t size)
{
    tutti_arena arena = {0};
    const tutti_json *root;
    int64_t tokens = 0;
    tutti_status status = tutti__json_parse(path, text, size, NULL, &arena, &root);
    if (status == TUTTI_OK)
        status = vocab_check(path, root, &tokens);
    if (status == TUTTI_OK)
        status = tokens_create(t, tokens);
    if (status == TUTTI_OK)
        status = vocab_take(t, path, root);
    tutti__arena_free(&arena);
    TUTTI_TRY(status);
    return tokens_index(t, path);
}

/* ---- reading the merges ---- */

typedef struct merging {
    tutti_tokenizer *tokenizer;
    const char *path;
    int64_t line; /* from 1 */
    int32_t rank;
    int16_t letters[324];
    tutti_text bytes; /* of the two tokens, one behind the other */
} merging;

static tutti_status merge_token(merging *m, const char *text, size_t size, int64_t *ret_token)
{
    size_t start = m->bytes.size;
    bool written = size > 0 && bytes_of(m->letters, text, size, &m->bytes);
    int64_t token =
        written ? tutti__token_find(m->tokenizer, m->bytes.data + start, m->bytes.size - start)
                : -1;
    if (token < 0)
        return tutti_fail(TUTTI_CORRUPT,
                          "%s, line %lld: '%.*s' is no token of the vocabulary; the two files must "
                          "belong together",
                          m->path, (long long)m->line, (int)(size < 40 ? size : 40), text);
    *ret_token = token;
    return TUTTI_OK;
}

static tutti_status merge_line(merging *m, const char *line, size_t size)
{
    tutti_tokenizer *t = m->tokenizer;
    const char *blank = memchr(line, ' ', size);
    if (size == 0 || (m->line == 1 && size >= 8 && memcmp(line, "#version", 8) == 0))
        return TUTTI_OK;
    size_t left_size = blank ? (size_t)(blank - line) : 0;
    if (!blank || memchr(blank + 1, ' ', size - left_size - 1))
        return tutti_fail(TUTTI_CORRUPT,
                          "%s, line %lld: expected two tokens with a blank between them, found "
                          "'%.*s'",
                          m->path, (long long)m->line, (int)(size < 40 ? size : 40), line);
    int64_t left, right;
    m->bytes.size = 0;
    TUTTI_TRY(merge_token(m, line, left_size, &left));
    TUTTI_TRY(merge_token(m, blank + 1, size - left_size - 1, &right));
    int64_t merged = tutti__token_find(t, m->bytes.data, m->bytes.size);
    if (merged < 0)
        return tutti_fail(TUTTI_CORRUPT,
                          "%s, line %lld: what '%.*s' make is no token of the vocabulary; the two "
                          "files must belong together",
                          m->path, (long long)m->line, (int)(size < 40 ? size : 40), line);
    t->tokens[merged].special = false;
    merge_put(t, (tutti_merge){(uint64_t)left << 32 | (uint64_t)right, m->rank++, (int32_t)merged});
    return TUTTI_OK;
}

static tutti_status merges_parse(tutti_tokenizer *t, const char *path, const char *text,
                                 size_t size)
{
    merging m = {.tokenizer = t, .path = path};
    uint64_t lines = 1, slots = 16;
    letters_make(m.letters);
    for (size_t i = 0; i < size; i++)
        lines += text[i] == '\n';
    if (lines > MOST_TOKENS)
        return tutti_fail(TUTTI_TOO_LARGE, "%s has %llu lines; at most %d merges are read", path,
                          (unsigned long long)lines, MOST_TOKENS);
    while (slots < 2 * lines)
        slots *= 2;
    t->merges = malloc(slots * sizeof *t->merges);
    if (!t->merges)
        return no_memory();
    for (uint64_t i = 0; i < slots; i++)
        t->merges[i].rank = -1;
    t->mask = slots - 1;
    tutti_status status = TUTTI_OK;
    for (size_t at = 0; status == TUTTI_OK && at < size;) {
        const char *end = memchr(text + at, '\n', size - at);
        size_t length = end ? (size_t)(end - text) - at : size - at;
        m.line++;
        status = merge_line(&m, text + at, length - (length > 0 && text[at + length - 1] == '\r'));
        at += length + 1;
    }
    tutti__text_free(&m.bytes);
    return status;
}

/* Special tokens, the longest first, so that the longest one in a text is taken. */
static void note_specials(tutti_tokenizer *t)
{
    for (int64_t i = 0; i < t->known; i++) {
        int32_t one = t->sorted[i];
        int64_t at = t->special_count;
        if (!t->tokens[one].special || t->special_count >= 4096)
            continue;
        for (; at > 0 && t->tokens[t->specials[at - 1]].size < t->tokens[one].size; at--)
            t->specials[at] = t->specials[at - 1];
        t->specials[at] = one;
        t->special_count++;
    }
}

/* ---- making one ---- */

static tutti_status load(tutti_tokenizer *t, const char *vocab, const char *merges)
{
    void *text;
    size_t size;
    TUTTI_TRY(tutti__bytes_read(vocab, &text, &size));
    tutti_status status = vocab_parse(t, vocab, text, size);
    free(text);
    TUTTI_TRY(status);
    TUTTI_TRY(tutti__bytes_read(merges, &text, &size));
    status = merges_parse(t, merges, text, size);
    free(text);
    note_specials(t);
    return status;
}

tutti_status tutti_tokenizer_load(const char *vocab, const char *merges,
                                  tutti_tokenizer **ret_tokenizer)
{
    TUTTI_REQUIRE(vocab);
    TUTTI_REQUIRE(merges);
    TUTTI_REQUIRE(ret_tokenizer);
    tutti_tokenizer *t = calloc(1, sizeof *t);
    tutti_status status = t ? load(t, vocab, merges) : no_memory();
    if (status == TUTTI_OK)
        *ret_tokenizer = t;
    else
        tutti_tokenizer_destroy(t);
    return status;
}

static tutti_status bytes_make(tutti_tokenizer *t)
{
    TUTTI_TRY(tokens_create(t, 256));
    for (int byte = 0; byte < 256; byte++) {
        char letter = (char)byte;
        tutti__text_bytes(&t->bytes, &letter, 1);
        t->tokens[byte] = (tutti_token){(uint32_t)byte, 1, true, true};
    }
    return t->bytes.failed ? no_memory() : tokens_index(t, "bytes");
}

tutti_status tutti_tokenizer_bytes(tutti_tokenizer **ret_tokenizer)
{
    TUTTI_REQUIRE(ret_tokenizer);
    tutti_tokenizer *t = calloc(1, sizeof *t);
    tutti_status status = t ? bytes_make(t) : no_memory();
    if (status == TUTTI_OK)
        *ret_tokenizer = t;
    else
        tutti_tokenizer_destroy(t);
    return status;
}

void tutti_tokenizer_destroy(tutti_tokenizer *t)
{
    if (!t)
        return;
    tutti__text_free(&t->bytes);
    free(t->tokens);
    free(t->sorted);
    free(t->merges);
    free(t->specials);
    free(t);
}

int64_t tutti_tokenizer_size(const tutti_tokenizer *tokenizer)
{
    return tokenizer ? tokenizer->size : 0;
}

int64_t tutti_tokenizer_find(const tutti_tokenizer *tokenizer, const char *token)
{
    return tokenizer && token ? tutti__token_find(tokenizer, token, strlen(token)) : -1;
}
