/* tls.c: OpenSSL 1.1.1 or 3 by its stable binary interface. Its headers are not needed to build,
 * and the library is not loaded unless certificates are configured. Bytes go through the world's
 * sockets by a BIO of our own, so that a broken connection raises no SIGPIPE. All memory of the
 * library is kept out of core files: it copies keys where it computes with them. */
#define _GNU_SOURCE
#include "cluster/tls.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/params.h"
#include "base/world.h"
#include "cluster/secret.h"
#include "cluster/undumped.h"

static tutti_param certificate_param =
    TUTTI_PARAM("TLS_CERT", "", "this process's certificate (PEM, with its chain)");
static tutti_param key_param = TUTTI_PARAM("TLS_KEY", "", "its private key (PEM)");
static tutti_param authority_param = TUTTI_PARAM(
    "TLS_CA", "", "certificates of the job's authority (PEM); who it signed is admitted");

/* Opaque types and numbers of OpenSSL's interface. */
typedef struct ssl_ctx_st SSL_CTX;
typedef struct ssl_st SSL;
typedef struct bio_st BIO;
typedef struct bio_method_st BIO_METHOD;
typedef struct evp_pkey_st EVP_PKEY;
typedef int password_function(char *, int, int, void *);
enum {
    VERIFY_MUTUAL = 3, /* PEER and FAIL_IF_NO_PEER_CERT */
    CTRL_MODE = 33,
    CTRL_READ_AHEAD = 41,
    CTRL_MIN_VERSION = 123,
    READ_BYTES = 128 << 10,
    MODE = 1 | 2, /* partial writes, from a buffer that may move */
    TLS_1_3 = 0x0304,
    ERROR_WANT_READ = 2,
    ERROR_WANT_WRITE = 3,
    ERROR_SYSCALL = 5,
    ERROR_ZERO_RETURN = 6,
    BIO_SHOULD_RETRY = 8,
    BIO_READ = 1,
    BIO_WRITE = 2,
    BIO_CTRL_FLUSH = 11,
    BIO_TYPE = 0x0400 | 100,
    RECORD_ALERT = 21, /* first bytes of TLS's records: what else can come first */
    RECORD_HANDSHAKE = 22,
    KEY_FILE_MOST = 1 << 20, /* bytes */
    GUARDED_BYTES = 1 << 20, /* of OpenSSL's own memory for keys, and its least block */
    GUARDED_LEAST = 16,
};

#define FUNCTIONS(X)                                                                               \
    X(SSL_CTX *, SSL_CTX_new, (const void *))                                                      \
    X(void, SSL_CTX_free, (SSL_CTX *))                                                             \
    X(const void *, TLS_method, (void))                                                            \
    X(long, SSL_CTX_ctrl, (SSL_CTX *, int, long, void *))                                          \
    X(int, SSL_CTX_use_certificate_chain_file, (SSL_CTX *, const char *))                          \
    X(int, SSL_CTX_use_PrivateKey, (SSL_CTX *, EVP_PKEY *))                                        \
    X(void, SSL_CTX_set_default_passwd_cb, (SSL_CTX *, password_function *))                       \
    X(int, SSL_CTX_check_private_key, (const SSL_CTX *))                                           \
    X(int, SSL_CTX_load_verify_locations, (SSL_CTX *, const char *, const char *))                 \
    X(void, SSL_CTX_set_verify, (SSL_CTX *, int, void *))                                          \
    X(int, SSL_CTX_set_ciphersuites, (SSL_CTX *, const char *))                                    \
    X(int, SSL_CTX_set_num_tickets, (SSL_CTX *, size_t))                                           \
    X(SSL *, SSL_new, (SSL_CTX *))                                                                 \
    X(void, SSL_free, (SSL *))                                                                     \
    X(void, SSL_set_bio, (SSL *, BIO *, BIO *))                                                    \
    X(void, SSL_set_accept_state, (SSL *))                                                         \
    X(void, SSL_set_connect_state, (SSL *))                                                        \
    X(int, SSL_do_handshake, (SSL *))                                                              \
    X(int, SSL_read, (SSL *, void *, int))                                                         \
    X(int, SSL_write, (SSL *, const void *, int))                                                  \
    X(int, SSL_has_pending, (const SSL *))                                                         \
    X(void, SSL_CTX_set_default_read_buffer_len, (SSL_CTX *, size_t))                              \
    X(int, SSL_shutdown, (SSL *))                                                                  \
    X(int, SSL_get_error, (const SSL *, int))                                                      \
    X(long, SSL_get_verify_result, (const SSL *))                                                  \
    X(const char *, X509_verify_cert_error_string, (long))                                         \
    X(const char *, ERR_reason_error_string, (unsigned long))                                      \
    X(unsigned long, ERR_get_error, (void))                                                        \
    X(void, ERR_clear_error, (void))                                                               \
    X(void, ERR_error_string_n, (unsigned long, char *, size_t))                                   \
    X(BIO_METHOD *, BIO_meth_new, (int, const char *))                                             \
    X(int, BIO_meth_set_write, (BIO_METHOD *, int (*)(BIO *, const char *, int)))                  \
    X(int, BIO_meth_set_read, (BIO_METHOD *, int (*)(BIO *, char *, int)))                         \
    X(int, BIO_meth_set_ctrl, (BIO_METHOD *, long (*)(BIO *, int, long, void *)))                  \
    X(BIO *, BIO_new, (const BIO_METHOD *))                                                        \
    X(BIO *, BIO_new_mem_buf, (const void *, int))                                                 \
    X(int, BIO_free, (BIO *))                                                                      \
    X(void, BIO_set_data, (BIO *, void *))                                                         \
    X(void *, BIO_get_data, (BIO *))                                                               \
    X(void, BIO_set_init, (BIO *, int))                                                            \
    X(void, BIO_set_flags, (BIO *, int))                                                           \
    X(void, BIO_clear_flags, (BIO *, int))                                                         \
    X(int, PEM_bytes_read_bio_secmem,                                                              \
      (unsigned char **, long *, char **, const char *, BIO *, password_function *, void *))       \
    X(EVP_PKEY *, d2i_AutoPrivateKey, (EVP_PKEY **, const unsigned char **, long))                 \
    X(void, EVP_PKEY_free, (EVP_PKEY *))                                                           \
    X(void, CRYPTO_secure_free, (void *, const char *, int))                                       \
    X(void, CRYPTO_secure_clear_free, (void *, size_t, const char *, int))                         \
    X(int, CRYPTO_secure_malloc_init, (size_t, size_t))                                            \
    X(int, CRYPTO_set_mem_functions,                                                               \
      (void *(*)(size_t, const char *, int), void *(*)(void *, size_t, const char *, int),         \
       void (*)(void *, const char *, int)))

#define DECLARE(result, name, arguments) result(*name) arguments;
static struct {
    FUNCTIONS(DECLARE)
    BIO_METHOD *method;
    char missing[100]; /* "": loaded */
} ssl;
#undef DECLARE

struct tutti_tls_context {
    SSL_CTX *context;
};

struct tutti_tls {
    SSL *ssl;
    int socket;
    bool ready, broken;
    bool dry;   /* the last receive found no whole record: only the socket can bring more */
    int first;  /* byte that came; -1: none yet */
    int failed; /* -errno of the socket; 0: none */
    char reason[400];
};

static int bio_write(BIO *bio, const char *data, int size)
{
    tutti_tls *tls = ssl.BIO_get_data(bio);
    const tutti_world *world = tutti__world();
    int64_t done = world->send(world->self, tls->socket, data, (size_t)size);
    ssl.BIO_clear_flags(bio, BIO_READ | BIO_WRITE | BIO_SHOULD_RETRY);
    if (done == -EAGAIN)
        ssl.BIO_set_flags(bio, BIO_WRITE | BIO_SHOULD_RETRY);
    else if (done < 0)
        tls->failed = (int)done;
    return done < 0 ? -1 : (int)done;
}

static int bio_read(BIO *bio, char *data, int size)
{
    tutti_tls *tls = ssl.BIO_get_data(bio);
    const tutti_world *world = tutti__world();
    int64_t done = world->receive(world->self, tls->socket, data, (size_t)size);
    ssl.BIO_clear_flags(bio, BIO_READ | BIO_WRITE | BIO_SHOULD_RETRY);
    if (done == -EAGAIN)
        ssl.BIO_set_flags(bio, BIO_READ | BIO_SHOULD_RETRY);
    else if (done < 0)
        tls->failed = (int)done;
    if (done > 0 && tls->first < 0)
        tls->first = (unsigned char)data[0];
    return done < 0 ? -1 : (int)done;
}

static long bio_control(BIO *bio, int command, long number, void *pointer)
{
    TUTTI_UNUSED(bio);
    TUTTI_UNUSED(number);
    TUTTI_UNUSED(pointer);
    return command == BIO_CTRL_FLUSH ? 1 : 0;
}

static void *tls_allocate(size_t size, const char *file, int line)
{
    TUTTI_UNUSED(file);
    TUTTI_UNUSED(line);
    return tutti__undumped_allocate(size);
}

static void *resize(void *memory, size_t size, const char *file, int line)
{
    TUTTI_UNUSED(file);
    TUTTI_UNUSED(line);
    return tutti__undumped_resize(memory, size);
}

static void release(void *memory, const char *file, int line)
{
    TUTTI_UNUSED(file);
    TUTTI_UNUSED(line);
    tutti__undumped_free(memory);
}

/* OpenSSL frees its memory as the process ends, by code of ours that must still be there. */
static void stay_loaded(void)
{
    Dl_info self;
    if (dladdr(&ssl, &self) != 0)
        (void)dlopen(self.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
}

/* Where the program has used OpenSSL before, it is too late for that: then the numbers of keys go
 * to what OpenSSL itself keeps out of core files. The primes of RSA keys are copied from there to
 * other memory; those of curves are not. */
static void keep_out_of_cores(void)
{
    if (ssl.CRYPTO_set_mem_functions(tls_allocate, resize, release) == 1)
        stay_loaded();
    else
        (void)ssl.CRYPTO_secure_malloc_init(GUARDED_BYTES, GUARDED_LEAST);
}

static void load_openssl(void)
{
    void *library = dlopen("libssl.so.3", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        library = dlopen("libssl.so.1.1", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        snprintf(ssl.missing, sizeof ssl.missing, "libssl.so.3");
        return;
    }
#define LOAD(result, name, arguments)                                                              \
    if ((*(void **)&ssl.name = dlsym(library, #name)) == NULL)                                     \
        snprintf(ssl.missing, sizeof ssl.missing, "the function " #name);
    FUNCTIONS(LOAD)
#undef LOAD
    if (ssl.missing[0] != '\0')
        return;
    keep_out_of_cores();
    ssl.method = ssl.BIO_meth_new(BIO_TYPE, "tutti");
    if (ssl.method == NULL || ssl.BIO_meth_set_write(ssl.method, bio_write) != 1 ||
        ssl.BIO_meth_set_read(ssl.method, bio_read) != 1 ||
        ssl.BIO_meth_set_ctrl(ssl.method, bio_control) != 1)
        snprintf(ssl.missing, sizeof ssl.missing, "memory for it");
}

/* OpenSSL's oldest reason of this thread, in words. */
static void take_reason(char *ret_text, size_t size)
{
    unsigned long code = ssl.ERR_get_error();
    const char *words = code != 0 ? ssl.ERR_reason_error_string(code) : NULL;
    if (words != NULL)
        snprintf(ret_text, size, "%s", words);
    else if (code != 0)
        ssl.ERR_error_string_n(code, ret_text, size);
    else
        snprintf(ret_text, size, "no reason given");
    ssl.ERR_clear_error();
}

static tutti_status fail_file(const tutti_param *param)
{
    char reason[200];
    take_reason(reason, sizeof reason);
    return tutti_fail(TUTTI_INVALID, "TUTTI_%s: '%s' cannot be used: %s", param->name,
                      tutti__param_text(param), reason);
}

/* Ranks have no terminal at which to be asked, and no deadline would end the question. */
static int refuse_password(char *ret_password, int size, int writes, void *asked)
{
    TUTTI_UNUSED(ret_password);
    TUTTI_UNUSED(size);
    TUTTI_UNUSED(writes);
    if (asked != NULL)
        *(bool *)asked = true;
    return -1;
}

/* The file's bytes in memory of their own, to be freed by tutti__undumped_free. */
static tutti_status read_key(const char *path, void **ret_text, int *ret_size)
{
    int fd;
    struct stat about;
    TUTTI_TRY(tutti__secret_open(path, "key", "TUTTI_TLS_KEY", &fd));
    ssize_t size = fstat(fd, &about) == 0 && about.st_size <= KEY_FILE_MOST ? about.st_size : -1;
    void *text = size >= 0 ? tutti__undumped_allocate((size_t)size + 1) : NULL;
    ssize_t got;
    do
        got = text != NULL ? read(fd, text, (size_t)size) : -1;
    while (text != NULL && got < 0 && errno == EINTR);
    close(fd);
    if (got < 0) {
        tutti__undumped_free(text);
        return tutti_fail(TUTTI_IO, "TUTTI_TLS_KEY: '%s' cannot be read, or is too large for a key",
                          path);
    }
    *ret_text = text;
    *ret_size = (int)got;
    return TUTTI_OK;
}

/* The first key of a PEM file's text; NULL: none. */
static EVP_PKEY *parse_key(const void *text, int size, bool *ret_encrypted)
{
    unsigned char *numbers = NULL;
    long length = 0;
    char *kind = NULL;
    EVP_PKEY *key = NULL;
    BIO *bio = ssl.BIO_new_mem_buf(text, size);
    *ret_encrypted = false;
    if (bio != NULL && ssl.PEM_bytes_read_bio_secmem(&numbers, &length, &kind, "ANY PRIVATE KEY",
                                                     bio, refuse_password, ret_encrypted) == 1) {
        const unsigned char *at = numbers;
        *ret_encrypted = strcmp(kind, "ENCRYPTED PRIVATE KEY") == 0;
        key = *ret_encrypted ? NULL : ssl.d2i_AutoPrivateKey(NULL, &at, length);
        ssl.CRYPTO_secure_free(kind, __FILE__, __LINE__);
        ssl.CRYPTO_secure_clear_free(numbers, (size_t)length, __FILE__, __LINE__);
    }
    ssl.BIO_free(bio);
    return key;
}

static tutti_status use_key(SSL_CTX *context)
{
    const char *path = tutti__param_text(&key_param);
    void *text;
    int size;
    bool encrypted;
    TUTTI_TRY(read_key(path, &text, &size));
    EVP_PKEY *key = parse_key(text, size, &encrypted);
    tutti__undumped_free(text);
    bool used = key != NULL && ssl.SSL_CTX_use_PrivateKey(context, key) == 1 &&
                ssl.SSL_CTX_check_private_key(context) == 1;
    ssl.EVP_PKEY_free(key); /* the context holds it */
    if (used)
        return TUTTI_OK;
    if (!encrypted)
        return fail_file(&key_param);
    ssl.ERR_clear_error();
    return tutti_fail(TUTTI_INVALID,
                      "TUTTI_TLS_KEY: '%s' is encrypted, and nobody is asked for its password; "
                      "decrypt it where only you can read it: (umask 077; openssl pkey -in %s -out "
                      "plain.key)",
                      path, path);
}

static tutti_status fill_context(SSL_CTX *context)
{
    static const char suites[] =
        "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256";
    ssl.SSL_CTX_ctrl(context, CTRL_MODE, MODE, NULL);
    ssl.SSL_CTX_ctrl(context, CTRL_READ_AHEAD, 1, NULL); /* several records by one receive */
    ssl.SSL_CTX_set_default_read_buffer_len(context, READ_BYTES);
    if (ssl.SSL_CTX_ctrl(context, CTRL_MIN_VERSION, TLS_1_3, NULL) != 1 ||
        ssl.SSL_CTX_set_ciphersuites(context, suites) != 1)
        return tutti_fail(TUTTI_UNSUPPORTED, "this OpenSSL has no TLS 1.3");
    ssl.SSL_CTX_set_num_tickets(context, 0);
    ssl.SSL_CTX_set_verify(context, VERIFY_MUTUAL, NULL);
    ssl.SSL_CTX_set_default_passwd_cb(context, refuse_password);
    if (ssl.SSL_CTX_use_certificate_chain_file(context, tutti__param_text(&certificate_param)) != 1)
        return fail_file(&certificate_param);
    TUTTI_TRY(use_key(context));
    if (ssl.SSL_CTX_load_verify_locations(context, tutti__param_text(&authority_param), NULL) != 1)
        return fail_file(&authority_param);
    return TUTTI_OK;
}

tutti_status tutti__tls_context_create(tutti_tls_context **ret_context)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    int given = (*tutti__param_text(&certificate_param) != '\0') +
                (*tutti__param_text(&key_param) != '\0') +
                (*tutti__param_text(&authority_param) != '\0');
    if (given == 0) {
        *ret_context = NULL;
        return TUTTI_OK;
    }
    if (given < 3)
        return tutti_fail(TUTTI_INVALID,
                          "TLS needs TUTTI_TLS_CERT, TUTTI_TLS_KEY and TUTTI_TLS_CA; "
                          "set all three, or none");
    pthread_once(&once, load_openssl);
    if (ssl.missing[0] != '\0')
        return tutti_fail(
            TUTTI_UNSUPPORTED,
            "TLS is configured, but OpenSSL lacks %s; install it: apt install libssl3",
            ssl.missing);
    tutti_tls_context *context = calloc(1, sizeof *context);
    if (context == NULL || (context->context = ssl.SSL_CTX_new(ssl.TLS_method())) == NULL) {
        free(context);
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for TLS");
    }
    tutti_status status = fill_context(context->context);
    if (status != TUTTI_OK)
        tutti__tls_context_free(context);
    else
        *ret_context = context;
    return status;
}

void tutti__tls_context_free(tutti_tls_context *context)
{
    if (context == NULL)
        return;
    ssl.SSL_CTX_free(context->context);
    free(context);
}

tutti_status tutti__tls_create(tutti_tls_context *context, int socket, bool accept,
                               tutti_tls **ret_tls)
{
    tutti_tls *tls = calloc(1, sizeof *tls);
    BIO *bio = tls != NULL ? ssl.BIO_new(ssl.method) : NULL;
    if (bio == NULL || (tls->ssl = ssl.SSL_new(context->context)) == NULL) {
        free(tls); /* a BIO without its SSL leaks when memory is out, which is the end anyway */
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a TLS connection");
    }
    tls->socket = socket;
    tls->first = -1;
    ssl.BIO_set_data(bio, tls);
    ssl.BIO_set_init(bio, 1);
    ssl.SSL_set_bio(tls->ssl, bio, bio);
    if (accept)
        ssl.SSL_set_accept_state(tls->ssl);
    else
        ssl.SSL_set_connect_state(tls->ssl);
    *ret_tls = tls;
    return TUTTI_OK;
}

void tutti__tls_free(tutti_tls *tls)
{
    if (tls == NULL)
        return;
    if (tls->ready && !tls->broken)
        ssl.SSL_shutdown(tls->ssl);
    ssl.ERR_clear_error();
    ssl.SSL_free(tls->ssl);
    free(tls);
}

/* What OpenSSL says is short, or of its own insides; what to look at depends on which side refuses
 * the other. */
static void explain(tutti_tls *tls)
{
    char reason[200];
    take_reason(reason, sizeof reason);
    long verified = ssl.SSL_get_verify_result(tls->ssl);
    if (!tls->ready && tls->first >= 0 && tls->first != RECORD_HANDSHAKE &&
        tls->first != RECORD_ALERT)
        snprintf(tls->reason, sizeof tls->reason,
                 "this side uses TLS, the other one does not; give all ranks TUTTI_TLS_CERT, "
                 "TUTTI_TLS_KEY and TUTTI_TLS_CA, or none");
    else if (!tls->ready && verified != 0)
        snprintf(tls->reason, sizeof tls->reason,
                 "the other side's certificate is refused by this one: %s; look at TUTTI_TLS_CERT "
                 "there and at TUTTI_TLS_CA here",
                 ssl.X509_verify_cert_error_string(verified));
    else if (strstr(reason, " alert ") != NULL)
        snprintf(tls->reason, sizeof tls->reason,
                 "this side's certificate is refused by the other one: %s; look at TUTTI_TLS_CERT "
                 "here and at TUTTI_TLS_CA there",
                 reason);
    else
        snprintf(tls->reason, sizeof tls->reason, "%s", reason);
}

/* What a call that did not succeed means. A connection that ends, as when the process at its other
 * end goes, is no refusal. */
static int tls_judge(tutti_tls *tls, int result)
{
    int error = ssl.SSL_get_error(tls->ssl, result);
    if (error == ERROR_WANT_READ || error == ERROR_WANT_WRITE)
        return -EAGAIN;
    if (error == ERROR_ZERO_RETURN)
        return 0;
    tls->broken = true;
    if (error == ERROR_SYSCALL) {
        snprintf(tls->reason, sizeof tls->reason, "%s",
                 tls->failed < 0 ? strerror(-tls->failed) : "unexpected eof");
        return tls->failed < 0 ? tls->failed : -EPROTO;
    }
    explain(tls);
    return -EPROTO;
}

int tutti__tls_handshake(tutti_tls *tls)
{
    if (tls->ready)
        return 0;
    if (tls->broken)
        return tls->failed < 0 ? tls->failed : -EPROTO;
    ssl.ERR_clear_error();
    int result = ssl.SSL_do_handshake(tls->ssl);
    tls->ready = result == 1;
    if (tls->ready)
        return 0;
    result = tls_judge(tls, result);
    return result == 0 ? -EPROTO : result;
}

int64_t tutti__tls_send(tutti_tls *tls, const void *data, size_t size)
{
    int result = tutti__tls_handshake(tls);
    if (result != 0)
        return result;
    ssl.ERR_clear_error();
    result = ssl.SSL_write(tls->ssl, data, size > 1 << 30 ? 1 << 30 : (int)size);
    return result > 0 ? result : tls_judge(tls, result);
}

int64_t tutti__tls_receive(tutti_tls *tls, void *data, size_t size)
{
    int result = tutti__tls_handshake(tls);
    if (result != 0)
        return result;
    ssl.ERR_clear_error();
    result = ssl.SSL_read(tls->ssl, data, size > 1 << 30 ? 1 << 30 : (int)size);
    tls->dry = result <= 0;
    return result > 0 ? result : tls_judge(tls, result);
}

bool tutti__tls_ready(const tutti_tls *tls)
{
    return tls->ready;
}

bool tutti__tls_begun(const tutti_tls *tls)
{
    return tls->first >= 0;
}

bool tutti__tls_pending(tutti_tls *tls)
{
    return tls->ready && !tls->dry && ssl.SSL_has_pending(tls->ssl) == 1;
}

const char *tutti__tls_reason(const tutti_tls *tls)
{
    return tls->reason;
}
