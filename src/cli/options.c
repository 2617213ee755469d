/* options.c: what the subcommands share in reading their arguments. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"

int tutti__complain(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    fprintf(stderr, "tutti: ");
    vfprintf(stderr, format, list);
    fprintf(stderr, "\n");
    va_end(list);
    return TUTTI_EXIT_FAILED;
}

static void take_out(int *argc, char **argv, int at, int count)
{
    memmove(argv + at, argv + at + count, (size_t)(*argc - at - count + 1) * sizeof *argv);
    *argc -= count;
}

bool tutti__option(int *argc, char **argv, const char *name, const char **ret_value)
{
    size_t size = strlen(name);
    for (int i = 1; i < *argc; i++) {
        if (strcmp(argv[i], name) == 0 && i + 1 < *argc) {
            *ret_value = argv[i + 1];
            take_out(argc, argv, i, 2);
            return true;
        }
        if (strncmp(argv[i], name, size) == 0 && argv[i][size] == '=') {
            *ret_value = argv[i] + size + 1;
            take_out(argc, argv, i, 1);
            return true;
        }
    }
    return false;
}

bool tutti__flag(int *argc, char **argv, const char *name)
{
    for (int i = 1; i < *argc; i++)
        if (strcmp(argv[i], name) == 0) {
            take_out(argc, argv, i, 1);
            return true;
        }
    return false;
}

bool tutti__option_int(int *argc, char **argv, const char *name, int64_t low, int64_t high,
                       int64_t *ret_value)
{
    const char *text;
    char *end;
    if (!tutti__option(argc, argv, name, &text))
        return true;
    long long value = strtoll(text, &end, 10);
    if (end == text || *end || value < low || value > high) {
        tutti__complain("%s takes a whole number from %lld to %lld, not '%s'", name, (long long)low,
                        (long long)high, text);
        return false;
    }
    *ret_value = value;
    return true;
}
