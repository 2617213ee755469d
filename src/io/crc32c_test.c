/* crc32c_test.c: known checksums; instruction and table agree at every size and place. */
#include "io/crc32c.h"

#include <stdlib.h>
#include <string.h>

#include "base/test.h"

TUTTI_TEST(crc32c_of_known_bytes)
{
    uint8_t zeros[32] = {0}, ones[32];
    memset(ones, 0xff, sizeof ones);
    CHECK_INT(tutti__crc32c(0, "123456789", 9), 0xe3069283u);
    CHECK_INT(tutti__crc32c_plain(0, "123456789", 9), 0xe3069283u);
    CHECK_INT(tutti__crc32c(0, zeros, 32), 0x8a9136aau); /* RFC 3720, B.4 */
    CHECK_INT(tutti__crc32c(0, ones, 32), 0x62a8ab43u);
    CHECK_INT(tutti__crc32c(0, "", 0), 0);
    CHECK_INT(tutti__crc32c_mask(0), 0xa282ead8u);
}

TUTTI_TEST(crc32c_is_the_same_by_instruction_and_by_table)
{
    size_t size = 40000;
    uint8_t *data = malloc(size);
    CHECK(data != NULL);
    for (size_t i = 0; i < size; i++)
        data[i] = (uint8_t)(i * 2654435761u >> 13);
    for (size_t start = 0; start < 9; start++)
        for (size_t n = 0; n + start <= size; n += n < 40 ? 1 : 4091)
            CHECK_INT(tutti__crc32c(7, data + start, n), tutti__crc32c_plain(7, data + start, n));
    uint32_t whole = tutti__crc32c(0, data, size);
    for (size_t cut = 0; cut <= size; cut += 997) {
        uint32_t begun = tutti__crc32c(0, data, cut);
        CHECK_INT(tutti__crc32c(begun, data + cut, size - cut), whole);
    }
    free(data);
}
