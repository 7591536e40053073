/* The files of a compilation: units, headers, data. */
#ifndef CODEGEN_SOURCES_H
#define CODEGEN_SOURCES_H

#include "ir/base/arena.h"
#include "ir/base/diag.h"

struct source_file {
	const char *name;
	const void *data;               /* borrowed */
	size_t n;
};

struct sources {
	Arena *arena;
	struct source_file *v;
	size_t n, cap;
};

void sources_add(struct sources *, const char *name, const void *data,
                 size_t n);
/* The texts (codegen/rules/texts.h) that this one includes by name, and the
 * units behind them. */
void sources_include(struct sources *, const char *text);
/* Whether it is compiled. */
bool sources_is_unit(const struct source_file *);
/* Write all to a folder that is there. */
bool sources_write(const struct sources *, const char *dir, Diag *);
/* The same to one of the user's, each by rename; it is made if need be. */
bool sources_keep(const struct sources *, const char *dir, Diag *);

#endif
