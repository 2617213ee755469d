/* comm.h: a group of ranks from inside. */
#ifndef TUTTI_COMM_COMM_H
#define TUTTI_COMM_COMM_H

#include "comm/coll/coll.h"
#include "comm/fabric/fabric.h"

enum { TUTTI_SPEC_MOST = 8, TUTTI_COLL_NAME = 24 };
enum { TUTTI_WHOLE_CONTEXT = 1 };     /* of the group of all ranks of a fabric */
enum { TUTTI_MEASURING_CONTEXT = 0 }; /* of the same ranks while they measure their links */

/* Algorithms by size. */
typedef struct tutti_algorithm_spec {
    int count; /* 0: by cost */
    struct {
        char within[TUTTI_COLL_NAME], between[TUTTI_COLL_NAME]; /* `between` may be "" */
        int parts;
        int64_t limit; /* bytes; INT64_MAX for the last */
    } range[TUTTI_SPEC_MOST];
} tutti_algorithm_spec;
tutti_status tutti__comm_spec_parse(const char *text, tutti_operation operation,
                                    tutti_algorithm_spec *ret_spec);

struct tutti_comm {
    tutti_fabric *fabric; /* shared with the groups made by splitting */
    int rank, size;
    int *members;           /* [size]: ranks of the fabric */
    uint32_t context;       /* tells the group's messages from others' */
    tutti_rank_group group; /* tells its operations from others', in the flight recorder */
    int hosts;
    tutti_area *area; /* NULL unless all members share memory */
    /* Where there are several machines: the group's ranks on this one, and the first ranks of all
     * machines (NULL on the others). */
    tutti_comm *within, *between;
    tutti_comm_cost cost;
    tutti_algorithm_spec spec;
    bool inherited; /* `spec` is the parent's: where it is not possible here, cost decides */
    const tutti_coll *chosen[TUTTI_OPERATION_COUNT][65]; /* by cost, for each power of two */
    double timeout;
    uint64_t sequence; /* of collectives; equal on all ranks */
    uint64_t history;  /* of their calls: number.h; the same */
    uint64_t before;   /* the call that was done last */
    _Atomic int64_t bytes_sent;
    void *scratch, *bucket; /* both stay; `bucket` is from the arena */
    size_t scratch_bytes, bucket_bytes;
    struct tutti_lanes *lanes;     /* lane.h; NULL until there was a large operation */
    struct tutti_sim_trace *trace; /* a rank of the simulator: notes what it would do; else NULL */
    bool opened, forked;
    bool inner;                            /* `within` or `between` of another */
    bool cost_given;                       /* by the program or a description */
    _Atomic(struct tutti_worker *) worker; /* runs asynchronous calls; NULL until there was one */
};

/* Members are ranks of the fabric; `context` must be equal on all of them and new. */
tutti_status tutti__comm_create(tutti_fabric *fabric, int size, const int *members, int rank,
                                uint32_t context, const tutti_comm_options *options,
                                tutti_comm **ret_comm);
/* Sets up what needs all ranks to talk: shared areas, groups within and between machines. */
tutti_status tutti__comm_set_up(tutti_comm *comm, const tutti_comm_options *options);
void tutti__comm_destroy(tutti_comm *comm); /* NULL is fine */
/* A group of these members (ranks of `comm`, all different, this one too) in this order, made by
 * them alone: the others need not know. All that two ranks are both in they make in the same order.
 * `name` stands for what it is for, and is compared. */
enum { TUTTI_SUBGROUP_TAG = (1 << 20) + 16 };
tutti_status tutti__comm_subgroup(tutti_comm *comm, int size, const int *members, uint64_t name,
                                  const tutti_comm_call *call, tutti_comm **ret_comm);
/* From now on messages of this rank's collectives are for ranks that have marked the group alike:
 * with the same number behind the same call. Between two collectives; sends nothing. */
void tutti__comm_mark(tutti_comm *comm, uint64_t number);
/* Options with defaults in the place of zeros; NULL is fine. */
tutti_comm_options tutti__comm_defaults(const tutti_comm_options *options);
/* Whether times can be waited for: neither negative nor NaN. `what` is for the message. */
tutti_status tutti__comm_check_seconds(const char *what, double seconds);
tutti_status tutti__comm_check_options(const tutti_comm_options *options);
/* Whether all ranks of a cluster were opened alike, in what must be; else who has what. */
tutti_status tutti__comm_compare_terms(const tutti_fabric *fabric,
                                       const tutti_comm_options *options, int64_t deadline_ns);
/* Over ranks that have met already; the membership stays the caller's. */
tutti_status tutti__comm_over(tutti_membership *membership, const tutti_comm_options *options,
                              tutti_comm **ret_comm);

/* A connection that ended, or a rank that is late, is a symptom; who died and why is known a moment
 * later. Returns the cause, where there is one, or `status` with the thread's present message. */
tutti_status tutti__comm_cause(tutti_fabric *fabric, tutti_status status);
/* Something that all ranks of a group do together has failed, with the thread's present message:
 * finds the cause, breaks the group and tells the others, with `what` it was and, where ranks are
 * late, what follows `then`, or "". Returns the reason in force. */
tutti_status tutti__comm_broke(tutti_comm *comm, tutti_status status, const char *what,
                               const char *then);
/* Waits for a message of a user, which failures name ("recv halo"); a rank that is late has not
 * failed for that, but a send that ends half way breaks the group. */
tutti_status tutti__comm_await(tutti_comm *comm, tutti_fabric_message *message, const char *name,
                               int64_t deadline_ns);
/* Runs a collective on this thread: chooses the algorithm, waits, breaks the group on failure. */
tutti_status tutti__collective_run(tutti_collective *collective, const tutti_comm_call *call);
/* The part of it that chooses, how many parts go one after the other too, and the one that runs.
 * `room`: for the call's own list of sizes, which the collective then points into.
 * TUTTI_INVALID: no such call is possible in this group, which all ranks say alike. */
tutti_status tutti__collective_choose(tutti_collective *collective, const tutti_comm_call *call,
                                      tutti_algorithm_spec *room, const tutti_coll **ret_by,
                                      int *ret_parts);
tutti_status tutti__collective_do(tutti_collective *collective, const tutti_coll *by, int parts);

/* The same as tutti_comm_all_reduce in place, at once on this thread, whatever is queued: for jobs.
 * `pieces` as in tutti_collective. */
tutti_status tutti__all_reduce_now(tutti_comm *comm, void *data, int64_t count, uint64_t pieces,
                                   tutti_dtype dtype, tutti_reduction reduction,
                                   const tutti_comm_call *call, int64_t deadline_ns);
/* Sums: block `rank` of `data` [size * count], in place, and `common` as a whole, for all ranks.
 * They meet again before anybody writes to other blocks. Not for asynchronous calls. */
tutti_status tutti__reduce_scatter_common(tutti_comm *comm, void *data, int64_t count,
                                          tutti_dtype dtype, void *common, int64_t common_count,
                                          const tutti_comm_call *call);
/* Others' blocks go where `into` says, and may or may not come to stand in `out`; the own block is
 * a part of it. Not for asynchronous calls. */
tutti_status tutti__all_gather_into(tutti_comm *comm, const void *in, const int64_t *counts,
                                    void *out, tutti_dtype dtype, const tutti_comm_into *into,
                                    const tutti_comm_call *call);
/* `call` with zeros for what its caller's header did not know yet; NULL is fine. Refused, for what
 * has this name, where it does not say how much of it there is. */
tutti_status tutti__call_full(const char *name, const tutti_comm_call *call,
                              tutti_comm_call *ret_full);
/* "all_reduce bucket 3", for good; without a label the operation itself. */
const char *tutti__comm_label(const char *operation, const char *label);

/* Work of several collectives in the place of one. Jobs begin with this. */
typedef struct tutti_comm_job {
    tutti_status (*run)(tutti_comm *comm, struct tutti_comm_job *job);
} tutti_comm_job;

/* Asynchronous calls. A job becomes the request's, and is freed with it by free. */
tutti_status tutti__worker_job(tutti_comm *comm, tutti_comm_job *job, tutti_request **ret_request);
tutti_status tutti__worker_queue(tutti_comm *comm, const tutti_collective *collective,
                                 const tutti_comm_call *call, tutti_request **ret_request);
tutti_status tutti__worker_message(tutti_comm *comm, const tutti_fabric_message *message,
                                   const char *name, int64_t deadline_ns,
                                   tutti_request **ret_request);
/* Waits until nothing is queued, so that a synchronous call keeps its place. */
tutti_status tutti__worker_drain(tutti_comm *comm);
/* Before the group goes: nothing of its messages may be touched any more. Sends that nobody has
 * waited for are still done, within their own deadlines, if one is `patient`. */
tutti_status tutti__worker_end_messages(tutti_comm *comm, bool patient);
/* Before ranks meet for the last time: who still read from one that is gone would take it for dead.
 */
void tutti__worker_end_receives(tutti_comm *comm);
void tutti__worker_stop(tutti_comm *comm);

/* Figures of links that are known of other groups; what is this group's own stays. */
void tutti__comm_take_cost(tutti_comm *comm, const tutti_comm_cost *cost);
extern const double tutti__cost_sizes[TUTTI_COMM_SIZES]; /* of the model, bytes */
/* Of seconds a byte that are known at these sizes, those of `bytes`. */
double tutti__cost_per_byte(const double *values, double bytes);

/* The least seconds that were seen, at the sizes of the model; 0: not yet. [SIZES]: of 8 bytes. */
typedef struct tutti_cost_times {
    double add[TUTTI_COMM_SIZES], add_into[TUTTI_COMM_SIZES], move[TUTTI_COMM_SIZES];
    double one_way[TUTTI_LINK_COUNT][TUTTI_COMM_SIZES + 1];
    double exchange[TUTTI_LINK_COUNT][TUTTI_COMM_SIZES + 1];
    double folded[TUTTI_LINK_COUNT][TUTTI_COMM_SIZES],
        folded_into[TUTTI_LINK_COUNT][TUTTI_COMM_SIZES];
    double summed[TUTTI_LINK_COUNT][TUTTI_COMM_SIZES]; /* an exchange of which each side adds */
    /* The same of so many bytes on each lane, at the same time; and of nothing on them. */
    struct {
        double start;
        double one_way[TUTTI_COMM_SIZES], exchange[TUTTI_COMM_SIZES];
        double of_two[TUTTI_COMM_SIZES]; /* one way from rank 0 to 1, while others wait */
        double folded[TUTTI_COMM_SIZES], folded_into[TUTTI_COMM_SIZES], summed[TUTTI_COMM_SIZES];
        double add[TUTTI_COMM_SIZES], move[TUTTI_COMM_SIZES], add_into[TUTTI_COMM_SIZES];
    } lane[TUTTI_LINK_COUNT];
    double put[TUTTI_LINK_COUNT][TUTTI_COMM_SIZES], taken[TUTTI_LINK_COUNT][TUTTI_COMM_SIZES];
    double phase, little;
    double copy[TUTTI_COMM_SIZES], pull[TUTTI_COMM_SIZES];
    double collect[TUTTI_COMM_SIZES]; /* a direct reduce */
} tutti_cost_times;

/* Measures the model's constants; collective. At start-up some milliseconds. A benchmark gives the
 * sizes that it is about (beyond `above`, up to `most`), three buffers of tutti__cost_room(most)
 * bytes and the seconds that it may take; it measures in several passes, and of what was seen in
 * all of them the lower quartile counts. */
int64_t tutti__cost_room(int64_t most);
enum { TUTTI_COST_PASSES = 8 };
typedef struct tutti_cost_thorough {
    int64_t above, most;
    void *a, *b, *c;
    double seconds;
    int pass;
    tutti_cost_times seen[TUTTI_COST_PASSES];
} tutti_cost_thorough;
tutti_status tutti__cost_measure(tutti_comm *comm, tutti_cost_thorough *thorough); /* or NULL */
/* What a group that opens must know, as rank 0 wishes; collective. A glance is a few milliseconds,
 * for what a message costs on each class of link. */
typedef enum tutti_cost_wish {
    TUTTI_COST_KNOWN,
    TUTTI_COST_MEASURED,
    TUTTI_COST_GLANCED
} tutti_cost_wish;
tutti_status tutti__cost_find(tutti_comm *comm, tutti_cost_wish wish);
/* The lower quartile of those of `count` times, `step` apart, that are known (above 0); 0 when
 * there is none. The least may be a moment that others did not have, and half of all may be
 * disturbed. */
double tutti__cost_quartile(const double *times, int count, size_t step);
/* Calls of this size after which the caches are as a program that makes many of them finds them. */
int tutti__cost_settling(int64_t bytes);
tutti_comm_cost tutti__cost_guess(const tutti_comm *comm);

/* The moment in so many seconds; more than 30 years, or infinity, is TUTTI_NO_DEADLINE. */
int64_t tutti__comm_deadline_in(double seconds);
/* What tutti_comm_free takes, too; NULL: there is none. */
void *tutti__comm_private_memory(int64_t bytes);
int64_t tutti__comm_deadline(const tutti_comm *comm, const tutti_comm_call *call);

/* Rank 0's log, of a group of a cluster: who is in it and what links cost; when all have parted,
 * who came last. */
void tutti__comm_say_banner(const tutti_comm *comm);
void tutti__comm_say_straggler(const tutti_membership *members);

#endif
