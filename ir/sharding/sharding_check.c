/* The placements of a sharded graph: filled in where a pass made new values,
 * and verified.
 *
 * Between whole values the difference of Replicate and ReplicatePartial is one
 * about adjoints, so it counts for values through which a gradient passes; of
 * others (integers, constants, what does not depend on a trained parameter) and
 * in backward itself both mean whole.  An adjoint has the dual placement of its
 * value, and a gradient is complete before it is applied: together with the
 * placements that follow node by node this makes a forgotten, doubled or
 * exchanged collective a fault (spmd_types by Yang et al. has the same
 * algebra).
 */
#include "ir/sharding/sharding.h"

#include <stdio.h>
#include <string.h>

struct check {
	const Graph *g;
	Diag *d;
	bool *grad;                     /* by value: a gradient passes */
	int faults;
	Arena *tmp;
};

/* The placement that the adjoint of a value in placement s has. */
static Placement
dual_placement(const Placement *s)
{
	if (s->kind == PLACEMENT_SHARD)
		return *s;
	return (Placement){ .kind = s->kind == PLACEMENT_REPLICATE_PARTIAL
	                ? PLACEMENT_PARTIAL : PLACEMENT_REPLICATE };
}

static bool
runs_forward(const Node *n)
{
	return n->phase == PH_FORWARD || n->phase == PH_RECOMPUTE;
}

static const char *const grad_of_op[OP_COUNT] = {
	[OP_NONE] = "zero",
#define OP(id, text, sig, attr, rules, emit) [OP_##id] = rules,
#define RULES(shape, eval, dynamic, cost, grad, shard) #grad
#include "ir/ops.h"
};

/* Loops hold ops that have passed autodiff. */
static bool
is_differentiable_op(const Node *n)
{
	return n->body || op_info[n->op].flags & F_COMM
		|| (strcmp(grad_of_op[n->op], "zero") != 0
		    && strcmp(grad_of_op[n->op], "none") != 0);
}

bool *
sharding_requires_grad(const Graph *g, Arena *arena)
{
	bool *grad = arena_array(arena, g->nval, sizeof *grad);

	FOR_VALS (v, g)
		grad[val_id(g, v)] = v->kind == V_PARAM && !v->frozen
			&& dtype_info[v->dt].cls == 'f';
	FOR_NODES (n, g) {
		bool any = false;

		if (!runs_forward(n) || n->count_pass
		    || !is_differentiable_op(n))
			continue;
		for (int k = 0; k < n->nin; k++)
			any |= grad[n->in[k]];
		any |= op_info[n->op].flags & F_STAGES && n->nin == 0
			&& n->attr.RECEIVE.adjoint;
		for (int k = 0; k < n->nout; k++)
			grad[n->out[k]] = any && n->out[k]
				&& dtype_info[g->val[n->out[k]].dt].cls == 'f';
	}
	grad[0] = false;
	return grad;
}

/* Results that are whole are ReplicatePartial if an operand with a gradient
 * is. */
static PlacementKind
whole_kind(const Graph *g, const Node *n, const bool *grad)
{
	if (!runs_forward(n))
		return PLACEMENT_REPLICATE;
	for (int k = 0; k < n->nin; k++)
		if (grad[n->in[k]]
		    && g->val[n->in[k]].placement.kind
		            == PLACEMENT_REPLICATE_PARTIAL)
			return PLACEMENT_REPLICATE_PARTIAL;
	return PLACEMENT_REPLICATE;
}

/* Results that have no placement yet get the inferred one. */
static void
assign_placement(Graph *g, const Node *n, const Placement *out,
                 const bool *grad)
{
	PlacementKind whole = whole_kind(g, n, grad);

	for (int k = 0; k < n->nout; k++) {
		Val *v = &g->val[n->out[k]];

		if (!n->out[k] || v->placement.kind != PLACEMENT_REPLICATE)
			continue;
		if (!placement_is_replicated(&out[k]))
			v->placement = out[k];
		else if (sharding_is_comm(n))
			v->placement.kind = runs_forward(n) ? out[k].kind
			              : PLACEMENT_REPLICATE;
		else if (out[k].kind == PLACEMENT_REPLICATE_PARTIAL)
			v->placement.kind = whole;
	}
}

/* ---- faults ---- */

static void
placement_text(char *buf, size_t size, const Placement *s)
{
	int at;

	if (s->kind != PLACEMENT_SHARD) {
		snprintf(buf, size, "%s", s->kind == PLACEMENT_PARTIAL
		         ? "partial" : "replicated");
		return;
	}
	at = snprintf(buf, size, "sharded along dim %d of extent", s->axis);
	for (int i = 0; i < placement_listed(s) && at < (int)size; i++)
		at += snprintf(buf + at, size - (size_t)at, " %lld",
		               (long long)s->segment[i]);
}

static void
report_placement(struct check *c, const Node *n, const Val *v, const char *what,
                 const Placement *want)
{
	char a[100], b[100];

	c->faults++;
	placement_text(a, sizeof a, &v->placement);
	placement_text(b, sizeof b, want);
	diag_error(c->d, "%s%s%svalue %s: %s: expected %s, found %s",
	           n ? "node " : "", n ? op_info[n->op].text : "",
	           n ? ", " : "", v->name, what, b, a);
}

/* Whether a stated placement is the one inferred; whole is whole, and so is one
 * shard for all ranks, whatever dim it is said of. */
static bool
same_placement(const struct check *c, const Placement *stated,
               const Placement *inferred)
{
	Placement a = *stated, b = *inferred;

	if (placement_is_replicated(&a) && placement_is_replicated(&b))
		return true;
	if (a.kind == PLACEMENT_SHARD && b.kind == PLACEMENT_SHARD
	    && a.replication == b.replication && a.replication == c->g->ranks)
		return true;
	a.first_axis = a.axis;
	b.first_axis = b.axis;
	return placement_eq(&a, &b);
}

static void
report_side(struct check *c, const Node *n, const Val *v, const char *what)
{
	c->faults++;
	diag_error(c->d, "node %s, value %s: %s", op_info[n->op].text, v->name,
	           what);
}

/* Replicate and ReplicatePartial of values through which a gradient passes. */
static void
check_sides(struct check *c, const Node *n)
{
	const Graph *g = c->g;
	Attr attr = n->attr;
	const int64_t *from = attr_int_of(n->op, &attr, "from");
	bool sharded = false;
	int seen[2] = { 0, 0 };
	PlacementKind out = PLACEMENT_REPLICATE;
	bool any_out = false;

	for (int k = 0; k < n->nin; k++) {
		const Placement *s = &g->val[n->in[k]].placement;

		sharded |= n->in[k] && !placement_is_replicated(s);
		if (c->grad[n->in[k]] && placement_is_replicated(s))
			seen[s->kind == PLACEMENT_REPLICATE_PARTIAL]++;
	}
	for (int k = 0; k < n->nout; k++) {
		const Val *v = &g->val[n->out[k]];

		if (!n->out[k] || !c->grad[n->out[k]])
			continue;
		if (!placement_is_replicated(&v->placement)) {
			sharded = true;
			continue;
		}
		any_out = true;
		out = v->placement.kind;
	}
	if (sharding_is_comm(n)) {
		if (seen[!(from && *from)])
			report_side(c, n, &g->val[n->out[0]], "the operand has "
			            "the wrong one of Replicate and "
			            "ReplicatePartial for this op");
		return;
	}
	if (sharded && seen[0])
		report_side(c, n, &g->val[n->out[0]],
		            "an operand of a sharded op has placement I, so "
		            "its gradient would be incomplete: a replicate op "
		            "is missing");
	if (!sharded && seen[0] && seen[1])
		report_side(c, n, &g->val[n->out[0]], "operands have different "
		            "placements I and R");
	if (!sharded && any_out && (seen[0] || seen[1])
	    && (out == PLACEMENT_REPLICATE_PARTIAL) != (seen[1] > 0))
		report_side(c, n, &g->val[n->out[0]],
		            "the result and the operands have different "
		            "placements (I and R)");
}

/* `unlabelled`: the graph, if its values are to get placements on the way. */
static void
check_node_placement(struct check *c, const Node *n, Graph *unlabelled)
{
	Placement *out = arena_array(c->tmp, (size_t)n->nout + 1, sizeof *out);
	char why[SHARDING_WHY];

	if (!sharding_infer(c->g, n, out, why)) {
		c->faults++;
		diag_error(c->d, "node %s (%s): %s", op_info[n->op].text,
		           node_label(c->g, n) ? node_label(c->g, n) : "?",
		           why);
		return;
	}
	if (unlabelled)
		assign_placement(unlabelled, n, out, c->grad);
	for (int k = 0; k < n->nout; k++) {
		const Val *v = &c->g->val[n->out[k]];

		if (!n->out[k])
			continue;
		if (!same_placement(c, &v->placement, &out[k]))
			report_placement(c, n, v, "placement does not follow "
				"from the operands", &out[k]);
		else if (runs_forward(n) && c->grad[n->out[k]]
		         && sharding_is_comm(n)
		         && placement_is_replicated(&out[k])
		         && v->placement.kind != out[k].kind)
			report_placement(c, n, v,
			                 "Replicate or ReplicatePartial "
			                 "is not the one "
			                 "that the op produces", &out[k]);
	}
	if (runs_forward(n))
		check_sides(c, n);
}

/* ---- values ---- */

/* Gradients of micro-batches so far; nobody reads them but the update. */
static bool
is_accumulator(const Val *v)
{
	return v->kind == V_STATE && strcmp(v->state, "grad") == 0;
}

/* Of what is a replica's shard, as if replicas had all of it. */
static Placement
whole_placement(const Val *v)
{
	return v->shard && v->placement.kind == PLACEMENT_SHARD
		? v->shard->placement : v->placement;
}

static void
check_val_placement(struct check *c, const Val *v)
{
	const Graph *g = c->g;
	Shape whole = placement_whole(&v->placement, &v->shape), local;
	Placement dual;

	if (v->kind == V_TEMP && !v->def)
		return;
	if (!placement_local(&v->placement, g->ranks, &whole, &local)
	    || !shape_eq(&local, &v->shape)) {
		c->faults++;
		diag_error(c->d, "value %s: the shape does not match its "
		           "sharding", v->name);
	}
	if ((v->kind == V_INPUT || v->kind == V_CONST)
	    && !placement_is_replicated(&v->placement))
		report_placement(c, NULL, v, "inputs and constants must be "
		                 "replicated",
		                 &(Placement){ .kind = PLACEMENT_REPLICATE });
	if (v->kind == V_PARAM && v->placement.kind == PLACEMENT_SHARD
	    && v->placement.replication != 1)
		report_placement(c, NULL, v,
		                 "a shard of a parameter must belong to one "
		                 "rank",
		                 &(Placement){ .kind = PLACEMENT_REPLICATE });
	if ((v->output || v->kind != V_TEMP)
	    && v->placement.kind == PLACEMENT_PARTIAL
	    && !is_accumulator(v))
		report_placement(c, NULL, v, "inputs, parameters and outputs "
		                 "cannot be partial sums",
		                 &(Placement){ .kind = PLACEMENT_REPLICATE });
	if (v->kind == V_TEMP && v->grad_of && !v->param) {
		dual = whole_placement(&g->val[v->grad_of]);
		dual = dual_placement(&dual);
		if (!same_placement(c, &v->placement, &dual))
			report_placement(c, NULL, v,
			                 "the gradient's placement must be the "
			                 "dual of its value's", &dual);
	}
	if (v->kind == V_TEMP && v->param) {
		dual = whole_placement(&g->val[v->param]);
		dual = dual_placement(&dual);
		if (g->props & P_UPD && dual.kind == PLACEMENT_PARTIAL)
			dual.kind = PLACEMENT_REPLICATE;
		if (v->shard && !v->shard->rows)
			dual = placement_of_shard(&dual, g->ranks, &v->shape);
		if (!same_placement(c, &v->placement, &dual))
			report_placement(c, NULL, v,
			                 "the gradient must be complete before "
			                 "the update", &dual);
	}
}

static bool
check_graph_placements(const Graph *g, Graph *unlabelled, Diag *d)
{
	struct check c = { .g = g, .d = d, .tmp = arena_new() };

	c.grad = sharding_requires_grad(g, c.tmp);
	FOR_NODES (n, g)
		check_node_placement(&c, n, unlabelled);
	FOR_VALS (v, g)
		check_val_placement(&c, v);
	if (g->loss && g->val[g->loss].placement.kind != PLACEMENT_REPLICATE)
		report_placement(&c, NULL, &g->val[g->loss],
		                 "the loss must be complete on every rank",
		                 &(Placement){ .kind = PLACEMENT_REPLICATE });
	c.faults += sharding_check_norm(g, d, c.tmp);
	arena_free(c.tmp);
	return !c.faults;
}

bool
sharding_verify(const Graph *g, Diag *d)
{
	return check_graph_placements(g, NULL, d);
}

bool
sharding_fill_placements(Graph *g, Diag *d)
{
	return check_graph_placements(g, g, d);
}
