/* A dataset of several files.  A column holds the rows of all arrays of one
 * name, in the order of the files.  A file with new names adds columns.  A file
 * with known names is a shard: it has the same names, types and row shapes. */
#ifndef RUNTIME_DATA_DATASET_H
#define RUNTIME_DATA_DATASET_H

#include "runtime/data/csv.h"

/* A file of --data, in the order of the options. */
struct named_data {
	char *name;                     /* name for its only array; NULL: the
	                                 * file's own names */
	char *path;
};

struct data_list {
	struct named_data *v;
	size_t n;
};

/* Each text is FILE, NAME=FILE, or the same with a shell pattern for FILE,
 * whose matches are sorted by name.  If a file is named like the whole text,
 * the text is FILE. */
ckr_status data_list_make(struct data_list *, const char *const *text,
                          size_t n, struct err *);
void data_list_free(struct data_list *);

/* Where a shard's rows lie in a column. */
struct data_shard {
	const struct array_file *file;
	const struct array *array;
	uint64_t first;                 /* column index of its first element */
};

struct data_column {
	struct data_shard *shard;
	size_t n;
};

struct dataset {
	struct array *array;            /* each column as one array */
	size_t narray;
	struct data_column *column;     /* [narray]: shards of each column */
	char *path;                     /* for messages */

	struct data_list list;
	struct array_file *file;        /* [list.n]; the first nfile are open */
	size_t nfile;
};

struct dataset_options {
	const char *const *text;        /* [n]: as for data_list_make */
	size_t n;
	const char *tokens;             /* type of raw tokens: "u16", "u32",
	                                 * "bytes"; NULL: files have headers */
	struct csv_columns columns;     /* of CSV files */
};

/* Of raw tokens by its name; CKR_NONE: there is none. */
uint8_t dataset_token_type(const char *);

/* Open all files.  To be closed after a failure too. */
ckr_status dataset_open(struct dataset *, const struct dataset_options *,
                        struct err *);
void dataset_close(struct dataset *);
/* The column of one of the data set's arrays. */
const struct data_column *dataset_column(const struct dataset *,
                                         const struct array *);
/* The shard that holds element i of the column. */
const struct data_shard *dataset_shard(const struct data_column *, uint64_t i);
/* Inflate the column's deflated arrays now. */
ckr_status dataset_prepare(const struct dataset *, const struct array *,
                           struct err *);
/* As array_read, for a column. */
ckr_status dataset_read(const struct dataset *, const struct array *,
                       uint64_t first, uint64_t n, uint8_t dtype, void *out,
                       struct err *);
/* Fails, and names the place, unless every sample lies in the same row of the
 * same shard in both columns. */
ckr_status dataset_same_rows(const struct dataset *, const struct array *,
                            const struct array *, struct err *);
/* Print a line for every file, if there are several. */
void dataset_print(const struct dataset *, FILE *);

#endif
