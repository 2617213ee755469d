/* distance.c: see distance.h. */
#include "service/store/distance.h"

#include <math.h>

#include "tensor/dtype.h"

void tutti__store_distances_free(tutti_store_distances *d)
{
    for (size_t i = 0; i < d->reads.count; i++)
        tutti_tensor_release(d->reads.data[i].value);
    for (size_t i = 0; i < d->moved.count; i++)
        tutti_tensor_release(d->moved.data[i].value);
    TUTTI_VEC_FREE(&d->reads);
    TUTTI_VEC_FREE(&d->moved);
}

static bool is_measured(const tutti_store_shard *shard)
{
    return shard->rate == TUTTI_STORE_RATE_DISTANCE && !shard->rule->kind->sparse;
}

static double distance_of(const tutti_tensor *a, const tutti_tensor *b)
{
    enum { BLOCK = 256 };
    double x[BLOCK], y[BLOCK], sum = 0;
    int64_t count = tutti_tensor_count(a);
    tutti_dtype dtype = tutti_tensor_dtype(a);
    size_t element = tutti_dtype_size(dtype);
    for (int64_t at = 0; at < count; at += BLOCK) {
        int64_t here = count - at < BLOCK ? count - at : BLOCK;
        tutti__elements_to_doubles(dtype, (char *)tutti_tensor_data(a) + (size_t)at * element, here,
                                   x);
        tutti__elements_to_doubles(dtype, (char *)tutti_tensor_data(b) + (size_t)at * element, here,
                                   y);
        for (int64_t i = 0; i < here; i++)
            sum += (x[i] - y[i]) * (x[i] - y[i]);
    }
    return sqrt(sum);
}

static tutti_store_read *read_of(const tutti_store_distances *d, uint32_t shard,
                                 uint32_t contribution)
{
    for (size_t i = 0; i < d->reads.count; i++)
        if (d->reads.data[i].shard == shard && d->reads.data[i].contribution == contribution)
            return &d->reads.data[i];
    return NULL;
}

static tutti_store_moved *moved_of(const tutti_store_distances *d, uint32_t shard)
{
    for (size_t i = 0; i < d->moved.count; i++)
        if (d->moved.data[i].shard == shard)
            return &d->moved.data[i];
    return NULL;
}

void tutti__store_distances_read(tutti_store_distances *d, const tutti_store_shard *shard,
                                 uint32_t contribution, tutti_tensor *value)
{
    if (!is_measured(shard))
        return;
    tutti_store_read *read = read_of(d, shard->id, contribution);
    if (read) {
        tutti_tensor_release(read->value);
        read->value = tutti_tensor_retain(value);
        return;
    }
    tutti_store_read made = {shard->id, contribution, tutti_tensor_retain(value)};
    if (!TUTTI_VEC_PUSH(&d->reads, made))
        tutti_tensor_release(value);
}

void tutti__store_distances_note(tutti_store_distances *d, tutti_store_shard *shard)
{
    tutti_store_moved *moved = moved_of(d, shard->id);
    tutti_tensor *value = NULL;
    if (!is_measured(shard) || (moved && moved->version == shard->policy.version) ||
        shard->rule->kind->read(shard->rule, true, (tutti_packed_data){0}, &value) != TUTTI_OK)
        return;
    if (!moved) {
        tutti_store_moved made = {shard->id, shard->policy.version, value, 0, 0};
        if (!TUTTI_VEC_PUSH(&d->moved, made))
            tutti_tensor_release(value);
        return;
    }
    moved->norms += distance_of(value, moved->value);
    moved->updates++;
    moved->version = shard->policy.version;
    tutti_tensor_release(moved->value);
    moved->value = value;
}

double tutti__store_distances_factor(const tutti_store_distances *d, const tutti_store_shard *shard,
                                     uint32_t contribution)
{
    const tutti_store_read *read = read_of(d, shard->id, contribution);
    const tutti_store_moved *moved = moved_of(d, shard->id);
    if (!read || !moved || moved->updates == 0 || !(moved->norms > 0))
        return 1;
    double factor =
        1 / (1 + distance_of(moved->value, read->value) / (moved->norms / (double)moved->updates));
    return isfinite(factor) ? factor : 1;
}
