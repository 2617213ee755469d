/* journal.h: what a coordinator has to know again after it was killed: which closures are done,
 * with their outcomes, and the last mark. A record is its bytes, their number and their hash; one
 * that was cut short by the end is left out. Without a path it lives in memory (simulators). */
#ifndef TUTTI_SERVICE_COORDINATOR_JOURNAL_H
#define TUTTI_SERVICE_COORDINATOR_JOURNAL_H

#include "base/world.h"
#include "service/store/saved.h"

typedef struct tutti_closure_outcome {
    tutti_status status;
    char *text; /* of a failure; from malloc */
    uint8_t *results;
    size_t size;
} tutti_closure_outcome;

void tutti__closure_outcome_free(tutti_closure_outcome *outcome);
tutti_status tutti__closure_outcome_make(tutti_status status, const char *text, const void *results,
                                         size_t size, tutti_closure_outcome *ret);

typedef struct tutti_journal_entry {
    uint64_t number, hash; /* of the closure's function, arguments and keys */
    tutti_closure_outcome outcome;
} tutti_journal_entry;

typedef struct tutti_journal {
    char *path; /* NULL: none */
    tutti_file *file;
    int64_t size;
    uint64_t store;          /* which servers its outcomes are of */
    int64_t position;        /* of the last mark */
    uint64_t next, next_key; /* closures and keys at the mark */
    uint8_t *state;          /* of servers that end with the process, at the mark; or NULL */
    size_t state_bytes;
    TUTTI_VEC(tutti_journal_entry) done; /* since the mark, by number */
} tutti_journal;

/* Reads what is there, or begins. CORRUPT when the file is no journal. */
tutti_status tutti__journal_open(const char *path, tutti_journal *ret_journal);
void tutti__journal_close(tutti_journal *journal); /* a zeroed one is fine */
/* The outcomes are of these servers. Others' are forgotten: what they applied is gone, and the
 * program goes on from the mark. */
tutti_status tutti__journal_of_store(tutti_journal *journal, uint64_t store);
tutti_status tutti__journal_done(tutti_journal *journal, uint64_t number, uint64_t hash,
                                 const tutti_closure_outcome *outcome);
const tutti_journal_entry *tutti__journal_find(const tutti_journal *journal, uint64_t number);
/* Everything so far is behind the program, which is at `position`: outcomes go. `state` is copied.
 */
tutti_status tutti__journal_mark(tutti_journal *journal, int64_t position, uint64_t next,
                                 uint64_t next_key, const void *state, size_t state_bytes);

#endif
