/* Reads a whole file. */
#ifndef IR_BASE_INPUT_FILE_H
#define IR_BASE_INPUT_FILE_H

#include "ir/base/arena.h"
#include "ir/base/diag.h"

/* The contents of a regular file of at most `max` bytes, followed by 0, and
 * their number in *n; NULL after an error. */
char *input_file_read(const char *path, size_t max, size_t *n, Arena *, Diag *);

#endif
