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
reserve_steps(struct schedule *w, int32_t n)
{
	struct rstep *old = w->step;

	if (n <= w->step_cap)
		return;
	n += n / 2;
	w->step = arena_array(w->arena, (size_t)n + 1, sizeof *w->step);
	if (old)
		memcpy(w->step, old, (size_t)w->nstep * sizeof *old);
	w->live = arena_array(w->arena, (size_t)n + 2, sizeof *w->live);
	w->step_cap = n;
}

static void
reserve_instances(struct schedule *w, int32_t n)
{
	if (n <= w->inst_cap)
		return;
	n += n / 2;
	w->of_inst = arena_array(w->arena, (size_t)n + 1, 4);
	w->first = arena_array(w->arena, (size_t)n + 1, 4);
	w->last = arena_array(w->arena, (size_t)n + 1, 4);
	w->block = arena_array(w->arena, (size_t)n + 1, 4);
	w->inst_cap = n;
}

struct schedule *
schedule_new(const struct remat *r, Arena *arena)
{
	struct schedule *w = arena_alloc(arena, sizeof *w);

	w->r = r;
	w->arena = arena;
	w->target = INT64_MAX;
	w->now = arena_array(arena, (size_t)r->nstore + 1, 4);
	reserve_steps(w, 2 * (int32_t)r->nnode);
	reserve_instances(w, 2 * r->nstore + 1);
	if (!r->g)
		return w;
	w->again = arena_array(arena, r->g->nval, 1);
	w->cloned = arena_array(arena, r->nnode, 1);
	w->taken_by = arena_array(arena, r->nnode, sizeof *w->taken_by);
	w->in_view = arena_array(arena, r->g->nval, 4);
	w->views = arena_array(arena, r->g->nval, sizeof *w->views);
	w->waiting = arena_array(arena, r->nnode, sizeof *w->waiting);
	return w;
}

/* ---- the steps of a set ---- */

static void
push_step(struct schedule *w, struct rstep t)
{
	if (w->nstep >= w->step_cap)
		reserve_steps(w, w->nstep + 1);
	w->step[w->nstep++] = t;
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

static void request_value(struct schedule *, const uint8_t *drop, ValId);

/* Value v, read by loop `by`, which is the reader or was taken in by it: may
 * the reader compute it?  If so all that this reads is made ready. */
static bool
try_inline(struct schedule *w, const uint8_t *drop, struct taking *t, ValId v,
           NodeId by)
{
	const struct remat *r = w->r;
	const Graph *g = r->g;
	NodeId id = v ? g->val[v].def : 0;
	const struct rnode *rn = &r->node[id];
	const Node *n = &g->node[id];

	if (!id || !rn->inlinable || !drop[r->of_val[v]] || w->again[v]
	    || (rn->reader && rn->reader != t->reader))
		return false;
	if (w->taken_by[id] == t->reader)
		return true;
	if (!inline_fits(g, n, &g->node[by])
	    || t->nop + n->body->nop > LOOP_OPS_MAX
	    || t->operands + n->nin > LOOP_INPUTS_MAX)
		return false;
	w->taken_by[id] = t->reader;
	t->nop += n->body->nop;
	t->operands += n->nin;
	for (int i = 0; i < n->nin; i++)
		if (!try_inline(w, drop, t, n->in[i], id))
			request_value(w, drop, n->in[i]);
	t->first[t->n++] = id;
	return true;
}

/* A loop of backward is about to run. */
static void
need_loop_inputs(struct schedule *w, const uint8_t *drop, const Node *n)
{
	NodeId id = node_id(w->r->g, n);
	struct taking t = { .reader = id, .nop = n->body->nop,
	                    .operands = n->nin };

	for (int i = 0; i < n->nin; i++)
		if (!try_inline(w, drop, &t, n->in[i], id))
			request_value(w, drop, n->in[i]);
	for (int i = 0; i < t.n; i++)
		push_step(w, (struct rstep){ .node = t.first[i], .clone = true,
		                        .inlined = true });
}

/* The node that has to run again for a value, and is not about to; 0. */
static NodeId
node_to_rerun(const struct schedule *w, const uint8_t *drop,
              const struct ask *a)
{
	return drop[a->storage] && !w->again[a->value] && !w->cloned[a->def]
		? a->def : 0;
}

/* All that the clone reads has been made. */
static void
push_copy(struct schedule *w, const uint8_t *drop, NodeId id)
{
	const struct remat *r = w->r;
	const Node *n = &r->g->node[id];

	for (int i = 0; i < n->nout; i++)
		if (n->out[i] && r->of_val[n->out[i]] >= 0)
			w->again[n->out[i]] = 1;
	push_step(w, (struct rstep){ .node = id, .clone = true,
	                        .makes = dropped_writes(&r->node[id], drop) });
}

/* A value is about to be read in backward.  Chains may be long: no recursion.
 * A node waits once at most. */
static void
request(struct schedule *w, const uint8_t *drop, const struct ask *a)
{
	struct waiting *due = w->waiting;
	NodeId id = node_to_rerun(w, drop, a);
	size_t n = 0;

	while (id || n > 0) {
		const struct rnode *rn;

		if (id) {
			w->cloned[id] = 1;
			due[n++] = (struct waiting){ id, 0 };
		}
		rn = &w->r->node[due[n - 1].node];
		id = due[n - 1].next < rn->nask
			? node_to_rerun(w, drop, &rn->ask[due[n - 1].next]) : 0;
		if (due[n - 1].next++ == rn->nask)
			push_copy(w, drop, due[--n].node);
	}
}

static void
request_value(struct schedule *w, const uint8_t *drop, ValId v)
{
	struct ask a;

	if (remat_ask(w->r, v, &a))
		request(w, drop, &a);
}

static void
schedule_copies(struct schedule *w, const uint8_t *drop)
{
	const Graph *g = w->r->g;

	memset(w->again, 0, g->nval);
	memset(w->cloned, 0, g->nnode);
	memset(w->taken_by, 0, g->nnode * sizeof *w->taken_by);
	w->nstep = 0;
	for (uint32_t k = 0; k < (w->only ? w->nonly : g->nnode - 1); k++) {
		NodeId id = w->only ? w->only[k] : k + 1;
		const struct rnode *rn = &w->r->node[id];

		if (rn->takes)
			need_loop_inputs(w, drop, &g->node[id]);
		else if (rn->backward)
			for (int i = 0; i < rn->nask; i++)
				request(w, drop, &rn->ask[i]);
		push_step(w, (struct rstep){ .node = id });
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
find_dead(struct schedule *w, const struct rstep *step, int32_t n,
          uint8_t *keep)
{
	const struct remat *r = w->r;
	int32_t *wanted = w->now;

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
rebind_view(struct schedule *w, ValId v)
{
	const struct remat *r = w->r;
	const Graph *g = r->g;
	size_t n = 0;

	/* views of views: the one next to the storage first */
	while (v && r->of_val[v] >= 0 && g->val[v].base
	       && w->in_view[v] != w->now[r->of_val[v]]) {
		w->views[n++] = v;
		v = g->node[g->val[v].def].in[0];
	}
	while (n > 0) {
		v = w->views[--n];
		w->in_view[v] = w->now[r->of_val[v]];
		push_step(w, (struct rstep){ .node = g->val[v].def,
		                        .clone = true });
	}
}

/* Views of what step k reads lie in the latest instances. */
static void
rebind_views(struct schedule *w, const Node *n)
{
	for (int i = 0; i < n->nin; i++)
		rebind_view(w, n->in[i]);
}

/* What step k writes is the latest instance; and so are its views. */
static void
record_views(struct schedule *w, const Node *n)
{
	const int32_t *of_val = w->r->of_val;

	for (int i = 0; i < n->nout; i++)
		if (n->out[i] && of_val[n->out[i]] >= 0)
			w->in_view[n->out[i]] = w->now[of_val[n->out[i]]];
}

/* The sequence into w->step. */
static void
expand_steps(struct schedule *w, const struct rstep *step, int32_t n)
{
	const struct remat *r = w->r;
	Arena *scratch = arena_new();
	uint8_t *keep = arena_array(scratch, (size_t)n + 1, 1);
	int32_t ninst = 0;

	find_dead(w, step, n, keep);
	w->nstep = 0;
	for (int32_t k = 0; k < n; k++) {
		const Node *m = r->g ? &r->g->node[step[k].node] : NULL;
		const struct rnode *rn = &r->node[step[k].node];

		if (!keep[k])
			continue;
		if (m)
			rebind_views(w, m);
		push_step(w, step[k]);
		for (int i = 0; i < rn->nwrite; i++)
			if (remat_writes(&step[k], i))
				w->now[rn->write[i]] = ninst++;
		if (m)
			record_views(w, m);
	}
	reserve_instances(w, ninst);
	arena_free(scratch);
}

struct remat_cost
schedule_set(struct schedule *w, const uint8_t *drop)
{
	schedule_copies(w, drop);
	return schedule_measure(w);
}

struct remat_cost
schedule_steps(struct schedule *w, const struct rstep *step, int32_t n)
{
	expand_steps(w, step, n);
	return schedule_measure(w);
}
