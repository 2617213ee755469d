/* number.c: see number.h. strtod and printf follow the program's locale, so both run in "C". */
#include "io/number.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/c_locale.h"

/* strtod would also take blanks in front and hexadecimal digits. */
static bool looks_decimal(const char *text, size_t size)
{
    return size > 0 && strchr("+-.0123456789iInN", text[0]) != NULL && text[0] != '\0' &&
           memchr(text, 'x', size) == NULL && memchr(text, 'X', size) == NULL &&
           memchr(text, '(', size) == NULL && memchr(text, '\0', size) == NULL;
}

bool tutti__number_parse(const char *text, size_t size, double *ret)
{
    char small[64], *copy = small;
    if (!looks_decimal(text, size))
        return false;
    if (size >= sizeof small && (copy = malloc(size + 1)) == NULL)
        return false;
    memcpy(copy, text, size);
    copy[size] = '\0';
    char *end;
    locale_t before = tutti__c_locale_enter();
    double value = strtod(copy, &end);
    tutti__c_locale_leave(before);
    bool whole = end == copy + size;
    if (copy != small)
        free(copy);
    if (whole)
        *ret = value;
    return whole;
}

bool tutti__integer_parse(const char *text, size_t size, int64_t *ret)
{
    size_t i = size > 0 && (text[0] == '-' || text[0] == '+');
    bool negative = i == 1 && text[0] == '-';
    int64_t value = 0;
    if (i == size)
        return false;
    for (; i < size; i++) {
        if (text[i] < '0' || text[i] > '9' || __builtin_mul_overflow(value, 10, &value))
            return false;
        int digit = text[i] - '0';
        if (__builtin_add_overflow(value, negative ? -digit : digit, &value))
            return false;
    }
    *ret = value;
    return true;
}

const char *tutti__number_text(double value, bool single, char ret_text[TUTTI_NUMBER_TEXT])
{
    locale_t before = tutti__c_locale_enter();
    int most = single ? 9 : 17;
    for (int digits = single ? 6 : 15; digits <= most; digits++) {
        snprintf(ret_text, TUTTI_NUMBER_TEXT, "%.*g", digits, value);
        double back = strtod(ret_text, NULL);
        if (single ? (float)back == (float)value : back == value)
            break;
    }
    tutti__c_locale_leave(before);
    return ret_text;
}
