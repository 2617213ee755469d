/* ssh.c: a station on another host: the command that starts it, the mark that it is there, where
 * rank 0 is met. */
#define _GNU_SOURCE
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/run/run.h"

enum { WORDS = 32, NOISE = 64 << 10, STATION_VERSION = 2 };

static const char mark[] = "\ntutti station ";

bool tutti__ssh_greet(int out)
{
    char text[64];
    int size = snprintf(text, sizeof text, "%s%d\n", mark, STATION_VERSION);
    return write(out, text, (size_t)size) == size;
}

/* 'it'\''s': any path is one word of the shell at the other end. */
static void quote(const char *text, char *ret, size_t size)
{
    size_t used = 0;
    ret[used++] = '\'';
    for (; *text != '\0' && used + 6 < size; text++)
        if (*text == '\'')
            used += (size_t)snprintf(ret + used, size - used, "'\\''");
        else
            ret[used++] = *text;
    snprintf(ret + used, size - used, "'");
}

void tutti__ssh_run(const tutti_run_job *job, const char *host)
{
    char ssh[1024], path[4200], command[4300], *words[WORDS + 8], *state = NULL;
    int count = 0;
    snprintf(ssh, sizeof ssh, "%s", job->ssh);
    for (char *word = strtok_r(ssh, " ", &state); word != NULL && count < WORDS;
         word = strtok_r(NULL, " ", &state))
        words[count++] = word;
    if (count == 0)
        words[count++] = (char *)(uintptr_t) "ssh";
    quote(job->remote, path, sizeof path);
    snprintf(command, sizeof command, "%s run --station", path);
    static const char *const options[] = {"-oBatchMode=yes", "-oConnectTimeout=30",
                                          "-oServerAliveInterval=15"};
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
        words[count++] = (char *)(uintptr_t)options[i];
    words[count++] = (char *)(uintptr_t)host;
    words[count++] = command;
    words[count] = NULL;
    execvp(words[0], words);
    fprintf(stderr, "tutti run: cannot start '%s' for host %s: %s%s\n", words[0], host,
            strerror(errno), errno == ENOENT ? " (Debian's package: openssh-client)" : "");
}

int tutti__ssh_greeted(tutti_frames *frames)
{
    char *from = frames->data + frames->used;
    size_t size = frames->size - frames->used;
    char *found = size > 0 ? memmem(from, size, mark, sizeof mark - 1) : NULL;
    char *end = found == NULL ? NULL
                              : memchr(found + sizeof mark - 1, '\n',
                                       (size_t)(from + size - found) - (sizeof mark - 1));
    if (end == NULL)
        return size > NOISE ? -1 : 0;
    if (strtol(found + sizeof mark - 1, NULL, 10) != STATION_VERSION)
        return -1;
    frames->used += (size_t)(end + 1 - from);
    return 1;
}

void tutti__ssh_failed(const tutti_run_job *job, const tutti_run_host *host,
                       const tutti_frames *frames)
{
    size_t size = frames->size - frames->used;
    if (size > 0) /* what it printed instead: "This account is not available." */
        fprintf(stderr, "%s: %.*s\n", host->name, (int)(size < 2000 ? size : 2000),
                frames->data + frames->used);
    fprintf(stderr,
            "tutti run: no tutti of this version answered on host %s; this must work without a "
            "question: %s %s %s --version (--ssh, TUTTI_SSH: another command; --remote-tutti: "
            "another path)\n",
            host->name, job->ssh, host->name, job->remote);
}

void tutti__ssh_own_address(char *ret_text, size_t size)
{
    const char *connection = getenv("SSH_CONNECTION"); /* client, its port, server, its port */
    char address[64];
    if (connection != NULL && sscanf(connection, "%*s %*s %63s", address) == 1)
        snprintf(ret_text, size, "%s", address);
    else
        snprintf(ret_text, size, "-");
}

static bool resolves(const char *name)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found = NULL;
    bool good = getaddrinfo(name, NULL, &hints, &found) == 0;
    if (found != NULL)
        freeaddrinfo(found);
    return good;
}

void tutti__ssh_meeting(const char *host, int port, const char *address, char *ret_text,
                        size_t size)
{
    const char *at = strrchr(host, '@'), *name = at != NULL ? at + 1 : host;
    if (strcmp(address, "-") != 0 && !resolves(name))
        name = address; /* a name of ssh's configuration: other ranks would not know it */
    snprintf(ret_text, size, strchr(name, ':') != NULL ? "[%s]:%d" : "%s:%d", name, port);
}
