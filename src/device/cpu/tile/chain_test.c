#include "device/cpu/tile/chain.h"

#include "base/cpu.h"
#include "base/test.h"

#if defined(__x86_64__)
#include <cpuid.h>

enum { UPPER_HALVES = 1u << 2 | 1u << 6 }; /* of the registers of 256 and of 512 bits */

/* Which of the parts of the registers are in use; 0 on a CPU that does not tell. */
static unsigned in_use(void)
{
    unsigned a, b, c, d;
    if (!__get_cpuid_count(0xd, 1, &a, &b, &c, &d) || !(a & 1u << 2))
        return 0;
    __asm__ volatile("xgetbv" : "=a"(a), "=d"(d) : "c"(1));
    return a & UPPER_HALVES;
}

static void clear_upper_halves(void)
{
    if (tutti__cpu()->avx2)
        __asm__ volatile("vzeroupper");
}
#else
static unsigned in_use(void)
{
    return 0;
} /* registers without such halves */
static void clear_upper_halves(void)
{
}
#endif

TUTTI_TEST(chain_leaves_no_upper_halves_of_registers_in_use)
{
    const tutti_chain *chain = tutti__chain();
    float from[1024] = {1}, to[1024];
    CHECK(chain->block <= 1024);
    tutti_chain_op ops[3] = {
        {.run = tutti__chain_find(chain, ".finish", TUTTI_CHAIN_ALONE, NULL), .memory = to}};
    clear_upper_halves();
    unsigned before = in_use();
    chain->run(from, ops, chain->block);
    CHECK_INT(in_use(), before);
    CHECK(to[0] == 1 && to[chain->block - 1] == 0);
}
