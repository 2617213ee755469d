/* utf8.c: characters of UTF-8 (RFC 3629): shortest form, no surrogates, up to U+10FFFF. */
#include "io/json.h"

static bool follows(uint8_t byte)
{
    return (byte & 0xc0) == 0x80;
}

size_t tutti__utf8_length(const char *text, size_t size)
{
    const uint8_t *p = (const uint8_t *)text;
    if (size == 0)
        return 0;
    if (p[0] < 0x80)
        return 1;
    size_t length = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
    if (p[0] < 0xc2 || p[0] > 0xf4 || size < length)
        return 0;
    for (size_t i = 1; i < length; i++)
        if (!follows(p[i]))
            return 0;
    bool wrong = (p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) ||
                 (p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f);
    return wrong ? 0 : length;
}

size_t tutti__utf8_put(uint32_t code, char ret_bytes[4])
{
    static const uint8_t first[] = {0, 0, 0xc0, 0xe0, 0xf0};
    size_t length = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = length - 1; i > 0; i--, code >>= 6)
        ret_bytes[i] = (char)(0x80 | (code & 0x3f));
    ret_bytes[0] = (char)(first[length] | code);
    return length;
}
