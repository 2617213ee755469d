/* forked.h: children that the program makes by fork() do not hold the job's sockets: else they
 * would stay open when a rank dies that has one, a loader of data perhaps, and the others would
 * learn of its death only by its silence. Children that become other programs are no matter:
 * sockets are closed by exec. */
#ifndef TUTTI_CLUSTER_FORKED_H
#define TUTTI_CLUSTER_FORKED_H

/* From now on a child gets /dev/null in this socket's place. */
void tutti__forked_without(int socket);
/* Before the socket is closed; one that was never named is fine. */
void tutti__forked_with(int socket);

#endif
