/* The textual form of a graph: tokens, and faults with their line. */
#include "ir/text/parser.h"
#include "ir/text/text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void
tok_locate(struct parser *p, int line)
{
	diag_file(p->d, arena_printf(p->tmp, "%s:%d", p->path, line));
}

bool
tok_fault_at(struct parser *p, int line, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	tok_locate(p, line);
	p->faults++;
	return diag_error(p->d, "%s", text);
}

static bool
is_word(char c)
{
	return c && strchr(TEXT_WORD, c);
}

int
tok_hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* One character of a string, p->at behind its backslash; 0: bad. */
static char
escaped(struct parser *p)
{
	char c;

	if (p->at == p->end || *p->at == '\n')
		return 0;
	c = *p->at++;
	if (c == 'x' && p->end - p->at >= 2) {
		int high = tok_hex_digit(p->at[0]);
		int low = tok_hex_digit(p->at[1]);

		p->at += 2;
		return high < 0 || low < 0 ? 0 : (char)(high << 4 | low);
	}
	if (c == 'n')
		return '\n';
	if (c == 't')
		return '\t';
	return c == '"' || c == '\\' ? c : 0;
}

/* The string that starts at p->at, behind its quote; it ends on its line. */
static enum token
read_string(struct parser *p, enum token tok)
{
	size_t n = 0;
	const char *close = p->at;

	while (close < p->end && *close != '"' && *close != '\n')
		close += *close == '\\' && p->end - close > 1 ? 2 : 1;
	p->text = arena_alloc(p->tmp, (size_t)(close - p->at) + 1);
	while (p->at < p->end && *p->at != '"') {
		char c = *p->at;

		if (c == '\n')
			return T_BAD;
		p->at++;
		if (c == '\\')
			c = escaped(p);
		if (!c)
			return T_BAD;
		p->text[n++] = c;
	}
	if (p->at == p->end)
		return T_BAD;
	p->at++;
	return tok;
}

static enum token
read_word(struct parser *p, enum token tok)
{
	const char *start = p->at;
	size_t n;

	if (tok != T_WORD && p->at < p->end && *p->at == '"') {
		p->at++;
		return read_string(p, tok);
	}
	while (p->at < p->end && is_word(*p->at))
		p->at++;
	n = (size_t)(p->at - start);
	p->text = arena_alloc(p->tmp, n + 1);
	memcpy(p->text, start, n);
	return n ? tok : T_BAD;
}

void
tok_next(struct parser *p)
{
	/* the line of a line's end is the line that it ends */
	if (p->tok == T_LINE)
		p->line++;
	while (p->at < p->end && strchr(" \t\r", *p->at) && *p->at)
		p->at++;
	if (p->at < p->end && *p->at == '#')
		while (p->at < p->end && *p->at != '\n')
			p->at++;
	p->text = NULL;
	p->sign = 0;
	if (p->at == p->end) {
		p->tok = T_END;
		return;
	}
	char c = *p->at;

	if (is_word(c)) {
		p->tok = read_word(p, T_WORD);
		return;
	}
	p->at++;
	if (c == '\n') {
		p->tok = T_LINE;
	} else if (c == '"') {
		p->tok = read_string(p, T_STRING);
	} else if (c == '%' || c == '@') {
		p->tok = read_word(p, c == '%' ? T_VAL : T_AT);
	} else {
		p->sign = c;
		p->tok = c && strchr("{}[](),:;=?*", c) ? T_SIGN : T_BAD;
	}
}

bool
tok_is(const struct parser *p, char c)
{
	return p->tok == T_SIGN && p->sign == c;
}

bool
tok_is_word(const struct parser *p, const char *word)
{
	return p->tok == T_WORD && strcmp(p->text, word) == 0;
}

bool
tok_accept(struct parser *p, char c)
{
	if (!tok_is(p, c))
		return false;
	tok_next(p);
	return true;
}

bool
tok_word(struct parser *p, const char *word)
{
	if (!tok_is_word(p, word))
		return false;
	tok_next(p);
	return true;
}

bool
tok_expected(struct parser *p, const char *what)
{
	switch (p->tok) {
	case T_END:
		return tok_fault(p, "expected %s, found end of file", what);
	case T_LINE:
		return tok_fault(p, "expected %s, found end of line", what);
	case T_SIGN:
		return tok_fault(p, "expected %s, found '%c'", what, p->sign);
	case T_BAD:
		if (p->sign)
			return tok_fault(p, "expected %s, found byte 0x%02x",
			                 what, (unsigned char)p->sign);
		return tok_fault(p, "expected %s, found an invalid name or "
		                 "string", what);
	default:
		return tok_fault(p, "expected %s, found '%s'", what, p->text);
	}
}

bool
tok_expect(struct parser *p, char c)
{
	char what[4] = { '\'', c, '\'', 0 };

	return tok_accept(p, c) || tok_expected(p, what);
}

bool
tok_text(struct parser *p, enum token tok, const char *what, char **text)
{
	*text = p->text;
	if (p->tok != tok)
		return tok_expected(p, what);
	tok_next(p);
	return true;
}

void
tok_skip_lines(struct parser *p)
{
	while (p->tok == T_LINE)
		tok_next(p);
}

bool
tok_number(const char *s, int64_t *x)
{
	char *rest;

	errno = 0;
	*x = strtoll(s, &rest, 10);
	return *s && !*rest && !errno && *s != '+';
}

bool
tok_int(struct parser *p, int64_t low, const char *what, int64_t *x)
{
	if (p->tok != T_WORD || !tok_number(p->text, x))
		return tok_expected(p, what);
	if (*x < low)
		return tok_fault(p, "%s: %lld is too small", what,
		                 (long long)*x);
	tok_next(p);
	return true;
}

/* [1,2,3] */
bool
tok_list(struct parser *p, int64_t low, IntList *l)
{
	l->n = 0;
	if (!tok_expect(p, '['))
		return false;
	while (!tok_is(p, ']')) {
		if (l->n == MAX_RANK)
			return tok_fault(p, "expected at most %d numbers",
				MAX_RANK);
		if ((l->n && !tok_expect(p, ','))
		    || !tok_int(p, low, "a number", &l->v[l->n]))
			return false;
		l->n++;
	}
	return tok_expect(p, ']');
}
