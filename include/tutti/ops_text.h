/* ops_text.h: operators on strings. Those that move elements (gather, concat, reshape, slice,
 * where, …) take strings as they are. No gradient flows through strings. */
#ifndef TUTTI_OPS_TEXT_H
#define TUTTI_OPS_TEXT_H

#include "tutti/ops_shape.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Word i of the vocabulary, a vector of different strings, has number first + i. */
typedef struct tutti_text_options {
    size_t struct_size;
    int64_t first;   /* of string_lookup 1, of text_vectorize 2 */
    int64_t unknown; /* number of what is not in the vocabulary; 0 and 1 */
    /* Of text_vectorize only; string_lookup takes strings as they are. */
    bool keep_case;        /* else A to Z become a to z */
    bool keep_punctuation; /* else the punctuation of ASCII is left out */
    bool characters;       /* cut into characters of UTF-8 instead of at white space */
} tutti_text_options;

/* The number of each string: i64 of x's shape. */
TUTTI_API tutti_sym tutti_nn_string_lookup_with(tutti_sym x, tutti_tensor *vocabulary,
                                                const tutti_text_options *options);
#define tutti_nn_string_lookup(x, vocabulary, ...)                                                 \
    TUTTI_AT(tutti_nn_string_lookup_with((x), (vocabulary),                                        \
                                         TUTTI_OPTIONS(tutti_text_options, __VA_ARGS__)))
/* The numbers of the first `length` words of each text: i64 [x's shape…, length]; shorter texts are
 * filled up with 0. */
TUTTI_API tutti_sym tutti_text_vectorize_with(tutti_sym x, tutti_tensor *vocabulary, int64_t length,
                                              const tutti_text_options *options);
#define tutti_text_vectorize(x, vocabulary, length, ...)                                           \
    TUTTI_AT(tutti_text_vectorize_with((x), (vocabulary), (length),                                \
                                       TUTTI_OPTIONS(tutti_text_options, __VA_ARGS__)))

/* Whether two strings are the same bytes; they broadcast. Bools. */
TUTTI_API tutti_sym tutti_string_equal(tutti_sym a, tutti_sym b);
#define tutti_string_equal(...) TUTTI_AT(tutti_string_equal(__VA_ARGS__))
/* The strings one behind the other, element by element, the separator (NULL: nothing) between them;
 * they broadcast; at most 16: tutti_string_join("-", a, b, c). */
TUTTI_API tutti_sym tutti_string_join(const char *separator, int count, const tutti_sym *xs);
#define tutti_string_join(separator, ...)                                                          \
    TUTTI_AT(tutti_string_join((separator), TUTTI_SYMS(__VA_ARGS__)))
/* Numbers in [0, buckets) as i64, the same on every machine and in every version: FNV-1a of 64
 * bits, its upper half xored to the lower, modulo buckets. */
TUTTI_API tutti_sym tutti_string_hash_bucket(tutti_sym x, int64_t buckets);
#define tutti_string_hash_bucket(...) TUTTI_AT(tutti_string_hash_bucket(__VA_ARGS__))
/* The numbers that the strings say in decimal, with a point; also inf and nan; white space around
 * them is skipped. Integers must fit. What is no number is an error when it runs. */
TUTTI_API tutti_sym tutti_string_to_number(tutti_sym x, tutti_dtype dtype);
#define tutti_string_to_number(...) TUTTI_AT(tutti_string_to_number(__VA_ARGS__))
/* The parts between separators, string [x's shape…, most], filled up with empty strings; output 1
 * (by tutti_sym_output) says how many each string has, i64 of x's shape. Separator NULL or "": runs
 * of white space, none at the ends. At most `limit` cuts, the last part is the rest; 0: all. How
 * many parts there are at most depends on data. */
TUTTI_API tutti_sym tutti_string_split(tutti_sym x, const char *separator, int64_t limit);
#define tutti_string_split(...) TUTTI_AT(tutti_string_split(__VA_ARGS__))
/* What an extended regular expression of POSIX finds in each string, one match behind the other:
 * string [x's shape…, most], filled up with `filler`. Matches of less than `least` bytes do not
 * count. How many there are at most depends on data. */
TUTTI_API tutti_sym tutti_string_find(tutti_sym x, const char *pattern, const char *filler,
                                      int64_t least);
#define tutti_string_find(...) TUTTI_AT(tutti_string_find(__VA_ARGS__))
/* How often n-grams of .least to .most tokens are in x [tokens] or [rows, tokens], strings or
 * integers: f32 [rows, .width]. pool holds the n-grams one after the other, those of one token
 * first; starts (i64) where those of 1, 2, … tokens begin in it; columns (i64) the column of each.
 * Up to .skip tokens may be left out between the tokens of an n-gram, always as many. */
typedef struct tutti_ngram_options {
    size_t struct_size;
    int64_t least, most, skip, width;
} tutti_ngram_options;
TUTTI_API tutti_sym tutti_ngram_counts_with(tutti_sym x, tutti_sym pool, tutti_sym starts,
                                            tutti_sym columns, const tutti_ngram_options *options);
#define tutti_ngram_counts(x, pool, starts, columns, ...)                                          \
    TUTTI_AT(tutti_ngram_counts_with((x), (pool), (starts), (columns),                             \
                                     TUTTI_OPTIONS(tutti_ngram_options, __VA_ARGS__)))
/* Every match (`once`: the first) of an extended regular expression of POSIX, the longest of those
 * that begin first, replaced. \\0 in the replacement is the match, \\1 to \\9 are its groups,
 * \\\\ is a backslash. Bytes count, in the C locale unless the program sets another. */
TUTTI_API tutti_sym tutti_string_regex_replace(tutti_sym x, const char *pattern,
                                               const char *replacement, bool once);
#define tutti_string_regex_replace(...) TUTTI_AT(tutti_string_regex_replace(__VA_ARGS__))
/* Whether such an expression matches the whole string. Bools. */
TUTTI_API tutti_sym tutti_string_regex_match(tutti_sym x, const char *pattern);
#define tutti_string_regex_match(...) TUTTI_AT(tutti_string_regex_match(__VA_ARGS__))
/* Letters of ASCII made small or capital; other bytes stay. */
TUTTI_API tutti_sym tutti_string_lower(tutti_sym x);
#define tutti_string_lower(...) TUTTI_AT(tutti_string_lower(__VA_ARGS__))
TUTTI_API tutti_sym tutti_string_upper(tutti_sym x);
#define tutti_string_upper(...) TUTTI_AT(tutti_string_upper(__VA_ARGS__))
/* Without white space of ASCII at both ends. */
TUTTI_API tutti_sym tutti_string_strip(tutti_sym x);
#define tutti_string_strip(...) TUTTI_AT(tutti_string_strip(__VA_ARGS__))
/* Bytes, or characters of UTF-8, as i64. */
TUTTI_API tutti_sym tutti_string_length(tutti_sym x, bool characters);
#define tutti_string_length(...) TUTTI_AT(tutti_string_length(__VA_ARGS__))
/* `length` bytes (or characters of UTF-8) from `start` on, which counts from the end when negative;
 * a start before the string is its beginning, and what lies behind its end is left out. */
TUTTI_API tutti_sym tutti_string_substring(tutti_sym x, int64_t start, int64_t length,
                                           bool characters);
#define tutti_string_substring(...) TUTTI_AT(tutti_string_substring(__VA_ARGS__))

#ifdef __cplusplus
}
#endif
#endif
