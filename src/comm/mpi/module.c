/* module.c: MPI behind a table. Compiled only where there is an MPI. */
#include "comm/mpi/module.h"

#include <mpi.h>
#include <stdlib.h>

static MPI_Comm world;
static int staying, ours;

static const char *library(void)
{
    static char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    MPI_Get_library_version(text, &length);
    for (char *at = text; *at; at++)
        if (*at == '\n' || *at == ',') {
            *at = 0;
            break;
        }
    return text;
}

static void module_finish(void)
{
    int over = 0;
    MPI_Finalized(&over);
    if (!over && !staying)
        MPI_Finalize();
}

static int module_start(int *ret_rank, int *ret_size, int *ret_threads)
{
    int running = 0, over = 0, level = 0, status = MPI_SUCCESS;
    MPI_Initialized(&running);
    MPI_Finalized(&over);
    if (over)
        return -1;
    if (!running) {
        status = MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &level);
        ours = status == MPI_SUCCESS;
        if (ours)
            atexit(module_finish);
    }
    if (status == MPI_SUCCESS && !world) {
        status = MPI_Comm_dup(MPI_COMM_WORLD, &world);
        if (status == MPI_SUCCESS)
            MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
    }
    if (status == MPI_SUCCESS) {
        MPI_Comm_rank(world, ret_rank);
        MPI_Comm_size(world, ret_size);
        MPI_Query_thread(&level);
        *ret_threads = level == MPI_THREAD_MULTIPLE;
    }
    return status;
}

static int test(void **request)
{
    MPI_Request *pending = *request;
    int done = 0, status = MPI_Test(pending, &done, MPI_STATUS_IGNORE);
    if (status == MPI_SUCCESS && !done)
        return status;
    free(pending);
    *request = NULL;
    return status;
}

static int send_bytes(int peer, const void *data, size_t size, void **ret_request)
{
    MPI_Request *request = malloc(sizeof *request);
    if (!request)
        return MPI_ERR_NO_MEM;
    int status = MPI_Isend(data, (int)size, MPI_BYTE, peer, 0, world, request);
    if (status != MPI_SUCCESS) {
        free(request);
        return status;
    }
    *ret_request = request;
    return test(ret_request);
}

static int probe(int peer, void **ret_message, size_t *ret_size)
{
    int there = 0, size = 0;
    MPI_Message found;
    MPI_Status envelope;
    *ret_message = NULL;
    int status = MPI_Improbe(peer, 0, world, &there, &found, &envelope);
    if (status != MPI_SUCCESS || !there)
        return status;
    MPI_Get_count(&envelope, MPI_BYTE, &size);
    MPI_Message *message = malloc(sizeof *message);
    if (!message)
        return MPI_ERR_NO_MEM;
    *message = found;
    *ret_message = message;
    *ret_size = (size_t)size;
    return status;
}

static int module_take(void *arg, void *data, size_t size)
{
    MPI_Message *message = arg;
    int status = MPI_Mrecv(data, (int)size, MPI_BYTE, message, MPI_STATUS_IGNORE);
    free(message);
    return status;
}

static MPI_Datatype type_of(int type)
{
    switch (type) {
    case TUTTI_MPI_F32:
        return MPI_FLOAT;
    case TUTTI_MPI_F64:
        return MPI_DOUBLE;
    case TUTTI_MPI_I32:
        return MPI_INT32_T;
    case TUTTI_MPI_I64:
        return MPI_INT64_T;
    default:
        return MPI_UINT8_T;
    }
}

static MPI_Op reduction_of(int reduction)
{
    switch (reduction) {
    case TUTTI_MPI_MIN:
        return MPI_MIN;
    case TUTTI_MPI_MAX:
        return MPI_MAX;
    case TUTTI_MPI_PROD:
        return MPI_PROD;
    default:
        return MPI_SUM;
    }
}

static int module_call(const tutti_mpi_operation *o, MPI_Request *request)
{
    MPI_Datatype type = type_of(o->type);
    MPI_Op fold = reduction_of(o->reduction);
    const void *in = o->in ? o->in : MPI_IN_PLACE;
    int rank;
    MPI_Comm_rank(world, &rank);
    switch (o->operation) {
    case TUTTI_MPI_BROADCAST:
        return MPI_Ibcast(o->out, o->count, type, o->root, world, request);
    case TUTTI_MPI_REDUCE:
        return MPI_Ireduce(rank == o->root ? in : (o->in ? o->in : o->out), o->out, o->count, type,
                           fold, o->root, world, request);
    case TUTTI_MPI_ALL_REDUCE:
        return MPI_Iallreduce(in, o->out, o->count, type, fold, world, request);
    case TUTTI_MPI_REDUCE_SCATTER:
        return MPI_Ireduce_scatter_block(in, o->out, o->count, type, fold, world, request);
    case TUTTI_MPI_ALL_GATHER:
        if (o->counts)
            return MPI_Iallgatherv(in, o->count, type, o->out, o->counts, o->starts, type, world,
                                   request);
        return MPI_Iallgather(in, o->count, type, o->out, o->count, type, world, request);
    case TUTTI_MPI_GATHER:
        return MPI_Igather(o->in, o->count, type, o->out, o->count, type, o->root, world, request);
    case TUTTI_MPI_SCATTER:
        return MPI_Iscatter(o->in, o->count, type, o->out, o->count, type, o->root, world, request);
    case TUTTI_MPI_ALL_TO_ALL:
        return MPI_Ialltoall(in, o->count, type, o->out, o->count, type, world, request);
    default:
        return MPI_Ibarrier(world, request);
    }
}

static int module_begin(const tutti_mpi_operation *operation, void **ret_request)
{
    MPI_Request *request = malloc(sizeof *request);
    if (!request)
        return MPI_ERR_NO_MEM;
    int status = module_call(operation, request);
    if (status != MPI_SUCCESS) {
        free(request);
        return status;
    }
    *ret_request = request;
    return status;
}

static void end(void)
{
    if (!ours)
        return;
    MPI_Comm_free(&world);
    module_finish();
}

static void stay(void)
{
    staying = 1;
}

/* Found by TUTTI_MPI_MODULE_SYMBOL. */
__attribute__((visibility("default"))) const tutti_mpi_module *tutti_mpi_module_get(void);
const tutti_mpi_module *tutti_mpi_module_get(void)
{
    static const tutti_mpi_module table = {TUTTI_MPI_MODULE_VERSION,
                                           library,
                                           module_start,
                                           send_bytes,
                                           module_begin,
                                           test,
                                           probe,
                                           module_take,
                                           end,
                                           stay};
    return &table;
}
