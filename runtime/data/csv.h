/* CSV files of numbers as arrays. */
#ifndef RUNTIME_DATA_CSV_H
#define RUNTIME_DATA_CSV_H

#include "runtime/file/array.h"

/* Whether the file is called *.csv or *.tsv. */
bool is_csv_name(const char *path);
/* Numbers are put into a file without a name, once, in pieces: arrays of int64
 * where all of an array are whole, else of float64.  Columns of a file with a
 * header are arrays [rows] of their names; those whose names end in numbers
 * that count on, x0 x1 x2, are one array x [rows, columns]; a file without a
 * header is one array without a name.  Texts of `columns` are NAME=LIST: of
 * names, numbers from 1 on and ranges of numbers, 1-4,7, which make an array of
 * that name instead, [rows] if it is one name or number. */
ckr_status csv_open(struct array_file *, const char *path,
                    const char *const *columns, size_t n, struct err *);

#endif
