/* Text that grows, with indentation. */
#ifndef CODEGEN_OUT_H
#define CODEGEN_OUT_H

#include <stdarg.h>

#include "ir/base/arena.h"

struct out {
	Arena *arena;
	char *s;                        /* NUL-terminated */
	size_t n, cap;
	int indent;
};

/* Append as is. */
void out_put(struct out *, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void out_vput(struct out *, const char *fmt, va_list);
/* Append one line, indented by the braces of the lines before; a line that
 * begins with # stands at the margin. */
void out_line(struct out *, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void out_bytes(struct out *, const char *s, size_t n);
/* A C string literal: whatever s holds, it stays one. */
void out_literal(struct out *, const char *s);
/* Text inside a comment: printable ASCII that cannot end it. */
void out_comment(struct out *, const char *s);

#endif
