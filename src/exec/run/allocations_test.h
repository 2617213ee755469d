/* allocations_test.h: counts what the process asks of the allocator, over all threads. */
#ifndef TUTTI_EXEC_RUN_ALLOCATIONS_TEST_H
#define TUTTI_EXEC_RUN_ALLOCATIONS_TEST_H

#include <stdbool.h>
#include <stdint.h>

/* False where a sanitizer has the allocator. */
bool tutti__allocations_counted(void);
/* malloc, calloc, realloc, aligned ones and mmap from here on; with TUTTI_TEST_ALLOCATIONS set each
 * says on stderr where it was made. */
void tutti__allocations_begin(void);
int64_t tutti__allocations_end(void);

#endif
