/* Build the plan, as --json writes it, from the final graph.
 *
 * what    tensors (values in places) and steps; sums.c adds up the rest
 * needs   P_LAYOUT; offsets if P_PLACED
 * note    everything here is derived from the graph alone, so that the plan
 *         says what codegen will do and not what the planner meant to do
 */
#include "passes/account/account.h"
#include "passes/cost/cost.h"

#include <string.h>

struct plan_builder {
	Pass *p;
	const Graph *g;
	Plan *plan;
	int64_t *of_val;                /* tensor of a value; -1 */
	bool placed;
};

static bool
is_transferred(const Graph *g, const Val *v)
{
	return v->def && op_info[g->node[v->def].op].flags & F_HOST;
}

static TensorKind
owner_kind(const Graph *g, const Val *v)
{
	switch (v->kind) {
	case V_INPUT:
		return K_INPUT;
	case V_PARAM:
		return K_PARAM;
	case V_BUFFER:
		return K_BUFFER;
	case V_CONST:
		return K_CONSTANT;
	case V_STATE:
		return !v->param ? K_BUFFER : v->state
			&& strcmp(v->state, "grad") == 0 ? K_GRAD : K_STATE;
	default:
		break;
	}
	if (is_transferred(g, v))
		return K_TRANSFERRED;
	if (v->of)
		return K_RECOMPUTED;
	if (v->param)
		return K_GRAD;
	if (v->def && g->node[v->def].phase != PH_FORWARD
	    && !v->low_precision_of && val_id(g, v) != g->loss && !v->output)
		return K_ADJOINT;
	return K_ACTIVATION;
}

/* The result of an update is what it overwrites: a parameter, a state. */
static TensorKind
tensor_kind(const Graph *g, const Val *v)
{
	const Val *o = &g->val[v->base];

	if (v->kind == V_TEMP && v->base
	    && !(op_info[g->node[v->def].op].flags & F_VIEW)
	    && (o->kind == V_PARAM || o->kind == V_STATE
	        || o->kind == V_BUFFER))
		return owner_kind(g, o);
	return owner_kind(g, v);
}

/* Bytes of the owner that the value reaches, as [*at, *at + *nbytes). */
static void
find_owner_span(const Graph *g, const Val *v, int64_t *at, int64_t *nbytes)
{
	const Val *o = &g->val[v->base];
	int64_t low, high, es = dtype_info[v->dt].nbytes;

	*at = 0;
	*nbytes = v->base && val_nelem(v) == 0 ? 0 : v->nbytes;
	if (!v->base || val_nelem(v) == 0 || !val_reach(v, &low, &high))
		return;
	*at = low * es;
	*nbytes = (high - low + 1) * es;
	if (low == 0 && *nbytes == val_data_bytes(o))
		*nbytes = o->nbytes;    /* the padding belongs to it */
}

static int64_t
add_plan_tensor(struct plan_builder *b, ValId id)
{
	const Graph *g = b->g;
	const Val *v = &g->val[id], *o = &g->val[val_owner(g, id)];
	struct plan_tensor *t;

	if (b->of_val[id] >= 0)
		return b->of_val[id];
	if (v->base)
		add_plan_tensor(b, v->base);
	b->of_val[id] = b->plan->ntensor;
	t = &b->plan->tensor[b->plan->ntensor++];
	*t = (struct plan_tensor){
		.name = v->name, .onnx = v->onnx, .val = id, .node = -1,
		.kind = tensor_kind(g, v), .dt = v->dt, .shape = v->shape,
		.resident = o->kind != V_TEMP || o->resident, .host = v->host,
		.of = v->of && !is_transferred(g, v) ? b->of_val[v->of] : -1,
		.copy_of = v->of && is_transferred(g, v) ? b->of_val[v->of]
			: -1,
		.low_precision_of = v->low_precision_of
			? b->of_val[v->low_precision_of] : -1,
		.alias_of = v->base ? b->of_val[v->base] : -1,
		.output = v->output, .first = -1, .last = -1,
		.placement = v->placement, .shard = v->shard,
	};
	find_owner_span(g, v, &t->alias_offset, &t->bytes);
	for (int i = 0; v->base && i < v->shape.rank; i++)
		if (v->stride[i] == 0 && v->shape.dim[i] > 1)
			t->shape.dim[i] = 1;    /* one element, seen often */
	t->offset = t->resident || !b->placed ? -1
		: o->offset + t->alias_offset;
	return b->of_val[id];
}

static int64_t
add_workspace(struct plan_builder *b, const Node *n)
{
	struct plan_tensor *t = &b->plan->tensor[b->plan->ntensor];

	*t = (struct plan_tensor){
		.name = "workspace", .node = -1, .kind = K_WORKSPACE,
		.dt = DT_NONE, .shape = { .rank = -1 }, .bytes = n->workspace,
		.offset = b->placed ? n->workspace_at : -1,
		.of = -1, .low_precision_of = -1, .alias_of = -1,
		.first = -1, .last = -1,
	};
	return b->plan->ntensor++;
}

static void
add_step(struct plan_builder *b, const Node *n)
{
	const Graph *g = b->g;
	Arena *a = b->p->keep;
	struct cost c = first_cost(g, n);
	struct plan_step *s = &b->plan->step[b->plan->nstep++];

	*s = (struct plan_step){
		.op = op_info[n->op].text, .gnode = node_id(g, n), .node = -1,
		.phase = n->phase, .of = n->of ? (int64_t)n->of - 1 : -1,
		.wait = n->wait ? (int64_t)n->wait - 1 : 0,
		.view = op_info[n->op].flags & F_VIEW && n->out[0]
			&& g->val[n->out[0]].base,
		.workspace = n->workspace,
		.flops = c.flops, .bytes = c.bytes, .seconds = c.sec,
		.product = c.product, .sent = c.sent, .lane = c.lane,
		.lane_sec = node_lane_seconds(g, n, c),
	};
	s->inlined = arena_array(a, (size_t)n->ninlined + 1,
	                         sizeof *s->inlined);
	for (int i = 0; i < n->ninlined; i++) {
		NodeId id = n->inlined[i];

		c = inlined_cost(g, &g->node[id]);
		s->inlined[s->ninlined++] = (struct plan_inlined){
			(int64_t)id - 1, c.flops, c.sec };
	}
	s->onnx = arena_array(a, (size_t)n->norigin + 1, sizeof *s->onnx);
	for (int i = 0; i < n->norigin; i++)
		s->onnx[s->nonnx++] = g->origin[n->origin[i]].name;
	s->read = arena_array(a, (size_t)n->nin + 1, sizeof *s->read);
	s->write = arena_array(a, (size_t)n->nout + 2, sizeof *s->write);
	for (int i = 0; i < n->nin; i++)
		if (n->in[i])
			s->read[s->nread++] = add_plan_tensor(b, n->in[i]);
	for (int i = 0; i < n->nout; i++)
		s->write[s->nwrite++] = n->out[i]
			? add_plan_tensor(b, n->out[i]) : -1;
	if (n->workspace > 0)
		s->write[s->nwrite++] = add_workspace(b, n);
}

static void
add_residents(struct plan_builder *b)
{
	FOR_VALS (v, b->g)
		if (!v->base && (v->kind == V_PARAM || v->kind == V_BUFFER
		    || v->kind == V_INPUT))
			add_plan_tensor(b, val_id(b->g, v));
}

Plan *
plan_build(Pass *p, const Graph *g, bool claimed)
{
	Plan *plan = arena_alloc(p->keep, sizeof *plan);
	const struct planned *d = &p->planned;
	struct plan_builder b = { .p = p, .g = g, .plan = plan };

	b.placed = g->props & P_PLACED;
	b.of_val = arena_array(p->scratch, g->nval, sizeof *b.of_val);
	memset(b.of_val, -1, g->nval * sizeof *b.of_val);
	plan->tensor = arena_array(p->keep, (size_t)g->nval + g->nnode,
	                           sizeof *plan->tensor);
	plan->step = arena_array(p->keep, g->nnode, sizeof *plan->step);
	plan->ranks = g->ranks;
	plan->slots = graph_slots(g);
	plan->other_slots = g->other_slots;
	plan->through_slots = g->through_slots;
	plan->weight_slots = g->weight_slots;
	plan->device = device_of(g);
	add_residents(&b);
	FOR_NODES (n, g)
		add_step(&b, n);
	plan->sum = (struct plan_summary){
		.budget = claimed && d->budget > 0 ? d->budget : -1,
		.baseline_peak = d->baseline_peak > 0 ? d->baseline_peak : -1,
		.alignment = p->target->align,
		.solver_sec = p->opt->stats ? d->solver_sec : 0,
		.bound_sec = d->bound_sec,
		.bound_class = claimed ? d->bound_class : NULL,
	};
	plan_sum(plan, p->diag, p->scratch);
	return plan;
}

bool
pass_account(Pass *p, Graph *g)
{
	p->planned.plan = plan_build(p, g, true);
	if (p->planned.reference)
		p->planned.reference_plan = plan_build(p, p->planned.reference,
		                                       false);
	return true;
}
