/* Diagnostics: messages to the user, which can be counted, limited and
 * tested.
 *
 * A user error is one line "ckc: FILE: node 'NAME' (Op): message"; further
 * facts follow on lines indented by two spaces, see diag_more.  Control
 * characters and non-UTF-8 bytes from files are escaped.  Nothing here exits.
 */
#ifndef IR_BASE_DIAG_H
#define IR_BASE_DIAG_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

typedef struct Diag Diag;

enum diag_level { DIAG_NOTE, DIAG_WARNING, DIAG_ERROR };

/* prog begins each line; out is where they go (borrowed; NULL:
 * nowhere).  After 20 errors further ones are only counted. */
Diag *diag_new(const char *prog, FILE *out);
void diag_free(Diag *);
/* The file that following messages are about; borrowed, NULL: none. */
void diag_file(Diag *, const char *file);
/* All report functions return false, so that "return diag_error(...)" ends a
 * failing function. */
bool diag_error(Diag *, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
bool diag_warn(Diag *, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
bool diag_note(Diag *, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* An error about a named node; node or op may be NULL. */
bool diag_at(Diag *, const char *node, const char *op, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* A fault of ckc's own: "internal: ...".  Also counts as an error. */
bool diag_internal(Diag *, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* A further line of the error just reported, indented. */
bool diag_more(Diag *, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* From now on no notes. */
void diag_quiet(Diag *);
int diag_errors(const Diag *);
/* The first error that counted, "node 'NAME' (Op): message", or "".  It lives
 * as long as the Diag. */
const char *diag_reason(const Diag *);
/* From now on this one's notes are those of `to`. */
void diag_pass_notes(Diag *, Diag *to);
/* Until `because` is NULL, errors are notes that begin with it and do not
 * count: what is refused is done without.  ckc's own faults stay errors. */
void diag_soften(Diag *, const char *because);
bool diag_is_soft(const Diag *);
/* Says how many errors were not shown, if any. */
void diag_flush(Diag *);
/* Write s to out with control characters, quotes and backslashes escaped. */
void diag_escape(FILE *out, const char *s);

#endif
