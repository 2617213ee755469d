#include "cluster/cluster.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/test.h"

/* A clean environment; tests run in processes of their own. */
static void forget(void)
{
    static const char *const names[] = {"TUTTI_RANK",
                                        "TUTTI_SIZE",
                                        "TUTTI_MEETING",
                                        "TF_CONFIG",
                                        "RANK",
                                        "WORLD_SIZE",
                                        "MASTER_ADDR",
                                        "OMPI_COMM_WORLD_RANK",
                                        "OMPI_COMM_WORLD_SIZE",
                                        "PMI_RANK",
                                        "PMI_SIZE",
                                        "PMIX_RANK",
                                        "SLURM_PROCID",
                                        "SLURM_STEP_NUM_TASKS",
                                        "JOB_COMPLETION_INDEX",
                                        "TUTTI_SERVICE",
                                        "TUTTI_PS",
                                        "TUTTI_SECRET",
                                        "TUTTI_SECRET_FILE"};
    for (size_t i = 0; i < TUTTI_COUNT(names); i++)
        unsetenv(names[i]);
}

static tutti_cluster *resolved(void)
{
    tutti_cluster *cluster = NULL;
    CHECK_OK(tutti_cluster_resolve(NULL, &cluster));
    return cluster;
}

static void refused(tutti_status status, const char *part)
{
    tutti_cluster *cluster = NULL;
    CHECK_STATUS(tutti_cluster_resolve(NULL, &cluster), status);
    CHECK(cluster == NULL);
    CHECK_CONTAINS(tutti_error_message(), part);
}

TUTTI_TEST(cluster_without_variables_is_this_process)
{
    forget();
    tutti_cluster *c = resolved();
    CHECK_STR(tutti_cluster_resolver(c), "single");
    CHECK_INT(tutti_cluster_rank(c), 0);
    CHECK_INT(tutti_cluster_size(c), 1);
    CHECK_STR(tutti_cluster_secret_source(c), "none");
    tutti_cluster_free(c);
}

TUTTI_TEST(cluster_from_an_empty_tf_config_is_this_process)
{
    static const char *const nothing[] = {" { } ", "{\"environment\":\"cloud\"}",
                                          "{\"cluster\": {}, \"rpc_layer\":\"grpc\"}"};
    forget();
    for (size_t i = 0; i < TUTTI_COUNT(nothing); i++) {
        setenv("TF_CONFIG", nothing[i], 1);
        tutti_cluster *c = resolved();
        CHECK_STR(tutti_cluster_resolver(c), "single");
        tutti_cluster_free(c);
    }
}

TUTTI_TEST(cluster_from_tf_config)
{
    forget();
    setenv("TF_CONFIG",
           "{\"cluster\": {\"chief\": [\"a:1\"], \"worker\": [\"b:1\", \"c:1\"], \"ps\": [\"d:1\"],"
           " \"evaluator\": [\"e:1\"]}, \"environment\": \"cloud\", \"other\": {\"x\": [1, {}]},"
           " \"task\": {\"type\": \"worker\", \"index\": 1}}",
           1);
    tutti_cluster *c = resolved();
    tutti_role role;
    int index;
    CHECK_STR(tutti_cluster_resolver(c), "tf_config");
    CHECK_INT(tutti_cluster_rank(c), 2);
    CHECK_INT(tutti_cluster_size(c), 4);
    CHECK_INT(tutti_cluster_role(c), TUTTI_ROLE_WORKER);
    CHECK_STR(tutti_cluster_rendezvous(c), "a:1");
    CHECK_STR(tutti_cluster_task(c, TUTTI_ROLE_PS, 0), "d:1");
    CHECK(tutti_cluster_task(c, TUTTI_ROLE_PS, 1) == NULL);
    CHECK(tutti_cluster_find_rank(c, 3, &role, &index));
    CHECK_INT(role, TUTTI_ROLE_PS);
    CHECK(!tutti_cluster_find_rank(c, 4, &role, &index));
    tutti_cluster_free(c);
    setenv("TF_CONFIG",
           "{\"cluster\":{\"worker\":[\"b:1\"]},\"task\":{\"type\":\"evaluator\",\"index\":\"0\"}}",
           1);
    c = resolved();
    CHECK_INT(tutti_cluster_rank(c), -1);
    tutti_cluster_free(c);
    setenv("TF_CONFIG",
           "{\"cluster\":{\"worker\":{\"1\":\"b:1\",\"0\":\"a:1\"}},"
           "\"task\":{\"type\":\"worker\",\"index\":1}}",
           1);
    c = resolved();
    CHECK_INT(tutti_cluster_size(c), 2);
    CHECK_STR(tutti_cluster_task(c, TUTTI_ROLE_WORKER, 0), "a:1");
    CHECK_STR(tutti_cluster_task(c, TUTTI_ROLE_WORKER, 1), "b:1");
    CHECK_INT(tutti_cluster_rank(c), 1);
    tutti_cluster_free(c);
}

TUTTI_TEST(cluster_refuses_what_cannot_work)
{
    static const struct {
        const char *config, *part;
        tutti_status status;
    } bad[] = {
        {"{", "expected", TUTTI_INVALID},
        {"[]", "object", TUTTI_INVALID},
        {"{} x", "expected the end", TUTTI_INVALID},
        {"{\"cluster\":{\"boss\":[]}}", "no role 'boss'", TUTTI_INVALID},
        {"{\"cluster\":{\"worker\":[\"a:1\"]}}", "task.type is missing", TUTTI_INVALID},
        {"{\"cluster\":{\"worker\":[\"a:1\",\"b:1\"]},\"task\":{\"type\":\"worker\"}}",
         "task.index is missing; write which of the 2 tasks", TUTTI_INVALID},
        {"{\"cluster\":{\"worker\":[\"a:1\"],\"worker\":[\"b:1\"]},\"task\":{\"type\":"
         "\"worker\",\"index\":0}}",
         "the list of 'worker' stands there twice", TUTTI_INVALID},
        {"{\"cluster\":{\"worker\":{\"0\":\"a:1\",\"2\":\"b:1\"}},\"task\":{\"type\":\"worker\",\"index\":0}}",
         "'worker' has no task 1; number them from 0", TUTTI_INVALID},
        {"{\"cluster\":{\"worker\":{\"0\":\"a:1\",\"0\":\"b:1\"}},\"task\":{\"type\":\"worker\",\"index\":0}}",
         "task 0 of 'worker' stands there twice", TUTTI_INVALID},
        {"{\"cluster\":{\"worker\":{\"x\":\"a:1\"}},\"task\":{\"type\":\"worker\",\"index\":0}}",
         "the number of a task is 'x'", TUTTI_INVALID},
        {"{\"sparseCluster\":{\"worker\":{\"1\":\"a:1\"},\"ps\":[\"b:1\"]},\"task\":{\"type\":"
         "\"worker\",\"index\":1}}",
         "leave enableDynamicWorker out", TUTTI_UNSUPPORTED},
        {"{\"environment\":\"cloud\",\"cluster\":{\"worker\":[\"a:1\"]}}", "task.type is missing",
         TUTTI_INVALID},
        {"{\"cluster\":{\"worker\":{}},\"task\":{\"type\":\"worker\",\"index\":0}}",
         "'worker' has no task 0", TUTTI_INVALID},
        {"{\"cluster\":{\"worker\":[]},\"task\":{\"type\":\"worker\",\"index\":0}}",
         "the list of 'worker' is empty", TUTTI_INVALID},
        {"{\"cluster\":{\"worker\":[\"\",\"a:1\"]},\"task\":{\"type\":\"worker\",\"index\":1}}",
         "an address of 'worker' is empty", TUTTI_INVALID},
        {"{\"cluster\":{\"worker\":\"\"},\"task\":{\"type\":\"worker\",\"index\":0}}",
         "an address of 'worker' is empty", TUTTI_INVALID},
        {"{\"cluster\":{\"worker\":{\"0\":\"\"}},\"task\":{\"type\":\"worker\",\"index\":0}}",
         "an address of 'worker' is empty", TUTTI_INVALID},
        {"{\"cluster\":{\"worker\":[\"a:1\"],\"ps\":[]},\"task\":{\"type\":\"worker\",\"index\":0}}",
         "the list of 'ps' is empty", TUTTI_INVALID},
        {"{\"cluster\":{},\"task\":{\"type\":\"worker\",\"index\":0}}", "name at least one worker",
         TUTTI_INVALID},
        {"{\"cluster\":{\"ps\":[\"a:1\"]},\"task\":{\"type\":\"ps\",\"index\":0}}",
         "nobody who trains", TUTTI_INVALID},
        {"{\"cluster\":{\"worker\":[\"a:1\"]},\"task\":{\"type\":\"ps\",\"index\":0}}",
         "no task of that role", TUTTI_INVALID},
        {"{\"cluster\":{\"worker\":[\"a:1\",\"b:1\"]},\"task\":{\"type\":\"worker\",\"index\":2}}",
         "numbers go from 0 to 1", TUTTI_OUT_OF_RANGE},
        {"{\"cluster\":{\"worker\":[\"a:1\",\"a:1\"]},\"task\":{\"type\":\"worker\",\"index\":0}}",
         "twice", TUTTI_INVALID},
        {"{\"cluster\":{\"worker\":[\"localhost:1\",\"127.0.0.1:1\"]},\"task\":{\"type\":"
         "\"worker\",\"index\":0}}",
         "'localhost:1' and '127.0.0.1:1' (worker 1) are one address", TUTTI_INVALID},
        {"{\"cluster\":{\"worker\":[\"A:1\",\"a:01\"]},\"task\":{\"type\":\"worker\",\"index\":0}}",
         "'A:1' and 'a:01' (worker 1) are one address", TUTTI_INVALID},
        {"{\"cluster\":{\"worker\":[\"a:1\",\"b:x\"]},\"task\":{\"type\":\"worker\",\"index\":0}}",
         "host:port", TUTTI_INVALID},
        {"{\"cluster\":{\"worker\":[\"localhost:1\",\"b:1\"]},\"task\":{\"type\":\"worker\","
         "\"index\":0}}",
         "all machines reach it", TUTTI_INVALID},
        {"{\"cluster\":{\"chief\":[\"a:1\",\"b:1\"]},\"task\":{\"type\":\"chief\",\"index\":0}}",
         "chiefs", TUTTI_INVALID},
    };
    forget();
    for (size_t i = 0; i < TUTTI_COUNT(bad); i++) {
        setenv("TF_CONFIG", bad[i].config, 1);
        refused(bad[i].status, bad[i].part);
        CHECK_CONTAINS(tutti_error_message(), "TF_CONFIG");
    }
    setenv("TF_CONFIG",
           "{\"cluster\":{\"worker\":[\"localhost:1\",\"localhost:2\"]},\"task\":{\"type\":"
           "\"worker\",\"index\":0}}",
           1); /* two ports of one machine are fine */
    tutti_cluster_free(resolved());
}

TUTTI_TEST(cluster_from_slurm)
{
    forget();
    setenv("SLURM_PROCID", "3", 1); /* a batch script without srun */
    tutti_cluster *c = resolved();
    CHECK_STR(tutti_cluster_resolver(c), "single");
    tutti_cluster_free(c);
    setenv("SLURM_STEP_NUM_TASKS", "5", 1);
    setenv("SLURM_LOCALID", "1", 1);
    setenv("SLURM_JOB_ID", "77", 1);
    setenv("SLURM_STEP_ID", "0", 1);
    setenv("SLURM_STEP_NODELIST", "node[001-002],b", 1);
    setenv("SLURM_STEP_TASKS_PER_NODE", "2(x2),1", 1);
    c = resolved();
    CHECK_STR(tutti_cluster_resolver(c), "slurm");
    CHECK_INT(tutti_cluster_rank(c), 3);
    CHECK_INT(tutti_cluster_size(c), 5);
    CHECK_INT(tutti_cluster_local_rank(c), 1);
    CHECK_INT(tutti_cluster_local_size(c), 2);
    CHECK_STR(tutti_cluster_task(c, TUTTI_ROLE_WORKER, 1), "node001");
    CHECK_STR(tutti_cluster_task(c, TUTTI_ROLE_WORKER, 3), "node002");
    CHECK_STR(tutti_cluster_task(c, TUTTI_ROLE_WORKER, 4), "b");
    CHECK(strncmp(tutti_cluster_rendezvous(c), "node001:2", 9) == 0);
    tutti_cluster_free(c);
    setenv("SLURM_STEP_RESV_PORTS", "12000-12003", 1);
    c = resolved();
    CHECK_STR(tutti_cluster_rendezvous(c), "node001:12000");
    tutti_cluster_free(c);
    setenv("SLURM_STEP_NODELIST", "node[001-", 1);
    refused(TUTTI_INVALID, "not closed");
}

static int slurm_local_size(const char *counts)
{
    setenv("SLURM_STEP_TASKS_PER_NODE", counts, 1);
    tutti_cluster *c = resolved();
    int size = tutti_cluster_local_size(c);
    tutti_cluster_free(c);
    return size;
}

TUTTI_TEST(cluster_from_slurm_knows_its_neighbours)
{
    forget();
    unsetenv("SLURM_NODEID");
    setenv("SLURM_PROCID", "3", 1);
    setenv("SLURM_STEP_NUM_TASKS", "4", 1);
    setenv("SLURM_LOCALID", "1", 1);
    setenv("SLURM_STEP_NODELIST", "a,b", 1);
    CHECK_INT(slurm_local_size("2(x2)"), 2);
    setenv("SLURM_DISTRIBUTION", "cyclic", 1);
    CHECK_INT(slurm_local_size("2(x2)"), 2);
    CHECK_INT(slurm_local_size("1,3"), 0); /* on which of them is not said */
    setenv("SLURM_NODEID", "1", 1);
    CHECK_INT(slurm_local_size("1,3"), 3);
    setenv("SLURM_STEP_TASKS_PER_NODE", "3,1", 1);
    refused(TUTTI_OUT_OF_RANGE, "number 1 on its machine, but there are 1");
}

static void refuses_counts(const char *counts, const char *part)
{
    setenv("SLURM_STEP_TASKS_PER_NODE", counts, 1);
    refused(TUTTI_INVALID, part);
}

TUTTI_TEST(cluster_from_slurm_that_contradicts_itself_is_refused)
{
    forget();
    unsetenv("SLURM_NODEID");
    unsetenv("SLURM_LOCALID");
    setenv("SLURM_PROCID", "3", 1);
    setenv("SLURM_STEP_NUM_TASKS", "4", 1);
    setenv("SLURM_STEP_NODELIST", "a,b", 1);
    refuses_counts("a", "SLURM_STEP_TASKS_PER_NODE is 'a'; it must be numbers of tasks by host");
    refuses_counts("2(x2", "it must be");
    refuses_counts("2,", "it must be");
    refuses_counts("0,4", "it must be");
    refuses_counts("+2,2", "it must be");
    refuses_counts("3(x2)", "6 tasks on 2 hosts, but SLURM_STEP_NUM_TASKS is 4");
    refuses_counts("2,1,1", "4 tasks on 3 hosts, but SLURM_STEP_NUM_TASKS is 4 and "
                            "SLURM_STEP_NODELIST has 2 hosts");
    refuses_counts("4", "4 tasks on 1 hosts, but SLURM_STEP_NUM_TASKS is 4 and SLURM_STEP_NODELIST "
                        "has 2 hosts");
    unsetenv("SLURM_STEP_NODELIST");
    setenv("SLURM_JOB_NODELIST", "n[1-5]", 1); /* of which the step has some */
    setenv("SLURM_STEP_TASKS_PER_NODE", "2,2", 1);
    tutti_cluster_free(resolved());
    unsetenv("SLURM_JOB_NODELIST");
    setenv("SLURM_STEP_NODELIST", "a,b", 1);
    unsetenv("SLURM_STEP_TASKS_PER_NODE");
    setenv("SLURM_NODEID", "2", 1);
    refused(TUTTI_INVALID, "SLURM_NODEID is 2, but SLURM_STEP_NODELIST has 2 hosts");
    setenv("SLURM_NODEID", "1", 1);
    setenv("SLURM_STEP_NODELIST", "n[1-+2]", 1);
    refused(TUTTI_INVALID, "has a range that is none");
    setenv("SLURM_STEP_NODELIST", "n[1- 2]", 1);
    refused(TUTTI_INVALID, "has a range that is none");
    setenv("SLURM_STEP_NODELIST", "n[1-2]", 1);
    CHECK_INT(slurm_local_size("2,2"), 0); /* which of them this one is, is not said */
}

TUTTI_TEST(cluster_from_mpi)
{
    forget();
    setenv("OMPI_COMM_WORLD_RANK", "1", 1);
    setenv("OMPI_COMM_WORLD_SIZE", "2", 1);
    setenv("OMPI_COMM_WORLD_LOCAL_RANK", "1", 1);
    setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "2", 1);
    setenv("PMIX_NAMESPACE", "prterun-vm-1@1", 1);
    tutti_cluster *c = resolved();
    CHECK_STR(tutti_cluster_resolver(c), "mpi");
    CHECK_INT(tutti_cluster_rank(c), 1);
    CHECK(strncmp(tutti_cluster_rendezvous(c), "127.0.0.1:2", 11) == 0);
    CHECK_STR(c->job, "PMIX_NAMESPACE=prterun-vm-1@1");
    tutti_cluster_free(c);
    setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "1", 1); /* two machines */
    setenv("OMPI_COMM_WORLD_LOCAL_RANK", "0", 1);
    unsetenv("SLURM_JOB_NODELIST");
    c = resolved();
    CHECK_STR(tutti_cluster_rendezvous(c), ""); /* MPI is asked when a group is opened */
    tutti_cluster_free(c);
    setenv("TUTTI_MEETING", "a:4000", 1);
    c = resolved();
    CHECK_STR(tutti_cluster_rendezvous(c), "a:4000");
    tutti_cluster_free(c);
}

/* The job's name and the meeting of this rank of one machine. */
static void mpich_job(int socket, char ret_job[TUTTI_JOB_BYTES], char ret_meeting[64])
{
    char text[20];
    snprintf(text, sizeof text, "%d", socket);
    setenv("PMI_FD", text, 1);
    tutti_cluster *c = resolved();
    snprintf(ret_job, TUTTI_JOB_BYTES, "%s", c->job);
    snprintf(ret_meeting, 64, "%s", tutti_cluster_rendezvous(c));
    tutti_cluster_free(c);
}

/* In a child of a process that made pairs of sockets, as mpirun's helper makes them for ranks. */
static bool mpich_jobs_are_told_apart(const int pairs[3][2])
{
    char first[TUTTI_JOB_BYTES], second[TUTTI_JOB_BYTES], starter[TUTTI_JOB_BYTES];
    char at[64], too[64], port[300], expected[64];
    snprintf(starter, sizeof starter, "process %d of mpirun", (int)getppid());
    snprintf(port, sizeof port, "mpi %s %u", starter, (unsigned)getuid());
    snprintf(expected, sizeof expected, "127.0.0.1:%d", tutti__derived_port(port));
    mpich_job(pairs[0][1], first, at);
    mpich_job(pairs[1][1], second, too);
    bool named = strcmp(first, starter) == 0 && strcmp(second, starter) == 0;
    bool met = strcmp(at, expected) == 0 && strcmp(too, expected) == 0;
    mpich_job(pairs[2][1], first, too); /* no pair of sockets */
    return named && met && strcmp(first, "") == 0;
}

TUTTI_TEST_ALONE(cluster_from_mpich_is_told_apart_by_who_started_it)
{
    int pairs[3][2], own[2], code;
    char job[TUTTI_JOB_BYTES], at[64];
    forget();
    unsetenv("SLURM_JOB_ID");
    setenv("PMI_RANK", "1", 1);
    setenv("PMI_SIZE", "3", 1);
    setenv("MPI_LOCALNRANKS", "3", 1);
    CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM, 0, pairs[0]), 0);
    CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM, 0, pairs[1]), 0);
    CHECK_INT(pipe(pairs[2]), 0);
    pid_t rank = fork();
    if (rank == 0)
        _exit(mpich_jobs_are_told_apart(pairs) ? 0 : 1);
    CHECK_INT(waitpid(rank, &code, 0), rank);
    CHECK_INT(code, 0);
    CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM, 0, own), 0); /* of this process: says nothing */
    mpich_job(own[0], job, at);
    CHECK_STR(job, "");
    setenv("MPI_LOCALNRANKS", "2", 1); /* several machines have a helper each */
    setenv("TUTTI_MEETING", "a:4000", 1);
    mpich_job(own[0], job, at);
    CHECK_STR(job, "");
    setenv("SLURM_JOB_ID", "17", 1);
    mpich_job(own[0], job, at);
    CHECK_STR(job, "job 17 of Slurm");
}

static void meets_at(const char *host)
{
    tutti_cluster *c = resolved();
    CHECK_STR(tutti_cluster_resolver(c), "mpi");
    CHECK(strncmp(tutti_cluster_rendezvous(c), host, strlen(host)) == 0);
    tutti_cluster_free(c);
}

TUTTI_TEST(cluster_from_mpi_under_slurm_meets_where_the_step_begins)
{
    forget();
    setenv("PMI_RANK", "1", 1);
    setenv("PMI_SIZE", "2", 1);
    setenv("SLURM_PROCID", "1", 1);
    setenv("SLURM_STEP_NUM_TASKS", "2", 1);
    setenv("SLURM_JOB_NODELIST", "a,b,c", 1);
    setenv("SLURM_STEP_NODELIST", "b,c", 1);
    meets_at("b:");
    setenv("PMI_SIZE", "3", 1); /* a step of mpirun's helpers, where mpirun itself is on a */
    meets_at("a:");
}

TUTTI_TEST(cluster_from_torchrun)
{
    forget();
    setenv("RANK", "1", 1);
    setenv("WORLD_SIZE", "3", 1);
    setenv("MASTER_ADDR", "a", 1);
    setenv("MASTER_PORT", "29400", 1);
    tutti_cluster *c = resolved();
    CHECK_STR(tutti_cluster_resolver(c), "torchrun");
    CHECK_STR(tutti_cluster_rendezvous(c), "a:29400");
    CHECK_INT(tutti_cluster_size(c), 3);
    tutti_cluster_free(c);
    setenv("TORCHELASTIC_USE_AGENT_STORE", "True", 1);
    setenv("MASTER_ADDR", "fe80::1", 1);
    c = resolved();
    CHECK_STR(tutti_cluster_rendezvous(c), "[fe80::1]:29401");
    tutti_cluster_free(c);
    setenv("MASTER_ADDR", "[fe80::1%eth0]", 1);
    tutti_cluster_free(resolved());
    setenv("MASTER_ADDR", "fe80::1%eth0", 1);
    tutti_cluster_free(resolved());
    setenv("MASTER_ADDR", "a:29500", 1);
    refused(TUTTI_INVALID, "MASTER_ADDR is 'a:29500'");
    CHECK_CONTAINS(tutti_error_message(), "MASTER_ADDR=a MASTER_PORT=29500");
    setenv("MASTER_ADDR", "[::1]:29500", 1);
    refused(TUTTI_INVALID, "MASTER_ADDR=[::1] MASTER_PORT=29500");
    setenv("MASTER_ADDR", "a", 1);
    setenv("LOCAL_RANK", "2", 1);
    setenv("LOCAL_WORLD_SIZE", "2", 1);
    refused(TUTTI_OUT_OF_RANGE, "number 2 on its machine, but there are 2");
    setenv("LOCAL_RANK", "1", 1);
    tutti_cluster_free(resolved());
    setenv("RANK", "3", 1);
    refused(TUTTI_INVALID, "RANK is '3'");
    unsetenv("MASTER_ADDR");
    refused(TUTTI_INVALID, "MASTER_ADDR is not"); /* instead of training alone, three times */
    setenv("WORLD_SIZE", "1", 1);
    tutti_cluster_free(resolved());
}

TUTTI_TEST(cluster_from_kubernetes)
{
    forget();
    setenv("JOB_COMPLETION_INDEX", "2", 1);
    setenv("TUTTI_SIZE", "3", 1);
    setenv("TUTTI_SERVICE", "train-net", 1);
    setenv("HOSTNAME", "train-2", 1);
    tutti_cluster *c = resolved();
    CHECK_STR(tutti_cluster_resolver(c), "kubernetes");
    CHECK_INT(tutti_cluster_rank(c), 2);
    CHECK_STR(tutti_cluster_rendezvous(c), "train-0.train-net:4711");
    tutti_cluster_free(c);
}

/* The last ranks serve, whoever has started them, and keep their places. */
static void serves(const char *resolver, int rank, const char *place)
{
    tutti_cluster *c = resolved();
    tutti_role role;
    int index;
    CHECK_STR(tutti_cluster_resolver(c), resolver);
    CHECK_INT(tutti_cluster_rank(c), rank);
    CHECK_INT(tutti_cluster_role(c), TUTTI_ROLE_PS);
    CHECK_INT(tutti_cluster_index(c), 0);
    CHECK_INT(tutti_cluster_count(c, TUTTI_ROLE_WORKER), rank);
    CHECK(tutti_cluster_find_rank(c, rank, &role, &index) && role == TUTTI_ROLE_PS);
    CHECK_STR(tutti_cluster_task(c, TUTTI_ROLE_PS, 0), place);
    tutti_cluster_free(c);
}

TUTTI_TEST(cluster_with_servers_from_every_scheduler)
{
    forget();
    setenv("TUTTI_PS", "1", 1);
    setenv("SLURM_PROCID", "4", 1);
    setenv("SLURM_STEP_NUM_TASKS", "5", 1);
    setenv("SLURM_JOB_ID", "77", 1);
    setenv("SLURM_STEP_ID", "0", 1);
    setenv("SLURM_STEP_NODELIST", "node[001-002],b", 1);
    setenv("SLURM_STEP_TASKS_PER_NODE", "2(x2),1", 1);
    serves("slurm", 4, "b");
    setenv("TUTTI_PS", "5", 1);
    refused(TUTTI_INVALID, "5 parameter servers among 5 ranks leave no worker; start more ranks");
    forget();
    setenv("TUTTI_PS", "2", 1);
    setenv("RANK", "1", 1);
    setenv("WORLD_SIZE", "3", 1);
    setenv("MASTER_ADDR", "a", 1);
    serves("torchrun", 1, "");
    forget();
    setenv("TUTTI_PS", "1", 1);
    setenv("OMPI_COMM_WORLD_RANK", "2", 1);
    setenv("OMPI_COMM_WORLD_SIZE", "3", 1);
    setenv("OMPI_COMM_WORLD_LOCAL_RANK", "2", 1);
    setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "3", 1);
    serves("mpi", 2, "");
    forget();
    setenv("TUTTI_PS", "2", 1);
    setenv("JOB_COMPLETION_INDEX", "1", 1);
    setenv("TUTTI_SIZE", "3", 1);
    setenv("TUTTI_SERVICE", "train-net", 1);
    setenv("HOSTNAME", "train-1", 1);
    serves("kubernetes", 1, "train-1.train-net:4711");
    setenv("TUTTI_PS", "many", 1);
    refused(TUTTI_INVALID, "TUTTI_PS is 'many'");
    forget();
}

/* TensorFlow's own words for a job with servers. */
TUTTI_TEST(cluster_with_all_roles_from_tf_config)
{
    static const char spec[] =
        "{\"cluster\": {\"chief\": [\"a:1\"], \"worker\": [\"b:1\", \"c:1\"], "
        "\"ps\": [\"d:1\", \"e:1\"], \"evaluator\": [\"f:1\"]}, "
        "\"task\": {\"type\": \"%s\", \"index\": %d}}";
    static const struct {
        const char *role;
        int index, rank;
    } tasks[] = {
        {"chief", 0, 0}, {"worker", 1, 2}, {"ps", 0, 3}, {"ps", 1, 4}, {"evaluator", 0, -1}};
    char text[400];
    forget();
    for (size_t i = 0; i < TUTTI_COUNT(tasks); i++) {
        snprintf(text, sizeof text, spec, tasks[i].role, tasks[i].index);
        setenv("TF_CONFIG", text, 1);
        tutti_cluster *c = resolved();
        CHECK_STR(tutti_role_text(tutti_cluster_role(c)), tasks[i].role);
        CHECK_INT(tutti_cluster_index(c), tasks[i].index);
        CHECK_INT(tutti_cluster_rank(c), tasks[i].rank);
        CHECK_INT(tutti_cluster_size(c), 5);
        CHECK_INT(tutti_cluster_count(c, TUTTI_ROLE_PS), 2);
        CHECK_STR(tutti_cluster_task(c, TUTTI_ROLE_PS, 1), "e:1");
        CHECK_STR(tutti_cluster_rendezvous(c), "a:1");
        tutti_cluster_free(c);
    }
    snprintf(text, sizeof text, spec, "server", 0);
    setenv("TF_CONFIG", text, 1);
    refused(TUTTI_INVALID,
            "there is no role 'server'; the roles are chief, worker, ps and evaluator");
    snprintf(text, sizeof text, spec, "ps", 2);
    setenv("TF_CONFIG", text, 1);
    refused(TUTTI_OUT_OF_RANGE, "this process is ps 2, but there are 2");
    forget();
}

TUTTI_TEST(cluster_from_flags)
{
    forget();
    setenv("TF_CONFIG", "nonsense that is not asked", 1);
    tutti_cluster *c = NULL;
    CHECK_OK(tutti_cluster_resolve(
        TUTTI_OPTIONS(tutti_cluster_options, .workers = "a:1,b:1", .ps = "c:1", .role = "ps"), &c));
    CHECK_STR(tutti_cluster_resolver(c), "flags");
    CHECK_INT(tutti_cluster_rank(c), 2);
    tutti_cluster_free(c);
    CHECK_STATUS(
        tutti_cluster_resolve(TUTTI_OPTIONS(tutti_cluster_options, .resolver = "telepathy"), &c),
        TUTTI_NOT_FOUND);
    CHECK_CONTAINS(tutti_error_message(), "tf_config");
}

TUTTI_TEST(cluster_from_the_launcher)
{
    forget();
    setenv("TUTTI_RANK", "3", 1);
    setenv("TUTTI_SIZE", "4", 1);
    refused(TUTTI_INVALID, "TUTTI_MEETING");
    setenv("TUTTI_MEETING", "127.0.0.1:5", 1);
    setenv("TUTTI_PS", "1", 1);
    setenv("TUTTI_EPOCH", "2", 1);
    tutti_cluster *c = resolved();
    CHECK_INT(tutti_cluster_role(c), TUTTI_ROLE_PS);
    CHECK_INT(tutti_cluster_index(c), 0);
    CHECK_INT(c->epoch, 2);
    tutti_cluster_free(c);
    setenv("TUTTI_RANK", "4", 1);
    refused(TUTTI_INVALID, "from 0 to 3");
}

TUTTI_TEST(cluster_whose_ranks_cannot_meet_is_refused)
{
    static const char *const wrong[] = {"localhost", ":7001", "a:70000", "a:0", "a:b", "a:"};
    forget();
    setenv("TUTTI_RANK", "1", 1);
    setenv("TUTTI_SIZE", "2", 1);
    for (size_t i = 0; i < TUTTI_COUNT(wrong); i++) {
        setenv("TUTTI_MEETING", wrong[i], 1);
        refused(TUTTI_INVALID, "TUTTI_MEETING is '");
        CHECK_CONTAINS(tutti_error_message(), "host:port");
    }
    forget();
    setenv("TF_CONFIG",
           "{\"cluster\": {\"worker\": [\"a\", \"b\"]}, "
           "\"task\": {\"type\": \"worker\", \"index\": 1}}",
           1);
    refused(TUTTI_INVALID, "the address of rank 0 is 'a'");
    CHECK_CONTAINS(tutti_error_message(), "TF_CONFIG");
    setenv("TF_CONFIG",
           "{\"cluster\": {\"worker\": [\"a:1\", \"b\"]}, "
           "\"task\": {\"type\": \"worker\", \"index\": 1}}",
           1);
    tutti_cluster_free(resolved()); /* others find a port for themselves */
}

static void alone(void)
{
    tutti_cluster *c = resolved();
    CHECK_STR(tutti_cluster_resolver(c), "single");
    CHECK_INT(tutti_cluster_size(c), 1);
    tutti_cluster_free(c);
}

TUTTI_TEST(cluster_of_mpirun_by_half_is_refused)
{
    forget();
    setenv("OMPI_COMM_WORLD_RANK", "0", 1);
    refused(TUTTI_INVALID, "OMPI_COMM_WORLD_RANK=0 is set, but OMPI_COMM_WORLD_SIZE is not");
    unsetenv("OMPI_COMM_WORLD_RANK");
    setenv("OMPI_COMM_WORLD_SIZE", "2", 1);
    refused(TUTTI_INVALID, "OMPI_COMM_WORLD_SIZE=2 is set, but OMPI_COMM_WORLD_RANK is not");
    setenv("OMPI_COMM_WORLD_SIZE", "1", 1);
    alone();
    forget();
    setenv("PMI_RANK", "0", 1);
    alone(); /* some set it for one process */
    setenv("PMI_RANK", "1", 1);
    refused(TUTTI_INVALID, "PMI_RANK=1 is set, but PMI_SIZE is not");
}

TUTTI_TEST(cluster_of_numbers_that_are_none_is_refused)
{
    forget();
    setenv("TUTTI_SIZE", "abc", 1);
    refused(TUTTI_INVALID, "TUTTI_SIZE is 'abc'; it must be a whole number");
    forget();
    setenv("TUTTI_RANK", "abc", 1);
    refused(TUTTI_INVALID, "TUTTI_RANK is 'abc'; it must be a whole number");
    forget();
    setenv("TUTTI_RANK", "0", 1);
    setenv("TUTTI_SIZE", "2", 1);
    setenv("TUTTI_MEETING", "", 1);
    refused(TUTTI_INVALID, "TUTTI_MEETING is not; set it to the host:port");
}

TUTTI_TEST(cluster_with_localhost_in_any_letters_is_refused)
{
    tutti_cluster *cluster = NULL;
    CHECK(tutti__host_loopback("LocalHost") && tutti__host_loopback("Localhost.localdomain"));
    CHECK_STATUS(
        tutti_cluster_resolve(
            TUTTI_OPTIONS(tutti_cluster_options, .workers = "Localhost:4001,node2:4001"), &cluster),
        TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "'Localhost:4001' and 'node2:4001' are in one cluster");
    CHECK_STATUS(
        tutti_cluster_resolve(
            TUTTI_OPTIONS(tutti_cluster_options, .workers = "0.0.0.0:4001,node2:4001"), &cluster),
        TUTTI_INVALID);
}

/* Each process would train by itself. */
TUTTI_TEST(cluster_that_is_described_by_half_is_refused)
{
    forget();
    setenv("JOB_COMPLETION_INDEX", "1", 1);
    alone(); /* an indexed Job of something else */
    setenv("TUTTI_SIZE", "1", 1);
    alone();
    setenv("TUTTI_SIZE", "4", 1);
    refused(TUTTI_INVALID, "TUTTI_SERVICE is not; set it");
    unsetenv("TUTTI_SIZE");
    setenv("TUTTI_SERVICE", "n", 1);
    refused(TUTTI_INVALID, "TUTTI_SIZE is not; set it to the number of pods");
    forget();
    setenv("TUTTI_SIZE", "2", 1);
    setenv("TUTTI_MEETING", "h:1", 1);
    refused(TUTTI_INVALID, "TUTTI_RANK is not; set it");
    unsetenv("TUTTI_SIZE");
    refused(TUTTI_INVALID, "TUTTI_MEETING=h:1 is set, but TUTTI_RANK and TUTTI_SIZE are not");
    setenv("TUTTI_RANK", "0", 1);
    refused(TUTTI_INVALID, "TUTTI_SIZE is not; set it to the number of ranks");
    unsetenv("TUTTI_MEETING");
    refused(TUTTI_INVALID, "TUTTI_RANK=0 is set, but TUTTI_SIZE is not");
    setenv("TUTTI_RANK", "1", 1);
    refused(TUTTI_INVALID, "TUTTI_SIZE is not; set it to the number of ranks");
    forget();
    setenv("TUTTI_SIZE", "1", 1);
    alone();
    forget();
    setenv("WORLD_SIZE", "4", 1);
    alone(); /* anybody's */
    setenv("MASTER_ADDR", "h", 1);
    refused(TUTTI_INVALID, "WORLD_SIZE=4 and MASTER_ADDR are set, but RANK is not");
    setenv("WORLD_SIZE", "1", 1);
    alone();
    unsetenv("WORLD_SIZE");
    alone();
    setenv("RANK", "1", 1);
    refused(TUTTI_INVALID, "RANK and MASTER_ADDR are set, but WORLD_SIZE is not");
    unsetenv("MASTER_ADDR");
    alone();
}

TUTTI_TEST(cluster_by_name_needs_its_variables)
{
    static const struct {
        const char *name, *variable;
    } named[] = {{"torchrun", "RANK"}, {"launcher", "TUTTI_RANK"}};
    forget();
    for (size_t i = 0; i < TUTTI_COUNT(named); i++) {
        tutti_cluster *c = NULL;
        CHECK_STATUS(tutti_cluster_resolve(
                         TUTTI_OPTIONS(tutti_cluster_options, .resolver = named[i].name), &c),
                     TUTTI_NOT_FOUND);
        CHECK_CONTAINS(tutti_error_message(), named[i].variable);
        CHECK_CONTAINS(tutti_error_message(), "is not set; start the program with");
    }
}

/* ---- host lists and tasks ---- */

static tutti_status add_name(void *context, const char *host)
{
    strcat(context, host);
    strcat(context, " ");
    return TUTTI_OK;
}

TUTTI_TEST(host_lists_are_read_as_slurm_writes_them)
{
    static const struct {
        const char *list, *names;
    } good[] = {
        {"a", "a "},
        {"a,b", "a b "},
        {"node[001-003,7],b", "node001 node002 node003 node7 b "},
        {"n[9-11]", "n9 n10 n11 "},
        {"r[1-2]n[1-2]", "r1n1 r1n2 r2n1 r2n2 "},
        {"a[1]-ib,c", "a1-ib c "},
    };
    static const char *const bad[] = {"",   "a[", "a[]",  "a[x]",      "a[3-1]",
                                      "a]", ",",  "a[1-", "a[1-99999]"};
    for (size_t i = 0; i < TUTTI_COUNT(good); i++) {
        char names[200] = "";
        CHECK_OK(tutti__hostlist(good[i].list, add_name, names));
        CHECK_STR(names, good[i].names);
    }
    for (size_t i = 0; i < TUTTI_COUNT(bad); i++) {
        char names[200] = "";
        CHECK_STATUS(tutti__hostlist(bad[i], add_name, names), TUTTI_INVALID);
        CHECK_CONTAINS(tutti_error_message(), "host list");
    }
}

TUTTI_TEST(tasks_are_split_into_host_and_port)
{
    char host[64];
    int port;
    CHECK(tutti__task_split("a.b:80", host, sizeof host, &port));
    CHECK_STR(host, "a.b");
    CHECK_INT(port, 80);
    CHECK(tutti__task_split("[::1]:81", host, sizeof host, &port));
    CHECK_STR(host, "::1");
    CHECK_INT(port, 81);
    CHECK(tutti__task_split("a", host, sizeof host, &port));
    CHECK_INT(port, 0);
    static const char *const bad[] = {"",     ":1",   "a:",         "a:0", "a:65536",
                                      "a:1x", "[::1", "http://a:1", "::1", "2001:db8::1:80"};
    for (size_t i = 0; i < TUTTI_COUNT(bad); i++)
        CHECK(!tutti__task_split(bad[i], host, sizeof host, &port));
}
