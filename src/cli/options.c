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

static _Noreturn void needs_value(const char *name)
{
    tutti__complain("%s needs a value", name);
    exit(TUTTI_EXIT_USAGE);
}

bool tutti__option_next(int *argc, char **argv, const char *name, const char **ret_value)
{
    size_t size = strlen(name);
    for (int i = 1; i < *argc; i++) {
        bool apart = strcmp(argv[i], name) == 0;
        if (!apart && (strncmp(argv[i], name, size) != 0 || argv[i][size] != '='))
            continue;
        if (apart && i + 1 == *argc)
            needs_value(name);
        *ret_value = apart ? argv[i + 1] : argv[i] + size + 1;
        take_out(argc, argv, i, apart ? 2 : 1);
        return true;
    }
    return false;
}

bool tutti__option(int *argc, char **argv, const char *name, const char **ret_value)
{
    bool given = false;
    while (tutti__option_next(argc, argv, name, ret_value))
        given = true;
    return given;
}

bool tutti__flag(int *argc, char **argv, const char *name)
{
    int before = *argc;
    for (int i = 1; i < *argc;)
        if (strcmp(argv[i], name) == 0)
            take_out(argc, argv, i, 1);
        else
            i++;
    return *argc < before;
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
