/* serve.c: see serve.h. An answer is the verdict and the bytes, as many as were asked for. */
#include "comm/fabric/serve.h"

#include <stdlib.h>
#include <string.h>

#include "comm/comm.h"

enum { MOST = 16 << 20 }; /* bytes of one answer */

typedef struct question {
    tutti_wanted wanted;
    uint64_t tag; /* of the answer */
} question;

typedef struct answer {
    uint64_t given;
    char bytes[];
} answer;

void tutti__comm_serve(tutti_comm *comm, const tutti_server *server)
{
    pthread_mutex_lock(&comm->fabric->lock);
    comm->fabric->server = *server;
    pthread_mutex_unlock(&comm->fabric->lock);
}

tutti_fabric_message *tutti__serve(tutti_fabric *fabric, int peer, const void *text, size_t size)
{
    question q;
    if (size != sizeof q)
        return NULL;
    memcpy(&q, text, sizeof q);
    if (q.wanted.bytes < 0 || q.wanted.bytes > MOST || q.wanted.offset < 0 || q.tag == 0 ||
        q.tag > UINT32_MAX)
        return NULL;
    size_t bytes = sizeof(answer) + (size_t)q.wanted.bytes;
    tutti_fabric_message *message = calloc(1, sizeof *message + bytes);
    if (!message)
        return NULL;
    answer *a = (answer *)(void *)(message + 1);
    a->given = fabric->server.give
                   ? (uint64_t)fabric->server.give(fabric->server.context, &q.wanted, a->bytes)
                   : TUTTI_FETCH_NONE;
    *message = (tutti_fabric_message){.peer = peer,
                                      .context = TUTTI_SERVE_CONTEXT,
                                      .tag = (uint32_t)q.tag,
                                      .data = (char *)a,
                                      .size = bytes,
                                      .given_away = true};
    return message;
}

static tutti_status ask(tutti_comm *comm, int rank, const tutti_wanted *wanted, void *to,
                        int64_t deadline_ns, tutti_fetch_answer *ret)
{
    tutti_fabric *fabric = comm->fabric;
    question q = {.wanted = *wanted,
                  .tag = 1 + atomic_fetch_add(&fabric->questions, 1) % INT32_MAX};
    answer *a = malloc(sizeof *a + (size_t)wanted->bytes);
    if (!a)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory to ask rank %d", rank);
    tutti_fabric_message asked = {.peer = comm->members[rank],
                                  .context = TUTTI_SERVE_CONTEXT,
                                  .data = (char *)&q,
                                  .size = sizeof q};
    tutti_fabric_message reply = {.peer = comm->members[rank],
                                  .context = TUTTI_SERVE_CONTEXT,
                                  .tag = (uint32_t)q.tag,
                                  .data = (char *)a,
                                  .size = sizeof *a + (size_t)wanted->bytes};
    tutti__fabric_recv(fabric, &reply);
    tutti__fabric_send(fabric, &asked);
    tutti_status status =
        tutti__fabric_wait(fabric, (tutti_fabric_message *[]){&asked, &reply}, 2, deadline_ns);
    if (status == TUTTI_OK) {
        *ret = (tutti_fetch_answer)a->given;
        if (*ret == TUTTI_FETCH_ALL)
            memcpy(to, a->bytes, (size_t)wanted->bytes);
    }
    free(a);
    return status;
}

tutti_status tutti__comm_fetch(tutti_comm *comm, int rank, const tutti_wanted *wanted, void *to,
                               tutti_fetch_answer *ret)
{
    int64_t deadline_ns = tutti__comm_deadline(comm, NULL);
    *ret = TUTTI_FETCH_ALL;
    for (int64_t at = 0; at < wanted->bytes && *ret == TUTTI_FETCH_ALL; at += MOST) {
        tutti_wanted piece = *wanted;
        piece.offset += at;
        piece.bytes = wanted->bytes - at < MOST ? wanted->bytes - at : MOST;
        TUTTI_TRY(ask(comm, rank, &piece, (char *)to + at, deadline_ns, ret));
    }
    return TUTTI_OK;
}
