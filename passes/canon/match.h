/* Rewriting a graph by structure: the engine of pass canon's rules.
 *
 * A rule matches upwards from one node, the root of its pattern, through
 * definitions; it adds nodes with rw_emit and ends with rw_replace.  Rules run
 * in sweeps over the nodes in order of execution until nothing changes.  During
 * a sweep new nodes are kept in order beside the root, rw_in looks up replaced
 * values, and use counts are exact.  The end of a sweep sorts the graph itself.
 */
#ifndef PASSES_CANON_MATCH_H
#define PASSES_CANON_MATCH_H

#include "ir/base/table.h"
#include "passes/pass.h"

struct rewrite {
	Pass *p;
	Graph *g;
	Arena *mem;
	ValId *fwd;             /* by value: its replacement, 0 none */
	ValId *core;            /* by value: shrunk constant, 0 not tried */
	uint8_t *mask;          /* by value: enum mask_kind, 0 none yet */
	struct {                /* match_mask.c: the last constant made, */
		ValId from, made;       /* reused, because layers share masks */
		bool keep;
	} mask_cache;
	struct {                /* match_attention.c: the last causal mask */
		ValId made;
		int64_t t, s;
	} causal;
	int *nuse;              /* by value: readers, and 1 if an output */
	bool *trained;          /* by value: a gradient passes through it */
	bool *const_expr;       /* by value: computed from constants alone, see
	                         * const_range.c */
	int64_t steps;          /* remaining steps of const_range.c */
	struct mask_scan *mask_scan;    /* mask_kind.c: scratch memory for
	                                 * masks that are expressions */
	bool warned_finite;     /* match_mask.c: warned of a finite mask */
	bool *dead;             /* by node */
	uint32_t nval, nnode;   /* entries in use of the tables above */
	size_t fwd_cap, core_cap, mask_cap, nuse_cap, trained_cap, dead_cap,
	       const_expr_cap;
	NodeId at;              /* root of the rule that runs */
	NodeId first_new;       /* first node made by that rule */
	NodeId origin_node;     /* inherits the origins of dead nodes; 0: the
	                         * last new node */
	bool failed;            /* a diagnostic was given */
	struct table cse;       /* canon.c: nodes of this sweep by hash */
};

/* A rule; returns true if it changed the graph or failed. */
typedef bool RuleFn(struct rewrite *, NodeId root);

struct rule {
	Op op;                  /* OP_NONE: any */
	RuleFn *fn;
};

void rw_init(struct rewrite *, Pass *, Graph *);
/* Sweep with the rules (ended by fn NULL) until nothing changes; removes dead
 * nodes.  False after a diagnostic. */
bool rw_run(struct rewrite *, const struct rule *);

/* Grow the side tables after values or nodes were added by other means than
 * the functions below. */
void rw_grow(struct rewrite *);

/* ---- queries (match_query.c) ---- */

/* The current replacement of v. */
ValId rw_now(const struct rewrite *, ValId v);
/* Input i of a node; 0 if absent. */
ValId rw_in(const struct rewrite *, NodeId n, int i);
static inline ValId
rw_out(const struct rewrite *w, NodeId n)
{
	return w->g->node[n].out[0];
}
/* The node that makes v; 0: none. */
NodeId rw_def(const struct rewrite *, ValId v);
/* The node that makes v if it is an `op`; 0 otherwise. */
NodeId rw_is(const struct rewrite *, ValId v, Op op);
/* Whether v has one reader and is no output. */
bool rw_single(const struct rewrite *, ValId v);
static inline const Shape *
rw_shape(const struct rewrite *w, ValId v)
{
	return &w->g->val[v].shape;
}
static inline DType
rw_dt(const struct rewrite *w, ValId v)
{
	return w->g->val[v].dt;
}
bool rw_float(const struct rewrite *, ValId v);
/* Whether v is a constant with all elements equal to *x. */
bool rw_scalar(const struct rewrite *, ValId v, double *x);
/* Strip any number of muls and divs by splat constants from v and multiply
 * *coef by the constants.  Returns the rest. */
ValId rw_scaled(const struct rewrite *, ValId v, double *coef, bool single);
bool near_to(double a, double b, double tol);

/* ---- changes; an input 0, a reported failure, gives 0 ---- */

/* A new node beside the root; its output 0, or 0 after a diagnostic. */
ValId rw_emit(struct rewrite *, Op, int nin, const ValId *in, const Attr *);
ValId rw_reshape(struct rewrite *, ValId, const Shape *);     /* v if equal */
ValId rw_rank4(struct rewrite *, ValId);        /* extents of 1 in front */
ValId rw_transpose(struct rewrite *, ValId, const int *perm); /* v if none */
ValId rw_expand(struct rewrite *, ValId, const Shape *);      /* v if equal */
ValId rw_slice(struct rewrite *, ValId, const IntList *start,
               const IntList *step, const Shape *out);
/* v before its expands.  A constant that repeats along an axis is cut to extent
 * 1 there. */
ValId rw_unexpanded(struct rewrite *, ValId);
ValId rw_unary(struct rewrite *, Op, ValId);
ValId rw_binary(struct rewrite *, Op, ValId, ValId);
ValId rw_const_like(struct rewrite *, ValId like, double x);  /* scalar */
/* A constant with new contents (copied into the graph). */
ValId rw_const(struct rewrite *, DType, Shape, const void *data);
void rw_set_in(struct rewrite *, NodeId, int i, ValId);
/* Replace output 0 of the root by v; a new v takes its name.  False, without a
 * change, if both are graph outputs. */
bool rw_replace(struct rewrite *, NodeId root, ValId v);

/* ---- const_range.c ---- */

/* Elements lo to hi - 1 along each dim of a value. */
struct box {
	int64_t lo[MAX_RANK], hi[MAX_RANK];
};
/* Whether the op may be part of a constant expression. */
bool is_const_expr_op(Op);
/* The range of the elements of a constant or constant expression; false if
 * unknown. */
bool const_expr_range(struct rewrite *, ValId, const struct box *, double *lo,
                      double *hi);

/* ---- rules: match_*.c ---- */

/* In the order in which they are tried: the op whose nodes a rule looks at
 * (NONE: any op), and the NAME of its function match_NAME. */
#define MATCHERS(X) \
	X(RESHAPE, reshape) \
	X(TRANSPOSE, transpose) \
	X(NONE, expand) \
	X(GATHER, gather) \
	X(POW, pow) \
	X(DIV, div) \
	X(ADD, neutral) \
	X(SUB, neutral) \
	X(MUL, neutral) \
	X(DIV, neutral) \
	X(MATMUL, matmul_transpose) \
	X(DIV, norm) \
	X(MUL, norm) \
	X(MUL, norm_scale) \
	X(ADD, norm_bias) \
	X(MUL, gelu) \
	X(MUL, silu) \
	X(LOG, log_softmax) \
	X(LOG, log_sigmoid) \
	X(NLL, nll) \
	X(ATTENTION, attention_split) \
	X(ATTENTION, attention_mask) \
	X(ATTENTION, attention_kv) \
	X(MATMUL, attention) \
	X(MATMUL, experts) \
	X(ADD, experts_bias) \
	X(MATMUL, linear_2d) \
	X(ADD, linear_bias) \
	X(SLICE, linear_rows) \
	X(CONCAT, bags)

#define DECLARE(op, name) RuleFn match_##name;
MATCHERS(DECLARE)
#undef DECLARE

/* match_mask.c: the masks of an attention.  A causal constant mask becomes a
 * flag, a mask that hides nothing is dropped, repeated extents are cut; the
 * remaining masks are joined to one. */
struct masks {
	int64_t t, s;           /* queries, keys */
	bool causal;
	int n;
	ValId v[8];             /* bool: true keeps; float: added */
	/* masks that replace scores by a finite number: a query without keys
	 * attends to all keys equally */
	int nfinite;
	ValId finite[8];        /* bool: true keeps the score */
	double hidden;          /* the finite number */
	bool may_mask_all;      /* queries without keys may exist */
	bool mixed;             /* ... and do not attend equally */
	bool finite_known;      /* a constant mask turned into a flag or bool
	                         * added a finite number */
};
/* Add mask v; false if v cannot be a mask (trained, or too many masks). */
bool masks_add(struct rewrite *, struct masks *, ValId v);
/* where(c, scores, hidden): queries see keys where c is true. */
bool masks_add_where(struct rewrite *, struct masks *, ValId c, bool keep,
                     double hidden);
/* Queries that see a key, for masks with `may_mask_all`: bool of rank 4, last
 * extent 1; 0 after a diagnostic. */
ValId masks_attended(struct rewrite *, const struct masks *);
/* All masks joined to rank 4, 0 if none remains; *ok: no failure. */
ValId masks_join(struct rewrite *, const struct masks *, bool *ok);

/* match_experts.c: refuse large copies of experts' matrices that remain, and
 * warn of other large copies of a parameter; false after a diagnostic. */
bool experts_check_copies(Pass *, const Graph *);

/* canon.c: run all of canon's rules on a forward graph. */
bool canon_run(Pass *, Graph *);

#endif
