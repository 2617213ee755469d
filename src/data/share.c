/* share.c: how several processes share a dataset: which policy, and how many rows they have in
 * all. */
#include "base/params.h"
#include "data/dataset.h"

static const tutti_param costly_param =
    TUTTI_PARAM("SHARE_BYTES", "268435456",
                "files of so many bytes are shared by file or by bytes: reading them everywhere "
                "takes too long");

const char *tutti__share_name(tutti_shard_policy policy)
{
    static const char *const names[] = {"auto", "element", "file", "bytes", "off"};
    return policy >= 0 && (size_t)policy < TUTTI_COUNT(names) ? names[policy] : "unknown";
}

uint64_t tutti__share_seed(const tutti_share *share, uint64_t seed)
{
    bool other = tutti__share_apart(share) && share->index > 0;
    return other ? tutti__hash_mix(seed, (uint64_t)share->index) : seed;
}

/* The dataset of the pipeline that makes its batches, or NULL. */
static tutti_dataset *batching(tutti_dataset *dataset)
{
    while (dataset && dataset->def->hands_on && !dataset->def->own)
        dataset = dataset->inputs[0];
    return dataset && dataset->def->shares_rows ? dataset : NULL;
}

bool tutti__share_begin(tutti_dataset *dataset, const tutti_share *share)
{
    tutti_dataset *made_by = batching(dataset);
    if (made_by && tutti__share_apart(share))
        dataset->share = share; /* iterators hand it down to the files */
    else if (made_by)
        made_by->share = share;
    return made_by != NULL;
}

void tutti__share_end(tutti_dataset *dataset)
{
    tutti_dataset *made_by = batching(dataset);
    if (made_by)
        made_by->share = dataset->share = NULL;
}

/* ---- which policy ---- */

static void look(const tutti_dataset *dataset, tutti_intake *ret);

static void look_at_inputs(const tutti_dataset *dataset, tutti_intake *ret)
{
    *ret = (tutti_intake){.files = dataset->input_count, .cuts = true};
    for (int i = 0; i < dataset->input_count; i++) {
        tutti_intake one;
        look(dataset->inputs[i], &one);
        if (one.stops || one.files == 0) {
            *ret = one;
            return;
        }
        ret->cuts = ret->cuts && one.cuts;
        ret->bytes = ret->bytes < 0 || one.bytes < 0 ? -1 : ret->bytes + one.bytes;
    }
}

static void look(const tutti_dataset *dataset, tutti_intake *ret)
{
    *ret = (tutti_intake){.bytes = -1};
    if (dataset->def->reads)
        dataset->def->reads(dataset, ret);
    else if (dataset->def->deals)
        look_at_inputs(dataset, ret);
    else if (dataset->def->keeps_parts && dataset->input_count == 1)
        look(dataset->inputs[0], ret);
    else
        *ret = (tutti_intake){
            .bytes = -1, .stops = dataset->def->name, .source = dataset->input_count == 0};
}

/* Files that come out even, or many, are dealt; else bytes always come out even. */
static tutti_shard_policy best(const tutti_intake *reading, int count)
{
    if (reading->stops || reading->files == 0 || reading->bytes < tutti__param_int(&costly_param))
        return TUTTI_SHARD_ELEMENT;
    if (reading->files % count == 0 || reading->files >= 4 * count)
        return TUTTI_SHARD_FILE;
    return reading->cuts             ? TUTTI_SHARD_BYTES
           : reading->files >= count ? TUTTI_SHARD_FILE
                                     : TUTTI_SHARD_ELEMENT;
}

static tutti_status share_refuse(tutti_shard_policy policy, const char *reason, const char *name)
{
    return tutti_fail(
        TUTTI_INVALID, "the data cannot be shared by '%s': %s%s%s%s; use shard=element",
        tutti__share_name(policy), name ? "'" : "", name ? name : "", name ? "' " : "", reason);
}

static tutti_status share_check(const tutti_dataset *dataset, const tutti_dataset *batches,
                                tutti_shard_policy policy, int count)
{
    tutti_intake reading;
    if (!batches)
        return share_refuse(policy, "its last steps do not make the batches (tutti_batch)", NULL);
    if (batches->info.batch < count)
        return share_refuse(policy, "a batch has fewer rows than there are workers", NULL);
    if (dataset->once)
        return share_refuse(policy,
                            "it can be read once, and may have been begun; give its generator "
                            "a reset function",
                            NULL);
    if (policy == TUTTI_SHARD_OFF)
        return TUTTI_OK;
    look(batches->inputs[0], &reading);
    if (reading.stops)
        return share_refuse(policy,
                            reading.source ? "does not read files that can be shared"
                                           : "stands between its files and its batches",
                            reading.stops);
    if (policy == TUTTI_SHARD_BYTES && !reading.cuts)
        return share_refuse(policy, "its files are packed or cannot be opened", NULL);
    return TUTTI_OK;
}

tutti_status tutti__share_choose(const tutti_dataset *dataset, tutti_shard_policy wanted, int count,
                                 tutti_shard_policy *ret)
{
    const tutti_dataset *batches = batching((tutti_dataset *)(uintptr_t)dataset);
    tutti_shard_policy policy = wanted;
    if (wanted == TUTTI_SHARD_AUTO) {
        tutti_intake reading;
        policy = TUTTI_SHARD_ELEMENT;
        if (batches && batches->info.batch >= count && !dataset->once) {
            look(batches->inputs[0], &reading);
            policy = best(&reading, count);
        }
    } else if (wanted != TUTTI_SHARD_ELEMENT) {
        TUTTI_TRY(share_check(dataset, batches, wanted, count));
    }
    *ret = policy;
    return TUTTI_OK;
}

void tutti__share_describe(const tutti_dataset *dataset, tutti_shard_policy policy, int count,
                           tutti_text *text)
{
    tutti_dataset *batches = batching((tutti_dataset *)(uintptr_t)dataset);
    tutti_intake reading = {0};
    if (tutti__dataset_is_own(dataset)) {
        tutti__text_add(text, "by function: each of %d workers reads what its function gives",
                        count);
        return;
    }
    if (batches && (policy == TUTTI_SHARD_FILE || policy == TUTTI_SHARD_BYTES))
        look(batches->inputs[0], &reading);
    tutti__text_add(
        text, policy == TUTTI_SHARD_OFF ? "not shared: " : "by %s: ", tutti__share_name(policy));
    if (policy == TUTTI_SHARD_FILE)
        tutti__text_add(text, "each of %d workers reads some of %d files%s", count, reading.files,
                        reading.files < count ? ", and some have none" : "");
    else if (policy == TUTTI_SHARD_BYTES)
        tutti__text_add(text, "each of %d workers reads a range of the bytes of %d file%s", count,
                        reading.files, reading.files == 1 ? "" : "s");
    else if (policy == TUTTI_SHARD_OFF)
        tutti__text_add(text, "each of %d workers reads everything", count);
    else
        tutti__text_add(text, "each of %d workers %s its rows of every batch", count,
                        batches && batches->access != TUTTI_ACCESS_NONE ? "reads"
                                                                        : "reads all and keeps");
}

/* ---- rows ---- */

static int64_t rows_of(const tutti_element *element)
{
    return element->count > 0 && tutti_tensor_rank(element->tensors[0]) > 0
               ? tutti_tensor_dims(element->tensors[0])[0]
               : 0;
}

/* An element of no rows. */
static tutti_status make_empty(const tutti_likeness *like, tutti_element *ret)
{
    tutti_element made = {0};
    for (int c = 0; c < like->count; c++) {
        tutti_type type = like->types[c];
        if (type.rank > 0)
            type.dims[0] = 0;
        tutti_status status =
            tutti_tensor_create(type.dtype, type.rank, type.dims, &made.tensors[c]);
        if (status != TUTTI_OK) {
            tutti_element_release(&made);
            return status;
        }
        made.count++;
    }
    *ret = made;
    return TUTTI_OK;
}

tutti_status tutti__share_meet(tutti_iterator *iterator, tutti_element *element)
{
    const tutti_share *share = iterator->share;
    tutti_likeness like = {.count = element->count};
    for (int c = 0; c < element->count; c++)
        like.types[c] = *tutti_tensor_type(element->tensors[c]);
    int64_t batch;
    tutti_status status = share->agree(share->context, rows_of(element), &like, &batch);
    if (status == TUTTI_OK && batch > 0 && rows_of(element) == 0) {
        iterator->delivered += element->count == 0;
        tutti_element_release(element);
        status = make_empty(&like, element);
    }
    if (status != TUTTI_OK || batch == 0) {
        tutti_element_release(element);
        return status;
    }
    element->rows = batch;
    element->own = true;
    return TUTTI_OK;
}
