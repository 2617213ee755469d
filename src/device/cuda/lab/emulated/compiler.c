/* compiler.c: an NVRTC whose code runs on this machine's CPU: kernels as C++ (emulated.hpp),
 * compiled by g++. Found as libnvrtc.so.13 beside driver.c. What it gives as code is a shared
 * object behind its size. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "device/cuda/driver/api.h"

#define EMULATED __attribute__((visibility("default")))

enum { WRONG = 6 };

struct tutti_nvrtc_program_s {
    char *text, *headers[4], *names[4];
    int header_count;
    char *code; /* its size, and it */
    uint64_t size;
    char log[2048];
};

/* The name of the kernel whose definition begins at `at`. */
static const char *name_of(const char *at, int *ret_size)
{
    const char *open = strchr(at, '('), *name;
    if (strncmp(open - 17, "__launch_bounds__", 17) == 0)
        open = strchr(strchr(open, ')'), '(');
    for (name = open; name[-1] == '_' || (name[-1] >= '0' && name[-1] <= '9') ||
                      (name[-1] >= 'a' && name[-1] <= 'z');
         name--)
        ;
    *ret_size = (int)(open - name);
    return name;
}

static void write_entry(FILE *file, const char *name, int size)
{
    fprintf(file,
            "\nstatic void call_%.*s(void **p) { emulated::call(&%.*s, p); }\n"
            "extern \"C\" void launch_%.*s(unsigned x, unsigned y, unsigned z, unsigned t, "
            "void **p) { emulated::run(call_%.*s, x, y, z, t, p); }\n"
            "extern \"C\" int sizes_%.*s(unsigned *ret) { return emulated::sizes(&%.*s, ret); }\n",
            size, name, size, name, size, name, size, name, size, name, size, name);
}

/* PTX by how it begins, and what does the same: %0, %1: its operands. */
static const struct {
    const char *ptx, *plain;
} instructions[] = {
    {"cvt.f32.f16 ", "%0 = emulated_from_half(%1)"},
    {"cvt.rn.bf16.f32 ", "%0 = emulated_to_bf16(%1)"},
    {"cvt.rn.f16.f32 ", "%0 = emulated_to_half(%1)"},
    {"ex2.approx.ftz.f32 ", "%0 = exp2f(%1)"},
    {"cp.async.cg.shared.global ", "memcpy(to, from, 16)"},
    {"cp.async.", "(void)0"}, /* a copy is done at once */
    {"mov.u64 %0, %%globaltimer", "%0 = emulated_nanoseconds()"},
};

/* The end of what begins with a parenthesis at `at`; strings hold none. */
static const char *end_of(const char *at)
{
    int depth = 0;
    do
        depth += (*at == '(') - (*at == ')');
    while (*at++ && depth > 0);
    return at;
}

/* Operand `number` of an assembler statement: in the parentheses behind its constraint. */
static void write_operand(FILE *file, const char *statement, const char *end, int number)
{
    for (const char *at = strchr(statement + 1, '('); at && at < end; at = strchr(at, '(')) {
        const char *behind = end_of(at);
        if (at[-1] == '"' && number-- == 0) {
            fprintf(file, "(%.*s)", (int)(behind - at - 2), at + 1);
            return;
        }
        at = behind;
    }
}

/* An assembler statement whose parenthesis is at `at`, by what does the same; where it ends, or
 * NULL: nothing is known to. */
static const char *write_assembler(FILE *file, const char *at)
{
    const char *template = strchr(at, '"') + 1, *end = end_of(at);
    enum { COUNT = sizeof instructions / sizeof *instructions };
    for (size_t i = 0; i < COUNT; i++) {
        if (strncmp(template, instructions[i].ptx, strlen(instructions[i].ptx)) != 0)
            continue;
        for (const char *c = instructions[i].plain; *c; c++)
            if (*c == '%')
                write_operand(file, at, end, *++c - '0');
            else
                fputc(*c, file);
        return end;
    }
    return NULL;
}

/* "extern __shared__ float name[]", whose size comes with the launch: as much as a block may have.
 */
static const char *write_shared(FILE *file, const char *at)
{
    const char *type = at + strlen("extern __shared__ "), *open = strchr(at, '['), *name = open;
    if (strncmp(type, "__align__(", 10) == 0)
        type = strchr(type, ')') + 2;
    while (name[-1] != ' ')
        name--;
    fprintf(file, "alignas(16) static %.*s[232448 / sizeof(%.*s)]", (int)(open - type), type,
            (int)(name - 1 - type), type);
    return strchr(open, ']') + 1;
}

/* Text with PTX replaced, and behind each kernel NAME launch_NAME. */
static void write_text(FILE *file, const char *text)
{
    static const char *const words[] = {"asm(", "asm volatile("};
    const char *name = NULL;
    int size = 0;
    while (*text) {
        const char *behind = NULL;
        for (int i = 0; i < 2 && !behind; i++)
            if (strncmp(text, words[i], strlen(words[i])) == 0)
                behind = write_assembler(file, text + strlen(words[i]) - 1);
        if (strncmp(text, "extern __shared__", 17) == 0)
            behind = write_shared(file, text);
        if (behind) {
            text = behind;
            continue;
        }
        if (strncmp(text, "extern \"C\" __global__", 21) == 0)
            name = name_of(text, &size);
        fputc(*text++, file);
        if (name && text[-1] == '}' && text[-2] == '\n') {
            write_entry(file, name, size);
            name = NULL;
        }
    }
}

static int write_file(const char *folder, const char *name, const char *before, const char *text)
{
    char path[600];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    if (!file)
        return -1;
    fputs(before, file);
    write_text(file, text);
    return fclose(file);
}

static void read_code(tutti_nvrtc_program p, const char *folder)
{
    char path[600];
    struct stat about;
    snprintf(path, sizeof path, "%s/kernel.so", folder);
    FILE *file = fopen(path, "rb");
    if (file && fstat(fileno(file), &about) == 0 && about.st_size > 0) {
        uint64_t size = (uint64_t)about.st_size;
        p->size = size + sizeof size;
        p->code = malloc(p->size);
        memcpy(p->code, &size, sizeof size);
        if (fread(p->code + sizeof size, 1, size, file) != size)
            p->size = 0;
    }
    if (file)
        fclose(file);
}

static void read_log(tutti_nvrtc_program p, const char *folder)
{
    char path[600];
    snprintf(path, sizeof path, "%s/log", folder);
    FILE *file = fopen(path, "r");
    size_t size = file ? fread(p->log, 1, sizeof p->log - 1, file) : 0;
    p->log[size] = 0;
    if (file)
        fclose(file);
}

static void remove_folder(const char *folder)
{
    char command[700];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    if (system(command) != 0)
        fprintf(stderr, "emulated: %s stays\n", folder);
}

EMULATED tutti_nvrtc_result nvrtcCompileProgram(tutti_nvrtc_program p, int count,
                                                const char *const *options);
EMULATED tutti_nvrtc_result nvrtcCompileProgram(tutti_nvrtc_program p, int count,
                                                const char *const *options)
{
    char folder[] = "/tmp/tutti_kernel_XXXXXX", command[4096];
    if (!mkdtemp(folder))
        return WRONG;
    for (int i = 0; i < p->header_count; i++)
        write_file(folder, p->names[i], "", p->headers[i]);
    write_file(folder, "kernel.cc", "#include \"emulated.hpp\"\n", p->text);
    int at = snprintf(command, sizeof command,
                      "cd %s && g++ -std=c++17 -O1 -ffp-contract=off -fno-strict-aliasing -w -fPIC "
                      "-shared -I. -I'%s'",
                      folder, EMULATED_FOLDER);
    for (int i = 0; i < count; i++)
        if (strncmp(options[i], "-D", 2) == 0)
            at += snprintf(command + at, sizeof command - (size_t)at, " '%s'", options[i]);
    snprintf(command + at, sizeof command - (size_t)at, " -o kernel.so kernel.cc > log 2>&1");
    if (system(command) == 0)
        read_code(p, folder);
    else
        read_log(p, folder);
    remove_folder(folder);
    return p->size > 0 ? 0 : WRONG;
}

EMULATED tutti_nvrtc_result nvrtcCreateProgram(tutti_nvrtc_program *ret, const char *text,
                                               const char *name, int count,
                                               const char *const *headers,
                                               const char *const *names);
EMULATED tutti_nvrtc_result nvrtcCreateProgram(tutti_nvrtc_program *ret, const char *text,
                                               const char *name, int count,
                                               const char *const *headers, const char *const *names)
{
    tutti_nvrtc_program p = calloc(1, sizeof *p);
    (void)name;
    p->text = strdup(text);
    p->header_count = count < 4 ? count : 4;
    for (int i = 0; i < p->header_count; i++) {
        p->headers[i] = strdup(headers[i]);
        p->names[i] = strdup(names[i]);
    }
    *ret = p;
    return 0;
}

EMULATED tutti_nvrtc_result nvrtcDestroyProgram(tutti_nvrtc_program *program);
EMULATED tutti_nvrtc_result nvrtcDestroyProgram(tutti_nvrtc_program *program)
{
    tutti_nvrtc_program p = *program;
    for (int i = 0; i < p->header_count; i++) {
        free(p->headers[i]);
        free(p->names[i]);
    }
    free(p->text);
    free(p->code);
    free(p);
    return 0;
}

EMULATED tutti_nvrtc_result nvrtcGetCUBINSize(tutti_nvrtc_program p, size_t *ret);
EMULATED tutti_nvrtc_result nvrtcGetCUBINSize(tutti_nvrtc_program p, size_t *ret)
{
    *ret = p->size;
    return 0;
}

EMULATED tutti_nvrtc_result nvrtcGetCUBIN(tutti_nvrtc_program p, char *ret);
EMULATED tutti_nvrtc_result nvrtcGetCUBIN(tutti_nvrtc_program p, char *ret)
{
    memcpy(ret, p->code, p->size);
    return 0;
}

EMULATED tutti_nvrtc_result nvrtcGetProgramLogSize(tutti_nvrtc_program p, size_t *ret);
EMULATED tutti_nvrtc_result nvrtcGetProgramLogSize(tutti_nvrtc_program p, size_t *ret)
{
    *ret = strlen(p->log) + 1;
    return 0;
}

EMULATED tutti_nvrtc_result nvrtcGetProgramLog(tutti_nvrtc_program p, char *ret);
EMULATED tutti_nvrtc_result nvrtcGetProgramLog(tutti_nvrtc_program p, char *ret)
{
    memcpy(ret, p->log, strlen(p->log) + 1);
    return 0;
}

EMULATED const char *nvrtcGetErrorString(tutti_nvrtc_result result);
EMULATED const char *nvrtcGetErrorString(tutti_nvrtc_result result)
{
    return result == 0 ? "success" : "g++ refuses it";
}

EMULATED tutti_nvrtc_result nvrtcVersion(int *ret_major, int *ret_minor);
EMULATED tutti_nvrtc_result nvrtcVersion(int *ret_major, int *ret_minor)
{
    *ret_major = 0; /* no code of NVIDIA's: nothing of it is found in a cache */
    *ret_minor = 1;
    return 0;
}
