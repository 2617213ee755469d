/* safetensors_write.c: the streaming writer. The header is written with zeros for checksums, which
 * are filled in at the end, so that data is passed over once. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/crc32c.h"
#include "io/safetensors.h"

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool is_utf8(const char *text)
{
    size_t left = strlen(text), bytes = 1;
    for (; left > 0 && (bytes = tutti__utf8_length(text, left)) > 0; left -= bytes)
        text += bytes;
    return bytes > 0;
}

static tutti_status check_names(const char *path, size_t count, const char **names)
{
    for (size_t i = 0; i < count; i++)
        if (!is_utf8(names[i]) || strcmp(names[i], "__metadata__") == 0 ||
            strcmp(names[i], "tutti.crc32c") == 0 || strcmp(names[i], "tutti.header.crc32c") == 0)
            return tutti_fail(TUTTI_INVALID, "%s: '%.200s' cannot be a name in a safetensors file",
                              path, names[i]);
    qsort(names, count, sizeof *names, by_text);
    for (size_t i = 1; i < count; i++)
        if (strcmp(names[i - 1], names[i]) == 0)
            return tutti_fail(TUTTI_INVALID, "%s: the name '%.200s' is given twice", path,
                              names[i]);
    return TUTTI_OK;
}

static tutti_status check_plan(const char *path, size_t count, const tutti_safetensors_plan *plan,
                               size_t metadata_count, const tutti_text_pair *metadata)
{
    size_t most = count > metadata_count ? count : metadata_count;
    const char **names = malloc((most + 1) * sizeof(char *));
    if (names == NULL)
        return tutti_fail(TUTTI_NO_MEMORY, "%s: no memory for %zu names", path, most);
    for (size_t i = 0; i < count; i++)
        names[i] = plan[i].name;
    tutti_status status = check_names(path, count, names);
    for (size_t i = 0; i < metadata_count; i++)
        names[i] = metadata[i].key;
    if (status == TUTTI_OK)
        status = check_names(path, metadata_count, names);
    free(names);
    return status;
}

static void put_metadata(tutti_safetensors_writer *w, tutti_json_writer *json, size_t count,
                         const tutti_text_pair *metadata)
{
    tutti__json_key(json, "__metadata__");
    tutti__json_begin(json, '{');
    for (size_t i = 0; i < count; i++) {
        tutti__json_key(json, metadata[i].key);
        tutti__json_put_string(json, metadata[i].value);
    }
    tutti__json_key(json, "tutti.header.crc32c");
    tutti__json_put_string(json, "00000000");
    w->header_crc_at = w->header.size - 9;
    tutti__json_key(json, "tutti.crc32c");
    tutti__json_put_string(json, "");
    w->crcs_at = w->header.size - 1;
    w->header.size--; /* the closing quote comes after the digits */
    for (size_t i = 0; i < w->count; i++)
        tutti__text_bytes(&w->header, "00000000", 8);
    tutti__text_bytes(&w->header, "\"", 1);
    tutti__json_end(json);
}

static tutti_status put_entry(tutti_safetensors_writer *w, tutti_json_writer *json, size_t i,
                              const tutti_safetensors_plan *plan, int64_t *at)
{
    const char *dtype = tutti__safetensors_dtype_text(plan->type.dtype);
    int64_t count = tutti_type_count(&plan->type), size, end;
    if (dtype == NULL || count < 0)
        return tutti_fail(
            TUTTI_UNSUPPORTED,
            "%s: tensor '%.200s' is of %s with %lld elements, which safetensors cannot "
            "hold (f32 f64 f16 bf16 i8 u8 i32 i64 bool of known shape)",
            w->sink->name, plan->name, tutti_dtype_name(plan->type.dtype), (long long)count);
    if (!tutti__mul_size(count, (int64_t)tutti_dtype_size(plan->type.dtype), &size) ||
        !tutti__add_size(*at, size, &end))
        return tutti_fail(TUTTI_TOO_LARGE, "%s: sizes overflow at tensor '%.200s'", w->sink->name,
                          plan->name);
    w->sizes[i] = size;
    tutti__json_key(json, plan->name);
    tutti__json_begin(json, '{');
    tutti__json_key(json, "dtype");
    tutti__json_put_string(json, dtype);
    tutti__json_key(json, "shape");
    tutti__json_begin(json, '[');
    for (int d = 0; d < plan->type.rank; d++)
        tutti__json_put_int(json, plan->type.dims[d]);
    tutti__json_end(json);
    tutti__json_key(json, "data_offsets");
    tutti__json_begin(json, '[');
    tutti__json_put_int(json, *at);
    tutti__json_put_int(json, end);
    tutti__json_end(json);
    tutti__json_end(json);
    *at = end;
    return TUTTI_OK;
}

static tutti_status put_header(tutti_safetensors_writer *w, const tutti_safetensors_plan *plan,
                               size_t metadata_count, const tutti_text_pair *metadata)
{
    tutti_json_writer json = {.text = &w->header};
    int64_t at = 0;
    tutti__text_bytes(&w->header, "\0\0\0\0\0\0\0\0", 8);
    tutti__json_begin(&json, '{');
    put_metadata(w, &json, metadata_count, metadata);
    for (size_t i = 0; i < w->count; i++)
        TUTTI_TRY(put_entry(w, &json, i, &plan[i], &at));
    tutti__json_end(&json);
    TUTTI_TRY(tutti__json_finish(&json));
    tutti__text_bytes(&w->header, "       ", (8 - w->header.size % 8) % 8);
    if (w->header.failed)
        return tutti_fail(TUTTI_NO_MEMORY, "%s: no memory for the header", w->sink->name);
    tutti__put_u64(w->header.data, w->header.size - 8);
    return TUTTI_OK;
}

/* Tensors without bytes need no writing. */
static void skip_empty(tutti_safetensors_writer *w)
{
    while (w->current < w->count && w->written == w->sizes[w->current]) {
        w->current++;
        w->written = 0;
    }
}

tutti_status tutti__safetensors_begin(tutti_sink *sink, size_t count,
                                      const tutti_safetensors_plan *plan, size_t metadata_count,
                                      const tutti_text_pair *metadata,
                                      tutti_safetensors_writer *ret_writer)
{
    TUTTI_TRY(check_plan(sink->name, count, plan, metadata_count, metadata));
    tutti_safetensors_writer w = {.sink = sink,
                                  .count = count,
                                  .sizes = calloc(count + 1, sizeof(int64_t)),
                                  .crcs = calloc(count + 1, sizeof(uint32_t))};
    tutti_status status =
        w.sizes != NULL && w.crcs != NULL
            ? put_header(&w, plan, metadata_count, metadata)
            : tutti_fail(TUTTI_NO_MEMORY, "%s: no memory to write %zu tensors", sink->name, count);
    if (status == TUTTI_OK)
        status = tutti__sink_write(sink, w.header.data, w.header.size);
    if (status != TUTTI_OK) {
        tutti__safetensors_free(&w);
        return status;
    }
    skip_empty(&w);
    *ret_writer = w;
    return TUTTI_OK;
}

tutti_status tutti__safetensors_write(tutti_safetensors_writer *w, const void *data, size_t size)
{
    const uint8_t *bytes = data;
    while (size > 0) {
        if (w->current == w->count)
            return tutti_fail(TUTTI_INVALID, "%s: %zu bytes more than the tensors planned have",
                              w->sink->name, size);
        int64_t left = w->sizes[w->current] - w->written;
        size_t piece = (int64_t)size < left ? size : (size_t)left;
        piece = piece < (1u << 18) ? piece : 1u << 18; /* checksum while in cache */
        w->crcs[w->current] = tutti__crc32c(w->crcs[w->current], bytes, piece);
        TUTTI_TRY(tutti__sink_write(w->sink, bytes, piece));
        w->written += (int64_t)piece;
        bytes += piece;
        size -= piece;
        skip_empty(w);
    }
    return TUTTI_OK;
}

tutti_status tutti__safetensors_write_tensor(tutti_safetensors_writer *w, tutti_tensor *tensor)
{
    tutti_tensor *host, *whole;
    TUTTI_TRY(tutti__tensor_to_host(tensor, &host));
    tutti_status status = tutti_tensor_contiguous(host, &whole);
    tutti_tensor_release(host);
    TUTTI_TRY(status);
    size_t size = (size_t)tutti_tensor_count(whole) * tutti_dtype_size(tutti_tensor_dtype(whole));
    status = tutti__safetensors_write(w, tutti_tensor_data(whole), size);
    tutti_tensor_release(whole);
    return status;
}

tutti_status tutti__safetensors_finish(tutti_safetensors_writer *w)
{
    char digits[9];
    if (w->current != w->count)
        return tutti_fail(TUTTI_INVALID, "%s: tensor %zu of %zu was not written to its end",
                          w->sink->name, w->current + 1, w->count);
    for (size_t i = 0; i < w->count; i++) {
        snprintf(digits, sizeof digits, "%08x", w->crcs[i]);
        memcpy(w->header.data + w->crcs_at + 8 * i, digits, 8);
    }
    w->header_crc = tutti__crc32c(0, w->header.data, w->header.size);
    snprintf(digits, sizeof digits, "%08x", w->header_crc);
    memcpy(w->header.data + w->header_crc_at, digits, 8);
    int64_t data = 0;
    for (size_t i = 0; i < w->count; i++)
        data += w->sizes[i];
    return tutti__sink_patch(w->sink, w->sink->size - data - (int64_t)w->header.size,
                             w->header.data, w->header.size);
}

void tutti__safetensors_free(tutti_safetensors_writer *w)
{
    free(w->sizes);
    free(w->crcs);
    tutti__text_free(&w->header);
    *w = (tutti_safetensors_writer){0};
}
