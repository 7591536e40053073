/* Comparing two forms of a model, thing by thing. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/ref/interp_int.h"
#include "tests/ref/pair.h"

static const char *const kind_name[PAIR_KINDS] = {
	"loss", "norm", "gradients", "parameters", "first states",
	"second states", "outputs",
};

/* ---- what there is to compare ---- */

static bool
kind_of(const Graph *g, const Val *v, enum pair_kind *k)
{
	static const char *const first[] = { "m", "row" };

	*k = OUTPUT;
	if (val_id(g, v) == g->loss)
		*k = LOSS;
	else if (v->kind == V_PARAM || v->kind == V_BUFFER)
		*k = PARAMETER;
	else if (v->kind == V_TEMP && v->def && v->param)
		*k = GRADIENT;
	else if (v->kind == V_TEMP && v->def
	         && g->node[v->def].op == OP_GRAD_NORM)
		*k = NORM;
	else if (v->kind == V_STATE)
		*k = strcmp(v->state, first[0]) && strcmp(v->state, first[1])
			? STATE_2 : STATE_1;
	else if (!v->output)
		return false;
	if (val_is_blocks(v))           /* nothing writes it */
		return false;
	return v->kind != V_STATE || (strcmp(v->state, "grad") != 0
	                              && strcmp(v->state, "copy") != 0);
}

/* The same thing in another graph. */
static ValId
other_of(const Graph *g, enum pair_kind kind, const char *name)
{
	FOR_VALS (v, g) {
		enum pair_kind k;

		if (!kind_of(g, v, &k) || k != kind)
			continue;
		if (kind == LOSS || kind == NORM
		    || strcmp(kind == GRADIENT ? g->val[v->param].name
		              : v->name, name) == 0)
			return val_id(g, v);
	}
	return 0;
}

static void
complain(struct pair *p, const struct pair_entry *e, const char *what)
{
	if (!p->quiet)
		printf("%s of %s: %s\n", kind_name[e->kind], e->name, what);
	p->faults++;
}

void
pair_list(struct pair *p)
{
	const Graph *g = p->a.g;
	int nb = 0;

	p->e = arena_array(p->a.arena, g->nval, sizeof *p->e);
	FOR_VALS (v, g) {
		struct pair_entry *e = &p->e[p->n];

		if (!kind_of(g, v, &e->kind))
			continue;
		e->name = e->kind == GRADIENT ? g->val[v->param].name
		                              : v->name;
		e->a = val_id(g, v);
		e->b = other_of(p->b.g, e->kind, e->name);
		if (e->b)
			p->n++;
		else
			complain(p, e, "not in the second form");
	}
	FOR_VALS (v, p->b.g) {
		enum pair_kind k;

		nb += kind_of(p->b.g, v, &k);
	}
	if (nb == p->n)
		return;
	if (!p->quiet)
		printf("%d against %d things to compare\n", p->n, nb);
	p->faults++;
}

/* ---- contents ---- */

static struct pair_whole
contents(const struct pair *p, struct run *r, ValId v)
{
	if (r->g->val[v].placement.kind == PLACEMENT_PARTIAL) {
		if (!p->quiet)
			printf("%s is not the same on all ranks: a summand\n",
			       r->g->val[v].name);
		return (struct pair_whole){ NULL, 0 };
	}
	return (struct pair_whole){ run_get(r, v), run_elements(r, v) };
}

/* What a last piece lacks is zeros, or norms and means would count it. */
static bool
is_padded_well(const struct run *r, ValId v)
{
	const Val *p = &r->g->val[v];
	bool ok = true;

	for (int k = 0; p->placement.kind == PLACEMENT_SHARD && k < spmd_ranks(r->s);
	     k++) {
		struct interp *it = spmd_rank(r->s, k);
		const double *x = interp_get(it, v);

		for (int64_t i = 0; x && i < val_nelem(p); i++)
			ok &= x[i] == 0
				|| interp_whole(it, &p->placement, &p->shape, i)
				   >= 0;
	}
	return ok;
}

/* What is equal, if the caller does not say. */
static double
tolerance_of(const struct pair *p)
{
	return p->tolerance > 0 ? p->tolerance : 1e-9;
}

static void
read_entries(struct pair *p)
{
	for (struct pair_entry *e = p->e; e < p->e + p->n; e++) {
		e->x = contents(p, &p->a, e->a);
		e->y = contents(p, &p->b, e->b);
		e->most = 0;
		for (int64_t i = 0; e->x.x && i < e->x.n; i++)
			if (!(fabs(e->x.x[i]) <= e->most))
				e->most = fabs(e->x.x[i]);
	}
}

/* ---- comparison ---- */

/* What differences are relative to. */
static double
scale_of(const struct pair *p, const struct pair_entry *e)
{
	double most = 0;

	for (const struct pair_entry *o = p->e; o < p->e + p->n; o++)
		if (o->kind == e->kind)
			most = fmax(most, o->most);
	most = fmax(e->most, (p->least > 0 ? p->least
	                       : 1e3 * tolerance_of(p)) * most);
	if (e->kind == PARAMETER)
		most = fmax(most, p->a.env.lr);
	return most > 0 ? most : 1;
}

static double
difference(const struct pair *p, const struct pair_entry *e)
{
	double scale = scale_of(p, e), worst = 0;

	for (int64_t i = 0; i < e->x.n; i++) {
		double x = e->x.x[i], y = e->y.x[i];

		if (x == y || (isnan(x) && isnan(y)))
			continue;
		if (!(fabs(x - y) <= worst * scale))
			worst = fabs(x - y) / scale;
		if (isnan(worst))
			return INFINITY;
	}
	return worst;
}

void
pair_compare(struct pair *p, int step)
{
	double worst[PAIR_KINDS] = { 0 };

	read_entries(p);
	for (struct pair_entry *e = p->e; e < p->e + p->n; e++) {
		double d;
		char text[64];

		if (!e->x.x || !e->y.x || e->x.n != e->y.n) {
			complain(p, e, "contents or extents are missing");
			continue;
		}
		d = difference(p, e);
		if (e->kind >= GRADIENT && e->kind <= STATE_2
		    && !is_padded_well(&p->b, e->b))
			complain(p, e, "padding is not zero");
		worst[e->kind] = fmax(worst[e->kind], d);
		p->worst = fmax(p->worst, d);
		snprintf(text, sizeof text, "step %d: differs by %.3g", step,
		         d);
		if (!(d <= tolerance_of(p)))
			complain(p, e, text);
	}
	if (p->quiet)
		return;
	printf("step %d:", step);
	for (int k = 0; k < PAIR_KINDS; k++)
		printf(" %s %.2g", kind_name[k], worst[k]);
	printf("\n");
}

