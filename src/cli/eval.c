/* eval.c: `tutti eval`: loss and metrics of a saved model on a test split. */
#include <stdio.h>

#include "cli/command.h"
#include "cli/models.h"
#include "cli/viewer.h"

static const char usage[] =
    "usage: tutti eval FILE [FLAGS]\n\n"
    "Loads the model in FILE.json and FILE.safetensors and prints its loss and metrics on the\n"
    "data's test split.\n\n" TUTTI_DATA_FLAGS "  --set split=NAME       another split\n"
    "  --set expect=V         exit code 1 when the accuracy is below V\n"
    "  --json                 one JSON object\n\n"
    "exit codes: 0 success, 1 it failed or is below what was expected, 2 wrong usage\n";

static void print_logs(const tutti_logs *logs, bool json)
{
    for (int i = 0; !json && i < logs->count; i++) {
        printf("%s", i ? "  " : "");
        tutti__print_name(logs->items[i].name, 0);
        printf(" %.4f", logs->items[i].value);
    }
    for (int i = 0; json && i < logs->count; i++) {
        printf(i ? ", " : "{");
        tutti__print_quoted(logs->items[i].name);
        printf(": ");
        tutti__print_real(logs->items[i].value);
    }
    printf(json ? "%s}\n" : "\n", logs->count ? "" : "{");
}

static int eval_run(int argc, char **argv)
{
    tutti_job *job = tutti_open(&argc, &argv);
    bool usable = !tutti_job_ok(job) || tutti__knows_flags(usage, argc, argv);
    if (usable && tutti_job_ok(job) && argc != 2) {
        tutti__complain("eval takes one model's FILE; 'tutti eval --help' tells more");
        usable = false;
    }
    if (!usable)
        return tutti_close(job), TUTTI_EXIT_USAGE;
    tutti_logs logs = {0};
    tutti_model *model = argc == 2 ? tutti_load_model(job, argv[1]) : NULL;
    tutti__cli_compile(model);
    tutti_dataset *data = tutti__cli_data(job, tutti_flag_text(job, "split", "test"), 500);
    if (tutti_job_ok(job) && tutti_evaluate(model, data, &logs) == TUTTI_OK &&
        tutti_strategy_rank(tutti_job_strategy(job)) == 0)
        print_logs(&logs, tutti_flag_on(job, "json"));
    if (tutti_flag_text(job, "expect", NULL))
        tutti_expect(job, "accuracy", tutti_logs_get(&logs, "accuracy"), 0);
    return tutti_close(job);
}

const tutti_command tutti_command_eval = {
    .name = "eval",
    .summary = "loss and metrics of a saved model on a test split",
    .usage = usage,
    .run = eval_run,
};
