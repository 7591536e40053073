/* A reader of JSON: the caller says what it expects, member by member.
 *
 * Every function skips blanks first and says whether what it names was there;
 * then it is behind it.
 */
#ifndef PASSES_JSON_READ_H
#define PASSES_JSON_READ_H

#include "ir/base/arena.h"

#include <stdbool.h>
#include <stdint.h>

struct json {
	const char *s, *end;            /* the text; *end is 0 */
	Arena *arena;                   /* for strings */
};

typedef bool JsonMember(struct json *, const char *key, void *);
typedef bool JsonElement(struct json *, void *);

bool json_take(struct json *, char);
/* A string, decoded; NULL if there is none. */
const char *json_string(struct json *);
bool json_number(struct json *, double *);
bool json_whole(struct json *, int64_t *);      /* >= 0 */
/* true, false or null. */
bool json_word(struct json *, const char *);
/* Any value. */
bool json_skip(struct json *);
/* Each member of an object; the member function takes the value. */
bool json_object(struct json *, JsonMember *, void *);
bool json_list(struct json *, JsonElement *, void *);
/* Nothing follows. */
bool json_end(struct json *);

#endif
