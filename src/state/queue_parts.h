/* queue_parts.h: what queues hold, as tensors of a checkpoint. Of queue Q:
 *     tutti/queue/Q/state      i64[6]: see below; i64[4] in files of earlier versions
 *     tutti/queue/Q/numbers    i64[n]: the elements' numbers, in order of arrival
 *     tutti/queue/Q/0          [n, …]: component 0 of all of them, and so on; where their shapes
 *     tutti/queue/Q/0/17       differ, of each
 * The last three are there when n > 0. Texts are two tensors, "….bytes" u8 and "….lengths" i64. */
#ifndef TUTTI_STATE_QUEUE_PARTS_H
#define TUTTI_STATE_QUEUE_PARTS_H

#define TUTTI_QUEUE_PARTS "tutti/queue/"

typedef enum tutti_queue_record {
    TUTTI_RECORD_COMPONENTS,
    TUTTI_RECORD_ARRIVED, /* elements that ever came */
    TUTTI_RECORD_DRAWN,   /* random numbers used */
    TUTTI_RECORD_COUNT,   /* n, the elements inside */
    TUTTI_RECORD_CLOSED,  /* 1, or 0, as where there is none */
    TUTTI_RECORD_CAPACITY,
    TUTTI_RECORD_SIZE,
    TUTTI_RECORD_EARLIER_SIZE = TUTTI_RECORD_CLOSED
} tutti_queue_record;

#endif
