/* json.h: JSON (RFC 8259): text to a tree in an arena, and a writer.
 *
 *     const tutti_json *root;
 *     TUTTI_TRY(tutti__json_parse("model.json", text, size, NULL, &arena, &root));
 *     const tutti_json *layers = tutti__json_get(root, "layers");
 *     for (const tutti_json *each = tutti__json_first(layers); each != NULL; each = each->next)
 */
#ifndef TUTTI_IO_JSON_H
#define TUTTI_IO_JSON_H

#include "base/arena.h"
#include "base/container.h"

typedef enum tutti_json_kind {
    TUTTI_JSON_NULL,
    TUTTI_JSON_BOOL,
    TUTTI_JSON_INT,  /* written as an integer that fits 64 bits */
    TUTTI_JSON_REAL, /* every other number */
    TUTTI_JSON_STRING,
    TUTTI_JSON_ARRAY,
    TUTTI_JSON_OBJECT,
} tutti_json_kind;

typedef struct tutti_json {
    tutti_json_kind kind;
    uint32_t offset;         /* in the text, for messages */
    const char *key;         /* in an object; else NULL. NUL-terminated, holds no NUL */
    struct tutti_json *next; /* the next element or member */
    union {
        bool truth;
        int64_t integer;
        double real;
        const char *text;         /* UTF-8, NUL-terminated; may hold NUL bytes */
        struct tutti_json *first; /* element or member */
    } as;
    size_t count; /* of elements, of members, of bytes of a string */
} tutti_json;

/* Zero means the default. */
typedef struct tutti_json_limits {
    size_t bytes;  /* of text: 256 MiB; never more than 4 GiB */
    size_t values; /* 4 million */
    int depth;     /* of arrays and objects in each other: 64, at most 512 */
} tutti_json_limits;

/* Parses exactly one value with nothing but blanks round it. Keys that stand twice in an object,
 * invalid UTF-8 and lone surrogates are refused. `name` is for messages; limits may be NULL. The
 * tree lives as long as the arena, the text need not. */
tutti_status tutti__json_parse(const char *name, const char *text, size_t size,
                               const tutti_json_limits *limits, tutti_arena *arena,
                               const tutti_json **ret_root);

/* A member of an object; NULL when there is none, or `json` is NULL or no object. */
const tutti_json *tutti__json_get(const tutti_json *json, const char *key);
/* First element or member; NULL when empty, NULL or neither array nor object. */
const tutti_json *tutti__json_first(const tutti_json *json);
/* Readings with a fallback for NULL and for other kinds. A text with NUL bytes is no text here. */
const char *tutti__json_text(const tutti_json *json, const char *fallback);
int64_t tutti__json_int(const tutti_json *json, int64_t fallback);
double tutti__json_real(const tutti_json *json, double fallback); /* integers too */
bool tutti__json_bool(const tutti_json *json, bool fallback);
/* "a string", "an object", for messages: "expected …, found %s". */
const char *tutti__json_kind_text(const tutti_json *json);

/* Writes one value into a text. Zero `indent` gives one line. Calls in a wrong order (a value
 * without its key, an end without its beginning) make `tutti__json_finish` fail.
 *
 *     tutti_json_writer w = {.text = &text, .indent = 2};
 *     tutti__json_begin(&w, '{');
 *     tutti__json_key(&w, "loss");
 *     tutti__json_put_real(&w, 0.25);
 *     tutti__json_end(&w);
 *     TUTTI_TRY(tutti__json_finish(&w));
 */
#define TUTTI_JSON_DEPTH 64
typedef struct tutti_json_writer {
    tutti_text *text;
    int indent; /* blanks for each level */
    int depth;
    bool wrong, keyed, filled[TUTTI_JSON_DEPTH + 1];
    char open[TUTTI_JSON_DEPTH + 1]; /* '{' or '[' at each level, from 1 */
} tutti_json_writer;

void tutti__json_begin(tutti_json_writer *writer, char bracket); /* '{' or '[' */
void tutti__json_end(tutti_json_writer *writer);
void tutti__json_key(tutti_json_writer *writer, const char *key);
void tutti__json_put_string(tutti_json_writer *writer, const char *text);
/* Bytes that are no UTF-8 become U+FFFD. */
void tutti__json_put_bytes(tutti_json_writer *writer, const char *text, size_t size);
void tutti__json_put_int(tutti_json_writer *writer, int64_t value);
void tutti__json_put_real(tutti_json_writer *writer, double value); /* not finite: null */
void tutti__json_put_float(tutti_json_writer *writer, float value); /* the shortest for f32 */
void tutti__json_put_bool(tutti_json_writer *writer, bool value);
void tutti__json_put_null(tutti_json_writer *writer);
/* A parsed tree again. */
void tutti__json_put(tutti_json_writer *writer, const tutti_json *json);
tutti_status tutti__json_finish(const tutti_json_writer *writer);

/* Bytes of the UTF-8 character at `text` (1 to 4), 0 when it is malformed. */
size_t tutti__utf8_length(const char *text, size_t size);
/* Writes a code point; returns its bytes. */
size_t tutti__utf8_put(uint32_t code, char ret_bytes[4]);

#endif
