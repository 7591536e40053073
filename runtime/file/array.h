/* Arrays in files, with one interface for .safetensors, .npy, .npz and tokens.
 * Contents are read on demand, in pieces, never mapped: a file that shrinks
 * meanwhile is an error, not a signal.  Compressed arrays are inflated once,
 * into an unnamed file. */
#ifndef RUNTIME_FILE_ARRAY_H
#define RUNTIME_FILE_ARRAY_H

#include "runtime/base/dtype.h"
#include "runtime/base/err.h"
#include "runtime/file/file.h"
#include "runtime/file/packed.h"
#include "runtime/support/st_head.h"

struct array {
	const char *name;               /* "" if the format has no names */
	uint8_t dtype;                  /* CKR_NONE: an unsupported type */
	int rank;
	int64_t dim[CKR_MAX_DIMS];
	uint64_t nelem, nbytes;
	uint64_t at;                    /* offset of its bytes in the file */
	struct packed *packed;          /* ... or in this inflated data; NULL:
	                                 * in the file */
	bool made;                      /* the provider makes the bytes: u8 */
	const struct weight_codes *codes;       /* weights of 4 bits; NULL:
	                                         * elements lie as they are */
	const struct array_file *shard; /* shard that holds it; NULL: the file
	                                 * itself */
	const struct joined_parts *joined;      /* where in the parts its
	                                         * elements are; NULL: whole */
};

/* Makes the contents of arrays when they are read. */
struct array_provider {
	/* Elements first .. first + n - 1. */
	ckr_status (*read)(void *made, uint64_t first, uint64_t n, void *out,
	                   struct err *);
	void (*close)(void *made);
};

/* Reads arrays whose elements are in several files. */
struct array_joiner {
	/* As the files have them. */
	ckr_status (*read)(const struct array_file *, const struct array *,
	                   uint64_t first, uint64_t n, void *out,
	                   struct err *);
	void (*close)(struct array_file *);
};

struct meta {
	const char *key, *value;
};

struct array_file {
	int fd;
	char *path;
	uint64_t size;
	struct array *v;                /* arrays in the file's order */
	size_t n;
	struct meta *meta;              /* safetensors' __metadata__ */
	size_t nmeta;
	char *text;                     /* memory of the names */
	uint32_t *index;                /* indices into v, sorted by name */
	struct weight_codes **codes;    /* [ncodes]: of arrays */
	size_t ncodes;
	struct packed *packed;          /* deflated members */
	size_t npacked;
	const struct array_provider *provider;  /* NULL: none */
	void *made;                     /* argument of the provider's calls */
	struct array_file *part;        /* shards of an index file; parts of a
	                                 * folder */
	size_t npart;
	const struct array_joiner *joiner;      /* of a folder; NULL: none */
	struct joined_parts *joined;    /* [n]: its arrays */
	uint64_t *hash;                 /* [npart]: of the data of its parts */
	char **renamed;                 /* [n]: names that names_map made; NULL:
	                                 * names are the file's */
};

/* Open a file by its contents: .npy, .npz, .safetensors, an index of shards, or
 * a folder of parts (parts_folder.h).
 * Fails for other contents; for a file of PyTorch, the message has the line
 * that converts it. */
ckr_status array_open(struct array_file *, const char *path, struct err *);
/* Open a file of little-endian integers as one array without a name; fails if
 * it has a header. */
ckr_status array_open_raw(struct array_file *, const char *path,
                          uint8_t dtype, struct err *);
void array_close(struct array_file *);
/* The array, the metadata of this name; NULL: there is none. */
const struct array *array_find(const struct array_file *, const char *name);
const char *array_meta(const struct array_file *, const char *key);
/* Read elements first..first+n-1 (row-major), converted to dtype. */
ckr_status array_read(const struct array_file *, const struct array *,
                      uint64_t first, uint64_t n, uint8_t dtype, void *out,
                      struct err *);
/* Fails unless the array has elements first..first+n-1. */
ckr_status array_check_range(const char *path, const struct array *,
                             uint64_t first, uint64_t n, struct err *);
/* Inflate a deflated array now, not when it is first read. */
ckr_status array_prepare(const struct array_file *, const struct array *,
                         struct err *);
/* ": 'NAME'", or nothing: the only array of a file may have no name. */
const char *array_place(char *buf, size_t size, const struct array *);
/* "f32[2,12]" */
const char *array_text(char *buf, size_t size, uint8_t dtype, int rank,
                       const int64_t *dim);

/* ---- writing safetensors ---- */

struct st_writer {
	struct new_file file;
	uint64_t *at;                   /* [n + 1]: offset of each entry; the
	                                 * last one is the end */
	size_t n;
};

struct st_entry {
	const char *name;
	uint8_t dtype;
	int rank;
	int64_t dim[CKR_MAX_DIMS];
};

/* Write the header and reserve space for all entries, whose data may then be
 * written in any order. */
ckr_status st_begin(struct st_writer *, const char *path,
                    const struct st_entry *, size_t n, const struct meta *,
                    size_t nmeta, struct err *);
/* The same in an empty file that is open. */
ckr_status st_begin_in(struct st_writer *, struct new_file,
                       const struct st_entry *, size_t n, const struct meta *,
                       size_t nmeta, struct err *);
/* A writer for a file that another process has begun with the same arguments;
 * the caller sets file.fd. */
ckr_status st_join(struct st_writer *, const char *path,
                   const struct st_entry *, size_t n, const struct meta *,
                   size_t nmeta, struct err *);
/* *at: the offset in the file of byte `from` of entry i; fails unless n bytes
 * from there on are the entry's. */
ckr_status st_offset(const struct st_writer *, size_t i, uint64_t from,
                     size_t n, uint64_t *at, struct err *);
/* Write bytes of entry i, from its byte `from` on. */
ckr_status st_write(struct st_writer *, size_t i, uint64_t from,
                    const void *, size_t nbytes, struct err *);
ckr_status st_commit(struct st_writer *, struct err *);
void st_abort(struct st_writer *);

#endif
