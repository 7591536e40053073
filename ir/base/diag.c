#include "ir/base/diag.h"
#include "ir/base/arena.h"
#include "runtime/support/utf8.h"

#include <string.h>

enum { SHOWN_MAX = 20, LINE_MAX_BYTES = 4096 };

struct Diag {
	Arena *arena;                   /* holds this */
	const char *prog, *file;
	const char *because;            /* errors are notes; NULL: they are
	                                 * not */
	FILE *out;
	int errors;
	bool quiet;
};

Diag *
diag_new(const char *prog, FILE *out)
{
	Arena *arena = arena_new();
	Diag *d = arena_alloc(arena, sizeof *d);

	d->arena = arena;
	d->prog = prog;
	d->out = out;
	return d;
}

void
diag_free(Diag *d)
{
	if (d)
		arena_free(d->arena);
}

void
diag_file(Diag *d, const char *file)
{
	d->file = file;
}

void
diag_soften(Diag *d, const char *because)
{
	d->because = because;
}

bool
diag_is_soft(const Diag *d)
{
	return d->because != NULL;
}

void
diag_quiet(Diag *d)
{
	d->quiet = true;
}

int
diag_errors(const Diag *d)
{
	return d->errors;
}

/* C1 controls, bidirectional overrides and line separators can rewrite what a
 * terminal shows, so they are escaped like control characters. */
static bool
is_deceptive(const unsigned char *s, int n)
{
	return (n == 2 && s[0] == 0xc2 && s[1] < 0xa0)
	    || (n == 3 && s[0] == 0xe2 && s[1] == 0x80
	        && ((s[2] >= 0x8e && s[2] <= 0x8f)
	            || (s[2] >= 0xa8 && s[2] <= 0xae)))
	    || (n == 3 && s[0] == 0xe2 && s[1] == 0x81
	        && s[2] >= 0xa6 && s[2] <= 0xa9);
}

static void
print_escaped(FILE *out, const char *text, bool quotes)
{
	const unsigned char *s = (const unsigned char *)text;

	while (*s) {
		int n = utf8_length(s);

		if (n == 0 || *s < 0x20 || *s == 0x7f || is_deceptive(s, n)) {
			for (int i = 0; i < (n ? n : 1); i++)
				fprintf(out, "\\x%02x", s[i]);
		} else {
			if (quotes && (*s == '"' || *s == '\\'))
				putc('\\', out);
			fwrite(s, 1, (size_t)n, out);
		}
		s += n ? n : 1;
	}
}

void
diag_escape(FILE *out, const char *s)
{
	print_escaped(out, s, true);
}

/* The message may hold names from a file: line breaks in it are escaped like
 * all else, so that no name can forge a line. */
static void
print_message(Diag *d, const char *fmt, va_list ap)
{
	char text[LINE_MAX_BYTES];
	int n = vsnprintf(text, sizeof text, fmt, ap);

	if (n < 0)
		return;
	print_escaped(d->out, text, false);
	if ((size_t)n >= sizeof text)
		fputs(" ...", d->out);
	putc('\n', d->out);
}

static void
print_diag(Diag *d, const char *what, const char *node, const char *op,
           const char *fmt, va_list ap)
{
	if (!d->out)
		return;
	fprintf(d->out, "%s: ", d->prog);
	if (d->file) {
		print_escaped(d->out, d->file, false);
		fputs(": ", d->out);
	}
	fputs(what, d->out);
	if (d->because && !*what)
		fprintf(d->out, "note: %s: ", d->because);
	if (node) {
		fputs("node '", d->out);
		print_escaped(d->out, node, false);
		putc('\'', d->out);
	}
	if (op) {
		fputs(node ? " (" : "(", d->out);
		print_escaped(d->out, op, false);
		putc(')', d->out);
	}
	if (node || op)
		fputs(": ", d->out);
	print_message(d, fmt, ap);
}

#define REPORT(d, what, node, op, fmt) do { \
	va_list ap; \
	va_start(ap, fmt); \
	print_diag(d, what, node, op, fmt, ap); \
	va_end(ap); \
} while (0)

/* Whether an error is to be shown. */
static bool
should_print(Diag *d)
{
	return d->because ? !d->quiet : d->errors++ < SHOWN_MAX;
}

bool
diag_error(Diag *d, const char *fmt, ...)
{
	if (should_print(d))
		REPORT(d, "", NULL, NULL, fmt);
	return false;
}

bool
diag_at(Diag *d, const char *node, const char *op, const char *fmt, ...)
{
	if (should_print(d))
		REPORT(d, "", node, op, fmt);
	return false;
}

bool
diag_warn(Diag *d, const char *fmt, ...)
{
	REPORT(d, "warning: ", NULL, NULL, fmt);
	return false;
}

bool
diag_note(Diag *d, const char *fmt, ...)
{
	if (!d->quiet)
		REPORT(d, "note: ", NULL, NULL, fmt);
	return false;
}

bool
diag_internal(Diag *d, const char *fmt, ...)
{
	if (d->errors++ < SHOWN_MAX)
		REPORT(d, "internal: ", NULL, NULL, fmt);
	return false;
}

bool
diag_more(Diag *d, const char *fmt, ...)
{
	va_list ap;

	if (d->errors > SHOWN_MAX || !d->out)
		return false;
	fputs("  ", d->out);
	va_start(ap, fmt);
	print_message(d, fmt, ap);
	va_end(ap);
	return false;
}

void
diag_flush(Diag *d)
{
	if (!d->out)
		return;
	if (d->errors > SHOWN_MAX)
		fprintf(d->out, "%s: and %d more\n", d->prog,
		        d->errors - SHOWN_MAX);
	fflush(d->out);
}
