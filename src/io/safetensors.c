/* safetensors.c: the reader. Everything in a header is checked before memory is taken for data. */
#include "io/safetensors.h"

#include <stdlib.h>
#include <string.h>

#include "io/crc32c.h"

#define HEADER_LIMIT ((uint64_t)100 << 20) /* bytes, as in the format's own library */
#define PIECE ((size_t)1 << 20)            /* bytes read and checked at a time, while in cache */

/* Every type of the format; those without dtype are listed but not loaded. */
static const struct {
    const char *text;
    tutti_dtype dtype;
    int bits;
} kinds[] = {
    {"F32", TUTTI_F32, 32},
    {"F64", TUTTI_F64, 64},
    {"F16", TUTTI_F16, 16},
    {"BF16", TUTTI_BF16, 16},
    {"I8", TUTTI_I8, 8},
    {"U8", TUTTI_U8, 8},
    {"I32", TUTTI_I32, 32},
    {"I64", TUTTI_I64, 64},
    {"BOOL", TUTTI_BOOL, 8},
    {"I16", TUTTI_NO_DTYPE, 16},
    {"U16", TUTTI_NO_DTYPE, 16},
    {"U32", TUTTI_NO_DTYPE, 32},
    {"U64", TUTTI_NO_DTYPE, 64},
    {"F8_E4M3", TUTTI_NO_DTYPE, 8},
    {"F8_E5M2", TUTTI_NO_DTYPE, 8},
    {"F8_E8M0", TUTTI_NO_DTYPE, 8},
    {"F4", TUTTI_NO_DTYPE, 4},
    {"C64", TUTTI_NO_DTYPE, 64},
};

const char *tutti__safetensors_dtype_text(tutti_dtype dtype)
{
    for (size_t i = 0; i < TUTTI_COUNT(kinds); i++)
        if (kinds[i].dtype == dtype && dtype != TUTTI_NO_DTYPE)
            return kinds[i].text;
    return NULL;
}

/* Where in the file something of the header stands: 8 bytes of size come first. */
static long long safetensors_place(const tutti_json *json)
{
    return 8 + (long long)json->offset;
}

static tutti_status fail_entry(const tutti_source *source, const tutti_json *entry,
                               const char *expected)
{
    return tutti_fail(TUTTI_CORRUPT, "%s: tensor '%.200s' (offset %lld): %s", source->name,
                      entry->key, safetensors_place(entry), expected);
}

static tutti_status parse_dtype(const tutti_source *source, const tutti_json *entry,
                                tutti_safetensor *item, int *ret_bits)
{
    const char *text = tutti__json_text(tutti__json_get(entry, "dtype"), NULL);
    if (text == NULL)
        return fail_entry(source, entry, "expected a text \"dtype\"");
    for (size_t i = 0; i < TUTTI_COUNT(kinds); i++)
        if (strcmp(kinds[i].text, text) == 0) {
            item->dtype = kinds[i].text;
            item->type.dtype = kinds[i].dtype;
            *ret_bits = kinds[i].bits;
            return TUTTI_OK;
        }
    return tutti_fail(TUTTI_UNSUPPORTED, "%s: tensor '%.200s' has the unknown dtype \"%.40s\"",
                      source->name, entry->key, text);
}

/* Dimensions, and the bytes they need with elements of `bits`. */
static tutti_status parse_shape(const tutti_source *source, const tutti_json *entry, int bits,
                                tutti_safetensor *item, int64_t *ret_bytes)
{
    const tutti_json *shape = tutti__json_get(entry, "shape");
    int64_t count = 1;
    if (shape == NULL || shape->kind != TUTTI_JSON_ARRAY)
        return fail_entry(source, entry, "expected an array \"shape\"");
    if (shape->count > TUTTI_MAX_RANK)
        return tutti_fail(TUTTI_UNSUPPORTED,
                          "%s: tensor '%.200s' has %zu dimensions, at most %d are read here",
                          source->name, entry->key, shape->count, TUTTI_MAX_RANK);
    for (const tutti_json *each = shape->as.first; each != NULL; each = each->next) {
        int64_t dim = tutti__json_int(each, -1);
        if (dim < 0)
            return fail_entry(source, entry, "expected dimensions that are integers from 0");
        item->type.dims[item->type.rank++] = dim;
        if (!tutti__mul_size(count, dim, &count))
            return fail_entry(source, entry, "its dimensions overflow 64 bits");
    }
    if (!tutti__mul_size(count, bits, &count) || count % 8 != 0)
        return fail_entry(source, entry, "its dimensions give no whole number of bytes");
    *ret_bytes = count / 8;
    return TUTTI_OK;
}

static tutti_status parse_offsets(const tutti_source *source, const tutti_json *entry,
                                  int64_t data_at, int64_t bytes, tutti_safetensor *item)
{
    const tutti_json *offsets = tutti__json_get(entry, "data_offsets");
    const tutti_json *first = tutti__json_first(offsets);
    if (first == NULL || offsets->count != 2 || offsets->kind != TUTTI_JSON_ARRAY)
        return fail_entry(source, entry, "expected \"data_offsets\": [begin, end]");
    int64_t begin = tutti__json_int(first, -1), end = tutti__json_int(first->next, -1);
    if (begin < 0 || end < begin || end > source->size - data_at)
        return tutti_fail(
            TUTTI_CORRUPT,
            "%s: tensor '%.200s' claims bytes %lld to %lld of %lld bytes of data; the "
            "file is truncated or its header damaged",
            source->name, entry->key, (long long)begin, (long long)end,
            (long long)(source->size - data_at));
    if (end - begin != bytes)
        return tutti_fail(TUTTI_CORRUPT,
                          "%s: tensor '%.200s': shape and dtype need %lld bytes, data_offsets give "
                          "%lld",
                          source->name, entry->key, (long long)bytes, (long long)(end - begin));
    item->offset = data_at + begin;
    item->size = bytes;
    return TUTTI_OK;
}

static tutti_status parse_entry(const tutti_source *source, const tutti_json *entry,
                                int64_t data_at, tutti_safetensor *item)
{
    int bits;
    int64_t bytes;
    if (entry->kind != TUTTI_JSON_OBJECT || entry->count != 3)
        return fail_entry(source, entry, "expected {\"dtype\", \"shape\", \"data_offsets\"}");
    item->name = entry->key;
    TUTTI_TRY(parse_dtype(source, entry, item, &bits));
    TUTTI_TRY(parse_shape(source, entry, bits, item, &bytes));
    return parse_offsets(source, entry, data_at, bytes, item);
}

static int by_offset(const void *a, const void *b)
{
    const tutti_safetensor *left = a, *right = b;
    if (left->offset != right->offset)
        return left->offset < right->offset ? -1 : 1;
    return (left->size > right->size) - (left->size < right->size); /* empty ones first */
}

static tutti_status check_layout(const tutti_source *source, const tutti_safetensor *items,
                                 size_t count, int64_t data_at)
{
    int64_t at = data_at;
    for (size_t i = 0; i < count; at += items[i].size, i++)
        if (items[i].offset != at)
            return tutti_fail(TUTTI_CORRUPT,
                              "%s: tensor '%.200s' begins at offset %lld, expected "
                              "%lld: tensors %s",
                              source->name, items[i].name, (long long)items[i].offset,
                              (long long)at, items[i].offset < at ? "overlap" : "leave a hole");
    if (at != source->size)
        return tutti_fail(TUTTI_CORRUPT,
                          "%s: its tensors end at offset %lld, but the file has %lld bytes",
                          source->name, (long long)at, (long long)source->size);
    return TUTTI_OK;
}

/* Eight hexadecimal digits. */
static bool parse_digits(const char *text, uint32_t *ret)
{
    uint32_t value = 0;
    for (int i = 0; i < 8; i++) {
        const char *digits = "0123456789abcdef", *found = text[i] ? strchr(digits, text[i]) : NULL;
        if (found == NULL)
            return false;
        value = value << 4 | (uint32_t)(found - digits);
    }
    *ret = value;
    return true;
}

/* `header` is the first 8 + n bytes; the digits of its own checksum become zeros. */
static tutti_status check_header(tutti_safetensors_file *file, char *header, size_t size,
                                 const tutti_json *digits)
{
    uint32_t promised;
    char *text = header + 8 + digits->offset + 1;
    if (digits->count != 8 || (size_t)digits->offset + 17 > size || !parse_digits(text, &promised))
        return tutti_fail(TUTTI_CORRUPT, "%s: \"tutti.header.crc32c\" must be 8 hexadecimal digits",
                          file->source->name);
    memset(text, '0', 8);
    file->header_crc = tutti__crc32c(0, header, size);
    if (file->header_crc != promised)
        return tutti_fail(TUTTI_CORRUPT,
                          "%s: the header's checksum is %08x, the file says %08x: it is damaged",
                          file->source->name, file->header_crc, promised);
    return TUTTI_OK;
}

/* Before anything else of the header is judged: a flipped bit may make a dtype that is none, and is
 * damage all the same. */
static tutti_status check_whole(tutti_safetensors_file *file, char *header, size_t size)
{
    const tutti_json *own = tutti__json_get(file->metadata, "tutti.header.crc32c");
    return own != NULL ? check_header(file, header, size, own) : TUTTI_OK;
}

/* What each tensor's bytes come to. */
static tutti_status take_sums(tutti_safetensors_file *file, tutti_safetensor *items, size_t count)
{
    const tutti_json *sums = tutti__json_get(file->metadata, "tutti.crc32c");
    const tutti_json *own = tutti__json_get(file->metadata, "tutti.header.crc32c");
    if (sums == NULL && own == NULL)
        return TUTTI_OK;
    if (sums == NULL || own == NULL || sums->count != 8 * count)
        return tutti_fail(TUTTI_CORRUPT,
                          "%s: its metadata holds one checksum without the others (expected "
                          "\"tutti.header.crc32c\" and 8 digits for each of %zu tensors)",
                          file->source->name, count);
    for (size_t i = 0; i < count; i++) {
        if (!parse_digits(sums->as.text + 8 * i, &items[i].crc))
            return tutti_fail(TUTTI_CORRUPT, "%s: no checksum of tensor '%.200s'",
                              file->source->name, items[i].name);
        items[i].checked = true;
    }
    file->checked = true;
    return TUTTI_OK;
}

static tutti_status check_metadata(const tutti_source *source, const tutti_json *metadata)
{
    if (metadata->kind != TUTTI_JSON_OBJECT)
        return tutti_fail(TUTTI_CORRUPT, "%s: offset %lld: __metadata__ is %s, expected an object",
                          source->name, safetensors_place(metadata),
                          tutti__json_kind_text(metadata));
    for (const tutti_json *each = metadata->as.first; each != NULL; each = each->next)
        if (each->kind != TUTTI_JSON_STRING)
            return tutti_fail(
                TUTTI_CORRUPT, "%s: offset %lld: metadata '%.200s' is %s, expected a string",
                source->name, safetensors_place(each), each->key, tutti__json_kind_text(each));
    return TUTTI_OK;
}

/* The items of one header behind those that are there; `data_at` is 8 + n. */
static tutti_status add_items(tutti_safetensors *all, tutti_safetensors_file *file,
                              const tutti_json *root, char *header, int64_t data_at)
{
    const tutti_source *source = file->source;
    const tutti_json *metadata = tutti__json_get(root, "__metadata__");
    size_t count = root->count - (metadata != NULL);
    if (metadata != NULL)
        TUTTI_TRY(check_metadata(source, metadata));
    file->metadata = metadata;
    TUTTI_TRY(check_whole(file, header, (size_t)data_at));
    tutti_safetensor *grown = realloc(all->items, (all->count + count + 1) * sizeof *grown);
    if (grown == NULL)
        return tutti_fail(TUTTI_NO_MEMORY, "%s: no memory for %zu tensors", source->name, count);
    all->items = grown;
    tutti_safetensor *items = grown + all->count, *next = items;
    for (const tutti_json *each = root->as.first; each != NULL; each = each->next) {
        if (each == metadata)
            continue;
        *next = (tutti_safetensor){.file = all->file_count - 1};
        TUTTI_TRY(parse_entry(source, each, data_at, next));
        next++;
    }
    qsort(items, count, sizeof *items, by_offset);
    TUTTI_TRY(check_layout(source, items, count, data_at));
    TUTTI_TRY(take_sums(file, items, count));
    all->count += count;
    return TUTTI_OK;
}

static tutti_status parse_header(tutti_safetensors *all, tutti_safetensors_file *file, char *header,
                                 uint64_t n)
{
    const tutti_json *root;
    TUTTI_TRY(
        tutti__json_parse(file->source->name, header + 8, (size_t)n, NULL, &all->arena, &root));
    if (root->kind != TUTTI_JSON_OBJECT)
        return tutti_fail(TUTTI_CORRUPT, "%s: offset 8: the header is %s, expected an object",
                          file->source->name, tutti__json_kind_text(root));
    return add_items(all, file, root, header, 8 + (int64_t)n);
}

tutti_status tutti__safetensors_add(tutti_safetensors *all, tutti_source *source)
{
    tutti_safetensors_file *grown =
        realloc(all->files, ((size_t)all->file_count + 1) * sizeof *grown);
    if (grown == NULL) {
        tutti__source_close(source);
        return tutti_fail(TUTTI_NO_MEMORY, "no memory to read '%s'", all->name);
    }
    all->files = grown;
    grown[all->file_count++] = (tutti_safetensors_file){.source = source};
    uint8_t size[8];
    TUTTI_TRY(tutti__source_read(source, 0, size, 8, "the size of its header"));
    uint64_t n = tutti__get_u64(size);
    if (n > HEADER_LIMIT || n < 2 || (int64_t)n > source->size - 8)
        return tutti_fail(TUTTI_CORRUPT,
                          "%s: no safetensors file: its first 8 bytes promise a header of %llu "
                          "bytes, the file has %lld (at most 100 MiB of header are read)",
                          source->name, (unsigned long long)n, (long long)source->size);
    char *header = malloc((size_t)n + 8);
    if (header == NULL)
        return tutti_fail(TUTTI_NO_MEMORY, "%s: no memory for a header of %llu bytes", source->name,
                          (unsigned long long)n);
    tutti_status status = tutti__source_read(source, 0, header, (size_t)n + 8, "its header");
    if (status == TUTTI_OK)
        status = parse_header(all, &all->files[all->file_count - 1], header, n);
    free(header);
    return status;
}

tutti_status tutti__safetensors_fetch(const tutti_safetensors *file, const tutti_safetensor *item,
                                      void *ret_data)
{
    tutti_source *source = file->files[item->file].source;
    uint8_t *data = ret_data;
    uint32_t crc = 0;
    for (size_t at = 0, size = (size_t)item->size; at < size;) {
        size_t piece = size - at < PIECE ? size - at : PIECE;
        TUTTI_TRY(tutti__source_read(source, item->offset + (int64_t)at, data + at, piece,
                                     "the data of a tensor"));
        crc = item->checked ? tutti__crc32c(crc, data + at, piece) : 0;
        at += piece;
    }
    if (item->checked && crc != item->crc)
        return tutti_fail(
            TUTTI_CORRUPT,
            "%s: tensor '%.200s' (bytes %lld to %lld) has the checksum %08x, the file "
            "says %08x: it is damaged",
            source->name, item->name, (long long)item->offset,
            (long long)(item->offset + item->size), crc, item->crc);
    for (int64_t i = 0; item->type.dtype == TUTTI_BOOL && i < item->size; i++)
        if (data[i] > 1)
            return tutti_fail(TUTTI_CORRUPT,
                              "%s: tensor '%.200s': byte %u at offset %lld is no boolean (0 or 1)",
                              source->name, item->name, data[i], (long long)(item->offset + i));
    return TUTTI_OK;
}

tutti_status tutti__safetensors_tensor(const tutti_safetensors *file, const tutti_safetensor *item,
                                       tutti_tensor **ret_tensor)
{
    if (item->lengths != NULL)
        return tutti__safetensors_strings(file, item, ret_tensor);
    if (item->box_count > 0)
        return tutti__safetensors_whole(file, item, ret_tensor);
    if (item->type.dtype == TUTTI_NO_DTYPE)
        return tutti_fail(TUTTI_UNSUPPORTED,
                          "%s: tensor '%.200s' has the dtype %s, which is not "
                          "read here; convert it first",
                          file->files[item->file].source->name, item->name, item->dtype);
    tutti_tensor *tensor;
    TUTTI_TRY(tutti__tensor_in(tutti__host_memory(), &item->type, &tensor));
    tutti_status status = tutti__safetensors_fetch(file, item, tutti_tensor_data(tensor));
    if (status != TUTTI_OK)
        tutti_tensor_release(tensor);
    else
        *ret_tensor = tensor;
    return status;
}
