/* module.h: what the engine asks of MPI. The module behind it is compiled against an MPI and loaded
 * at run time; it knows nothing of the library but this table. */
#ifndef TUTTI_COMM_MPI_MODULE_H
#define TUTTI_COMM_MPI_MODULE_H

#include <stddef.h>
#include <stdint.h>

#define TUTTI_MPI_MODULE_VERSION 4
/* A function without arguments that returns the table. */
#define TUTTI_MPI_MODULE_SYMBOL "tutti_mpi_module_get"

/* Operations and reductions by number, as in coll.h and tutti/reduction.h. Data types: */
enum { TUTTI_MPI_F32, TUTTI_MPI_F64, TUTTI_MPI_I32, TUTTI_MPI_I64, TUTTI_MPI_U8 };
enum {
    TUTTI_MPI_BARRIER,
    TUTTI_MPI_BROADCAST,
    TUTTI_MPI_REDUCE,
    TUTTI_MPI_ALL_REDUCE,
    TUTTI_MPI_REDUCE_SCATTER,
    TUTTI_MPI_ALL_GATHER,
    TUTTI_MPI_GATHER,
    TUTTI_MPI_SCATTER,
    TUTTI_MPI_ALL_TO_ALL,
};
enum { TUTTI_MPI_SUM, TUTTI_MPI_MEAN, TUTTI_MPI_MIN, TUTTI_MPI_MAX, TUTTI_MPI_PROD };

typedef struct tutti_mpi_operation {
    int operation, type, reduction, root, count;
    const void *in; /* NULL: in place */
    void *out;
    /* [size] all_gather of blocks that differ: elements of each, and where it lies in `out`; they
     * stay until the operation is done. NULL: `count` of everybody. */
    const int *counts, *starts;
} tutti_mpi_operation;

/* Functions return 0, or MPI's error number. Requests and messages are the module's. */
typedef struct tutti_mpi_module {
    int version;
    const char *(*library)(void); /* "Open MPI v4.1.4, …" */
    /* ret_threads: whether several threads may call MPI at once (the program may have started it).
     * -1: MPI was ended, which cannot be undone. */
    int (*start)(int *ret_rank, int *ret_size, int *ret_threads);
    /* A message of at most INT_MAX bytes; *ret_request is NULL when it has left already. */
    int (*send)(int peer, const void *data, size_t size, void **ret_request);
    int (*begin)(const tutti_mpi_operation *operation, void **ret_request);
    int (*test)(void **request); /* sets it to NULL when it is done */
    /* Whether a message is there (NULL: none), and taking it. */
    int (*probe)(int peer, void **ret_message, size_t *ret_size);
    int (*take)(void *message, void *data, size_t size);
    void (*end)(void);  /* now, unless the program has started it */
    void (*stay)(void); /* do not end MPI at exit: a rank has died, or leaves its group open */
} tutti_mpi_module;

#endif
