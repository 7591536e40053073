/* Files of tensors that all processes of a run read or write. */
#ifndef CKR_FILES_H
#define CKR_FILES_H

#include "runtime/model/rt.h"

/* ---- infile.c: one that each reads, as far as it sees it ---- */

struct infile {
	struct array_file f;            /* open unless it is far */
	bool read_for;                  /* the first process reads for all */
	bool far;                       /* ... and this is another one */
	const unsigned char *leave;     /* [nshared]: tensors that keep their
	                                 * values; NULL: none */
};

/* The first process must see the file, the others may. */
ckr_status infile_open(ckr_ctx *, const char *path, struct infile *);
void infile_close(struct infile *);
/* The value of a tensor of program[0] from an array of its form, converted; far
 * files: NULL for it, and all come to this also after a failure. */
ckr_status infile_read(ckr_ctx *, const struct infile *, const struct array *,
                       const struct ckr_tensor *);
/* Whether that is possible: the same, to nowhere. */
ckr_status infile_try(ckr_ctx *, const struct infile *, const struct array *,
                      const struct ckr_tensor *);

/* ---- outfile.c: one to which each writes what it holds ---- */

struct outfile {
	struct st_writer w;
	bool far;                       /* the first process writes for all */
};

/* Every call is made by all processes. */
ckr_status outfile_begin(ckr_ctx *, struct outfile *, const char *path,
                         const struct st_entry *, size_t n,
                         const struct meta *, size_t nmeta);
/* The tensor's value into an entry, which is of its type; or of float32, and
 * `scale` times it then. */
ckr_status outfile_put(ckr_ctx *, struct outfile *, size_t entry,
                       const struct bound *, const struct ckr_tensor *,
                       const float *scale);
/* The file appears, unless it went wrong on any of them. */
ckr_status outfile_commit(ckr_ctx *, struct outfile *, ckr_status);
void outfile_abort(struct outfile *);

/* ---- checkpoint.c ---- */

/* All parameters and buffers but those to leave: all or nothing. */
ckr_status files_load_weights(ckr_ctx *, const struct infile *);

#endif
