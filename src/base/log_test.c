#include "base/log.h"

#include <stdio.h>
#include <string.h>

#include "base/test.h"

typedef struct seen {
    int lines;
    tutti_log_level level;
    char message[2048];
} seen;

static void remember(void *context, tutti_log_level level, const char *message)
{
    seen *s = context;
    s->lines++;
    s->level = level;
    snprintf(s->message, sizeof s->message, "%s", message);
    if (s->lines == 1)
        tutti__log(TUTTI_LOG_DEBUG, "from the sink");
}

TUTTI_TEST(log_goes_to_the_sink_or_nowhere)
{
    seen s = {0};
    tutti__log(TUTTI_LOG_INFO, "nobody listens");
    tutti_log_install(remember, &s);
    tutti__log(TUTTI_LOG_WARNING, "step %d", 3);
    CHECK_INT(s.lines, 2);
    CHECK_STR(s.message, "from the sink");
    tutti__log(TUTTI_LOG_WARNING, "step %d", 4);
    CHECK_STR(s.message, "step 4");
    CHECK_INT(s.level, TUTTI_LOG_WARNING);
    tutti__log(TUTTI_LOG_INFO, "%05000d", 1);
    CHECK_INT(strlen(s.message), 1023);
    tutti_log_install(NULL, NULL);
    tutti__log(TUTTI_LOG_INFO, "nobody listens");
    CHECK_INT(s.lines, 4);
}
