/* coll.h: an algorithm for collectives. One file each in coll/, ending in one descriptor.
 * tables: tutti_coll
 *
 * An algorithm is plain blocking code over send, recv and exchange with the ranks of the group. It
 * runs on all ranks of the group at once, in the order of calls. A failure ends the group, so
 * nothing needs to be put in order behind one. */
#ifndef TUTTI_COMM_COLL_COLL_H
#define TUTTI_COMM_COLL_COLL_H

#include "comm/coll/area.h"
#include "comm/coll/fold.h"
#include "tutti/comm.h"

typedef enum tutti_operation {
    TUTTI_BARRIER,
    TUTTI_BROADCAST,
    TUTTI_REDUCE,
    TUTTI_ALL_REDUCE,
    TUTTI_REDUCE_SCATTER,
    TUTTI_ALL_GATHER,
    TUTTI_GATHER,
    TUTTI_SCATTER,
    TUTTI_ALL_TO_ALL,
    TUTTI_OPERATION_COUNT
} tutti_operation;
extern const char *const tutti__operation_names[TUTTI_OPERATION_COUNT];
/* TUTTI_OPERATION_COUNT when there is none of that name. */
tutti_operation tutti__operation_find(const char *name);

/* One call. */
/* Where bytes [offset, offset + size) of a rank's block go, instead of into one memory. */
typedef struct tutti_comm_into {
    void (*place)(void *context, int rank, size_t offset, const void *bytes, size_t size);
    void *context;
} tutti_comm_into;

/* What is reduced beside the blocks of a reduce_scatter, for all ranks, in place. */
typedef struct tutti_comm_common {
    void *data;
    int64_t count;
    bool done;
} tutti_comm_common;

typedef struct tutti_collective {
    tutti_comm *comm;
    int rank, size;
    tutti_operation operation;
    const char *name; /* of the operation, with the caller's label */
    const void *in;
    void *out;
    int64_t count;         /* elements of one rank's block, see tutti/comm.h */
    const int64_t *counts; /* all_gather: of each rank, or NULL when all have `count` */
    uint64_t pieces;       /* all_reduce: a hash of the sizes of which `count` is the sum; 0: one */
    tutti_dtype dtype;
    size_t element; /* bytes */
    tutti_reduction reduction;
    tutti_fold_function *fold;
    int root;
    const tutti_comm_codec *codec;
    tutti_compressor *compressor;
    int shards;
    bool folded;         /* the input's blocks are nodes of the tree, not shards */
    const char *between; /* hierarchical: algorithm between machines, or NULL */
    const char *inside;  /* hierarchical: algorithm within machines, or NULL */
    uint32_t tag;        /* new for each call */
    int64_t deadline_ns;
    const tutti_comm_into *into; /* all_gather: others' blocks, straight from their memory where the
                                    algorithm can, which then sets `placed`; or NULL */
    bool placed;
    tutti_comm_common *common; /* reduce_scatter: set `done` where the algorithm does this too. With
                                  it ranks meet again before anybody writes to others' blocks of
                                  `in`, so that none has to wait until all have read; or NULL */
} tutti_collective;

/* What a formula is asked. */
typedef struct tutti_cost_query {
    const tutti_comm_cost *cost;
    int ranks;    /* p */
    double bytes; /* M: of the whole message; of one block for all_gather, scatter, all_to_all, … */
    tutti_comm_link link;
    double share;                 /* ranks that send through one machine's card at a time; 0: 1 */
    const tutti_comm_cost *quiet; /* of several lanes: as if the others were not at work; or NULL */
} tutti_cost_query;

typedef struct tutti_coll {
    const char *name, *doc;
    bool shared;    /* all ranks must share memory */
    bool special;   /* only where its own options ask for it: codec, shards */
    bool machines;  /* only for groups of several machines */
    bool native;    /* only for all ranks together, where the engine has collectives of its own */
    bool all_cross; /* all ranks of a machine send to others at the same time */
    double few;     /* the part of its time in which two ranks are at work, and the others wait */
    bool in_parts;  /* large all-reduces are better done part by part, while caches hold them */
    struct {
        tutti_status (*run)(tutti_collective *collective); /* NULL: not this operation */
        double (*cost)(const tutti_cost_query *query);     /* seconds */
        const char *formula; /* a: alpha, b: beta, g: gamma, p: ranks, M: bytes */
    } on[TUTTI_OPERATION_COUNT];
} tutti_coll;

/* A formula's seconds; where several lanes carry a part each at the same time, of one's part. */
double tutti__coll_cost(const tutti_cost_query *query, const tutti_coll *by,
                        tutti_operation operation);
/* On all lanes, where it is large. */
tutti_status tutti__coll_run(tutti_collective *collective, const tutti_coll *by);
/* NULL when there is none. */
const tutti_coll *tutti__coll_find(const char *name);
/* Whether the group has what it needs: shared memory, several machines, an engine's own. */
bool tutti__coll_possible(const tutti_coll *coll, const tutti_comm *comm);
/* Why this call of a group that has it all cannot be done by it, in words; NULL: it can. */
const char *tutti__coll_lacks(const tutti_coll *coll, const tutti_collective *collective);
/* The cheapest that can be used for this call. */
const tutti_coll *tutti__coll_choose(const tutti_collective *collective);
/* The message's size as formulas mean it. */
int64_t tutti__coll_bytes(const tutti_collective *collective);

/* Blocking, with the call's deadline. Ranks are the group's. Sizes in bytes; 0 is fine. */
tutti_status tutti__coll_send(tutti_collective *collective, int to, const void *data, size_t size);
tutti_status tutti__coll_recv(tutti_collective *collective, int from, void *data, size_t size);
tutti_status tutti__coll_exchange(tutti_collective *collective, int to, const void *out,
                                  size_t out_size, int from, void *in, size_t in_size);
/* The same in pieces, of which each is folded into `target` while the next is on its way:
 * target = got ∘ own, or own ∘ got with `after`. `own` may be `target`, and so may `out`: then a
 * piece has left before it changes. `room` takes TUTTI_FOLD_ROOM bytes. Counts in elements. */
enum { TUTTI_FOLD_PIECE = 512 << 10, TUTTI_FOLD_ROOM = 2 * TUTTI_FOLD_PIECE };
tutti_status tutti__coll_exchange_fold(tutti_collective *collective, int to, const void *out,
                                       int64_t out_count, int from, const void *own, void *target,
                                       int64_t target_count, bool after, void *room);
/* Any at once, to and from any ranks; those between two ranks in the same order on both. */
typedef struct tutti_transfer {
    bool outgoing;
    int peer;
    void *data;
    size_t size;
} tutti_transfer;
tutti_status tutti__coll_transfer(tutti_collective *collective, const tutti_transfer *transfers,
                                  int count);
/* Many at once: to each rank r but this one out[r], from each in[r]; one of no bytes is a message
 * too, wherever it lies. */
tutti_status tutti__coll_exchange_all(tutti_collective *collective, const struct iovec *out,
                                      const struct iovec *in);
/* Memory that stays the group's; contents are undefined. */
tutti_status tutti__coll_scratch(tutti_collective *collective, size_t size, void **ret_memory);

/* Where they are not the same memory already; they may overlap. */
void tutti__coll_copy(const tutti_collective *collective, void *to, const void *from, size_t size);
/* out = a ∘ b, in this order. */
static inline void tutti__coll_fold(const tutti_collective *c, void *out, const void *a,
                                    const void *b, int64_t count)
{
    if (count > 0)
        c->fold(out, (const void *[]){a, b}, 2, count);
}

/* Where the i-th of `parts` parts of `count` elements begins; parts differ by at most one. */
static inline int64_t tutti__coll_cut(int64_t count, int parts, int i)
{
    return count / parts * i + (count % parts) * i / parts;
}

/* Elements [low, low + count) of a message whose elements lie side by side. */
tutti_collective tutti__coll_part(const tutti_collective *whole, int64_t low, int64_t count);

/* Formulas: one message of `bytes`, one while as much comes the other way, an addition, a copy. */
double tutti__cost_message(const tutti_cost_query *query, double bytes);
double tutti__cost_exchange(const tutti_cost_query *query, double bytes);
double tutti__cost_add(const tutti_cost_query *query, double bytes);
double tutti__coll_cost_move(const tutti_cost_query *query, double bytes);
/* A copy of a block, y += x, z = x + y, while `touched` bytes pass through a rank's caches. */
double tutti__coll_cost_move_block(const tutti_cost_query *query, double bytes, double touched);
double tutti__coll_cost_add_in(const tutti_cost_query *query, double bytes, double touched);
double tutti__coll_cost_add_into(const tutti_cost_query *query, double bytes, double touched);
/* One more source of a sum that is written to other memory: it is read, and added. */
double tutti__coll_cost_source(const tutti_cost_query *query, double bytes, double touched);
/* The same by one rank alone, while those whose memory it reads wait. */
double tutti__coll_cost_source_alone(const tutti_cost_query *query, double bytes);
/* A rank's copy of its own block, while those of all ranks pass through its caches. */
double tutti__coll_cost_own(const tutti_cost_query *query);
/* One block, as a message or exchanged, of an operation in which `touched` bytes pass through a
 * rank's caches, of buffers that are given, got and of its own; where the constants were measured
 * it was twice the message. A short message is not taken out while it is still put in. Whichever of
 * the two is dearer. */
double tutti__coll_cost_message_block(const tutti_cost_query *query, double bytes, double touched);
double tutti__coll_cost_exchange_block(const tutti_cost_query *query, double bytes, double touched);
/* One of which what is given is in the caches, and what comes is not. */
double tutti__coll_cost_exchange_again(const tutti_cost_query *query, double bytes, double touched);
/* A block for each of the others, with all of them at once: what their links hold passes through
 * the caches too. */
double tutti__coll_cost_exchange_many(const tutti_cost_query *query, double bytes, double touched);
/* A large all-reduce of ranks of one machine goes in parts of TUTTI_PART bytes for each rank, one
 * after the other: in how many, at least 1. */
enum { TUTTI_PART = 512 << 10 };
int tutti__coll_parts(double bytes, int ranks);
/* In an all-reduce, an exchange of `count` blocks of the message with as many ranks at once, and
 * the addition of one; of all its parts. */
double tutti__coll_cost_blocks(const tutti_cost_query *query, double bytes, int count);
double tutti__coll_cost_add_block(const tutti_cost_query *query, double bytes);
/* The sender's part of a message, after which the receiver may still be at it; the receiver's part,
 * when it comes late and finds in the link what that holds. */
double tutti__coll_cost_put(const tutti_cost_query *query, double bytes);
double tutti__coll_cost_take(const tutti_cost_query *query, double bytes);
/* An addition of what came in an exchange, and is in the caches, to what lies there, while
 * `touched` bytes pass through them; what it takes longer when the sum goes elsewhere. */
double tutti__coll_cost_sum(const tutti_cost_query *query, double bytes, double touched);
double tutti__coll_cost_elsewhere(const tutti_cost_query *query, double bytes);
/* A copy of `bytes` out of another rank's memory, of `all` that pass through the caches. */
double tutti__coll_cost_pull(const tutti_cost_query *query, double bytes, double all);
/* An exchange or a message of `bytes` at a time, of `all` in the end: caches hold what is on its
 * way, not what was. */
double tutti__cost_stream(const tutti_cost_query *query, double bytes, double all);
double tutti__cost_stream_message(const tutti_cost_query *query, double bytes, double all);
/* An addition of what comes in, piece by piece, while it is in the caches. */
double tutti__cost_fold(const tutti_cost_query *query, double bytes);
/* A message whose pieces are added as they come, while the sender sends more: to what lies there,
 * or into other memory. */
double tutti__coll_cost_folded(const tutti_cost_query *query, double bytes);
double tutti__coll_cost_folded_into(const tutti_cost_query *query, double bytes);
/* Logarithm to the base 2, rounded up. */
int tutti__log2(int ranks);

#endif
