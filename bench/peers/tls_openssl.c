/* tls_openssl.c: what OpenSSL does by itself: BYTES one way over TLS 1.3 on loopback, between two
 * processes on different CPUs, in writes of 64 KiB. Prints the best of some rounds as JSON.
 *
 *     cc -O2 tls_openssl.c -lssl -lcrypto -o tls_openssl
 *     ./tls_openssl CERTIFICATE.pem KEY.pem [BYTES]
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 10, STEP = 64 << 10 };

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void pin(int cpu)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof one, &one);
}

static int fail(const char *what)
{
    fprintf(stderr, "tls_openssl: %s\n", what);
    exit(1);
}

static SSL *secure(int descriptor, int server, const char *certificate, const char *key)
{
    int yes = 1;
    SSL_CTX *context = SSL_CTX_new(server ? TLS_server_method() : TLS_client_method());
    SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION);
    SSL_CTX_set_ciphersuites(context, "TLS_AES_128_GCM_SHA256");
    if (server && (SSL_CTX_use_certificate_chain_file(context, certificate) != 1 ||
                   SSL_CTX_use_PrivateKey_file(context, key, SSL_FILETYPE_PEM) != 1))
        fail("the certificate or its key cannot be read");
    setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    SSL *ssl = SSL_new(context);
    SSL_set_fd(ssl, descriptor);
    if ((server ? SSL_accept(ssl) : SSL_connect(ssl)) != 1)
        fail("the handshake failed");
    return ssl;
}

/* Each round ends with a byte back. */
static double move(SSL *ssl, int sender, char *data, size_t bytes)
{
    char end = 0;
    double start = seconds();
    for (size_t done = 0; done < bytes;) {
        size_t step = bytes - done < STEP ? bytes - done : STEP;
        int moved =
            sender ? SSL_write(ssl, data + done, (int)step) : SSL_read(ssl, data + done, (int)step);
        if (moved <= 0)
            fail("the connection broke");
        done += (size_t)moved;
    }
    if ((sender ? SSL_read(ssl, &end, 1) : SSL_write(ssl, &end, 1)) != 1)
        fail("the connection broke");
    return seconds() - start;
}

int main(int argc, char **argv)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    size_t bytes = argc > 3 ? strtoull(argv[3], NULL, 10) : 64 << 20;
    char *data = calloc(1, bytes);
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    if (argc < 3 || !data || bind(listener, (struct sockaddr *)&address, sizeof address) != 0 ||
        listen(listener, 1) != 0 ||
        getsockname(listener, (struct sockaddr *)&address, &length) != 0)
        return fail("usage: tls_openssl CERTIFICATE.pem KEY.pem [BYTES]");
    memset(data, 1, bytes);
    int server = fork() == 0, descriptor;
    pin(server);
    if (server) {
        descriptor = accept(listener, NULL, NULL);
    } else {
        descriptor = socket(AF_INET, SOCK_STREAM, 0);
        if (connect(descriptor, (struct sockaddr *)&address, sizeof address) != 0)
            return fail("cannot connect");
    }
    SSL *ssl = secure(descriptor, server, argv[1], argv[2]);
    double best = 1e9;
    for (int round = 0; round < ROUNDS; round++) {
        double each = move(ssl, !server, data, bytes);
        best = each < best ? each : best;
    }
    if (!server)
        printf("{\"peer\":\"openssl\",\"op\":\"one way\",\"bytes\":%zu,\"us\":%.1f,"
               "\"gb_per_s\":%.3f}\n",
               bytes, best * 1e6, (double)bytes / best * 1e-9);
    return 0;
}
