/* sha256.c: SHA-256 and HMAC, as their standards say. */
#include "cluster/sha256.h"

#include <string.h>

static const uint32_t rounds[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t rotate(uint32_t x, int by)
{
    return x >> by | x << (32 - by);
}

static uint32_t big_endian(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static void put_big_endian(uint32_t value, uint8_t *at)
{
    for (int i = 0; i < 4; i++)
        at[i] = (uint8_t)(value >> (24 - 8 * i));
}

static void compress(uint32_t state[8], const uint8_t *block)
{
    uint32_t w[64], s[8];
    for (int i = 0; i < 16; i++)
        w[i] = big_endian(block + 4 * i);
    for (int i = 16; i < 64; i++) {
        uint32_t low = rotate(w[i - 15], 7) ^ rotate(w[i - 15], 18) ^ w[i - 15] >> 3;
        uint32_t high = rotate(w[i - 2], 17) ^ rotate(w[i - 2], 19) ^ w[i - 2] >> 10;
        w[i] = w[i - 16] + low + w[i - 7] + high;
    }
    memcpy(s, state, sizeof s);
    for (int i = 0; i < 64; i++) {
        uint32_t high = rotate(s[4], 6) ^ rotate(s[4], 11) ^ rotate(s[4], 25);
        uint32_t choice = (s[4] & s[5]) ^ (~s[4] & s[6]);
        uint32_t first = s[7] + high + choice + rounds[i] + w[i];
        uint32_t low = rotate(s[0], 2) ^ rotate(s[0], 13) ^ rotate(s[0], 22);
        uint32_t majority = (s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]);
        memmove(s + 1, s, 7 * sizeof *s);
        s[4] += first;
        s[0] = first + low + majority;
    }
    for (int i = 0; i < 8; i++)
        state[i] += s[i];
    explicit_bzero(w, sizeof w);
}

void tutti__sha256_begin(tutti_sha256 *hash)
{
    static const uint32_t start[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    memset(hash, 0, sizeof *hash);
    memcpy(hash->state, start, sizeof start);
}

void tutti__sha256_add(tutti_sha256 *hash, const void *data, size_t size)
{
    const uint8_t *at = data;
    while (size > 0) {
        size_t filled = hash->size % TUTTI_SHA256_BLOCK, part = TUTTI_SHA256_BLOCK - filled;
        part = part < size ? part : size;
        memcpy(hash->block + filled, at, part);
        hash->size += part;
        at += part;
        size -= part;
        if (filled + part == TUTTI_SHA256_BLOCK)
            compress(hash->state, hash->block);
    }
}

/* Padding: a 1 bit, zeros, and the size in bits, 64 bits wide, at the end of a block. */
void tutti__sha256_end(tutti_sha256 *hash, uint8_t ret_digest[TUTTI_SHA256_BYTES])
{
    uint64_t bits = hash->size * 8;
    uint8_t length[8], zeros[TUTTI_SHA256_BLOCK] = {0}, one = 0x80;
    put_big_endian((uint32_t)(bits >> 32), length);
    put_big_endian((uint32_t)bits, length + 4);
    tutti__sha256_add(hash, &one, 1);
    size_t filled = hash->size % TUTTI_SHA256_BLOCK;
    tutti__sha256_add(hash, zeros, filled <= 56 ? 56 - filled : 120 - filled);
    tutti__sha256_add(hash, length, sizeof length);
    for (int i = 0; i < 8; i++)
        put_big_endian(hash->state[i], ret_digest + 4 * i);
    explicit_bzero(hash, sizeof *hash);
}

/* HMAC(key, text) = H((key ^ opad) | H((key ^ ipad) | text)); a key longer than a block is hashed.
 */
void tutti__hmac_begin(tutti_hmac *hmac, const void *key, size_t size)
{
    uint8_t block[TUTTI_SHA256_BLOCK] = {0};
    if (size > sizeof block) {
        tutti__sha256_begin(&hmac->inner);
        tutti__sha256_add(&hmac->inner, key, size);
        tutti__sha256_end(&hmac->inner, block);
    } else if (size > 0)
        memcpy(block, key, size);
    for (size_t i = 0; i < sizeof block; i++)
        block[i] ^= 0x36;
    tutti__sha256_begin(&hmac->inner);
    tutti__sha256_add(&hmac->inner, block, sizeof block);
    for (size_t i = 0; i < sizeof block; i++)
        block[i] ^= 0x36 ^ 0x5c;
    tutti__sha256_begin(&hmac->outer);
    tutti__sha256_add(&hmac->outer, block, sizeof block);
    explicit_bzero(block, sizeof block);
}

void tutti__hmac_add(tutti_hmac *hmac, const void *data, size_t size)
{
    tutti__sha256_add(&hmac->inner, data, size);
}

void tutti__hmac_end(tutti_hmac *hmac, uint8_t ret_digest[TUTTI_SHA256_BYTES])
{
    uint8_t digest[TUTTI_SHA256_BYTES];
    tutti__sha256_end(&hmac->inner, digest);
    tutti__sha256_add(&hmac->outer, digest, sizeof digest);
    tutti__sha256_end(&hmac->outer, ret_digest);
}

bool tutti__digest_equal(const uint8_t *a, const uint8_t *b)
{
    unsigned different = 0;
    for (int i = 0; i < TUTTI_SHA256_BYTES; i++)
        different |= a[i] ^ b[i];
    return different == 0;
}
