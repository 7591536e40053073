#include "runtime/data/csv_text.h"

#include <stdio.h>
#include <string.h>

enum { END = -1 };

/* The next character, which is not taken. */
static int
peek_char(struct csv_text *c)
{
	uint64_t size = c->read + c->n;
	size_t got = 0;

	if (c->at < c->n)
		return (unsigned char)c->buf[c->at];
	if (c->failed)
		return END;
	c->failed = file_some(c->fd, c->path, c->buf, sizeof(c->buf), size,
	                      &got, c->e);
	c->read = size;
	c->n = got;
	c->at = 0;
	return c->n ? (unsigned char)c->buf[0] : END;
}

static int
next_char(struct csv_text *c)
{
	int x = peek_char(c);

	c->at += x != END;
	return x;
}

void
csv_rewind(struct csv_text *c)
{
	c->read = c->at = c->n = 0;
	c->line = 0;
	/* a byte order mark */
	if (peek_char(c) == 0xef && c->n >= 3
	    && !memcmp(c->buf, "\xef\xbb\xbf", 3))
		c->at = 3;
}

ckr_status
csv_begin(struct csv_text *c, int fd, const char *path, struct err *e)
{
	*c = (struct csv_text){ .fd = fd, .path = path, .e = e,
	                        .separator = ',' };
	csv_rewind(c);
	for (int x = next_char(c); x != END && x != '\n'; x = next_char(c)) {
		if (!strchr("\t;,", x) || !x)
			continue;
		c->separator = (char)x;
		break;
	}
	csv_rewind(c);
	return c->failed;
}

bool
csv_line(struct csv_text *c)
{
	int x;

	for (c->line++; (x = peek_char(c)) != END; c->at++) {
		if (x == '\n')
			c->line++;
		else if (x != '\r' && x != ' ')
			return true;
	}
	return false;
}

static bool
fail_line(struct csv_text *c, const char *how)
{
	if (!c->failed)
		c->failed = err_set(c->e, CKR_EFORMAT, "%s:%llu: %s", c->path,
		                    (unsigned long long)c->line, how);
	return false;
}

static void
trim_field(char *s, size_t n)
{
	while (n && (s[n - 1] == ' ' || s[n - 1] == '\r'))
		n--;
	s[n] = '\0';
}

/* Up to the closing quote. */
static bool
read_quoted(struct csv_text *c, size_t *n)
{
	int x;

	next_char(c);
	while ((x = next_char(c)) != '"') {
		if (x == END || x == '\n' || !x)
			return fail_line(c,
			                 "a quoted field does not end in its "
			                 "line");
		if (*n == CSV_FIELD_MAX)
			return fail_line(c,
			                 "a field has more than 255 "
			                 "characters");
		c->field[(*n)++] = (char)x;
	}
	return true;
}

bool
csv_field(struct csv_text *c, bool *last)
{
	size_t n = 0;
	bool quoted;
	int x;

	while (peek_char(c) == ' ')
		next_char(c);
	quoted = peek_char(c) == '"';
	if (quoted && !read_quoted(c, &n))
		return false;
	while ((x = next_char(c)) != END && x != '\n' && x != c->separator) {
		if (quoted && x != ' ' && x != '\r')
			return fail_line(c,
			                 "text follows the closing quote of a "
			                 "field");
		if (!x)
			return fail_line(c, "found a NUL byte; the file is not "
			                 "text");
		if (n == CSV_FIELD_MAX)
			return fail_line(c,
			                 "a field has more than 255 "
			                 "characters");
		if (!quoted)
			c->field[n++] = (char)x;
	}
	c->field[n] = '\0';
	if (!quoted)
		trim_field(c->field, n);
	*last = x != c->separator;
	return !c->failed;
}
