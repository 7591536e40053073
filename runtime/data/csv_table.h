/* Grouping of the columns of a CSV file into arrays. */
#ifndef RUNTIME_DATA_CSV_TABLE_H
#define RUNTIME_DATA_CSV_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/err.h"

struct csv_array {
	char *name;
	bool list;                      /* of columns, be it one */
	uint32_t width;                 /* columns */
	uint64_t before;                /* columns of the arrays before */
	bool whole;                     /* all numbers are integers */
};

struct csv_table {
	const char *path;               /* for messages */
	bool header;
	char **name;                    /* of columns; with a header */
	uint32_t n, room;
	uint32_t *array, *place;        /* of columns: in which, where */
	struct csv_array *v;
	uint32_t narray;
};

/* Another column. */
ckr_status csv_add_column(struct csv_table *, const char *name, struct err *);
/* Decide what arrays there are. */
ckr_status csv_group_columns(struct csv_table *, const char *const *columns,
                             size_t n, struct err *);
void csv_free(struct csv_table *);

#endif
