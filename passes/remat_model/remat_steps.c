/* Keep or recompute: the steps of a candidate.
 *
 * what    the schedule with clones that a sequence of steps, or "drop these
 *         storages", stands for; remat_eval.c says what it costs
 * method  of a set the steps are: forward as it stands; before a backward
 *         node the forward values that it reads and that were dropped are
 *         computed again by clones of their nodes, recursively.  In any
 *         sequence views are repeated for every new clone of what they lie in,
 *         and a clone writes only what somebody reads
 * cost    linear in the operands of the schedule
 */
#include "ir/loop.h"
#include "passes/remat_model/remat_model.h"

#include <string.h>

/* Room for so many steps; what the arrays held is lost but for the steps. */
static void
reserve_steps(struct remat *r, int32_t n)
{
	struct rstep *old = r->step;

	if (n <= r->step_cap)
		return;
	n += n / 2;
	r->step = arena_array(r->arena, (size_t)n + 1, sizeof *r->step);
	if (old)
		memcpy(r->step, old, (size_t)r->nstep * sizeof *old);
	r->live = arena_array(r->arena, (size_t)n + 2, sizeof *r->live);
	r->step_cap = n;
}

static void
reserve_instances(struct remat *r, int32_t n)
{
	if (n <= r->inst_cap)
		return;
	n += n / 2;
	r->of_inst = arena_array(r->arena, (size_t)n + 1, 4);
	r->first = arena_array(r->arena, (size_t)n + 1, 4);
	r->last = arena_array(r->arena, (size_t)n + 1, 4);
	r->block = arena_array(r->arena, (size_t)n + 1, 4);
	r->inst_cap = n;
}

void
remat_ready(struct remat *r)
{
	r->target = INT64_MAX;
	r->now = arena_array(r->arena, (size_t)r->nstore + 1, 4);
	reserve_steps(r, 2 * (int32_t)r->nnode);
	reserve_instances(r, 2 * r->nstore + 1);
}

/* ---- the steps of a set ---- */

static void
push_step(struct remat *r, struct rstep t)
{
	if (r->nstep >= r->step_cap)
		reserve_steps(r, r->nstep + 1);
	r->step[r->nstep++] = t;
}

static uint32_t
dropped_writes(const struct rnode *n, const uint8_t *drop)
{
	uint32_t makes = 0;

	for (int i = 0; i < n->nwrite; i++)
		makes |= (uint32_t)(drop[n->write[i]] != 0) << i;
	return makes;
}

/* The bodies that a loop of backward takes in. */
struct taking {
	NodeId reader;
	int nop, operands;              /* of the loop by now */
	NodeId first[LOOP_OPS_MAX];
	int n;
};

static void request_value(struct remat *, const uint8_t *drop, ValId);

/* Value v, read by loop `by`, which is the reader or was taken in by it: may
 * the reader compute it?  If so all that this reads is made ready. */
static bool
try_inline(struct remat *r, const uint8_t *drop, struct taking *t, ValId v,
           NodeId by)
{
	const Graph *g = r->g;
	NodeId id = v ? g->val[v].def : 0;
	const struct rnode *rn = &r->node[id];
	const Node *n = &g->node[id];

	if (!id || !rn->inlinable || !drop[r->of_val[v]] || r->again[v]
	    || (rn->reader && rn->reader != t->reader))
		return false;
	if (r->taken_by[id] == t->reader)
		return true;
	if (!inline_fits(g, n, &g->node[by])
	    || t->nop + n->body->nop > LOOP_OPS_MAX
	    || t->operands + n->nin > LOOP_INPUTS_MAX)
		return false;
	r->taken_by[id] = t->reader;
	t->nop += n->body->nop;
	t->operands += n->nin;
	for (int i = 0; i < n->nin; i++)
		if (!try_inline(r, drop, t, n->in[i], id))
			request_value(r, drop, n->in[i]);
	t->first[t->n++] = id;
	return true;
}

/* A loop of backward is about to run. */
static void
need_loop_inputs(struct remat *r, const uint8_t *drop, const Node *n)
{
	NodeId id = node_id(r->g, n);
	struct taking t = { .reader = id, .nop = n->body->nop,
	                    .operands = n->nin };

	for (int i = 0; i < n->nin; i++)
		if (!try_inline(r, drop, &t, n->in[i], id))
			request_value(r, drop, n->in[i]);
	for (int i = 0; i < t.n; i++)
		push_step(r, (struct rstep){ .node = t.first[i], .clone = true,
		                        .inlined = true });
}

/* The node that has to run again for value v, and is not about to; 0. */
static NodeId
node_to_rerun(const struct remat *r, const uint8_t *drop, ValId v)
{
	int32_t s = v ? r->of_val[v] : -1;
	NodeId id;

	if (s < 0 || !drop[s] || r->again[v])
		return 0;
	id = r->g->val[v].def;
	return r->node[id].backward || r->cloned[id] ? 0 : id;
}

/* All that the clone reads has been made. */
static void
push_copy(struct remat *r, const uint8_t *drop, NodeId id)
{
	const Node *n = &r->g->node[id];

	for (int i = 0; i < n->nout; i++)
		if (n->out[i] && r->of_val[n->out[i]] >= 0)
			r->again[n->out[i]] = 1;
	push_step(r, (struct rstep){ .node = id, .clone = true,
	                        .makes = dropped_writes(&r->node[id], drop) });
}

/* Value v is about to be read in backward.  Chains may be long: no recursion.
 * A node waits once at most. */
static void
request_value(struct remat *r, const uint8_t *drop, ValId v)
{
	struct waiting *w = r->waiting;
	NodeId id = node_to_rerun(r, drop, v);
	size_t n = 0;

	while (id || n > 0) {
		const Node *m;

		if (id) {
			r->cloned[id] = 1;
			w[n++] = (struct waiting){ id, 0 };
		}
		m = &r->g->node[w[n - 1].node];
		id = w[n - 1].next < m->nin
			? node_to_rerun(r, drop, m->in[w[n - 1].next]) : 0;
		if (w[n - 1].next++ == m->nin)
			push_copy(r, drop, w[--n].node);
	}
}

static void
schedule_copies(struct remat *r, const uint8_t *drop)
{
	const Graph *g = r->g;

	memset(r->again, 0, g->nval);
	memset(r->cloned, 0, g->nnode);
	memset(r->taken_by, 0, g->nnode * sizeof *r->taken_by);
	r->nstep = 0;
	for (uint32_t k = 0; k < (r->only ? r->nonly : g->nnode - 1); k++) {
		const Node *n = &g->node[r->only ? r->only[k] : k + 1];

		if (n->phase != PH_FORWARD && n->op == OP_LOOP)
			need_loop_inputs(r, drop, n);
		else if (n->phase != PH_FORWARD)
			for (int i = 0; i < n->nin; i++)
				request_value(r, drop, n->in[i]);
		push_step(r, (struct rstep){ .node = node_id(g, n) });
	}
}

/* ---- the steps of a sequence ---- */

bool
remat_is_view(const struct remat *r, NodeId id)
{
	const Node *n = &r->g->node[id];

	return op_info[n->op].flags & F_VIEW && n->nout > 0 && n->out[0]
		&& r->g->val[n->out[0]].base;
}

/* Clones of which no write is read before the next; keep[k] = 0 for them. */
static void
find_dead(struct remat *r, const struct rstep *step, int32_t n, uint8_t *keep)
{
	int32_t *wanted = r->now;

	memset(wanted, 0, (size_t)r->nstore * sizeof *wanted);
	for (int32_t k = n - 1; k >= 0; k--) {
		const struct rnode *rn = &r->node[step[k].node];

		keep[k] = !step[k].clone;
		for (int i = 0; i < rn->nwrite; i++)
			if (remat_writes(&step[k], i)) {
				keep[k] |= wanted[rn->write[i]] != 0;
				wanted[rn->write[i]] = 0;
			}
		for (int i = 0; keep[k] && i < rn->nread; i++)
			wanted[rn->read[i]] = 1;
	}
}

/* Value v is about to be read: if it is a view, let it be one of the latest
 * instance. */
static void
rebind_view(struct remat *r, ValId v)
{
	const Graph *g = r->g;
	size_t n = 0;

	/* views of views: the one next to the storage first */
	while (v && r->of_val[v] >= 0 && g->val[v].base
	       && r->in_view[v] != r->now[r->of_val[v]]) {
		r->views[n++] = v;
		v = g->node[g->val[v].def].in[0];
	}
	while (n > 0) {
		v = r->views[--n];
		r->in_view[v] = r->now[r->of_val[v]];
		push_step(r, (struct rstep){ .node = g->val[v].def,
		                        .clone = true });
	}
}

/* Views of what step k reads lie in the latest instances. */
static void
rebind_views(struct remat *r, const Node *n)
{
	for (int i = 0; i < n->nin; i++)
		rebind_view(r, n->in[i]);
}

/* What step k writes is the latest instance; and so are its views. */
static void
record_views(struct remat *r, const Node *n)
{
	for (int i = 0; i < n->nout; i++)
		if (n->out[i] && r->of_val[n->out[i]] >= 0)
			r->in_view[n->out[i]] =
				r->now[r->of_val[n->out[i]]];
}

/* The sequence into r->step. */
static void
expand_steps(struct remat *r, const struct rstep *step, int32_t n)
{
	Arena *scratch = arena_new();
	uint8_t *keep = arena_array(scratch, (size_t)n + 1, 1);
	int32_t ninst = 0;

	find_dead(r, step, n, keep);
	r->nstep = 0;
	for (int32_t k = 0; k < n; k++) {
		const Node *m = r->g ? &r->g->node[step[k].node] : NULL;
		const struct rnode *rn = &r->node[step[k].node];

		if (!keep[k])
			continue;
		if (m)
			rebind_views(r, m);
		push_step(r, step[k]);
		for (int i = 0; i < rn->nwrite; i++)
			if (remat_writes(&step[k], i))
				r->now[rn->write[i]] = ninst++;
		if (m)
			record_views(r, m);
	}
	reserve_instances(r, ninst);
	arena_free(scratch);
}

struct remat_cost
remat_eval(struct remat *r, const uint8_t *drop)
{
	schedule_copies(r, drop);
	return remat_evaluate(r);
}

int64_t
remat_placed(struct remat *r, const uint8_t *drop, Arena *scratch)
{
	remat_eval(r, drop);
	return remat_packed(r, scratch);
}

struct remat_cost
remat_eval_steps(struct remat *r, const struct rstep *step, int32_t n)
{
	expand_steps(r, step, n);
	return remat_evaluate(r);
}
