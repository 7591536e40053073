/* Canonical form: one form for constructs that exporters write in many.
 *
 * Local rewriting by structure, never by name.  Rules of the match_*.c files
 * are tried on every node in order of execution until none applies (match.c).
 * They clean up (views of views, expands in front of ops that broadcast,
 * equal nodes computed once), and recognise: linear layers as 2-D products
 * with bias, LayerNorm, RMSNorm, GELU, SiLU, cross entropy, attention, products
 * of experts.  This runs before autodiff, because a fused op saves less for the
 * backward pass than its parts.
 *
 * If nothing is trained, running statistics are not updated, and their new
 * values are ordinary values.
 *
 * Inactive dropout is removed.  Other dropouts get random streams, numbered in
 * order of execution, so that masks do not depend on later passes.
 *
 * needs  P_STATIC
 * gives  P_CANON
 * cost   O(N) per sweep; the number of sweeps is bounded, three or four in
 *        practice.  Constants are compared byte by byte.
 */
#include "passes/canon/match.h"
#include "runtime/support/hash.h"

#include <string.h>

/* ---- equal nodes ---- */

static uint64_t
hash_node(const struct rewrite *w, NodeId n)
{
	const Node *node = &w->g->node[n];
	uint64_t h = hash_number(node->op, (uint64_t)node->phase);

	for (int i = 0; i < node->nin; i++)
		h = hash_number(h, rw_in(w, n, i));
	return h;
}

static bool
same_node(const struct rewrite *w, NodeId a, NodeId b)
{
	const Node *x = &w->g->node[a], *y = &w->g->node[b];

	if (x->op != y->op || x->phase != y->phase
	    || x->count_pass != y->count_pass || x->nin != y->nin
	    || !attr_equal(x->op, &x->attr, &y->attr) || !x->out[0]
	    || !y->out[0]
	    || !shape_eq(rw_shape(w, x->out[0]), rw_shape(w, y->out[0]))
	    || rw_dt(w, x->out[0]) != rw_dt(w, y->out[0]))
		return false;
	for (int i = 0; i < x->nin; i++)
		if (rw_in(w, a, i) != rw_in(w, b, i))
			return false;
	return true;
}

/* Replace a node by an earlier equal one. */
static bool
same_as_before(struct rewrite *w, NodeId root)
{
	const Node *node = &w->g->node[root];
	uint64_t hash = hash_node(w, root);
	NodeId first;

	if (node->nout != 1 || (op_info[node->op].flags & F_RNG))
		return false;
	for (size_t at = 0; (first = table_next(&w->cse, hash, &at));) {
		if (w->dead[first] || !same_node(w, first, root))
			continue;
		w->origin_node = first;
		return rw_replace(w, root, rw_out(w, first));
	}
	table_add(&w->cse, w->mem, hash, root);
	return false;
}

/* ---- dropout ---- */

/* Where both names are outputs, neither can take the other's place. */
static bool
no_dropout(struct rewrite *w, NodeId root)
{
	ValId x = rw_in(w, root, 0);

	if (w->p->opt->dropout
	    && w->g->node[root].attr.DROPOUT.ratio > 0)
		return false;
	return rw_replace(w, root, x)
		|| rw_replace(w, root, rw_unary(w, OP_COPY, x));
}

/* ---- running statistics ---- */

/* In place the update would be skipped, and the result be the old statistic. */
static bool
no_update(struct rewrite *w, NodeId root)
{
	ValId stat = rw_in(w, root, 0), new = rw_in(w, root, 1);
	float keep = (float)w->g->node[root].attr.BN_UPDATE.momentum;

	if (!w->p->opt->forward_only)
		return false;
	new = rw_binary(w, OP_MUL, new, rw_const_like(w, new, 1.0f - keep));
	stat = rw_binary(w, OP_MUL, stat, rw_const_like(w, stat, keep));
	return rw_replace(w, root, rw_binary(w, OP_ADD, stat, new));
}

/* ---- random numbers ---- */

static void
number_streams(Pass *p, Graph *g)
{
	int drawn = 0;

	FOR_NODES (n, g) {
		int64_t *stream;

		if (!(op_info[n->op].flags & F_RNG) || n->phase != PH_FORWARD)
			continue;
		if (n->op == OP_ATTENTION && !p->opt->dropout)
			n->attr.ATTENTION.ratio = 0;
		if (n->op == OP_ATTENTION && !(n->attr.ATTENTION.ratio > 0))
			continue;
		drawn += n->op == OP_RANDOM || n->op == OP_BERNOULLI;
		stream = attr_int_of(n->op, &n->attr, "stream");
		if (*stream == 0)
			*stream = ++g->nstream;
	}
	if (drawn > 0 && !p->opt->dropout)
		diag_warn(p->diag, "%d ops still draw random numbers: "
		          "--dropout off removes Dropout, but not dropout that "
		          "the export wrote as random numbers and a "
		          "comparison; to remove it, export the model in "
		          "evaluation mode: model.eval()", drawn);
}

/* ---- equal constants ---- */

static uint64_t
hash_const(const Val *v, int64_t nbytes)
{
	const unsigned char *data = v->data;
	uint64_t h = hash_number((uint64_t)v->dt, (uint64_t)v->shape.rank);
	int64_t i = 0;

	for (; i + 8 <= nbytes; i += 8) {
		uint64_t x;

		memcpy(&x, data + i, 8);
		h = hash_number(h, x);
	}
	for (; i < nbytes; i++)
		h = hash_number(h, data[i]);
	return h;
}

/* Merge constants with equal contents, so that nodes that differ only in them
 * become equal and masks are stored once. */
static void
merge_constants(Pass *p, Graph *g)
{
	ValId *same = arena_array(p->scratch, g->nval, sizeof *same), first;
	struct table seen = { 0 };

	FOR_VALS (v, g) {
		int64_t n = val_data_bytes(v);
		uint64_t hash;

		if (!val_is_const(v) || v->output)
			continue;
		hash = hash_const(v, n);
		for (size_t at = 0; (first = table_next(&seen, hash, &at));) {
			const Val *u = &g->val[first];

			if (u->dt == v->dt && shape_eq(&u->shape, &v->shape)
			    && !memcmp(u->data, v->data, (size_t)n))
				break;
		}
		if (first)
			same[val_id(g, v)] = first;
		else
			table_add(&seen, p->scratch, hash, val_id(g, v));
	}
	FOR_NODES (n, g)
		for (int i = 0; i < n->nin; i++)
			if (same[n->in[i]])
				n->in[i] = same[n->in[i]];
}

/* ---- names ---- */

/* Name the statistics of recognised ops after the result: ONNX has no names for
 * them. */
static void
name_statistics(Graph *g)
{
	static const struct {
		Op op;
		const char *name[2];
	} names[] = {
		{ OP_LAYERNORM, { "mean", "rstd" } },
		{ OP_RMSNORM, { "rstd", NULL } },
		{ OP_SCE, { "lse", "denom" } },
		{ OP_NLL, { "denom", NULL } },
		{ OP_ATTENTION, { "lse", NULL } },
	};

	FOR_NODES (n, g)
		for (size_t i = 0; i < sizeof names / sizeof *names; i++)
			for (int k = 1; k < n->nout; k++) {
				ValId v = n->out[k];

				if (n->op != names[i].op || !v || !n->out[0]
				    || g->val[v].onnx || g->val[v].output)
					continue;
				val_rename(g, v, arena_printf(g->arena,
					"%s.%s", g->val[n->out[0]].name,
					names[i].name[k - 1]));
			}
}

/* ---- the pass ---- */

static const struct rule rules[] = {
	{ OP_NONE, same_as_before },
	{ OP_DROPOUT, no_dropout },
	{ OP_BN_UPDATE, no_update },
#define ROW(op, name) { OP_##op, match_##name },
	MATCHERS(ROW)
#undef ROW
	{ OP_NONE, NULL },
};

bool
canon_run(Pass *p, Graph *g)
{
	struct rewrite w;

	merge_constants(p, g);
	rw_init(&w, p, g);
	if (!rw_run(&w, rules))
		return false;
	merge_constants(p, g);
	number_streams(p, g);
	graph_dce(g);
	name_statistics(g);
	return true;
}

bool
pass_canon(Pass *p, Graph *g)
{
	if (!canon_run(p, g))
		return false;
	return experts_check_copies(p, g);
}
