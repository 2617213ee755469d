/* ngram.c: texts as tokens, and tokens as counts of n-grams. */
#include "bridge/onnx.h"

#include <stdio.h>
#include <string.h>

static tutti_sym of_strings(tutti_onnx_import *m, const tutti_onnx_attr *attr)
{
    tutti_tensor *tensor;
    int64_t count = (int64_t)attr->strings.count;
    if (tutti_tensor_create(TUTTI_STRING, 1, &count, &tensor) != TUTTI_OK)
        return TUTTI_NO_SYM;
    for (int64_t i = 0; i < count; i++)
        if (tutti_tensor_set_string(tensor, i, attr->strings.items[i],
                                    (int64_t)strlen(attr->strings.items[i])) != TUTTI_OK)
            tutti__onnx_read_fail(m, TUTTI_NO_MEMORY, "no memory for the model");
    tutti_sym sym = tutti_constant(m->graph, tensor);
    tutti_tensor_release(tensor);
    return sym;
}

static tutti_sym of_ints(tutti_onnx_import *m, const char *name, tutti_dtype dtype)
{
    const int64_t *values;
    tutti_tensor *tensor;
    int64_t count = tutti__onnx_attr_ints(m, name, &values);
    if (count == 0 || tutti_tensor_create(dtype, 1, &count, &tensor) != TUTTI_OK) {
        tutti__onnx_read_fail(m, TUTTI_CORRUPT, "%s is missing", name);
        return TUTTI_NO_SYM;
    }
    for (int64_t i = 0; i < count; i++)
        tutti_tensor_set_int(tensor, i, values[i]);
    tutti_sym sym = tutti_constant(m->graph, tensor);
    tutti_tensor_release(tensor);
    return sym;
}

/* The weight of each column: those of the n-grams, 1 without. */
static tutti_sym weights_of(tutti_onnx_import *m, int64_t width)
{
    const tutti_onnx_attr *given = tutti__onnx_attr(m->node, "weights", ONNX_FLOATS);
    const int64_t *columns;
    tutti_tensor *tensor;
    int count = tutti__onnx_attr_ints(m, "ngram_indexes", &columns);
    if (!given)
        return TUTTI_NO_SYM;
    if ((int64_t)given->floats.count != count ||
        tutti_tensor_create(TUTTI_F32, 1, &width, &tensor) != TUTTI_OK) {
        tutti__onnx_read_fail(m, TUTTI_CORRUPT, "has not one weight for each n-gram");
        return TUTTI_NO_SYM;
    }
    for (int i = 0; i < count; i++)
        tutti_tensor_set(tensor, columns[i], (double)given->floats.items[i]);
    tutti_sym sym = tutti_constant(m->graph, tensor);
    tutti_tensor_release(tensor);
    return sym;
}

static int64_t width_of(const tutti_onnx_import *m)
{
    const int64_t *columns;
    int64_t width = 0;
    int count = tutti__onnx_attr_ints(m, "ngram_indexes", &columns);
    for (int i = 0; i < count; i++) {
        if (columns[i] < 0 || columns[i] >= 1 << 28)
            return 0;
        width = columns[i] + 1 > width ? columns[i] + 1 : width;
    }
    return width;
}

/* TF: counts; IDF: the weight where there is one at all; TFIDF: counts times weights. */
static void read_vectorizer(tutti_onnx_import *m)
{
    const tutti_onnx_attr *words = tutti__onnx_attr(m->node, "pool_strings", ONNX_STRINGS);
    const char *mode = tutti__onnx_attr_string(m, "mode", "TF");
    tutti_sym x = tutti__onnx_sym(m, 0);
    int64_t width = width_of(m);
    if (!x.node || width == 0) {
        tutti__onnx_read_fail(m, TUTTI_CORRUPT, "ngram_indexes is missing or not in range");
        return;
    }
    tutti_sym pool =
        words ? of_strings(m, words) : of_ints(m, "pool_int64s", tutti_sym_type(x).dtype);
    tutti_sym starts = of_ints(m, "ngram_counts", TUTTI_I64);
    tutti_sym columns = of_ints(m, "ngram_indexes", TUTTI_I64), weights = weights_of(m, width);
    if (m->status != TUTTI_OK)
        return;
    tutti_sym y = tutti_ngram_counts(
        x, pool, starts, columns, .least = tutti__onnx_attr_int(m, "min_gram_length", 1),
        .most = tutti__onnx_attr_int(m, "max_gram_length", 1),
        .skip = tutti__onnx_attr_int(m, "max_skip_count", 0), .width = width);
    if (strcmp(mode, "IDF") == 0)
        y = tutti_cast(tutti_greater(y, 0), TUTTI_F32);
    if (strcmp(mode, "TF") != 0 && weights.node)
        y = tutti_mul(y, weights);
    tutti__onnx_made(m, 0, y);
}

/* ---- com.microsoft.Tokenizer ---- */

/* RE2's \w, \d, \s, \b as POSIX's classes; false for what has no such form. */
static bool posix_pattern(const char *from, char *to, size_t size)
{
    static const struct {
        const char *own, *inside, *outside;
    } classes[] = {{"\\w", "[:alnum:]_", "[[:alnum:]_]"},
                   {"\\d", "[:digit:]", "[[:digit:]]"},
                   {"\\s", "[:space:]", "[[:space:]]"},
                   {"\\b", NULL, ""}};
    size_t at = 0;
    bool inside = false;
    while (*from && at + 16 < size) {
        size_t k = 0;
        while (k < TUTTI_COUNT(classes) && strncmp(from, classes[k].own, 2) != 0)
            k++;
        const char *text = k == TUTTI_COUNT(classes) ? NULL
                           : inside                  ? classes[k].inside
                                                     : classes[k].outside;
        if (k < TUTTI_COUNT(classes) && !text)
            return false;
        if (strncmp(from, "(?", 2) == 0 || (from[0] == '*' && from[1] == '?'))
            return false;
        if (text) {
            at += (size_t)snprintf(to + at, size - at, "%s", text);
            from += 2;
            continue;
        }
        inside = *from == '[' ? true : *from == ']' ? false : inside;
        to[at++] = *from++;
    }
    to[at] = 0;
    return *from == 0;
}

/* Tokens by a regular expression, by one separator, or one for each character: [.., most], filled
 * up with pad_value. */
static void read_tokenizer(tutti_onnx_import *m)
{
    char pattern[512];
    const char *given = tutti__onnx_attr_string(m, "tokenexp", "");
    const tutti_onnx_attr *cuts = tutti__onnx_attr(m->node, "separators", ONNX_STRINGS);
    bool single = cuts && cuts->strings.count == 1 && strlen(cuts->strings.items[0]) <= 1;
    if (given[0] == 0 && single) { /* an empty separator: characters of UTF-8 */
        const char *cut = cuts->strings.items[0];
        if (cut[0])
            snprintf(pattern, sizeof pattern, "[^%s]+", cut);
        else
            snprintf(pattern, sizeof pattern, "[\x01-\x7f]|[\xc0-\xff][\x80-\xbf]*");
    } else if (given[0] == 0 || !posix_pattern(given, pattern, sizeof pattern)) {
        tutti__onnx_read_fail(m, TUTTI_UNSUPPORTED,
                              "tokens by '%s', or by several separators, are not supported", given);
        return;
    }
    if (tutti__onnx_attr_int(m, "mark", 0)) {
        tutti__onnx_read_fail(m, TUTTI_UNSUPPORTED, "marks at the ends are not supported");
        return;
    }
    tutti__onnx_made(m, 0,
                     tutti_string_find(tutti__onnx_sym(m, 0), pattern,
                                       tutti__onnx_attr_string(m, "pad_value", "#"),
                                       tutti__onnx_attr_int(m, "mincharnum", 1)));
}

const tutti_onnx_op tutti_onnx_tfidf = {
    .type = "TfIdfVectorizer",
    .read = read_vectorizer,
};

const tutti_onnx_op tutti_onnx_tokenizer = {
    .type = "Tokenizer",
    .domain = "com.microsoft",
    .read = read_tokenizer,
    .note = "by an expression, one separator, or characters",
};
