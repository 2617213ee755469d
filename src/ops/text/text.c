/* text.c: words of texts, and their numbers. */
#include "ops/text/text.h"

#include <stdlib.h>

/* ---- words ---- */

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool is_punctuation(char c)
{
    return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') ||
           (c >= '{' && c <= '~');
}

static void text_put(tutti_words *words, char c)
{
    if (is_punctuation(c) && !words->keep_punctuation)
        return;
    if (c >= 'A' && c <= 'Z' && !words->keep_case)
        c = (char)(c - 'A' + 'a');
    if (words->size == TUTTI_MAX_WORD)
        words->size = -1;
    if (words->size >= 0)
        words->word[words->size++] = c;
}

/* A character: a byte and the bytes 10xxxxxx behind it, of which UTF-8 allows three. */
static void take_character(tutti_words *words)
{
    text_put(words, *words->at++);
    for (int i = 0; i < 3 && words->at < words->end && ((unsigned char)*words->at >> 6) == 2; i++)
        text_put(words, *words->at++);
}

bool tutti__words_next(tutti_words *words)
{
    while (words->at < words->end) {
        words->size = 0;
        if (words->characters) {
            take_character(words);
        } else {
            while (words->at < words->end && is_space(*words->at))
                words->at++;
            while (words->at < words->end && !is_space(*words->at))
                text_put(words, *words->at++);
        }
        if (words->size != 0)
            return true;
    }
    return false;
}

/* ---- numbers ---- */

static int text_compare(tutti_string a, tutti_string b)
{
    int64_t shorter = a.size < b.size ? a.size : b.size;
    int order = shorter > 0 ? memcmp(a.data, b.data, (size_t)shorter) : 0;
    return order != 0 ? order : (a.size > b.size) - (a.size < b.size);
}

tutti_status tutti__words_check(const tutti_infer *node)
{
    const tutti_tensor *words = RULE_ATTR(node, "words").value.tensor;
    const int64_t *ids;
    int count = RULE_INTS(node, "ids", &ids);
    char text[TUTTI_TYPE_TEXT];
    if (node->inputs[0].dtype != TUTTI_STRING)
        return RULE_FAIL(node, TUTTI_INVALID, "takes strings, the input is %s",
                         tutti_type_text(&node->inputs[0], text));
    if (!words || tutti_tensor_dtype(words) != TUTTI_STRING || tutti_tensor_rank(words) != 1 ||
        !tutti_tensor_is_contiguous(words) || tutti_tensor_count(words) != count)
        return RULE_FAIL(node, TUTTI_INVALID, "needs a vector of words with %d numbers", count);
    const tutti_string *all = tutti_tensor_data(words);
    for (int i = 0; i < count; i++) {
        if (all[i].size > TUTTI_MAX_WORD)
            return RULE_FAIL(node, TUTTI_TOO_LARGE, "a word has %lld bytes, at most %d are legal",
                             (long long)all[i].size, TUTTI_MAX_WORD);
        if (i > 0 && text_compare(all[i - 1], all[i]) >= 0)
            return RULE_FAIL(node, TUTTI_INVALID, "the words are not different and in order");
    }
    return TUTTI_OK;
}

int64_t tutti__words_find(const tutti_kernel_call *call, const char *word, int64_t size)
{
    const tutti_tensor *words = RULE_ATTR(call, "words").value.tensor;
    const tutti_string *all = tutti_tensor_data(words), wanted = {word, size};
    const int64_t *ids;
    int low = 0, high = RULE_INTS(call, "ids", &ids);
    while (size >= 0 && low < high) {
        int middle = low + (high - low) / 2, order = text_compare(all[middle], wanted);
        if (order == 0)
            return ids[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return RULE_INT(call, "unknown");
}

typedef struct numbered {
    tutti_string word;
    int64_t id;
} numbered;

static int by_word(const void *a, const void *b)
{
    const numbered *x = a, *y = b;
    return text_compare(x->word, y->word);
}

static tutti_status text_split(const numbered *list, int64_t count, tutti_tensor **ret_words,
                               int64_t **ret_ids)
{
    tutti_tensor *words;
    int64_t *ids = calloc((size_t)count + 1, sizeof *ids);
    if (!ids)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a vocabulary");
    tutti_status status = tutti_tensor_create(TUTTI_STRING, 1, &count, &words);
    if (status != TUTTI_OK) {
        free(ids);
        return status;
    }
    for (int64_t i = 0; i < count && status == TUTTI_OK; i++) {
        ids[i] = list[i].id;
        status = tutti_tensor_set_string(words, i, list[i].word.data, list[i].word.size);
        if (i > 0 && text_compare(list[i - 1].word, list[i].word) == 0)
            status = tutti_fail(TUTTI_INVALID, "the vocabulary has '%.*s' twice",
                                (int)(list[i].word.size < 80 ? list[i].word.size : 80),
                                list[i].word.data);
    }
    if (status != TUTTI_OK) {
        tutti_tensor_release(words);
        free(ids);
        return status;
    }
    *ret_words = words;
    *ret_ids = ids;
    return TUTTI_OK;
}

tutti_status tutti__words_sort(tutti_tensor *vocabulary, int64_t first, tutti_tensor **ret_words,
                               int64_t **ret_ids)
{
    if (!vocabulary || tutti_tensor_dtype(vocabulary) != TUTTI_STRING ||
        tutti_tensor_rank(vocabulary) != 1 || tutti_tensor_count(vocabulary) > INT32_MAX)
        return tutti_fail(TUTTI_INVALID, "a vocabulary is a vector of strings");
    int64_t count = tutti_tensor_count(vocabulary);
    numbered *list = calloc((size_t)count + 1, sizeof *list);
    if (!list)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a vocabulary");
    for (int64_t i = 0; i < count; i++)
        list[i] = (numbered){tutti_tensor_get_string(vocabulary, i), first + i};
    qsort(list, (size_t)count, sizeof *list, by_word);
    tutti_status status = text_split(list, count, ret_words, ret_ids);
    free(list);
    return status;
}
