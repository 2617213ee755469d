/* words.h: how GPT-2 cuts text into words before pairs are merged. */
#ifndef TUTTI_DATA_TOKENIZER_WORDS_H
#define TUTTI_DATA_TOKENIZER_WORDS_H

#include "base/status.h"

/* Where the word ends that begins at text[at], at < size; it has at least one byte. */
size_t tutti__word_end(const char *text, size_t size, size_t at);

#endif
