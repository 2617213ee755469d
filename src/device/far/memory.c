/* memory.c: regions of memory files; see memory.h. */
#define _GNU_SOURCE
#include "device/far/memory.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/status.h"

static void unmap(char *at, size_t size)
{
    if (at)
        munmap(at, size);
}

static void free_region(tutti_far_region *region)
{
    unmap(region->device, region->size);
    unmap(region->read, region->size);
    unmap(region->write, region->size);
    for (int i = 0; i < region->stream_count; i++) {
        unmap(region->stream_read[i], region->size);
        unmap(region->stream_write[i], region->size);
    }
    free(region);
}

/* A mapping of a memory file, or of nothing (file -1). */
static bool map(int file, size_t size, int protection, char **ret)
{
    int flags = file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE : MAP_SHARED;
    void *at = mmap(NULL, size, protection, flags, file, 0);
    if (at == MAP_FAILED)
        return false;
    *ret = at;
    return true;
}

/* Whether the process could have so much memory at all: a memory file takes pages only when they
 * are written, and would let anything begin. */
static bool could_have(size_t size)
{
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return at != MAP_FAILED && munmap(at, size) == 0;
}

static bool map_region(tutti_far_region *region, int file)
{
    size_t size = region->size;
    bool ok = map(-1, size, PROT_NONE, &region->device) &&
              map(file, size, PROT_READ, &region->read) &&
              map(file, size, PROT_READ | PROT_WRITE, &region->write);
    for (int i = 0; ok && i < region->stream_count; i++)
        ok = map(file, size, PROT_NONE, &region->stream_read[i]) &&
             map(file, size, PROT_NONE, &region->stream_write[i]);
    return ok;
}

tutti_status tutti__far_region_create(tutti_far_memory *memory, size_t size, int stream_count,
                                      tutti_far_region **ret)
{
    if (size > PTRDIFF_MAX - TUTTI_FAR_ALIGNMENT)
        return tutti_fail(TUTTI_TOO_LARGE, "memory of %s: %zu bytes are more than can be addressed",
                          memory->name, size);
    tutti_far_region *region = calloc(1, sizeof *region);
    int file = region ? memfd_create("tutti-far", MFD_CLOEXEC) : -1;
    bool ok = file >= 0;
    if (ok) {
        region->size = (size / TUTTI_FAR_ALIGNMENT + 1) * TUTTI_FAR_ALIGNMENT;
        region->memory = memory;
        region->stream_count = stream_count;
        ok = could_have(region->size) && ftruncate(file, (off_t)region->size) == 0 &&
             map_region(region, file);
    }
    int error = errno;
    if (file >= 0)
        close(file); /* the mappings keep it */
    if (!ok) {
        if (region)
            free_region(region);
        return tutti_fail(TUTTI_NO_MEMORY, "memory of %s: no room for %zu bytes: %s", memory->name,
                          size, strerror(error));
    }
    pthread_mutex_lock(&memory->lock);
    region->next = memory->regions;
    memory->regions = region;
    pthread_mutex_unlock(&memory->lock);
    *ret = region;
    return TUTTI_OK;
}

void tutti__far_region_destroy(tutti_far_memory *memory, tutti_far_region *region)
{
    if (!region)
        return;
    pthread_mutex_lock(&memory->lock);
    tutti_far_region **link = &memory->regions;
    while (*link != region)
        link = &(*link)->next;
    *link = region->next;
    pthread_mutex_unlock(&memory->lock);
    free_region(region);
}

tutti_status tutti__far_find(tutti_far_memory *memory, const void *device, size_t size,
                             const tutti_far_region **ret_region, size_t *ret_offset)
{
    uintptr_t at = (uintptr_t)device;
    const tutti_far_region *found = NULL;
    pthread_mutex_lock(&memory->lock);
    for (const tutti_far_region *region = memory->regions; region && !found;
         region = region->next) {
        uintptr_t first = (uintptr_t)region->device;
        /* An address at the end of one region is the beginning of the next, also for 0 bytes. */
        if (at >= first && at - first < region->size && size <= region->size - (at - first))
            found = region;
    }
    pthread_mutex_unlock(&memory->lock);
    if (!found)
        return tutti_fail(TUTTI_INVALID, "%zu bytes at %p are no memory of %s", size, device,
                          memory->name);
    *ret_region = found;
    *ret_offset = at - (uintptr_t)found->device;
    return TUTTI_OK;
}

void tutti__far_protect(char *at, size_t size, tutti_far_access access)
{
    static const int protections[] = {PROT_NONE, PROT_READ, PROT_READ | PROT_WRITE};
    /* What fails here leaves the memory closed, and the kernel's access ends the process. */
    if (size > 0)
        (void)mprotect(at, size, protections[access]);
}

static tutti_status memory_allocate(void *self, size_t size, void **ret)
{
    tutti_far_region *region;
    TUTTI_TRY(tutti__far_region_create(self, size, 0, &region));
    *ret = region->device;
    return TUTTI_OK;
}

static void let_go(tutti_far_memory *memory, const void *data)
{
    pthread_mutex_lock(&memory->lock);
    tutti_far_region *region = memory->regions;
    while (region && region->device != data)
        region = region->next;
    pthread_mutex_unlock(&memory->lock);
    tutti__far_region_destroy(memory, region);
}

static void let_go_on_stream(void *region, int stream, int64_t index)
{
    tutti_far_region *whole = region;
    TUTTI_UNUSED(stream);
    TUTTI_UNUSED(index);
    tutti__far_region_destroy(whole->memory, whole);
}

/* Without memory for the stream's list it stays until the device is closed. */
static void release(void *self, void *data, size_t size)
{
    tutti_far_memory *memory = self;
    const tutti_far_region *region;
    size_t offset;
    TUTTI_UNUSED(size);
    tutti_far_moment now = {0};
    if (memory->streams)
        now = tutti__far_streams_now(memory->streams);
    if (!memory->streams || tutti__far_streams_passed(memory->streams, &now))
        let_go(memory, data);
    else if (tutti__far_find(memory, data, 0, &region, &offset) == TUTTI_OK)
        (void)tutti__far_streams_put(
            memory->streams, 0, true,
            &(tutti_far_work){.run = let_go_on_stream, .context = (void *)(uintptr_t)region});
}

/* Finds memory, when all that was put on streams is done. */
static tutti_status reach(tutti_far_memory *memory, const void *data, size_t size,
                          const tutti_far_region **ret_region, size_t *ret_offset)
{
    if (memory->streams) {
        tutti_far_moment now = tutti__far_streams_now(memory->streams);
        tutti__far_streams_wait(memory->streams, &now);
    }
    return tutti__far_find(memory, data, size, ret_region, ret_offset);
}

static tutti_status copy_in(void *self, void *device_data, const void *host, size_t size)
{
    const tutti_far_region *region;
    size_t offset;
    TUTTI_TRY(reach(self, device_data, size, &region, &offset));
    if (size > 0)
        memcpy(region->write + offset, host, size);
    return TUTTI_OK;
}

static tutti_status copy_out(void *self, void *host, const void *device_data, size_t size)
{
    const tutti_far_region *region;
    size_t offset;
    TUTTI_TRY(reach(self, device_data, size, &region, &offset));
    if (size > 0)
        memcpy(host, region->read + offset, size);
    return TUTTI_OK;
}

static tutti_status copy_within(void *self, void *to, const void *from, size_t size)
{
    const tutti_far_region *region;
    size_t offset;
    TUTTI_TRY(reach(self, from, size, &region, &offset));
    return copy_in(self, to, region->read + offset, size);
}

tutti_status tutti__far_memory_create(const char *name, tutti_far_streams *streams,
                                      tutti_far_memory **ret)
{
    tutti_far_memory *memory = calloc(1, sizeof *memory);
    if (!memory)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for device %s", name);
    snprintf(memory->name, sizeof memory->name, "%s", name);
    memory->memory = (tutti_memory){.name = memory->name,
                                    .allocate = memory_allocate,
                                    .release = release,
                                    .copy_in = copy_in,
                                    .copy_out = copy_out,
                                    .copy_within = copy_within,
                                    .host_visible = false,
                                    .alignment = 4096, /* the smallest page there is */
                                    .self = memory};
    memory->streams = streams;
    pthread_mutex_init(&memory->lock, NULL);
    *ret = memory;
    return TUTTI_OK;
}

void tutti__far_memory_destroy(tutti_far_memory *memory)
{
    if (!memory)
        return;
    while (memory->regions)
        tutti__far_region_destroy(memory, memory->regions);
    pthread_mutex_destroy(&memory->lock);
    free(memory);
}
