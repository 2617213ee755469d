/* wire.c: 16-bit floats as codecs. */
#include "comm/coll/wire.h"

#include "comm/coll/fold.h"

static int64_t bound(void *context, int64_t count)
{
    (void)context;
    return count * 2;
}

static int64_t encode_bf16(void *context, const float *numbers, int64_t count, void *bytes)
{
    (void)context;
    tutti__fold_best()->narrow[TUTTI_BF16](numbers, count, bytes);
    return count * 2;
}
static void decode_bf16(void *context, const void *bytes, int64_t size, int64_t count, float *to)
{
    (void)context, (void)size;
    tutti__fold_best()->widen[TUTTI_BF16](bytes, count, to);
}
static int64_t encode_f16(void *context, const float *numbers, int64_t count, void *bytes)
{
    (void)context;
    tutti__fold_best()->narrow[TUTTI_F16](numbers, count, bytes);
    return count * 2;
}
static void decode_f16(void *context, const void *bytes, int64_t size, int64_t count, float *to)
{
    (void)context, (void)size;
    tutti__fold_best()->widen[TUTTI_F16](bytes, count, to);
}

const tutti_comm_codec *tutti__wire_codec(tutti_dtype dtype)
{
    static const tutti_comm_codec bf16 = {"bf16", bound, encode_bf16, decode_bf16, NULL};
    static const tutti_comm_codec f16 = {"f16", bound, encode_f16, decode_f16, NULL};
    return dtype == TUTTI_BF16 ? &bf16 : dtype == TUTTI_F16 ? &f16 : NULL;
}
