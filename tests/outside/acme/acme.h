/* acme.h: the operators of a company that uses Tutti and does not build it. One file each. */
#ifndef ACME_H
#define ACME_H

#include <tutti/tutti.h>

extern const tutti_op acme_cubic_swish;   /* element-wise, by the ready-made rules */
extern const tutti_op acme_weighted_rows; /* two outputs, own rules, may fail */
extern const tutti_op acme_keep_positive; /* its shape depends on data */

/* Makes them known to this process. */
tutti_status acme_register(void);

/* Builders that read like the library's own: the macros note the caller's place. */
tutti_sym acme_swish(tutti_sym x, double alpha);
#define acme_swish(...) TUTTI_AT(acme_swish(__VA_ARGS__))
tutti_sym acme_rows(tutti_sym x, tutti_sym weight, int64_t power);
#define acme_rows(...) TUTTI_AT(acme_rows(__VA_ARGS__))
tutti_sym acme_positive(tutti_sym x);
#define acme_positive(...) TUTTI_AT(acme_positive(__VA_ARGS__))

#endif
