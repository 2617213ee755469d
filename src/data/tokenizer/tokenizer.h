/* tokenizer.h: tokenizers from inside. Token i's bytes are bytes.data[start .. start + size). */
#ifndef TUTTI_DATA_TOKENIZER_TOKENIZER_H
#define TUTTI_DATA_TOKENIZER_TOKENIZER_H

#include "base/container.h"
#include "tutti/tokenizer.h"

typedef struct tutti_token {
    uint32_t start, size;
    bool known;   /* there is a token of this number */
    bool special; /* no merge makes it, and it is no single byte */
} tutti_token;

/* Two tokens that become one; the pair of the lowest rank is merged first. */
typedef struct tutti_merge {
    uint64_t pair; /* left << 32 | right */
    int32_t rank, merged;
} tutti_merge;

struct tutti_tokenizer {
    tutti_text bytes;
    tutti_token *tokens; /* by number */
    int64_t size;
    int32_t *sorted; /* numbers of known tokens, by their bytes */
    int64_t known;
    int32_t byte_tokens[256];
    tutti_merge *merges; /* open addressing by the pair; rank -1: empty */
    uint64_t mask;       /* slots - 1; 0: there are no merges */
    int32_t *specials;   /* the longest first */
    int64_t special_count;
};

/* The number of the token of these bytes, or -1. */
int64_t tutti__token_find(const tutti_tokenizer *tokenizer, const char *bytes, size_t size);
/* The merge of a pair, or NULL. */
const tutti_merge *tutti__merge_find(const tutti_tokenizer *tokenizer, int32_t left, int32_t right);

#endif
