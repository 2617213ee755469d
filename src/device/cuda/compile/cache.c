/* cache.c: machine code on disk. An entry's name is a hash of all that it depends on: text, common
 * text, options, compiler and chip. It is
 *
 *     tutti cubin 1 <size> <hash of the code>\n<code>
 *
 * and anything else is a damaged one. Writers replace a file as a whole, so that readers beside
 * them see an old entry, a new one, or none. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/container.h"
#include "base/world.h"
#include "device/cuda/compile/compile.h"
#include "device/cuda/compile/source.h"

/* WAY: of compiling; another number where compile.c asks for something else. */
enum { MOST_BYTES = 256 << 20, HEAD_BYTES = 64, WAY = 2 };
#define HEAD_FORMAT "tutti cubin 1 %016zx %016" PRIx64 "\n"

static uint64_t key_of(const tutti_cuda_job *job, int major, int minor, uint64_t seed)
{
    uint64_t key = tutti__hash_mix(tutti__hash_string(seed, job->text), WAY);
    key = tutti__hash_string(key, tutti__cuda_text_common_cuh.text);
    key = tutti__hash_string(key, tutti__cuda_text_elementwise_cuh.text);
    key = tutti__hash_string(key, job->options);
    key = tutti__hash_mix(key, (uint64_t)major << 32 | (uint64_t)minor);
    return tutti__hash_mix(key, (uint64_t)job->capability);
}

tutti_status tutti__cuda_cache_path(const tutti_cuda_job *job, int major, int minor, char *ret_path)
{
    int size = snprintf(ret_path, 4096, "%s/cuda/%s-%016" PRIx64 "%016" PRIx64 ".cubin", job->cache,
                        job->name, key_of(job, major, minor, 1), key_of(job, major, minor, 2));
    return size < 4096 ? TUTTI_OK
                       : tutti_fail(TUTTI_TOO_LARGE, "the cache folder's name is too long");
}

tutti_status tutti__cuda_cache_read(const char *path, void **ret_cubin, size_t *ret_size)
{
    const tutti_world *world = tutti__world();
    void *data;
    size_t bytes, size = 0;
    uint64_t sum = 0;
    char head[HEAD_BYTES], *cubin = NULL;
    TUTTI_TRY(world->read_file(world->self, path, MOST_BYTES, &data, &bytes));
    const char *end = memchr(data, '\n', bytes < HEAD_BYTES ? bytes : HEAD_BYTES);
    size_t head_size = end ? (size_t)(end - (char *)data) + 1 : 0;
    bool whole = end && sscanf(data, "tutti cubin 1 %16zx %16" SCNx64, &size, &sum) == 2 &&
                 size > 0 && size == bytes - head_size &&
                 snprintf(head, sizeof head, HEAD_FORMAT, size, sum) == (int)head_size &&
                 memcmp(head, data, head_size) == 0 &&
                 tutti__hash_bytes(0, (char *)data + head_size, size) == sum;
    if (whole && (cubin = malloc(size)) != NULL)
        memcpy(cubin, (char *)data + head_size, size);
    free(data);
    if (!whole)
        return tutti_fail(TUTTI_CORRUPT, "%s is damaged", path);
    if (!cubin)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for %zu bytes of machine code", size);
    *ret_cubin = cubin;
    *ret_size = size;
    return TUTTI_OK;
}

tutti_status tutti__cuda_cache_write(const char *path, const void *cubin, size_t size)
{
    const tutti_world *world = tutti__world();
    char folder[4096];
    const char *slash = strrchr(path, '/');
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path) : 0, path);
    char *entry = malloc(HEAD_BYTES + size);
    if (!entry)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for %zu bytes of machine code", size);
    int head = snprintf(entry, HEAD_BYTES, HEAD_FORMAT, size, tutti__hash_bytes(0, cubin, size));
    memcpy(entry + head, cubin, size);
    tutti_status status = world->make_folder(world->self, folder);
    if (status == TUTTI_OK)
        status = world->write_file(world->self, path, entry, (size_t)head + size);
    free(entry);
    return status;
}
