/* A dataset of several files.  A column holds the rows of all arrays of one
 * name, in the order of the files.  A file with new names adds columns.  A file
 * with known names is a shard: it has the same names, types and row shapes. */
#ifndef RUNTIME_DATA_DATASET_H
#define RUNTIME_DATA_DATASET_H

#include "runtime/file/array.h"

/* The files that --data names, in this order. */
struct named_data {
	char *name;                     /* of its only array; NULL: its own */
	char *path;
};

struct data_list {
	struct named_data *v;
	size_t n;
};

/* Each text is FILE, NAME=FILE, or a pattern of the shell's in place of FILE,
 * whose files come in the order of their names.  What is called as the whole
 * text says is that file. */
ckr_status data_list_make(struct data_list *, const char *const *text,
                          size_t n, struct err *);
void data_list_free(struct data_list *);

/* Where a shard's rows lie in a column. */
struct data_shard {
	const struct array_file *file;
	const struct array *array;
	uint64_t first;                 /* its first element's number */
};

struct data_column {
	struct data_shard *shard;
	size_t n;
};

struct dataset {
	struct array *array;            /* columns as if of one file */
	size_t narray;
	struct data_column *column;     /* where each of them lies */
	char *path;                     /* for messages */

	struct data_list list;
	struct array_file *file;        /* as many as the list has */
	size_t nfile;
};

struct dataset_options {
	const char *const *text;        /* what data_list_make reads */
	size_t n;
	const char *tokens;             /* raw: "u16", "u32", "bytes"; NULL */
	const char *const *columns;     /* what csv_open reads */
	size_t ncolumns;
};

/* Open all files.  After a failure too there is something to close. */
ckr_status dataset_open(struct dataset *, const struct dataset_options *,
                        struct err *);
void dataset_close(struct dataset *);
/* Where the column lies: one of its arrays. */
const struct data_column *dataset_column(const struct dataset *,
                                         const struct array *);
/* The shard that holds element i of the column. */
const struct data_shard *dataset_shard(const struct data_column *, uint64_t i);
/* Inflate now what the column has in deflated files. */
ckr_status dataset_prepare(const struct dataset *, const struct array *,
                           struct err *);
/* As array_read, of a column. */
ckr_status dataset_read(const struct dataset *, const struct array *,
                       uint64_t first, uint64_t n, uint8_t dtype, void *out,
                       struct err *);
/* That sample number i lies in the same row of the same shard of both columns;
 * otherwise a failure that says where they part. */
ckr_status dataset_same_rows(const struct dataset *, const struct array *,
                            const struct array *, struct err *);
/* A line for every file, if there are several. */
void dataset_print(const struct dataset *, FILE *);

#endif
