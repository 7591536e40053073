/* Just enough JSON: a pull parser for headers that may be hostile, and
 * escaping for what we write. */
#ifndef CKR_JSON_H
#define CKR_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* The text need not end in NUL and is changed: strings are unescaped in
 * place.  After any function returned false, fault says why and at says
 * where; further calls fail too. */
struct json {
	char *text;
	size_t at, size;
	const char *fault;
};

/* Skip blanks and consume c; false if something else stands there. */
bool json_expect(struct json *, char c);
/* Whether c comes next; consumes it if so.  Not a fault otherwise. */
bool json_accept(struct json *, char c);
/* A string, ended by NUL, pointing into the text; no NUL inside; UTF-8. */
bool json_string(struct json *, char **s);
/* An integer 0..2^63-1. */
bool json_uint(struct json *, int64_t *x);
/* Any value, nested at most 32 deep. */
bool json_skip(struct json *);
/* Only blanks are left. */
bool json_end(struct json *);

/* s as a JSON string with its quotes; bytes that are not UTF-8 become
 * U+FFFD. */
void json_put(FILE *, const char *s);

#endif
