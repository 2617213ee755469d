/* order_file.c: a server's order in a file: "FILE.0" of server 0. */
#include <stdio.h>
#include <stdlib.h>

#include "base/world.h"
#include "service/store/order.h"

enum { MOST = 1 << 30, PATH = 4096 };

static void order_path(const char *path, int server, char ret[PATH])
{
    snprintf(ret, PATH, "%s.%d", path, server);
}

tutti_status tutti__store_order_read(const char *path, int server, tutti_store_order *ret_replay)
{
    const tutti_world *world = tutti__world();
    tutti_store_order recorded = {0};
    char full[PATH];
    void *data;
    size_t size;
    order_path(path, server, full);
    TUTTI_TRY(world->read_file(world->self, full, MOST, &data, &size));
    tutti_status status = tutti__store_order_load(data, size, &recorded);
    free(data);
    if (status != TUTTI_OK)
        return tutti__error_prefix(status, "%s", full);
    status = tutti__store_order_replay(&recorded, ret_replay);
    tutti__store_order_free(&recorded);
    return status;
}

tutti_status tutti__store_order_write(const char *path, int server, const tutti_store_order *order)
{
    const tutti_world *world = tutti__world();
    tutti_text text = {0};
    char full[PATH];
    order_path(path, server, full);
    tutti__store_order_save(order, &text);
    tutti_status status = text.failed ? tutti_fail(TUTTI_NO_MEMORY, "no memory for %s", full)
                                      : world->write_file(world->self, full, text.data, text.size);
    tutti__text_free(&text);
    return status;
}
