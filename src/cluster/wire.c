/* wire.c: see wire.h. */
#include "cluster/wire.h"

#include <errno.h>
#include <string.h>

#include "base/world.h"
#include "cluster/forked.h"

tutti_status tutti__wire_open(int socket, tutti_tls_context *context, bool accept,
                              tutti_wire *ret_wire)
{
    tutti_wire wire = {.socket = socket};
    tutti_status status = TUTTI_OK;
    tutti__forked_without(socket);
    if (context != NULL)
        status = tutti__tls_create(context, socket, accept, &wire.tls);
    if (status != TUTTI_OK)
        tutti__wire_close(&wire);
    else
        *ret_wire = wire;
    return status;
}

void tutti__wire_close(tutti_wire *wire)
{
    const tutti_world *world = tutti__world();
    tutti__tls_free(wire->tls);
    tutti__forked_with(wire->socket);
    if (wire->socket >= 0)
        world->close_socket(world->self, wire->socket);
    *wire = (tutti_wire){.socket = -1};
}

int64_t tutti__wire_send(tutti_wire *wire, const void *data, size_t size)
{
    const tutti_world *world = tutti__world();
    return wire->tls != NULL ? tutti__tls_send(wire->tls, data, size)
                             : world->send(world->self, wire->socket, data, size);
}

int64_t tutti__wire_receive(tutti_wire *wire, void *data, size_t size)
{
    const tutti_world *world = tutti__world();
    return wire->tls != NULL ? tutti__tls_receive(wire->tls, data, size)
                             : world->receive(world->self, wire->socket, data, size);
}

bool tutti__wire_ready(const tutti_wire *wire)
{
    return wire->tls == NULL || tutti__tls_ready(wire->tls);
}

const char *tutti__wire_reason(const tutti_wire *wire, int64_t error)
{
    if (error == -EPROTO && wire->tls != NULL)
        return tutti__tls_reason(wire->tls);
    return strerror((int)-error);
}
