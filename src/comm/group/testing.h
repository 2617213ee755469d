/* testing.h: groups of threads for the tests of this room. */
#ifndef TUTTI_COMM_GROUP_TESTING_H
#define TUTTI_COMM_GROUP_TESTING_H

#include "base/test.h"
#include "comm/comm.h"

/* Runs work(comm, context) as every rank of a group of threads over an engine; a test fails when a
 * rank returns an error, with its message. */
typedef tutti_status tutti_rank_work(tutti_comm *comm, void *context);
void tutti__test_ranks(int size, const tutti_comm_options *options, tutti_rank_work *work,
                       void *context);
/* The same over every engine of one machine, for at most a minute each. */
enum { TUTTI_TEST_ENGINES = 3 };
extern const char *const tutti__test_engine_names[TUTTI_TEST_ENGINES];
void tutti__test_engines(int size, tutti_rank_work *work, void *context);
/* tutti__test_ranks in processes; rank 0 is the test's own. */
void tutti__test_forked(int size, const tutti_comm_options *options, tutti_rank_work *work,
                        void *context);

/* "127.0.0.1:port,…" with ports that were free a moment ago, for at most 16 ranks. */
void tutti__test_addresses(int count, char *ret_text, size_t size);

#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition))                                                                          \
            return tutti_fail(TUTTI_CHECK_FAILED, "%s:%d: %s", __FILE__, __LINE__, #condition);    \
    } while (0)

/* Element i of rank r's input, small whole numbers, so that sums are exact in every type. */
static inline int tutti__test_value(int rank, int64_t i)
{
    return (int)((i * 7 + rank * 3) % 5) + 1;
}

#endif
