/* random.c: Philox 4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2,
 * 3", SC 2011). */
#include "base/random.h"

#include <math.h>

void tutti__random_block(tutti_random_key key, uint64_t index, uint32_t ret_words[4])
{
    uint32_t c0 = (uint32_t)index, c1 = (uint32_t)(index >> 32);
    uint32_t c2 = (uint32_t)key.stream, c3 = (uint32_t)(key.stream >> 32);
    uint32_t k0 = (uint32_t)key.seed, k1 = (uint32_t)(key.seed >> 32);
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)0xd2511f53u * c0, p1 = (uint64_t)0xcd9e8d57u * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)p1;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)p0;
        k0 += 0x9e3779b9u;
        k1 += 0xbb67ae85u;
    }
    ret_words[0] = c0;
    ret_words[1] = c1;
    ret_words[2] = c2;
    ret_words[3] = c3;
}

uint32_t tutti__random_u32(tutti_random_key key, uint64_t i)
{
    uint32_t words[4];
    tutti__random_block(key, i / 4, words);
    return words[i % 4];
}

float tutti__random_f32(tutti_random_key key, uint64_t i)
{
    return (float)(tutti__random_u32(key, i) >> 8) * 0x1p-24f;
}

/* r = sqrt(-2 ln u), u in (0, 1]; even i gives r cos(2 pi v), odd i gives r sin(2 pi v). */
double tutti__random_normal(tutti_random_key key, uint64_t i)
{
    uint32_t words[4];
    tutti__random_block(key, i / 4, words);
    const uint32_t *pair = words + (i % 4 & 2);
    double radius = sqrt(-2.0 * log(((double)pair[0] + 1.0) * 0x1p-32));
    double angle = 6.283185307179586476925 * ((double)pair[1] * 0x1p-32);
    return radius * (i % 2 == 0 ? cos(angle) : sin(angle));
}

/* floor(x * bound / 2^64) for the 64-bit number x. Numbers 2i and 2i + 1 are one half of block
 * i / 2, found without forming 2i, which may overflow. */
uint64_t tutti__random_below(tutti_random_key key, uint64_t i, uint64_t bound)
{
    __extension__ typedef unsigned __int128 wide;
    uint32_t words[4];
    tutti__random_block(key, i / 2, words);
    const uint32_t *pair = words + 2 * (i % 2);
    uint64_t x = (uint64_t)pair[1] << 32 | pair[0];
    return (uint64_t)((wide)x * bound >> 64);
}
