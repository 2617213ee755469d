/* rank.c: a rank of collectives for the tests of this folder.
 *
 *     cluster_rank [--engine E] [--join SECONDS] [--call SECONDS] [--log none|silent]
 *                  [--mpi LIBRARY] [--crypto LIBRARY] DEED...
 *
 * With --mpi the program starts MPI itself, as MPI_Init does; with --crypto it uses something of
 * OpenSSL before it opens its group. Deeds, in order: reduce N
 * (all-reduces of several sizes by every algorithm that the group can, N times, checked), started N
 * (N all-reduces that are started and then looked at or waited for), gather (all-gathers of blocks
 * that differ, by every algorithm), seconds S (all-reduces for so long), file F (until it is
 * there), slow S (the same, and rank 1 is late), late N (N all-reduces, to which rank 1 comes 8 ms
 * late), late-apart N (the same in groups of two ranks, to which the last rank comes late), loop
 * (the same until one fails), part (all but the last rank are a group: the last of it does not come
 * to its second operation, and the last rank waits for all), agree (rank 1 has another schedule),
 * memory M (an all-reduce in so many MiB of the group's own memory), exit C (rank 1 ends with that
 * code, its group open), again N (closes the group and opens it anew, N times). Prints one line a
 * deed; exit code 0 success, 3 a failure of the group, 4 no group. */
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/world.h"
#include "comm/comm.h"
#include "comm/group/worker.h"

enum { MOST = 1 << 18 };

static float data[MOST];

static tutti_status check_sum(tutti_comm *comm, int64_t count, const char *algorithm)
{
    int rank = tutti_comm_rank(comm), size = tutti_comm_size(comm);
    for (int64_t i = 0; i < count; i++)
        data[i] = (float)(rank + i % 13);
    TUTTI_TRY(tutti_comm_all_reduce(comm, data, data, count, TUTTI_F32, TUTTI_SUM,
                                    TUTTI_CALL(.algorithm = algorithm, .label = "bucket 3")));
    for (int64_t i = 0; i < count; i++)
        if (data[i] != (float)(size * (size - 1) / 2 + size * (i % 13)))
            return tutti_fail(TUTTI_INTERNAL, "%s, %lld numbers: number %lld is wrong",
                              algorithm ? algorithm : "auto", (long long)count, (long long)i);
    return TUTTI_OK;
}

static tutti_status reduce(tutti_comm *comm, int rounds)
{
    static const int64_t counts[] = {1, 1000, 100003, MOST};
    int algorithms = 0;
    for (int round = 0; round < rounds; round++)
        for (const char *const *name = tutti_comm_algorithms("all_reduce"); *name; name++) {
            if (!tutti__coll_possible(tutti__coll_find(*name), comm) ||
                strcmp(*name, "compressed") == 0)
                continue;
            algorithms++;
            for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
                TUTTI_TRY(check_sum(comm, counts[i], *name));
        }
    printf("reduced by %d algorithms\n", algorithms / rounds);
    return TUTTI_OK;
}

/* Half of them are waited for, the last first; the others are looked at until they are done. */
static tutti_status start_many(tutti_comm *comm, int count)
{
    tutti_request *requests[64];
    float values[64];
    int rank = tutti_comm_rank(comm), size = tutti_comm_size(comm);
    count = count < 64 ? count : 64;
    for (int i = 0; i < count; i++) {
        values[i] = (float)(rank + i);
        TUTTI_TRY(tutti_comm_all_reduce(comm, &values[i], &values[i], 1, TUTTI_F32, TUTTI_SUM,
                                        TUTTI_CALL(.request = &requests[i])));
    }
    for (int i = 0; i < count / 2; i++)
        while (!tutti_comm_test(requests[i])) {
        }
    for (int i = count; i-- > 0;)
        TUTTI_TRY(tutti_comm_wait(requests[i]));
    for (int i = 0; i < count; i++)
        if (values[i] != (float)(size * (size - 1) / 2 + size * i))
            return tutti_fail(TUTTI_INTERNAL, "number %d is wrong", i);
    printf("%d calls run by %s\n", count,
           atomic_load(&comm->worker)->alone ? "who waits" : "a thread");
    return TUTTI_OK;
}

/* Rank r gives 3 r + 1 numbers, from elsewhere or from their place in the result. */
static tutti_status check_uneven(tutti_comm *comm, const char *algorithm, bool placed)
{
    int32_t in[256], out[2048] = {0};
    int64_t counts[16], start = 0;
    int rank = tutti_comm_rank(comm), size = tutti_comm_size(comm), at = 0;
    for (int r = 0; r < size; r++) {
        counts[r] = 3 * r + 1;
        start += r < rank ? counts[r] : 0;
    }
    for (int i = 0; i < counts[rank]; i++)
        in[i] = out[start + i] = rank * 1000 + i;
    TUTTI_TRY(tutti_comm_all_gather_uneven(comm, placed ? out + start : in, counts, out, TUTTI_I32,
                                           TUTTI_CALL(.algorithm = algorithm)));
    for (int r = 0; r < size; r++)
        for (int i = 0; i < counts[r]; i++)
            if (out[at++] != r * 1000 + i)
                return tutti_fail(TUTTI_INTERNAL, "%s: number %d of rank %d is wrong", algorithm, i,
                                  r);
    return TUTTI_OK;
}

static tutti_status gather(tutti_comm *comm)
{
    for (const char *const *name = tutti_comm_algorithms("all_gather"); *name; name++) {
        if (!tutti__coll_possible(tutti__coll_find(*name), comm))
            continue;
        TUTTI_TRY(check_uneven(comm, *name, false));
        TUTTI_TRY(check_uneven(comm, *name, true));
        printf("gathered by %s\n", *name);
    }
    return TUTTI_OK;
}

/* What MPI does not have is refused, and the group goes on. */
static tutti_status ask_too_much(tutti_comm *comm)
{
    const tutti_comm_call *call = TUTTI_CALL(.algorithm = "native");
    uint16_t half[4] = {(uint16_t)tutti_comm_rank(comm), 1, 2, 3};
    tutti_status sum = tutti_comm_all_reduce(comm, half, half, 4, TUTTI_BF16, TUTTI_SUM, call);
    printf("%s\n", sum == TUTTI_INVALID ? tutti_error_message() : "a sum of bf16 was not refused");
    tutti_status large =
        tutti_comm_broadcast(comm, half, (int64_t)INT32_MAX + 1, TUTTI_F32, 0, call);
    printf("%s\n", large == TUTTI_INVALID ? tutti_error_message() : "2^31 were not refused");
    float own = tutti_comm_rank(comm) == 0 ? NAN : 1, most = 0;
    tutti_status extreme = tutti_comm_all_reduce(comm, &own, &most, 1, TUTTI_F32, TUTTI_MAX, call);
    printf("%s\n", extreme == TUTTI_INVALID ? tutti_error_message() : "a maximum was not refused");
    TUTTI_TRY(tutti_comm_all_reduce(comm, &own, &most, 1, TUTTI_F32, TUTTI_MAX, NULL));
    uint8_t byte = tutti_comm_rank(comm) == 0 ? 10 : 200;
    extreme = tutti_comm_all_reduce(comm, &byte, &byte, 1, TUTTI_U8, TUTTI_MAX, call);
    printf("%s\n", extreme == TUTTI_INVALID ? tutti_error_message() : "bytes were not refused");
    int64_t whole = tutti_comm_rank(comm), last = -1;
    TUTTI_TRY(tutti_comm_all_reduce(comm, &whole, &last, 1, TUTTI_I64, TUTTI_MAX, call));
    if (!isnan(most) || last != tutti_comm_size(comm) - 1)
        return tutti_fail(TUTTI_INTERNAL, "maxima are wrong");
    TUTTI_TRY(tutti_comm_broadcast(comm, half, 4, TUTTI_BF16, 1, call));
    if (half[0] != 1 || half[3] != 3)
        return tutti_fail(TUTTI_INTERNAL, "bf16 did not come as they were");
    return check_sum(comm, 1000, "native");
}

/* Ranks must stop together: the first one says when. */
static tutti_status reduce_for(tutti_comm *comm, double seconds, const char *file, int late_us)
{
    int64_t until = tutti__now_ns() + (int64_t)(seconds * 1e9), rounds = 0;
    int32_t more = 1;
    for (; more; rounds++) {
        if (tutti_comm_rank(comm) == 1)
            usleep((useconds_t)late_us);
        TUTTI_TRY(check_sum(comm, rounds % 2 ? 100003 : 10, NULL));
        more = file != NULL ? access(file, F_OK) != 0 : tutti__now_ns() < until;
        TUTTI_TRY(tutti_comm_broadcast(comm, &more, 1, TUTTI_I32, 0, NULL));
    }
    printf("reduced for a while\n");
    return TUTTI_OK;
}

static tutti_status come_late(tutti_comm *comm, int times, bool late)
{
    for (int i = 0; i < times; i++) {
        if (late)
            usleep(8000);
        TUTTI_TRY(check_sum(comm, 100, NULL));
    }
    return TUTTI_OK;
}

static tutti_status come_late_apart(tutti_comm *comm, int times)
{
    int rank = tutti_comm_rank(comm);
    tutti_comm *pair;
    TUTTI_TRY(tutti_comm_split(comm, rank / 2, -rank, &pair));
    tutti_status status = come_late(pair, times, rank == tutti_comm_size(comm) - 1);
    return status == TUTTI_OK ? tutti_comm_close(pair) : status;
}

static tutti_status loop(tutti_comm *comm)
{
    printf("looping %d\n", (int)getpid());
    fflush(stdout);
    for (;;)
        TUTTI_TRY(check_sum(comm, 100003, NULL));
}

static tutti_status part(tutti_comm *comm)
{
    int rank = tutti_comm_rank(comm), last = tutti_comm_size(comm) - 1;
    tutti_comm *group = NULL;
    TUTTI_TRY(tutti_comm_split(comm, rank == last ? -1 : 0, 0, &group));
    tutti_status status = group ? check_sum(group, 10, NULL) : TUTTI_OK;
    printf("apart %d\n", (int)getpid());
    fflush(stdout);
    if (status == TUTTI_OK && rank == last - 1)
        sleep(60);
    if (status == TUTTI_OK)
        status = group ? check_sum(group, 10, NULL) : tutti_comm_barrier(comm, NULL);
    if (group) {
        tutti_error seen;
        tutti__error_capture(status, &seen);
        (void)tutti_comm_close(group);
        status = status == TUTTI_OK ? TUTTI_OK : tutti__error_restore(&seen);
    }
    return status;
}

static tutti_status wait_for_0(tutti_comm *comm)
{
    int rank = tutti_comm_rank(comm);
    tutti_comm *group;
    TUTTI_TRY(tutti_comm_split(comm, 0, -rank, &group));
    TUTTI_TRY(check_sum(group, 10, NULL));
    printf("waiting %d\n", (int)getpid());
    fflush(stdout);
    if (rank == 0)
        sleep(60);
    return check_sum(group, 10, NULL);
}

static tutti_status agree(tutti_comm *comm)
{
    const char *operations[] = {"all_reduce dense", "all_reduce output", "broadcast step"};
    if (tutti_comm_rank(comm) == 1)
        operations[1] = "all_gather output";
    return tutti_comm_agree(comm, "communication schedule", operations, 3, 0, NULL);
}

static tutti_status reduce_in_arena(tutti_comm *comm, int64_t mib)
{
    int64_t count = mib << 18;
    float *memory = NULL;
    TUTTI_TRY(tutti_comm_allocate(comm, count * 4, (void **)&memory));
    for (int64_t i = 0; i < count; i++)
        memory[i] = 1;
    tutti_status status =
        tutti_comm_all_reduce(comm, memory, memory, count, TUTTI_F32, TUTTI_SUM, NULL);
    int64_t right = 0;
    for (int64_t i = 0; i < count; i++)
        right += memory[i] == (float)tutti_comm_size(comm);
    tutti_comm_free(comm, memory);
    printf("%lld MiB over %s, %s\n", (long long)mib,
           tutti_comm_engine(comm, tutti_comm_rank(comm) ? 0 : 1),
           right == count ? "all right" : "wrong");
    return status;
}

static tutti_status act(tutti_comm *comm, const char *deed, const char *value)
{
    if (strcmp(deed, "reduce") == 0)
        return reduce(comm, atoi(value));
    if (strcmp(deed, "started") == 0)
        return start_many(comm, atoi(value));
    if (strcmp(deed, "gather") == 0)
        return gather(comm);
    if (strcmp(deed, "too_much") == 0)
        return ask_too_much(comm);
    if (strcmp(deed, "seconds") == 0)
        return reduce_for(comm, atof(value), NULL, 0);
    if (strcmp(deed, "file") == 0)
        return reduce_for(comm, 0, value, 0);
    if (strcmp(deed, "slow") == 0)
        return reduce_for(comm, atof(value), NULL, 20000);
    if (strcmp(deed, "late") == 0)
        return come_late(comm, atoi(value), tutti_comm_rank(comm) == 1);
    if (strcmp(deed, "late-apart") == 0)
        return come_late_apart(comm, atoi(value));
    if (strcmp(deed, "part") == 0)
        return part(comm);
    if (strcmp(deed, "wait-for-0") == 0)
        return wait_for_0(comm);
    if (strcmp(deed, "agree") == 0)
        return agree(comm);
    if (strcmp(deed, "memory") == 0)
        return reduce_in_arena(comm, atoi(value));
    if (strcmp(deed, "exit") == 0 && tutti_comm_rank(comm) == 1)
        exit(atoi(value));
    if (strcmp(deed, "exit") == 0)
        return TUTTI_OK;
    return loop(comm);
}

static double join_timeout = 20; /* --join */
static double call_timeout = 30; /* --call */

static tutti_status open_group(const tutti_cluster *cluster, const char *engine,
                               tutti_comm **ret_comm)
{
    return tutti_comm_open(
        cluster,
        TUTTI_COMM_OPTIONS(.engine = engine, .timeout = call_timeout, .join_timeout = join_timeout),
        ret_comm);
}

static tutti_status open_again(const tutti_cluster *cluster, const char *engine, int times,
                               tutti_comm **comm)
{
    for (int i = 0; i < times; i++) {
        TUTTI_TRY(check_sum(*comm, 1000, NULL));
        tutti_status status = tutti_comm_close(*comm);
        *comm = NULL;
        TUTTI_TRY(status);
        TUTTI_TRY(open_group(cluster, engine, comm));
    }
    printf("opened again %d times\n", times);
    return TUTTI_OK;
}

static int fail(const char *what, tutti_status status, int code)
{
    int64_t seen = tutti__world()->wall_ns(tutti__world()->self);
    printf("%s: %s: %s\n", what, tutti_status_text(status), tutti_error_message());
    printf("seen at %.3f\n", (double)(seen / 1000000) / 1e3);
    return code;
}

static void print_log(void *context, tutti_log_level level, const char *message)
{
    (void)context;
    (void)level;
    printf("log: %s\n", message);
}

static int (*finalize)(void);

static void end_mpi(void)
{
    (void)finalize();
}

/* One thread may call it then. */
static void start_mpi(const char *library)
{
    void *mpi = dlopen(library, RTLD_NOW | RTLD_GLOBAL);
    int (*start)(int *, char ***) = NULL;
    if (mpi) {
        *(void **)(&start) = dlsym(mpi, "MPI_Init");
        *(void **)(&finalize) = dlsym(mpi, "MPI_Finalize");
    }
    if (!start || !finalize || start(NULL, NULL) != 0 || atexit(end_mpi) != 0) {
        printf("no MPI in '%s'\n", library);
        exit(5);
    }
}

static void use_openssl(const char *path)
{
    void *(*allocate)(size_t size, const char *file, int line) = NULL;
    void *library = dlopen(path, RTLD_NOW);
    if (library != NULL)
        *(void **)&allocate = dlsym(library, "CRYPTO_malloc");
    printf("OpenSSL is%s in use\n",
           allocate != NULL && allocate(10, __FILE__, __LINE__) != NULL ? "" : " not");
}

static bool takes_value(const char *deed)
{
    static const char *const deeds[] = {"reduce", "started",    "seconds", "file",  "slow",
                                        "late",   "late-apart", "exit",    "again", "memory"};
    for (size_t i = 0; i < sizeof deeds / sizeof *deeds; i++)
        if (strcmp(deed, deeds[i]) == 0)
            return true;
    return false;
}

int main(int argc, char **argv)
{
    tutti_cluster *cluster;
    tutti_comm *comm;
    int at = 1, code = 0;
    const char *engine = NULL, *log = "printed";
    for (; at + 1 < argc && strncmp(argv[at], "--", 2) == 0; at += 2)
        if (strcmp(argv[at], "--engine") == 0)
            engine = argv[at + 1];
        else if (strcmp(argv[at], "--log") == 0)
            log = argv[at + 1];
        else if (strcmp(argv[at], "--call") == 0)
            call_timeout = atof(argv[at + 1]);
        else if (strcmp(argv[at], "--mpi") == 0)
            start_mpi(argv[at + 1]);
        else if (strcmp(argv[at], "--crypto") == 0)
            use_openssl(argv[at + 1]);
        else
            join_timeout = atof(argv[at + 1]);
    if (strcmp(log, "none") != 0)
        tutti_log_install(strcmp(log, "silent") == 0 ? NULL : print_log, NULL);
    tutti_status status = tutti_cluster_resolve(NULL, &cluster);
    if (status == TUTTI_OK)
        status = open_group(cluster, engine, &comm);
    if (status != TUTTI_OK)
        return fail("open", status, 4);
    int peer = tutti_comm_rank(comm) == 0 ? 1 : 0;
    printf("open: rank %d of %d on %d hosts, rank %d by %s\n", tutti_comm_rank(comm),
           tutti_comm_size(comm), tutti_comm_hosts(comm), peer,
           peer < tutti_comm_size(comm) ? tutti_comm_engine(comm, peer) : "nothing");
    fflush(stdout);
    for (; at < argc && code == 0; at++) {
        const char *deed = argv[at], *value = argv[at + 1];
        at += takes_value(deed);
        status = strcmp(deed, "again") == 0 ? open_again(cluster, engine, atoi(value), &comm)
                                            : act(comm, deed, value);
        if (status != TUTTI_OK)
            code = fail(deed, status, 3);
        fflush(stdout);
    }
    status = tutti_comm_close(comm);
    tutti_cluster_free(cluster);
    if (code == 0 && status != TUTTI_OK)
        return fail("close", status, 3);
    printf("closed\n");
    return code;
}
