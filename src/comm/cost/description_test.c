/* description_test.c: what links cost, from a file. */
#include "comm/cost/description.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/test.h"
#include "comm/comm.h"

static char path[] = "/tmp/tutti-links-XXXXXX";

static void write_text(const char *text)
{
    strcpy(strrchr(path, '-'), "-XXXXXX");
    int descriptor = mkstemp(path);
    CHECK(descriptor >= 0);
    CHECK(write(descriptor, text, strlen(text)) == (ssize_t)strlen(text));
    close(descriptor);
}

TUTTI_TEST(description_says_what_links_cost)
{
    tutti_description d;
    tutti_comm_cost cost = {.phase = 1e-6};
    write_text("{\"within\": {\"alpha\": \"0.5us\", \"beta\": \"20GB/s\"}, \"gamma\": \"25GB/s\",\n"
               " \"between\": {\"beta\": {\"64k\": \"8Gbit/s\", \"1m\": \"0.1ns\"}, "
               "\"alpha\": \"20us\"}}\n");
    CHECK_OK(tutti__description_read(path, &d));
    cost.link[TUTTI_LINK_WITHIN].alpha = 1e-6;
    cost.link[TUTTI_LINK_BETWEEN].alpha = 1e-6;
    tutti__description_apply(&d, &cost);
    CHECK_NEAR(cost.link[TUTTI_LINK_WITHIN].alpha, 0.5e-6, 1e-12);
    CHECK_NEAR(cost.phase, 0.5e-6, 1e-12); /* as the messages, where nothing is said */
    CHECK_NEAR(cost.link[TUTTI_LINK_WITHIN].exchange[3], 1 / 20e9, 1e-15);
    CHECK_NEAR(cost.link[TUTTI_LINK_BETWEEN].alpha, 20e-6, 1e-12);
    CHECK_NEAR(cost.link[TUTTI_LINK_BETWEEN].beta[0], 1e-9, 1e-15);
    CHECK_NEAR(cost.link[TUTTI_LINK_BETWEEN].beta[TUTTI_COMM_AT_MIB - 1], 1e-9, 1e-15);
    CHECK_NEAR(cost.link[TUTTI_LINK_BETWEEN].beta[TUTTI_COMM_AT_MIB], 1e-10, 1e-15);
    CHECK_NEAR(cost.gamma[0], 1 / 25e9, 1e-15);
    unlink(path);
}

TUTTI_TEST(description_is_written_as_it_is_read)
{
    tutti_description d;
    tutti_comm_cost cost = {.hosts = 2, .phase = 3e-7};
    for (int link = 0; link < TUTTI_LINK_COUNT; link++) {
        cost.link[link].alpha = 1e-6 * (link + 1);
        for (int i = 0; i < TUTTI_COMM_SIZES; i++)
            cost.link[link].beta[i] = 1e-10 * (link + 1 + 0.1 * i);
    }
    for (int i = 0; i < TUTTI_COMM_SIZES; i++)
        cost.gamma[i] = 5e-11;
    write_text("");
    CHECK_OK(tutti__description_write(&cost, 64 << 20, path));
    CHECK_OK(tutti__description_read(path, &d));
    for (int link = 0; link < TUTTI_LINK_COUNT; link++) {
        CHECK_NEAR(d.alpha[link], cost.link[link].alpha, 1e-3 * cost.link[link].alpha);
        for (int i = 0; i < TUTTI_COMM_SIZES; i++)
            CHECK_NEAR(d.beta[link][i], cost.link[link].beta[i], 1e-3 * d.beta[link][i]);
    }
    CHECK_NEAR(d.phase, 3e-7, 1e-10);
    CHECK_NEAR(d.gamma, 5e-11, 1e-14);
    unlink(path);
}

/* As a measurement leaves it: of lanes the smallest size is not known, and not every figure. */
static tutti_comm_cost cost_with_lanes(void)
{
    tutti_comm_cost cost = {.hosts = 2, .phase = 3e-7, .lanes = {1, 4}};
    for (int link = 0; link < TUTTI_LINK_COUNT; link++)
        cost.link[link].alpha = 1e-5;
    tutti_comm_lane *lane = &cost.lane[TUTTI_LINK_BETWEEN];
    lane->start = 9e-6;
    for (int i = 0; i < TUTTI_COMM_SIZES; i++) {
        for (int link = 0; link < TUTTI_LINK_COUNT; link++)
            cost.link[link].beta[i] = cost.link[link].exchange[i] = 2e-10;
        cost.gamma[i] = cost.sum[TUTTI_LINK_BETWEEN][i] = 5e-11;
        double *const known[] = {lane->beta, lane->exchange,  lane->of_two,
                                 lane->fold, lane->fold_into, lane->sum};
        for (size_t j = 0; i > 0 && j < TUTTI_COUNT(known); j++)
            known[j][i] = 7e-10 * (double)(j + 1) + 1e-11 * i;
    }
    return cost;
}

TUTTI_TEST(description_has_what_lanes_cost)
{
    enum { LINK = TUTTI_LINK_BETWEEN, BYTES = 64 << 20 };
    tutti_description d;
    tutti_comm_cost cost = cost_with_lanes(), plain = cost, read, fewer;
    write_text("");
    CHECK_OK(tutti__description_write(&cost, BYTES, path));
    CHECK_OK(tutti__description_read(path, &d));
    CHECK_INT(d.lanes[TUTTI_LINK_WITHIN], 0);
    CHECK_INT(d.lanes[LINK], 4);
    plain.lane[LINK] = (tutti_comm_lane){0};
    read = fewer = plain;
    fewer.lanes[LINK] = 2;
    tutti__description_apply(&d, &read);
    tutti__description_apply(&d, &fewer);
    const double *wrote = &cost.lane[LINK].start, *came = &read.lane[LINK].start;
    for (size_t i = 0; i < sizeof cost.lane[LINK] / sizeof *wrote; i++)
        if (wrote[i] > 0)
            CHECK_NEAR(came[i], wrote[i], 1e-3 * wrote[i]);
    CHECK(read.lane[LINK].gamma[TUTTI_COMM_AT_MIB] == 0); /* not measured */
    CHECK(fewer.lane[LINK].start == 0); /* these are of four at once, not of two */
    double with = tutti_comm_predict(&cost, "all_reduce", "ring", 2, BYTES);
    CHECK_NEAR(tutti_comm_predict(&read, "all_reduce", "ring", 2, BYTES), with, 2e-3 * with);
    CHECK(tutti_comm_predict(&plain, "all_reduce", "ring", 2, BYTES) < 0.5 * with);
    unlink(path);
}

TUTTI_TEST(description_of_lanes_may_be_short)
{
    tutti_description d;
    tutti_comm_cost cost = {.lanes = {4, 4}};
    write_text("{\"within\": {\"beta\": \"2GB/s\", \"lanes\": {\"start\": \"9us\", "
               "\"beta\": \"1GB/s\", \"count\": 4}}}");
    CHECK_OK(tutti__description_read(path, &d));
    tutti__description_apply(&d, &cost);
    CHECK_NEAR(cost.lane[TUTTI_LINK_WITHIN].start, 9e-6, 1e-12);
    CHECK_NEAR(cost.lane[TUTTI_LINK_WITHIN].exchange[0], 1e-9, 1e-15);
    CHECK(cost.lane[TUTTI_LINK_WITHIN].gamma[0] == 0);
    unlink(path);
}

TUTTI_TEST(description_that_is_none_says_why)
{
    static const struct {
        const char *text, *part;
    } bad[] = {
        {"[]", "object"},
        {"{\"within\": {\"alpha\": \"fast\"}}", "alpha is 'fast', not a time"},
        {"{\"within\": {\"alpha\": \"1GB/s\"}}", "alpha is '1GB/s', not a time"},
        {"{\"within\": {\"beta\": \"-1GB/s\"}}", "or a bandwidth"},
        {"{\"within\": {\"latency\": \"1us\"}}", "not \"latency\""},
        {"{\"elsewhere\": {}}", "there is no \"elsewhere\""},
        {"{\"within\": {\"lanes\": {\"beta\": \"1GB/s\"}}}", "do not say of how many"},
        {"{\"within\": {\"lanes\": {\"count\": 4, \"alpha\": \"1us\"}}}", "not \"alpha\""},
        {"{\"within\": {\"lanes\": {\"count\": 99}}}", "whole number"},
        {"{\"within\": {\"beta\": {\"1m\": \"1GB/s\", \"64k\": \"2GB/s\"}}}", "'64k' is no size"},
        {"{\"within\": {\"beta\": \"0.1\"}}", "a link of 10 bytes a second"},
        {"{\"gamma\": \"1GB/s\"} x", "expected the end"},
    };
    tutti_description d;
    for (size_t i = 0; i < TUTTI_COUNT(bad); i++) {
        write_text(bad[i].text);
        CHECK_STATUS(tutti__description_read(path, &d), TUTTI_INVALID);
        CHECK_CONTAINS(tutti_error_message(), bad[i].part);
        CHECK_CONTAINS(tutti_error_message(), "describes no cluster");
        unlink(path);
    }
    CHECK(tutti__description_read("/nowhere/at/all", &d) != TUTTI_OK);
}
