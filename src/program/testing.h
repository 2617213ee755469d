/* testing.h: for tests that look at a trace. */
#ifndef TUTTI_PROGRAM_TESTING_H
#define TUTTI_PROGRAM_TESTING_H

/* Fails the test unless the text is one JSON value. */
void tutti__check_json(const char *text);
/* A file's text, for the caller to free; the file is removed. */
char *tutti__take_file(const char *path);

#endif
