/* JSON: pull parser and escaping. */
#include "runtime/file/json.h"

#include <string.h>

enum { MAX_DEPTH = 32 };

static bool
fail(struct json *j, const char *why)
{
	if (!j->fault)
		j->fault = why;
	return false;
}

static void
blanks(struct json *j)
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
	blanks(j);
	if (j->at >= j->size || j->text[j->at] != c)
		return false;
	j->at++;
	return true;
}

bool
json_expect(struct json *j, char c)
{
	if (json_accept(j, c))
		return true;
	switch (c) {
	case '{':
		return fail(j, "expected '{'");
	case '}':
		return fail(j, "expected ',' or '}'");
	case '[':
		return fail(j, "expected '['");
	case ']':
		return fail(j, "expected ',' or ']'");
	case ',':
		return fail(j, "expected ','");
	default:
		return fail(j, "expected ':'");
	}
}

bool
json_end(struct json *j)
{
	if (j->fault)
		return false;
	blanks(j);
	return j->at == j->size || fail(j, "text after the end");
}

/* Length of the UTF-8 sequence at s (n bytes left); 0: malformed. */
static int
utf8_len(const unsigned char *s, size_t n)
{
	static const uint32_t least[5] = { 0, 0, 0x80, 0x800, 0x10000 };
	int len = s[0] < 0x80 ? 1 : s[0] >> 5 == 6 ? 2 : s[0] >> 4 == 14 ? 3
	          : s[0] >> 3 == 30 ? 4 : 0;
	uint32_t c;

	if (len < 2)
		return len;
	if ((size_t)len > n)
		return 0;
	c = s[0] & (0x7f >> len);
	for (int i = 1; i < len; i++) {
		if (s[i] >> 6 != 2)
			return 0;
		c = c << 6 | (s[i] & 63);
	}
	if (c < least[len] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
		return 0;
	return len;
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
			return fail(j, "bad \\u escape");
		*x = *x << 4 | (uint32_t)c;
	}
	return true;
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
		return fail(j, "bad escape in a string");
	if (!hex4(j, &c))
		return false;
	if (c >= 0xd800 && c < 0xdc00) {
		if (j->size - j->at < 6 || j->text[j->at] != '\\'
		    || j->text[j->at + 1] != 'u')
			return fail(j, "half a surrogate pair");
		j->at += 2;
		if (!hex4(j, &low))
			return false;
		if (low < 0xdc00 || low > 0xdfff)
			return fail(j, "half a surrogate pair");
		c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
	} else if (c >= 0xdc00 && c < 0xe000) {
		return fail(j, "half a surrogate pair");
	}
	if (!c)
		return fail(j, "NUL in a string");
	if (c < 0x80) {
		*(*to)++ = (char)c;
	} else if (c < 0x800) {
		*(*to)++ = (char)(0xc0 | c >> 6);
		*(*to)++ = (char)(0x80 | (c & 63));
	} else if (c < 0x10000) {
		*(*to)++ = (char)(0xe0 | c >> 12);
		*(*to)++ = (char)(0x80 | (c >> 6 & 63));
		*(*to)++ = (char)(0x80 | (c & 63));
	} else {
		*(*to)++ = (char)(0xf0 | c >> 18);
		*(*to)++ = (char)(0x80 | (c >> 12 & 63));
		*(*to)++ = (char)(0x80 | (c >> 6 & 63));
		*(*to)++ = (char)(0x80 | (c & 63));
	}
	return true;
}

bool
json_string(struct json *j, char **s)
{
	char *to;

	if (j->fault)
		return false;
	blanks(j);
	if (j->at >= j->size || j->text[j->at] != '"')
		return fail(j, "expected a string");
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
			return fail(j, "control character in a string");
		if (*p == '\\') {
			j->at++;
			if (!escape(j, &to))
				return false;
			continue;
		}
		len = utf8_len(p, j->size - j->at);
		if (!len)
			return fail(j, "a string is not UTF-8");
		memmove(to, p, (size_t)len);
		to += len;
		j->at += (size_t)len;
	}
	return fail(j, "a string does not end");
}

bool
json_uint(struct json *j, int64_t *x)
{
	size_t start;

	if (j->fault)
		return false;
	blanks(j);
	*x = 0;
	start = j->at;
	while (j->at < j->size && j->text[j->at] >= '0'
	       && j->text[j->at] <= '9') {
		if (__builtin_mul_overflow(*x, (int64_t)10, x)
		    || __builtin_add_overflow(*x, j->text[j->at] - '0', x))
			return fail(j, "a number is too large");
		j->at++;
	}
	if (j->at == start)
		return fail(j, "expected a number that is not negative");
	if (j->at < j->size && strchr(".eE", j->text[j->at])
	    && j->text[j->at])
		return fail(j, "expected an integer");
	return true;
}

/* A number, true, false or null. */
static bool
skip_word(struct json *j)
{
	size_t start = j->at;

	while (j->at < j->size) {
		char c = j->text[j->at];

		if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z')
		      || c == 'E' || c == '+' || c == '-' || c == '.'))
			break;
		j->at++;
	}
	return j->at > start || fail(j, "expected a value");
}

static bool
skip(struct json *j, int depth)
{
	char *s, close;

	if (depth > MAX_DEPTH)
		return fail(j, "nested too deeply");
	blanks(j);
	if (j->at < j->size && j->text[j->at] == '"')
		return json_string(j, &s);
	if (json_accept(j, '{'))
		close = '}';
	else if (json_accept(j, '['))
		close = ']';
	else
		return skip_word(j);
	if (json_accept(j, close))
		return true;
	do {
		if (close == '}'
		    && (!json_string(j, &s) || !json_expect(j, ':')))
			return false;
		if (!skip(j, depth + 1))
			return false;
	} while (json_accept(j, ','));
	return json_expect(j, close);
}

bool
json_skip(struct json *j)
{
	return !j->fault && skip(j, 0);
}

void
json_put(FILE *f, const char *s)
{
	size_t left = strlen(s);

	putc('"', f);
	while (left) {
		const unsigned char *c = (const unsigned char *)s;
		int len = utf8_len(c, left);

		if (!len)
			fputs("\xef\xbf\xbd", f);      /* U+FFFD */
		else if (*c == '"' || *c == '\\')
			fprintf(f, "\\%c", *c);
		else if (*c < 32 || *c == 127)
			fprintf(f, "\\u%04x", *c);
		else
			fwrite(s, 1, (size_t)len, f);
		s += len ? len : 1;
		left -= (size_t)(len ? len : 1);
	}
	putc('"', f);
}
