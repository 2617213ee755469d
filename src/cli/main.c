/* main.c: the command `tutti`: finds the subcommand and runs it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/nearest.h"
#include "base/standard.h"
#include "cli/command.h"
#include "tables/command.h"

static void help(FILE *to)
{
    fprintf(
        to,
        "Tutti %s: deep learning in C, from one core to a cluster.\n\nusage: tutti COMMAND [OPTIONS]\n\n",
        tutti_version());
    for (const tutti_command *const *command = tutti__command_table; *command; command++)
        fprintf(to, "  %-8s %s\n", (*command)->name, (*command)->summary);
    fprintf(to, "\n  tutti COMMAND --help   tells more\n  tutti --version\n\n"
                "exit codes: 0 success, 1 the command failed, 2 wrong usage\n");
}

static void print_log(void *context, tutti_log_level level, const char *message)
{
    (void)context;
    tutti_log_level least = tutti__log_quiet() ? TUTTI_LOG_WARNING : TUTTI_LOG_INFO;
    if (level >= least)
        fprintf(stderr, "tutti: %s\n", message);
}

/* However the command ends, what was printed must have arrived: a full disk or a closed pipe is a
 * failure. */
static void check_output(void)
{
    if (tutti__standard_output_lost())
        _exit(TUTTI_EXIT_FAILED);
}

static int main_run(const tutti_command *command, int argc, char **argv)
{
    int own = command->starts_program && argc > 2 ? 2 : argc; /* arguments that are ours */
    if (tutti__flag(&own, argv, "--help") || tutti__flag(&own, argv, "-h")) {
        printf("%s", command->usage);
        if (command->more)
            command->more();
        return TUTTI_EXIT_OK;
    }
    return command->run(argc, argv);
}

int main(int argc, char **argv)
{
    tutti__standard_descriptors();
    tutti__standard_file_limit();
    atexit(check_output);
    tutti_log_install(print_log, NULL);
    if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        strcmp(argv[1], "help") == 0) {
        help(argc < 2 ? stderr : stdout);
        return argc < 2 ? TUTTI_EXIT_USAGE : TUTTI_EXIT_OK;
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("tutti %s\n", tutti_version());
        return TUTTI_EXIT_OK;
    }
    for (const tutti_command *const *command = tutti__command_table; *command; command++)
        if (strcmp((*command)->name, argv[1]) == 0)
            return main_run(*command, argc - 1, argv + 1);
    tutti_nearest nearest = {.word = argv[1]};
    for (const tutti_command *const *command = tutti__command_table; *command; command++)
        tutti__nearest_try(&nearest, (*command)->name);
    tutti__complain("there is no command '%s'%s; 'tutti --help' lists them", argv[1],
                    tutti__meant(nearest.found));
    return TUTTI_EXIT_USAGE;
}
