/* Append C text to a growing buffer. */
#include "codegen/out.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

void
out_bytes(struct out *o, const char *s, size_t n)
{
	o->s = arena_grow(o->arena, o->s, o->n, &o->cap, o->n + n + 1, 1);
	memcpy(o->s + o->n, s, n);
	o->n += n;
	o->s[o->n] = '\0';
}

void
out_vput(struct out *o, const char *fmt, va_list ap)
{
	va_list again;
	int n;

	va_copy(again, ap);
	n = vsnprintf(NULL, 0, fmt, ap);
	if (n > 0) {
		o->s = arena_grow(o->arena, o->s, o->n, &o->cap,
		                  o->n + (size_t)n + 1, 1);
		vsnprintf(o->s + o->n, (size_t)n + 1, fmt, again);
		o->n += (size_t)n;
	}
	va_end(again);
}

void
out_put(struct out *o, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	out_vput(o, fmt, ap);
	va_end(ap);
}

void
out_line(struct out *o, const char *fmt, ...)
{
	va_list ap;

	if (fmt[0] == '}')
		o->indent--;
	for (int i = 0; i < o->indent && fmt[0] != '#'; i++)
		out_bytes(o, "\t", 1);
	va_start(ap, fmt);
	out_vput(o, fmt, ap);
	va_end(ap);
	if (o->n > 0 && o->s[o->n - 1] == '{')
		o->indent++;
	out_bytes(o, "\n", 1);
}

/* Octal escapes have a fixed length, unlike hexadecimal ones; '?' is escaped
 * because of trigraphs. */
void
out_literal(struct out *o, const char *s)
{
	out_bytes(o, "\"", 1);
	for (; *s; s++) {
		unsigned char c = (unsigned char)*s;

		if (c < ' ' || c > '~' || c == '"' || c == '\\' || c == '?')
			out_put(o, "\\%03o", c);
		else
			out_bytes(o, s, 1);
	}
	out_bytes(o, "\"", 1);
}

void
out_comment(struct out *o, const char *s)
{
	for (char last = 0; *s; last = *s++) {
		bool ends = (last == '*' && *s == '/') ||
		            (last == '/' && *s == '*');
		bool odd = *s < ' ' || *s > '~' || *s == '\\' || *s == '?';

		if (ends)
			out_bytes(o, " ", 1);
		out_bytes(o, odd ? "." : s, 1);
	}
}
