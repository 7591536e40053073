/* Rewriting a graph by structure: what pass canon's rules are made of.
 *
 * A rule looks at one node, the root of its pattern, and upwards from there
 * through definitions; it adds nodes with rw_emit and ends with rw_replace.
 * Rules run in sweeps over the nodes in order of execution until nothing
 * changes.  While a sweep runs, new nodes are kept in order beside the root,
 * values that were replaced are looked up through rw_in, and use
 * counts are exact; the graph itself is put in order at the end of a sweep.
 */
#ifndef PASSES_CANON_MATCH_H
#define PASSES_CANON_MATCH_H

#include "passes/pass.h"

struct rewrite {
	Pass *p;
	Graph *g;
	Arena *mem;
	ValId *fwd;             /* by value: what replaced it, 0 nothing */
	ValId *core;            /* by value: constant cut down, 0 not tried */
	uint8_t *mask;          /* by value: enum mask_kind, 0 none yet */
	struct {                /* match_mask.c: the constant made last, kept */
		ValId from, made;       /* because layers share masks */
		bool keep;
	} mask_cache;
	struct {                /* match_attention.c: the same */
		ValId made;
		int64_t t, s;
	} causal;
	int *nuse;              /* by value: readers, and 1 if an output */
	bool *trained;          /* by value: a gradient is wanted through it */
	bool *const_expr;       /* by value: a node makes it of constants alone,
	                         * see const_range.c */
	int64_t steps;          /* that const_range.c may still take */
	struct mask_scan *mask_scan;    /* mask_kind.c: memory, if any mask is
	                                 * a constant expression */
	bool warned_finite;     /* match_mask.c: of a finite constant mask */
	bool *dead;             /* by node */
	uint32_t nval, nnode;   /* entries in use of the tables above */
	size_t fwd_cap, core_cap, mask_cap, nuse_cap, trained_cap, dead_cap,
	       const_expr_cap;
	NodeId at;              /* root of the rule that runs */
	NodeId first_new;       /* nodes from here on were made by that rule */
	NodeId origin_node;     /* takes the origins of nodes that die; 0: the
	                         * last new node */
	bool failed;            /* a diagnostic was given */
	void *cse;              /* canon.c: table of the current sweep */
};

/* True if it changed the graph (or failed). */
typedef bool RuleFn(struct rewrite *, NodeId root);

struct rule {
	Op op;                  /* OP_NONE: any */
	RuleFn *fn;
};

void rw_init(struct rewrite *, Pass *, Graph *);
/* Sweep with the rules (ended by fn NULL) until nothing changes; dead nodes
 * are gone afterwards.  False after a diagnostic. */
bool rw_run(struct rewrite *, const struct rule *);

/* Make the side tables as long as the graph's arrays, after values or nodes
 * were added by other means than those below. */
void rw_grow(struct rewrite *);

/* ---- looking ---- */

/* Input i of a node; 0 if absent. */
ValId rw_in(const struct rewrite *, NodeId n, int i);
static inline ValId
rw_out(const struct rewrite *w, NodeId n)
{
	return w->g->node[n].out[0];
}
/* The node that makes v; 0 for values that no node makes. */
NodeId rw_def(const struct rewrite *, ValId v);
/* The same if it is an `op`; 0 otherwise. */
NodeId rw_is(const struct rewrite *, ValId v, Op op);
/* v has one reader and is no output. */
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
/* A constant whose elements are all equal: *x. */
bool rw_scalar(const struct rewrite *, ValId v, double *x);
/* v is `x` times a constant (mul or div nodes with splat constants, any
 * number of them): strips them and multiplies *coef.  Returns x. */
ValId rw_scaled(const struct rewrite *, ValId v, double *coef, bool single);
bool near_to(double a, double b, double tol);

/* ---- changing; 0 in gives 0 out, where a failure was told of ---- */

/* A new node beside the root; its output 0, or 0 after a diagnostic. */
ValId rw_emit(struct rewrite *, Op, int nin, const ValId *in, const Attr *);
ValId rw_reshape(struct rewrite *, ValId, const Shape *);     /* v if equal */
ValId rw_rank4(struct rewrite *, ValId);        /* extents of 1 in front */
ValId rw_transpose(struct rewrite *, ValId, const int *perm); /* v if none */
ValId rw_expand(struct rewrite *, ValId, const Shape *);      /* v if equal */
ValId rw_slice(struct rewrite *, ValId, const IntList *start,
               const IntList *step, const Shape *out);
/* v without the expands that made it; a constant that repeats itself along an
 * axis is cut down to extent 1 there. */
ValId rw_unexpanded(struct rewrite *, ValId);
ValId rw_unary(struct rewrite *, Op, ValId);
ValId rw_binary(struct rewrite *, Op, ValId, ValId);
ValId rw_const_like(struct rewrite *, ValId like, double x);  /* scalar */
/* A constant with new contents (copied into the graph). */
ValId rw_const(struct rewrite *, DType, Shape, const void *data);
void rw_set_in(struct rewrite *, NodeId, int i, ValId);
/* From now on v stands for output 0 of the root; a new v takes its name.
 * False (nothing done) if both are graph outputs. */
bool rw_replace(struct rewrite *, NodeId root, ValId v);

/* ---- const_range.c ---- */

/* Elements lo to hi - 1 along each dim of a value. */
struct box {
	int64_t lo[MAX_RANK], hi[MAX_RANK];
};
/* Whether the op of constant expressions is one. */
bool is_const_expr_op(Op);
/* The range of the elements of a constant or constant expression; false if it
 * is not known. */
bool const_expr_range(struct rewrite *, ValId, const struct box *, double *lo,
                      double *hi);

/* ---- rules by family: match_*.c ---- */

/* view: what moves data or nothing at all */
RuleFn match_reshape, match_transpose, match_expand, match_gather;
/* norm */
RuleFn match_norm, match_norm_scale, match_norm_bias;
RuleFn match_log_softmax, match_nll;
/* act */
RuleFn match_pow, match_div, match_neutral, match_gelu, match_silu;
RuleFn match_log_sigmoid;
/* attention */
RuleFn match_attention, match_attention_mask, match_attention_kv;
RuleFn match_attention_split;
/* match_mask.c: what hides keys from queries.  Constant masks that are
 * causal become a flag, those that hide nothing vanish, repeated extents are
 * dropped; the rest is joined to one mask. */
struct masks {
	int64_t t, s;           /* queries, keys */
	bool causal;
	int n;
	ValId v[8];             /* bool keeps where true, float is added */
	/* scores replaced by one finite number: a query to which no key is
	 * left sees all of them alike */
	int nfinite;
	ValId finite[8];        /* bool: scores that are left */
	double hidden;
	bool may_mask_all;      /* there may be such queries */
	bool mixed;             /* ... and what they see is not so simple */
	bool finite_known;      /* a known mask, of which a flag or a bool was
	                         * made, added a finite number */
};
/* Add mask v; false if it cannot be a mask (it is trained, or too many). */
bool masks_add(struct rewrite *, struct masks *, ValId v);
/* where(c, scores, hidden): queries see keys where c is true. */
bool masks_add_where(struct rewrite *, struct masks *, ValId c, bool keep,
                     double hidden);
/* Where some key is seen, for masks that are `may_mask_all`: bool of rank 4,
 * the last extent 1; 0 after a diagnostic. */
ValId masks_attended(struct rewrite *, const struct masks *);
/* One value of rank 4 for all, 0 if none is left; *ok: no failure. */
ValId masks_join(struct rewrite *, const struct masks *, bool *ok);
/* linear */
RuleFn match_matmul_transpose, match_linear_2d, match_linear_bias;
RuleFn match_linear_rows;
/* bags */
RuleFn match_bags;

/* canon.c: run all of canon's rules on a forward graph. */
bool canon_run(Pass *, Graph *);

#endif
