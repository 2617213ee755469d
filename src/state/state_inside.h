/* state_inside.h: the state's struct, shared by this room only. */
#ifndef TUTTI_STATE_STATE_INSIDE_H
#define TUTTI_STATE_STATE_INSIDE_H

#include "state/state.h"

#include <pthread.h>

struct tutti_state {
    pthread_mutex_t lock;     /* guards everything here, every piece's value pointer, every claim */
    pthread_mutex_t begins;   /* variables that begin with a value of their own get it one by one */
    pthread_cond_t idle;      /* nobody commits any more, or claims were given up */
    bool committing;          /* one thread may begin a commit and another end it */
    _Atomic uint64_t version; /* commits of whole runs */
    int holds;           /* runs whose devices still take their values: nobody begins a commit */
    int due;             /* commits that wait for nothing but these: no further run holds */
    tutti_map variables; /* name → tutti_state_variable */
    tutti_map queues;    /* name → tutti_queue */
    bool queues_apart;   /* they are no part of snapshots, nor restored */
    bool mirrored;       /* variables may have pieces on several devices */
    bool shared;         /* by several processes */
    bool follows;        /* and this one is not the first */
    bool gathered;       /* some variables hold values that were gathered */
    int compressors; /* that compress sums of gradients; 0: what such ones left out is passed over
                      */
    int compressor;  /* the first of them here */
    tutti_map error_feedback; /* "REPLICA NAME" → error_feedback.c's */
    tutti_map expected;       /* name → tutti_expected, or NULL once taken */
};

/* A value that waits for its variable. */
typedef struct tutti_expected {
    tutti_tensor *value; /* on the host */
    char from[];         /* the file that it is of, or "" */
} tutti_expected;

/* expected.c: all under the lock. */
const tutti_expected *tutti__expected_find(const tutti_state *state,
                                           const char *name); /* or NULL */
void tutti__expected_drop(tutti_state *state, const char *name);
void tutti__expected_free(tutti_map *all);

/* NULL when the device holds none. Under the lock. */
tutti_piece *tutti__piece_find(const tutti_state_variable *variable, const char *device);
/* NULL past the end. Takes the lock: others may be adding pieces. */
tutti_piece *tutti__piece_at(tutti_state *state, const tutti_state_variable *variable,
                             size_t index);
/* Gives a piece the value that waits for its variable, if there is one. Under the lock. */
tutti_status tutti__piece_expected(tutti_state *state, tutti_piece *piece);
/* A value (whole, contiguous, on the host) to a new tensor in the piece's memory: its box of it. */
tutti_status tutti__piece_of_whole(const tutti_piece *piece, tutti_tensor *whole,
                                   tutti_tensor **ret);
/* Whether the pieces here are the whole variable. Under the lock. */
bool tutti__pieces_cover(const tutti_state_variable *variable);
/* A new tensor in the piece's memory, through the host when need be; with `keep` it holds what
 * `from` does. */
tutti_status tutti__piece_copy(const tutti_piece *piece, tutti_tensor *from, bool keep,
                               tutti_tensor **ret);

/* Its present value is a sum over processes of which the others have parts; both say nothing of a
 * variable that has one value everywhere. Under the lock. */
bool tutti__variable_lies_apart(const tutti_state *state, const tutti_state_variable *variable);

/* together.c: what was gathered is of a commit before. Under the lock. */
void tutti__state_drop_gathered(tutti_state *state);

/* queues.c: whether a value of a checkpoint is that of a queue which is not restored. */
bool tutti__state_passes_over(const tutti_state *state, const char *name);
/* error_feedback.c: whether it is what compressed sums left out, and nobody compresses here. */
bool tutti__error_feedback_passes_over(const tutti_state *state, const char *name);
void tutti__error_feedback_free(tutti_map *all);
/* queues_save.c: appends what the queues hold. */
tutti_status tutti__snapshot_queues(tutti_state *state, tutti_snapshot *snapshot);
/* queues_restore.c: gives a queue what waits for it, if something does. What does not fit stays
 * where it is, and so does what the queue holds. Under the lock. */
tutti_status tutti__queue_expected(tutti_state *state, const char *name, tutti_queue *queue);

#endif
