/* tokenizer.h: text to numbers of tokens, and back.
 *
 *     tutti_tokenizer *tokenizer;
 *     tutti_tokenizer_load("vocab.json", "merges.txt", &tokenizer);
 *     tutti_encode(tokenizer, "Hello world", -1, &ids);      i32 [2]: 15496, 995
 *     tutti_decode(tokenizer, ids, &text, &size);
 *
 * A tokenizer does not change once it is made: threads may share it. */
#ifndef TUTTI_TOKENIZER_H
#define TUTTI_TOKENIZER_H

#include "tutti/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tutti_tokenizer tutti_tokenizer;

/* GPT-2's byte-level byte-pair encoding, from the usual two files: `vocab`, JSON with the number of
 * each token, and `merges`, pairs of tokens in lines, the first merge first. The numbers are those
 * of tiktoken and of Hugging Face's tokenizers. Text is cut into words first, by
 *     's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
 * with the letters and numbers of Unicode 16; bytes that are no UTF-8 count as signs, and come back
 * as they were. Tokens that no merge makes, such as "<|endoftext|>", are special. Damaged files are
 * refused with the file, the line and what was expected. */
TUTTI_API tutti_status tutti_tokenizer_load(const char *vocab, const char *merges,
                                            tutti_tokenizer **ret_tokenizer);
/* Every byte is a token: 0 to 255. */
TUTTI_API tutti_status tutti_tokenizer_bytes(tutti_tokenizer **ret_tokenizer);
TUTTI_API void tutti_tokenizer_destroy(tutti_tokenizer *tokenizer); /* NULL is fine */

/* One more than the largest number of a token. */
TUTTI_API int64_t tutti_tokenizer_size(const tutti_tokenizer *tokenizer);
/* The number of the token whose text this is, "<|endoftext|>" or " the"; -1: there is none. */
TUTTI_API int64_t tutti_tokenizer_find(const tutti_tokenizer *tokenizer, const char *token);

typedef struct tutti_encode_options {
    size_t struct_size;
    bool special; /* special tokens in the text are these tokens; else they are text like other */
} tutti_encode_options;
/* The tokens of a text of `size` bytes (-1: up to its NUL) as i32 [tokens]; of an empty text
 * none. */
TUTTI_API tutti_status tutti_encode_with(const tutti_tokenizer *tokenizer, const char *text,
                                         int64_t size, const tutti_encode_options *options,
                                         tutti_tensor **ret_ids);
/* tutti_encode(tokenizer, text, size, &ids), or with options before the last:
 * tutti_encode_with(tokenizer, text, size, TUTTI_OPTIONS(tutti_encode_options, .special = true),
 * &ids) */
#define tutti_encode(tokenizer, text, size, ret_ids)                                               \
    tutti_encode_with((tokenizer), (text), (size), NULL, (ret_ids))
/* The text of tokens, integers of any shape, from malloc, with a NUL behind it; `ret_size` may be
 * NULL. It may begin or end inside a character. A number that is no token is OUT_OF_RANGE. */
TUTTI_API tutti_status tutti_decode(const tutti_tokenizer *tokenizer, const tutti_tensor *ids,
                                    char **ret_text, int64_t *ret_size);

#ifdef __cplusplus
}
#endif
#endif
