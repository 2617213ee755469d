/* unicode.h: what a character is, as \p{L}, \p{N} and \s of regular expressions say. */
#ifndef TUTTI_DATA_TOKENIZER_UNICODE_H
#define TUTTI_DATA_TOKENIZER_UNICODE_H

#include "base/status.h"

typedef enum tutti_character {
    TUTTI_CHARACTER_SIGN, /* none of the others */
    TUTTI_CHARACTER_LETTER,
    TUTTI_CHARACTER_NUMBER,
    TUTTI_CHARACTER_SPACE,
} tutti_character;

tutti_character tutti__character_kind(uint32_t code);

#endif
