/* number.c: see number.h. The number, from its lowest bit. */
#include "comm/coll/number.h"

#include <stdio.h>
#include <string.h>

#include "base/container.h"
#include "comm/coll/wire.h"
#include "comm/fabric/fabric.h"

enum {
    OPERATION_BITS = 4,
    DTYPE_BITS = 5,
    REDUCTION_BITS = 3,
    UNEVEN_BITS = 1,
    FORM_BITS = 3,
    ROOT_BITS = 12,
    COUNT_BITS =
        64 - OPERATION_BITS - DTYPE_BITS - REDUCTION_BITS - UNEVEN_BITS - FORM_BITS - ROOT_BITS,
    DTYPE_AT = OPERATION_BITS,
    REDUCTION_AT = DTYPE_AT + DTYPE_BITS,
    UNEVEN_AT = REDUCTION_AT + REDUCTION_BITS,
    FORM_AT = UNEVEN_AT + UNEVEN_BITS,
    ROOT_AT = FORM_AT + FORM_BITS,
    COUNT_AT = ROOT_AT + ROOT_BITS,
};
_Static_assert(TUTTI_OPERATION_COUNT <= 1 << OPERATION_BITS, "operations fit into the number");

/* Elements; of blocks or tensors that are not alike a hash of how many each has. */
static uint64_t sizes_of(const tutti_collective *c)
{
    if (c->pieces)
        return c->pieces;
    return c->counts ? tutti__hash_bytes(0, c->counts, (size_t)c->size * sizeof *c->counts)
                     : (uint64_t)c->count;
}

/* In what form elements travel. */
typedef enum travel { PLAIN, AS_F16, AS_BF16, BY_CODEC, COMPRESSED, SHARDED, FORMS } travel;
_Static_assert(FORMS <= 1 << FORM_BITS, "forms fit into the number");

static travel travel_of(const tutti_collective *c)
{
    return c->compressor                               ? COMPRESSED
           : c->shards                                 ? SHARDED
           : !c->codec                                 ? PLAIN
           : c->codec == tutti__wire_codec(TUTTI_F16)  ? AS_F16
           : c->codec == tutti__wire_codec(TUTTI_BF16) ? AS_BF16
                                                       : BY_CODEC;
}

uint64_t tutti__call_number(const tutti_collective *c)
{
    return (uint64_t)c->operation | (uint64_t)c->dtype << DTYPE_AT |
           (uint64_t)c->reduction << REDUCTION_AT |
           (uint64_t)(c->counts || c->pieces) << UNEVEN_AT | (uint64_t)travel_of(c) << FORM_AT |
           (uint64_t)(c->root & ((1 << ROOT_BITS) - 1)) << ROOT_AT | sizes_of(c) << COUNT_AT;
}

static const uint64_t spreads = UINT64_C(0x9e3779b97f4a7c15);

uint64_t tutti__call_history(uint64_t before, uint64_t number, uint32_t form)
{
    uint64_t hash = ((before ^ number) * spreads + form) * spreads;
    return hash ^ hash >> 32;
}

uint32_t tutti__call_tag(uint64_t number, uint64_t sequence)
{
    uint64_t hash = number * spreads;
    return TUTTI_COLLECTIVE_TAG | (TUTTI_CALL_MASK & (uint32_t)(hash >> 33)) |
           ((uint32_t)sequence & TUTTI_SEQUENCE_MASK);
}

static unsigned bits(uint64_t number, int at, int count)
{
    return (unsigned)(number >> at) & ((1u << count) - 1);
}

const char *tutti__call_words(uint64_t number, char *ret_text, size_t size)
{
    static const char *const reductions[1 << REDUCTION_BITS] = {
        [TUTTI_SUM] = "sum", [TUTTI_MEAN] = "mean", [TUTTI_MIN] = "min",
        [TUTTI_MAX] = "max", [TUTTI_PROD] = "prod",
    };
    tutti_operation operation = (tutti_operation)bits(number, 0, OPERATION_BITS);
    const char *name =
        operation < TUTTI_OPERATION_COUNT ? tutti__operation_names[operation] : "no collective";
    const char *dtype = tutti_dtype_name((tutti_dtype)bits(number, DTYPE_AT, DTYPE_BITS));
    const char *reduction = reductions[bits(number, REDUCTION_AT, REDUCTION_BITS)];
    bool folds = operation == TUTTI_REDUCE || operation == TUTTI_ALL_REDUCE ||
                 operation == TUTTI_REDUCE_SCATTER;
    bool rooted = operation == TUTTI_BROADCAST || operation == TUTTI_REDUCE ||
                  operation == TUTTI_GATHER || operation == TUTTI_SCATTER;
    static const char *const forms[1 << FORM_BITS] = {
        [AS_F16] = ", as f16 on the wire", [AS_BF16] = ", as bf16 on the wire",
        [BY_CODEC] = ", by a codec",       [COMPRESSED] = ", by a compressor",
        [SHARDED] = ", of shards",
    };
    const char *form = forms[bits(number, FORM_AT, FORM_BITS)];
    char how[64] = "", root[32] = "";
    if (folds && reduction)
        snprintf(how, sizeof how, " (%s)", reduction);
    if (rooted)
        snprintf(root, sizeof root, " with root %u", bits(number, ROOT_AT, ROOT_BITS));
    if (operation >= TUTTI_OPERATION_COUNT || operation == TUTTI_BARRIER)
        snprintf(ret_text, size, "%s", name);
    else if (bits(number, UNEVEN_AT, UNEVEN_BITS))
        snprintf(ret_text, size, "%s%s of %s of %s%s", name, how,
                 folds ? "several tensors" : "uneven blocks", dtype, form ? form : "");
    else
        snprintf(ret_text, size, "%s%s of %llu x %s%s%s", name, how,
                 (unsigned long long)(number >> COUNT_AT), dtype, root, form ? form : "");
    return ret_text;
}

tutti_status tutti__calls_differ(const tutti_fabric *fabric, int one, uint64_t ones, int two,
                                 uint64_t twos)
{
    char name[320], other[320], first[160], second[160];
    tutti__call_words(ones, first, sizeof first);
    tutti__call_words(twos, second, sizeof second);
    bool alike = strcmp(first, second) == 0; /* blocks that are not alike are not listed */
    return tutti_fail(TUTTI_INVALID,
                      "%s is in %s and %s in %s; ranks must call the same operations with the same "
                      "sizes in the same order",
                      tutti__fabric_name(fabric, one, name, sizeof name), first,
                      tutti__fabric_name(fabric, two, other, sizeof other),
                      alike ? "one with other counts" : second);
}
