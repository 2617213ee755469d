/* frames_fuzz.c: what launcher and stations of `tutti run` say to each other, as it comes out of a
 * pipe in pieces: every frame is whole, ends in NUL, and is written again as it was. */
#include <string.h>
#include <unistd.h>

#include "cli/run/run.h"
#include "fuzz.h"

/* Reads one frame's bytes back from a pipe. */
static void write_again(const tutti_frame *frame)
{
    static char again[4096 + 8];
    int ends[2];
    if (frame->size > 4096)
        return;
    promise(pipe(ends) == 0);
    promise(tutti__frame_write(ends[1], frame->type, frame->data, frame->size));
    close(ends[1]);
    promise(read(ends[0], again, sizeof again) == (ssize_t)frame->size + 5);
    close(ends[0]);
    promise(again[0] == frame->type && memcmp(again + 5, frame->data, frame->size) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int ends[2];
    tutti_frame frame;
    if (size > 32768)
        return 0; /* a pipe holds 64 KiB */
    promise(pipe(ends) == 0);
    promise(write(ends[1], data, size) == (ssize_t)size);
    close(ends[1]);
    tutti_frames frames = {.fd = ends[0]};
    size_t used = 0;
    int found = 0;
    while (found >= 0 && tutti__frames_fill(&frames))
        while ((found = tutti__frames_next(&frames, &frame)) == 1) {
            promise(frame.size <= TUTTI_RUN_FRAME_BYTES && frame.data[frame.size] == '\0');
            write_again(&frame);
            used += 5 + frame.size;
        }
    promise(used <= size);
    close(ends[0]);
    tutti__frames_free(&frames);
    return 0;
}
