/* c_locale.c: see c_locale.h. */
#include "base/c_locale.h"

#include <pthread.h>
#include <stdlib.h>

static locale_t plain;

static void make_plain(void)
{
    plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

locale_t tutti__c_locale_enter(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_plain);
    return plain != (locale_t)0 ? uselocale(plain) : (locale_t)0;
}

void tutti__c_locale_leave(locale_t before)
{
    if (before != (locale_t)0)
        uselocale(before);
}

double tutti__strtod(const char *text, char **ret_end)
{
    locale_t before = tutti__c_locale_enter();
    double value = strtod(text, ret_end);
    tutti__c_locale_leave(before);
    return value;
}
