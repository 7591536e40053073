/* The loss of a data set as a formula over its batches.
 *
 * what    batches are to the data what replicas are to a batch: what pass
 *         replicate adds up over replicas is added up over batches.  So the
 *         loss is a formula of sums and means over samples, and of what does
 *         not depend on samples
 * method  a copy of the graph is partitioned; placements tell sums from what
 *         samples have for themselves.  From the loss up, what is linear in
 *         sums, or in means, is one operand of the formula, and the rest are
 *         scalar ops
 * gives   the formula; its operands are outputs
 * refuses what samples need of others before they are summed, and formulas of
 *         more than scalars; that is no error: the loss of the data then
 *         depends on how it is divided into batches
 */
#include "passes/evaluation/evaluation.h"

#include "ir/sharding/sharding.h"
#include "passes/data_parallel/data_parallel.h"

#include <string.h>

/* What a value is over the batches of a data set. */
enum sum_kind {
	MIXED,                          /* else */
	INVARIANT,                      /* no samples' */
	PER_SAMPLE,                     /* of each sample alone */
	SAMPLE_SUM, SAMPLE_MEAN,        /* linear in such, over samples */
	SHARE                           /* 1 / replicas */
};

struct formula_search {
	Pass *p;
	Graph *g;                       /* of the whole loss */
	const Graph *replica;
	enum sum_kind *kind;            /* by value of `replica` */
	ValId at[FORMULA_TERMS];          /* by term: its value */
	struct loss_formula t;
};

/* ---- kinds ---- */

/* Whether it is a replica's mean of samples, before it is scaled. */
static bool
is_sample_mean(const struct formula_search *w, const Node *n)
{
	return n->op == OP_REDUCE_MEAN && w->kind[n->in[0]] == PER_SAMPLE;
}

/* Of an operand of a sum over replicas. */
static enum sum_kind
kind_of_summand(const struct formula_search *w, ValId v)
{
	const Val *x = &w->replica->val[v];
	enum sum_kind is = v ? w->kind[v] : INVARIANT;

	if (is == SHARE
	    || (x->def && is_sample_mean(w, &w->replica->node[x->def])))
		return SAMPLE_MEAN;
	return is == INVARIANT || x->placement.kind == PLACEMENT_PARTIAL
		? is
		: MIXED;
}

/* Of a sum over replicas, linear in its operands that are sums. */
static enum sum_kind
kind_of_sum(const struct formula_search *w, const Node *n)
{
	enum sum_kind found = INVARIANT;

	for (int k = 0; k < n->nin; k++) {
		enum sum_kind is = kind_of_summand(w, n->in[k]);

		if (is == INVARIANT)
			continue;
		if (found != INVARIANT && is != found)
			return MIXED;
		found = is;
	}
	return found;
}

/* Of what has samples among its operands: it has them itself, or is their
 * sum. */
static enum sum_kind
kind_of_rows(const struct formula_search *w, const Node *n,
             PlacementKind placement)
{
	for (int k = 0; k < n->nin; k++)
		if (n->in[k] && w->kind[n->in[k]] > PER_SAMPLE)
			return MIXED;
	if (placement == PLACEMENT_SHARD)
		return PER_SAMPLE;
	return placement == PLACEMENT_PARTIAL ? SAMPLE_SUM
	     : is_sample_mean(w, n) ? SAMPLE_MEAN : MIXED;
}

static enum sum_kind
kind_of_value(const struct formula_search *w, const Node *n, ValId y)
{
	PlacementKind placement = w->replica->val[y].placement.kind;
	bool rows = false, same = true;

	if (n->op == OP_SHARE)
		return SHARE;
	if (n->op == OP_EXTENT)
		return SAMPLE_SUM;
	if (n->op == OP_ALL_REDUCE
	    || (n->op == OP_CAST && placement == PLACEMENT_REPLICATE_PARTIAL
	        && !sharding_is_rounding(w->replica, n)))
		return w->kind[n->in[0]];
	for (int k = 0; k < n->nin; k++) {
		enum sum_kind is = n->in[k] ? w->kind[n->in[k]] : INVARIANT;

		if (!is)
			return MIXED;
		rows |= is == PER_SAMPLE;
		same &= is == INVARIANT;
	}
	return same ? INVARIANT : rows ? kind_of_rows(w, n, placement)
	       : placement == PLACEMENT_PARTIAL ? kind_of_sum(w, n) : MIXED;
}

static void
find_kinds(struct formula_search *w)
{
	const Graph *g = w->replica;

	w->kind = arena_array(w->p->scratch, g->nval, sizeof *w->kind);
	for (ValId v = 1; v < g->nval; v++)
		w->kind[v] = g->val[v].placement.kind == PLACEMENT_SHARD
			? PER_SAMPLE
			: INVARIANT;
	FOR_NODES (n, g)
		for (int k = 0; k < n->nout; k++)
			if (n->out[k])
				w->kind[n->out[k]] = kind_of_value(w, n,
				                                   n->out[k]);
}

/* ---- the formula ---- */

static bool
set_batch_dependence(struct formula_search *w, const char *why)
{
	w->t.n = 0;
	w->t.by_batch = arena_printf(w->p->keep, "%s", why);
	return false;
}

static bool
append_term(struct formula_search *w, enum formula_op op, ValId v,
            double number)
{
	if (w->t.n == FORMULA_TERMS)
		return set_batch_dependence(w, "the loss is a formula of too "
		                            "many sums");
	w->at[w->t.n] = v;
	w->t.term[w->t.n++] = (struct formula_term){ .op = op,
	                                           .number = number };
	return true;
}

/* Of one sum, or number; false: it is no scalar of the whole graph. */
static bool
is_term_operand(const struct formula_search *w, ValId v)
{
	const Val *x = &w->replica->val[v];

	return (w->kind[v] == INVARIANT || w->kind[v] == SAMPLE_SUM
	        || w->kind[v] == SAMPLE_MEAN)
		&& v < w->g->nval && val_nelem(x) == 1
		&& strchr("fi", dtype_info[x->dt].cls);
}

static bool
append_operand(struct formula_search *w, ValId v)
{
	enum sum_kind is = w->kind[v];
	double x;

	if (val_splat(w->replica, v, &x))
		return append_term(w, FORMULA_NUMBER, 0, x);
	return append_term(w, is == SAMPLE_SUM ? FORMULA_SUM : is == SAMPLE_MEAN
	                   ? FORMULA_MEAN : FORMULA_SAME, v, 0);
}

static bool
report_no_scalar(struct formula_search *w, const Node *n)
{
	const Graph *g = w->replica;

	if (!n)
		return set_batch_dependence(w, "the loss is not a formula of "
		                            "sums over samples");
	return set_batch_dependence(w, arena_printf(w->p->scratch, "node '%s' "
	                            "(%s) mixes samples of a batch other than "
	                            "by a sum or mean", node_label(g, n),
	                            node_type(g, n)));
}

/* The lesser or greater of two, written as the choice of one by comparing
 * them: so are bounds of a clamp, which get no gradient. */
static enum formula_op
min_max_of_where(const Graph *g, const Node *n, ValId of[2])
{
	const Val *by = n->op == OP_WHERE ? &g->val[n->in[0]] : NULL;
	const Node *c = by && by->def ? &g->node[by->def] : NULL;
	bool less = c && (c->op == OP_LT || c->op == OP_LE);

	if (!less && !(c && (c->op == OP_GT || c->op == OP_GE)))
		return FORMULA_OPS;
	of[0] = n->in[1];
	of[1] = n->in[2];
	if (of[0] == c->in[0] && of[1] == c->in[1])
		return less ? FORMULA_MIN : FORMULA_MAX;
	if (of[0] == c->in[1] && of[1] == c->in[0])
		return less ? FORMULA_MAX : FORMULA_MIN;
	return FORMULA_OPS;
}

static bool
append_formula(struct formula_search *w, ValId v)
{
	const Graph *g = w->replica;
	const Node *n = g->val[v].def ? &g->node[g->val[v].def] : NULL;
	enum formula_op as;
	ValId of[2];

	if (is_term_operand(w, v))
		return append_operand(w, v);
	if (!n || val_nelem(&g->val[v]) != 1)
		return report_no_scalar(w, n);
	as = min_max_of_where(g, n, of);
	if (as != FORMULA_OPS)
		return append_formula(w, of[0]) && append_formula(w, of[1])
			&& append_term(w, as, 0, 0);
	if (!formula_op_of(n->op, &as) || sharding_is_rounding(g, n))
		return report_no_scalar(w, n);
	/* all replicas' shares of what is whole are the whole */
	for (int k = 0; k < n->nin && n->nin == 2; k++)
		if (w->kind[n->in[k]] == SHARE)
			return append_formula(w, n->in[1 - k]);
	for (int k = 0; k < n->nin; k++)
		if (!append_formula(w, n->in[k]))
			return false;
	return as == FORMULA_OPS || append_term(w, as, 0, 0);
}

/* ---- outputs of terms ---- */

/* Operands as outputs, in float32 at least. */
static bool
add_term_outputs(struct formula_search *w)
{
	Graph *g = w->g;
	const Attr a = attr_cast(DT_F32);

	for (int i = 0; i < w->t.n; i++) {
		ValId v = w->at[i];

		if (!v || v == g->loss)
			continue;
		if (g->val[v].kind != V_TEMP || dtype_is_half(g->val[v].dt))
			v = emit_op(g, w->p->diag, OP_CAST, 1, &v, &a,
			            g->val[v].def);
		if (!v)
			return false;
		if (!g->val[v].output)
			val_rename(g, v, arena_printf(w->p->scratch,
			                              EVAL_TERM "%d", i));
		g->val[v].output = true;
		w->t.term[i].output = arena_printf(w->p->keep, "%s",
		                                   g->val[v].name);
	}
	return true;
}

bool
loss_formula_find(Pass *p, Graph *g, struct loss_formula *t)
{
	struct formula_search w = { .p = p, .g = g };
	const char *why = NULL;
	Graph *replica = g->loss
		? dp_partition_copy(p, g, g->loss, DP_SUMS, &why)
		: NULL;
	bool ok = true;

	w.replica = replica;
	if (replica) {
		find_kinds(&w);
		ok = !append_formula(&w, replica->loss) || add_term_outputs(&w);
	} else if (why) {
		set_batch_dependence(&w, why);
	}
	graph_free(replica);
	*t = w.t;
	return ok;
}

/* ---- outputs ---- */

/* Whether the partitioned value depends on what is added up over samples. */
static bool
depends_on_sum(const Graph *g, ValId v, Arena *scratch)
{
	bool *in = arena_array(scratch, g->nnode, sizeof *in);

	in[g->val[v].def] = true;
	for (NodeId id = g->nnode; --id > 0; ) {
		const Node *n = &g->node[id];

		if (in[id] && n->op == OP_ALL_REDUCE)
			return true;
		for (int k = 0; in[id] && k < n->nin; k++)
			in[g->val[n->in[k]].def] = true;
	}
	return false;
}

/* As the partitioned copy has them. */
static struct output_rows
partitioned_rows(Pass *p, const Graph *g, ValId v)
{
	const char *why = NULL;
	Graph *replica = dp_partition_copy(p, g, v, DP_SUMS, &why);
	struct output_rows row = { .batch = -1 };

	if (replica) {
		const Placement *s = &replica->val[v].placement;
		bool apart = s->kind == PLACEMENT_SHARD
			&& s->first_axis == s->axis && s->nsegment == 1;

		row.batch = apart ? s->axis + 1
		          : s->kind == PLACEMENT_SHARD ? -1 : 0;
		row.rows = row.batch != 1 ? ROWS_NONE
			: depends_on_sum(replica, v, p->scratch) ? ROWS_UNKNOWN
			: ROWS_OWN;
	}
	graph_free(replica);
	return row;
}

struct output_rows
loss_formula_find_rows(Pass *p, const Graph *g, ValId output)
{
	const Val *x = graph_batch_input(g), *y = &g->val[output];
	const struct output_rows *known = dp_other_batch_rows(p, y);

	if (known)
		return *known;
	/* of one sample any dim of 1 may be that of the samples */
	if (x && x->shape.dim[0] == 1
	    && (!y->shape.rank || y->shape.dim[0] != 1))
		return (struct output_rows){ .batch = -1 };
	return partitioned_rows(p, g, output);
}

void
loss_formula_of_loss_alone(struct loss_formula *t)
{
	if (t->n == 1 && !t->term[0].output
	    && t->term[0].op != FORMULA_NUMBER)
		return;
	if (t->n)
		t->by_batch = "the library cannot evaluate, so the divisor of "
		"the loss is not known";
	t->n = 0;
}
