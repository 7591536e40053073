/* A file of tensors that all processes of a run read. */
#ifndef CKR_INFILE_H
#define CKR_INFILE_H

#include "runtime/model/rt.h"

struct infile {
	struct array_file f;            /* open unless it is far */
	bool read_for;                  /* the first process reads for all */
	bool far;                       /* ... and this is another one */
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

#endif
