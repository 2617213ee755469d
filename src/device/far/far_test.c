/* far_test.c: far devices give cpu's bits whatever the delays, and notice what is wrong in a program. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/params.h"
#include "base/test.h"
#include "base/world.h"
#include "device/far/frame.h"
#include "device/far/suite.h"
#include "passes/pass.h"

TUTTI_TEST(far_trains_like_cpu) { tutti__suite_trains("far:0", 0); }
TUTTI_TEST(far_trains_cut_in_two) { tutti__suite_trains_cut("far:0", "far:1", 0); }
TUTTI_TEST(far_trains_cut_from_cpu) { tutti__suite_trains_cut("cpu:0", "far:1", 0); }
TUTTI_TEST(far_variables) { tutti__suite_variables("far:0"); }
TUTTI_TEST(far_results) { tutti__suite_results("far:0"); }
TUTTI_TEST(far_errors) { tutti__suite_errors("far:0"); }
TUTTI_TEST(far_control) { tutti__suite_control("far:0", 0); }
TUTTI_TEST(far_threads) { tutti__suite_threads("far:0"); }
TUTTI_TEST(far_dynamic) { tutti__suite_dynamic("far:0"); }
TUTTI_TEST(far_strings_and_queues) { tutti__suite_strings_and_queues("far:0"); }
/* The suite itself must hold where nothing is special. */
TUTTI_TEST(suite_variables_on_cpu) { tutti__suite_variables("cpu:0"); }
TUTTI_TEST(suite_results_on_cpu) { tutti__suite_results("cpu:0"); }
TUTTI_TEST(suite_errors_on_cpu) { tutti__suite_errors("cpu:0"); }
TUTTI_TEST(suite_control_on_cpu) { tutti__suite_control("cpu:0", 0); }
TUTTI_TEST(suite_threads_on_cpu) { tutti__suite_threads("cpu:0"); }
TUTTI_TEST(suite_dynamic_on_cpu) { tutti__suite_dynamic("cpu:0"); }
TUTTI_TEST(suite_strings_and_queues_on_cpu) { tutti__suite_strings_and_queues("cpu:0"); }
