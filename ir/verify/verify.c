/* The verifier: whether a graph is well formed and has the properties that it
 * claims.
 *
 * Every fault is reported; the caller knows whether a pass or the input text
 * caused it.  Faults of structure come first, because the later
 * checks follow ids; without any, types and shapes are inferred again and
 * must agree.  Linear in values and nodes.
 */
#include "ir/verify/checks.h"

#include "ir/infer/infer.h"
#include "ir/placement.h"

#include <string.h>

/* ---- structure ---- */

static void
check_operands(struct verify *c, const Node *n)
{
	const struct op_info *info = &op_info[n->op];

	if (n->nin < info->min
	    || (info->max != VARIADIC && n->nin > info->max))
		bad(c, n, NULL, "wrong number of operands: %d", n->nin);
	for (int i = 0; i < n->nin; i++) {
		const Val *v;

		if (n->in[i] >= c->g->nval) {
			bad(c, n, NULL, "operand %d: value %u does not exist",
			    i, n->in[i]);
			continue;
		}
		v = &c->g->val[n->in[i]];
		if (!n->in[i]) {
			if (i < info->min)
				bad(c, n, NULL, "operand %d is missing", i);
		} else if (!is_live(v)) {
			bad(c, n, v, "no node writes operand %d", i);
		} else if (v->def >= node_id(c->g, n)) {
			bad(c, n, v, "operand %d is read before node %u "
			    "writes it", i, v->def);
		}
	}
}

static void
check_results(struct verify *c, const Node *n)
{
	int want = op_info[n->op].nout;

	if (want != VARIADIC && n->nout != want)
		bad(c, n, NULL, "expected %d outputs, found %d", want,
		    n->nout);
	for (int i = 0; i < n->nout; i++) {
		const Val *v = c->g->val;

		if (n->out[i] >= c->g->nval) {
			bad(c, n, NULL, "output %d: value %u does not exist", i,
			    n->out[i]);
			continue;
		}
		v += n->out[i];
		if (!n->out[i])
			continue;
		if (v->kind != V_TEMP)
			bad(c, n, v, "output %d is not a computed value", i);
		else if (v->def != node_id(c->g, n) || v->result_index != i)
			bad(c, n, v, "output %d belongs to node %u, result %d",
			    i, v->def, v->result_index);
	}
}

/* Bytes between replicas follow from their number. */
static void
check_replica_group(struct verify *c, const Node *n)
{
	int64_t group = node_group(n);

	if (!(op_info[n->op].flags & F_COMM) || group == GROUP_RANKS)
		return;
	if (group == GROUP_STAGES) {
		if (c->g->stages < 2)
			bad(c, n, NULL, "is between stages, but the graph does "
			    "not declare their number");
		return;
	}
	if (c->g->replicas < 1)
		bad(c, n, NULL, "is between replicas, but the graph does not "
		    "declare their number");
	if (group < 0 || group >= GROUP_COUNT
	    || (group != GROUP_REPLICAS && !graph_group_size(c->g, group)))
		bad(c, n, NULL, "is between ranks of group %lld, which the "
		    "graph does not declare", (long long)group);
}

static void
check_replica_groups(struct verify *c, const char *word, int64_t size)
{
	const Graph *g = c->g;

	if (size && (!g->exact || g->replicas % size))
		bad(c, NULL, NULL, "%s %lld: expected a divisor of an exact "
		    "number of replicas, found replicas %lld%s", word,
		    (long long)size, (long long)g->replicas,
		    g->exact ? " exactly" : "");
}

static void
verify_node(struct verify *c, const Node *n)
{
	if (n->op <= OP_NONE || n->op >= OP_COUNT) {
		bad(c, n, NULL, "unknown op %d", n->op);
		return;
	}
	check_operands(c, n);
	check_results(c, n);
	check_replica_group(c, n);
	if (n->phase >= PH_COUNT)
		bad(c, n, NULL, "unknown phase %d", n->phase);
	if (n->of >= node_id(c->g, n))
		bad(c, n, NULL, "repeats node %u, which comes later", n->of);
	else if (n->of && c->g->node[n->of].op != n->op)
		bad(c, n, NULL, "repeats node %u, which has another op", n->of);
	for (int i = 0; i < n->ninlined; i++)
		if (n->inlined[i] == 0 || n->inlined[i] >= node_id(c->g, n)
		    || c->g->node[n->inlined[i]].op != OP_LOOP)
			bad(c, n, NULL, "inlines node %u, which is not an "
			    "earlier loop", n->inlined[i]);
	for (int i = 0; i < n->norigin; i++)
		if (n->origin[i] == 0 || n->origin[i] >= c->g->norigin)
			bad(c, n, NULL, "origin %u does not exist",
			    n->origin[i]);
		else if (i && n->origin[i] <= n->origin[i - 1])
			bad(c, n, NULL, "origins are not sorted");
	if ((n->op == OP_LOOP) != (n->body != NULL))
		bad(c, n, NULL, "expected a body for a loop, and none for "
		    "another op");
}

/* A frozen parameter, or what ranks have gathered of one. */
static bool
holds_frozen(const Graph *g, const Val *v)
{
	return v->kind == V_PARAM ? v->frozen
	     : v->kind == V_TEMP && v->def < g->nnode
	       && op_info[g->node[v->def].op].flags & (F_COMM | F_VIEW);
}

static void
verify_val(struct verify *c, const Val *v)
{
	const Graph *g = c->g;

	if (v->kind >= V_KIND_COUNT || v->dt >= DT_COUNT
	    || v->shape.rank < -1 || v->shape.rank > MAX_RANK)
		bad(c, NULL, v, "invalid kind, dtype or rank");
	if (!v->name || val_find(g, v->name) != val_id(g, v))
		bad(c, NULL, v, "missing or duplicate name");
	if (v->kind != V_TEMP && v->def)
		bad(c, NULL, v, "is not a computed value, but node %u writes "
		    "it", v->def);
	if (v->kind == V_PARAM && v->output)
		bad(c, NULL, v, "is a parameter and an output: expected a copy "
		    "of it as the output");
	if (v->def >= g->nnode)
		bad(c, NULL, v, "node %u does not exist", v->def);
	else if (v->def
	         && (v->result_index < 0
	             || v->result_index >= g->node[v->def].nout
	             || g->node[v->def].out[v->result_index] != val_id(g, v)))
		bad(c, NULL, v, "node %u does not write it", v->def);
	if (v->of >= g->nval || v->param >= g->nval || v->grad_of >= g->nval
	    || v->base >= g->nval || v->low_precision_of >= g->nval)
		bad(c, NULL, v, "refers to a value that does not exist");
	if (v->dt < DT_COUNT && val_is_blocks(v)
	    && (v->shape.rank < 1 || !holds_frozen(g, v)))
		bad(c, NULL, v, "is of type %s, but only frozen parameters "
		    "with dims may be", dtype_info[v->dt].text);
	if (v->data && val_nelem(v) < 0)
		bad(c, NULL, v, "has contents but no size");
	if (v->kind < V_KIND_COUNT && v->dt > DT_NONE && v->dt < DT_COUNT
	    && v->shape.rank <= MAX_RANK && shape_known(&v->shape)
	    && val_data_bytes(v) < 0)
		bad(c, NULL, v, "is too large");
}

/* Forward nodes come before backward and updates, those of backward before
 * phase weight; what is recomputed may stand anywhere. */
static void
check_phases(struct verify *c)
{
	bool begun = false, weight = false;

	FOR_NODES (n, c->g) {
		if (n->phase == PH_FORWARD && begun)
			bad(c, n, NULL, "forward node after the start of the "
			    "backward phase");
		if (n->phase == PH_BACKWARD && weight)
			bad(c, n, NULL, "node of the backward phase after the "
			    "start of the weight phase");
		begun |= n->phase == PH_BACKWARD || n->phase == PH_UPDATE;
		weight |= n->phase == PH_WEIGHT;
	}
}

/* Between the step and the count passes before it, and between count passes,
 * nothing but totals is left in memory. */
static void
check_count_passes(struct verify *c)
{
	const Graph *g = c->g;

	FOR_NODES (n, g)
		for (int k = 0; k < n->nin; k++) {
			const Node *from = &g->node[g->val[n->in[k]].def];
			bool later = !n->count_pass
				|| n->count_pass > from->count_pass;

			if (n->in[k] && g->val[n->in[k]].def
			    && n->count_pass != from->count_pass
			    && !(from->count_pass && later
			         && op_info[from->op].flags & F_WRITES))
				bad(c, n, &g->val[n->in[k]], "written in count "
				    "pass %d, read in count pass %d",
				    from->count_pass, n->count_pass);
		}
}

/* ---- parameters, gradients, state ---- */

/* What it would be if replicas had all of it. */
static const Shape *
whole_form(const Val *v)
{
	return v->shard ? &v->shard->shape : &v->shape;
}

/* A state may lack one of its parameter's dims. */
static bool
is_mean_state(const Val *v, const Val *param)
{
	const Shape *form = whole_form(param);

	if (v->kind != V_STATE || form->rank < 2)
		return false;
	for (int back = 1; back <= 2; back++) {
		Shape s = shape_without(*form, back);

		if (shape_eq(&v->shape, &s))
			return true;
	}
	return false;
}

static void
check_shard(struct verify *c, const Val *v)
{
	Placement cut = shard_over_replicas(v->shard);
	Shape piece;

	if (!c->g->exact)
		bad(c, NULL, v, "is a shard, but the graph does not declare "
		    "its number of replicas");
	else if (!placement_local(&cut, graph_group_size(c->g,
	                          graph_shard_group(c->g, v->shard->rows)),
	                          &v->shard->shape, &piece)
	         || !shape_eq(&piece, &v->shape))
		bad(c, NULL, v, "shape does not match the shard of a replica");
}

static bool
is_shard_of(const Val *v, const struct replica_shard *form)
{
	return v->shard && v->shard->rows == form->rows
		&& shape_eq(&v->shard->shape, &form->shape);
}

/* Node n reads v, a replica's shard: it gathers the whole of it, or makes
 * shards of the same form of shards alone. */
static void
check_shard_reader(struct verify *c, const Node *n, const Val *v)
{
	const Graph *g = c->g;

	for (int k = 0; k < n->nout; k++) {
		const Val *y = &g->val[n->out[k]];

		if (!n->out[k] || is_shard_of(y, v->shard))
			continue;
		if (!(op_info[n->op].flags & F_COMM))
			bad(c, n, y, "%s is a replica's shard, which only a "
			    "gather can make whole", v->name);
		else if (!shape_eq(&y->shape, &v->shard->shape))
			bad(c, n, y, "is not the whole of shard %s", v->name);
	}
	for (int k = 0; k < n->nin; k++) {
		const Val *x = &g->val[n->in[k]];

		if (n->in[k] && x->shape.rank > 0 && !is_shard_of(x, v->shard))
			bad(c, n, x, "is no shard of the form of %s", v->name);
	}
}

/* Updates also know states that are not sharded, and sums over shards. */
static void
check_shard_readers(struct verify *c)
{
	FOR_NODES (n, c->g)
		for (int k = 0; n->phase != PH_UPDATE && k < n->nin; k++)
			if (c->g->val[n->in[k]].shard
			    && !c->g->val[n->in[k]].shard->rows) {
				check_shard_reader(c, n,
				                   &c->g->val[n->in[k]]);
				break;
			}
}

static void
check_relations(struct verify *c)
{
	const Graph *g = c->g;
	ValId *grad = arena_array(c->tmp, g->nval, sizeof *grad);

	FOR_VALS (v, g) {
		const Val *p = &g->val[v->param];

		if (v->frozen && v->kind != V_PARAM)
			bad(c, NULL, v, "is frozen, but not a parameter");
		if (v->kind == V_STATE && (!v->state || (!v->param
		    && strcmp(v->state, "total") != 0)))
			bad(c, NULL, v, "state without a parameter or name");
		if (v->shard && is_live(v))
			check_shard(c, v);
		if (!v->param || !is_live(v))
			continue;
		if (p->kind != V_PARAM)
			bad(c, NULL, v, "belongs to %s, which is not a "
			    "parameter", p->name);
		else if (!shape_eq(whole_form(p), whole_form(v))
		         && !(p->shard && p->shard->rows
		              && shape_eq(&p->shape, &v->shape))
		         && shape_known(&p->shape) && shape_known(&v->shape)
		         && !is_mean_state(v, p))
			bad(c, NULL, v, "differs in shape from its parameter "
			    "%s", p->name);
		if (v->kind != V_TEMP)
			continue;
		if (p->frozen)
			bad(c, NULL, v, "gradient of the frozen parameter %s",
			    p->name);
		if (grad[v->param])
			bad(c, NULL, v, "second gradient of %s after %s",
			    p->name, g->val[grad[v->param]].name);
		grad[v->param] = val_id(g, v);
	}
	if (g->loss >= g->nval)
		bad(c, NULL, NULL, "the loss does not exist");
	else if (g->loss && !is_live(&g->val[g->loss]))
		bad(c, NULL, &g->val[g->loss], "no node writes the loss");
	FOR_VALS (v, g)
		if (v->output && !is_live(v))
			bad(c, NULL, v, "is an output, but no node writes it");
}

/* ---- properties ---- */

static bool
lists_dims(const IntList *l, const Shape *s)
{
	for (int i = 0; i < l->n && i < s->rank; i++)
		if (l->v[i] != s->dim[i])
			return false;
	return l->n == s->rank;
}

static bool
no_negative(const IntList *l)
{
	for (int i = 0; i < l->n; i++)
		if (l->v[i] < 0)
			return false;
	return true;
}

/* Whether lists have one entry per axis, as later passes take them to have.
 * Shapes are known and were inferred. */
static bool
attrs_are_static(const Graph *g, const Node *n)
{
	const Shape *x = &g->val[n->nin ? n->in[0] : 0].shape;
	const Shape *y = &g->val[n->out[0]].shape;
	const Attr *a = &n->attr;

	switch (n->op) {
	case OP_RESHAPE:
		return lists_dims(&a->RESHAPE.shape, y);
	case OP_EXPAND:
		return lists_dims(&a->EXPAND.shape, y);
	case OP_TRANSPOSE:
		return a->TRANSPOSE.perm.n == x->rank;
	case OP_SLICE:
		return a->SLICE.start.n == x->rank
			&& a->SLICE.step.n == x->rank
			&& no_negative(&a->SLICE.start);
	case OP_PAD:
		return a->PAD.begin.n == x->rank && a->PAD.end.n == x->rank;
	default:
		return true;
	}
}

static void
check_static_node(struct verify *c, const Node *n)
{
	const Graph *g = c->g;
	int before = c->faults;

	/* pass replicate makes a constant of an extent */
	if ((n->op == OP_NONE || op_info[n->op].flags & F_FOLDED)
	    && (n->op != OP_EXTENT || g->props & P_FUSED))
		bad(c, n, NULL, "is not allowed in a static graph");
	for (int i = op_info[n->op].nstat; i < n->nin; i++)
		if (n->in[i])
			bad(c, n, &g->val[n->in[i]],
			    "operand %d must be an attribute in a static graph",
			    i);
	for (int i = 0; i < n->nout; i++) {
		const Val *v = &g->val[n->out[i]];

		if (n->out[i] && (v->dt == DT_NONE || !shape_known(&v->shape)
		                  || val_data_bytes(v) < 0))
			bad(c, n, v, "dtype or shape is unknown");
	}
	if (c->faults == before && n->nout && n->out[0]
	    && !attrs_are_static(g, n))
		bad(c, n, NULL, "an attribute is incomplete after folding");
}

static void
check_bound(struct verify *c)
{
	FOR_VALS (v, c->g)
		if (v->kind != V_TEMP && v->kind != V_CONST
		    && (v->dt == DT_NONE || val_data_bytes(v) < 0))
			bad(c, NULL, v, "dtype or shape is unknown");
}

static void
check_static_form(struct verify *c)
{
	FOR_NODES (n, c->g)
		check_static_node(c, n);
}

static void
check_loss(struct verify *c)
{
	const Val *v = &c->g->val[c->g->loss];

	if (c->g->loss && (val_nelem(v) != 1 || dtype_info[v->dt].cls != 'f'))
		bad(c, NULL, v, "the loss is not a scalar");
}

bool
graph_verify(Graph *g, Diag *d)
{
	struct verify c = { g, d, arena_new(), 0 };

	FOR_VALS (v, g)
		verify_val(&c, v);
	FOR_NODES (n, g)
		verify_node(&c, n);
	check_phases(&c);
	check_replica_groups(&c, "zero_group", g->zero_group);
	check_replica_groups(&c, "expert_group", g->expert_group);
	check_replica_groups(&c, "context", g->context);
	if (!c.faults)
		check_relations(&c);
	if (!c.faults)
		check_shard_readers(&c);
	if (!c.faults)
		check_count_passes(&c);
	if (!c.faults)
		FOR_NODES (n, g)
			if (!shape_infer(g, d, n))
				c.faults++;     /* it said why */
	if (!c.faults && g->props & (P_BOUND | P_STATIC))
		check_bound(&c);
	if (!c.faults && g->props & P_STATIC)
		check_static_form(&c);
	if (!c.faults && g->props & P_LOSS)
		check_loss(&c);
	if (!c.faults)
		verify_host(&c);
	if (!c.faults)
		verify_waits(&c);
	if (!c.faults && g->props & P_LAYOUT)
		verify_layout(&c);
	if (!c.faults && g->props & P_PLACED)
		verify_placed(&c);
	arena_free(c.tmp);
	return !c.faults;
}

/* ---- what a graph shows by itself ---- */

/* Products with a matrix on the right have one on the left. */
static bool
is_canonical(const Graph *g)
{
	FOR_NODES (n, g)
		if (n->op == OP_MATMUL && g->val[n->in[1]].shape.rank == 2
		    && g->val[n->in[0]].shape.rank != 2)
			return false;
	return true;
}

static bool
is_fused(const Graph *g)
{
	FOR_NODES (n, g)
		if (op_fuses(n->op))
			return false;
	return g->nnode > 1;
}

uint32_t
graph_props(const Graph *g)
{
	uint32_t props = verify_memory_props(g);
	struct verify silent = { .g = g };
	const Val *loss = &g->val[g->loss];

	check_bound(&silent);
	if (!silent.faults)
		props |= P_BOUND;
	check_static_form(&silent);
	if (!silent.faults)
		props |= P_STATIC | (is_canonical(g) ? P_CANON : 0);
	if (g->loss && val_nelem(loss) == 1 && dtype_info[loss->dt].cls == 'f')
		props |= P_LOSS;
	FOR_NODES (n, g) {
		if (n->phase == PH_BACKWARD || n->phase == PH_WEIGHT)
			props |= P_BWD;
		if (op_info[n->op].flags & F_UPDATE
		    || (n->op == OP_ACCUMULATE && !n->count_pass))
			props |= P_UPD;
	}
	if (is_fused(g))
		props |= P_FUSED;
	if (g->ranks)
		props |= P_SHARD;
	return props;
}
