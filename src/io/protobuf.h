/* protobuf.h: the wire form of protocol buffers: fields of number and kind, one after another.
 * Enough for ONNX, tf.train.Example and TensorBoard's events.
 *
 *     tutti_proto p = tutti__proto("model.onnx", data, size);
 *     tutti_proto_field f;
 *     while (tutti__proto_next(&p, &f))
 *         if (f.number == 7 && f.kind == TUTTI_PROTO_BYTES)
 *             TUTTI_TRY(parse_graph(tutti__proto_inside(&p, &f)));
 *     TUTTI_TRY(tutti__proto_end(&p));
 *
 * A reader never leaves its bytes. Damage, groups (which nobody writes any more) and messages
 * nested deeper than 100 end the loop, and tutti__proto_end says why. */
#ifndef TUTTI_IO_PROTOBUF_H
#define TUTTI_IO_PROTOBUF_H

#include "base/container.h"

typedef enum tutti_proto_kind {
    TUTTI_PROTO_VARINT = 0,
    TUTTI_PROTO_FIXED64 = 1,
    TUTTI_PROTO_BYTES = 2, /* strings, messages, packed numbers */
    TUTTI_PROTO_FIXED32 = 5,
} tutti_proto_kind;

typedef struct tutti_proto {
    const char *name;                /* for messages */
    const uint8_t *start, *at, *end; /* start: of the whole, so that offsets can be named */
    int depth;
    const char *wrong; /* what ended it, NULL while all is well */
} tutti_proto;

typedef struct tutti_proto_field {
    uint32_t number;
    tutti_proto_kind kind;
    uint64_t value;      /* varint, or the bits of a fixed number */
    const uint8_t *data; /* of bytes */
    size_t size;
} tutti_proto_field;

tutti_proto tutti__proto(const char *name, const void *data, size_t size);
/* The next field; false at the end and on damage. */
bool tutti__proto_next(tutti_proto *p, tutti_proto_field *ret);
/* TUTTI_CORRUPT with place and reason when the reader stopped before its end. */
tutti_status tutti__proto_end(const tutti_proto *p);
/* Makes the reader stop here: what was found is not what was expected. */
void tutti__proto_stop(tutti_proto *p, const char *expected);
/* A reader of a field's own message; one that is wrong from the start when it is none. */
tutti_proto tutti__proto_inside(const tutti_proto *p, const tutti_proto_field *field);

/* The value in other clothes; 0 for a field of another kind. */
int64_t tutti__proto_int(const tutti_proto_field *field);
float tutti__proto_float(const tutti_proto_field *field);
double tutti__proto_double(const tutti_proto_field *field);
/* True when the field is bytes that equal the text. */
bool tutti__proto_is(const tutti_proto_field *field, const char *text);

/* Repeated numbers stand alone or packed into bytes. Each call gives one; start with *at = 0. */
bool tutti__proto_each_int(tutti_proto *p, const tutti_proto_field *field, size_t *at,
                           int64_t *ret);
bool tutti__proto_each_float(tutti_proto *p, const tutti_proto_field *field, size_t *at,
                             float *ret);
bool tutti__proto_each_double(tutti_proto *p, const tutti_proto_field *field, size_t *at,
                              double *ret);

/* Writing, into a text: out of memory is the text's sticky `failed`. */
void tutti__proto_put_varint(tutti_text *text, uint64_t value); /* bare, without a field */
void tutti__proto_put_int(tutti_text *text, uint32_t number, int64_t value);
void tutti__proto_put_float(tutti_text *text, uint32_t number, float value);
void tutti__proto_put_double(tutti_text *text, uint32_t number, double value);
void tutti__proto_put_bytes(tutti_text *text, uint32_t number, const void *data, size_t size);
void tutti__proto_put_string(tutti_text *text, uint32_t number, const char *string);
/* A message or packed field of what is written between the two:
 *     size_t mark = tutti__proto_open(text, 8);
 *     …
 *     tutti__proto_close(text, mark); */
size_t tutti__proto_open(tutti_text *text, uint32_t number);
void tutti__proto_close(tutti_text *text, size_t mark);

#endif
