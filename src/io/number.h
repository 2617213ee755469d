/* number.h: numbers as text, with a point in every locale. */
#ifndef TUTTI_IO_NUMBER_H
#define TUTTI_IO_NUMBER_H

#include "base/status.h"

/* The whole of `text` as a decimal number: sign, digits, fraction, exponent; also inf, infinity and
 * nan in any case. False when it is none: nothing is skipped, not even blanks. */
bool tutti__number_parse(const char *text, size_t size, double *ret);
/* The whole of `text` as an integer of 64 bits; false when it is none or does not fit. */
bool tutti__integer_parse(const char *text, size_t size, int64_t *ret);

/* The shortest decimal text that reads back as the same number (of f32, when `single`). Whole
 * numbers below 1e15 come without fraction. Returns the buffer. */
#define TUTTI_NUMBER_TEXT 40
const char *tutti__number_text(double value, bool single, char ret_text[TUTTI_NUMBER_TEXT]);

#endif
