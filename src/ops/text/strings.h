/* strings.h: what the operators on strings share: shape rules, and strings that a kernel makes. */
#ifndef TUTTI_OPS_TEXT_STRINGS_H
#define TUTTI_OPS_TEXT_STRINGS_H

#include "base/container.h"
#include "ops/shape/rule.h"
#include "ops/state/state.h"

#define TUTTI_TEXT_FLAGS (TUTTI_OP_NO_GRADIENT | TUTTI_OP_HOST)

/* Input `i` holds strings. */
tutti_status tutti__need_strings(const tutti_infer *node, int i);
/* Input 0 holds strings; output 0 has its shape and this element type. */
tutti_status tutti__infer_of_strings(tutti_infer *node, tutti_dtype dtype);
tutti_status tutti__infer_strings(tutti_infer *node); /* to strings */
/* All inputs hold strings and broadcast; output 0 has this element type. */
tutti_status tutti__infer_many_strings(tutti_infer *node, tutti_dtype dtype);

/* Output `index` becomes these strings, in row-major order; the bytes are copied, and may be those
 * of inputs. Works for outputs whose shape depends on data too. */
tutti_status tutti__give_strings(const tutti_kernel_call *call, int index, int rank,
                                 const int64_t *dims, const tutti_string *strings);

/* A kernel from string to string: `map` writes the new one into the text, which is empty. */
tutti_status tutti__map_strings(const tutti_kernel_call *call,
                                void (*map)(const tutti_kernel_call *call, tutti_string from,
                                            tutti_text *to));
/* The same where the new string is part of the old one. */
tutti_status tutti__cut_strings(const tutti_kernel_call *call,
                                tutti_string (*cut)(const tutti_kernel_call *call,
                                                    tutti_string from));

/* Any axis, cut in all inputs and outputs alike. */
int tutti__split_strings(const tutti_infer *node, int capacity, tutti_split *ret);

static inline bool tutti__is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Whether a byte begins a character of UTF-8: it is not 10xxxxxx. */
static inline bool tutti__begins_character(char c)
{
    return ((unsigned char)c >> 6) != 2;
}

/* The bytes of `from`, those from `first` to first + 25 moved to the letters from `to_first` on. */
void tutti__change_case(tutti_string from, char first, char to_first, tutti_text *to);

#endif
