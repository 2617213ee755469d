/* message.h: what ranks say to each other on control connections. docs/protocol.md is the manual.
 *
 * A frame is "TT", the type (u8), 0 (u8), the body's size (u32), the body; never more than 4 KiB.
 * Numbers are little-endian, texts a u16 of bytes and the bytes, blobs the same; sets of ranks are
 * blobs of bits. */
#ifndef TUTTI_CLUSTER_MESSAGE_H
#define TUTTI_CLUSTER_MESSAGE_H

#include "cluster/membership.h"
#include "cluster/sha256.h"

enum {
    TUTTI_PROTOCOL = 8,
    TUTTI_FRAME_BYTES = 4096,
    TUTTI_FRAME_HEAD = 8,
    TUTTI_NONCE_BYTES = 32,
    TUTTI_TOKEN_BYTES = 32,
    TUTTI_BEAT_ARRIVALS = 32,
    TUTTI_ARRIVAL_BYTES = 26,
    TUTTI_WHERES = 5, /* groups whose operations a rank tells of */
};

typedef enum tutti_message_type {
    TUTTI_MESSAGE_CHALLENGE = 1,
    TUTTI_MESSAGE_HELLO,
    TUTTI_MESSAGE_ADMIT,
    TUTTI_MESSAGE_REFUSE,
    TUTTI_MESSAGE_PEER,
    TUTTI_MESSAGE_START,
    TUTTI_MESSAGE_BEAT,
    TUTTI_MESSAGE_SUSPECT,
    TUTTI_MESSAGE_POLL,
    TUTTI_MESSAGE_REPORT,
    TUTTI_MESSAGE_VERDICT,
    TUTTI_MESSAGE_LEAVE,
    TUTTI_MESSAGE_GOODBYE,
    TUTTI_MESSAGE_EXCHANGE,
    TUTTI_MESSAGE_GATHERED,
    TUTTI_MESSAGE_VIEW,
    TUTTI_MESSAGE_TYPES,
} tutti_message_type;

/* Why a HELLO is refused. */
typedef enum tutti_refusal {
    TUTTI_REFUSAL_NONE,
    TUTTI_REFUSAL_VERSION,
    TUTTI_REFUSAL_SECRET,
    TUTTI_REFUSAL_ROLE,      /* rank, role, index or world size disagree */
    TUTTI_REFUSAL_EPOCH,     /* a process of an earlier or later start */
    TUTTI_REFUSAL_TAKEN,     /* that rank, or that channel of it, is here already */
    TUTTI_REFUSAL_LATE,      /* rendezvous was given up; the text is the table of who is missing */
    TUTTI_REFUSAL_ENDING,    /* the job that is still here has ended; the next one may meet here */
    TUTTI_REFUSAL_JOB,       /* a process of another job; the text has both names */
    TUTTI_REFUSAL_EARLY,     /* a channel, before this rank has met all others */
    TUTTI_REFUSAL_UNMET,     /* it knows the secret, and is none of the ranks that have met */
    TUTTI_REFUSAL_ELSEWHERE, /* another rank keeps the roster; the text is "rank address:port", or
                                "" while none does */
    TUTTI_REFUSAL_COUNT,
} tutti_refusal;

/* STAND_IN: rank 0, or whoever keeps an open roster, is lost, and the lower of the two is to act in
 * its place. JOIN: a member of an open roster. */
enum {
    TUTTI_PURPOSE_MEMBER = 1,
    TUTTI_PURPOSE_CHANNEL = 2,
    TUTTI_PURPOSE_STAND_IN = 3,
    TUTTI_PURPOSE_JOIN = 4,
};

/* Where a rank is in the operations of one group. */
typedef struct tutti_where {
    char operation[96]; /* "": in none yet */
    uint64_t sequence;
    uint32_t inside;     /* 1: entered and not left */
    int64_t for_ns;      /* how long ago it entered or left */
    uint64_t group;      /* 0: all ranks of the job */
    tutti_ranks members; /* of any other group; none when they are not known */
} tutti_where;

/* In those of all ranks first, then in those of the groups that it used last. */
typedef struct tutti_wheres {
    tutti_where of[TUTTI_WHERES];
} tutti_wheres;

/* One operation entered: the clock is the coordinator's. */
typedef struct tutti_arrival {
    uint64_t group, sequence;
    uint16_t ranks; /* in the group; 0: all of the job */
    int64_t at_ns;
} tutti_arrival;

typedef struct tutti_blob {
    uint16_t size;
    uint8_t data[TUTTI_EXCHANGE_BYTES];
} tutti_blob;

typedef struct tutti_cluster_message {
    tutti_message_type type;
    union {
        struct {
            uint32_t protocol;
            char version[32];
            uint8_t nonce[TUTTI_NONCE_BYTES];
            uint32_t epoch, rank; /* of the acceptor */
        } challenge;
        struct {
            uint32_t protocol;
            char version[32];
            uint8_t nonce[TUTTI_NONCE_BYTES];
            uint32_t epoch, purpose, rank, to, size, role, index;
            uint32_t number; /* of a channel */
            uint32_t port;
            uint64_t incarnation; /* in an open roster; 0: in none yet */
            int64_t pid;
            uint64_t machine;
            char host[256], address[64], job[TUTTI_JOB_BYTES];
            uint8_t proof[TUTTI_SHA256_BYTES];
        } hello;
        struct {
            uint8_t proof[TUTTI_SHA256_BYTES];
        } admit;
        struct {
            uint32_t reason;
            char text[1000];
        } refuse;
        struct {
            uint32_t rank, role, index, port;
            int64_t pid;
            uint64_t machine;
            char host[256], address[64]; /* address "": where the sender was reached */
            uint64_t incarnation;        /* in an open roster */
        } peer;
        struct {
            uint32_t epoch, size;
            uint64_t job;
            uint8_t token[TUTTI_TOKEN_BYTES];
        } start;
        struct {
            int64_t sent_ns;    /* the sender's clock */
            int64_t echo_ns;    /* sent_ns of the last beat that the sender got; 0: none */
            int64_t held_ns;    /* how long ago that was */
            tutti_wheres where; /* of the sender */
            tutti_blob arrived; /* tutti_arrival, TUTTI_ARRIVAL_BYTES each */
        } beat;
        struct {
            uint32_t rank, why;
            int64_t detail;
            char reason[TUTTI_REASON_BYTES];
        } suspect;
        struct {
            tutti_wheres where;
        } report;
        struct {
            int32_t rank;
            uint32_t why;
            int64_t detail, pid;
            char host[256], reason[TUTTI_REASON_BYTES], operation[96];
            uint64_t sequence, group;
            tutti_ranks members;
            uint32_t arrived_count;
            tutti_ranks arrived;
            char text[1400];
        } verdict;
        struct {
            uint64_t round;
            uint32_t rank;
            tutti_blob data;
        } exchange; /* GATHERED too */
        struct {
            uint64_t number;
            uint32_t kept;             /* 1: by the sender; 0: it tells what it knows */
            uint32_t cut;              /* 1: the keeper reaches too few */
            tutti_ranks members, left; /* who is in it; who has left properly */
        } view;
    } as;
} tutti_cluster_message;

/* Writes a frame; returns its bytes. Texts are cut at their room; every message fits a frame. */
size_t tutti__message_write(const tutti_cluster_message *message,
                            uint8_t ret_frame[TUTTI_FRAME_BYTES]);
/* Reads the frame at the beginning of `data`. *ret_used is 0 while it is not whole yet.
 * TUTTI_CORRUPT when it is no frame, is too large, has bytes left over or holds a number that
 * cannot be. */
tutti_status tutti__message_read(const uint8_t *data, size_t size,
                                 tutti_cluster_message *ret_message, size_t *ret_used);
/* "hello"; never NULL. */
const char *tutti__message_text(tutti_message_type type);

/* One after the other in a blob. */
size_t tutti__arrivals_read(const tutti_blob *blob, tutti_arrival *ret_arrivals, size_t limit);
void tutti__arrivals_write(const tutti_arrival *arrivals, size_t count, tutti_blob *ret_blob);

#endif
