/* options.c: what the subcommands share in reading their arguments. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
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

const char *tutti__meant(const char *found)
{
    static char text[96];
    text[0] = '\0';
    if (found)
        snprintf(text, sizeof text, "; is '%s' meant?", found);
    return text;
}

/* Bytes of the flag at `text`, as in --steps-per-epoch; 0 where none begins. */
static size_t flag_size(const char *text)
{
    if (strncmp(text, "--", 2) != 0)
        return 0;
    size_t size = strspn(text + 2, "abcdefghijklmnopqrstuvwxyz-");
    return size > 0 ? 2 + size : 0;
}

/* Copies the next flag of a help text and returns where to go on, NULL at the end. */
static const char *next_flag(const char *text, char ret_flag[48])
{
    for (; *text; text++) {
        size_t size = flag_size(text);
        if (size == 0)
            continue;
        snprintf(ret_flag, 48, "%.*s", (int)size, text);
        return text + size;
    }
    return NULL;
}

const char *tutti__flag_meant(const char *usage, const char *given)
{
    static char best[48];
    char word[48], flag[48];
    int least = 0;
    best[0] = '\0';
    given += strspn(given, "-");
    snprintf(word, sizeof word, "%.*s", (int)strcspn(given, "="), given);
    for (const char *at = usage; (at = next_flag(at, flag)) != NULL;) {
        int distance = tutti__word_distance(word, flag + 2);
        if (!tutti__word_near(word, distance) || (best[0] && distance >= least))
            continue;
        memcpy(best, flag, sizeof best);
        least = distance;
    }
    return best[0] ? best : NULL;
}

static bool has_flag(const char *usage, const char *given)
{
    char flag[48];
    size_t size = strcspn(given, "=");
    for (const char *at = usage; (at = next_flag(at, flag)) != NULL;)
        if (strlen(flag) == size && strncmp(flag, given, size) == 0)
            return true;
    return false;
}

bool tutti__knows_flags(const char *usage, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (argv[i][0] != '-' || argv[i][1] == '\0' || has_flag(usage, argv[i]))
            continue;
        tutti__complain("'%s' is no flag of %s%s; 'tutti %s --help' lists them", argv[i], argv[0],
                        tutti__meant(tutti__flag_meant(usage, argv[i])), argv[0]);
        return false;
    }
    return true;
}
