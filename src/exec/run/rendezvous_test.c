#include "exec/run/rendezvous.h"

#include <stdio.h>

#include "base/shortage.h"

TUTTI_TEST(meetings_without_memory_say_so)
{
    tutti__shortage_or_skip();
    tutti_rendezvous rendezvous;
    tutti_run run = {.rendezvous = &rendezvous};
    tutti_tensor *value = NULL, *all[1] = {0};
    tutti_status status[2];
    char messages[2][128];
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 0, NULL, &value));
    CHECK_OK(tutti__rendezvous_init(&rendezvous, 2));
    tutti_shortage shortage = tutti__shortage_begin();
    status[0] = tutti__rendezvous_send(&run, "cut", value);
    snprintf(messages[0], sizeof messages[0], "%s", tutti_error_message());
    status[1] = tutti__rendezvous_recv(&run, "cut", "cpu:0", "r", all);
    snprintf(messages[1], sizeof messages[1], "%s", tutti_error_message());
    tutti__shortage_end(&shortage);
    for (int i = 0; i < 2; i++) {
        CHECK_STATUS(status[i], TUTTI_NO_MEMORY);
        CHECK_STR(messages[i], "no memory for channel 'cut'");
    }
    tutti__rendezvous_end(&rendezvous);
    tutti_tensor_release(value);
}

TUTTI_TEST(channels_are_for_one_thing)
{
    tutti_rendezvous rendezvous;
    tutti_run run = {.rendezvous = &rendezvous};
    tutti_tensor *value = NULL, *other = NULL;
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 0, NULL, &value));
    CHECK_OK(tutti__rendezvous_init(&rendezvous, 2));
    CHECK_OK(tutti__rendezvous_send(&run, "cut", value));
    CHECK_STATUS(tutti__rendezvous_send(&run, "cut", value), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "sent to twice");
    CHECK_OK(tutti__rendezvous_recv(&run, "cut", "cpu:0", "r", &other));
    CHECK(other == value);
    tutti__rendezvous_end(&rendezvous);
    tutti_tensor_release(other);
    tutti_tensor_release(value);
}
