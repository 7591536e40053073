/* The bytes saved for backward that remain if recomputation may take at most
 * 1 % of the step.
 *
 * what    an account beside the plan, for --dump=memory: values that play the
 *         same role in all layers are dropped together, those first that free
 *         most bytes per second, while the time is within the limit
 * method  greedy, lazy: dropping one thing only makes the next dearer, or
 *         frees fewer bytes, so a ratio that was looked at again and is still
 *         the best is taken
 * needs   P_LAYOUT, the reference
 * cost    about two walks over the graph per role
 * refuses graphs where that is more than WORK_MAX steps, or more than there is
 *         time for: no account
 */
#include "passes/remat_model/remat_model.h"
#include "passes/account/account.h"
#include "passes/place/place.h"
#include "passes/planner/one_percent.h"
#include "passes/account/memory_report.h"

#include <math.h>
#include <stdlib.h>

#define LIMIT 0.01              /* of a step */

enum { WORK_MAX = 200000000 };

struct drop_price {
	int64_t saved;                  /* bytes */
	double sec;
};

/* A role: storages that are dropped together. */
struct drop_role {
	int32_t first, n;               /* in chooser.member */
	double ratio;                   /* bytes per second */
};

struct chooser {
	const struct remat *r;
	uint8_t *drop;
	uint8_t *need;                  /* scratch, by storage */
	int32_t *member;
	struct drop_role *role;
	int32_t nrole;
};

/* Backward needs what it reads; what is dropped needs what made it. */
static struct drop_price
price_drops(struct chooser *c)
{
	const struct remat *r = c->r;
	struct drop_price p = { 0, 0 };

	for (int32_t s = 0; s < r->nstore; s++)
		c->need[s] = 0;
	for (NodeId i = r->nnode - 1; i > 0; i--) {
		const struct rnode *n = &r->node[i];
		bool again = n->backward;

		for (int k = 0; k < n->nwrite; k++)
			again |= c->need[n->write[k]] && c->drop[n->write[k]];
		if (!again)
			continue;
		if (!n->backward)
			p.sec += n->sec;
		for (int k = 0; k < n->nread; k++)
			c->need[n->read[k]] = 1;
	}
	for (int32_t s = 0; s < r->nstore; s++)
		if (c->need[s] && !c->drop[s]
		    && !r->node[r->store[s].def].backward)
			p.saved += r->store[s].size;
	return p;
}

static void
set_role(struct chooser *c, const struct drop_role *o, uint8_t drop)
{
	for (int32_t i = o->first; i < o->first + o->n; i++)
		c->drop[c->member[i]] = drop;
}

static struct drop_price
try_role(struct chooser *c, struct drop_role *o, const struct drop_price *now)
{
	struct drop_price p;
	double sec;

	set_role(c, o, 1);
	p = price_drops(c);
	set_role(c, o, 0);
	sec = p.sec - now->sec;
	o->ratio = p.saved >= now->saved ? 0 : sec > 0
		? (double)(now->saved - p.saved) / sec : INFINITY;
	return p;
}

static void
list_roles(struct chooser *c, const uint8_t *constraint, Arena *arena)
{
	const struct remat *r = c->r;
	int32_t *of_group = arena_array(arena, (size_t)r->ngroup + 1, 4);
	int32_t *role_of = arena_array(arena, (size_t)r->nstore + 1, 4);
	int32_t n = 0;

	for (int32_t s = 0; s < r->nstore; s++) {
		const struct storage *st = &r->store[s];
		int32_t *at = st->group < 0 ? NULL : &of_group[st->group];

		if (!st->candidate || constraint[s] || c->drop[s])
			continue;
		if (!at || !*at) {
			c->nrole++;
			if (at)
				*at = c->nrole;
		}
		role_of[s] = at ? *at : c->nrole;
		c->role[role_of[s] - 1].n++;
	}
	for (int32_t k = 0; k < c->nrole; k++) {
		c->role[k].first = n;
		n += c->role[k].n;
		c->role[k].n = 0;
	}
	for (int32_t s = 0; s < r->nstore; s++) {
		struct drop_role *o = role_of[s] ? &c->role[role_of[s] - 1]
			: NULL;

		if (o)
			c->member[o->first + o->n++] = s;
	}
}

/* The best role by ratio; NULL: none is left that frees anything. */
static struct drop_role *
best_role(struct chooser *c)
{
	struct drop_role *best = NULL;

	for (int32_t k = 0; k < c->nrole; k++)
		if (c->role[k].ratio > 0
		    && (!best || c->role[k].ratio > best->ratio))
			best = &c->role[k];
	return best;
}

static void
choose_roles(struct chooser *c)
{
	double limit = LIMIT * c->r->base_sec;
	struct drop_price now = price_drops(c);
	struct drop_role *o;

	limit += now.sec;
	for (int32_t k = 0; k < c->nrole && !watch_over(c->r->watch); k++)
		try_role(c, &c->role[k], &now);
	while ((o = best_role(c)) && !watch_over(c->r->watch)) {
		struct drop_price p = try_role(c, o, &now);

		if (best_role(c) != o)
			continue;
		if (p.sec <= limit) {
			set_role(c, o, 1);
			now = p;
		}
		o->ratio = 0;
	}
}

void
one_percent_account(Pass *p, const Graph *g, const struct remat *r,
                    const uint8_t *constraint)
{
	size_t n = (size_t)r->nstore + 1;
	struct chooser c = {
		.r = r, .drop = arena_array(p->scratch, n, 1),
		.need = arena_array(p->scratch, n, 1),
		.member = arena_array(p->scratch, n, sizeof *c.member),
		.role = arena_array(p->scratch, n, sizeof *c.role),
	};
	struct one_percent *account = arena_alloc(p->keep, sizeof *account);
	struct schedule *w = schedule_new(r, p->scratch);
	struct memory_report *m;
	const Plan *plan;
	Graph *copy;

	remat_keep_all(r, constraint, c.drop);
	list_roles(&c, constraint, p->scratch);
	if ((int64_t)c.nrole * g->nnode > WORK_MAX)
		return;
	choose_roles(&c);
	if (watch_over(r->watch))
		return;
	copy = graph_clone(g);
	schedule_set(w, c.drop);
	schedule_apply(w, copy);
	inplace_graph(copy, p->scratch);
	plan = plan_build(p, copy, false);
	m = memory_report_new(p, plan, p->scratch);
	*account = (struct one_percent){
		.extra = plan->sum.overhead, .saved = plan->sum.saved,
		.nlayer = m->seg.nlayer, .outside = m->outside,
	};
	account->layer = arena_copy(p->keep, m->layer,
		(size_t)m->seg.nlayer * sizeof *m->layer);
	account->stats = arena_copy(p->keep, m->stats,
		(size_t)m->seg.nlayer * sizeof *m->stats);
	p->planned.one_percent = account;
	graph_free(copy);
}
