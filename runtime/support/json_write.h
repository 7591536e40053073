/* A writer of JSON, which puts commas, blanks and lines between values. */
#ifndef RUNTIME_SUPPORT_JSON_WRITE_H
#define RUNTIME_SUPPORT_JSON_WRITE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* How the members of an object or list are set apart. */
enum json_style {
	JSON_TIGHT,                     /* {"a":1,"b":2} */
	JSON_SPACED,                    /* {"a": 1, "b": 2} */
	JSON_LINES,                     /* each on a line, and the bracket */
	JSON_INDENTED,                  /* the same, after two blanks */
	JSON_TABBED,                    /* ... after a tab */
	JSON_ROWS,                      /* each on a line, but the bracket */
	JSON_WRAPPED                    /* ... and but the first */
};

struct json_out {
	FILE *f;
	bool tight;                     /* no blank after a colon */
	bool more;                      /* a value is before the next one */
	int depth;
	struct json_level {
		char end;
		enum json_style style;
	} level[16];                    /* ckc and ckrun nest 9 */
};

/* key: NULL in a list and for the outermost value. */
void json_open(struct json_out *, const char *key, char bracket,
               enum json_style);
void json_close(struct json_out *);
/* The text escaped; null for NULL. */
void json_text(struct json_out *, const char *key, const char *);
void json_bool(struct json_out *, const char *key, bool);
void json_int(struct json_out *, const char *key, int64_t);
/* null for a negative number. */
void json_id(struct json_out *, const char *key, int64_t);
void json_ids(struct json_out *, const char *key, const int64_t *, int64_t n);
/* null unless the number is finite. */
void json_real(struct json_out *, const char *key, int digits, double);
/* A value that is JSON already. */
void json_print(struct json_out *, const char *key, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#endif
