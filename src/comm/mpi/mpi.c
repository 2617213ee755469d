/* mpi.c: OpenMPI or MPICH, through a module that is loaded when this engine is first used. Messages
 * of ours travel as MPI messages, piece by piece; MPI's own collectives are the algorithm 'native'.
 */
#include <dlfcn.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/module.h"
#include "base/params.h"
#include "base/world.h"
#include "comm/coll/native.h"
#include "comm/comm.h"
#include "comm/mpi/module.h"

enum {
    TOGETHER = 8 << 10, /* a header travels with the start of its message */
    PIECE = 16 << 20,   /* most bytes of one MPI message */
};

typedef struct peer_state {
    int rank;      /* MPI's */
    void *sending; /* a request, or NULL */
    size_t sending_size;
    char *together; /* [TOGETHER] what `sending` may point to */
    char *early;    /* of a message that was longer than asked for */
    size_t early_at, early_size;
} peer_state;

typedef struct state {
    struct state *next;
    tutti_fabric *fabric;
    const tutti_mpi_module *mpi;
    int size;
    peer_state peers[];
} state;

/* Whose mpirun started this process: they give different variables. Processes without any are
 * OpenMPI's first. */
static const char *named_mpi(void)
{
    static const tutti_param choice =
        TUTTI_PARAM("MPI", "", "openmpi or mpich: the MPI behind the engine 'mpi'");
    return tutti__param_text(&choice);
}

static bool by_mpich(void)
{
    const char *named = named_mpi();
    if (named[0])
        return strcmp(named, "mpich") == 0;
    bool openmpi = getenv("OMPI_COMM_WORLD_SIZE") || getenv("PMIX_RANK");
    return !openmpi && (getenv("PMI_RANK") || getenv("PMI_FD") || getenv("PMI_PORT"));
}

static const char *file_name(void)
{
    return by_mpich() ? "tutti_mpi_mpich.so" : "tutti_mpi.so";
}

static const tutti_mpi_module *mpi_find(void)
{
    void *library = tutti__module_open("src/comm/mpi/", file_name());
    const tutti_mpi_module *(*get)(void) = NULL;
    if (library)
        *(void **)(&get) = dlsym(library, TUTTI_MPI_MODULE_SYMBOL);
    const tutti_mpi_module *found = get ? get() : NULL;
    return found && found->version == TUTTI_MPI_MODULE_VERSION ? found : NULL;
}

static const tutti_mpi_module *module(void)
{
    static const tutti_mpi_module *found; /* set once: every writer writes the same */
    const tutti_mpi_module *known = __atomic_load_n(&found, __ATOMIC_ACQUIRE);
    if (!known && (known = mpi_find()))
        __atomic_store_n(&found, known, __ATOMIC_RELEASE);
    return known;
}

static tutti_status available(void)
{
    const char *named = named_mpi();
    if (named[0] && strcmp(named, "openmpi") != 0 && strcmp(named, "mpich") != 0)
        return tutti_fail(TUTTI_INVALID, "TUTTI_MPI is '%s'; it takes openmpi or mpich", named);
    if (module())
        return TUTTI_OK;
    return tutti_fail(
        TUTTI_UNSUPPORTED,
        "the engine 'mpi' needs the module %s, which is built when its MPI is installed (apt "
        "install %s, then build again); TUTTI_MODULES names another folder to look in, TUTTI_MPI "
        "the MPI (openmpi, mpich)",
        file_name(), by_mpich() ? "libmpich-dev" : "libopenmpi-dev");
}

static pthread_mutex_t attached_lock = PTHREAD_MUTEX_INITIALIZER;
static state *attached;

/* The process ends. Ending MPI waits for all ranks, which may wait for this one: where it has not
 * closed its group, they shall see it go. Runs before what the module does at exit, because it was
 * registered later. */
static void stay_if_open(void)
{
    pthread_mutex_lock(&attached_lock);
    for (const state *each = attached; each; each = each->next)
        if (each->fabric->membership)
            each->mpi->stay();
    pthread_mutex_unlock(&attached_lock);
}

static void attach(state *own)
{
    static bool registered;
    pthread_mutex_lock(&attached_lock);
    own->next = attached;
    attached = own;
    if (!registered)
        registered = atexit(stay_if_open) == 0;
    pthread_mutex_unlock(&attached_lock);
}

static void detach(tutti_fabric *fabric, void *arg)
{
    state *own = arg;
    pthread_mutex_lock(&attached_lock);
    for (state **at = &attached; *at; at = &(*at)->next)
        if (*at == own) {
            *at = own->next;
            break;
        }
    pthread_mutex_unlock(&attached_lock);
    if (atomic_load(&fabric->broken))
        own->mpi->stay();
    for (int i = 0; i < own->size; i++) {
        free(own->peers[i].together);
        free(own->peers[i].early);
    }
    free(own);
}

/* Ranks of the job and of MPI may be numbered differently. */
static tutti_status map_ranks(tutti_fabric *fabric, state *own, int rank, int64_t deadline_ns)
{
    int32_t mine = rank, *all = malloc((size_t)fabric->size * sizeof *all);
    if (!all)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for %d ranks", fabric->size);
    tutti_status status =
        tutti__membership_exchange(fabric->membership, &mine, sizeof mine, deadline_ns, all);
    for (int i = 0; status == TUTTI_OK && i < fabric->size; i++)
        own->peers[i].rank = all[i];
    free(all);
    return status;
}

static tutti_status mpi_start(int job_size, int *ret_rank, int *ret_threads)
{
    int size;
    TUTTI_TRY(available());
    int error = module()->start(ret_rank, &size, ret_threads);
    if (error == -1)
        return tutti_fail(TUTTI_INVALID,
                          "MPI was ended, and cannot be started again; if an earlier group only "
                          "asked it where rank 0 is, ask for the engine 'mpi' there too, or set "
                          "TUTTI_MEETING=HOST:PORT");
    if (error != 0)
        return tutti_fail(TUTTI_IO, "MPI could not be started; start the program with mpirun or "
                                    "srun --mpi=pmix");
    if (size != job_size)
        return tutti_fail(TUTTI_INVALID,
                          "MPI (%s) has %d ranks, the job %d; start all of them with one mpirun",
                          module()->library(), size, job_size);
    return TUTTI_OK;
}

/* Ranks that mpirun has started are numbered by MPI. */
static tutti_status announce(int rank, int size, char *text, size_t bytes, bool stays,
                             int64_t deadline_ns)
{
    const tutti_world *world = tutti__world();
    int own, threads;
    void *request = NULL;
    TUTTI_TRY(mpi_start(size, &own, &threads));
    if (own != rank)
        return tutti_fail(TUTTI_INVALID, "rank %d of the job is rank %d of MPI (%s)", rank, own,
                          module()->library());
    int error = module()->begin(&(tutti_mpi_operation){.operation = TUTTI_MPI_BROADCAST,
                                                       .type = TUTTI_MPI_U8,
                                                       .count = (int)bytes,
                                                       .out = text},
                                &request);
    while (!error && request && tutti__now_ns() < deadline_ns) {
        error = module()->test(&request);
        if (request)
            world->sleep_ns(world->self, 1000000);
    }
    if (error)
        return tutti_fail(TUTTI_IO, "MPI error %d in asking where rank 0 is", error);
    if (request)
        return tutti_fail(TUTTI_DEADLINE, "rank 0 has not said by MPI (%s) where it is in time",
                          module()->library());
    if (!stays)
        module()->end();
    return TUTTI_OK;
}

static tutti_status mpi_join(tutti_fabric *fabric, const tutti_comm_options *options,
                             int64_t deadline_ns, void **ret_state)
{
    (void)options;
    int rank, size = fabric->size, threads;
    TUTTI_TRY(mpi_start(size, &rank, &threads));
    state *own = calloc(1, sizeof *own + (size_t)size * sizeof own->peers[0]);
    if (!own)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for %d ranks", size);
    own->fabric = fabric;
    own->mpi = module();
    own->size = size;
    fabric->one_thread = !threads;
    attach(own);
    tutti_status status = map_ranks(fabric, own, rank, deadline_ns);
    if (status != TUTTI_OK) {
        detach(fabric, own);
        return status;
    }
    *ret_state = own;
    return TUTTI_OK;
}

static tutti_status failed(int peer, const char *what, int number)
{
    return tutti_fail(TUTTI_IO, "rank %d: MPI error %d while %s", peer, number, what);
}

/* The first bytes of a message, header and all, or a piece of its data from where it lies. */
static tutti_status begin_send(state *own, int peer, const struct iovec *parts, int count)
{
    peer_state *to = &own->peers[peer];
    const char *data = parts[0].iov_base;
    size_t size = parts[0].iov_len;
    if (count > 1) {
        if (!to->together && !(to->together = malloc(TOGETHER)))
            return tutti_fail(TUTTI_NO_MEMORY, "no memory for messages to rank %d", peer);
        size_t more = TOGETHER - size < parts[1].iov_len ? TOGETHER - size : parts[1].iov_len;
        memcpy(to->together, data, size);
        memcpy(to->together + size, parts[1].iov_base, more);
        data = to->together;
        size += more;
    }
    to->sending_size = size < PIECE ? size : PIECE;
    int error = own->mpi->send(to->rank, data, to->sending_size, &to->sending);
    return error ? failed(peer, "sending", error) : TUTTI_OK;
}

static tutti_status send_bytes(void *arg, int peer, const struct iovec *parts, int count,
                               size_t *ret_done)
{
    state *own = arg;
    peer_state *to = &own->peers[peer];
    int error = 0;
    if (to->sending)
        error = own->mpi->test(&to->sending);
    else
        TUTTI_TRY(begin_send(own, peer, parts, count));
    if (error)
        return failed(peer, "sending", error);
    *ret_done = to->sending ? 0 : to->sending_size;
    return TUTTI_OK;
}

/* Not every MPI can take back what it was told to send. */
static size_t handed_over(void *arg, int peer)
{
    const peer_state *to = &((state *)arg)->peers[peer];
    return to->sending ? to->sending_size : 0;
}

static tutti_status recv_bytes(void *arg, int peer, void *data, size_t size, size_t *ret_done)
{
    state *own = arg;
    peer_state *from = &own->peers[peer];
    void *message = NULL;
    size_t there = 0;
    *ret_done = 0;
    if (!from->early) {
        int error = own->mpi->probe(from->rank, &message, &there);
        if (error)
            return failed(peer, "receiving", error);
        if (!message)
            return TUTTI_OK;
        if (there > PIECE)
            return tutti_fail(TUTTI_CORRUPT, "rank %d sent an MPI message of %zu bytes", peer,
                              there);
        bool fits = there <= size;
        if (!fits && !(from->early = malloc(there)))
            return tutti_fail(TUTTI_NO_MEMORY, "no memory for %zu bytes of rank %d", there, peer);
        error = own->mpi->take(message, fits ? data : from->early, there);
        if (error)
            return failed(peer, "receiving", error);
        from->early_at = 0, from->early_size = there;
        if (fits) {
            *ret_done = there;
            return TUTTI_OK;
        }
    }
    size_t left = from->early_size - from->early_at, part = left < size ? left : size;
    memcpy(data, from->early + from->early_at, part);
    from->early_at += part;
    *ret_done = part;
    if (from->early_at == from->early_size) {
        free(from->early);
        from->early = NULL;
    }
    return TUTTI_OK;
}

static int type_number(tutti_dtype dtype)
{
    switch (dtype) {
    case TUTTI_F32:
        return TUTTI_MPI_F32;
    case TUTTI_F64:
        return TUTTI_MPI_F64;
    case TUTTI_I32:
        return TUTTI_MPI_I32;
    case TUTTI_I64:
        return TUTTI_MPI_I64;
    case TUTTI_U8:
        return TUTTI_MPI_U8;
    default:
        return -1;
    }
}

/* What is moved only may go byte by byte; what is added up must be of a type that MPI knows. */
static int64_t units_of(const tutti_collective *c)
{
    return type_number(c->dtype) < 0 ? (int64_t)c->element : 1;
}

static bool is_extreme(const tutti_collective *c)
{
    return c->fold && (c->reduction == TUTTI_MIN || c->reduction == TUTTI_MAX);
}

static const char *lacks(const tutti_collective *c)
{
    int64_t most = c->count;
    if (c->fold && type_number(c->dtype) < 0)
        return "MPI cannot add up numbers of this type";
    /* Ranks of MPICH get different ones of a number and NaN, those of OpenMPI the number; NaN and
     * the same bits on all ranks are promised. */
    if (is_extreme(c) && (c->dtype == TUTTI_F32 || c->dtype == TUTTI_F64))
        return "MPI's minima and maxima lose NaN";
    if (is_extreme(c) && c->dtype == TUTTI_U8) /* MPICH 4.0 */
        return "some MPIs compare bytes as signed numbers";
    for (int r = 0; c->counts && r < c->size; r++)
        most = r == 0 ? c->counts[0] : most + c->counts[r]; /* as place_blocks has it */
    return most > INT_MAX / units_of(c) ? "MPI counts no further than 2147483647" : NULL;
}

/* Blocks that differ: their sizes and places by MPI's ranks, behind each other in one allocation.
 * The own block is put where it belongs, since MPI wants all ranks to do so, or none. */
static tutti_status place_blocks(const state *own, const tutti_collective *c,
                                 tutti_mpi_operation *operation, int **ret_blocks)
{
    int *blocks = malloc(2 * (size_t)c->size * sizeof *blocks);
    int64_t start = 0, units = units_of(c);
    if (!blocks)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for the blocks of %d ranks", c->size);
    for (int r = 0; r < c->size; r++) {
        char *block = (char *)c->out + (size_t)start * c->element;
        if (r == c->rank)
            tutti__coll_copy(c, block, c->in, (size_t)c->counts[r] * c->element);
        blocks[own->peers[r].rank] = (int)(c->counts[r] * units);
        blocks[c->size + own->peers[r].rank] = (int)(start * units);
        start += c->counts[r];
    }
    operation->in = NULL;
    operation->counts = blocks;
    operation->starts = blocks + c->size;
    *ret_blocks = blocks;
    return TUTTI_OK;
}

/* Until it is done, or the group's or the call's end; a request that is left stays MPI's. */
static tutti_status mpi_finish(const state *own, const tutti_collective *c, int error,
                               void **request)
{
    for (int round = 0; !error && *request; round++) {
        error = own->mpi->test(request);
        if (own->fabric->crowded)
            sched_yield();
        if ((round & 1023) != 1023)
            continue;
        TUTTI_TRY(tutti__fabric_check(own->fabric));
        if (tutti__now_ns() > c->deadline_ns)
            return tutti_fail(TUTTI_DEADLINE, "MPI's %s did not end in time",
                              tutti__operation_names[c->operation]);
        sched_yield();
    }
    return error ? tutti_fail(TUTTI_IO, "MPI error %d in %s", error,
                              tutti__operation_names[c->operation])
                 : TUTTI_OK;
}

static tutti_status native(void *arg, tutti_collective *c)
{
    state *own = arg;
    int type = type_number(c->dtype), *blocks = NULL;
    size_t before = (size_t)c->rank * (size_t)c->count * c->element;
    bool in_place = c->in == c->out || (c->operation == TUTTI_ALL_GATHER &&
                                        (const char *)c->in == (const char *)c->out + before);
    tutti_mpi_operation operation = {.operation = (int)c->operation,
                                     .type = type < 0 ? TUTTI_MPI_U8 : type,
                                     .reduction = (int)c->reduction,
                                     .root = own->peers[c->root].rank,
                                     .count = (int)(c->count * units_of(c)),
                                     .in = in_place ? NULL : c->in,
                                     .out = c->out};
    if (c->counts)
        TUTTI_TRY(place_blocks(own, c, &operation, &blocks));
    void *request = NULL;
    int error = own->mpi->begin(&operation, &request);
    tutti_status status = mpi_finish(own, c, error, &request);
    if (!request) /* MPI reads them until then */
        free(blocks);
    if (status != TUTTI_OK)
        return status;
    bool here = c->operation == TUTTI_ALL_REDUCE || c->operation == TUTTI_REDUCE_SCATTER ||
                (c->operation == TUTTI_REDUCE && c->rank == c->root);
    if (here)
        tutti__fold_finish(c->dtype, c->reduction, c->out, c->count, c->size);
    return TUTTI_OK;
}

static const tutti_native natives = {.lacks = lacks, .run = native};

const tutti_fabric_engine tutti_fabric_engine_mpi = {
    .name = "mpi",
    .doc = "OpenMPI or MPICH, under mpirun or srun",
    .processes = true,
    .available = available,
    .join = mpi_join,
    .announce = announce,
    .detach = detach,
    .send = send_bytes,
    .recv = recv_bytes,
    .handed_over = handed_over,
    .native = &natives,
};
