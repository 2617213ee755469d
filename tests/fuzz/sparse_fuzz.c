/* sparse_fuzz.c: sparse tensors in strings, as deserialize_sparse reads them: the first bytes say
 * where the three strings end, the rank and the type. What is accepted is sound. */
#include "fuzz.h"
#include "ops/sparse/serialized.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 4)
        return 0;
    tutti_kernel_call call = {.op = &(tutti_op){.name = "deserialize_sparse"}, .name = "input"};
    const char *bytes = (const char *)data + 4;
    size_t left = size - 4, first = data[0] < left ? data[0] : left;
    size_t second = data[1] < left - first ? data[1] : left - first;
    tutti_string row[3] = {{bytes, (int64_t)first},
                           {bytes + first, (int64_t)second},
                           {bytes + first + second, (int64_t)(left - first - second)}};
    tutti_dtype dtype = (tutti_dtype)(1 + data[2] % (TUTTI_DTYPE_END - 1));
    tutti_sparse sparse = {0};
    if (went_well(tutti__deserialize_sparse(&call, row, dtype, data[3] % (TUTTI_MAX_RANK + 1),
                                            &sparse))) {
        promise(tutti_sparse_check(&sparse, NULL) == TUTTI_OK);
        promise(tutti_tensor_dtype(sparse.values) == dtype);
    }
    tutti_sparse_release(&sparse);
    return 0;
}
