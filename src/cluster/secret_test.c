#define _GNU_SOURCE
#include "cluster/secret.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/test.h"

static void forget(void)
{
    unsetenv("TUTTI_SECRET");
    unsetenv("TUTTI_SECRET_FILE");
}

TUTTI_TEST(secret_may_be_absent)
{
    tutti_secret secret;
    char source[64];
    forget();
    CHECK_OK(tutti__secret_load(-1, &secret));
    CHECK_INT(secret.size, 0);
    tutti__secret_source(-1, source, sizeof source);
    CHECK_STR(source, "none");
}

TUTTI_TEST(secret_file_is_its_owners_alone)
{
    tutti_secret secret = {0};
    char path[] = "/tmp/tutti-secret-XXXXXX";
    int fd = mkstemp(path);
    CHECK(fd >= 0);
    CHECK_INT(write(fd, "0123456789abcdef\n", 17), 17);
    forget();
    setenv("TUTTI_SECRET_FILE", path, 1);
    fchmod(fd, 0640);
    CHECK_STATUS(tutti__secret_load(-1, &secret), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "chmod 600");
    fchmod(fd, 0600);
    CHECK_OK(tutti__secret_load(-1, &secret));
    CHECK_INT(secret.size, 16); /* without the end of the line */
    CHECK(memcmp(secret.bytes, "0123456789abcdef", 16) == 0);
    tutti__secret_wipe(&secret);
    CHECK_STATUS(tutti__secret_load(fd, &secret), TUTTI_IO); /* no descriptor of the launcher's */
    CHECK_CONTAINS(tutti_error_message(), "is another file; a program between");
    int given = memfd_create("secret", MFD_CLOEXEC);
    CHECK_INT(write(given, "0123456789abcdef", 16), 16);
    CHECK_OK(tutti__secret_load(given, &secret)); /* read from its start */
    close(given);
    CHECK_INT(secret.size, 16);
    tutti__secret_wipe(&secret);
    CHECK_INT(ftruncate(fd, 15), 0);
    CHECK_STATUS(tutti__secret_load(-1, &secret), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "openssl rand -hex 32");
    unlink(path);
    close(fd);
    CHECK_STATUS(tutti__secret_load(-1, &secret), TUTTI_NOT_FOUND);
}

static tutti_status open_as_other(const char *path, mode_t mode)
{
    int fd = -1;
    CHECK_INT(chmod(path, mode), 0);
    CHECK_INT(seteuid(54321), 0);
    tutti_status status = tutti__secret_open(path, "key", "KEY", &fd);
    CHECK_INT(seteuid(0), 0);
    if (fd >= 0)
        close(fd);
    return status;
}

/* As Kubernetes lays files out for a pod that is not root's. */
TUTTI_TEST(secret_file_of_root_may_be_a_groups)
{
    char path[] = "/tmp/tutti-secret-XXXXXX";
    if (geteuid() != 0)
        SKIP("needs root for files of two users");
    int fd = mkstemp(path);
    CHECK(fd >= 0);
    CHECK_OK(open_as_other(path, 0440));
    CHECK_STATUS(open_as_other(path, 0444), TUTTI_INVALID);
    CHECK_STATUS(open_as_other(path, 0460), TUTTI_INVALID);
    CHECK_STATUS(open_as_other(path, 0400), TUTTI_IO);
    CHECK_CONTAINS(tutti_error_message(), "cannot open the key '/tmp/tutti-secret-");
    unlink(path);
    close(fd);
}
