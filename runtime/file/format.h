/* Formats of files of arrays: one row each in formats.c, with a function that
 * reads the file's header. */
#ifndef RUNTIME_FILE_FORMAT_H
#define RUNTIME_FILE_FORMAT_H

#include "runtime/file/array.h"

/* Sets v, n, and where the format has them meta and text, of a file that is
 * open; array_open_as sorts the arrays by name. */
typedef ckr_status ArrayReader(struct array_file *, const void *options,
                               struct err *);
ckr_status array_open_as(struct array_file *, const char *path, ArrayReader *,
                         const void *options, struct err *);
/* Room for n arrays in v, and one more. */
ckr_status array_alloc(struct array_file *, size_t n, struct err *);
/* One array without a name, which has the file's bytes from `at` on. */
ckr_status array_alone(struct array_file *, uint8_t dtype, uint64_t at,
                       uint64_t nelem, struct err *);
/* Sort the arrays by name; fails if two have one name. */
ckr_status array_index(struct array_file *, struct err *);

/* ---- formats told by their first bytes ---- */

enum { FORMAT_HEAD = ST_HEAD_BEGINS };

typedef ckr_status ReadHeader(struct array_file *, struct err *);

struct array_format {
	const char *magic;              /* first bytes, `nmagic` of them */
	size_t nmagic;
	/* ... or whether the first bytes are the format's; NULL: by magic */
	bool (*begins)(const unsigned char head[FORMAT_HEAD]);
	ReadHeader *read;
	bool vague;                     /* integers may begin so, too */
};

/* The format of a file with these first bytes, padded with zeros; NULL: it is
 * not known. */
const struct array_format *format_find(const unsigned char head[FORMAT_HEAD]);
/* Read the header of a file of any known format, but no index of shards. */
ArrayReader format_read;
/* Whether a file is such an index. */
ckr_status format_is_index(const struct array_file *, bool *, struct err *);

ReadHeader safetensors_read_header, npy_read_header, npz_read_directory,
           tokens_read_header, format_refuse_index;
/* Recognise files of torch.save: a pickle, or a zip archive that holds one;
 * fail with the line that converts the file. */
bool pickle_begins(const unsigned char head[FORMAT_HEAD]);
ckr_status pickle_is_in_zip(const struct array_file *, bool *, struct err *);
ReadHeader pickle_refuse;
/* Read the header of the .npy file of `size` bytes at the array's `at` and
 * `packed`. */
ckr_status npy_read(const struct array_file *, struct array *, uint64_t size,
                    struct err *);
/* Whether a file begins with a header of tokens. */
bool tokens_begin(const unsigned char head[FORMAT_HEAD]);

#endif
