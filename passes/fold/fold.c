/* Fold: make the graph static.
 *
 * One walk in node order.  At each node it infers shapes, turns static operands
 * into attributes and makes axes non-negative.  Then it computes the node (all
 * inputs constant: eval.h), rewrites it into simpler ops, drops it (it changes
 * nothing), or keeps it.  Dims are bound, so the shape arithmetic of exporters
 * is constant, and one walk reaches the fixpoint.
 *
 * Constants above opt->fold_limit, or above their share of work, stay ops.
 * Equal ones are computed once (fold_cse.c); those that repeat become a small
 * constant and an expand (fold_sink.c).
 *
 * After the walk constants are shrunk and merged (fold_const.c), and dead nodes
 * removed.  Parameters and buffers are never folded: they change.
 *
 * needs  P_BOUND     gives  P_STATIC
 * cost   nodes + elements of folded constants, bounded by opt->fold_limit
 * refuses  shapes that depend on values of the run, results above
 *          opt->fold_limit that a shape needs, division by zero and indices
 *          out of range within constants
 */
#include "passes/fold/fold.h"
#include "passes/fold/fold_rules.h"
#include "passes/selection/selection.h"

#include <string.h>

/* ---- the walk ---- */

static void
follow_replacements(struct fold *f, Node *n)
{
	for (int i = 0; i < n->nin; i++) {
		ValId now = n->in[i] ? fold_facts(f, n->in[i])->replacement : 0;
		if (now)
			n->in[i] = now;
	}
}

/* Drop trailing absent operands. */
static void
trim_inputs(Node *n)
{
	while (n->nin > op_info[n->op].min && n->in[n->nin - 1] == 0)
		n->nin--;
}

static void
normalise_axis(const Graph *g, Node *n)
{
	int64_t *axis = attr_int_of(n->op, &n->attr, "axis");
	/* the new axis of one_hot counts in the output */
	int rank = n->op == OP_ONE_HOT || n->op == OP_SCATTER_ADD
	           ? g->val[n->out[0]].shape.rank
	           : g->val[n->nin ? n->in[0] : 0].shape.rank;

	if (axis && *axis < 0 && rank >= 0)
		*axis += rank;
}

static bool
fold_node_step(struct fold *f, NodeId id)
{
	Graph *g = f->g;
	uint32_t nval;
	ValId y;
	Node was;

	follow_replacements(f, &g->node[id]);
	trim_inputs(&g->node[id]);
	if (!fold_dynamic_operands(f, id)
	    || !shape_infer(g, f->p->diag, &g->node[id]))
		return false;
	normalise_axis(g, &g->node[id]);
	was = g->node[id];
	was.in = arena_copy(f->mem, was.in, (size_t)was.nin * sizeof *was.in);
	if (!fold_absorb(f, id) || !fold_dynamic_node(f, id, &was))
		return false;
	/* first try to compute it: a constant needs no rule */
	switch (fold_eval(f, id)) {
	case EVAL_DONE:
		/* operands may have become attributes */
		fold_facts(f, was.out[0])->from_extents |=
			fold_is_from_extents(f, &was);
		return true;
	case EVAL_FAIL:
		return false;
	case EVAL_LARGE:
	case EVAL_SKIP:
		break;
	}
	if (!fold_batch_numbers(f, id))
		return false;
	nval = g->nval;
	y = g->node[id].out[0];
	switch (fold_simplify(f, id)) {
	case STEP_GONE:
		return fold_dynamic_replaced(f, id, y, nval);
	case STEP_FAIL:
		return false;
	case STEP_KEEP:
		break;
	}
	return fold_finish(f, id);
}

/* ---- nodes that are not static ---- */

/* Write the reason why the node is not static to buf; false if it is static. */
static bool
node_fault(struct fold *f, const Node *n, char *buf, size_t size)
{
	const Graph *g = f->g;
	char why[192];

	for (int i = op_info[n->op].nstat; i < n->nin; i++)
		if (n->in[i] && !val_is_const(&g->val[n->in[i]])) {
			snprintf(buf, size, "operand %d must be constant: %s",
			         i, fold_reason(f, n->in[i], why, sizeof why));
			return true;
		}
	for (int i = 0; i < n->nin; i++)
		if (n->in[i] && !shape_known(&g->val[n->in[i]].shape))
			return false;   /* caused by an earlier node */
	if (n->nin > op_info[n->op].nstat && n->in[n->nin - 1]
	    && fold_facts(f, n->out[0])->large) {
		fold_excess(f, n->out[0], buf, size);
		return true;
	}
	if (n->op == OP_ONE_HOT && !val_is_const(&g->val[n->in[1]])) {
		snprintf(buf, size, "the depth must be constant: %s",
		         fold_reason(f, n->in[1], why, sizeof why));
		return true;
	}
	if (n->op == OP_NONZERO) {
		snprintf(buf, size, "the size of the result is known only at "
		         "run time: %s", fold_reason(f, n->in[0], why,
		                                     sizeof why));
		return true;
	}
	for (int i = 0; i < n->nout; i++)
		if (n->out[i] && !shape_known(&g->val[n->out[i]].shape)) {
			snprintf(buf, size, "the shape of '%s' is not known",
			         g->val[n->out[i]].name);
			return true;
		}
	return false;
}

static bool
check_static(struct fold *f)
{
	Graph *g = f->g;
	NodeId first[OP_COUNT] = { 0 };
	int count[OP_COUNT] = { 0 };
	bool ok = true;
	char buf[320];

	FOR_NODES (n, g)
		if (node_fault(f, n, buf, sizeof buf) && count[n->op]++ == 0)
			first[n->op] = node_id(g, n);
	FOR_NODES (n, g) {
		if (first[n->op] != node_id(g, n))
			continue;
		node_fault(f, n, buf, sizeof buf);
		ok = diag_at(f->p->diag, node_label(g, n), node_type(g, n),
		             "%s", buf);
		if (count[n->op] > 1)
			diag_more(f->p->diag, "and %d more like this",
			          count[n->op] - 1);
	}
	return ok;
}

/* ---- the pass ---- */

static bool
walk_nodes(struct fold *f)
{
	NodeId last = f->g->nnode;
	bool ok = true;

	for (NodeId i = 1; i < last; i++)
		if (!fold_node_step(f, i)) {
			ok = false;
			fold_push(f, i);
		}
	return ok;
}

/* Discard diagnostics from here on; returns those so far. */
static Diag *
mute_diag(Pass *p)
{
	Diag *was = p->diag;

	p->diag = diag_new("ckc", NULL);
	return was;
}

static void
unmute_diag(Pass *p, Diag *was)
{
	diag_free(p->diag);
	p->diag = was;
}

static void
enlarge_batch(Graph *g, int times)
{
	const Val *first = graph_batch_input(g);
	int64_t samples = first ? first->shape.dim[0] : 0;

	FOR_VALS (v, g) {
		if (v->def)
			v->shape = (Shape){ .rank = -1 };
		if (v->kind == V_INPUT && v->shape.rank > 0
		    && v->shape.dim[0] == samples)
			v->shape.dim[0] *= times;
	}
}

/* Numbers for a multiple of the samples; unknown if folding fails. */
static void
measure_batch(Pass *p, const Graph *before, int times, struct extents *e)
{
	struct fold f = { .p = p, .g = graph_clone(before),
		.mem = arena_new() };
	struct options more = *p->opt;
	const struct options *given = p->opt;
	Diag *was;

	if (!mul_ok(more.fold_limit, times, &more.fold_limit))
		more.fold_limit = INT64_MAX;
	enlarge_batch(f.g, times);
	was = mute_diag(p);
	p->opt = &more;
	walk_nodes(&f);
	p->opt = given;
	unmute_diag(p, was);
	fold_extents_read(e, f.g, times);
	arena_free(f.mem);
	graph_free(f.g);
}

/* Set f->extents if a number that data met follows from the batch size. */
static bool
find_extents(struct fold *f, const Graph *before)
{
	struct extents *e = fold_extents_new(f, before);

	for (int times = 2; e && times <= EXTENT_POINTS; times++)
		measure_batch(f->p, before, times, e);
	return e && fold_extents_matter(f, e);
}

/* Walk the original graph again, with diagnostics, and keep numbers that follow
 * from the batch size as ops. */
static bool
walk_again(struct fold *f, Graph *before)
{
	Graph was = *f->g;
	Diag *saved;
	bool ok;

	*f->g = *before;
	*before = was;
	arena_free(f->mem);
	*f = (struct fold){ .p = f->p, .g = f->g, .mem = arena_new(),
	                    .extents = f->extents };
	saved = mute_diag(f->p);
	ok = walk_nodes(f);
	unmute_diag(f->p, saved);
	/* constants have their contents */
	arena_join(f->g->arena, before->arena);
	return ok;
}

bool
pass_fold(Pass *p, Graph *g)
{
	struct fold f = { .p = p, .g = g, .mem = arena_new() };
	Graph *before = fold_reads_extents(g) ? graph_clone(g) : NULL;
	bool ok = walk_nodes(&f);

	if (ok && f.nbatch_number && find_extents(&f, before)) {
		ok = walk_again(&f, before);
		before = NULL;
	}
	graph_free(before);
	graph_reorder(g, f.order, f.norder);
	if (ok)
		fold_choose_order(&f);
	graph_dce(g);
	if (ok) {
		fold_shrink_constants(&f);
		fold_merge_constants(&f);
		graph_dce(g);
		ok = check_static(&f) && fold_dynamic_outputs(&f);
	}
	if (ok)
		fold_copy_constant_outputs(&f);
	fold_keep_contents(&f);
	arena_free(f.mem);
	return ok;
}
