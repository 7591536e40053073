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
	Diag *notes;                    /* takes its notes; NULL: out */
	const char *reason;             /* the first error; NULL: none */
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

void
diag_pass_notes(Diag *d, Diag *to)
{
	d->notes = to;
}

const char *
diag_reason(const Diag *d)
{
	return d->reason ? d->reason : "";
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

/* "node 'NAME' (Op): message" */
static void
compose(char text[LINE_MAX_BYTES], const char *node, const char *op,
        const char *fmt, va_list ap)
{
	static const char more[] = " ...";
	int n = snprintf(text, LINE_MAX_BYTES / 2, "%s%s%s%s%s%s%s",
	                 node ? "node '" : "", node ? node : "",
	                 node ? "'" : "", node && op ? " " : "",
	                 op ? "(" : "", op ? op : "", op ? ")" : "");

	if (n >= LINE_MAX_BYTES / 2)
		n = LINE_MAX_BYTES / 2 - 1;
	if (node || op)
		n += snprintf(text + n, LINE_MAX_BYTES - (size_t)n, ": ");
	n += vsnprintf(text + n, LINE_MAX_BYTES - (size_t)n, fmt, ap);
	if (n >= LINE_MAX_BYTES)
		memcpy(text + LINE_MAX_BYTES - sizeof more, more, sizeof more);
}

/* The text may hold names from a file: line breaks in it are escaped like all
 * else, so that no name can forge a line. */
static void
print_diag(const Diag *d, const char *what, const char *text)
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
	print_escaped(d->out, text, false);
	putc('\n', d->out);
}

#define COMPOSE(text, node, op, fmt) do { \
	va_list ap; \
	va_start(ap, fmt); \
	compose(text, node, op, fmt, ap); \
	va_end(ap); \
} while (0)

static bool
report_error(Diag *d, const char *what, const char *text)
{
	if (!d->reason)
		d->reason = arena_printf(d->arena, "%s", text);
	if (d->errors++ < SHOWN_MAX)
		print_diag(d, what, text);
	return false;
}

static bool
report_refusal(Diag *d, const char *text)
{
	if (!d->because)
		return report_error(d, "", text);
	if (!d->quiet)
		print_diag(d, "", text);
	return false;
}

bool
diag_error(Diag *d, const char *fmt, ...)
{
	char text[LINE_MAX_BYTES];

	COMPOSE(text, NULL, NULL, fmt);
	return report_refusal(d, text);
}

bool
diag_at(Diag *d, const char *node, const char *op, const char *fmt, ...)
{
	char text[LINE_MAX_BYTES];

	COMPOSE(text, node, op, fmt);
	return report_refusal(d, text);
}

bool
diag_internal(Diag *d, const char *fmt, ...)
{
	char text[LINE_MAX_BYTES];

	COMPOSE(text, NULL, NULL, fmt);
	return report_error(d, "internal: ", text);
}

bool
diag_warn(Diag *d, const char *fmt, ...)
{
	char text[LINE_MAX_BYTES];

	COMPOSE(text, NULL, NULL, fmt);
	print_diag(d, "warning: ", text);
	return false;
}

bool
diag_note(Diag *d, const char *fmt, ...)
{
	char text[LINE_MAX_BYTES];

	if (d->quiet)
		return false;
	COMPOSE(text, NULL, NULL, fmt);
	if (d->notes)
		return diag_note(d->notes, "%s", text);
	print_diag(d, "note: ", text);
	return false;
}

bool
diag_more(Diag *d, const char *fmt, ...)
{
	char text[LINE_MAX_BYTES];

	if (d->errors > SHOWN_MAX || !d->out)
		return false;
	COMPOSE(text, NULL, NULL, fmt);
	fputs("  ", d->out);
	print_escaped(d->out, text, false);
	putc('\n', d->out);
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
