#include "base/bytes.h"

#include "base/test.h"

static int64_t parsed(const char *text)
{
    int64_t bytes = -1;
    CHECK_OK(tutti__bytes_parse(text, &bytes));
    return bytes;
}

TUTTI_TEST(bytes_are_read_with_their_units)
{
    CHECK_INT(parsed("4096"), 4096);
    CHECK_INT(parsed("64MiB"), 64 << 20);
    CHECK_INT(parsed("64 MiB"), 64 << 20);
    CHECK_INT(parsed("64m"), 64 << 20);
    CHECK_INT(parsed("1.5GiB"), (int64_t)3 << 29);
    CHECK_INT(parsed("2kB"), 2000);
    CHECK_INT(parsed("7B"), 7);
}

TUTTI_TEST(bytes_that_are_none_are_refused)
{
    static const char *const texts[] = {"", "MiB", "12x", "12MiBs", "-4k", "0", "nan", "1e30"};
    for (size_t i = 0; i < TUTTI_COUNT(texts); i++) {
        int64_t bytes = 5;
        CHECK_STATUS(tutti__bytes_parse(texts[i], &bytes), TUTTI_INVALID);
        CHECK_INT(bytes, 5);
    }
    CHECK_CONTAINS(tutti_error_message(), "64MiB");
}
