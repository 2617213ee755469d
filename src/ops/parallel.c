/* parallel.c: pieces of a call on the threads of its device. */
#include "base/pool.h"
#include "tutti/op.h"

void tutti_parallel(const tutti_kernel_call *call, int64_t count,
                    void (*piece)(void *context, int64_t index), void *context)
{
    tutti__pool_run(call->pool, count, piece, context);
}
