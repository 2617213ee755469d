/* comm.h: collectives between ranks: threads of a process, processes of a machine, machines.
 *
 *     tutti_comm *comm;
 *     TUTTI_TRY(tutti_comm_open(cluster, NULL, &comm));          // every process of the job
 *     TUTTI_TRY(tutti_comm_all_reduce(comm, x, x, n, TUTTI_F32, TUTTI_SUM, NULL));
 *     TUTTI_TRY(tutti_comm_all_reduce(comm, x, x, n, TUTTI_F32, TUTTI_SUM,
 *                                     TUTTI_CALL(.algorithm = "ring", .timeout = 5)));
 *     TUTTI_TRY(tutti_comm_close(comm));
 *
 * All ranks of a group call the same collectives with the same sizes in the same order. One thread
 * of a rank at a time calls functions of one group, whichever thread that is; different groups may
 * be used by different threads at once. Asynchronous calls may be started and waited for by several
 * threads at once; they run in the order in which they were started, beside the program, also while
 * nobody waits for them. Every call has a deadline. Where a collective fails, the group is broken:
 * all later calls, on every rank that can be reached, return the first failure with its message. */
#ifndef TUTTI_COMM_H
#define TUTTI_COMM_H

#include "tutti/base.h"
#include "tutti/cluster.h"
#include "tutti/reduction.h"
#include "tutti/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A group of ranks, as one rank sees it. */
typedef struct tutti_comm tutti_comm;
/* One asynchronous call under way. */
typedef struct tutti_request tutti_request;
/* What is remembered of one tensor between its compressed all-reduces. */
typedef struct tutti_compressor tutti_compressor;

/* What a collective costs. Times in seconds, for links of one class. A message of n bytes takes
 * alpha + n * beta(n); beta is known at 4, 32, 64, 256 and 512 KiB, 1, 4, 8, 16, 32 and 64 MiB,
 * and between them the time changes linearly with n. */
enum { TUTTI_COMM_SIZES = 11, TUTTI_COMM_AT_MIB = 5 /* which of them is 1 MiB */ };
typedef enum tutti_comm_link {
    TUTTI_LINK_WITHIN,  /* ranks of one machine */
    TUTTI_LINK_BETWEEN, /* ranks of different machines */
    TUTTI_LINK_COUNT
} tutti_comm_link;
/* What it takes to set lanes going, and seconds a byte on one of them while all are at work; 0: as
 * by itself. See tutti_comm_cost for what each is. */
typedef struct tutti_comm_lane {
    double start;
    double beta[TUTTI_COMM_SIZES], exchange[TUTTI_COMM_SIZES];
    double of_two[TUTTI_COMM_SIZES]; /* beta while the lanes of two ranks are at work; 0: beta */
    double fold[TUTTI_COMM_SIZES], fold_into[TUTTI_COMM_SIZES], sum[TUTTI_COMM_SIZES];
    double gamma[TUTTI_COMM_SIZES], move[TUTTI_COMM_SIZES], into[TUTTI_COMM_SIZES];
} tutti_comm_lane;
typedef struct tutti_comm_cost {
    struct {
        double alpha;                      /* of one message */
        double beta[TUTTI_COMM_SIZES];     /* seconds a byte, one way */
        double exchange[TUTTI_COMM_SIZES]; /* seconds a byte while as much comes the other way */
        double turn;                       /* extra cost of an exchange beyond one message */
    } link[TUTTI_LINK_COUNT];
    double gamma[TUTTI_COMM_SIZES]; /* seconds a byte: y += x */
    double phase;                   /* shared memory: all ranks wait for each other once */
    double copy[TUTTI_COMM_SIZES];  /* shared memory: seconds a byte of an all-reduce in place */
    int hosts;                      /* machines that the ranks are distributed over; 0 means 1 */
    double move[TUTTI_COMM_SIZES];  /* seconds a byte: y = x; 0: three quarters of gamma */
    double pull[TUTTI_COMM_SIZES];  /* the same from another rank's memory; 0: as move */
    /* Seconds a byte of one more source of a sum that one rank makes out of all ranks' memory while
     * they wait; 0: `into` beyond `move`. */
    double source[TUTTI_COMM_SIZES];
    double call;                   /* of calling at all, before anything is sent */
    double hold[TUTTI_LINK_COUNT]; /* bytes that a link takes in while the receiver is busy */
    /* Seconds a byte that a message takes longer when it is added, as it comes, to what lies there
     * (0: gamma), and when the sum goes into other memory (0: that, and `into` beyond gamma). */
    double fold[TUTTI_LINK_COUNT][TUTTI_COMM_SIZES], fold_into[TUTTI_LINK_COUNT][TUTTI_COMM_SIZES];
    double into[TUTTI_COMM_SIZES]; /* seconds a byte: z = x + y; 0: gamma and move */
    double sum[TUTTI_LINK_COUNT][TUTTI_COMM_SIZES]; /* seconds a byte that an exchange takes longer
                                                       when what comes is added; 0: gamma */
    /* Seconds a byte to put into a link what it holds while the receiver is busy, and to take out
     * what it holds; 0: beta. The slower of the two is what a message waits for. */
    double put[TUTTI_LINK_COUNT][TUTTI_COMM_SIZES], take[TUTTI_LINK_COUNT][TUTTI_COMM_SIZES];
    double alone; /* the part of `pull` that a rank takes who pulls alone, where ranks share cores;
                     0: all of it */
    /* Lanes on which large all_reduces, reduces and broadcasts go at the same time, a part on each;
     * 0: 1. */
    int lanes[TUTTI_LINK_COUNT];
    tutti_comm_lane lane[TUTTI_LINK_COUNT];
} tutti_comm_cost;

typedef struct tutti_comm_options {
    size_t struct_size;
    const char *engine;     /* "local", "shm", "tcp", "mpi"; NULL: TUTTI_ENGINE of those that open a
                             * cluster, else shm within a machine, tcp beyond */
    const char *all_reduce; /* algorithms by size, see tutti_comm_spec_check; NULL: by cost */
    int64_t arena_bytes;    /* address space for tutti_comm_allocate, each rank; 0: 1 GiB; 64 TiB at
                             * most */
    int streams;            /* connections between two ranks, tcp; 0: 1 in a machine, 4 beyond,
                             * and one for each lane (TUTTI_LANES) */
    double timeout;         /* seconds that a call may take; 0: 300; INFINITY: any; negative
                             * ones and NaN are refused */
    double join_timeout;    /* seconds until all ranks must have met; 0: 60 */
    bool measure; /* measure all constants of the cost model, on all ranks in the same way (at most
                   * 0.2 s); else an opened group only looks at what messages cost (some ms) */
    const tutti_comm_cost *cost; /* known beforehand; copied */
} tutti_comm_options;
#define TUTTI_COMM_OPTIONS(...) TUTTI_OPTIONS(tutti_comm_options, __VA_ARGS__)

/* The ranks of a cluster meet; returns on all of them or fails with who is missing. `cluster` must
 * outlive the group. Ranks of one machine talk through shared memory, others through sockets. */
TUTTI_API tutti_status tutti_comm_open(const tutti_cluster *cluster,
                                       const tutti_comm_options *options, tutti_comm **ret_comm);
/* `size` ranks for as many threads of this process: ret_comms[r] is for the thread that is rank r.
 * `engine` may be any, also those that need no threads. */
TUTTI_API tutti_status tutti_comm_local(int size, const tutti_comm_options *options,
                                        tutti_comm **ret_comms);
/* The calling process becomes rank 0 and forks `size` - 1 others, where this returns as well, with
 * their rank. To be called before threads are started. A child ends by _exit or exit after
 * tutti_comm_close; rank 0's tutti_comm_close waits for them, as long as a call may take. Where the
 * group is broken it waits for a minute at most, and ends those that have not closed it until then.
 * Engines: shm, tcp. */
TUTTI_API tutti_status tutti_comm_fork(int size, const tutti_comm_options *options,
                                       tutti_comm **ret_comm);
/* Groups of the ranks that give the same `color`, ordered by `key`, then by rank. Collective over
 * `comm`. A negative color takes part in none: *ret_comm is NULL. */
TUTTI_API tutti_status tutti_comm_split(tutti_comm *comm, int color, int key,
                                        tutti_comm **ret_comm);
/* Ends the group on this rank, after what is still queued: collectives, and sends that nobody has
 * waited for, within their deadlines; receives that nobody has waited for end here. Requests cannot
 * be waited for afterwards. For a group that was opened or forked, waits until all ranks have come
 * here, and gives its failure where it is broken; groups that were split from it are closed before
 * it, since it is the one that hears of ranks that die. In every case the handle is gone. NULL is
 * fine. */
TUTTI_API tutti_status tutti_comm_close(tutti_comm *comm);
/* Breaks the group for all ranks that can be reached: pending calls return TUTTI_CANCELLED with
 * `why`. May be called by any thread. */
TUTTI_API void tutti_comm_abort(tutti_comm *comm, const char *why);

/* Which rank this is, 0 … size-1, and how many there are. Any thread may ask. */
TUTTI_API int tutti_comm_rank(const tutti_comm *comm);
TUTTI_API int tutti_comm_size(const tutti_comm *comm);
TUTTI_API int tutti_comm_hosts(const tutti_comm *comm); /* machines in the group */
TUTTI_API const char *tutti_comm_engine(const tutti_comm *comm, int peer); /* "shm", "tcp", … */
/* The cost model in force: measured, given or a guess. */
TUTTI_API void tutti_comm_get_cost(const tutti_comm *comm, tutti_comm_cost *ret_cost);
/* What this rank has sent to others since the group was made: bytes of payload. Shared-memory
 * algorithms send nothing. */
TUTTI_API int64_t tutti_comm_bytes_sent(const tutti_comm *comm);

/* Memory that all ranks of the machine can reach: collectives on it need no copies. Aligned to 64
 * bytes, zeroed when it is new. Where ranks share no memory, or the system has no shared memory
 * left, this is ordinary memory: collectives copy it. */
TUTTI_API tutti_status tutti_comm_allocate(tutti_comm *comm, int64_t bytes, void **ret_memory);
TUTTI_API void tutti_comm_free(tutti_comm *comm, void *memory); /* NULL is fine */

/* Another form for numbers on their way: f32 in, bytes out. `bound` says how many bytes `count`
 * numbers take at most; encode returns how many they took; decode gets exactly those back. */
typedef struct tutti_comm_codec {
    const char *name;
    int64_t (*bound)(void *context, int64_t count);
    int64_t (*encode)(void *context, const float *numbers, int64_t count, void *ret_bytes);
    void (*decode)(void *context, const void *bytes, int64_t size, int64_t count,
                   float *ret_numbers);
    void *context;
} tutti_comm_codec;

/* What a single call may ask for. Zero means the default. */
typedef struct tutti_comm_call {
    size_t struct_size;
    const char *algorithm;   /* by name ("ring") or by size ("tree:64k:ring"); NULL: the group's */
    double timeout;          /* seconds; 0: the group's; negative ones and NaN are refused */
    tutti_request **request; /* set: do not wait; *request is for tutti_comm_wait */
    tutti_dtype wire;        /* all_reduce of f32: TUTTI_BF16 or TUTTI_F16 between ranks */
    const tutti_comm_codec *codec; /* all_reduce of f32: any other form, not with `wire`; must
                                    * outlive the call */
    int shards; /* all_reduce: `in` holds one block of `count` for each shard of this rank */
    /* What is reduced, for messages and the flight recorder: "bucket 3", "dense/kernel". Copied;
     * of asynchronous calls the other pointers in here must stay until the request is done. */
    const char *label;
    tutti_compressor *compressor; /* all_reduce of f32, sum or mean: by what it was made for */
    bool folded; /* with shards: `in` holds one block for each node of the tree that lies wholly in
                    this rank's shards and whose parent does not, in their order */
} tutti_comm_call;
#define TUTTI_CALL(...) TUTTI_OPTIONS(tutti_comm_call, __VA_ARGS__)

/* The collectives. f32 f64 f16 bf16 i32 i64 i8 u8; those that add nothing take every data type but
 * strings. `call` may be NULL. Sizes are in elements. Memory belongs to the caller and must stay
 * until the call, or its request, is done; only outputs change. Inputs and outputs that overlap are
 * refused, unless it says otherwise. Ranks get the same bits; of a NaN, "native" may give each its
 * own. Integers wrap. 16-bit floats are added in f32 and rounded where a partial sum passes between
 * ranks; a mean is divided last, so that one in f16 is infinite where the sum is beyond 65504. */
TUTTI_API tutti_status tutti_comm_barrier(tutti_comm *comm, const tutti_comm_call *call);
TUTTI_API tutti_status tutti_comm_broadcast(tutti_comm *comm, void *data, int64_t count,
                                            tutti_dtype dtype, int root,
                                            const tutti_comm_call *call);
/* `out` [count] is used on the root only; in == out is fine. */
TUTTI_API tutti_status tutti_comm_reduce(tutti_comm *comm, const void *in, void *out, int64_t count,
                                         tutti_dtype dtype, tutti_reduction reduction, int root,
                                         const tutti_comm_call *call);
/* in == out is fine. With `shards` = V the job's batch was cut into V parts of which rank r of p
 * holds [r V / p, (r + 1) V / p); `in` is [parts of this rank, count], and the result has the same
 * bits for every p up to V and every engine. */
TUTTI_API tutti_status tutti_comm_all_reduce(tutti_comm *comm, const void *in, void *out,
                                             int64_t count, tutti_dtype dtype,
                                             tutti_reduction reduction,
                                             const tutti_comm_call *call);
/* `in` [size * count], `out` [count]: block `rank` of the reduction. */
TUTTI_API tutti_status tutti_comm_reduce_scatter(tutti_comm *comm, const void *in, void *out,
                                                 int64_t count, tutti_dtype dtype,
                                                 tutti_reduction reduction,
                                                 const tutti_comm_call *call);
/* `in` [count], `out` [size * count]; `in` may be its own block of `out`. */
TUTTI_API tutti_status tutti_comm_all_gather(tutti_comm *comm, const void *in, void *out,
                                             int64_t count, tutti_dtype dtype,
                                             const tutti_comm_call *call);
/* Rank r gives counts[r] elements; blocks stand one behind the other in `out`. All ranks give the
 * same counts, which are copied. */
TUTTI_API tutti_status tutti_comm_all_gather_uneven(tutti_comm *comm, const void *in,
                                                    const int64_t *counts, void *out,
                                                    tutti_dtype dtype, const tutti_comm_call *call);
/* `in` [count], `out` [size * count] on the root only. */
TUTTI_API tutti_status tutti_comm_gather(tutti_comm *comm, const void *in, void *out, int64_t count,
                                         tutti_dtype dtype, int root, const tutti_comm_call *call);
/* `in` [size * count] on the root only, `out` [count]. */
TUTTI_API tutti_status tutti_comm_scatter(tutti_comm *comm, const void *in, void *out,
                                          int64_t count, tutti_dtype dtype, int root,
                                          const tutti_comm_call *call);
/* Block r of `in` [size * count] goes to rank r; block r of `out` came from rank r. */
TUTTI_API tutti_status tutti_comm_all_to_all(tutti_comm *comm, const void *in, void *out,
                                             int64_t count, tutti_dtype dtype,
                                             const tutti_comm_call *call);

/* Messages between two ranks. Those with the same tag (0 to 2^30) arrive in the order they were
 * sent; sizes must agree: a receive of another size fails, and the message is the next one's. A
 * receive whose deadline passes may be repeated, with the same size: what
 * had come of its message is kept. A send whose deadline passes before anything has left may be
 * repeated too; one that ends half way, or was handed over to MPI, breaks the group for all ranks.
 * What is not asked for yet is kept for the receiver up to 256 MiB of each sender, or a quarter of
 * the memory while it waits for something that was sent later; beyond that the sender, and all
 * behind it, waits. Of `call` a message has the timeout, the label and the request; what says how a
 * collective goes is refused. */
TUTTI_API tutti_status tutti_comm_send(tutti_comm *comm, int to, int tag, const void *data,
                                       int64_t bytes, const tutti_comm_call *call);
TUTTI_API tutti_status tutti_comm_recv(tutti_comm *comm, int from, int tag, void *data,
                                       int64_t bytes, const tutti_comm_call *call);

/* Ends a request: waits for it (for as long as its call may take) and gives its status. The handle
 * is gone afterwards, as are those that nobody has waited for when their group is closed. */
TUTTI_API tutti_status tutti_comm_wait(tutti_request *request);
/* The same, for so many seconds at most: TUTTI_DEADLINE when they have passed, and then the request
 * goes on and is to be waited for again. With any other status the handle is gone: where the call's
 * own deadline has passed, which tutti_comm_wait calls TUTTI_DEADLINE, it is TUTTI_CANCELLED here,
 * with the same message. */
TUTTI_API tutti_status tutti_comm_wait_for(tutti_request *request, double seconds);
/* True when tutti_comm_wait would not wait. */
TUTTI_API bool tutti_comm_test(tutti_request *request);

/* Succeeds when all ranks give the same list of texts and the same hash, to be called before a
 * schedule of communication is run for the first time. Else TUTTI_INVALID on every rank, with the
 * first operation that differs, as the first rank that differs has it and as rank 0 has it; the
 * group stays whole. `what` is for the message ("communication schedule"); `hash` stands for what
 * the texts do not say. Collective. */
TUTTI_API tutti_status tutti_comm_agree(tutti_comm *comm, const char *what,
                                        const char *const *operations, int64_t count, uint64_t hash,
                                        const tutti_comm_call *call);

/* Many tensors in one all_reduce: consecutive ones are joined until `bucket_bytes` (0: 4 MiB) or
 * `bucket_count` (0: 1000) is reached. Each is reduced in place; two that overlap are refused. The
 * list is copied. */
typedef struct tutti_comm_piece {
    void *data;
    int64_t count;
} tutti_comm_piece;
typedef struct tutti_comm_bucket {
    size_t struct_size;
    int64_t bucket_bytes;
    int bucket_count;
} tutti_comm_bucket;
#define TUTTI_BUCKET(...) TUTTI_OPTIONS(tutti_comm_bucket, __VA_ARGS__)
TUTTI_API tutti_status tutti_comm_all_reduce_many(tutti_comm *comm, const tutti_comm_piece *pieces,
                                                  int piece_count, tutti_dtype dtype,
                                                  tutti_reduction reduction,
                                                  const tutti_comm_bucket *bucket,
                                                  const tutti_comm_call *call);

/* Compression of gradients, by name: "bf16", "f16" (16 bits on the wire), "topk:0.01" (the largest
 * hundredth; what is left out is added the next time), "powersgd:2" (a product of two thin matrices
 * of rank 2; the difference is added the next time). One compressor for each tensor and rank, of
 * the shape that the tensor has: powersgd takes the first dimensions but the last as rows, and
 * leaves tensors that would not become smaller as they are. A call with `.compressor` reduces
 * exactly that many f32 elements. All ranks get the same bits. */
TUTTI_API tutti_status tutti_compressor_create(const char *name, int dim_count, const int64_t *dims,
                                               tutti_compressor **ret_compressor);
TUTTI_API void tutti_compressor_free(tutti_compressor *compressor); /* NULL is fine */
/* Fails with what can be said for a name. */
TUTTI_API tutti_status tutti_compressor_check(const char *name);
/* Bytes that stand for the tensor between ranks, in place of its own. */
TUTTI_API int64_t tutti_compressor_bytes(const tutti_compressor *compressor);
/* What is remembered, for checkpoints: *ret_count numbers, owned by the compressor; NULL for
 * none. */
TUTTI_API float *tutti_compressor_state(tutti_compressor *compressor, int64_t *ret_count);

/* Algorithms by size: "NAME[/BETWEEN][#PARTS][:LIMIT:…]". The first NAME is for messages up to
 * LIMIT bytes (k, m and g multiply by 1024), the next for those beyond, and so on. NAME/BETWEEN
 * uses the first within machines and the second between them; #PARTS cuts a message into parts that
 * go one after the other. "central:4k:tree:1m:direct/ring#2". Fails with what cannot be read for
 * all_reduce. `.algorithm` of the other collectives takes such lists too, with the algorithms that
 * they have: #PARTS for reduce and broadcast, /BETWEEN for those of `hierarchical`; sizes are of
 * one rank's block where there are blocks, of reduce_scatter those of all ranks together. */
TUTTI_API tutti_status tutti_comm_spec_check(const char *spec);

/* Names of the algorithms of an operation ("all_reduce"), sorted; NULL after the last. */
TUTTI_API const char *const *tutti_comm_algorithms(const char *operation);
/* The time that the model gives an algorithm, in seconds; infinity where it cannot be used. */
TUTTI_API double tutti_comm_predict(const tutti_comm_cost *cost, const char *operation,
                                    const char *algorithm, int ranks, int64_t bytes);
/* The formula behind it, in the textbooks' letters; NULL where there is none. */
TUTTI_API const char *tutti_comm_formula(const char *operation, const char *algorithm);

#ifdef __cplusplus
}
#endif
#endif
