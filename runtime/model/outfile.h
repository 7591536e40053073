/* A file of tensors that all processes of a run write, each what it holds. */
#ifndef CKR_OUTFILE_H
#define CKR_OUTFILE_H

#include "runtime/model/rt.h"

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

#endif
