#include "cluster/sha256.h"

#include <stdio.h>
#include <string.h>

#include "base/test.h"

static void check_digest(const uint8_t *digest, const char *expected)
{
    char text[65];
    for (int i = 0; i < 32; i++)
        snprintf(text + 2 * i, 3, "%02x", digest[i]);
    CHECK_STR(text, expected);
}

static void check_sha(const char *text, size_t times, const char *expected)
{
    tutti_sha256 hash;
    uint8_t digest[32];
    tutti__sha256_begin(&hash);
    for (size_t i = 0; i < times; i++)
        tutti__sha256_add(&hash, text, strlen(text));
    tutti__sha256_end(&hash, digest);
    check_digest(digest, expected);
}

TUTTI_TEST(sha256_gives_the_standards_examples)
{
    check_sha("", 1, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    check_sha("abc", 1, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    check_sha("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1,
              "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    check_sha("aaaaaaaaaa", 100000,
              "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

static void check_hmac(const void *key, size_t key_size, const char *text, const char *expected)
{
    tutti_hmac hmac;
    uint8_t digest[32];
    tutti__hmac_begin(&hmac, key, key_size);
    tutti__hmac_add(&hmac, text, strlen(text));
    tutti__hmac_end(&hmac, digest);
    check_digest(digest, expected);
}

/* RFC 4231, cases 1, 2 and 6. */
TUTTI_TEST(hmac_gives_the_standards_examples)
{
    uint8_t key[131];
    memset(key, 0x0b, 20);
    check_hmac(key, 20, "Hi There",
               "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
    check_hmac("Jefe", 4, "what do ya want for nothing?",
               "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    memset(key, 0xaa, sizeof key);
    check_hmac(key, sizeof key, "Test Using Larger Than Block-Size Key - Hash Key First",
               "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TUTTI_TEST(digests_are_compared_whole)
{
    uint8_t a[32] = {0}, b[32] = {0};
    CHECK(tutti__digest_equal(a, b));
    b[31] = 1;
    CHECK(!tutti__digest_equal(a, b));
}
