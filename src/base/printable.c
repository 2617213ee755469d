/* printable.c: control characters are the bytes below 0x20, 0x7f, and U+0080 to U+009F. */
#include "base/printable.h"

#include <stdio.h>
#include <string.h>

/* Bytes of a control character, or 0. */
static size_t control_size(const char *text, const char *kept)
{
    unsigned char first = (unsigned char)text[0], second = first ? (unsigned char)text[1] : 0;
    if (first == 0xc2 && second >= 0x80 && second <= 0x9f)
        return 2;
    return (first < 0x20 || first == 0x7f) && first && !strchr(kept, first) ? 1 : 0;
}

bool tutti__is_printable(const char *text, const char *kept)
{
    while (*text && control_size(text, kept) == 0)
        text++;
    return *text == 0;
}

size_t tutti__printable(const char *text, const char *kept, char *ret, size_t size)
{
    size_t needed = 0, used = 0;
    while (*text) {
        char piece[8] = {text[0]};
        size_t control = control_size(text, kept), length = 1;
        if (control == 1)
            length = (size_t)snprintf(piece, sizeof piece, "\\x%02x", (unsigned char)text[0]);
        else if (control == 2)
            length = (size_t)snprintf(piece, sizeof piece, "\\u00%02x", (unsigned char)text[1]);
        if (used == needed && used + length < size) {
            memcpy(ret + used, piece, length);
            used += length;
        }
        needed += length;
        text += control == 2 ? 2 : 1;
    }
    if (size > 0)
        ret[used] = '\0';
    return needed;
}
