/* A pull parser of JSON for untrusted text: the caller states what it expects.
 *
 * Every function skips blanks first and says whether what it names was there;
 * then it is behind it.
 */
#ifndef RUNTIME_SUPPORT_JSON_H
#define RUNTIME_SUPPORT_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The text ends in NUL, text[size], and is changed: strings are unescaped in
 * place.  After a function that expects something returned false, fault says
 * why and at says where; further calls fail too. */
struct json {
	char *text;
	size_t at, size;
	const char *fault;
};

typedef bool JsonMember(struct json *, const char *key, void *);
typedef bool JsonElement(struct json *, void *);

/* A fault of the caller's own finding; false. */
bool json_fail(struct json *, const char *why);
bool json_expect(struct json *, char c);
/* Whether c comes next; no fault otherwise. */
bool json_accept(struct json *, char c);
/* The same of true, false or null. */
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
/* Only blanks are left. */
bool json_end(struct json *);

#endif
