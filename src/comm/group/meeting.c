/* meeting.c: see meeting.h. */
#include "comm/group/meeting.h"

#include <pthread.h>
#include <string.h>

#include "cluster/address_publisher.h"
#include "comm/fabric/engine.h"

static tutti_status find_engine(int size, const tutti_fabric_engine **ret_engine)
{
    tutti_status status = tutti__engine_find("mpi", ret_engine);
    if (status == TUTTI_OK)
        return status;
    return tutti__error_prefix(
        status,
        "mpirun does not say where rank 0 of %d is, and MPI cannot be asked; add '-x "
        "TUTTI_MEETING=HOST:PORT' (OpenMPI) or '-genv TUTTI_MEETING HOST:PORT' (MPICH) with the "
        "first machine's name and a free port, or make MPI usable",
        size);
}

/* What goes wrong at rank 0 it says itself; the others, who wait for its word, get an empty one. */
static tutti_status ask(const tutti_cluster *cluster, bool stays, int64_t deadline_ns,
                        char *ret_meeting, size_t size)
{
    char text[TUTTI_ADDRESS_TEXT_BYTES] = "";
    const tutti_fabric_engine *engine;
    tutti_error error = {0};
    TUTTI_TRY(find_engine(cluster->size, &engine));
    if (cluster->rank == 0)
        tutti__error_capture(tutti__address_publisher_write(text), &error);
    if (error.status != TUTTI_OK)
        memset(text, 0, sizeof text);
    TUTTI_TRY(
        engine->announce(cluster->rank, cluster->size, text, sizeof text, stays, deadline_ns));
    text[sizeof text - 1] = '\0';
    if (error.status != TUTTI_OK)
        return tutti__error_restore(&error);
    return tutti__address_publisher_read(text, ret_meeting, size);
}

tutti_status tutti__comm_find_meeting(tutti_cluster *cluster, const char *engine,
                                      int64_t deadline_ns)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static char found[300]; /* a process belongs to one mpirun */
    tutti_status status = TUTTI_OK;
    if (cluster->size < 2 || cluster->meeting == NULL || cluster->meeting[0])
        return TUTTI_OK;
    pthread_mutex_lock(&lock);
    if (!found[0])
        status =
            ask(cluster, engine && strcmp(engine, "mpi") == 0, deadline_ns, found, sizeof found);
    pthread_mutex_unlock(&lock);
    if (status == TUTTI_OK)
        cluster->meeting = found;
    return status;
}
