/* The interface of gradient rules: their arguments and helper functions.
 *
 * A rule is pure: it looks at one forward node and the adjoints of its
 * outputs, appends backward nodes and names the adjoint of every input that
 * wants one.  It chooses nothing; order, sums and bookkeeping are the pass's
 * (autodiff.c).
 *
 * What a rule reads decides what is kept from the forward pass, so each reads
 * the cheaper side: exp, sqrt, tanh, sigmoid, relu and softmax their output,
 * gelu and silu their input, the norms their input and per-row statistics,
 * dropout nothing at all.
 */
#ifndef PASSES_GRAD_GRAD_RULES_H
#define PASSES_GRAD_GRAD_RULES_H

#include "ir/infer/infer.h"

/* Scalars that rules have asked for, so that each exists once. */
struct grad_scalars {
	Arena *arena;
	struct grad_scalar {
		DType dt;
		double x;
		ValId val;
	} *entry;
	size_t n, cap;
};

struct grad {
	Graph *g;
	Diag *diag;
	NodeId id;                      /* the forward node */
	Node n;                         /* a copy of it: g->node may move */
	const ValId *dy;                /* adjoint of each output; 0: none */
	const bool *want;               /* which inputs want an adjoint */
	ValId *dx;                      /* result, by input; 0: it is zero */
	bool shield;                    /* where dy[0] is 0, so is dx (shield.h)
	                                 */
	bool failed;                    /* a helper's emission failed */
	const char *why;                /* set by grad_refuse */
	struct grad_scalars *scalars;
};

/* False after grad_refuse. */
typedef bool GradRule(struct grad *);

#define RULES(shape, eval, dynamic, cost, grad, shard) GradRule grad_##grad;
#define OP(id, text, sig, attr, rules, emit) rules
#include "ir/ops.h"

/* The rule of each op; grad_none and grad_zero are entries like others. */
extern GradRule *const grad_table[OP_COUNT];

/* ---- reachability (grad_reach.c) ---- */

/* By value id: it is a float that depends differentiably on a trained
 * parameter.  In the arena given. */
bool *grad_reach(const Graph *, Arena *);
/* A gradient can pass from input k of n to its outputs. */
bool grad_passes(const Graph *, const Node *, int k);

/* ---- helpers for rules (grad_help.c); 0 in gives 0 out ---- */

bool grad_refuse(struct grad *, const char *why);
ValId adj_1(struct grad *, Op, ValId a);
ValId adj_2(struct grad *, Op, ValId a, ValId b);
ValId adj_where(struct grad *, ValId c, ValId a, ValId b);
ValId adj_op(struct grad *, Op, int nin, const ValId *in, const Attr *);
/* Append a node of several outputs; unwanted ones (keep false) become 0.
 * Returns the outputs, or NULL. */
const ValId *adj_node(struct grad *, Op, int nin, const ValId *in,
                      const Attr *, int nout, const bool *keep);
ValId adj_scalar(struct grad *, DType, double);         /* one per value */
/* a * x for a number x. */
ValId adj_scale(struct grad *, ValId a, double x);
ValId adj_reshape(struct grad *, ValId, const Shape *);
ValId adj_expand(struct grad *, ValId, const Shape *);
ValId adj_cast(struct grad *, ValId, DType);
ValId adj_zeros(struct grad *, DType, const Shape *);
ValId adj_fill(struct grad *, DType, double, const Shape *);
/* That number, times the loss scale, as the one element of the shape. */
ValId adj_loss_scale(struct grad *, DType, double, const Shape *);
/* Sum over the axes along which `like` was broadcast to v's shape. */
ValId adj_fit(struct grad *, ValId v, ValId like);
/* n->in[k], n->out[k] */
ValId adj_in(const struct grad *, int k);
/* Output k of the forward node, created if it had been dropped. */
ValId adj_out(struct grad *, int k, DType, Shape);
const Shape *adj_shape(const struct grad *, ValId);
DType adj_dt(const struct grad *, ValId);
/* Room for so many indices along an axis, which become a constant of a graph
 * that may be of any size; NULL after a diagnostic. */
enum { INDICES_MAX = 1 << 24 };
int64_t *adj_indices(struct grad *, int64_t count);
/* dy spread along one axis: element i is added at at[i] of n. */
ValId adj_spread(struct grad *, ValId dy, int axis, int64_t n,
                 const int64_t *at);
/* Adjoint of the whole from that of a slice of it: zeros of shape `whole`
 * with dy at start + step * i of every axis. */
ValId adj_unslice(struct grad *, ValId dy, const Shape *whole,
                  const IntList *start, const IntList *step);
/* The block of `extent` elements from `start` on. */
ValId adj_slice(struct grad *, ValId, const int64_t *start,
                const int64_t *extent);

#endif
