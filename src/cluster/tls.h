/* tls.h: TLS 1.3 with mutual certificates, by OpenSSL, which is loaded when it is first needed. */
#ifndef TUTTI_CLUSTER_TLS_H
#define TUTTI_CLUSTER_TLS_H

#include "base/status.h"

typedef struct tutti_tls_context tutti_tls_context; /* certificate, key and authority */
typedef struct tutti_tls tutti_tls;                 /* one connection */

/* From TUTTI_TLS_CERT, TUTTI_TLS_KEY and TUTTI_TLS_CA (PEM files). *ret_context is NULL when none
 * of them is set; some of them missing, a file that cannot be read or no OpenSSL is an error. */
tutti_status tutti__tls_context_create(tutti_tls_context **ret_context);
void tutti__tls_context_free(tutti_tls_context *context); /* NULL is fine */

/* Over a connected socket of the world, which stays the caller's. */
tutti_status tutti__tls_create(tutti_tls_context *context, int socket, bool accept,
                               tutti_tls **ret_tls);
void tutti__tls_free(tutti_tls *tls); /* says goodbye if it can without waiting; NULL is fine */

/* Bytes, or -EAGAIN, or another -errno (-EPROTO: refused by the other side or by us; the reason is
 * in tutti__tls_reason). 0 from receive: the other side ended. Until the handshake is over, both go
 * on with it. One thread at a time. */
int64_t tutti__tls_send(tutti_tls *tls, const void *data, size_t size);
int64_t tutti__tls_receive(tutti_tls *tls, void *data, size_t size);
/* 0: the handshake is over; -EAGAIN: call again when the socket has something; else -errno. */
int tutti__tls_handshake(tutti_tls *tls);
bool tutti__tls_ready(const tutti_tls *tls); /* the handshake is over */
bool tutti__tls_begun(const tutti_tls *tls); /* something has come from the other side */
bool tutti__tls_pending(tutti_tls *tls);     /* bytes wait that the socket has given */
const char *tutti__tls_reason(const tutti_tls *tls);

#endif
