/* Grouping of the columns of a CSV file into arrays. */
#ifndef RUNTIME_DATA_CSV_TABLE_H
#define RUNTIME_DATA_CSV_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/err.h"

struct csv_array {
	char *name;
	bool list;                      /* [rows, width], also if width is 1 */
	uint32_t width;                 /* number of columns */
	uint64_t before;                /* columns of the arrays before this */
	bool whole;                     /* all numbers are integers */
};

struct csv_table {
	const char *path;               /* for messages */
	bool header;
	char **name;                    /* [n]: column names, if header */
	uint32_t n;                     /* columns */
	uint32_t *array, *place;        /* [n]: column's array, index in it */
	struct csv_array *v;
	uint32_t narray;
};

/* Append a column. */
ckr_status csv_add_column(struct csv_table *, const char *name, struct err *);
/* Group the columns into arrays; `columns` as for csv_open. */
ckr_status csv_group_columns(struct csv_table *, const char *const *columns,
                             size_t n, struct err *);
void csv_free(struct csv_table *);

#endif
