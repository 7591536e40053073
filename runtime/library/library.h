/* Room library: a compiled library, its tables checked.
 *
 * in      the file of a library
 * out     its tables, tensors by name; questions about single tensors
 *         (tensor.h) and about programs (program.h)
 * must not know   memory of a model, processes, steps
 */
#ifndef RUNTIME_LIBRARY_LIBRARY_H
#define RUNTIME_LIBRARY_LIBRARY_H

#include "runtime/base/err.h"
#include "runtime/ckr_abi.h"

struct library {
	char *path;                     /* its file, with a slash */
	void *dl;                       /* dlopen's handle */
	const struct ckr_library *lib;  /* NULL: not loaded */
};

/* Load the file and check its tables.  To be closed after a failure too. */
ckr_status library_open(struct library *, const char *so, struct err *);
void library_close(struct library *);

/* Bytes of the slots of a stage's pool in front of slot k. */
uint64_t library_pool_slot(const struct ckr_stage *, int pool, uint32_t k);

/* A tensor of program[0] that users see; NULL: none.  index may be NULL. */
const struct ckr_tensor *library_find(const struct ckr_library *,
                                      const char *name, uint32_t *index);
uint32_t library_micro_batches(const struct ckr_library *);
/* How far a tensor with CKR_SLOT of a stage lies behind its offset in set `set`
 * of slots, see struct ckr_stage. */
uint64_t library_slot(const struct ckr_stage *, const struct ckr_tensor *,
                      uint32_t set);
/* "none": no updates. */
const char *library_optimizer(const struct ckr_library *);

#endif
