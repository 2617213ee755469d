/* cpu.c: features from cpuid and xgetbv (x86_64) or the auxiliary vector (aarch64). */
#include "base/cpu.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/world.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

static uint64_t saved_registers(void)
{
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}

/* Bits of XCR0: what the operating system saves on a switch of threads. */
#define SAVES_AVX 0x6u
#define SAVES_AVX512 0xe6u
#define SAVES_AMX 0x60000u

/* AMX registers are large: a process asks Linux for them before it uses them, once. */
static bool ask_for_amx(void)
{
    const long ask = 0x1023, tile_data = 18;
    return syscall(SYS_arch_prctl, ask, tile_data) == 0;
}

static bool bit(uint32_t word, int index)
{
    return word >> index & 1;
}

static void read_model(tutti_cpu *cpu)
{
    uint32_t words[12] = {0};
    if ((unsigned)__get_cpuid_max(0x80000000u, NULL) < 0x80000004u)
        return;
    for (uint32_t i = 0; i < 3; i++)
        __get_cpuid(0x80000002u + i, &words[4 * i], &words[4 * i + 1], &words[4 * i + 2],
                    &words[4 * i + 3]);
    char text[sizeof words + 1] = {0};
    memcpy(text, words, sizeof words);
    snprintf(cpu->model, sizeof cpu->model, "%s", text + strspn(text, " "));
}

static void read_features(tutti_cpu *cpu)
{
    uint32_t a, b, c, d, basic;
    read_model(cpu);
    if (!__get_cpuid(1, &a, &b, &basic, &d) || !bit(basic, 27)) /* 27: xgetbv is there */
        return;
    uint64_t saved = saved_registers();
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d))
        return;
    bool fma = bit(basic, 12), f16c = bit(basic, 29);
    cpu->avx2 = (saved & SAVES_AVX) == SAVES_AVX && fma && f16c && bit(b, 5);
    cpu->avx512 = cpu->avx2 && (saved & SAVES_AVX512) == SAVES_AVX512 && bit(b, 16) && bit(b, 17) &&
                  bit(b, 30) && bit(b, 31);
    cpu->avx512_vnni = cpu->avx512 && bit(c, 11);
    cpu->amx_bf16 = (saved & SAVES_AMX) == SAVES_AMX && bit(d, 22) && bit(d, 24) && ask_for_amx();
    if (__get_cpuid_count(7, 1, &a, &b, &c, &d))
        cpu->avx512_bf16 = cpu->avx512 && bit(a, 5);
}

#elif defined(__aarch64__)
#include <sys/auxv.h>
#include <sys/prctl.h>

/* Bits of the auxiliary vector, as the kernel's interface fixes them. */
#define CAP_ASIMD (1ul << 1)
#define CAP_CPUID (1ul << 11)
#define CAP_DOTPROD (1ul << 20)
#define CAP_SVE (1ul << 22)
#define CAP2_I8MM (1ul << 13)
#define CAP2_BF16 (1ul << 14)
#define GET_SVE_LENGTH 51

static void read_model(tutti_cpu *cpu)
{
    static const struct {
        uint32_t maker, part;
        const char *name;
    } models[] = {
        {0x41, 0xd03, "Cortex-A53"},  {0x41, 0xd05, "Cortex-A55"},  {0x41, 0xd07, "Cortex-A57"},
        {0x41, 0xd08, "Cortex-A72"},  {0x41, 0xd0b, "Cortex-A76"},  {0x41, 0xd0c, "Neoverse-N1"},
        {0x41, 0xd40, "Neoverse-V1"}, {0x41, 0xd49, "Neoverse-N2"}, {0x41, 0xd4f, "Neoverse-V2"},
        {0x41, 0xd84, "Neoverse-V3"}, {0x41, 0xd8e, "Neoverse-N3"}, {0xc0, 0xac3, "Ampere-1"},
        {0x46, 0x001, "A64FX"},
    };
    uint64_t id;
    __asm__("mrs %0, midr_el1" : "=r"(id));
    uint32_t maker = id >> 24 & 0xff, part = id >> 4 & 0xfff;
    snprintf(cpu->model, sizeof cpu->model, "arm %02x:%03x", maker, part);
    for (size_t i = 0; i < TUTTI_COUNT(models); i++)
        if (models[i].maker == maker && models[i].part == part)
            snprintf(cpu->model, sizeof cpu->model, "%s", models[i].name);
}

static void read_features(tutti_cpu *cpu)
{
    unsigned long caps = getauxval(AT_HWCAP), caps2 = getauxval(AT_HWCAP2);
    cpu->neon = caps & CAP_ASIMD;
    cpu->sve = caps & CAP_SVE;
    cpu->dotprod = caps & CAP_DOTPROD;
    cpu->bf16 = caps2 & CAP2_BF16;
    cpu->i8mm = caps2 & CAP2_I8MM;
    int length = cpu->sve ? prctl(GET_SVE_LENGTH) : 0;
    cpu->sve_bytes = length > 0 ? length & 0xffff : 0;
    if (caps & CAP_CPUID)
        read_model(cpu);
}

#else
static void read_features(tutti_cpu *cpu)
{
    (void)cpu;
}
#endif

/* One line of a file of the first core's cache `index`; false when there is none. */
static bool cache_text(int index, const char *file, char ret_text[32])
{
    char path[96];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/%s", index, file);
    const tutti_world *world = tutti__world();
    void *data;
    size_t size;
    if (world->read_file(world->self, path, 4096, &data, &size) != TUTTI_OK)
        return false;
    snprintf(ret_text, 32, "%.*s", (int)(size < 31 ? size : 31), (const char *)data);
    free(data);
    return true;
}

/* "64K", "32M" */
static int64_t size_of(const char *text)
{
    char *end;
    int64_t size = strtoll(text, &end, 10);
    return *end == 'K' ? size << 10 : *end == 'M' ? size << 20 : size;
}

static void read_caches(tutti_cpu *cpu)
{
    cpu->l1_bytes = 32 << 10;
    cpu->l2_bytes = 512 << 10;
    cpu->l3_bytes = 8 << 20;
    char level[32], type[32], size[32];
    for (int i = 0; i < 8 && cache_text(i, "level", level); i++) {
        if (!cache_text(i, "type", type) || !cache_text(i, "size", size) || type[0] == 'I')
            continue;
        int64_t bytes = size_of(size);
        int64_t *where = level[0] == '1'   ? &cpu->l1_bytes
                         : level[0] == '2' ? &cpu->l2_bytes
                                           : &cpu->l3_bytes;
        if (bytes > 0)
            *where = bytes;
    }
}

static tutti_cpu this_cpu;

/* A file that is not there is no error here, so the thread's last message is put back. */
static void read_cpu(void)
{
    tutti_error before;
    tutti__error_capture(TUTTI_OK, &before);
    snprintf(this_cpu.model, sizeof this_cpu.model, "unknown");
    read_features(&this_cpu);
    read_caches(&this_cpu);
    tutti__error_restore(&before);
}

const tutti_cpu *tutti__cpu(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, read_cpu);
    return &this_cpu;
}

int64_t tutti__thread_ns(void)
{
    struct timespec used;
    return clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used) == 0
               ? (int64_t)used.tv_sec * 1000000000 + used.tv_nsec
               : 0;
}
