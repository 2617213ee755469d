/* text.h: words of texts, and their numbers. */
#ifndef TUTTI_OPS_TEXT_TEXT_H
#define TUTTI_OPS_TEXT_TEXT_H

#include "ops/shape/rule.h"

#define TUTTI_MAX_WORD 1024 /* bytes; longer words are unknown */

/* Goes through the words of one text. */
typedef struct tutti_words {
    const char *at, *end;
    bool keep_case, keep_punctuation, characters;
    /* the present word, as it is looked up */
    char word[TUTTI_MAX_WORD];
    int64_t size; /* -1: too long to be known */
} tutti_words;
bool tutti__words_next(tutti_words *words); /* false at the end */

/* Attributes "words", string [n] in order of their bytes, and "ids", the number of each. */
tutti_status tutti__words_check(const tutti_infer *node);
int64_t tutti__words_find(const tutti_kernel_call *call, const char *word, int64_t size);
/* Those attributes from a vocabulary in any order. ret_words is the caller's to release, ret_ids to
 * free. */
tutti_status tutti__words_sort(tutti_tensor *vocabulary, int64_t first, tutti_tensor **ret_words,
                               int64_t **ret_ids);

#endif
