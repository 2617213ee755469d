/* ops.c: `tutti ops`: every operator with its formula and kernels. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "program/kernel.h"
#include "tables/composite.h"

static const char usage[] =
    "usage: tutti ops [TEXT] [--json]\n\n"
    "Lists every operator: name, formula, whether it has a gradient and a split rule, its kernels.\n"
    "TEXT keeps those whose name or category contains it.\n";

static void print_json(const tutti_op *op, int count, const tutti_kernel **kernels)
{
    printf("{\"name\":\"%s\",\"version\":%d,\"category\":\"%s\",\"doc\":\"", op->name, op->version,
           op->category ? op->category : "");
    for (const char *at = op->doc ? op->doc : ""; *at; at++) {
        if (*at == '"' || *at == '\\')
            putchar('\\');
        putchar(*at);
    }
    printf("\",\"gradient\":%s,\"split\":%s,\"reference\":%s,\"kernels\":[",
           op->gradient ? "true" : "false", op->split ? "true" : "false",
           op->reference ? "true" : "false");
    for (int i = 0; i < count; i++)
        printf("%s\"%s\"", i ? "," : "", kernels[i]->name);
    printf("]}\n");
}

static void print_text(const tutti_op *op, int count, const tutti_kernel **kernels)
{
    printf("  %-34s %s\n", op->name, op->doc ? op->doc : "");
    printf("  %-34s %s%s%s", "", op->gradient ? "gradient  " : "", op->split ? "split  " : "",
           op->reference ? "kernels: reference" : "kernels: none of its own");
    for (int i = 0; i < count; i++)
        printf(", %s (%s)", kernels[i]->name, kernels[i]->isa ? kernels[i]->isa : "base");
    printf("\n");
}

static int by_category(const void *a, const void *b)
{
    const tutti_op *x = *(const tutti_op *const *)a, *y = *(const tutti_op *const *)b;
    int order = strcmp(x->category ? x->category : "", y->category ? y->category : "");
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
            printf("%s  %-34s %s\n  %-34s made of %s\n", shown ? "" : "\nmade of others\n",
                   (*each)->name, (*each)->doc, "", (*each)->made_of);
        shown++;
    }
    return shown;
}

static int run(int argc, char **argv)
{
    bool json = tutti__flag(&argc, argv, "--json");
    const char *text = argc > 1 ? argv[1] : NULL, *category = "";
    if (argc > 2 || (text && text[0] == '-'))
        return tutti__complain("ops takes one TEXT at most, and --json"), TUTTI_EXIT_USAGE;
    if (tutti__isa_check_setting() != TUTTI_OK)
        return tutti__complain("%s", tutti_error_message());
    size_t count = tutti_op_list(0, NULL);
    const tutti_op **ops = calloc(count + 1, sizeof *ops);
    if (!ops)
        return tutti__complain("out of memory");
    count = tutti_op_list(count, ops);
    qsort(ops, count, sizeof *ops, by_category);
    size_t shown = 0;
    for (size_t i = 0; i < count; i++) {
        const tutti_kernel *kernels[32];
        const tutti_op *op = ops[i];
        if (text && !strstr(op->name, text) && !(op->category && strstr(op->category, text)))
            continue;
        int kernel_count = tutti__kernel_list(op->name, "cpu", 32, kernels);
        if (!json && strcmp(op->category ? op->category : "", category) != 0)
            printf("%s%s\n", shown ? "\n" : "", category = op->category);
        (json ? print_json : print_text)(op, kernel_count > 32 ? 32 : kernel_count, kernels);
        shown++;
    }
    free(ops);
    size_t composites = list_composites(text, json);
    if (!json)
        printf("\n%zu operators, %zu made of others\n", shown, composites);
    shown += composites;
    return shown ? TUTTI_EXIT_OK : tutti__complain("no operator matches '%s'", text);
}

const tutti_command tutti_command_ops = {
    .name = "ops",
    .summary = "list every operator with its formula and kernels",
    .usage = usage,
    .run = run,
};
