/* Tokenizer of CSV files: one field after the other. */
#ifndef RUNTIME_DATA_CSV_TEXT_H
#define RUNTIME_DATA_CSV_TEXT_H

#include <stdbool.h>

#include "runtime/file/file.h"

enum { CSV_FIELD_MAX = 255 };

struct csv_text {
	int fd;
	const char *path;
	char separator;
	uint64_t line;                  /* from 1 */
	char field[CSV_FIELD_MAX + 1];  /* without surrounding quotes, blanks */
	uint64_t read;                  /* bytes of the file read so far */
	size_t at, n;                   /* position in buf; bytes in it */
	char buf[1 << 16];
	ckr_status failed;
	struct err *e;
};

/* Start reading an open file.  The separator is the first tab, semicolon or
 * comma of its first line. */
ckr_status csv_begin(struct csv_text *, int fd, const char *path,
                     struct err *);
/* Return to the first line. */
void csv_rewind(struct csv_text *);
/* Go to the next line that is not blank; false: there is none, or the file
 * cannot be read (failed). */
bool csv_line(struct csv_text *);
/* Read the line's next field; *last: it is the line's last one.  False: it is
 * invalid (failed). */
bool csv_field(struct csv_text *, bool *last);

#endif
