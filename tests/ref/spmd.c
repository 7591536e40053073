/* All ranks of a sharded graph in lockstep. */
#include "tests/ref/spmd.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/ref/interp_int.h"

struct spmd {
	const Graph *g;
	int n;
	struct interp **rank;
	char error[320];
};

static bool
fail(struct spmd *s, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(s->error, sizeof s->error, fmt, ap);
	va_end(ap);
	return false;
}

struct spmd *
spmd_new(const Graph *g)
{
	struct spmd *s = interp_need(calloc(1, sizeof *s));

	s->g = g;
	s->n = g->ranks > 0 ? (int)g->ranks : 1;
	s->rank = interp_need(calloc((size_t)s->n, sizeof(struct interp *)));
	for (int r = 0; r < s->n; r++)
		s->rank[r] = interp_new(g);
	interp_group(s->rank, s->n);
	return s;
}

void
spmd_free(struct spmd *s)
{
	if (s == NULL)
		return;
	for (int r = 0; r < s->n; r++)
		interp_free(s->rank[r]);
	free(s->rank);
	free(s);
}

int
spmd_ranks(const struct spmd *s)
{
	return s->n;
}

struct interp *
spmd_rank(struct spmd *s, int r)
{
	return s->rank[r];
}

const char *
spmd_error(const struct spmd *s)
{
	return s->error;
}

void
spmd_set_env(struct spmd *s, const struct interp_env *e)
{
	for (int r = 0; r < s->n; r++)
		*interp_env(s->rank[r]) = *e;
}

bool
spmd_place(struct spmd *s)
{
	bool ok = true;

	for (int r = 0; r < s->n; r++)
		ok &= interp_place(s->rank[r]);
	return ok;
}

/* ---- whole values ---- */

Shape
spmd_shape(const Placement *split, const Shape *local)
{
	return interp_whole_shape(split, local);
}

void
spmd_set(struct spmd *s, ValId v, const double *whole)
{
	const Val held = interp_held(&s->g->val[v]), *p = &held;
	int64_t n = interp_nelem(&p->shape);
	double *x = interp_need(calloc((size_t)n + 1, sizeof *x));

	for (int r = 0; r < s->n; r++) {
		for (int64_t i = 0; i < n; i++) {
			int64_t from = interp_whole(s->rank[r], &p->placement,
			                            &p->shape, i);

			x[i] = from < 0
				|| (p->placement.kind == PLACEMENT_PARTIAL && r > 0)
				? 0 : whole[from];
		}
		interp_set(s->rank[r], v, x);
	}
	free(x);
}

void
spmd_load(struct spmd *s, ValId v, const void *raw)
{
	const Val *p = &s->g->val[v];
	Shape shape = spmd_shape(&p->placement, &p->shape);
	int64_t n = interp_nelem(&shape);
	double *x = interp_need(calloc((size_t)n + 1, sizeof *x));

	for (int64_t i = 0; i < n; i++)
		x[i] = interp_read(p->dt, raw, i);
	spmd_set(s, v, x);
	free(x);
}

static void
add_up(struct spmd *s, ValId v, double *whole)
{
	for (int64_t i = 0; i < interp_nelem(&s->g->val[v].shape); i++) {
		whole[i] = 0;
		for (int r = 0; r < s->n; r++)
			whole[i] += interp_get(s->rank[r], v)[i];
	}
}

bool
spmd_get_as(struct spmd *s, ValId v, const Placement *split, double *whole)
{
	const char *name = s->g->val[v].name;

	for (int r = 0; r < s->n; r++)
		if (v == 0 || interp_get(s->rank[r], v) == NULL)
			return fail(s, "%s has no contents", name);
	if (split->kind == PLACEMENT_PARTIAL)
		add_up(s, v, whole);
	else if (!interp_join(s->rank[0], v, split, whole))
		return fail(s, "%s is not the same on ranks that should have "
		            "the same", name);
	return true;
}

bool
spmd_get(struct spmd *s, ValId v, double *whole)
{
	return spmd_get_as(s, v, &s->g->val[v].placement, whole);
}

bool
spmd_check(struct spmd *s, NodeId first, NodeId last)
{
	bool ok = true;

	for (NodeId i = first; ok && i < last; i++)
		for (int k = 0; ok && k < s->g->node[i].nout; k++) {
			ValId v = s->g->node[i].out[k];
			const Val *p = &s->g->val[v];
			Shape shape = spmd_shape(&p->placement, &p->shape);
			double *x;

			if (!v)
				continue;
			x = interp_need(calloc((size_t)interp_nelem(&shape)
			                       + 1, sizeof *x));
			ok = spmd_get(s, v, x);
			free(x);
		}
	return ok;
}

void
spmd_carry_over(struct spmd *s, NodeId first, NodeId last)
{
	for (NodeId i = first; i < last; i++) {
		const Node *n = &s->g->node[i];

		if (!(op_info[n->op].flags & F_WRITES))
			continue;
		for (int k = 0; k < n->nout; k++)
			for (int r = 0; n->out[k] && r < s->n; r++)
				interp_set(s->rank[r],
				           n->in[op_overwrites(n->op, k)],
				           interp_get(s->rank[r], n->out[k]));
	}
}

/* ---- steps ---- */

bool
spmd_run(struct spmd *s, NodeId first, NodeId last)
{
	for (NodeId i = first; i < last; i++)
		for (int r = 0; r < s->n; r++)
			if (!interp_run(s->rank[r], i, i + 1))
				return fail(s, "rank %d: %s", r,
				            interp_error(s->rank[r]));
	return true;
}

bool
spmd_run_all(struct spmd *s)
{
	return spmd_run(s, 1, s->g->nnode);
}
