/* c_locale.h: numbers as text with a point, whatever the program's locale writes. */
#ifndef TUTTI_BASE_C_LOCALE_H
#define TUTTI_BASE_C_LOCALE_H

#include <locale.h>

/* The calling thread in the locale "C", and back in what it was. */
locale_t tutti__c_locale_enter(void);
void tutti__c_locale_leave(locale_t before);

/* strtod in the locale "C". */
double tutti__strtod(const char *text, char **ret_end);

#endif
