/* vocabulary.h: the words that string_lookup and text_vectorization know. In settings they are one
 * text, a word a line; in a word "\n" stands for a new line and "\\" for a backslash. */
#ifndef TUTTI_NN_LAYERS_VOCABULARY_H
#define TUTTI_NN_LAYERS_VOCABULARY_H

#include "nn/layers/common.h"

/* The words as a vector of strings. */
tutti_status tutti__vocabulary_parse(const char *text, tutti_tensor **ret);

#endif
