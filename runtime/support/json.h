/* Room support: utilities that ckc and libckr share.  This header: a pull
 * parser of JSON for untrusted text, whose caller states what it expects.
 *
 * in      text and bytes
 * out     values, escaped text, names of files
 * must not know models, ckc and libckr
 *
 * Every function skips blanks first, returns whether the thing that it names
 * came next, and moves past it.
 */
#ifndef RUNTIME_SUPPORT_JSON_H
#define RUNTIME_SUPPORT_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The text ends with NUL at text[size].  Strings are unescaped in place.  After
 * a function returned false, `fault` has the reason and `at` the position, and
 * further calls fail. */
struct json {
	char *text;
	size_t at, size;
	const char *fault;
};

typedef bool JsonMember(struct json *, const char *key, void *);
typedef bool JsonElement(struct json *, void *);

/* Set a fault that the caller found; returns false. */
bool json_fail(struct json *, const char *why);
bool json_expect(struct json *, char c);
/* Whether c comes next; not a fault otherwise. */
bool json_accept(struct json *, char c);
/* The same for a word: true, false or null. */
bool json_word(struct json *, const char *);
/* A string, ended by NUL, pointing into the text; no NUL inside; UTF-8. */
bool json_string(struct json *, char **s);
/* An integer 0..2^63-1. */
bool json_uint(struct json *, int64_t *x);
bool json_number(struct json *, double *x);
/* Any value, nested at most 64 deep. */
bool json_skip(struct json *);
/* Each member of an object; the function takes the value. */
bool json_object(struct json *, JsonMember *, void *);
bool json_list(struct json *, JsonElement *, void *);
/* Whether only blanks are left. */
bool json_end(struct json *);

#endif
