/* words_fuzz.c: what people type: devices, algorithms by size, compressors, equations, types. A
 * name of a device that is accepted is written and read again as it was. */
#include <string.h>

#include "fuzz.h"
#include "ops/linear/equation.h"
#include "tutti/comm.h"

static void read_device(const char *text)
{
    tutti_device_name first, second;
    char again[TUTTI_DEVICE_TEXT];
    if (!went_well(tutti_device_parse(text, &first)))
        return;
    promise(tutti_device_parse(tutti_device_text(&first, again), &second) == TUTTI_OK);
    promise(strcmp(first.job, second.job) == 0 && strcmp(first.kind, second.kind) == 0);
    promise(first.replica == second.replica && first.task == second.task &&
            first.index == second.index);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const tutti_op einsum = {.name = "einsum"};
    char *text = malloc(size + 1);
    promise(text != NULL);
    memcpy(text, data, size);
    text[size] = '\0';
    read_device(text);
    went_well(tutti_comm_spec_check(text));
    went_well(tutti_compressor_check(text));
    went_well(tutti_dtype_parse(text, &(tutti_dtype){0}));
    int ranks[TUTTI_EINSUM_OPERANDS], count = 1;
    for (const char *c = text; *c && count < TUTTI_EINSUM_OPERANDS; c++)
        count += *c == ',';
    for (int i = 0; i < count; i++)
        ranks[i] = size > 0 ? data[size - 1] % (TUTTI_MAX_RANK + 1) : 0;
    tutti_equation equation;
    if (went_well(tutti__equation_parse(&einsum, "input", text, count, ranks, &equation)))
        promise(equation.output.rank <= TUTTI_MAX_RANK && equation.operand_count == count);
    free(text);
    return 0;
}
