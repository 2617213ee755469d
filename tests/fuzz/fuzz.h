/* fuzz.h: what the fuzz targets of file formats share. */
#ifndef TUTTI_FUZZ_H
#define TUTTI_FUZZ_H

#include <stdlib.h>

#include "io/stream.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline void promise(bool kept)
{
    if (!kept)
        abort();
}

/* A failure leaves a message; nothing else may be wrong with it. */
static inline bool went_well(tutti_status status)
{
    promise(status == TUTTI_OK || tutti_error_message()[0] != 0);
    promise(status != TUTTI_INTERNAL);
    return status == TUTTI_OK;
}

static inline tutti_source *source_of(const uint8_t *data, size_t size)
{
    tutti_source *source = NULL;
    promise(tutti__source_bytes("input", data, size, &source) == TUTTI_OK);
    return source;
}

#endif
