/* ops.c: `tutti ops`: every operator with its formula and kernels. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "cli/command.h"
#include "program/kernel.h"
#include "tables/composite.h"

static const char usage[] =
    "usage: tutti ops [TEXT] [--json]\n\n"
    "Lists every operator: name, formula, whether it has a gradient and a split rule, its kernels.\n"
    "TEXT keeps those whose name or category contains it.\n";

typedef struct kernels {
    int count;
    const tutti_kernel **of; /* best first */
} kernels;

/* Whether the kernel's name stands further up already, for a better instruction set. */
static bool is_repeated(const kernels *all, int index)
{
    for (int i = 0; i < index; i++)
        if (strcmp(all->of[i]->name, all->of[index]->name) == 0)
            return true;
    return false;
}

/* The instruction sets that the kernel's name is there for, each between the marks. */
static void print_sets(const kernels *all, int index, const char *mark, const char *between)
{
    const char *before = "";
    for (int i = index; i < all->count; i++)
        if (strcmp(all->of[i]->name, all->of[index]->name) == 0) {
            printf("%s%s%s%s", before, mark, all->of[i]->isa, mark);
            before = between;
        }
}

static void print_json(const tutti_op *op, const kernels *all)
{
    printf("{\"name\":\"%s\",\"version\":%d,\"category\":\"%s\",\"doc\":\"", op->name, op->version,
           op->category);
    for (const char *at = op->doc; *at; at++) {
        if (*at == '"' || *at == '\\')
            putchar('\\');
        putchar(*at);
    }
    printf("\",\"gradient\":%s,\"split\":%s,\"reference\":%s,\"kernels\":{",
           op->gradient ? "true" : "false", op->split ? "true" : "false",
           op->reference ? "true" : "false");
    for (int i = 0; i < all->count; i++)
        if (!is_repeated(all, i)) {
            printf("%s\"%s\":[", i ? "," : "", all->of[i]->name);
            print_sets(all, i, "\"", ",");
            printf("]");
        }
    printf("}}\n");
}

static void print_text(const tutti_op *op, const kernels *all)
{
    printf("  %s\n", op->doc);
    printf("      %s%s%s", op->gradient ? "gradient  " : "", op->split ? "split  " : "",
           op->reference ? "kernels: reference" : "kernels: none of its own");
    for (int i = 0; i < all->count; i++)
        if (!is_repeated(all, i)) {
            printf(", %s (", all->of[i]->name);
            print_sets(all, i, "", " ");
            printf(")");
        }
    printf("\n");
}

/* False when there is no memory. */
static bool list_operator(const tutti_op *op, bool json)
{
    kernels all = {.count = tutti__kernel_list(op->name, "cpu", 0, NULL)};
    all.of = calloc((size_t)all.count + 1, sizeof *all.of);
    if (!all.of)
        return false;
    tutti__kernel_list(op->name, "cpu", all.count, all.of);
    (json ? print_json : print_text)(op, &all);
    free(all.of);
    return true;
}

static int by_category(const void *a, const void *b)
{
    const tutti_op *x = *(const tutti_op *const *)a, *y = *(const tutti_op *const *)b;
    int order = strcmp(x->category, y->category);
    return order ? order : strcmp(x->name, y->name);
}

/* What is made of other operators. */
static size_t list_composites(const char *text, bool json)
{
    size_t shown = 0;
    for (const tutti_composite *const *each = tutti__composite_table; *each; each++) {
        if (text && !strstr((*each)->name, text) && !strstr((*each)->category, text))
            continue;
        if (json)
            printf("{\"name\":\"%s\",\"category\":\"%s\",\"doc\":\"%s\",\"made_of\":\"%s\"}\n",
                   (*each)->name, (*each)->category, (*each)->doc, (*each)->made_of);
        else
            printf("%s  %s\n      made of %s\n", shown ? "" : "\nmade of others\n", (*each)->doc,
                   (*each)->made_of);
        shown++;
    }
    return shown;
}

static const char *nearest_op(const char *text)
{
    tutti_nearest nearest = {.word = text};
    size_t count = tutti_op_list(0, NULL);
    const tutti_op **ops = calloc(count + 1, sizeof *ops);
    count = ops ? tutti_op_list(count, ops) : 0;
    for (size_t i = 0; i < count; i++)
        tutti__nearest_try(&nearest, ops[i]->name);
    free(ops);
    for (const tutti_composite *const *each = tutti__composite_table; *each; each++)
        tutti__nearest_try(&nearest, (*each)->name);
    return nearest.found;
}

static int ops_run(int argc, char **argv)
{
    bool json = tutti__flag(&argc, argv, "--json");
    const char *text = argc > 1 ? argv[1] : NULL, *category = "";
    if (!tutti__knows_flags(usage, argc, argv))
        return TUTTI_EXIT_USAGE;
    if (argc > 2)
        return tutti__complain("ops takes one TEXT at most, and --json"), TUTTI_EXIT_USAGE;
    if (tutti__isa_check_setting() != TUTTI_OK)
        return tutti__complain("%s", tutti_error_message());
    size_t count = tutti_op_list(0, NULL), shown = 0;
    const tutti_op **ops = calloc(count + 1, sizeof *ops);
    bool memory = ops != NULL;
    if (memory)
        qsort(ops, tutti_op_list(count, ops), sizeof *ops, by_category);
    for (size_t i = 0; memory && i < count; i++) {
        const tutti_op *op = ops[i];
        if (text && !strstr(op->name, text) && !strstr(op->category, text))
            continue;
        if (!json && strcmp(op->category, category) != 0)
            printf("%s%s\n", shown ? "\n" : "", category = op->category);
        memory = list_operator(op, json);
        shown++;
    }
    free(ops);
    if (!memory)
        return tutti__complain("out of memory");
    size_t composites = list_composites(text, json);
    if (shown + composites == 0)
        return tutti__complain("no operator matches '%s'%s", text, tutti__meant(nearest_op(text)));
    if (!json)
        printf("\n%zu operator%s, %zu made of others\n", shown, shown == 1 ? "" : "s", composites);
    return TUTTI_EXIT_OK;
}

const tutti_command tutti_command_ops = {
    .name = "ops",
    .summary = "list every operator with its formula and kernels",
    .usage = usage,
    .run = ops_run,
};
