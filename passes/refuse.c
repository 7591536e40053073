/* Refuse a budget: the smallest one that works, the values alive at the
 * tightest step of that plan, and what would help.
 */
#include "passes/choose.h"

#include <inttypes.h>
#include <stdio.h>

enum { SHOWN = 8 };

struct alive {
	const char *name;
	int64_t size;
};

/* Insert by size; ties stay in order. */
static void
rank(struct alive *top, struct alive a)
{
	int i = SHOWN;

	if (a.size <= top[SHOWN - 1].size)
		return;
	for (i = SHOWN - 1; i > 0 && top[i - 1].size < a.size; i--)
		top[i] = top[i - 1];
	top[i] = a;
}

static void
rank_alive(const struct remat *r, int32_t step, struct alive *top)
{
	for (int32_t i = 0; i < r->ninst; i++) {
		const struct storage *s = &r->store[r->of_inst[i]];

		if (r->first[i] >= 0 && r->block[i] == i
		    && r->first[i] <= step && r->last[i] >= step)
			rank(top, (struct alive){ r->g->val[s->owner].name,
			                          s->size });
	}
	rank(top, (struct alive){ "workspace",
		r->node[r->step[step].node].workspace });
}

/* Resident bytes by what they are. */
static int64_t
bytes_of(const Graph *g, ValKind kind)
{
	int64_t sum = 0;

	FOR_VALS (v, g)
		if (v->kind == kind && !v->base)
			sum += v->nbytes;
	return sum;
}

static void
show(Diag *d, const char *name, int64_t bytes)
{
	if (bytes)
		diag_more(d, "%12" PRId64 " B  %s", bytes, name);
}

bool
remat_refuse(Pass *p, struct remat *r, struct remat_cost c)
{
	const Graph *g = r->g;
	struct alive top[SHOWN] = { 0 };
	const Node *tight = &g->node[r->step[c.tight].node];
	const char *where = tight->norigin ? g->origin[tight->origin[0]].name
		: op_info[tight->op].text;
	int64_t state = bytes_of(g, V_STATE);
	bool preset = p->opt->remat != REMAT_AUTO;
	bool late = state && !p->early
		&& p->opt->update_in_backward != TRI_ON
		&& p->opt->grad_accum == 1;
	Diag *d = p->diag;

	p->refused = true;
	if (p->lenient)
		return false;
	diag_error(d, "memory budget %" PRId64 " B is too small%s; smallest "
	           "budget that works%s: %" PRId64 " B", p->budget,
	           preset ? " for this --recompute" : "",
	           preset ? " with it" : "", p->minimum_peak);
	diag_more(d, "the tightest step is %s (%s); largest of what is alive "
	          "there:", where, op_info[tight->op].text);
	show(d, "parameters and buffers",
	     bytes_of(g, V_PARAM) + bytes_of(g, V_BUFFER));
	show(d, "optimizer state", state);
	show(d, "inputs", bytes_of(g, V_INPUT));
	rank_alive(r, c.tight, top);
	for (int i = 0; i < SHOWN && top[i].size; i++)
		show(d, top[i].name, top[i].size);
	return diag_more(d, "what would help: a smaller batch or sequence "
	                 "(--dim)%s%s%s",
	                 state ? "; --optimizer sgd, which needs no state" : "",
	                 late ? "; --update-in-backward on, which frees a "
	                 "gradient once it is applied" : "",
	                 preset ? "; --recompute auto" : "");
}
