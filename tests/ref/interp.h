/* Reference interpreter of the IR in double precision.
 *
 * The yardstick for kernels and gradients: slow, simple, written from the
 * semantics in ir/ops.h alone.  It shares no code with constant folding or
 * code generation.  Every value is a row-major array of doubles that belongs
 * to the interpreter (integers and booleans too); layout, views and phases
 * play no part unless interp_place asks for them.  Graphs must be static (pass
 * `fold` has run).
 */
#ifndef TESTS_REF_INTERP_H
#define TESTS_REF_INTERP_H

#include "ir/ir.h"

/* Float results are rounded to their dtype. */
enum interp_round { ROUND_NONE, ROUND_HALF, ROUND_ALL };

struct interp_env {
	uint64_t seed, step;            /* step counts from 0 */
	uint32_t micro;                 /* micro-batch within the step */
	double nmicro;                  /* of so many */
	bool training;                  /* false: dropout passes through */
	enum interp_round round;        /* HALF: those of 16 bits alone */
	double lr, beta1, beta2, eps, weight_decay;
	double momentum, beta2_decay, threshold, eps2, ema_decay;
	bool nesterov;
	double clip;                    /* 0: off */
	double loss_scale, replicas;
};

struct interp;

/* Borrows the graph, which must not grow until interp_free. */
struct interp *interp_new(const Graph *);
void interp_free(struct interp *);
/* To be changed at any time between runs.  Starts as seed 0, step 0, micro 0,
 * training, loss scale 1, lr 1e-3, betas .9 .999, eps 1e-8, decay 0, momentum 0, Adafactor
 * with beta2_decay -0.8, threshold 1, eps2 1e-3, averages with ema_decay .999. */
struct interp_env *interp_env(struct interp *);
/* Give a value contents: as doubles, or in the value's own dtype.  Any value
 * may be set; parameters, buffers and constants with contents in the graph
 * need not be, and optimizer states start at zero. */
void interp_set(struct interp *, ValId, const double *);
/* The value as the interpreter has it: of blocks the weights in them. */
Val interp_held(const Val *);
void interp_load(struct interp *, ValId, const void *raw);
/* These n run the same graph as ranks 0..n-1: what goes between ranks goes
 * between them, as far as each has come.  The array is borrowed.  An
 * interpreter that is told nothing is the only rank. */
void interp_group(struct interp *const *, int n);
/* The same of n replicas of `ranks` each, by replica, then rank; env says of
 * how many. */
void interp_world(struct interp *const *, int n, int ranks);
/* Carry out nodes first..last-1; false if one cannot be (interp_error). */
bool interp_run(struct interp *, NodeId first, NodeId last);
bool interp_run_all(struct interp *);
/* Contents of a value, NULL if it has none yet. */
const double *interp_get(struct interp *, ValId);
/* The same converted to the value's dtype; false if it has none. */
bool interp_store(struct interp *, ValId, void *raw);
/* From now on keep every value in the bytes that layout and placement gave it
 * as well, and fail when a node would read something else there than what was
 * written: overwritten too early, a wrong view, unwritten scratch.  Results
 * are rounded to their dtypes.  Needs a graph with P_PLACED. */
bool interp_place(struct interp *);
/* From now on both have one arena, that of `with`, which outlives `it`; of the
 * graphs of one memory plan, before they run. */
void interp_share_arena(struct interp *it, const struct interp *with);
const char *interp_error(const struct interp *);
/* True if the interpreter knows the op. */
bool interp_knows(Op);

/* One word of Philox4x32-10 for element `index` of stream `stream`. */
uint32_t interp_philox(const struct interp_env *, uint32_t stream,
                       uint64_t index);

#endif
