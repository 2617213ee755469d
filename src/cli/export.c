/* export.c: `tutti export`: a saved model as an ONNX file. */
#include "base/job.h"
#include "cli/command.h"
#include "tutti/onnx.h"

static const char usage[] =
    "usage: tutti export FILE OUT.onnx [--opset N]\n\n"
    "Writes the model in FILE (FILE.json with FILE.safetensors, as --save and tutti_save_model write them)\n"
    "as ONNX of opset 17 (the default) to 21.\n\n"
    "exit codes: 0 success, 1 failure, 2 wrong usage\n";

static int export_run(int argc, char **argv)
{
    int64_t opset = 17;
    if (!tutti__option_int(&argc, argv, "--opset", 17, 21, &opset))
        return TUTTI_EXIT_USAGE;
    if (!tutti__knows_flags(usage, argc, argv))
        return TUTTI_EXIT_USAGE;
    if (argc != 3)
        return tutti__complain("export takes FILE and OUT.onnx; --help tells more"),
               TUTTI_EXIT_USAGE;
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_model *model = tutti_load_model(job, argv[1]);
    tutti_status status = tutti_job_check(job);
    if (status == TUTTI_OK)
        status = tutti_export_onnx(model, argv[2], .opset = (int)opset);
    if (status != TUTTI_OK)
        tutti__complain("%s", tutti_error_message());
    tutti__job_discard(job);
    return status == TUTTI_OK ? TUTTI_EXIT_OK : TUTTI_EXIT_FAILED;
}

const tutti_command tutti_command_export = {
    .name = "export",
    .summary = "writes a saved model as ONNX",
    .usage = usage,
    .run = export_run,
};
