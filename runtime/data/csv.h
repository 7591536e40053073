/* CSV files of numbers as arrays. */
#ifndef RUNTIME_DATA_CSV_H
#define RUNTIME_DATA_CSV_H

#include "runtime/file/array.h"

/* Whether the file is called *.csv or *.tsv. */
bool is_csv_name(const char *path);
/* Convert the numbers once, into an unnamed file: int64 arrays if all numbers
 * of an array are integers, else float64.  Each column of a file with a header
 * is an array [rows]; columns with numbered names, x0 x1 x2, are one array x
 * [rows, columns].  A file without a header is one array without a name.
 * columns: n texts NAME=LIST, which make an array NAME of column names, numbers
 * from 1 on and ranges such as 1-4,7; [rows] if LIST has one column. */
ckr_status csv_open(struct array_file *, const char *path,
                    const char *const *columns, size_t n, struct err *);

#endif
