/* model_fuzz.c: a model's JSON; one that is accepted tells itself, and that is accepted too. */
#include <string.h>

#include "base/job.h"
#include "fuzz.h"
#include "tutti/tutti.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1), *first = NULL, *second = NULL;
    promise(text != NULL);
    memcpy(text, data, size);
    text[size] = 0;
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_model *model = tutti_model_from_json(job, text);
    promise(model || tutti_job_check(job) != TUTTI_OK);
    if (model && went_well(tutti_model_to_json(model, &first))) {
        tutti_model *again = tutti_model_from_json(job, first);
        promise(again && tutti_model_to_json(again, &second) == TUTTI_OK);
        promise(strcmp(first, second) == 0);
    }
    free(first);
    free(second);
    free(text);
    tutti__job_discard(job);
    return 0;
}
