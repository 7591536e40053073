/* Refuse a budget: the smallest one that works, the values alive at the
 * tightest step of that plan, and what would help.
 */
#include "passes/plan/choose.h"
#include "runtime/support/number.h"

#include <inttypes.h>
#include <string.h>
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

/* What no optimizer would spare is kept of micro-batches. */
static bool
is_of_optimizer(const Val *v)
{
	return v->kind == V_STATE && v->param && strcmp(v->state, "grad") != 0;
}

/* Resident bytes by what they are; states: an optimizer's. */
static int64_t
bytes_of(const Graph *g, ValKind kind)
{
	int64_t sum = 0;

	FOR_VALS (v, g)
		if (v->kind == kind && !v->base
		    && (kind != V_STATE || is_of_optimizer(v)))
			sum += v->nbytes;
	return sum;
}

/* What states of the shape of their parameters, in float32, would save. */
static int64_t
half_of_states(const Graph *g)
{
	int64_t sum = 0;

	FOR_VALS (v, g)
		if (is_of_optimizer(v) && v->dt == DT_F32 && !v->base
		    && shape_eq(&v->shape, &g->val[v->param].shape)
		    && g->val[v->param].shape.rank > 0)
			sum += v->nbytes - (v->nbytes / 2 + 63) / 64 * 64;
	return sum;
}

static void
show(Diag *d, const char *name, int64_t bytes)
{
	if (bytes)
		diag_more(d, "%12" PRId64 " B  %s", bytes, name);
}

/* Bytes of the arena at a step: of gradients of parameters, and of what grows
 * with the batch. */
struct tight {
	int64_t grad, batch;
};

/* Parts of gradients that are added up stand in for a parameter, too. */
static bool
like_param(const Graph *g, const Val *v)
{
	FOR_VALS (p, g)
		if (p->kind == V_PARAM && shape_eq(&p->shape, &v->shape))
			return g->node[v->def].phase != PH_FORWARD;
	return false;
}

static struct tight
measure_step(const struct remat *r, int32_t step)
{
	struct tight t = { 0, r->node[r->step[step].node].workspace };

	for (int32_t y = 0; y < r->ninst; y++) {
		const struct storage *s = &r->store[r->of_inst[y]];
		const Val *v = &r->g->val[s->owner];

		if (r->first[y] < 0 || r->block[y] != y || r->first[y] > step
		    || r->last[y] < step)
			continue;
		if (v->param)
			t.grad += s->size;
		else if (!like_param(r->g, v))
			t.batch += s->size;
	}
	return t;
}

/* The smallest of 2, 4, ... up to `most` parts into which so many bytes must be
 * cut for the rest to fit; 2 if none will do. */
static int64_t
parts_for(const Pass *p, int64_t bytes, int64_t most)
{
	for (int64_t n = 2; n <= most; n *= 2)
		if (p->minimum_peak - (bytes - bytes / n) <= p->budget)
			return n;
	return 2;
}

/* One line: what to do, by how many bytes that helps, whether it suffices. */
static void
offer(const Pass *p, const char *what, const char *about, int64_t bytes)
{
	if (bytes > 0)
		diag_more(p->diag, "  %s: %s%" PRId64 " B less%s", what, about,
		          bytes, p->minimum_peak - bytes <= p->budget
		          ? ", which would do" : "");
}

static bool
offer_help(const Pass *p, const Graph *g, struct tight t)
{
	enum { BATCHES = 64 };
	const struct options *o = p->opt;
	bool late = g->props & P_UPD && !p->early
		&& o->update_in_backward != TRI_ON && o->grad_accum == 1
		&& o->optimizer != OPT_NONE && !graph_has_op(g, OP_LOSS_SCALE);
	int64_t less, n;
	/* accumulators stay in memory and stand in for gradients */
	int64_t held = o->grad_accum > 1 ? 0 : bytes_of(g, V_PARAM) - t.grad;
	char what[128];

	diag_more(p->diag, "what would help:");
	if (o->nkeep || o->nrecompute)
		diag_more(p->diag, "  no --keep and no --recompute-values, "
		          "which rule plans out");
	if (o->remat != REMAT_AUTO)
		diag_more(p->diag, "  --recompute auto, which looks for the "
		          "least");
	offer(p, "--update-in-backward on, which frees a gradient once it is "
	      "applied", "up to ", late ? t.grad : 0);
	n = parts_for(p, t.batch, BATCHES);
	less = t.batch - t.batch / n;
	snprintf(what, sizeof what, "1/%" PRId64 " of the batch (--dim)", n);
	offer(p, what, "about ", less);
	snprintf(what, sizeof what, "... and --grad-accum %" PRId64 ", which "
	         "makes up for it and holds gradients", n * o->grad_accum);
	offer(p, what, "about ", o->optimizer != OPT_NONE ? less - held : 0);
	offer(p, "--state-dtype bf16", "",
	      o->optimizer == OPT_ADAFACTOR ? 0 : half_of_states(g));
	offer(p, "--optimizer sgd, which needs no state", "",
	      bytes_of(g, V_STATE));
	return false;
}

bool
remat_refuse(Pass *p, struct remat *r, struct remat_cost c)
{
	const Graph *g = r->g;
	struct alive top[SHOWN] = { 0 };
	const Node *tight = &g->node[r->step[c.tight].node];
	const char *where = tight->norigin ? g->origin[tight->origin[0]].name
		: op_info[tight->op].text;
	int64_t state = bytes_of(g, V_STATE), kept = -state;
	bool preset = p->opt->remat != REMAT_AUTO;
	Diag *d = p->diag;
	char least[24];

	FOR_VALS (v, g)
		kept += v->kind == V_STATE && !v->base ? v->nbytes : 0;
	p->refused = true;
	if (p->lenient)
		return false;
	diag_error(d, "memory budget %" PRId64 " B is too small%s; smallest "
	           "budget that works%s: %" PRId64 " B (%s)", p->budget,
	           preset ? " for this --recompute" : "", preset ? " with it"
	           : watch_over(p->watch) ? " of those found in --plan-time"
	           : "",
	           p->minimum_peak,
	           number_bytes(least, (double)p->minimum_peak));
	diag_more(d, "the tightest step is %s (%s); largest of what is alive "
	          "there:", where, op_info[tight->op].text);
	show(d, "parameters and buffers",
	     bytes_of(g, V_PARAM) + bytes_of(g, V_BUFFER));
	show(d, "optimizer state", state);
	show(d, "gradients of micro-batches", kept);
	show(d, "inputs", bytes_of(g, V_INPUT));
	rank_alive(r, c.tight, top);
	for (int i = 0; i < SHOWN && top[i].size; i++)
		show(d, top[i].name, top[i].size);
	return offer_help(p, g, measure_step(r, c.tight));
}
