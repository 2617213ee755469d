/* string_hash_bucket.c: each string's number in [0, buckets), by a hash that is the same on every
 * machine and in every version: FNV-1a of 64 bits,
 *   h = 14695981039346656037; for each byte: h = (h xor byte) * 1099511628211
 * the halves of which are then mixed, because the low bits alone are poor: bucket = (h xor h /
 * 2^32) mod buckets, unsigned. */
#include "ops/text/strings.h"

static tutti_status string_hash_bucket_infer(tutti_infer *node)
{
    if (RULE_INT(node, "buckets") < 1)
        return RULE_FAIL(node, TUTTI_INVALID, "there are %lld buckets, needs 1 or more",
                         (long long)RULE_INT(node, "buckets"));
    return tutti__infer_of_strings(node, TUTTI_I64);
}

static uint64_t hash_of(tutti_string x)
{
    uint64_t hash = UINT64_C(14695981039346656037);
    for (int64_t i = 0; i < x.size; i++)
        hash = (hash ^ (unsigned char)x.data[i]) * UINT64_C(1099511628211);
    return hash ^ hash >> 32;
}

static tutti_status string_hash_bucket_reference(const tutti_kernel_call *call)
{
    const tutti_string *x = call->inputs[0].data;
    int64_t *y = call->outputs[0].data, count = tutti_view_count(&call->inputs[0]);
    uint64_t buckets = (uint64_t)RULE_INT(call, "buckets");
    for (int64_t i = 0; i < count; i++)
        y[i] = (int64_t)(hash_of(x[i]) % buckets);
    return TUTTI_OK;
}

extern const tutti_op tutti_op_string_hash_bucket;
tutti_sym(tutti_string_hash_bucket)(tutti_sym x, int64_t buckets)
{
    return TUTTI_NARY(&tutti_op_string_hash_bucket, ((tutti_sym[]){x}),
                      TUTTI_INT("buckets", buckets));
}

static const tutti_attr_spec attrs[] = {
    {"buckets", TUTTI_ATTR_INT, NULL},
    {NULL},
};

static const char *const samples[] = {
    "string[3]{=a,b,c} | buckets=10",
    "string[2,2]{=a,b,a,d} | buckets=1000003",
    "string[0] | buckets=1",
    NULL,
};

const tutti_op tutti_op_string_hash_bucket = {
    .struct_size = sizeof(tutti_op),
    .name = "string_hash_bucket",
    .version = 1,
    .doc = "string_hash_bucket(x; buckets): y = FNV-1a hash of x, its halves mixed, mod buckets",
    .category = "text",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .flags = TUTTI_TEXT_FLAGS,
    .attrs = attrs,
    .infer = string_hash_bucket_infer,
    .cost = tutti__cost_move,
    .split = tutti__split_strings,
    .reference = string_hash_bucket_reference,
    .samples = samples,
};
