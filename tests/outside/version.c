/* version.c: the installed library is the one that the installed header describes. */
#include <tutti/base.h>

#include <stdio.h>
#include <string.h>

int main(void)
{
    char expected[32];
    snprintf(expected, sizeof expected, "%d.%d.%d", TUTTI_VERSION_MAJOR, TUTTI_VERSION_MINOR,
             TUTTI_VERSION_PATCH);
    if (strcmp(tutti_version(), expected) == 0)
        return 0;
    fprintf(stderr, "the library is %s, the header %s\n", tutti_version(), expected);
    return 1;
}
