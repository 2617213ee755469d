/* encode.c: text to tokens and back. A word's bytes are a list of tokens; of all neighbours that a
 * merge joins those of the lowest rank are joined, the first of them first, until there are none.
 * A heap keeps the pairs, so that a word of n bytes takes n log n steps. */
#include <stdlib.h>
#include <string.h>

#include "base/require.h"
#include "data/tokenizer/tokenizer.h"
#include "data/tokenizer/words.h"

/* A piece of the word; `next` and `before` are -1 at its ends. A piece that was joined to the one
 * before it has token -1. */
typedef struct piece {
    int32_t token, before, next;
} piece;

/* The pair of piece `at` and its next, while both are what they were. */
typedef struct candidate {
    int32_t rank, at;
    uint64_t pair;
    int32_t merged;
} candidate;

typedef struct encoder {
    const tutti_tokenizer *tokenizer;
    TUTTI_VEC(int32_t) ids;
    TUTTI_VEC(piece) pieces;
    TUTTI_VEC(candidate) heap;
    bool failed; /* out of memory */
} encoder;

static bool comes_before(const candidate *a, const candidate *b)
{
    return a->rank != b->rank ? a->rank < b->rank : a->at < b->at;
}

static void heap_push(encoder *e, candidate one)
{
    if (!TUTTI_VEC_PUSH(&e->heap, one)) {
        e->failed = true;
        return;
    }
    candidate *heap = e->heap.data;
    size_t at = e->heap.count - 1;
    for (; at > 0 && comes_before(&one, &heap[(at - 1) / 2]); at = (at - 1) / 2)
        heap[at] = heap[(at - 1) / 2];
    heap[at] = one;
}

static candidate heap_pop(encoder *e)
{
    candidate *heap = e->heap.data, first = heap[0], last = heap[--e->heap.count];
    size_t count = e->heap.count, at = 0;
    for (size_t child = 1; child < count; child = 2 * at + 1) {
        child += child + 1 < count && comes_before(&heap[child + 1], &heap[child]);
        if (!comes_before(&heap[child], &last))
            break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = last;
    return first;
}

static void consider(encoder *e, int32_t at)
{
    const piece *pieces = e->pieces.data;
    if (at < 0 || pieces[at].next < 0)
        return;
    int32_t left = pieces[at].token, right = pieces[pieces[at].next].token;
    const tutti_merge *merge = tutti__merge_find(e->tokenizer, left, right);
    if (merge)
        heap_push(e, (candidate){merge->rank, at, merge->pair, merge->merged});
}

static void merge_pieces(encoder *e)
{
    piece *pieces = e->pieces.data;
    while (e->heap.count > 0 && !e->failed) {
        candidate best = heap_pop(e);
        piece *left = &pieces[best.at];
        if (left->token != (int32_t)(best.pair >> 32) || left->next < 0 ||
            pieces[left->next].token != (int32_t)(best.pair & UINT32_MAX))
            continue; /* one of them was joined meanwhile */
        piece *right = &pieces[left->next];
        left->token = best.merged;
        left->next = right->next;
        right->token = -1;
        if (left->next >= 0)
            pieces[left->next].before = best.at;
        consider(e, left->before);
        consider(e, best.at);
    }
}

static tutti_status encode_word(encoder *e, const char *word, size_t size)
{
    if (size > INT32_MAX)
        return tutti_fail(TUTTI_TOO_LARGE, "a word of %zu bytes is too long to encode", size);
    e->pieces.count = e->heap.count = 0;
    for (size_t i = 0; i < size; i++) {
        piece one = {e->tokenizer->byte_tokens[(uint8_t)word[i]], (int32_t)i - 1,
                     i + 1 < size ? (int32_t)i + 1 : -1};
        if (one.token < 0)
            return tutti_fail(TUTTI_NOT_FOUND,
                              "the vocabulary has no token for byte 0x%02x, which the text holds",
                              (unsigned)(uint8_t)word[i]);
        if (!TUTTI_VEC_PUSH(&e->pieces, one))
            return tutti_fail(TUTTI_NO_MEMORY, "no memory to encode a text");
    }
    for (size_t i = 0; i + 1 < size; i++)
        consider(e, (int32_t)i);
    merge_pieces(e);
    for (int32_t i = 0; i >= 0 && !e->failed; i = e->pieces.data[i].next)
        e->failed = !TUTTI_VEC_PUSH(&e->ids, e->pieces.data[i].token);
    return e->failed ? tutti_fail(TUTTI_NO_MEMORY, "no memory to encode a text") : TUTTI_OK;
}

static tutti_status encode_plain(encoder *e, const char *text, size_t size)
{
    for (size_t at = 0, end; at < size; at = end) {
        end = e->tokenizer->mask ? tutti__word_end(text, size, at) : at + 1;
        TUTTI_TRY(encode_word(e, text + at, end - at));
    }
    return TUTTI_OK;
}

/* The longest special token that begins here, or -1. */
static int32_t special_at(const tutti_tokenizer *t, const char *text, size_t size)
{
    for (int64_t i = 0; i < t->special_count; i++) {
        const tutti_token *token = &t->tokens[t->specials[i]];
        if (token->size > 0 && token->size <= size &&
            memcmp(t->bytes.data + token->start, text, token->size) == 0)
            return t->specials[i];
    }
    return -1;
}

static tutti_status encode_special(encoder *e, const char *text, size_t size)
{
    size_t begin = 0;
    for (size_t at = 0; at < size;) {
        int32_t token = special_at(e->tokenizer, text + at, size - at);
        if (token < 0) {
            at++;
            continue;
        }
        TUTTI_TRY(encode_plain(e, text + begin, at - begin));
        if (!TUTTI_VEC_PUSH(&e->ids, token))
            return tutti_fail(TUTTI_NO_MEMORY, "no memory to encode a text");
        begin = at += e->tokenizer->tokens[token].size;
    }
    return encode_plain(e, text + begin, size - begin);
}

tutti_status tutti_encode_with(const tutti_tokenizer *tokenizer, const char *text, int64_t size,
                               const tutti_encode_options *options, tutti_tensor **ret_ids)
{
    TUTTI_REQUIRE(tokenizer);
    TUTTI_REQUIRE(text);
    TUTTI_REQUIRE(ret_ids);
    encoder e = {.tokenizer = tokenizer};
    size_t bytes = size < 0 ? strlen(text) : (size_t)size;
    tutti_status status = options && options->special ? encode_special(&e, text, bytes)
                                                      : encode_plain(&e, text, bytes);
    int64_t count = (int64_t)e.ids.count;
    if (status == TUTTI_OK)
        status = tutti_tensor_from(TUTTI_I32, 1, &count, e.ids.data, ret_ids);
    TUTTI_VEC_FREE(&e.ids);
    TUTTI_VEC_FREE(&e.pieces);
    TUTTI_VEC_FREE(&e.heap);
    return status;
}

tutti_status tutti_decode(const tutti_tokenizer *tokenizer, const tutti_tensor *ids,
                          char **ret_text, int64_t *ret_size)
{
    TUTTI_REQUIRE(tokenizer);
    TUTTI_REQUIRE(ids);
    TUTTI_REQUIRE(ret_text);
    tutti_text text = {0};
    for (int64_t i = 0; i < tutti_tensor_count(ids); i++) {
        int64_t id = tutti_tensor_get_int(ids, i);
        if (id < 0 || id >= tokenizer->size || !tokenizer->tokens[id].known) {
            tutti__text_free(&text);
            return tutti_fail(TUTTI_OUT_OF_RANGE,
                              "token %lld (number %lld of the text) is not in the vocabulary, "
                              "whose numbers go up to %lld",
                              (long long)id, (long long)i, (long long)tokenizer->size - 1);
        }
        const tutti_token *token = &tokenizer->tokens[id];
        tutti__text_bytes(&text, tokenizer->bytes.data + token->start, token->size);
    }
    tutti__text_bytes(&text, "", 0);
    if (text.failed || !text.data) {
        tutti__text_free(&text);
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a text");
    }
    *ret_text = text.data;
    if (ret_size)
        *ret_size = (int64_t)text.size;
    return TUTTI_OK;
}
