/* compile_test.c: the cache of compiled kernels, without a compiler; and every kernel compiled for
 * two chips where NVRTC is installed. Neither needs a GPU. */
#include "device/cuda/compile/compile.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/container.h"
#include "base/test.h"
#include "base/world.h"
#include "device/cuda/compile/source.h"
#include "device/cuda/driver/load.h"

static const char code[] = "machine code, or what passes for it";

typedef struct cache {
    char folder[64], path[4096];
    tutti_cuda_job job;
} cache;

static cache make_cache(void)
{
    cache c;
    strcpy(c.folder, "/tmp/tutti_cubin_XXXXXX");
    CHECK(mkdtemp(c.folder) != NULL);
    c.job = (tutti_cuda_job){"kernel", "extern \"C\" __global__ void f() {}", "-DX=1", 90, NULL};
    return c;
}

static void remove_cache(const cache *c)
{
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", c->folder);
    CHECK_INT(system(command), 0);
}

static void check_holds(const char *path)
{
    void *data;
    size_t size;
    CHECK_OK(tutti__cuda_cache_read(path, &data, &size));
    CHECK_INT(size, sizeof code);
    CHECK(memcmp(data, code, sizeof code) == 0);
    free(data);
}

TUTTI_TEST(cuda_cache_keeps_code_by_all_that_it_depends_on)
{
    cache c = make_cache();
    char other[4096];
    c.job.cache = c.folder;
    CHECK_OK(tutti__cuda_cache_path(&c.job, 13, 0, c.path));
    CHECK_OK(tutti__cuda_cache_write(c.path, code, sizeof code));
    check_holds(c.path);
    tutti_cuda_job jobs[] = {c.job, c.job, c.job};
    jobs[0].text = "extern \"C\" __global__ void g() {}";
    jobs[1].options = "-DX=2";
    jobs[2].capability = 80;
    for (size_t i = 0; i < TUTTI_COUNT(jobs); i++) {
        CHECK_OK(tutti__cuda_cache_path(&jobs[i], 13, 0, other));
        CHECK(strcmp(other, c.path) != 0);
    }
    CHECK_OK(tutti__cuda_cache_path(&c.job, 12, 9, other));
    CHECK(strcmp(other, c.path) != 0);
    remove_cache(&c);
}

/* Every byte changed, every length cut, and something behind it. */
TUTTI_TEST(cuda_cache_refuses_damaged_entries)
{
    const tutti_world *world = tutti__world();
    cache c = make_cache();
    void *whole, *data;
    size_t size, got;
    c.job.cache = c.folder;
    CHECK_OK(tutti__cuda_cache_path(&c.job, 13, 0, c.path));
    CHECK_STATUS(tutti__cuda_cache_read(c.path, &data, &got), TUTTI_NOT_FOUND);
    CHECK_OK(tutti__cuda_cache_write(c.path, code, sizeof code));
    CHECK_OK(world->read_file(world->self, c.path, 1 << 20, &whole, &size));
    char *bad = malloc(size + 1);
    for (size_t i = 0; i < 2 * size + 1; i++) {
        size_t length = i < size ? size : i < 2 * size ? i - size : size + 1;
        memcpy(bad, whole, size);
        bad[size] = 'x';
        if (i < size)
            bad[i] = (char)(bad[i] ^ 4);
        FILE *file = fopen(c.path, "w");
        CHECK(file && fwrite(bad, 1, length, file) == length && fclose(file) == 0);
        CHECK_STATUS(tutti__cuda_cache_read(c.path, &data, &got), TUTTI_CORRUPT);
    }
    CHECK_OK(tutti__cuda_cache_write(c.path, code, sizeof code));
    check_holds(c.path);
    free(bad);
    free(whole);
    remove_cache(&c);
}

typedef struct writer {
    const char *path;
    char fill;
} writer;

enum { BIG = 100000 };

static void *write_often(void *context)
{
    const writer *w = context;
    char *text = malloc(BIG);
    memset(text, w->fill, BIG);
    for (int i = 0; i < 20; i++)
        CHECK_OK(tutti__cuda_cache_write(w->path, text, BIG));
    free(text);
    return NULL;
}

/* Readers see one writer's entry or another's, whole. */
TUTTI_TEST_ALONE(cuda_cache_has_writers_side_by_side)
{
    cache c = make_cache();
    pthread_t threads[3];
    writer writers[3];
    c.job.cache = c.folder;
    CHECK_OK(tutti__cuda_cache_path(&c.job, 13, 0, c.path));
    CHECK_OK(tutti__cuda_cache_write(c.path, code, sizeof code));
    for (int i = 0; i < 3; i++) {
        writers[i] = (writer){c.path, (char)('a' + i)};
        CHECK_INT(pthread_create(&threads[i], NULL, write_often, &writers[i]), 0);
    }
    for (int i = 0; i < 50; i++) {
        void *data;
        size_t size;
        CHECK_OK(tutti__cuda_cache_read(c.path, &data, &size));
        CHECK(size == sizeof code || size == BIG);
        CHECK(size == sizeof code || ((char *)data)[0] == ((char *)data)[BIG - 1]);
        free(data);
    }
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    remove_cache(&c);
}

static void need_compiler(void)
{
    const tutti_nvrtc *nvrtc;
    if (tutti__cuda_nvrtc(&nvrtc) != TUTTI_OK)
        SKIP("kernels are not compiled here: %s", tutti_error_message());
}

/* A damaged entry is compiled again and replaced, one that is whole is taken. */
TUTTI_TEST(cuda_compile_uses_and_repairs_the_cache)
{
    need_compiler();
    cache c = make_cache();
    void *first, *cubin;
    size_t size, again;
    bool cached;
    int major, minor;
    const tutti_nvrtc *nvrtc;
    CHECK_OK(tutti__cuda_nvrtc(&nvrtc));
    CHECK_INT(nvrtc->nvrtcVersion(&major, &minor), 0);
    c.job.cache = c.folder;
    CHECK_OK(tutti__cuda_compile(&c.job, &first, &size, &cached));
    CHECK(!cached);
    for (int turn = 0; turn < 2; turn++) {
        CHECK_OK(tutti__cuda_compile(&c.job, &cubin, &again, &cached));
        CHECK_INT(cached, turn == 0);
        CHECK_INT(again, size);
        CHECK(memcmp(first, cubin, size) == 0);
        free(cubin);
        CHECK_OK(tutti__cuda_cache_path(&c.job, major, minor, c.path));
        FILE *file = fopen(c.path, "r+");
        CHECK(file && fputs("damaged", file) > 0 && fclose(file) == 0);
    }
    free(first);
    /* A folder that cannot be written keeps nothing, and is no error. */
    c.job.cache = "/proc/nowhere";
    CHECK_OK(tutti__cuda_compile(&c.job, &cubin, &again, &cached));
    free(cubin);
    remove_cache(&c);
}

TUTTI_TEST(cuda_compile_passes_on_the_compilers_words)
{
    need_compiler();
    void *cubin;
    size_t size;
    const tutti_cuda_job job = {"wrong", "__global__ void f() { nothing_like_it(); }", "", 80,
                                NULL};
    CHECK_STATUS(tutti__cuda_compile(&job, &cubin, &size, NULL), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "'wrong'");
    CHECK_CONTAINS(tutti_error_message(), "wrong.cu(1)");
    CHECK_CONTAINS(tutti_error_message(), "nothing_like_it");
}

/* Every eighth source from `first` on: on a busy machine a chip takes longer than a test may. */
static void compile_eighth(int capability, int first)
{
    const tutti_cuda_source *const *sources = tutti__cuda_sources();
    need_compiler();
    for (int i = 0; sources[i]; i++)
        for (const char *const *options = sources[i]->variants; *options; options++) {
            const tutti_cuda_job job = {sources[i]->name, sources[i]->text->text, *options,
                                        capability, NULL};
            void *cubin;
            size_t size;
            if (i % 8 != first)
                break;
            CHECK_OK(tutti__cuda_compile(&job, &cubin, &size, NULL));
            free(cubin);
        }
}

TUTTI_TEST(cuda_kernels_compile_for_sm_80_1_of_8)
{
    compile_eighth(80, 0);
}

TUTTI_TEST(cuda_kernels_compile_for_sm_80_2_of_8)
{
    compile_eighth(80, 1);
}

TUTTI_TEST(cuda_kernels_compile_for_sm_80_3_of_8)
{
    compile_eighth(80, 2);
}

TUTTI_TEST(cuda_kernels_compile_for_sm_80_4_of_8)
{
    compile_eighth(80, 3);
}

TUTTI_TEST(cuda_kernels_compile_for_sm_80_5_of_8)
{
    compile_eighth(80, 4);
}

TUTTI_TEST(cuda_kernels_compile_for_sm_80_6_of_8)
{
    compile_eighth(80, 5);
}

TUTTI_TEST(cuda_kernels_compile_for_sm_80_7_of_8)
{
    compile_eighth(80, 6);
}

TUTTI_TEST(cuda_kernels_compile_for_sm_80_8_of_8)
{
    compile_eighth(80, 7);
}

TUTTI_TEST(cuda_kernels_compile_for_sm_90a_1_of_8)
{
    compile_eighth(90, 0);
}

TUTTI_TEST(cuda_kernels_compile_for_sm_90a_2_of_8)
{
    compile_eighth(90, 1);
}

TUTTI_TEST(cuda_kernels_compile_for_sm_90a_3_of_8)
{
    compile_eighth(90, 2);
}

TUTTI_TEST(cuda_kernels_compile_for_sm_90a_4_of_8)
{
    compile_eighth(90, 3);
}

TUTTI_TEST(cuda_kernels_compile_for_sm_90a_5_of_8)
{
    compile_eighth(90, 4);
}

TUTTI_TEST(cuda_kernels_compile_for_sm_90a_6_of_8)
{
    compile_eighth(90, 5);
}

TUTTI_TEST(cuda_kernels_compile_for_sm_90a_7_of_8)
{
    compile_eighth(90, 6);
}

TUTTI_TEST(cuda_kernels_compile_for_sm_90a_8_of_8)
{
    compile_eighth(90, 7);
}
