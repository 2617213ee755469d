#include <string.h>
#include <unistd.h>

#include "base/test.h"
#include "cli/run/run.h"

TUTTI_TEST(frames_arrive_whole_and_in_order)
{
    int ends[2];
    char large[70000];
    tutti_frame frame;
    CHECK_INT(pipe(ends), 0);
    tutti_frames frames = {.fd = ends[0]};
    CHECK(tutti__frame_text(ends[1], TUTTI_FRAME_PLAN, "%d %d", 7, 8));
    CHECK(tutti__frame_write(ends[1], TUTTI_FRAME_SECRET, "", 0));
    CHECK(tutti__frames_fill(&frames));
    CHECK_INT(tutti__frames_next(&frames, &frame), 1);
    CHECK_INT(frame.type, TUTTI_FRAME_PLAN);
    CHECK_STR(frame.data, "7 8");
    CHECK_INT(tutti__frames_next(&frames, &frame), 1);
    CHECK_INT(frame.size, 0);
    CHECK_INT(tutti__frames_next(&frames, &frame), 0);
    memset(large, 'x', sizeof large);
    CHECK_INT(write(ends[1], "O\x60\xea\0\0", 5), 5); /* 60000 bytes, in two parts */
    CHECK_INT(write(ends[1], large, 30000), 30000);
    CHECK(tutti__frames_fill(&frames));
    CHECK_INT(tutti__frames_next(&frames, &frame), 0);
    CHECK_INT(write(ends[1], large, 30000), 30000);
    CHECK(tutti__frames_fill(&frames));
    CHECK_INT(tutti__frames_next(&frames, &frame), 1);
    CHECK_INT(strlen(frame.data), 60000);
    CHECK_INT(write(ends[1], "O\xff\xff\xff\xff", 5), 5); /* larger than any */
    CHECK(tutti__frames_fill(&frames));
    CHECK_INT(tutti__frames_next(&frames, &frame), -1);
    close(ends[1]);
    CHECK(!tutti__frames_fill(&frames));
    tutti__frames_free(&frames);
    close(ends[0]);
}
