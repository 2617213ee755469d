/* sources.c: the table of kernels' texts. */
#include "device/cuda/compile/source.h"
#include "tables/cuda_source.h"

const tutti_cuda_source *const *tutti__cuda_sources(void)
{
    return tutti__cuda_source_table;
}
