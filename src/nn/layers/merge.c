/* merge.c: several inputs to one. */
#include "nn/layers/common.h"

tutti_sym tutti__merge_fold(int count, const tutti_sym *inputs,
                            tutti_sym (*of_two)(tutti_sym a, tutti_sym b))
{
    tutti_sym all = inputs[0];
    for (int i = 1; i < count; i++)
        all = of_two(all, inputs[i]);
    return count == 1 ? tutti_identity(all) : all;
}
