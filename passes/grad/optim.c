/* The update: one optimizer step per trained parameter, in the order in which
 * gradients appear.
 *
 *     g -> [accumulate] -> [sum over ranks] -> [grad_norm over all]
 *                                           -> the optimizer's op
 *
 * States sharded over replicas (optimizer_shards.c) are updated by shards.
 * Without micro-batches, and from ZeRO stage 2 on, gradients are then reduced
 * where they appear, and only their shards are kept until the update.
 *
 * Adafactor's means over a sharded parameter: factors.c.
 *
 * The average of a parameter (ema) is one more state, of the same shard, and
 * an op behind the update that reads the new parameter.
 *
 * accumulate stands right behind its gradient and belongs to the backward
 * phase, because it runs for every micro-batch; the phase update runs for
 * the last one only.  grad_norm is there so that clipping can be chosen at
 * run time.  What is between ranks: reduce.c.
 *
 * With update-in-backward each update follows its gradient, so that the
 * gradient's memory is free again at once.  It overwrites the parameter, so
 * it must come after the last reader of the old value, and that includes
 * readers that a plan may want to run again: a forward node that reads the
 * parameter is repeated only for the sake of a backward node that reads its
 * result or something computed from it.  So an update is placed behind the
 * last backward node that reads the parameter, or any forward value computed
 * from it; again when pass fuse has made one node of several, since its
 * values are computed together.  Clipping needs all gradients at once and
 * accumulation all micro-batches, so the first is off and the second refused
 * there.  So are scaled losses: a step whose gradients overflow must leave no
 * trace.
 *
 * needs   P_BWD
 * gives   P_UPD
 * cost    linear in operands
 */
#include "passes/grad/grad.h"
#include "passes/grad/copies.h"
#include "passes/grad/optimizer_shards.h"
#include "ir/placement.h"

#include <string.h>

struct optim {
	Pass *p;
	Graph *g;
	struct update *u;       /* in order of the gradients */
	uint32_t n;
	bool in_backward;       /* update in backward */
	ValId *copy;            /* by parameter: in 16 bits; NULL: none are */
	NodeId end;             /* nodes from here on are new: */
	NodeId *after;          /* they go behind these; 0: to the front */
	size_t nafter, cap;
};

/* ---- what there is to update ---- */

/* A gradient that was computed in 16 bits and only then widened is taken as it
 * was. */
static ValId
skip_upcast(struct optim *o, ValId v)
{
	Graph *g = o->g;
	const Node *n = &g->node[g->val[v].def];
	ValId from = n->op == OP_CAST ? n->in[0] : 0;

	if (!from || o->p->opt->grad_dtype == DT_F32 || g->val[v].output
	    || !dtype_is_half(g->val[from].dt)
	    || g->val[from].kind != V_TEMP || g->val[from].param)
		return v;
	g->val[from].param = g->val[v].param;
	g->val[from].onnx = g->val[v].onnx;
	g->val[from].grad_of = g->val[v].grad_of;
	g->val[v].param = 0;
	return from;
}

static void
find_gradients(struct optim *o)
{
	Graph *g = o->g;

	o->u = arena_array(o->p->scratch, g->nval, sizeof *o->u);
	FOR_NODES (n, g)
		for (int k = 0; k < n->nout; k++) {
			ValId v = n->out[k];

			if (!v || !g->val[v].param
			    || g->val[v].kind != V_TEMP)
				continue;
			o->u[o->n].param = g->val[v].param;
			o->u[o->n].received =
				op_info[n->op].flags & F_STAGES;
			o->u[o->n].grad = o->p->opt->grad_accum > 1
				|| o->u[o->n].received
				? v : skip_upcast(o, v);
			o->u[o->n++].after = node_id(g, n);
		}
}

/* The next n nodes that were appended go behind node `at`. */
static void
put_next_behind(struct optim *o, size_t n, NodeId at)
{
	n += o->nafter;
	o->after = arena_grow(o->p->scratch, o->after, o->nafter, &o->cap, n,
	                      sizeof *o->after);
	while (o->nafter < n)
		o->after[o->nafter++] = at;
}

/* What was appended since the last call. */
static void
put_behind(struct optim *o, NodeId at)
{
	put_next_behind(o, o->g->nnode - o->end - o->nafter, at);
}

/* It lies on ranks as the parameter does.  dt: its type; that of a parameter
 * of 64 bits is that. */
static ValId
new_state(Graph *g, ValId param, const char *prefix, const char *state,
          DType dt, Shape shape)
{
	const char *name = arena_printf(g->arena, "%s%s.%s", prefix, state,
	                                g->val[param].name);
	ValId v;

	if (g->val[param].dt == DT_F64)
		dt = DT_F64;
	v = val_new(g, V_STATE, name, dt, shape);
	g->val[v].param = param;
	g->val[v].state = state;
	if (g->val[param].placement.kind == PLACEMENT_SHARD)
		g->val[v].placement = g->val[param].placement;
	return v;
}

/* ---- the nodes, appended; ordered afterwards ---- */

/* The gradient is `to` now.  What it is made of is an adjoint of the whole, or
 * a shard of one's sum. */
static void
take_gradient(Graph *g, struct update *u, ValId to)
{
	Val *from = &g->val[u->grad];

	g->val[to].param = u->param;
	g->val[to].grad_of = from->grad_of;
	from->param = 0;
	if (from->shard)
		from->grad_of = 0;
	FOR_NODES (n, g)
		if (op_info[n->op].flags & F_STAGES && n->nin > 0
		    && n->in[0] == u->grad && n->phase == PH_UPDATE)
			n->in[0] = to;
	u->grad = to;
}

static bool
add_accumulate(struct optim *o, struct update *u)
{
	Graph *g = o->g;
	ValId in[2] = { new_state(g, u->param, "", "grad", DT_F32,
	                          g->val[u->grad].shape), u->grad };
	ValId acc = emit_op(g, o->p->diag, OP_ACCUMULATE, 2, in, NULL,
	                    u->after);

	if (!acc)
		return false;
	g->node[g->nnode - 1].phase = PH_BACKWARD;
	val_rename(g, acc, arena_printf(g->arena, "%s.next",
	                                g->val[in[0]].name));
	if (g->val[u->grad].shard)
		optimizer_shard_mark(g, u->param, in[0]);
	else if (g->val[u->param].shard)
		g->val[in[0]].placement = g->val[u->param].shard->placement;
	if (grad_reduce_wanted(g, u, REDUCE_TP))
		g->val[in[0]].placement.kind = PLACEMENT_PARTIAL;
	g->val[acc].placement = g->val[in[0]].placement;
	g->val[acc].shard = g->val[in[0]].shard;
	take_gradient(g, u, acc);
	return true;
}

/* This replica's shard of the gradient, in f32. */
static bool
widen_shard(struct optim *o, struct update *u)
{
	Graph *g = o->g;
	ValId from = u->grad, wide;

	if (!dtype_is_half(g->val[from].dt))
		return true;
	wide = emit_cast(g, o->p->diag, from, DT_F32, u->after);
	if (!wide)
		return false;
	g->node[g->nnode - 1].phase = PH_BACKWARD;
	optimizer_shard_mark(g, u->param, wide);
	take_gradient(g, u, wide);
	return true;
}

/* ZeRO-2: gradients of every micro-batch are summed over replicas, and each
 * replica accumulates its shard. */
static bool
accumulate_shard(struct optim *o, struct update *u)
{
	u->grad = skip_upcast(o, u->grad);
	return grad_reduce_alone(o->g, o->p->diag, u, PH_BACKWARD)
		&& widen_shard(o, u) && add_accumulate(o, u);
}

/* A state that is cut over replicas. */
static ValId
cut_state(Graph *g, const struct update *u, ValId state)
{
	if (u->cut)
		optimizer_shard_mark(g, u->param, state);
	return state;
}

/* The new values of what an update overwrites.  A state that is not kept has
 * none. */
static void
name_outputs(Graph *g, const ValId *in)
{
	Node *n = &g->node[g->nnode - 1];

	for (int k = 0; k < n->nout; k++) {
		ValId old = in[op_overwrites(n->op, k)];

		if (!old) {
			g->val[n->out[k]].def = 0;
			n->out[k] = 0;
			continue;
		}
		val_rename(g, n->out[k], arena_printf(g->arena, "%s.next",
		                                      g->val[old].name));
		g->val[n->out[k]].placement = g->val[old].placement;
		g->val[n->out[k]].shard = g->val[old].shard;
	}
}

/* By optimizer: what updates, and the states it keeps, which are called
 * PREFIX STATE.PARAMETER. */
static const struct rule {
	Op op;
	bool coupled;
	const char *prefix, *state[2];
} rules[] = {
#define OPTIMIZER(id, name, op, coupled, state0, state1, uses, defaults) \
	[OPT_##id] = { OP_##op, coupled, name ".", { state0, state1 } },
#include "runtime/support/optimizers.h"
};

/* ... over a parameter. */
static bool
takes_means(const struct rule *r)
{
	return r->op == OP_ADAFACTOR;
}

/* Means over the last dim, or the last but one, of all that replicas have
 * pieces of. */
static ValId
factor_state(Graph *g, ValId param, const struct rule *r, int k)
{
	const struct replica_shard *piece = g->val[param].shard;
	Shape s = piece ? piece->shape : g->val[param].shape;
	Placement cut = piece ? piece->placement : g->val[param].placement;
	ValId v = new_state(g, param, r->prefix, r->state[k], DT_F32,
	                    shape_without(s, k + 1));

	if (cut.kind == PLACEMENT_SHARD)
		g->val[v].placement = placement_without_dim(&cut, s.rank,
		                                            k + 1);
	return v;
}

/* State k of the rule, as operand 2 + k has it; 0: this parameter has none.
 * dt: of states that have the parameter's shape. */
static ValId
add_state(Graph *g, const struct update *u, const struct rule *r, DType dt,
          int k)
{
	Shape s = g->val[u->param].shape;
	const char *name = r->state[k];

	if (takes_means(r) && s.rank >= 2)
		return factor_state(g, u->param, r, k);
	if (takes_means(r)) {
		name = k ? NULL : "v";
		dt = DT_F32;
	}
	return !name ? 0 : cut_state(g, u, new_state(g, u->param, r->prefix,
	                                             name, dt, s));
}

static void
add_states(struct optim *o, struct update *u)
{
	const struct options *opt = o->p->opt;
	DType dt = opt->state_dtype ? opt->state_dtype : DT_F32;

	for (int k = 0; k < 2; k++)
		u->state[k] = add_state(o->g, u, &rules[opt->optimizer], dt, k);
	if (opt->ema)
		u->average = cut_state(o->g, u, new_state(o->g, u->param,
			rules[opt->optimizer].prefix, "ema", DT_F32,
			o->g->val[u->param].shape));
}

/* Appended; it writes a copy, or the last output is absent. */
static Node *
new_update(Graph *g, Op op, int nin, const ValId *in, bool copy, NodeId like)
{
	int all = op_info[op].nout, some = all;
	Node *n;
	ValId *out;

	if (op_info[op].flags & F_COPY && !copy)
		some--;
	n = node_new(g, op, nin, in, some, like);
	out = arena_array(g->arena, (size_t)all, sizeof *out);
	memcpy(out, n->out, (size_t)some * sizeof *out);
	n->out = out;
	n->nout = all;
	n->phase = PH_UPDATE;
	return n;
}

/* The average of what the update has made, if one is kept. */
static bool
add_average(struct optim *o, const struct update *u, ValId updated)
{
	ValId in[2] = { u->average, updated };

	if (!u->average)
		return true;
	if (!shape_infer(o->g, o->p->diag, new_update(o->g, OP_EMA, 2, in,
		false, u->after)))
		return false;
	name_outputs(o->g, in);
	return true;
}

static bool
add_update(struct optim *o, const struct update *u, ValId norm)
{
	const struct options *opt = o->p->opt;
	const struct rule *r = &rules[opt->optimizer];
	Graph *g = o->g;
	Diag *d = o->p->diag;
	ValId in[8] = { u->cut ? optimizer_shard_own(g, d, u) : u->param,
		        u->grad };
	bool copy = o->copy && o->copy[u->param];
	int nin = 2;
	ValId updated;
	Node *n;
	Attr a = attr_default(r->op);

	a.SGD.decay = !glob_any(opt->nodecay.n, opt->nodecay.v,
	                        g->val[u->param].name);
	if (r->coupled)
		a.SGD.coupled = 1;
	for (int k = 0; k < 2 && r->state[k]; k++)
		in[nin++] = u->state[k];
	for (int k = 0; k < FACTORS && takes_means(r); k++)
		in[nin++] = u->factor[k];
	if (norm)
		in[nin++] = norm;
	if (copy) {
		nin = op_info[r->op].max;       /* in backward without a norm */
		in[nin - 1] = o->copy[u->param];
	}
	if (!in[0])
		return false;
	n = new_update(g, r->op, nin, in, copy, u->after);
	n->attr = a;
	if (!shape_infer(g, d, n))
		return false;
	name_outputs(g, in);
	updated = g->node[g->nnode - 1].out[0];
	return (!u->cut || optimizer_shard_gather(g, d, u, updated))
		&& add_average(o, u, updated);
}

/* ---- order ---- */

/* New nodes go where they belong. */
static void
place_new_nodes(struct optim *o)
{
	Graph *g = o->g;
	NodeId end = o->end;
	uint32_t extra = g->nnode - end, n = 0;
	NodeId *order = arena_array(o->p->scratch, g->nnode, sizeof *order);
	NodeId *next = arena_array(o->p->scratch, extra + 1, sizeof *next);
	NodeId *first = arena_array(o->p->scratch, end, sizeof *first);

	/* lists of new nodes by place, filled from the back */
	for (NodeId i = g->nnode - 1; i >= end; i--) {
		next[i - end] = first[o->after[i - end]];
		first[o->after[i - end]] = i;
	}
	for (NodeId i = 0; i < end; i++) {
		if (i)
			order[n++] = i;
		for (NodeId j = first[i]; j; j = next[j - end])
			order[n++] = j;
	}
	graph_reorder(g, order, n);
}

static void
put_each_behind(struct optim *o, const NodeId *behind, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		put_next_behind(o, 1, behind[i]);
}

/* Choose what is cut over replicas. */
static bool
cut_states(struct optim *o)
{
	int64_t stage = o->p->opt->zero;
	const NodeId *behind;
	uint32_t n;

	if (stage <= 0 || o->p->opt->optimizer == OPT_NONE)
		return true;
	if (!o->g->exact)
		return diag_error(o->p->diag, "--zero: the graph does not "
		                  "declare an exact number of replicas");
	n = optimizer_shards_choose(o->g, o->p->scratch, o->u, o->n,
	                            stage >= 3, &behind);
	put_each_behind(o, behind, n);
	return true;
}

/* Parameters of which training has shards are gathered here, too. */
static void
follow_training(struct optim *o)
{
	const NodeId *behind;
	uint32_t n;

	o->end = o->g->nnode;
	n = optimizer_shards_follow(o->g, o->p->scratch, o->p->training,
	                            &behind);
	put_each_behind(o, behind, n);
	place_new_nodes(o);
}

/* In backward, as far as the gradient becomes complete there. */
static bool
complete_in_backward(struct optim *o, struct update *u)
{
	const struct options *opt = o->p->opt;

	if (u->received)
		return true;
	if (opt->grad_accum > 1)
		return u->cut && !o->g->val[u->grad].shard && opt->zero >= 2
			? accumulate_shard(o, u)
			: add_accumulate(o, u);
	return !(o->in_backward || u->cut)
		|| (grad_reduce_alone(o->g, o->p->diag, u, PH_BACKWARD)
		    && grad_reduce_copies(o->g, o->p->diag, u, PH_BACKWARD));
}

/* Gradients become complete over micro-batches and ranks. */
static bool
complete_gradients(struct optim *o)
{
	Diag *d = o->p->diag;

	for (uint32_t i = 0; i < o->n; i++) {
		if (!complete_in_backward(o, &o->u[i]))
			return false;
		put_behind(o, o->u[i].after);
	}
	if (!o->in_backward
	    && !grad_reduce_all(o->g, d, o->p->scratch, o->u, o->n))
		return false;
	for (uint32_t i = 0; i < o->n && o->p->opt->grad_accum > 1; i++)
		if (!grad_reduce_copies(o->g, d, &o->u[i], PH_UPDATE))
			return false;
	put_behind(o, o->end - 1);
	return true;
}

/* Behind means over pieces of parameters: of all at once, unless each update
 * follows its gradient. */
static bool
add_updates(struct optim *o, ValId norm)
{
	bool means = takes_means(&rules[o->p->opt->optimizer]);
	uint32_t all = o->in_backward ? 1 : o->n;

	for (uint32_t i = 0; i < o->n; i++)
		add_states(o, &o->u[i]);
	for (uint32_t i = 0; i < o->n; i++) {
		if (means && i % all == 0
		    && !factors_add(o->g, o->p->diag, o->p->scratch, &o->u[i],
		                    all, norm))
			return false;
		if (!add_update(o, &o->u[i], norm))
			return false;
		put_behind(o, o->in_backward ? o->u[i].after : o->end - 1);
	}
	return true;
}

static bool
append_updates(struct optim *o)
{
	Graph *g = o->g;
	ValId norm = 0;
	bool update = o->p->opt->optimizer != OPT_NONE
		&& (o->n > 0 || g->stages);     /* stages share a norm */

	o->end = g->nnode;
	optimizer_shards_of_rows(g, o->u, o->n);
	if (!cut_states(o))
		return false;
	if (update && optim_copies(o->p, g, o->p->variant.low_memory))
		o->copy = copies_make(g, o->p->scratch, o->u, o->n);
	if (!grad_reduce_check(g, o->p->diag, o->u, o->n)
	    || !complete_gradients(o))
		return false;
	if (update && !o->in_backward) {
		norm = grad_reduce_norm(g, o->p->diag, o->p->scratch, o->u,
		                        o->n);
		if (!norm)
			return false;
		put_behind(o, o->end - 1);
	}
	if (update && !add_updates(o, norm))
		return false;
	place_new_nodes(o);
	if (o->in_backward)
		settle_updates(g, o->p->scratch);
	if (o->copy)
		graph_dce(g);
	return true;
}

/* A misspelt name would decay what was to be left alone.  Said once: a second
 * form of the graph has the same parameters. */
static void
warn_of_names(const struct optim *o)
{
	const struct options *opt = o->p->opt;

	for (int i = 0; i < opt->nodecay.n && is_first_variant(o->p); i++) {
		bool any = false;

		for (uint32_t k = 0; k < o->n && !any; k++)
			any = glob_match(opt->nodecay.v[i],
			                 o->g->val[o->u[k].param].name);
		if (!any && opt->optimizer != OPT_NONE)
			diag_warn(o->p->diag, "--no-decay '%s' matches no "
			          "trained parameter", opt->nodecay.v[i]);
	}
}

bool
optim_may_update_in_backward(const Pass *p, const Graph *g)
{
	const struct options *o = p->opt;

	return o->update_in_backward == TRI_AUTO && o->grad_accum == 1
		&& o->optimizer != OPT_NONE && !o->forward_only
		&& !graph_has_op(g, OP_LOSS_SCALE);
}

/* Bytes of all states and float32 parameters that replicas share. */
static double
offloaded_bytes(const Pass *p, const Graph *g)
{
	const struct rule *r = &rules[p->opt->optimizer];
	double sum = 0;

	FOR_VALS (v, g)
		if (v->kind == V_PARAM && !v->frozen)
			sum += (double)(val_data_bytes(v) + p->target->align)
				* (1 + !!r->state[0] + !!r->state[1]);
	return p->opt->zero > 0
		? sum / (double)graph_group_size(g, graph_shard_group(g, false))
		: sum;
}

/* Whether parameters are to leave the device, where nothing but updates reads
 * them then.  Copies are no gain unless all of them can. */
static bool
offloads_masters(const Pass *p, const Graph *g)
{
	return pass_offloads_states(p) && !p->variant.state_room
		&& (!p->opt->host_memory || (double)p->opt->host_memory
		                            >= offloaded_bytes(p, g));
}

bool
optim_copies(const Pass *p, const Graph *g, bool low_memory)
{
	const struct options *o = p->opt;

	if (o->resident_copies == TRI_OFF || o->forward_only || o->ep > 1
	    || !(op_info[rules[o->optimizer].op].flags & F_COPY))
		return false;
	if (offloads_masters(p, g))
		return copies_fit(g);
	if (o->zero > 0 || o->update_in_backward == TRI_ON
	    || (low_memory && optim_may_update_in_backward(p, g))
	    || (o->resident_copies == TRI_AUTO
	        && (low_memory || !(p->target->fuses & FUSE_COPIES))))
		return false;
	return copies_fit(g);
}

bool
pass_optim(Pass *p, Graph *g)
{
	struct optim o = { .p = p, .g = g };

	p->planned.updates_in_backward = p->variant.low_memory
		&& optim_may_update_in_backward(p, g);
	o.in_backward = (p->planned.updates_in_backward
	                 || p->opt->update_in_backward == TRI_ON)
		&& p->opt->optimizer != OPT_NONE;
	if (o.in_backward && p->opt->grad_accum > 1)
		return diag_error(p->diag, "--update-in-backward and "
		                  "--grad-accum cannot be combined; try: "
		                  "--update-in-backward off");
	if (o.in_backward && graph_has_op(g, OP_LOSS_SCALE))
		return diag_error(p->diag, "--update-in-backward and --dtype "
		                  "f16 cannot be combined: a step whose "
		                  "gradients overflow must not update "
		                  "parameters; use --dtype bf16, or try: "
		                  "--update-in-backward off");
	if (p->opt->forward_only) {
		if (p->training)
			follow_training(&o);
		return true;
	}
	find_gradients(&o);
	warn_of_names(&o);
	return append_updates(&o);
}
