/* vocabulary.c: the words that layers of text know, given or found in data. */
#include "nn/layers/vocabulary.h"
#include "data/dataset.h"

#include <stdlib.h>

#include "ops/text/text.h"

/* ---- as text ---- */

/* One line as a word; returns where the next one begins. */
static const char *read_word(const char *line, tutti_text *ret)
{
    for (; *line && *line != '\n'; line++) {
        char c = *line;
        if (c == '\\' && (line[1] == 'n' || line[1] == '\\'))
            c = *++line == 'n' ? '\n' : '\\';
        tutti__text_bytes(ret, &c, 1);
    }
    return *line ? line + 1 : line;
}

static void write_word(tutti_text *text, const char *word)
{
    for (; *word; word++) {
        if (*word == '\n' || *word == '\\')
            tutti__text_bytes(text, "\\", 1);
        tutti__text_bytes(text, *word == '\n' ? "n" : word, 1);
    }
    tutti__text_bytes(text, "\n", 1);
}

static tutti_status vocabulary_fill(const char *text, tutti_tensor *tensor)
{
    tutti_text word = {0};
    tutti_status status = TUTTI_OK;
    for (int64_t at = 0; *text && status == TUTTI_OK;) {
        word.size = 0;
        text = read_word(text, &word);
        if (word.failed)
            status = tutti_fail(TUTTI_NO_MEMORY, "no memory for a vocabulary");
        else if (word.size > 0)
            status = tutti_tensor_set_string(tensor, at++, word.data, (int64_t)word.size);
    }
    tutti__text_free(&word);
    return status;
}

tutti_status tutti__vocabulary_parse(const char *text, tutti_tensor **ret)
{
    int64_t count = 0;
    tutti_tensor *tensor;
    for (const char *at = text; *at; at++)
        count += *at != '\n' && (at[1] == '\n' || at[1] == '\0');
    TUTTI_TRY(tutti_tensor_create(TUTTI_STRING, 1, &count, &tensor));
    tutti_status status = vocabulary_fill(text, tensor);
    if (status == TUTTI_OK)
        *ret = tensor;
    else
        tutti_tensor_release(tensor);
    return status;
}

/* ---- from data ---- */

/* What the two kinds want of a text. */
typedef struct wish {
    const char **vocabulary; /* the setting */
    int64_t most;            /* words; -1: all */
    bool whole;              /* a text is one word */
    tutti_words words;
} wish;

static tutti_status read_wish(const tutti_layer *layer, wish *ret)
{
    if (strcmp(tutti_layer_kind_name(layer), "string_lookup") == 0) {
        tutti_string_lookup_settings *s = layer->settings;
        *ret = (wish){.vocabulary = &s->vocabulary,
                      .most = s->max_tokens > 0 ? s->max_tokens - 1 : -1,
                      .whole = true};
        return TUTTI_OK;
    }
    if (strcmp(tutti_layer_kind_name(layer), "text_vectorization") == 0) {
        tutti_text_vectorization_settings *s = layer->settings;
        *ret = (wish){.vocabulary = &s->vocabulary,
                      .most = s->max_tokens > 0 ? s->max_tokens - 2 : -1,
                      .words = {.keep_case = s->keep_case,
                                .keep_punctuation = s->keep_punctuation,
                                .characters = s->characters}};
        return TUTTI_OK;
    }
    return tutti_fail(TUTTI_INVALID, "a layer of kind '%s' has no vocabulary",
                      tutti_layer_kind_name(layer));
}

static tutti_status count_word(tutti_map *counts, const char *word, int64_t size)
{
    char key[TUTTI_MAX_WORD + 1];
    if (size <= 0 || size > TUTTI_MAX_WORD || memchr(word, '\0', (size_t)size))
        return TUTTI_OK;
    memcpy(key, word, (size_t)size);
    key[size] = '\0';
    uintptr_t count = (uintptr_t)tutti__map_get(counts, key);
    return tutti__map_set(counts, key, (void *)(count + 1));
}

static tutti_status count_text(tutti_map *counts, wish *wanted, tutti_string text)
{
    if (wanted->whole)
        return count_word(counts, text.data, text.size);
    wanted->words.at = text.data;
    wanted->words.end = text.data + text.size;
    while (text.size > 0 && tutti__words_next(&wanted->words))
        TUTTI_TRY(count_word(counts, wanted->words.word, wanted->words.size));
    return TUTTI_OK;
}

static tutti_status count_tensor(tutti_map *counts, wish *wanted, const tutti_tensor *tensor)
{
    if (tutti_tensor_dtype(tensor) != TUTTI_STRING)
        return tutti_fail(TUTTI_INVALID, "tutti_adapt_vocabulary: the data is %s, not strings",
                          tutti_dtype_name(tutti_tensor_dtype(tensor)));
    for (int64_t i = 0; i < tutti_tensor_count(tensor); i++)
        TUTTI_TRY(count_text(counts, wanted, tutti_tensor_get_string(tensor, i)));
    return TUTTI_OK;
}

static tutti_status count_all(tutti_dataset *data, int component, tutti_map *counts, wish *wanted)
{
    tutti_iterator *iterator = tutti__iterate(data, 0);
    tutti_status status = iterator ? TUTTI_OK : tutti_job_check(tutti_dataset_job(data));
    while (iterator && status == TUTTI_OK) {
        tutti_element element;
        status = tutti_next_element(iterator, &element);
        if (status != TUTTI_OK || element.count == 0)
            break;
        status = component >= 0 && component < element.count
                     ? count_tensor(counts, wanted, element.tensors[component])
                     : tutti_fail(TUTTI_OUT_OF_RANGE, "the data has no component %d", component);
        tutti_element_release(&element);
    }
    tutti_iterator_close(iterator);
    return status;
}

static int by_count(const void *a, const void *b)
{
    const tutti_map_entry *x = a, *y = b;
    if (x->value != y->value)
        return (uintptr_t)x->value < (uintptr_t)y->value ? 1 : -1;
    return strcmp(x->key, y->key);
}

/* Sorts a copy of the entries, because the map finds them by their place. */
static tutti_status vocabulary_keep(tutti_layer *layer, const tutti_map *counts, const wish *wanted)
{
    size_t count = counts->count;
    tutti_text text = {0};
    tutti_map_entry *list = malloc((count + 1) * sizeof *list);
    if (!list)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a vocabulary");
    if (count > 0)
        memcpy(list, counts->entries, count * sizeof *list);
    qsort(list, count, sizeof *list, by_count);
    if (wanted->most >= 0 && count > (size_t)wanted->most)
        count = (size_t)wanted->most;
    for (size_t i = 0; i < count; i++)
        write_word(&text, list[i].key);
    char *kept =
        text.failed ? NULL : tutti__arena_string(&layer->arena, text.data ? text.data : "");
    if (kept && kept[0])
        kept[strlen(kept) - 1] = '\0'; /* the last line's end */
    free(list);
    tutti__text_free(&text);
    if (!kept)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a vocabulary");
    *wanted->vocabulary = kept;
    return TUTTI_OK;
}

tutti_status tutti_adapt_vocabulary(tutti_layer *layer, tutti_dataset *data, int component)
{
    tutti_map counts = {0};
    wish wanted;
    if (!data)
        return tutti_fail(TUTTI_INVALID, "tutti_adapt_vocabulary: there is no data");
    tutti_status status = tutti__layer_open(layer, NULL, "tutti_adapt_vocabulary");
    if (status == TUTTI_OK)
        status = read_wish(layer, &wanted);
    if (status == TUTTI_OK)
        status = count_all(data, component, &counts, &wanted);
    if (status == TUTTI_OK && counts.count == 0)
        status = tutti_fail(TUTTI_INVALID, "tutti_adapt_vocabulary: the data has no words");
    if (status == TUTTI_OK)
        status = vocabulary_keep(layer, &counts, &wanted);
    tutti__map_free(&counts);
    return tutti_job_fail(tutti_dataset_job(data), status);
}

const char *tutti_get_vocabulary(const tutti_layer *layer)
{
    wish found;
    return layer && layer->settings && read_wish(layer, &found) == TUTTI_OK ? *found.vocabulary
                                                                            : NULL;
}
