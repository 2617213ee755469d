/* npy_header.c: the dictionary of an NPY file, a small piece of Python's syntax. */
#include <string.h>

#include "io/npy.h"
#include "io/number.h"

typedef struct parser {
    const char *name, *text;
    size_t size, at;
    int64_t offset;
} parser;

static tutti_status fail_here(const parser *p, const char *expected)
{
    return tutti_fail(TUTTI_CORRUPT, "%s: offset %lld: NPY header, expected %s", p->name,
                      (long long)(p->offset + (int64_t)p->at), expected);
}

static char peek(parser *p)
{
    while (p->at < p->size && (p->text[p->at] == ' ' || p->text[p->at] == '\n'))
        p->at++;
    return p->at < p->size ? p->text[p->at] : '\0';
}

static bool npy_header_take(parser *p, char c)
{
    bool there = peek(p) == c;
    p->at += there;
    return there;
}

static bool take_word(parser *p, const char *word)
{
    size_t length = strlen(word);
    peek(p);
    bool there = p->size - p->at >= length && memcmp(p->text + p->at, word, length) == 0;
    p->at += there ? length : 0;
    return there;
}

/* A text in quotes without escapes. */
static tutti_status take_text(parser *p, const char **ret, size_t *ret_size)
{
    char quote = peek(p);
    if (quote != '\'' && quote != '"')
        return fail_here(p, "a text in quotes");
    const char *start = p->text + ++p->at;
    const char *end = memchr(start, quote, p->size - p->at);
    if (end == NULL || memchr(start, '\\', (size_t)(end - start)) != NULL)
        return fail_here(p, "the end of a text in quotes");
    *ret = start;
    *ret_size = (size_t)(end - start);
    p->at += *ret_size + 1;
    return TUTTI_OK;
}

tutti_status tutti__npy_parse_descr(const char *name, const char *text, size_t size,
                                    tutti_npy_kind *ret)
{
    static const struct {
        const char *text;
        tutti_dtype dtype;
    } kinds[] = {{"f2", TUTTI_F16}, {"f4", TUTTI_F32}, {"f8", TUTTI_F64}, {"i1", TUTTI_I8},
                 {"u1", TUTTI_U8},  {"i2", TUTTI_I32}, {"u2", TUTTI_I32}, {"i4", TUTTI_I32},
                 {"u4", TUTTI_I64}, {"i8", TUTTI_I64}, {"u8", TUTTI_I64}, {"b1", TUTTI_BOOL}};
    tutti_npy_kind kind = {0};
    if (size >= 3 && strchr("<>|=", text[0]) != NULL &&
        tutti__integer_parse(text + 2, size - 2, &kind.size)) {
        kind.letter = text[1];
        kind.big_endian = text[0] == '>';
        for (size_t i = 0; i < TUTTI_COUNT(kinds); i++)
            if (size == 3 && memcmp(kinds[i].text, text + 1, 2) == 0)
                kind.dtype = kinds[i].dtype;
        if ((kind.letter == 'S' || kind.letter == 'U') && kind.size >= 0 && kind.size < 1 << 24) {
            kind.dtype = TUTTI_STRING;
            kind.size *= kind.letter == 'U' ? 4 : 1;
        }
    }
    if (kind.dtype == TUTTI_NO_DTYPE)
        return tutti_fail(
            TUTTI_UNSUPPORTED,
            "%s: NPY elements of type '%.*s' are not read%s; save them as f2 f4 f8 i1 "
            "to i8, u1 to u8, b1, S or U",
            name, (int)(size < 40 ? size : 40), text,
            memchr(text, 'O', size) != NULL ? " (objects could run code that the file brings)"
                                            : "");
    *ret = kind;
    return TUTTI_OK;
}

/* (3, 4) or (3,) or () */
static tutti_status take_shape(parser *p, tutti_npy_header *header)
{
    header->rank = 0;
    if (!npy_header_take(p, '('))
        return fail_here(p, "a shape in parentheses");
    while (!npy_header_take(p, ')')) {
        peek(p);
        size_t start = p->at;
        while (p->at < p->size && p->text[p->at] >= '0' && p->text[p->at] <= '9')
            p->at++;
        int64_t dim;
        if (!tutti__integer_parse(p->text + start, p->at - start, &dim))
            return fail_here(p, "a dimension of at most 63 bits");
        if (header->rank == TUTTI_MAX_RANK)
            return tutti_fail(TUTTI_UNSUPPORTED, "%s: more than %d dimensions", p->name,
                              TUTTI_MAX_RANK);
        header->dims[header->rank++] = dim;
        if (!npy_header_take(p, ',') && peek(p) != ')')
            return fail_here(p, "',' or ')' in the shape");
    }
    return TUTTI_OK;
}

static tutti_status take_descr(parser *p, tutti_npy_header *header)
{
    const char *text;
    size_t size;
    if (peek(p) == '[' || peek(p) == '(')
        return tutti_fail(TUTTI_UNSUPPORTED,
                          "%s: an array of records; save each field as an array of its own",
                          p->name);
    TUTTI_TRY(take_text(p, &text, &size));
    return tutti__npy_parse_descr(p->name, text, size, &header->kind);
}

static tutti_status take_order(parser *p, tutti_npy_header *header)
{
    header->fortran_order = take_word(p, "True");
    return header->fortran_order || take_word(p, "False") ? TUTTI_OK
                                                          : fail_here(p, "True or False");
}

tutti_status tutti__npy_parse_header(const char *name, const char *text, size_t size, int64_t at,
                                     tutti_npy_header *ret)
{
    static const struct {
        const char *key;
        tutti_status (*take)(parser *p, tutti_npy_header *header);
    } keys[] = {{"descr", take_descr}, {"fortran_order", take_order}, {"shape", take_shape}};
    parser p = {.name = name, .text = text, .size = size, .offset = at};
    tutti_npy_header header = {0};
    unsigned seen = 0;
    if (!npy_header_take(&p, '{'))
        return fail_here(&p, "a dictionary");
    while (!npy_header_take(&p, '}')) {
        const char *key;
        size_t length, i = 0;
        TUTTI_TRY(take_text(&p, &key, &length));
        while (i < 3 && (strlen(keys[i].key) != length || memcmp(keys[i].key, key, length) != 0))
            i++;
        if (i == 3 || (seen & 1u << i) != 0)
            return fail_here(&p, "the keys descr, fortran_order and shape, each once");
        seen |= 1u << i;
        if (!npy_header_take(&p, ':'))
            return fail_here(&p, "':' after a key");
        TUTTI_TRY(keys[i].take(&p, &header));
        if (!npy_header_take(&p, ',') && peek(&p) != '}')
            return fail_here(&p, "',' or '}'");
    }
    if (seen != 7 || (peek(&p), p.at != p.size))
        return fail_here(&p, "descr, fortran_order and shape, and nothing after them");
    *ret = header;
    return TUTTI_OK;
}
