/* Shell-like patterns on names: * any characters (also / and none), ? one,
 * [abc] [a-z] [!x] one of a set, \ takes the next character literally.  An
 * unclosed [ stands for itself. */
#include "runtime/support/glob.h"

#include <stddef.h>

/* Match c against the set behind '['; *end is set behind ']', or to NULL if
 * there is none. */
static bool
match_set(const char *s, char c, const char **end)
{
	bool negate = *s == '!' || *s == '^', hit = false;
	const char *first = s += negate;

	for (; *s && (*s != ']' || s == first); s++) {
		unsigned char low = (unsigned char)*s, high = low;

		if (s[1] == '-' && s[2] && s[2] != ']') {
			high = (unsigned char)s[2];
			s += 2;
		}
		hit |= (unsigned char)c >= low && (unsigned char)c <= high;
	}
	*end = *s ? s + 1 : NULL;
	return hit != negate;
}

/* Whether one character matches the head of the pattern; *rest is behind it.
 */
static bool
match_one(const char *pattern, char c, const char **rest)
{
	*rest = pattern + 1;
	if (*pattern == '?')
		return true;
	if (*pattern == '[') {
		const char *end;
		bool hit = match_set(pattern + 1, c, &end);

		if (end) {
			*rest = end;
			return hit;
		}
	}
	if (*pattern == '\\' && pattern[1]) {
		*rest = pattern + 2;
		return pattern[1] == c;
	}
	return *pattern == c;
}

/* On a mismatch only the last star is tried again with one character more:
 * earlier ones cannot help.  So the cost is at most the product of lengths.
 */
bool
glob_match(const char *pattern, const char *s)
{
	const char *star = NULL, *retry = NULL, *rest;

	while (*s) {
		if (*pattern == '*') {
			star = ++pattern;
			retry = s;
		} else if (*pattern && match_one(pattern, *s, &rest)) {
			pattern = rest;
			s++;
		} else if (star) {
			pattern = star;
			s = ++retry;
		} else {
			return false;
		}
	}
	while (*pattern == '*')
		pattern++;
	return !*pattern;
}

bool
glob_any(int n, const char *const *patterns, const char *s)
{
	for (int i = 0; i < n; i++)
		if (glob_match(patterns[i], s))
			return true;
	return false;
}

const struct glob_wish *
glob_last(int n, const struct glob_wish *wish, const char *s)
{
	while (n-- > 0)
		if (glob_match(wish[n].glob, s))
			return &wish[n];
	return NULL;
}
