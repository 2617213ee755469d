/* crc32c.c: see crc32c.h. The instruction has a latency of 2 or 3 cycles and starts every cycle, so
 * three streams run side by side and are joined: crc(a b) = shift(crc(a), |b|) ^ crc(b), where
 * shift multiplies by x^(8 |b|) modulo the polynomial. */
#include "io/crc32c.h"

#include <pthread.h>
#include <string.h>

#if defined(__x86_64__)
#include <nmmintrin.h>
#define INSTRUCTION_TARGET __attribute__((target("sse4.2")))
#define STEP_8(crc, word) ((uint32_t)_mm_crc32_u64((crc), (word)))
#define STEP_1(crc, byte) _mm_crc32_u8((crc), (byte))
#define HAS_INSTRUCTION() __builtin_cpu_supports("sse4.2")
#elif defined(__aarch64__)
#include <sys/auxv.h>
#define CAP_CRC32 (1ul << 7)
#define HAS_INSTRUCTION() ((getauxval(AT_HWCAP) & CAP_CRC32) != 0)
#if defined(__clang__)
#define INSTRUCTION_TARGET __attribute__((target("crc")))
#define STEP_8(crc, word) __builtin_arm_crc32cd((crc), (word))
#define STEP_1(crc, byte) __builtin_arm_crc32cb((crc), (byte))
#else
#define INSTRUCTION_TARGET __attribute__((target("+crc")))
#define STEP_8(crc, word) __builtin_aarch64_crc32cx((crc), (word))
#define STEP_1(crc, byte) __builtin_aarch64_crc32cb((crc), (byte))
#endif
#endif

#define POLYNOMIAL 0x82f63b78u /* reflected: bit 31 is x^0 */
#define STREAM ((size_t)4096)  /* bytes of each of the three streams */

/* table[k][b]: the checksum of byte b followed by k zero bytes.
 * jump[k][b]: byte k of a checksum, which is b, moved over STREAM zero bytes. */
static uint32_t table[8][256], jump[4][256];
static bool has_instruction;

/* a b modulo the polynomial. */
static uint32_t crc32c_multiply(uint32_t a, uint32_t b)
{
    uint32_t product = 0;
    for (uint32_t bit = 1u << 31; bit != 0; bit >>= 1) {
        product ^= a & bit ? b : 0;
        b = b & 1 ? b >> 1 ^ POLYNOMIAL : b >> 1;
    }
    return product;
}

/* x^(8 bytes) modulo the polynomial. */
static uint32_t power(uint64_t bytes)
{
    uint32_t result = 1u << 31, square = 1u << 23; /* x^0, x^8 */
    for (; bytes != 0; bytes >>= 1, square = crc32c_multiply(square, square))
        result = bytes & 1 ? crc32c_multiply(result, square) : result;
    return result;
}

static void fill_tables(void)
{
    for (uint32_t b = 0; b < 256; b++) {
        uint32_t crc = b;
        for (int i = 0; i < 8; i++)
            crc = crc & 1 ? crc >> 1 ^ POLYNOMIAL : crc >> 1;
        table[0][b] = crc;
    }
    for (int k = 1; k < 8; k++)
        for (uint32_t b = 0; b < 256; b++)
            table[k][b] = table[k - 1][b] >> 8 ^ table[0][table[k - 1][b] & 255];
    uint32_t far = power(STREAM);
    for (int k = 0; k < 4; k++)
        for (uint32_t b = 0; b < 256; b++)
            jump[k][b] = crc32c_multiply(b << 8 * k, far);
#if defined(HAS_INSTRUCTION)
    has_instruction = HAS_INSTRUCTION();
#endif
}

static void crc32c_prepare(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, fill_tables);
}

static uint32_t by_table(uint32_t crc, const uint8_t *p, size_t size)
{
    for (; size >= 8; p += 8, size -= 8) {
        uint32_t low = crc ^ ((uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
                              (uint32_t)p[3] << 24);
        crc = table[7][low & 255] ^ table[6][low >> 8 & 255] ^ table[5][low >> 16 & 255] ^
              table[4][low >> 24] ^ table[3][p[4]] ^ table[2][p[5]] ^ table[1][p[6]] ^
              table[0][p[7]];
    }
    for (; size > 0; p++, size--)
        crc = crc >> 8 ^ table[0][(crc ^ *p) & 255];
    return crc;
}

#if defined(STEP_8)
static uint64_t word_at(const uint8_t *p)
{
    uint64_t word;
    memcpy(&word, p, 8);
    return word;
}

static uint32_t jump_over(uint32_t crc)
{
    return jump[0][crc & 255] ^ jump[1][crc >> 8 & 255] ^ jump[2][crc >> 16 & 255] ^
           jump[3][crc >> 24];
}

INSTRUCTION_TARGET static uint32_t by_instruction(uint32_t crc, const uint8_t *p, size_t size)
{
    for (; size >= 3 * STREAM; p += 3 * STREAM, size -= 3 * STREAM) {
        uint32_t a = crc, b = 0, c = 0;
        for (size_t i = 0; i < STREAM; i += 8) {
            a = STEP_8(a, word_at(p + i));
            b = STEP_8(b, word_at(p + STREAM + i));
            c = STEP_8(c, word_at(p + 2 * STREAM + i));
        }
        crc = jump_over(jump_over(a) ^ b) ^ c;
    }
    for (; size >= 8; p += 8, size -= 8)
        crc = STEP_8(crc, word_at(p));
    for (; size > 0; p++, size--)
        crc = STEP_1(crc, *p);
    return crc;
}
#endif

uint32_t tutti__crc32c_plain(uint32_t crc, const void *data, size_t size)
{
    crc32c_prepare();
    return ~by_table(~crc, data, size);
}

uint32_t tutti__crc32c(uint32_t crc, const void *data, size_t size)
{
    crc32c_prepare();
#if defined(STEP_8)
    if (has_instruction)
        return ~by_instruction(~crc, data, size);
#endif
    return ~by_table(~crc, data, size);
}
