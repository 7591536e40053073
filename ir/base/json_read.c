/* A reader of JSON: the caller says what it expects, member by member. */
#include "ir/base/json_read.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH_MAX = 64 };

static void
blank(struct json *r)
{
	while (r->s < r->end && (*r->s == ' ' || *r->s == '\t'
	                         || *r->s == '\n' || *r->s == '\r'))
		r->s++;
}

bool
json_take(struct json *r, char c)
{
	blank(r);
	if (r->s == r->end || *r->s != c)
		return false;
	r->s++;
	return true;
}

/* Four hexadecimal digits, -1 if there are none. */
static int
hex4(const struct json *r)
{
	int x = 0;

	if (r->end - r->s < 4)
		return -1;
	for (int k = 0; k < 4; k++) {
		char c = r->s[k];
		int d = c >= '0' && c <= '9' ? c - '0'
			: c >= 'a' && c <= 'f' ? c - 'a' + 10
			: c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;

		if (d < 0)
			return -1;
		x = 16 * x + d;
	}
	return x;
}

static char *
put_utf8(char *o, int c)
{
	if (c < 0x80) {
		*o++ = (char)c;
	} else if (c < 0x800) {
		*o++ = (char)(0xc0 | c >> 6);
		*o++ = (char)(0x80 | (c & 63));
	} else {
		*o++ = (char)(0xe0 | c >> 12);
		*o++ = (char)(0x80 | (c >> 6 & 63));
		*o++ = (char)(0x80 | (c & 63));
	}
	return o;
}

const char *
json_string(struct json *r)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	const char *begin;
	char *out, *o;

	if (!json_take(r, '"'))
		return NULL;
	begin = r->s;
	while (r->s < r->end && *r->s != '"')
		r->s += *r->s == '\\' ? 2 : 1;
	if (r->s >= r->end)
		return NULL;
	out = o = arena_alloc(r->arena, (size_t)(r->s - begin) + 1);
	for (r->s = begin; *r->s != '"';) {
		const char *esc;
		int c = *r->s++;

		if (c != '\\') {
			*o++ = (char)c;
			continue;
		}
		c = *r->s++;
		esc = strchr(from, c);
		if (c == 'u') {
			c = hex4(r);
			if (c <= 0)
				return NULL;
			r->s += 4;
			/* halves of pairs are of no use in a name */
			o = put_utf8(o, c >= 0xd800 && c < 0xe000 ? '?' : c);
		} else if (esc && c) {
			*o++ = to[esc - from];
		} else {
			return NULL;
		}
	}
	r->s++;
	return out;
}

bool
json_number(struct json *r, double *x)
{
	char buf[64];
	size_t n;
	char *end;

	blank(r);
	for (n = 0; r->s + n < r->end && n < sizeof buf - 1
	     && strchr("+-.0123456789eE", r->s[n]) && r->s[n]; n++)
		buf[n] = r->s[n];
	buf[n] = 0;
	if (n == 0 || (buf[0] != '-' && (buf[0] < '0' || buf[0] > '9')))
		return false;
	*x = strtod(buf, &end);
	r->s += n;
	return !*end && isfinite(*x);
}

bool
json_whole(struct json *r, int64_t *x)
{
	char *end;

	blank(r);
	if (r->s == r->end || *r->s < '0' || *r->s > '9')
		return false;
	errno = 0;
	*x = strtoll(r->s, &end, 10);
	if (errno || end > r->end)
		return false;
	r->s = end;
	return end == r->end || !strchr(".eE", *end);
}

bool
json_word(struct json *r, const char *w)
{
	size_t n = strlen(w);

	blank(r);
	if ((size_t)(r->end - r->s) < n || memcmp(r->s, w, n) != 0)
		return false;
	r->s += n;
	return true;
}

static bool
skip(struct json *r, int depth)
{
	double x;
	char open;

	blank(r);
	if (r->s == r->end || depth > DEPTH_MAX)
		return false;
	open = *r->s;
	if (open == '"')
		return json_string(r) != NULL;
	if (open != '{' && open != '[')
		return json_word(r, "true") || json_word(r, "false")
			|| json_word(r, "null") || json_number(r, &x);
	r->s++;
	if (json_take(r, open == '{' ? '}' : ']'))
		return true;
	do {
		if (open == '{' && (!json_string(r) || !json_take(r, ':')))
			return false;
		if (!skip(r, depth + 1))
			return false;
	} while (json_take(r, ','));
	return json_take(r, open == '{' ? '}' : ']');
}

bool
json_skip(struct json *r)
{
	return skip(r, 0);
}

bool
json_object(struct json *r, JsonMember *member, void *data)
{
	if (!json_take(r, '{'))
		return false;
	if (json_take(r, '}'))
		return true;
	do {
		const char *key = json_string(r);

		if (!key || !json_take(r, ':') || !member(r, key, data))
			return false;
	} while (json_take(r, ','));
	return json_take(r, '}');
}

bool
json_list(struct json *r, JsonElement *element, void *data)
{
	if (!json_take(r, '['))
		return false;
	if (json_take(r, ']'))
		return true;
	do {
		if (!element(r, data))
			return false;
	} while (json_take(r, ','));
	return json_take(r, ']');
}

bool
json_end(struct json *r)
{
	blank(r);
	return r->s == r->end;
}
