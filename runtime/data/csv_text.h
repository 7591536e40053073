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
	char field[CSV_FIELD_MAX + 1];  /* without quotes and blanks around */
	uint64_t read;                  /* bytes of the file */
	size_t at, n;                   /* in buf */
	char buf[1 << 16];
	ckr_status failed;
	struct err *e;
};

/* The file is open: its fields are parted by what the first line has first of
 * tab, semicolon and comma. */
ckr_status csv_begin(struct csv_text *, int fd, const char *path,
                     struct err *);
/* To the first line again. */
void csv_rewind(struct csv_text *);
/* Go to the next line that is not blank; false: there is none, or the file
 * cannot be read (failed). */
bool csv_line(struct csv_text *);
/* The line's next field; *last: none follows in the line.  False: it is none
 * (failed). */
bool csv_field(struct csv_text *, bool *last);

#endif
