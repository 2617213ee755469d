/* words.c: the words of GPT-2, the first alternative that matches:
 *     's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
 * A byte that is no UTF-8 is a sign. */
#include "data/tokenizer/words.h"

#include <string.h>

#include "data/tokenizer/unicode.h"
#include "io/json.h"

typedef struct character {
    tutti_character kind;
    size_t size; /* bytes; 0: the text has ended */
} character;

static character look(const char *text, size_t size, size_t at)
{
    if (at >= size)
        return (character){TUTTI_CHARACTER_SPACE, 0};
    const uint8_t *p = (const uint8_t *)text + at;
    size_t length = tutti__utf8_length(text + at, size - at);
    if (length == 0)
        return (character){TUTTI_CHARACTER_SIGN, 1};
    uint32_t code = length == 1 ? p[0] : p[0] & (0x7fu >> length);
    for (size_t i = 1; i < length; i++)
        code = code << 6 | (p[i] & 0x3f);
    return (character){tutti__character_kind(code), length};
}

static size_t contraction(const char *text, size_t size, size_t at)
{
    static const char *const endings[] = {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"};
    for (size_t i = 0; i < TUTTI_COUNT(endings); i++) {
        size_t length = strlen(endings[i]);
        if (length <= size - at && memcmp(text + at, endings[i], length) == 0)
            return at + length;
    }
    return 0;
}

/* White space up to a word leaves its last character to the word. */
static size_t space_end(const char *text, size_t size, size_t at)
{
    size_t end = at, last = at;
    for (character c = look(text, size, end); c.size && c.kind == TUTTI_CHARACTER_SPACE;
         c = look(text, size, end)) {
        last = end;
        end += c.size;
    }
    return end < size && last > at ? last : end;
}

size_t tutti__word_end(const char *text, size_t size, size_t at)
{
    size_t end = text[at] == '\'' ? contraction(text, size, at) : 0;
    if (end)
        return end;
    end = at + (text[at] == ' ');
    character first = look(text, size, end);
    if (first.kind == TUTTI_CHARACTER_SPACE)
        return space_end(text, size, at);
    for (character c = first; c.size && c.kind == first.kind; c = look(text, size, end))
        end += c.size;
    return end;
}
