/* onnx_decode_model.c: ModelProto and FunctionProto. Numbers of fields are those of onnx.proto. */
#include <stdlib.h>
#include <string.h>

#include "base/params.h"
#include "base/world.h"
#include "bridge/onnx_decode.h"

static const tutti_param map_param = TUTTI_PARAM(
    "MAP_MODELS", "1",
    "weights of ONNX files are read where the file is mapped; 0: the file is read at once");

static tutti_status read_opset(tutti_onnx_decoder *d, tutti_proto p, const char **ret_domain,
                               int64_t *ret_version)
{
    tutti_proto_field f;
    *ret_domain = "";
    *ret_version = 0;
    while (tutti__proto_next(&p, &f)) {
        if (f.number == 1)
            TUTTI_TRY(tutti__onnx_take_string(d, &f, ret_domain));
        if (f.number == 2)
            *ret_version = tutti__proto_int(&f);
    }
    return tutti__proto_end(&p);
}

/* The default domain is "" or "ai.onnx". */
static bool is_default(const char *domain)
{
    return domain[0] == 0 || strcmp(domain, "ai.onnx") == 0;
}

static tutti_status take_opset(tutti_onnx_decoder *d, tutti_proto p)
{
    const char *domain;
    int64_t version;
    TUTTI_TRY(read_opset(d, p, &domain, &version));
    if (is_default(domain)) {
        d->onnx->opset = version;
        return TUTTI_OK;
    }
    const char **slot = ONNX_PUSH(&d->onnx->arena, &d->onnx->domains);
    if (!slot)
        return tutti__onnx_no_memory(d);
    *slot = domain;
    return TUTTI_OK;
}

/* FunctionProto: name 1, input 4, output 5, node 7, opset_import 9, domain 10, attribute_proto 11.
 */
static tutti_status read_function(tutti_onnx_decoder *d, tutti_proto p, tutti_onnx_function *fn)
{
    tutti_proto_field f;
    const char *domain;
    int64_t version;
    fn->name = fn->domain = "";
    while (tutti__proto_next(&p, &f)) {
        if (f.number == 1)
            TUTTI_TRY(tutti__onnx_take_string(d, &f, &fn->name));
        if (f.number == 4)
            TUTTI_TRY(tutti__onnx_take_name(d, &f, &fn->inputs));
        if (f.number == 5)
            TUTTI_TRY(tutti__onnx_take_name(d, &f, &fn->outputs));
        if (f.number == 10)
            TUTTI_TRY(tutti__onnx_take_string(d, &f, &fn->domain));
        if (f.number == 9) {
            TUTTI_TRY(read_opset(d, tutti__proto_inside(&p, &f), &domain, &version));
            fn->opset = is_default(domain) ? version : fn->opset;
        }
        if (f.number != 7 && f.number != 11)
            continue;
        TUTTI_TRY(tutti__onnx_count(d));
        tutti_onnx_node *node = f.number == 7 ? ONNX_PUSH(&d->onnx->arena, &fn->nodes) : NULL;
        tutti_onnx_attr *attr = node ? NULL : ONNX_PUSH(&d->onnx->arena, &fn->defaults);
        if (!node && !attr)
            return tutti__onnx_no_memory(d);
        tutti_proto inside = tutti__proto_inside(&p, &f);
        TUTTI_TRY(node ? tutti__onnx_take_node(d, inside, node)
                       : tutti__onnx_take_attr(d, inside, attr));
    }
    return tutti__proto_end(&p);
}

static tutti_status take_function(tutti_onnx_decoder *d, tutti_proto p)
{
    TUTTI_TRY(tutti__onnx_count(d));
    tutti_onnx_function *fn = ONNX_PUSH(&d->onnx->arena, &d->onnx->functions);
    return fn ? read_function(d, p, fn) : tutti__onnx_no_memory(d);
}

/* ModelProto: ir_version 1, producer_name 2, producer_version 3, graph 7, opset_import 8,
 * functions 25. */
static tutti_status read_model(tutti_onnx_decoder *d, tutti_proto p)
{
    tutti_proto_field f;
    bool found = false;
    while (tutti__proto_next(&p, &f)) {
        if (f.number == 1)
            d->onnx->ir_version = tutti__proto_int(&f);
        if (f.number == 2)
            TUTTI_TRY(tutti__onnx_take_string(d, &f, &d->onnx->producer));
        if (f.number == 3)
            TUTTI_TRY(tutti__onnx_take_string(d, &f, &d->onnx->producer_version));
        if (f.number == 8)
            TUTTI_TRY(take_opset(d, tutti__proto_inside(&p, &f)));
        if (f.number == 25)
            TUTTI_TRY(take_function(d, tutti__proto_inside(&p, &f)));
        if (f.number != 7)
            continue;
        if (found)
            return tutti_fail(TUTTI_CORRUPT, "%s: the file holds two graphs", d->file);
        found = true;
        TUTTI_TRY(tutti__onnx_take_graph(d, tutti__proto_inside(&p, &f), &d->onnx->graph));
    }
    TUTTI_TRY(tutti__proto_end(&p));
    if (!found)
        return tutti_fail(TUTTI_CORRUPT, "%s: there is no graph in it; is it an ONNX file?",
                          d->file);
    return TUTTI_OK;
}

static tutti_status decode(tutti_onnx_decoder *d, const void *data, size_t size,
                           tutti_onnx **ret_onnx)
{
    TUTTI_TRY(tutti__onnx_create(&d->onnx));
    tutti_status status = read_model(d, tutti__proto(d->file, data, size));
    tutti__onnx_close_outside(d);
    if (status == TUTTI_OK)
        *ret_onnx = d->onnx;
    else
        tutti__onnx_free(d->onnx);
    return status;
}

tutti_status tutti__onnx_decode(const char *name, const void *data, size_t size,
                                tutti_onnx **ret_onnx)
{
    return decode(&(tutti_onnx_decoder){.file = name, .inside = true}, data, size, ret_onnx);
}

/* A file's bytes, mapped or read. */
typedef struct file_bytes {
    void *data;
    size_t size;
    bool mapped;
} file_bytes;

static void free_bytes(void *context)
{
    file_bytes *file = context;
    const tutti_world *world = tutti__world();
    if (file->mapped)
        world->unmap_file(world->self, file->data, file->size);
    else
        free(file->data);
    free(file);
}

static tutti_status take_bytes(const char *path, file_bytes *ret)
{
    const tutti_world *world = tutti__world();
    tutti_status status = TUTTI_UNSUPPORTED;
    bool maps;
    TUTTI_TRY(tutti__param_switch(&map_param, &maps));
    if (maps)
        status = world->map_file(world->self, path, ONNX_BYTES, &ret->data, &ret->size);
    ret->mapped = status == TUTTI_OK;
    return status == TUTTI_UNSUPPORTED
               ? world->read_file(world->self, path, ONNX_BYTES, &ret->data, &ret->size)
               : status;
}

static tutti_status open_bytes(const char *path, tutti_buffer **ret)
{
    file_bytes *file = calloc(1, sizeof *file);
    tutti_status status = file ? take_bytes(path, file)
                               : tutti_fail(TUTTI_NO_MEMORY, "%s: no memory for the model", path);
    if (status != TUTTI_OK) {
        free(file);
        return status;
    }
    status =
        tutti__buffer_wrap(tutti__host_memory(), file->data, file->size, free_bytes, file, ret);
    if (status != TUTTI_OK)
        free_bytes(file);
    return status;
}

tutti_status tutti__onnx_load(const char *path, tutti_onnx **ret_onnx)
{
    tutti_buffer *bytes;
    TUTTI_TRY(open_bytes(path, &bytes));
    tutti_onnx_decoder decoder = {.file = path, .bytes = bytes};
    tutti_status status = decode(&decoder, bytes->data, bytes->size, ret_onnx);
    tutti__buffer_release(bytes);
    return status;
}

tutti_status tutti__onnx_decode_tensor(const char *name, const void *data, size_t size,
                                       char ret_name[128], tutti_tensor **ret_tensor)
{
    tutti_onnx_decoder d = {.file = name, .inside = true};
    const char *own = "";
    tutti_tensor *tensor = NULL;
    TUTTI_TRY(tutti__onnx_create(&d.onnx));
    tutti_status status =
        tutti__onnx_take_tensor(&d, tutti__proto(name, data, size), &own, &tensor);
    if (status == TUTTI_OK && !tensor)
        status = tutti_fail(TUTTI_UNSUPPORTED, "%s: %s", name,
                            d.onnx->needs.count > 0 ? d.onnx->needs.items[0] : "no tensor");
    if (status == TUTTI_OK) {
        size_t length = strlen(own) < 127 ? strlen(own) : 127;
        memcpy(ret_name, own, length);
        ret_name[length] = 0;
        *ret_tensor = tutti_tensor_retain(tensor);
    }
    tutti__onnx_free(d.onnx);
    return status;
}
