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
	const char *name;               /* "" if the format has none */
	uint8_t dtype;                  /* CKR_NONE: a type we do not know */
	int rank;
	int64_t dim[CKR_MAX_DIMS];
	uint64_t nelem, nbytes;
	uint64_t at;                    /* in the file */
	struct packed *packed;          /* ... or in what this holds inflated;
	                                 * NULL: in the file */
	bool made;                      /* by the file's provider: u8 */
	const struct array_file *shard; /* which holds it; NULL: the file */
};

/* Makes contents when they are read: n elements from the first one on. */
struct array_provider {
	ckr_status (*read)(void *made, uint64_t first, uint64_t n, void *out,
	                   struct err *);
	void (*close)(void *made);
};

struct meta {
	const char *key, *value;
};

struct array_file {
	int fd;
	char *path;
	uint64_t size;
	struct array *v;                /* in the file's order */
	size_t n;
	struct meta *meta;              /* safetensors' __metadata__ */
	size_t nmeta;
	char *text;                     /* what the names point into */
	uint32_t *index;                /* v's numbers, sorted by name */
	struct packed *packed;          /* what is deflated */
	size_t npacked;
	const struct array_provider *provider;  /* NULL: none */
	void *made;                     /* ... what it is called with */
	struct array_file *part;        /* an index's shards */
	size_t npart;
	char **renamed;                 /* [n]: names of names_map; NULL: of
	                                 * the file */
};

/* Choose by what the file holds: .npy, .npz, .safetensors, or an index of
 * shards of them; anything else is refused, with what would convert a file of
 * PyTorch. */
ckr_status array_open(struct array_file *, const char *path, struct err *);
/* A file of bare little-endian integers as one array without a name; one that
 * has a header is refused. */
ckr_status array_open_raw(struct array_file *, const char *path,
                          uint8_t dtype, struct err *);
void array_close(struct array_file *);
/* NULL: none of that name. */
const struct array *array_find(const struct array_file *, const char *name);
const char *array_meta(const struct array_file *, const char *key);
/* Elements first..first+n-1 (row-major) as dtype. */
ckr_status array_read(const struct array_file *, const struct array *,
                      uint64_t first, uint64_t n, uint8_t dtype, void *out,
                      struct err *);
/* Inflate what is deflated now, not when it is read first. */
ckr_status array_prepare(const struct array_file *, const struct array *,
                         struct err *);
/* ": 'NAME'", or nothing: the only array of a file may have no name. */
const char *array_place(char *buf, size_t size, const struct array *);
/* "f32[2,12]" */
const char *array_text(char *buf, size_t size, uint8_t dtype, int rank,
                       const int64_t *dim);

/* For the readers of the formats: open a file, without looking into it, and,
 * when all arrays are known, sort them by name; two of one name are refused, as
 * nobody knows which one is meant. */
ckr_status array_begin(struct array_file *, const char *path, struct err *);
ckr_status array_index(struct array_file *, struct err *);
/* The file is open; they fill v, n, meta and text; array_open sorts. */
typedef ckr_status ReadHeader(struct array_file *, struct err *);
ReadHeader safetensors_read_header, npy_read_header, npz_read_directory,
           tokens_read_header, shards_read_index;
/* Of a file that begins like this, zeros behind a shorter one; NULL: no format
 * does. */
ReadHeader *array_reader(const unsigned char head[ST_HEAD_BEGINS]);
/* As array_open, but for indexes, which do not name each other. */
ckr_status array_open_shard(struct array_file *, const char *path,
                            struct err *);
/* Files of torch.save: a pickle, or a zip archive with one in it; and the
 * error, with the line that converts it. */
bool pickle_begins(const unsigned char head[2]);
ckr_status pickle_is_in_zip(const struct array_file *, bool *, struct err *);
ReadHeader pickle_refuse;
/* The .npy file of so many bytes where `at` and `packed` say. */
ckr_status npy_read(const struct array_file *, struct array *, uint64_t size,
                    struct err *);
/* Whether a file begins with a header of tokens; a whole file of them. */
bool tokens_begin(const unsigned char head[8]);
ckr_status tokens_bare(struct array_file *, uint8_t dtype, struct err *);

/* ---- writing safetensors ---- */

struct st_writer {
	struct new_file file;
	uint64_t *at;                   /* of each entry; [n] is the end */
	size_t n;
};

struct st_entry {
	const char *name;
	uint8_t dtype;
	int rank;
	int64_t dim[CKR_MAX_DIMS];
};

/* Write the header and reserve the room; entries in any order of data. */
ckr_status st_begin(struct st_writer *, const char *path,
                    const struct st_entry *, size_t n, const struct meta *,
                    size_t nmeta, struct err *);
/* The same into an empty file that is open. */
ckr_status st_begin_in(struct st_writer *, struct new_file,
                       const struct st_entry *, size_t n, const struct meta *,
                       size_t nmeta, struct err *);
/* A writer without a file, for one that another process has begun with the same
 * arguments: file.fd is the caller's to set. */
ckr_status st_join(struct st_writer *, const char *path,
                   const struct st_entry *, size_t n, const struct meta *,
                   size_t nmeta, struct err *);
/* Bytes of entry i from its byte `from` on. */
ckr_status st_write(struct st_writer *, size_t i, uint64_t from,
                    const void *, size_t nbytes, struct err *);
ckr_status st_commit(struct st_writer *, struct err *);
void st_abort(struct st_writer *);

#endif
