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
/* Add the texts (codegen/rules/texts.h) that this text includes by name, and
 * their units. */
void sources_include(struct sources *, const char *text);
/* Whether the file is compiled. */
bool sources_is_unit(const struct source_file *);
/* Write all files to a folder, which is created if needed; each file appears by
 * rename. */
bool sources_write(const struct sources *, const char *dir, Diag *);

#endif
