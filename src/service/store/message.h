/* message.h: what workers and servers of a parameter store say to each other. A message is about
 * one shard; a transport may put many into one write.
 *
 * A frame is "TS", the protocol (u8), the type (u8), the body's size (u32), the body: who sends
 * (view, node, incarnation, request, slot, shard), then the fields of its type (message.c has the
 * table). Numbers are little-endian. */
#ifndef TUTTI_SERVICE_STORE_MESSAGE_H
#define TUTTI_SERVICE_STORE_MESSAGE_H

#include "base/packed.h"

enum {
    TUTTI_STORE_PROTOCOL = 2,
    TUTTI_STORE_HEAD = 8,
    TUTTI_STORE_MOST_BYTES = 1 << 30, /* of a frame: a larger shard is to be cut */
    TUTTI_STORE_NODES = 1 << 20,
    TUTTI_STORE_SLOTS = 1 << 12,
};

typedef enum tutti_store_type {
    TUTTI_STORE_CREATE =
        1, /* a shard with its first value; whoever comes second must say the same */
    TUTTI_STORE_CREATED,
    TUTTI_STORE_PULL, /* the value, or some rows of it, when the policy lets this clock read */
    TUTTI_STORE_PULLED,
    TUTTI_STORE_PUSH, /* one contribution to one shard */
    TUTTI_STORE_PUSHED,
    TUTTI_STORE_PREPARE, /* the same as part of an atomic push */
    TUTTI_STORE_PREPARED,
    TUTTI_STORE_COMMIT, /* to slot 0: everything is prepared on these slots */
    TUTTI_STORE_COMMITTED,
    TUTTI_STORE_DECIDE, /* from slot 0 to the others, in its order */
    TUTTI_STORE_DECIDED,
    TUTTI_STORE_NUMBER, /* to slot 0: the number of the last atomic push */
    TUTTI_STORE_NUMBERED,
    TUTTI_STORE_FINISH, /* closures below a number are done and never come again */
    TUTTI_STORE_FINISHED,
    TUTTI_STORE_REPLICATE, /* an operation of a slot to its replica */
    TUTTI_STORE_REPLICATED,
    TUTTI_STORE_SNAPSHOT, /* a piece of a slot to a new replica */
    TUTTI_STORE_SNAPSHOT_TAKEN,
    TUTTI_STORE_MEMBERS, /* in a slot's log only: who is alive */
    TUTTI_STORE_REFUSED,
    TUTTI_STORE_RUN, /* from a coordinator to a worker: a closure */
    TUTTI_STORE_RAN, /* what came of it; RUN is repeated until this came */
    TUTTI_STORE_GET, /* all that a shard's rule has, by name, when the policy lets this clock read
                      */
    TUTTI_STORE_GOT,
    TUTTI_STORE_PUT, /* values for some of that, whatever was there */
    TUTTI_STORE_PUT_DONE,
    TUTTI_STORE_TYPES,
} tutti_store_type;

/* What became of a push: the same on every retry. */
typedef enum tutti_store_verdict {
    TUTTI_STORE_NO_VERDICT,
    TUTTI_STORE_APPLIED,
    TUTTI_STORE_HELD,    /* it is there, and becomes part of an update */
    TUTTI_STORE_LATE,    /* its step was over: dropped */
    TUTTI_STORE_SKIPPED, /* it held NaN or infinity, and the policy is to skip such ones */
    TUTTI_STORE_KNOWN,   /* it came long ago */
    TUTTI_STORE_VERDICTS,
} tutti_store_verdict;

/* Why a message is refused. */
typedef enum tutti_store_reason {
    TUTTI_STORE_NO_REASON,
    TUTTI_STORE_OLD_VIEW,  /* the sender knows an older view: again under the new one */
    TUTTI_STORE_ELSEWHERE, /* this server does not lead that slot in this view: again */
    TUTTI_STORE_FENCED,    /* a later process has taken the sender's place, or it was given up */
    TUTTI_STORE_UNKNOWN,   /* there is no such shard */
    TUTTI_STORE_SHAPE,
    TUTTI_STORE_DIFFERS, /* the shard is there, and is another */
    TUTTI_STORE_FUTURE,  /* a version or step that cannot have been seen */
    TUTTI_STORE_NAN,
    TUTTI_STORE_FULL,
    TUTTI_STORE_NO_CLOCK, /* a closure where steps have a meaning, or one too far ahead */
    TUTTI_STORE_GONE,     /* a number of an atomic read that is no longer kept: read anew */
    TUTTI_STORE_RULE,     /* the update rule failed */
    TUTTI_STORE_LOST,     /* nobody has the slot any more; clients say it to themselves */
    TUTTI_STORE_REASONS,
} tutti_store_reason;

/* How a gradient, or what is pulled, looks. */
typedef enum tutti_store_form {
    TUTTI_STORE_NOTHING, /* a step without a gradient for this shard */
    TUTTI_STORE_DENSE,
    TUTTI_STORE_ROWS, /* rows at indices; equal ones are summed */
    TUTTI_STORE_FORMS,
} tutti_store_form;

/* The step of a closure: its number with this bit. */
#define TUTTI_STORE_CLOSURE (UINT64_C(1) << 63)

enum { TUTTI_STORE_TEXT = 320, TUTTI_STORE_WORD = 48 };

typedef struct tutti_store_message {
    uint32_t type;
    uint64_t view;
    uint32_t node, incarnation; /* of the sender */
    uint64_t request;           /* the sender's number, which the answer repeats */
    uint32_t slot, shard;
    uint64_t step;         /* of the key: the worker's step, or a closure */
    uint32_t contribution; /* of the key: the worker's number, equal wherever it is retried */
    uint64_t clock;        /* PULL: the reader's; answers: the one to go on with */
    uint64_t version;      /* read by whoever pushes; the shard's in answers; of a log */
    uint64_t number;       /* of an atomic push, an operation of a log, a piece */
    uint64_t after;        /* what must have come before it; how many pieces there are */
    uint32_t form, verdict, reason;
    uint32_t dtype;
    double factor;        /* of the learning rate, as the primary decided */
    double learning_rate; /* the worker's; 1 where the rule has its own */
    char consistency[TUTTI_STORE_WORD], nan[TUTTI_STORE_WORD], rate[TUTTI_STORE_WORD],
        rule[TUTTI_STORE_WORD], initial[TUTTI_STORE_WORD];
    char text[TUTTI_STORE_TEXT]; /* a name, or a refusal in words */
    tutti_packed_data rows;      /* indices, dims, slots or members */
    tutti_packed_data data;      /* elements, or another frame */
    tutti_packed_data graph;     /* of an update rule */
} tutti_store_message;

/* Bytes of the frame, and writing so many. */
size_t tutti__store_message_size(const tutti_store_message *message);
void tutti__store_message_write(const tutti_store_message *message, uint8_t *ret_frame);
/* Reads the frame at the beginning of `data`, which the message then points into. *ret_used is 0
 * while it is not whole yet. TUTTI_CORRUPT when it is no frame of this protocol. */
tutti_status tutti__store_message_read(const uint8_t *data, size_t size,
                                       tutti_store_message *ret_message, size_t *ret_used);
const char *tutti__store_type_text(uint32_t type); /* "push"; never NULL */
const char *tutti__store_verdict_text(uint32_t verdict);

/* Makes an answer of `reason`, with the thread's message as its words. */
void tutti__store_refusal(tutti_store_reason reason, tutti_store_message *ret_answer);

static inline size_t tutti__store_row_count(const tutti_store_message *message)
{
    return message->rows.size / 8;
}
static inline int64_t tutti__store_row(const tutti_store_message *message, size_t index)
{
    return tutti__packed_long(message->rows, index);
}

#endif
