/* checkpoint_test.c: two generations of a checkpoint in one file or several, whatever happens while
 * one is written. */
#include "state/checkpoint.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/test.h"
#include "base/world.h"

#define TENSORS 5
/* Kinds of saving, by the limit of a file. */
#define ONE_FILE ((int64_t)0)
#define THREE_FILES ((int64_t)64) /* bytes: two tensors each */

static char folder[64], path[96];

static void begin(void)
{
    snprintf(folder, sizeof folder, "/tmp/tutti-generations-XXXXXX");
    CHECK(mkdtemp(folder) != NULL);
    snprintf(path, sizeof path, "%s/x.safetensors", folder);
}

static void finish(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    CHECK_INT(system(command), 0);
}

/* All values are `value`. */
static tutti_status save(double value, int64_t shard_bytes)
{
    tutti_snapshot_entry entries[TENSORS] = {{0}};
    char names[TENSORS][8];
    tutti_snapshot snapshot = {.count = TENSORS, .entries = entries};
    for (int i = 0; i < TENSORS; i++) {
        snprintf(names[i], sizeof names[i], "t%d", i);
        entries[i].name = names[i];
        CHECK_OK(tutti_tensor_create(TUTTI_F32, 1, (int64_t[]){8}, &entries[i].value));
        for (int j = 0; j < 8; j++)
            tutti_tensor_set(entries[i].value, j, value);
    }
    tutti_status status = tutti__checkpoint_write(path, &snapshot, 0, NULL, shard_bytes);
    for (int i = 0; i < TENSORS; i++)
        tutti_tensor_release(entries[i].value);
    return status;
}

static int warnings;
static void count_warnings(void *context, tutti_log_level level, const char *message)
{
    (void)context, (void)message;
    warnings += level == TUTTI_LOG_WARNING;
}

/* The one value of all tensors. */
static double load(void)
{
    tutti_safetensors *file;
    warnings = 0;
    tutti_log_install(count_warnings, NULL);
    CHECK_OK(tutti__checkpoint_open(path, true, &file));
    tutti_log_install(NULL, NULL);
    CHECK_INT(file->count, TENSORS);
    double value = 0;
    for (size_t i = 0; i < file->count; i++) {
        tutti_tensor *tensor;
        CHECK_OK(tutti__safetensors_tensor(file, &file->items[i], &tensor));
        for (int j = 0; j < 8; j++) {
            double each = tutti_tensor_get(tensor, j);
            value = i == 0 && j == 0 ? each : value;
            CHECK_NEAR(each, value, 0);
        }
        tutti_tensor_release(tensor);
    }
    tutti__safetensors_close(file);
    return value;
}

/* Names in the folder that have this in them; NULL: all. */
static int count_names(const char *part)
{
    const tutti_world *world = tutti__world();
    char **names;
    size_t count;
    int found = 0;
    CHECK_OK(world->list_folder(world->self, folder, &names, &count));
    for (size_t i = 0; i < count; i++)
        found += !part || strstr(names[i], part) != NULL;
    free(names);
    return found;
}

/* ---- a world in which the process is killed before its n-th change of a file ---- */

static const tutti_world *real;
static int steps_left;

static void step(void)
{
    if (steps_left-- == 0)
        raise(SIGKILL);
}
static tutti_status mortal_write_file(void *self, const char *to, const void *data, size_t size)
{
    step();
    return real->write_file(self, to, data, size);
}
static tutti_status mortal_open(void *self, const char *at, tutti_file_mode mode, tutti_file **file,
                                int64_t *size)
{
    if (mode != TUTTI_FILE_READ)
        step();
    return real->open_file(self, at, mode, file, size);
}
static tutti_status mortal_write_at(void *self, tutti_file *file, int64_t offset, const void *data,
                                    size_t size)
{
    step();
    return real->write_at(self, file, offset, data, size);
}
static tutti_status mortal_close(void *self, tutti_file *file, bool keep)
{
    step();
    return real->close_file(self, file, keep);
}
static tutti_status mortal_remove(void *self, const char *at)
{
    step();
    return real->remove_file(self, at);
}
static tutti_status mortal_link(void *self, const char *at, const char *second)
{
    step();
    return real->link_file(self, at, second);
}

/* Saves in a process of its own, which is killed before change `steps`; true when it was. */
static bool save_and_die(double value, int64_t shard_bytes, int steps)
{
    pid_t child = fork();
    int status = -1;
    if (child == 0) {
        real = tutti__world();
        tutti_world mortal = *real;
        mortal.write_file = mortal_write_file;
        mortal.open_file = mortal_open;
        mortal.write_at = mortal_write_at;
        mortal.close_file = mortal_close;
        mortal.remove_file = mortal_remove;
        mortal.link_file = mortal_link;
        tutti__world_replace(&mortal);
        steps_left = steps;
        _exit(save(value, shard_bytes) == TUTTI_OK ? 0 : 1);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status) || status == 0);
    return WIFSIGNALED(status);
}

/* Two savings of kinds `a` and `b`, and a third, of kind `c`, that is cut off at every point. */
static void check_deaths(int64_t a, int64_t b, int64_t c)
{
    bool died = true;
    for (int steps = 0; died; steps++) {
        begin();
        CHECK_OK(save(1, a));
        CHECK_OK(save(2, b));
        died = save_and_die(3, c, steps);
        double value = load();
        CHECK(died ? value == 2 || value == 3 : value == 3);
        CHECK_INT(warnings, 0); /* what is there is whole */
        CHECK_OK(save(4, c));   /* and what the dead left behind goes away */
        CHECK_NEAR(load(), 4, 0);
        CHECK_INT(count_names(".tmp"), 0);
        CHECK_OK(save(5, c));
        CHECK_INT(count_names(NULL), c == ONE_FILE ? 2 : 8);
        CHECK_INT(count_names(".previous"), 1);
        finish();
    }
}

TUTTI_TEST(a_checkpoint_needs_the_name_of_a_file)
{
    char full[64];
    CHECK_STATUS(tutti__checkpoint_path("", full, sizeof full), TUTTI_INVALID);
    CHECK_STATUS(tutti__checkpoint_path(NULL, full, sizeof full), TUTTI_INVALID);
    CHECK_STATUS(tutti__checkpoint_path("models/", full, sizeof full), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "'models/' names a folder");
    CHECK_OK(tutti__checkpoint_path("models/x", full, sizeof full));
    CHECK_STR(full, "models/x.safetensors");
}

TUTTI_TEST(a_checkpoint_survives_a_kill_at_every_point_of_a_saving)
{
    check_deaths(ONE_FILE, ONE_FILE, ONE_FILE);
    check_deaths(THREE_FILES, THREE_FILES, THREE_FILES);
    check_deaths(ONE_FILE, ONE_FILE, THREE_FILES);
    check_deaths(THREE_FILES, THREE_FILES, ONE_FILE);
}

/* ---- damage ---- */

/* Flips a bit of the file, or, with at < 0, cuts it in half. */
static void damage(const char *file, int64_t at)
{
    const tutti_world *world = tutti__world();
    void *bytes;
    size_t size;
    CHECK_OK(world->read_file(world->self, file, 1 << 20, &bytes, &size));
    if (at >= 0)
        ((char *)bytes)[at % (int64_t)size] ^= 16;
    CHECK_OK(world->write_file(world->self, file, bytes, at < 0 ? size / 2 : size));
    free(bytes);
}

/* The path of the n-th file of the present generation with this in its name; false after the last.
 */
static bool find_file(const char *part, int n, char *ret, size_t size)
{
    const tutti_world *world = tutti__world();
    char **names;
    size_t count;
    CHECK_OK(world->list_folder(world->self, folder, &names, &count));
    bool found = false;
    for (size_t i = 0; i < count && !found; i++)
        if (strstr(names[i], part) && !strstr(names[i], ".previous") && n-- == 0) {
            snprintf(ret, size, "%s/%s", folder, names[i]);
            found = true;
        }
    free(names);
    return found;
}

#define PLACES 5
/* Cuts and flips each of `files` files of a second saving. */
static void check_damage(const char *part, int files, int64_t a, int64_t b)
{
    char file[400];
    for (int i = 0; i < PLACES * files; i++) {
        int64_t at = i % PLACES == 0 ? -1 : i % PLACES * 113;
        begin();
        CHECK_OK(save(1, a));
        CHECK_OK(save(2, b));
        CHECK(!find_file(part, files, file, sizeof file));
        CHECK(find_file(part, i / PLACES, file, sizeof file));
        damage(file, at);
        CHECK_NEAR(load(), 1, 0);
        CHECK_INT(warnings, 1);
        finish();
    }
}

TUTTI_TEST(a_damaged_piece_gives_way_to_the_generation_before)
{
    check_damage(".g1.safetensors", 3, THREE_FILES, THREE_FILES);
    check_damage("-of-00003", 3, ONE_FILE, THREE_FILES);
    check_damage("x.safetensors", 1, THREE_FILES, ONE_FILE);
}

/* Some bits of an index can be wrong without harm; none gives anything but a whole generation. */
TUTTI_TEST(a_damaged_index_never_gives_a_mixture)
{
    char index[200];
    int fell_back = 0;
    for (int64_t at = -1; at < 700; at += 37) {
        begin();
        CHECK_OK(save(1, THREE_FILES));
        CHECK_OK(save(2, THREE_FILES));
        snprintf(index, sizeof index, "%s.index.json", path);
        damage(index, at);
        double loaded = load();
        CHECK_NEAR(loaded, warnings > 0 ? 1 : 2, 0);
        fell_back += warnings;
        finish();
    }
    CHECK(fell_back > 8);
}

TUTTI_TEST(a_lost_piece_or_index_gives_way_to_the_generation_before)
{
    static const char *const lost[] = {"x-00002-of-00003.g1.safetensors",
                                       "x.safetensors.index.json"};
    const tutti_world *world = tutti__world();
    for (int i = 0; i < 2; i++) {
        char file[200];
        begin();
        CHECK_OK(save(1, THREE_FILES));
        CHECK_OK(save(2, THREE_FILES));
        snprintf(file, sizeof file, "%s/%s", folder, lost[i]);
        CHECK_OK(world->remove_file(world->self, file));
        CHECK_NEAR(load(), 1, 0);
        CHECK_INT(warnings, 1);
        finish();
    }
}

TUTTI_TEST(a_temporary_file_of_a_living_process_stays)
{
    const tutti_world *world = tutti__world();
    tutti_file *open;
    int64_t size;
    begin();
    CHECK_OK(world->open_file(world->self, path, TUTTI_FILE_REPLACE, &open, &size));
    CHECK_OK(save(1, THREE_FILES));
    CHECK_INT(count_names(".tmp"), 1);
    CHECK_OK(world->close_file(world->self, open, false));
    char stranger[200];
    snprintf(stranger, sizeof stranger, "%s/x.safetensors.notes.tmp", folder);
    CHECK_OK(world->write_file(world->self, stranger, "mine", 4));
    CHECK_OK(save(2, ONE_FILE));
    CHECK_INT(count_names(".tmp"), 1); /* of nobody's making here */
    finish();
}
