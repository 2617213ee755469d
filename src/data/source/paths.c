/* paths.c: see paths.h. */
#include "data/source/paths.h"

#include <stdlib.h>

#include "io/gzip.h"
#include "io/stream.h"

static tutti_status paths_keep(tutti_dataset *dataset, const char *path, int count,
                               const char *const *paths, tutti_paths *ret)
{
    const char *const *from = count > 0 ? paths : &path;
    int kept = count > 0 ? count : 1;
    for (int i = 0; i < kept; i++)
        if (!from || !from[i])
            return tutti_fail(TUTTI_INVALID, "path %d is NULL", i);
    const char **list = tutti__arena_array(&dataset->job->arena, (size_t)kept, sizeof *list);
    if (!list)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for %d paths", kept);
    for (int i = 0; i < kept; i++) {
        list[i] = tutti__dataset_name(dataset->job, from[i]);
        dataset->hash = tutti__hash_string(dataset->hash, from[i]);
    }
    *ret = (tutti_paths){kept, list};
    return TUTTI_OK;
}

tutti_dataset *tutti__paths_dataset(const tutti_dataset_def *def, tutti_job *job, const char *path,
                                    int count, const char *const *paths)
{
    tutti_dataset *dataset = tutti__dataset_create(def, job, 0, NULL);
    if (!dataset)
        return NULL;
    tutti_status status = paths_keep(dataset, path, count, paths, dataset->settings);
    return status == TUTTI_OK ? dataset : tutti__dataset_fail(job, def, status);
}

static tutti_status size_of(const char *path, int64_t *ret_size, bool *ret_packed)
{
    tutti_source *source;
    uint8_t start[2];
    size_t got = 0;
    TUTTI_TRY(tutti__source_file(path, &source));
    tutti_status status = tutti__source_some(source, 0, start, sizeof start, &got);
    *ret_size = source->size;
    /* zlib begins with 78; a size that does is that of a TFRecord, which cannot be told from here
     */
    *ret_packed = status == TUTTI_OK && tutti__gzip_is(start, got);
    tutti__source_close(source);
    return status;
}

static tutti_status find_sizes(const tutti_paths *paths, tutti_file_span *span)
{
    bool packed;
    span->sizes = calloc((size_t)paths->count, sizeof *span->sizes);
    if (!span->sizes)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for the sizes of %d files", paths->count);
    for (int i = 0; i < paths->count; i++) {
        TUTTI_TRY(size_of(paths->list[i], &span->sizes[i], &packed));
        if (packed)
            return tutti_fail(TUTTI_UNSUPPORTED,
                              "%s: a packed file cannot be cut by bytes; unpack it, or share by "
                              "file or element: --set shard=file",
                              paths->list[i]);
    }
    return TUTTI_OK;
}

/* What of file `file` lies in the part of all files' bytes. */
static void paths_cut(const tutti_paths *paths, const tutti_share *share, tutti_file_span *span)
{
    int64_t all = 0, before = 0, size = span->sizes[span->file];
    for (int i = 0; i < paths->count; i++) {
        before += i < span->file ? span->sizes[i] : 0;
        all += span->sizes[i];
    }
    int64_t begin = tutti__share_bound(all, share->count, share->index) - before;
    int64_t end = tutti__share_bound(all, share->count, share->index + 1) - before;
    span->begin = begin < 0 ? 0 : begin > size ? size : begin;
    span->end = end < 0 ? 0 : end > size ? size : end;
}

tutti_status tutti__paths_next(const tutti_paths *paths, const tutti_share *share,
                               tutti_file_span *span)
{
    tutti_shard_policy policy = share ? share->policy : TUTTI_SHARD_OFF;
    if (policy == TUTTI_SHARD_BYTES && !span->sizes)
        TUTTI_TRY(find_sizes(paths, span));
    span->file += span->begun && span->file < paths->count;
    span->begun = true;
    span->begin = 0;
    span->end = INT64_MAX;
    for (; span->file < paths->count; span->file++) {
        if (policy == TUTTI_SHARD_FILE && span->file % share->count != share->index)
            continue;
        if (policy == TUTTI_SHARD_BYTES)
            paths_cut(paths, share, span);
        if (span->begin < span->end)
            break;
    }
    return TUTTI_OK;
}

void tutti__paths_end(tutti_file_span *span)
{
    free(span->sizes);
    span->sizes = NULL;
}

void tutti__paths_reads(const tutti_dataset *dataset, tutti_intake *ret)
{
    const tutti_paths *paths = dataset->settings;
    *ret = (tutti_intake){.files = paths->count, .cuts = true};
    for (int i = 0; i < paths->count; i++) {
        int64_t size;
        bool packed;
        if (size_of(paths->list[i], &size, &packed) != TUTTI_OK) {
            ret->bytes = -1; /* whoever reads it says what is wrong */
            ret->cuts = false;
            return;
        }
        ret->bytes += size;
        ret->cuts = ret->cuts && !packed;
    }
}
