/* ops_text.h: operators from strings to numbers. */
#ifndef TUTTI_OPS_TEXT_H
#define TUTTI_OPS_TEXT_H

#include "tutti/op.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Word i of the vocabulary, a vector of different strings, has number first + i. */
typedef struct tutti_text_options {
    size_t struct_size;
    int64_t first;         /* of string_lookup 1, of text_vectorize 2 */
    int64_t unknown;       /* number of what is not in the vocabulary; 0 and 1 */
    bool keep_case;        /* else A to Z become a to z */
    bool keep_punctuation; /* else the punctuation of ASCII is left out */
    bool characters;       /* cut into characters of UTF-8 instead of at white space */
} tutti_text_options;

/* The number of each string: i64 of x's shape. */
TUTTI_API tutti_sym tutti_string_lookup_of(tutti_sym x, tutti_tensor *vocabulary,
                                           const tutti_text_options *options);
#define tutti_string_lookup_of(x, vocabulary, ...)                                                 \
    TUTTI_AT(                                                                                      \
        tutti_string_lookup_of((x), (vocabulary), TUTTI_OPTIONS(tutti_text_options, __VA_ARGS__)))
/* The numbers of the first `length` words of each text: i64 [x's shape…, length]; shorter texts are
 * filled up with 0. */
TUTTI_API tutti_sym tutti_text_vectorize(tutti_sym x, tutti_tensor *vocabulary, int64_t length,
                                         const tutti_text_options *options);
#define tutti_text_vectorize(x, vocabulary, length, ...)                                           \
    TUTTI_AT(tutti_text_vectorize((x), (vocabulary), (length),                                     \
                                  TUTTI_OPTIONS(tutti_text_options, __VA_ARGS__)))

#ifdef __cplusplus
}
#endif
#endif
