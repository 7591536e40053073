/* What the unit tests share: cmocka's includes and the list of groups. */
#ifndef TESTS_UNIT_UNIT_H
#define TESTS_UNIT_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "ir/ir.h"

/* Groups, each in test_NAME.c; they return the number of failures. */
int test_arena(void);
int test_glob(void);
int test_graph(void);
int test_half(void);
int test_infer(void);
int test_run(void);
int test_shape(void);
int test_text(void);
int test_verify(void);

/* Diagnostics into memory.  text is valid after sink_text. */
struct sink {
	FILE *file;
	char *text;
	size_t size;
	Diag *diag;
};

void sink_open(struct sink *);
const char *sink_text(struct sink *);
void sink_close(struct sink *);

/* Parse text; NULL after diagnostics into the sink. */
Graph *parse(struct sink *, const char *text);
/* The graph's text, to be freed. */
char *print(const Graph *);

#endif
