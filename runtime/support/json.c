/* A pull parser of JSON. */
#include "runtime/support/json.h"
#include "runtime/support/utf8.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 64 };

bool
json_fail(struct json *j, const char *why)
{
	if (!j->fault)
		j->fault = why;
	return false;
}

static void
skip_json_blanks(struct json *j)
{
	while (j->at < j->size && strchr(" \t\r\n", j->text[j->at])
	       && j->text[j->at])
		j->at++;
}

bool
json_accept(struct json *j, char c)
{
	if (j->fault)
		return false;
	skip_json_blanks(j);
	if (j->at >= j->size || j->text[j->at] != c)
		return false;
	j->at++;
	return true;
}

bool
json_expect(struct json *j, char c)
{
	return json_accept(j, c)
		|| json_fail(j, c == '{' ? "expected '{'"
		             : c == '}' ? "expected ',' or '}'"
		             : c == '[' ? "expected '['"
		             : c == ']' ? "expected ',' or ']'"
		             : c == ',' ? "expected ','" : "expected ':'");
}

bool
json_end(struct json *j)
{
	if (j->fault)
		return false;
	skip_json_blanks(j);
	return j->at == j->size || json_fail(j, "text after the end");
}

static bool
hex4(struct json *j, uint32_t *x)
{
	*x = 0;
	for (int i = 0; i < 4; i++) {
		int c = j->at < j->size ? j->text[j->at++] : 0;

		if (c >= '0' && c <= '9')
			c -= '0';
		else if ((c | 32) >= 'a' && (c | 32) <= 'f')
			c = (c | 32) - 'a' + 10;
		else
			return json_fail(j, "bad \\u escape");
		*x = *x << 4 | (uint32_t)c;
	}
	return true;
}

static void
put_utf8(char **to, uint32_t c)
{
	static const unsigned char head[] = { 0, 0xc0, 0xe0, 0xf0 };
	int more = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;

	*(*to)++ = (char)(head[more] | c >> 6 * more);
	while (more--)
		*(*to)++ = (char)(0x80 | (c >> 6 * more & 63));
}

/* The escape after a backslash, written as UTF-8 at *to: never longer than
 * what was read. */
static bool
escape(struct json *j, char **to)
{
	static const char from[] = "\"\\/bfnrt", into[] = "\"\\/\b\f\n\r\t";
	const char *hit;
	uint32_t c, low;
	char e = j->at < j->size ? j->text[j->at++] : 0;

	hit = e ? strchr(from, e) : NULL;
	if (hit) {
		*(*to)++ = into[hit - from];
		return true;
	}
	if (e != 'u')
		return json_fail(j, "bad escape in a string");
	if (!hex4(j, &c))
		return false;
	if (c >= 0xd800 && c < 0xdc00) {
		if (j->size - j->at < 6 || j->text[j->at] != '\\'
		    || j->text[j->at + 1] != 'u')
			return json_fail(j, "unpaired surrogate in a string");
		j->at += 2;
		if (!hex4(j, &low))
			return false;
		if (low < 0xdc00 || low > 0xdfff)
			return json_fail(j, "unpaired surrogate in a string");
		c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
	} else if (c >= 0xdc00 && c < 0xe000) {
		return json_fail(j, "unpaired surrogate in a string");
	}
	if (!c)
		return json_fail(j, "NUL in a string");
	put_utf8(to, c);
	return true;
}

bool
json_string(struct json *j, char **s)
{
	char *to;

	if (j->fault)
		return false;
	skip_json_blanks(j);
	if (j->at >= j->size || j->text[j->at] != '"')
		return json_fail(j, "expected a string");
	*s = to = j->text + ++j->at;
	while (j->at < j->size) {
		const unsigned char *p = (unsigned char *)j->text + j->at;
		int len;

		if (*p == '"') {
			*to = '\0';
			j->at++;
			return true;
		}
		if (*p < 32)
			return json_fail(j, "control character in a string");
		if (*p == '\\') {
			j->at++;
			if (!escape(j, &to))
				return false;
			continue;
		}
		len = utf8_length(p);
		if (!len)
			return json_fail(j, "a string is not UTF-8");
		memmove(to, p, (size_t)len);
		to += len;
		j->at += (size_t)len;
	}
	return json_fail(j, "a string does not end");
}

bool
json_uint(struct json *j, int64_t *x)
{
	size_t start;

	if (j->fault)
		return false;
	skip_json_blanks(j);
	*x = 0;
	start = j->at;
	while (j->at < j->size && j->text[j->at] >= '0'
	       && j->text[j->at] <= '9') {
		if (__builtin_mul_overflow(*x, (int64_t)10, x)
		    || __builtin_add_overflow(*x, j->text[j->at] - '0', x))
			return json_fail(j, "a number is too large");
		j->at++;
	}
	if (j->at == start)
		return json_fail(j, "expected a non-negative number");
	if (j->at < j->size && strchr(".eE", j->text[j->at])
	    && j->text[j->at])
		return json_fail(j, "expected an integer");
	return true;
}

bool
json_number(struct json *j, double *x)
{
	const char *from;
	char *end;

	if (j->fault)
		return false;
	skip_json_blanks(j);
	from = j->text + j->at;
	if (*from != '-' && (*from < '0' || *from > '9'))
		return json_fail(j, "expected a number");
	*x = strtod(from, &end);
	/* nothing that only strtod takes for a number */
	if (end != from + strspn(from, "+-.0123456789eE") || !isfinite(*x))
		return json_fail(j, "expected a number");
	j->at = (size_t)(end - j->text);
	return true;
}

bool
json_word(struct json *j, const char *w)
{
	size_t n = strlen(w);

	if (j->fault)
		return false;
	skip_json_blanks(j);
	if (j->size - j->at < n || memcmp(j->text + j->at, w, n) != 0)
		return false;
	j->at += n;
	return true;
}

bool
json_object(struct json *j, JsonMember *member, void *data)
{
	char *key;

	if (!json_expect(j, '{'))
		return false;
	if (json_accept(j, '}'))
		return true;
	do {
		if (!json_string(j, &key) || !json_expect(j, ':')
		    || !member(j, key, data))
			return false;
	} while (json_accept(j, ','));
	return json_expect(j, '}');
}

bool
json_list(struct json *j, JsonElement *element, void *data)
{
	if (!json_expect(j, '['))
		return false;
	if (json_accept(j, ']'))
		return true;
	do {
		if (!element(j, data))
			return false;
	} while (json_accept(j, ','));
	return json_expect(j, ']');
}

static bool skip_value(struct json *, void *depth);

static bool
skip_member(struct json *j, const char *key, void *depth)
{
	(void)key;
	return skip_value(j, depth);
}

/* *depth: how many objects and lists the value lies in. */
static bool
skip_value(struct json *j, void *depth)
{
	int inner = *(int *)depth + 1;
	double x;
	char *s;

	if (inner > MAX_DEPTH + 1)
		return json_fail(j, "nested too deeply");
	skip_json_blanks(j);
	switch (j->text[j->at]) {
	case '"':
		return json_string(j, &s);
	case '{':
		return json_object(j, skip_member, &inner);
	case '[':
		return json_list(j, skip_value, &inner);
	case '-': case '0': case '1': case '2': case '3': case '4':
	case '5': case '6': case '7': case '8': case '9':
		return json_number(j, &x);
	default:
		return json_word(j, "true") || json_word(j, "false")
			|| json_word(j, "null")
			|| json_fail(j, "expected a value");
	}
}

bool
json_skip(struct json *j)
{
	return !j->fault && skip_value(j, &(int){ 0 });
}
