/* store_fuzz.c: what comes to a parameter server. A message that is accepted is written as it was;
 * a server takes any messages, one after the other; a slot that is loaded is saved as it was. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "service/store/server.h"

/* A value that no gradient moves. */
typedef struct still_rule {
    tutti_store_rule rule;
    tutti_tensor *value;
} still_rule;

static tutti_status still_open(const tutti_store_message *create, const tutti_type *type,
                               tutti_store_rule **ret);

static tutti_status still_apply(tutti_store_rule *rule, const tutti_store_update *update)
{
    promise(rule && update->count > 0 && update->gradient->form != TUTTI_STORE_NOTHING);
    return TUTTI_OK;
}

static tutti_status still_read(tutti_store_rule *rule, bool all, tutti_packed_data rows,
                               tutti_tensor **ret)
{
    TUTTI_UNUSED(rows);
    if (!all)
        return tutti_fail(TUTTI_UNSUPPORTED, "rows");
    *ret = tutti_tensor_retain(((still_rule *)(void *)rule)->value);
    return TUTTI_OK;
}

static tutti_status still_save(tutti_store_rule *rule, tutti_text *out)
{
    TUTTI_UNUSED(rule);
    TUTTI_UNUSED(out);
    return TUTTI_OK;
}

static tutti_status still_load(tutti_store_rule *rule, saved_reader *in)
{
    TUTTI_UNUSED(rule);
    TUTTI_UNUSED(in);
    return TUTTI_OK;
}

static int64_t still_bytes(const tutti_store_rule *rule)
{
    TUTTI_UNUSED(rule);
    return 8;
}

static void still_close(tutti_store_rule *rule)
{
    tutti_tensor_release(((still_rule *)(void *)rule)->value);
    free(rule);
}

static const tutti_store_rule_kind still_kind = {.name = "still",
                                                 .open = still_open,
                                                 .apply = still_apply,
                                                 .read = still_read,
                                                 .save = still_save,
                                                 .load = still_load,
                                                 .bytes = still_bytes,
                                                 .close = still_close};

static tutti_status still_open(const tutti_store_message *create, const tutti_type *type,
                               tutti_store_rule **ret)
{
    still_rule *r = calloc(1, sizeof *r);
    promise(r != NULL);
    TUTTI_UNUSED(create);
    r->rule.kind = &still_kind;
    if (tutti_type_count(type) > 4096 ||
        tutti_tensor_create(type->dtype, type->rank, type->dims, &r->value) != TUTTI_OK) {
        free(r);
        return tutti_fail(TUTTI_TOO_LARGE, "too large for this test");
    }
    *ret = &r->rule;
    return TUTTI_OK;
}

static const tutti_store_rule_kind *find(const char *name)
{
    return strcmp(name, "still") == 0 ? &still_kind : NULL;
}

static void drop(void *context, uint32_t to, uint8_t *frame, size_t size)
{
    TUTTI_UNUSED(context);
    TUTTI_UNUSED(to);
    TUTTI_UNUSED(size);
    free(frame);
}

/* Server 0 leads slot 0 and has the replica of slot 1, which node 1 leads; workers are nodes 2, 3.
 */
static tutti_store_server *open_server(void)
{
    static const tutti_store_process servers[] = {{0, 1, 0}, {1, 1, 0}},
                                     workers[] = {{2, 1, 0}, {3, 1, 1}};
    static const tutti_store_place slots[] = {{0, TUTTI_STORE_NOBODY, true}, {1, 0, true}};
    tutti_store_server *server = NULL;
    tutti_store_view view = {1, 2, 2, 2, servers, workers, slots};
    promise(tutti__store_server_create(
                &(tutti_store_server_options){
                    .incarnation = 1, .transport = {NULL, drop}, .find = find, .limit = 1 << 20},
                &server) == TUTTI_OK);
    promise(tutti__store_server_view(server, &view, 0) == TUTTI_OK);
    return server;
}

static void check_saved(const tutti_store_slot *slot)
{
    tutti_text first = {0}, second = {0};
    tutti_store_slot *copy = NULL;
    promise(tutti__store_slot_save(slot, &first) == TUTTI_OK);
    if (went_well(tutti__store_slot_load(first.data, first.size, find, &copy))) {
        promise(tutti__store_slot_save(copy, &second) == TUTTI_OK);
        promise(first.size == second.size && memcmp(first.data, second.data, first.size) == 0);
    }
    tutti__store_slot_free(copy);
    tutti__text_free(&first);
    tutti__text_free(&second);
}

static void receive_all(const uint8_t *data, size_t size)
{
    tutti_store_server *server = open_server();
    tutti_store_message first;
    size_t used;
    while (size > 0 && went_well(tutti__store_message_read(data, size, &first, &used)) &&
           used > 0) {
        uint8_t *frame = malloc(used);
        promise(frame != NULL && tutti__store_message_size(&first) == used);
        tutti__store_message_write(&first, frame);
        promise(memcmp(frame, data, used) == 0);
        tutti__store_server_receive(server, frame, used, 0);
        free(frame);
        data += used;
        size -= used;
    }
    tutti__store_server_tick(server, INT64_C(1000000000));
    for (uint32_t s = 0; s < 2; s++)
        if (tutti__store_server_slot(server, s))
            check_saved(tutti__store_server_slot(server, s));
    tutti__store_server_free(server);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tutti_store_slot *slot = NULL;
    receive_all(data, size);
    if (went_well(tutti__store_slot_load(data, size, find, &slot)))
        check_saved(slot);
    tutti__store_slot_free(slot);
    return 0;
}
