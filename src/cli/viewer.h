/* viewer.h: a kind of file that `tutti show` knows. One file each in show/, ending in one
 * descriptor.
 * tables: tutti_viewer */
#ifndef TUTTI_CLI_VIEWER_H
#define TUTTI_CLI_VIEWER_H

#include "tutti/tutti.h"

/* What is seen of a file before it is opened in earnest. */
typedef struct tutti_glance {
    const char *path;
    int64_t size;
    uint8_t head[64];
    size_t head_size;
} tutti_glance;

typedef struct tutti_viewer {
    const char *kind;                                            /* "safetensors" */
    int (*recognise)(const tutti_glance *glance);                /* 0: no; the highest wins */
    tutti_status (*show)(const tutti_glance *glance, bool json); /* to standard output */
} tutti_viewer;

/* What is in a file or folder; the exit code. */
int tutti__show_path(const char *path, bool json);
/* A name from a file, filled up to `width` columns of bytes; and a text of several lines. Neither
 * tells the terminal anything. */
void tutti__print_name(const char *name, int width);
void tutti__print_text(const char *text);
/* "text" as JSON writes it, to standard output. */
void tutti__print_quoted(const char *text);
/* The same of a number: JSON has no word but null for one that is not finite. */
void tutti__print_real(double value);
bool tutti__ends_with(const char *text, const char *ending);
/* One line of a list of tensors. */
void tutti__show_tensor(const char *name, const tutti_type *type, int64_t bytes, bool json);

#endif
