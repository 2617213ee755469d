#include <errno.h>
#include <string.h>

#include "base/test.h"
#include "base/world.h"

TUTTI_TEST(sockets_carry_bytes_and_their_end)
{
    const tutti_world *w = tutti__world();
    tutti_address at, from;
    size_t count;
    int listener, port, accepted;
    CHECK_OK(w->resolve(w->self, "127.0.0.1", 0, 1, &at, &count));
    CHECK_INT(count, 1);
    CHECK(tutti__address_loopback(&at));
    CHECK_OK(w->listen(w->self, &at, &listener, &port));
    CHECK_OK(w->resolve(w->self, "127.0.0.1", port, 1, &at, &count));
    CHECK_INT(tutti__address_port(&at), port);
    int near = w->connect(w->self, &at, NULL);
    CHECK(near >= 0);
    tutti_wait wait = {.socket = listener, .wants = TUTTI_WAIT_READ};
    CHECK_INT(w->wait(w->self, &wait, 1, 1000000000), 1);
    CHECK((accepted = w->accept(w->self, listener, &from)) >= 0);
    CHECK_INT(w->connected(w->self, near), 0);
    char text[64], data[8];
    tutti__address_text(&from, text, sizeof text);
    CHECK_STR(text, "127.0.0.1");
    CHECK_INT(w->receive(w->self, accepted, data, sizeof data), -EAGAIN);
    CHECK_INT(w->send(w->self, near, "tutti", 5), 5);
    wait.socket = accepted;
    CHECK_INT(w->wait(w->self, &wait, 1, 1000000000), 1);
    CHECK_INT(w->receive(w->self, accepted, data, sizeof data), 5);
    CHECK(memcmp(data, "tutti", 5) == 0);
    w->end_sending(w->self, near);
    CHECK_INT(w->wait(w->self, &wait, 1, 1000000000), 1);
    CHECK_INT(w->receive(w->self, accepted, data, sizeof data), 0);
    w->close_socket(w->self, near);
    w->close_socket(w->self, accepted);
    w->close_socket(w->self, listener);
}

TUTTI_TEST(sockets_say_what_failed)
{
    const tutti_world *w = tutti__world();
    tutti_address at;
    size_t count;
    int listener, port, again;
    CHECK_STATUS(w->resolve(w->self, "no-such-host.invalid", 1, 1, &at, &count), TUTTI_NOT_FOUND);
    CHECK_CONTAINS(tutti_error_message(), "no-such-host.invalid");
    CHECK_OK(w->resolve(w->self, "127.0.0.1", 0, 1, &at, &count));
    CHECK_OK(w->listen(w->self, &at, &listener, &port));
    CHECK_OK(w->resolve(w->self, "127.0.0.1", port, 1, &at, &count));
    CHECK_STATUS(w->listen(w->self, &at, &again, &port), TUTTI_EXISTS);
    CHECK_CONTAINS(tutti_error_message(), "127.0.0.1");
    w->close_socket(w->self, listener);
    int refused = w->connect(w->self, &at, NULL);
    if (refused >= 0) {
        tutti_wait wait = {.socket = refused, .wants = TUTTI_WAIT_WRITE};
        CHECK_INT(w->wait(w->self, &wait, 1, 1000000000), 1);
        CHECK_INT(w->connected(w->self, refused), -ECONNREFUSED);
        w->close_socket(w->self, refused);
    } else
        CHECK_INT(refused, -ECONNREFUSED);
}
