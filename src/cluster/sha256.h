/* sha256.h: SHA-256 (FIPS 180-4) and HMAC-SHA256 (RFC 2104), so that a job needs no library to
 * prove that it knows its secret. */
#ifndef TUTTI_CLUSTER_SHA256_H
#define TUTTI_CLUSTER_SHA256_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TUTTI_SHA256_BYTES = 32, TUTTI_SHA256_BLOCK = 64 };

typedef struct tutti_sha256 {
    uint32_t state[8];
    uint64_t size; /* of all that was added */
    uint8_t block[TUTTI_SHA256_BLOCK];
} tutti_sha256;

void tutti__sha256_begin(tutti_sha256 *hash);
void tutti__sha256_add(tutti_sha256 *hash, const void *data, size_t size);
void tutti__sha256_end(tutti_sha256 *hash, uint8_t ret_digest[TUTTI_SHA256_BYTES]);

/* HMAC over pieces: begin with the key, add, end. The inner and outer state are wiped by end. */
typedef struct tutti_hmac {
    tutti_sha256 inner, outer;
} tutti_hmac;
void tutti__hmac_begin(tutti_hmac *hmac, const void *key, size_t size);
void tutti__hmac_add(tutti_hmac *hmac, const void *data, size_t size);
void tutti__hmac_end(tutti_hmac *hmac, uint8_t ret_digest[TUTTI_SHA256_BYTES]);

/* Equal, in a time that does not depend on where they differ. */
bool tutti__digest_equal(const uint8_t *a, const uint8_t *b);

#endif
