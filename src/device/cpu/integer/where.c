/* where.c: loops that choose between two elements. They move bits, so floats are integers of their
 * size. */
#include "device/cpu/integer/loops.h"

#define WHERE(name, T)                                                                             \
    static void name(const tutti_tile_args *t)                                                     \
    {                                                                                              \
        const uint8_t *condition = t->x[0];                                                        \
        const T *from_a = t->x[1], *from_b = t->x[2];                                              \
        T *to = t->y;                                                                              \
        const int64_t count = t->count;                                                            \
        INTEGER_FOR(int64_t i = 0; i < count; i++)                                                 \
        {                                                                                          \
            const T a = from_a[i], b = from_b[i];                                                  \
            to[i] = condition[i] != 0 ? a : b;                                                     \
        }                                                                                          \
    }
WHERE(of_1_byte, uint8_t)
WHERE(of_2_bytes, uint16_t)
WHERE(of_4_bytes, uint32_t)
WHERE(of_8_bytes, uint64_t)

static const tutti_integer_op ops[] = {
    {"where",
     3,
     {[TUTTI_I8] = of_1_byte,
      [TUTTI_U8] = of_1_byte,
      [TUTTI_BOOL] = of_1_byte,
      [TUTTI_F16] = of_2_bytes,
      [TUTTI_BF16] = of_2_bytes,
      [TUTTI_I32] = of_4_bytes,
      [TUTTI_F32] = of_4_bytes,
      [TUTTI_I64] = of_8_bytes,
      [TUTTI_F64] = of_8_bytes}},
    {0},
};

const tutti_integer_family TUTTI_ISA_NAME(tutti_integer_family_where) = {
    .isa = TUTTI_ISA_TEXT,
    .ops = ops,
};
