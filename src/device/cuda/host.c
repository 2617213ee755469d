/* host.c: the library's functions that the module calls, passed on; see module.h. Only in the
 * module: tests and the laboratory have the real ones. */
#include <stdio.h>
#include <string.h>

#include "device/cuda/host.h"

static const tutti_cuda_host *host;

void tutti__cuda_host_set(const tutti_cuda_host *given)
{
    host = given;
}

/* The name is a macro in the headers. */
tutti_status(tutti_fail)(tutti_status status, const char *format, ...)
{
    char message[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    return host->fail(status, message);
}

const char *tutti_error_message(void)
{
    return host->error_message();
}

void tutti__error_capture(tutti_status status, tutti_error *ret)
{
    host->error_capture(status, ret);
}

tutti_status tutti__error_restore(const tutti_error *error)
{
    return host->error_restore(error);
}

tutti_status tutti__error_prefix(tutti_status status, const char *format, ...)
{
    char prefix[512];
    tutti_error error;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(prefix, sizeof prefix, format, arguments);
    va_end(arguments);
    host->error_capture(status, &error);
    return (tutti_fail)(status, "%s: %s", prefix, error.message);
}

const tutti_world *tutti__world(void)
{
    return host->world();
}

const char *tutti__param_text(const tutti_param *param)
{
    return host->param_text(param);
}

void tutti__text_add(tutti_text *text, const char *format, ...)
{
    char line[2048];
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    host->text_bytes(text, line, size < (int)sizeof line ? (size_t)size : sizeof line - 1);
}

uint64_t tutti__hash_bytes(uint64_t seed, const void *data, size_t size)
{
    return host->hash_bytes(seed, data, size);
}

uint64_t tutti__hash_string(uint64_t seed, const char *text)
{
    return host->hash_bytes(seed, text ? text : "", text ? strlen(text) : 0);
}

void tutti__text_free(tutti_text *text)
{
    host->text_free(text);
}

const tutti_attr *tutti_attr_find(const tutti_attr *attrs, int count, const char *name)
{
    return host->attr_find(attrs, count, name);
}

int64_t tutti_attr_int(const tutti_attr *attrs, int count, const char *name)
{
    const tutti_attr *attr = host->attr_find(attrs, count, name);
    return attr ? attr->value.i : 0;
}

double tutti_attr_float(const tutti_attr *attrs, int count, const char *name)
{
    const tutti_attr *attr = host->attr_find(attrs, count, name);
    return attr ? attr->value.f : 0;
}

const char *tutti_attr_string(const tutti_attr *attrs, int count, const char *name)
{
    const tutti_attr *attr = host->attr_find(attrs, count, name);
    return attr && attr->value.s ? attr->value.s : "";
}

int tutti_attr_ints(const tutti_attr *attrs, int count, const char *name,
                    const int64_t **ret_values)
{
    const tutti_attr *attr = host->attr_find(attrs, count, name);
    *ret_values = attr ? attr->value.ints : NULL;
    return attr ? attr->count : 0;
}

const char *tutti_dtype_name(tutti_dtype dtype)
{
    return host->dtype_name(dtype);
}

size_t tutti_dtype_size(tutti_dtype dtype)
{
    return host->dtype_size(dtype);
}

bool tutti_dtype_is_float(tutti_dtype dtype)
{
    return dtype == TUTTI_F32 || dtype == TUTTI_F64 || dtype == TUTTI_F16 || dtype == TUTTI_BF16;
}

bool tutti_dtype_is_int(tutti_dtype dtype)
{
    return dtype == TUTTI_I8 || dtype == TUTTI_U8 || dtype == TUTTI_I32 || dtype == TUTTI_I64;
}

double tutti_tensor_get(const tutti_tensor *tensor, int64_t index)
{
    return host->tensor_get(tensor, index);
}

int64_t tutti_tensor_get_int(const tutti_tensor *tensor, int64_t index)
{
    return host->tensor_get_int(tensor, index);
}

void tutti_view_set(const tutti_view *view, int64_t index, double value)
{
    host->view_set(view, index, value);
}
