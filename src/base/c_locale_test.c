/* c_locale_test.c: texts of numbers under a locale with a decimal comma. */
#include "base/c_locale.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/container.h"
#include "base/test.h"
#include "tutti/tutti.h"

/* Any locale of this machine whose decimal sign is a comma. */
static bool enter_comma(void)
{
    static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8",  "fr_FR.UTF-8", "fr_FR.utf8",
                                        "de_DE",       "nl_NL.UTF-8", "sv_SE.UTF-8", "pl_PL.UTF-8"};
    for (size_t i = 0; i < TUTTI_COUNT(names); i++)
        if (setlocale(LC_ALL, names[i]) && localeconv()->decimal_point[0] == ',')
            return true;
    return false;
}

TUTTI_TEST(numbers_have_a_point_in_every_locale)
{
    if (!enter_comma())
        SKIP("no locale with a decimal comma is installed (localedef -i de_DE -f UTF-8 "
             "de_DE.UTF-8)");
    tutti_text text = {0};
    char *end;
    CHECK_NEAR(tutti__strtod("0.25x", &end), 0.25, 0);
    CHECK_INT(*end, 'x');
    tutti__text_add(&text, "%.2f", 0.25);
    CHECK_CONTAINS(text.data, "0.25");
    tutti__text_free(&text);
    char *arguments[] = {(char[]){"p"}, (char[]){"--lr=0.25"}, NULL}, **argv = arguments;
    int argc = 2;
    tutti_job *job = tutti_open(&argc, &argv);
    CHECK_NEAR(tutti_flag_number(job, "lr", 0), 0.25, 0);
    CHECK_INT(tutti_close(job), 0);
    char own[16];
    snprintf(own, sizeof own, "%.2f", 0.25); /* the program's locale is its own again */
    CHECK_CONTAINS(own, "0,25");
}
