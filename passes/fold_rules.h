/* What the rules of pass fold share: fold_static.c, fold_move.c, fold_arith.c
 * and fold_rules.c, which has the table. */
#ifndef PASSES_FOLD_RULES_H
#define PASSES_FOLD_RULES_H

#include "passes/fold.h"

/* What becomes of a node that could not be computed. */
typedef enum step Simplify(struct fold *, NodeId);

/* STEP_FAIL unless v. */
#define TRY(v) do { if (!(v)) return STEP_FAIL; } while (0)

static inline const Val *
in_val(const struct fold *f, const Node *n, int i)
{
	return &f->g->val[n->in[i]];
}

static inline Val *
out_val(const struct fold *f, const Node *n)
{
	return &f->g->val[n->out[0]];
}

static inline bool
has_operand(const Node *n, int i)
{
	return i < n->nin && n->in[i] != 0;
}

/* All operands from first on are absent or constant. */
static inline bool
are_const(const struct fold *f, const Node *n, int first)
{
	for (int i = first; i < n->nin; i++)
		if (n->in[i] && !val_is_const(in_val(f, n, i)))
			return false;
	return true;
}

static inline bool
complain(struct fold *f, const Node *n, const char *what)
{
	return diag_at(f->p->diag, node_name(f->g, n), node_type(f->g, n),
	               "%s", what);
}

/* fold_static.c: where piece `index` of a part begins. */
int64_t fold_part_start(const struct fold *, const Node *, int64_t dim);
/* fold_move.c */
Simplify simplify_identity, simplify_reshape, simplify_expand,
	simplify_transpose, simplify_slice, simplify_part, simplify_pad,
	simplify_tile, simplify_concat, simplify_constant_of_shape,
	simplify_gather, simplify_gather_nd, simplify_one_hot;
/* fold_arith.c */
Simplify simplify_add, simplify_sub, simplify_mul, simplify_by_one,
	simplify_logic, simplify_xor, simplify_not, simplify_where,
	simplify_cast, simplify_dropout, simplify_isnan, simplify_reduce,
	simplify_matmul;

#endif
