/* state.h: what lives longer than a step: variables with their pieces, and queues.
 *
 * Invariants:
 *  1. A variable is known by name; its type is fixed when it is made.
 *  2. A piece's value is a tensor in its device's memory. A run takes a reference to the value it
 *     reads (a snapshot); a commit writes in place when nobody else holds one, else into a copy
 *     that takes its place. Values are taken between commits, never during one, so that nobody sees
 *     half a step; a run that has its values neither waits for writers nor keeps them waiting.
 *  3. Writes happen between tutti__state_commit_begin and _end, one committer at a time.
 *  4. Pieces in one memory may hold the same tensor. Each counts as another's reference: what is
 *     written for one of them goes to a copy, unless it is written for all (tutti__pieces_share).
 *  5. What a claim covers is written by the claimer only. So a run that computes a new value from
 *     the present one before its commit loses nobody's update.
 */
#ifndef TUTTI_STATE_STATE_H
#define TUTTI_STATE_STATE_H

#include "base/container.h"
#include "tensor/block.h"
#include "tensor/queue.h"
#include "tensor/tensor.h"
#include "tutti/comm.h"

typedef struct tutti_state tutti_state;

/* A variable's values on one device: the whole of it, or what a sharding gives to that device. */
typedef struct tutti_piece {
    struct tutti_state_variable *variable;
    char device[64];
    const tutti_memory *memory;
    tutti_type type;     /* of the piece */
    tutti_box box;       /* what it is of the variable */
    bool first;          /* no rank before this one holds the same box */
    tutti_tensor *value; /* NULL until initialised; under the state's lock */
} tutti_piece;

/* Of a counter, see ticket.c; under the lock. */
typedef struct tutti_tickets {
    int64_t next, done;
    int out; /* tickets that were not returned yet */
} tutti_tickets;

typedef struct tutti_state_variable {
    char *name;
    char *slot_of; /* the variable whose optimizer slot this is, or "" */
    tutti_type type;
    bool trainable;
    _Atomic uint64_t version; /* counts writes, also of its copies on several devices at once */
    bool claimed;             /* under the state's lock */
    _Atomic bool partial;     /* its value is the sum over its pieces; said by every program */
    _Atomic bool averaged;    /* it is their mean */
    _Atomic uint64_t joined;  /* the version in which all processes put their values together */
    _Atomic bool torn;        /* a commit failed half-way: it is neither old nor new */
    _Atomic bool cut;         /* its pieces are boxes of it; other processes may have others */
    tutti_tensor *gathered;   /* the whole of one that is cut, until the next commit; or NULL */
    tutti_tickets tickets;
    TUTTI_VEC(tutti_piece *) pieces;
} tutti_state_variable;

tutti_status tutti__state_create(tutti_state **ret);
void tutti__state_destroy(tutti_state *state); /* NULL is fine */
/* The queues are one process's of several, and checkpoints are the job's: what they hold is left
 * out of snapshots, and what a checkpoint has of them is passed over. Before anything else. */
void tutti__state_leave_queues(tutti_state *state);

/* From now on variables may have pieces on several devices, which a strategy's programs keep equal;
 * or, as at first, each lies on one device. */
void tutti__state_mirror(tutti_state *state, bool mirrored);

/* The state is held by several processes together, of which this one is not the first: of a sum
 * over all of them that is given as a whole the first one holds everything, the others nothing.
 * Before anything else. */
void tutti__state_share(tutti_state *state, bool first);

/* Finds a variable or makes it; INVALID when it exists with another type. Thread-safe. */
tutti_status tutti__state_variable(tutti_state *state, const char *name, const tutti_type *type,
                                   const char *slot_of, bool trainable, tutti_state_variable **ret);
tutti_state_variable *tutti__state_find(tutti_state *state, const char *name); /* or NULL */
/* Gives a variable its value, also one that is not there yet: it is then made with that value.
 * Retains the tensor, whose contents must not change. */
tutti_status tutti__state_expect(tutti_state *state, const char *name, tutti_tensor *value);
/* The same of a value out of a file, which messages name when it does not fit its variable. */
tutti_status tutti__state_expect_from(tutti_state *state, const char *name, tutti_tensor *value,
                                      const char *from);
/* INVALID, with the file, the variable and both types, unless a value that is saved can be that of
 * a variable. */
tutti_status tutti__saved_fits(const char *from, const char *name, const tutti_type *saved,
                               const tutti_type *has);
/* A value that waits for its variable (borrowed), or NULL. */
tutti_tensor *tutti__state_expected(tutti_state *state, const char *name);
/* Drops a value that waits for its variable, if there is one. */
void tutti__state_forget(tutti_state *state, const char *name);

/* Every variable that has a value, as of one moment between two commits, in the order they were
 * made; values that wait for theirs; and what the queues hold, each as of a moment after that.
 * Values are held, not copied: a commit that would write to them writes to a copy instead. Of a
 * variable that is cut there is an entry for each box that this process is the first to hold. */
typedef struct tutti_snapshot_entry {
    char *name;
    tutti_tensor *value;
    tutti_type type; /* of the variable; where the value is a box of it: */
    bool cut;
    tutti_box box;
} tutti_snapshot_entry;
typedef struct tutti_snapshot {
    size_t count;
    tutti_snapshot_entry *entries;
} tutti_snapshot;
tutti_status tutti__snapshot_take(tutti_state *state, tutti_snapshot *ret);
void tutti__snapshot_release(tutti_snapshot *snapshot); /* zeroed is fine */

/* Whether that variable is there and has been given a value, or its value waits. */
bool tutti__state_has_value(tutti_state *state, const char *name);
/* All variables in the order they were made: index from 0; NULL past the end. */
tutti_state_variable *tutti__state_at(tutti_state *state, size_t index);

/* How often variables were written, all but the one of that name: equal numbers mean equal values.
 */
uint64_t tutti__state_changes(tutti_state *state, const char *but);

/* The piece of a variable on a device (the whole variable), found or made; a new one begins with
 * the value that the variable has elsewhere, if any. INVALID when that is on another device already
 * and the state is not mirrored: nobody would keep the two equal. */
tutti_status tutti__state_piece(tutti_state *state, tutti_state_variable *variable,
                                const char *device, const tutti_memory *memory, tutti_piece **ret);

/* The same of a piece that is a box of the variable, as a sharding gives it to the device. `first`:
 * no rank before this one holds the same box; `local`: devices of this process that hold boxes of
 * it, so that a value which waits for the variable is given up when all of them have theirs.
 * INVALID where the device holds another box of it. */
typedef struct tutti_piece_box {
    tutti_box box;
    bool first;
    int local;
} tutti_piece_box;
tutti_status tutti__state_piece_box(tutti_state *state, tutti_state_variable *variable,
                                    const tutti_piece_box *box, const char *device,
                                    const tutti_memory *memory, tutti_piece **ret);

/* Drops the pieces of a variable on other devices than these. No program may be bound to them. */
void tutti__state_keep(tutti_state *state, tutti_state_variable *variable, int count,
                       const char *const *devices);

/* Between these two nobody commits, so that values taken there belong to one step. Begin waits for
 * a commit under way (it may be writing in place); not to be called inside one. Holds the state's
 * lock: only take values. */
void tutti__state_read_begin(tutti_state *state);
void tutti__state_read_end(tutti_state *state);
/* Between them: a reference to the present value, or NULL when it is not initialised. */
tutti_tensor *tutti__piece_take(const tutti_piece *piece);
/* All three for one value. */
tutti_tensor *tutti__piece_acquire(tutti_state *state, const tutti_piece *piece);

/* ---- hold.c ---- */
/* Between these two no commit begins, so that values which several devices take one after the other
 * belong to one step. Whoever holds takes values and waits for nobody; one thread may begin and
 * another end it. Hold waits for a commit under way and for those that wait for holds to end, so
 * that readers never keep writers out for long. */
void tutti__state_hold(tutti_state *state);
void tutti__state_unhold(tutti_state *state);

/* All of these variables for the caller, or none: waits while others claim one of them. Readers are
 * not kept waiting. A claim is made before values are taken; who claims does not claim again before
 * he has given up all he has, so that claimers never wait for each other in a circle. */
tutti_status tutti__state_claim(tutti_state *state, int count,
                                tutti_state_variable *const *variables, int64_t deadline);
void tutti__state_unclaim(tutti_state *state, int count, tutti_state_variable *const *variables);

/* Between these two the caller alone writes: variables that he claims, or that nobody claims. */
void tutti__state_commit_begin(tutti_state *state);
void tutti__state_commit_end(tutti_state *state);
/* The same, but waits while others claim one of these variables. On failure no commit has begun. */
tutti_status tutti__state_commit_begin_on(tutti_state *state, int count,
                                          tutti_state_variable *const *variables, int64_t deadline);
/* Inside a commit: memory to write the next value into, which becomes the piece's value. It holds
 * the present value when `keep`, else anything. UNINITIALIZED when keep and there is none. The
 * pointer is the state's; valid until the commit ends. */
tutti_status tutti__piece_write(tutti_state *state, tutti_piece *piece, bool keep,
                                tutti_tensor **ret);
/* Inside a commit: puts a new tensor (consumed) in the place of the value. */
void tutti__piece_replace(tutti_state *state, tutti_piece *piece, tutti_tensor *value);

/* ---- ticket.c ---- */
/* A counter is a variable, an i64 scalar, to which every run that draws from it adds 1 at its
 * commit. Each such run has a ticket, so that several at once see different values of the counter:
 * each the value that it has when all who came before have committed. */
typedef struct tutti_ticket {
    tutti_state_variable *counter; /* NULL: there is none, and the run draws nothing */
    int64_t number;
    bool seen; /* what it draws is drawn: the counter is only to be advanced */
} tutti_ticket;
/* A run that claims the counter takes its ticket after that. */
tutti_ticket tutti__ticket_take(tutti_state *state, tutti_state_variable *counter);
/* When the run is over. */
void tutti__ticket_return(tutti_state *state, const tutti_ticket *ticket);
/* What a run with this ticket has to add to a value of the variable that it takes, between
 * tutti__state_read_begin and _end; 0 but of the counter. */
int64_t tutti__ticket_ahead(const tutti_ticket *ticket, const tutti_state_variable *variable);
/* After that: puts the sum, a tensor of its own, in the place of the value that was taken. */
tutti_status tutti__ticket_apply(const tutti_piece *piece, int64_t ahead, tutti_tensor **value);
/* Inside a commit, before it adds 1: sees to it that the counter never goes back. */
tutti_status tutti__ticket_commit(tutti_state *state, const tutti_ticket *ticket);

/* ---- version.c ---- */
/* Commits are numbered: the version counts those of whole runs, in a job of several processes those
 * in which they meet. So it is equal on all of them between two steps. */
uint64_t tutti__state_version(const tutti_state *state);
/* Inside a commit: its writes make the next version. */
void tutti__state_count(tutti_state *state);
/* The values of the variables that all processes hold alike, as of one moment between two commits;
 * what each has a part of (.on_read) is not among them. */
typedef struct tutti_version_value {
    tutti_state_variable *variable;
    tutti_tensor *value; /* on the host, contiguous */
} tutti_version_value;
typedef struct tutti_version_values {
    uint64_t number;
    size_t count;
    tutti_version_value *list;
} tutti_version_values;
tutti_status tutti__version_take(tutti_state *state, tutti_version_values *ret);
/* Makes them the values here, in one commit: on failure nothing has changed. */
tutti_status tutti__version_put(tutti_state *state, const tutti_version_values *values);
void tutti__version_release(tutti_version_values *values); /* zeroed is fine */

/* CLOSED when a commit that wrote it failed half-way, until it is given a value. */
tutti_status tutti__variable_intact(const tutti_state_variable *variable);

/* Whole values through the host: for checkpoints and for users. Of a variable that is cut over
 * several processes each sets the boxes that it holds; none can get the whole alone (CLOSED). */
tutti_status tutti__variable_get(tutti_state *state, tutti_state_variable *variable,
                                 tutti_tensor **ret);
tutti_status tutti__variable_set(tutti_state *state, tutti_state_variable *variable,
                                 tutti_tensor *value);
/* The same, unless it has a value: of threads that do this at once, the first sets it. */
tutti_status tutti__variable_begin(tutti_state *state, tutti_state_variable *variable,
                                   tutti_tensor *value);
/* The value on one device only; false where it has none there. */
tutti_status tutti__variable_set_on(tutti_state *state, tutti_state_variable *variable,
                                    const char *device, tutti_tensor *value, bool *ret_set);

/* Whether the pieces of this process are the whole variable. */
bool tutti__variable_local(tutti_state *state, const tutti_state_variable *variable);
/* The variable's value where this process is the first to hold a box of it, zeros elsewhere: the
 * sum of their bytes over all processes is the whole. A new tensor on the host. */
tutti_status tutti__variable_own(tutti_state *state, tutti_state_variable *variable,
                                 tutti_tensor **ret);

/* ---- together.c ---- */
/* How values of several processes become one: the sum over all of them, in place. */
typedef struct tutti_state_sum {
    tutti_status (*sum)(void *context, void *data, int64_t count, tutti_dtype dtype);
    void *context; /* of sum; NULL sum: there is one process */
    int replicas;  /* of all processes */
} tutti_state_sum;
/* Whether there are variables that are the sum or the mean over replicas; `slots`: also optimizer
 * slots. */
bool tutti__state_apart(tutti_state *state, bool slots);
/* Of these: what replicas have is put together. Without `slots` those are known to hold nothing. A
 * sum is then the first replica's and the others begin anew with nothing; a mean is everybody's.
 * Readers see no difference, and the first
 * process has what a snapshot needs. Between two steps, by all processes. */
tutti_status tutti__state_join(tutti_state *state, bool slots, const tutti_state_sum *sum);
/* Whether variables are cut over processes, so that none can save them alone. */
bool tutti__state_has_cut(tutti_state *state);
/* The whole of one of them, by all processes between two steps: summed over them by bytes. */
tutti_status tutti__variable_gather(tutti_state *state, tutti_state_variable *variable,
                                    const tutti_state_sum *sum, tutti_tensor **ret);
/* The same of all of them for the next snapshot of the first process. */
tutti_status tutti__state_gather(tutti_state *state, const tutti_state_sum *sum);
/* A sum or mean, from the values of its pieces (taken; borrowed here). A new tensor on the host. */
tutti_status tutti__values_join(const tutti_type *type, size_t count, tutti_tensor *const *values,
                                bool averaged, tutti_tensor **ret);

/* ---- error_feedback.c ---- */
/* Sums of gradients are compressed, by so many that leave something out, and this process, or its
 * first replica, is that one of them; 0: they are not. Before anything is restored. */
void tutti__state_compress(tutti_state *state, int of, int at);
/* The compressor of a value that a replica of this process (from 0) sums, found or made. A new one
 * begins with what a checkpoint has of it; a known one is about to be used: what was gathered of it
 * is forgotten. */
tutti_status tutti__state_error_feedback(tutti_state *state, int replica, const char *name,
                                         const char *compression, const tutti_type *type,
                                         tutti_compressor **ret);
/* Nothing was left out, and nothing of it is expected: before a checkpoint is restored. */
void tutti__error_feedback_restart(tutti_state *state);
/* How the first process gets at what others left out: `all` is [processes][count] there. */
typedef struct tutti_state_gather {
    tutti_status (*gather)(void *context, const float *mine, int64_t count, float *all);
    void *context; /* of gather; NULL gather: there is one process */
    int processes;
} tutti_state_gather;
/* Whether something may have been left out. */
bool tutti__state_has_error_feedback(tutti_state *state);
/* What was left out so far goes into the next snapshot of the first process, unless it changes
 * before that: one after the other what each process, or each replica of the only process, left out
 * of a value, then what all of them have alike. Where a training goes on with as many, each takes
 * up its own, else the first one all of it. Between two steps, by all processes. */
tutti_status tutti__state_gather_error_feedback(tutti_state *state,
                                                const tutti_state_gather *gather);

/* Queues by name, found or made. One of that name but of another kind is TUTTI_INVALID. */
tutti_status tutti__state_queue_ordered(tutti_state *state, const char *name, int64_t capacity,
                                        int type_count, const tutti_type *types,
                                        const tutti_queue_order *order, tutti_queue **ret);
/* Whether it is the name of what a snapshot holds of a queue. */
bool tutti__is_queue_part(const char *name);
/* Gives queues that are there what waits for them; one that is made later takes it by itself. Where
 * one of them cannot take it, all stay as they are and all of it goes on waiting. */
tutti_status tutti__state_fill_queues(tutti_state *state);
/* Wakes everything that waits in a queue, so that it looks at its cancel flag. */
void tutti__state_wake(tutti_state *state);

#endif
