#include "base/cpu.h"

#include <string.h>

#include "base/test.h"

TUTTI_TEST(cpu_features_hold_together)
{
    const tutti_cpu *cpu = tutti__cpu();
    CHECK(cpu == tutti__cpu());
    CHECK(strlen(cpu->model) > 0);
    CHECK(!cpu->avx512 || cpu->avx2);
    CHECK((cpu->sve_bytes > 0) == cpu->sve);
    CHECK(cpu->l1_bytes >= 8 << 10 && cpu->l1_bytes <= 1 << 20);
    CHECK(cpu->l2_bytes >= cpu->l1_bytes);
#if defined(__x86_64__)
    CHECK_INT(cpu->avx2, __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"));
    CHECK_INT(cpu->avx512,
              __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"));
    CHECK(!cpu->neon && !cpu->sve);
#elif defined(__aarch64__)
    CHECK(cpu->neon && !cpu->avx2);
#endif
}
