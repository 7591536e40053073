/* CSV files of numbers as arrays. */
#ifndef RUNTIME_DATA_CSV_H
#define RUNTIME_DATA_CSV_H

#include "runtime/file/format.h"

/* n texts NAME=LIST, which make an array NAME of column names, numbers from 1
 * on and ranges such as 1-4,7; [rows] if LIST has one column. */
struct csv_columns {
	const char *const *text;
	size_t n;
};

/* Convert the numbers once, into an unnamed file: int64 arrays if all numbers
 * of an array are integers, else float64.  Each column of a file with a header
 * is an array [rows]; columns with numbered names, x0 x1 x2, are one array x
 * [rows, columns].  A file without a header is one array without a name.
 * options: struct csv_columns. */
ArrayReader csv_read;

#endif
