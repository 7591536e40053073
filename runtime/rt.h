/* Inside of a context, shared by the files of libckr. */
#ifndef CKR_RT_H
#define CKR_RT_H

#include "runtime/array.h"
#include "runtime/ckr_abi.h"
#include "runtime/conv.h"
#include "runtime/dtype.h"
#include "runtime/err.h"
#include "runtime/gemm.h"
#include "runtime/mem.h"

struct ckr_ctx {
	struct err err;
	char *path;                     /* of the .so */
	void *dl;
	const struct ckr_library *lib;
	bool ready;                     /* ckr_open succeeded */

	struct block resident, arena;
	void **ptr;                     /* program[0].arg, bound */
	uint64_t bound;                 /* end of the highest operand in the
	                                 * arena of the steps run so far */
	bool bound_known;               /* a whole training step has run */
	uint64_t rss_before;

	struct gemm gemm;
	struct convs *convs;            /* NULL: none prepared */
	struct ckr_env env;
	uint64_t step;                  /* steps done */
	bool resumed;
	bool valid_outputs;

	ckr_feed *feed;
	void *feed_user;

	struct grads *grads;            /* waiting for the next step; NULL */
	struct trace *trace;            /* NULL: off */
	struct profile *profile;        /* NULL: off */
	bool log, poison;
};

/* ---- tensor.c ---- */

/* What the world outside may see. */
bool rt_is_public(const struct ckr_tensor *);
const struct ckr_tensor *rt_find(const ckr_ctx *, const char *name,
                                 uint32_t *index);
/* Where a tensor of a program lies. */
void *rt_at(const ckr_ctx *, const struct block *arena,
            const struct ckr_tensor *);
/* Elements in row-major order without gaps, out of and into a tensor. */
void rt_pack(const struct ckr_tensor *, const void *tensor, void *dense);
void rt_unpack(const struct ckr_tensor *, void *tensor, const void *dense);
uint64_t rt_nelem(const struct ckr_tensor *);
bool rt_is_dense(const struct ckr_tensor *);
/* First byte and end of the bytes a tensor reaches, in its block: views have
 * gaps, so this is more than its elements. */
void rt_reach(const struct ckr_tensor *, int64_t *from, int64_t *to);
/* Pointers of a program's operands for an arena; NULL: no memory. */
void **rt_bind(const ckr_ctx *, const struct ckr_program *,
               const struct block *arena);

/* ---- run.c ---- */

/* Told before (step < nstep) and after each step that has run. */
struct watch {
	ckr_status (*after)(void *user, uint32_t step);
	void *user;
};

/* Check settings and make the environment ready for a training step. */
ckr_status rt_prepare(ckr_ctx *, const struct ckr_hyper *);
/* Count a step that has run, and finish what waited for it. */
ckr_status rt_done(ckr_ctx *);
/* Run all micro-batches of one training step of `program`. */
ckr_status rt_run(ckr_ctx *, const struct ckr_program *, void **ptr,
                  const struct block *arena, const struct watch *,
                  double *loss);

/* ---- trace.c ---- */

void trace_step_begin(struct trace *, const struct ckr_env *);
void trace_op(struct trace *, uint32_t step, double from, double to);
ckr_status trace_step_end(ckr_ctx *);
ckr_status trace_close(ckr_ctx *);
void profile_op(struct profile *, uint32_t step, double sec);
void profile_free(ckr_ctx *);
double now_sec(void);

/* ---- checkpoint.c ---- */

ckr_status rt_load_weights(ckr_ctx *, const char *path);
/* Called after step `step` of the last micro-batch. */
ckr_status grads_after(ckr_ctx *, const struct ckr_program *,
                       const struct block *arena, uint32_t step);
ckr_status grads_finish(ckr_ctx *);
void grads_free(ckr_ctx *);

#endif
