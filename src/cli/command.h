/* command.h: a subcommand of `tutti`. One file each, ending in one descriptor.
 * tables: tutti_command */
#ifndef TUTTI_CLI_COMMAND_H
#define TUTTI_CLI_COMMAND_H

#include "tutti/tutti.h"

/* Exit codes of every subcommand. */
enum { TUTTI_EXIT_OK = 0, TUTTI_EXIT_FAILED = 1, TUTTI_EXIT_USAGE = 2 };

typedef struct tutti_command {
    const char *name;
    const char *summary;               /* one line */
    const char *usage;                 /* the whole help text */
    void (*more)(void);                /* (optional) prints what only the program knows behind it */
    int (*run)(int argc, char **argv); /* argv[0] is the subcommand's name */
    bool starts_program;               /* --help counts only as the first argument: others may be
                                          the program's, or of one of several things */
} tutti_command;

/* Prints "tutti: message" to standard error; returns TUTTI_EXIT_FAILED. */
int tutti__complain(const char *format, ...) TUTTI_PRINTF(1, 2);

/* Options of the forms --name value and --name=value, taken out of argv: true when it was there. Of
 * one that is given several times the last counts, or _next takes them one by one; one without a
 * value ends the process, in words. A flag has no value. */
bool tutti__option_next(int *argc, char **argv, const char *name, const char **ret_value);
bool tutti__option(int *argc, char **argv, const char *name, const char **ret_value);
bool tutti__flag(int *argc, char **argv, const char *name);
/* An integer option; false (with a complaint) when its text is no integer in [low, high]. */
bool tutti__option_int(int *argc, char **argv, const char *name, int64_t low, int64_t high,
                       int64_t *ret_value);

/* "; is 'FOUND' meant?" to end a complaint with, "" of NULL; good until the next call. */
const char *tutti__meant(const char *found);
/* The flag of a help text that is most like the one given; NULL where none is near. */
const char *tutti__flag_meant(const char *usage, const char *given);
/* Whether no argument is left that looks like a flag, unless `usage`, the command's help, has it;
 * complains of the first, by the command's name. For when all that is known has been taken out. */
bool tutti__knows_flags(const char *usage, int argc, char **argv);

#endif
