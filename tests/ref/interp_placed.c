/* Reference interpreter: the memory of a placed graph.
 *
 * Beside the value arrays every owner has the bytes that the plan gives it.
 * Outputs are written there with their strides; before a node runs, its fresh
 * outputs and its scratch are filled with a pattern, and then every operand
 * must still read as it was written.  So overlapping live ranges, illegal
 * in-place writes, wrong views and scratch on top of operands are found at
 * the node that suffers, by name.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/ref/interp_int.h"

enum { PATTERN = 0xFF };                /* NaN in every float type */

struct placed {
	unsigned char *arena;
	size_t arena_bytes;
	unsigned char **own;            /* by owner outside the arena */
	bool borrowed;                  /* the arena is another's */
};

static bool
in_arena(const Val *v)
{
	return v->kind == V_TEMP && !v->resident;
}

static size_t
size_of(const struct interp *it)
{
	const Graph *g = it->g;
	int64_t end = 64 + it->pool[2].at + it->pool[2].n * it->pool[2].bytes;

	FOR_VALS (v, g)
		if (in_arena(v) && v->base == 0 && v->offset >= 0
		    && v->offset + v->nbytes > end)
			end = v->offset + v->nbytes;
	FOR_NODES (n, g)
		if (n->workspace > 0 && n->workspace_at + n->workspace > end)
			end = n->workspace_at + n->workspace;
	return (size_t)end;
}

/* In the slot of the micro-batch, or behind all slots. */
static unsigned char *
at_offset(const struct interp *it, int64_t offset)
{
	int64_t at = offset;

	for (int k = 0; k < 3; k++) {
		const struct interp_pool *p = &it->pool[k];

		if (offset >= p->at && offset < p->at + p->bytes)
			at += k == 0 && it->differ ? it->before
				: it->micro % p->n * p->bytes;
	}
	return it->placed->arena + at;
}

static unsigned char *
bytes_of(const struct interp *it, ValId owner)
{
	const Val *o = &it->g->val[owner];

	if (!in_arena(o))
		return it->placed->own[owner];
	if (o->offset < 0)
		return NULL;
	return at_offset(it, o->offset);
}

/* Elements between the owner's start and element idx of v. */
static int64_t
element_at(const Val *v, const int64_t idx[MAX_RANK])
{
	int64_t at = v->start;

	for (int k = 0; k < v->shape.rank; k++)
		at += idx[k] * v->stride[k];
	return at;
}

static bool
has_place(const struct interp *it, ValId v)
{
	const Val *p = &it->g->val[v];

	return p->laid_out && bytes_of(it, val_owner(it->g, v)) != NULL;
}

void
placed_write(struct interp *it, ValId v)
{
	const Val *p = &it->g->val[v];
	int64_t n = interp_nelem(&p->shape), idx[MAX_RANK];
	unsigned char *to = bytes_of(it, val_owner(it->g, v));

	for (int64_t i = 0; to != NULL && i < n; i++) {
		interp_unravel(&p->shape, i, idx);
		interp_write(p->dt, to, element_at(p, idx), it->x[v][i]);
	}
}

/* The first element that does not read as it was written, or -1. */
static int64_t
first_change(const struct interp *it, ValId v)
{
	const Val *p = &it->g->val[v];
	int64_t n = interp_nelem(&p->shape), idx[MAX_RANK];
	const unsigned char *from = bytes_of(it, val_owner(it->g, v));

	for (int64_t i = 0; i < n; i++) {
		interp_unravel(&p->shape, i, idx);
		if (!same_number(interp_read(p->dt, from, element_at(p, idx)),
		                 it->x[v][i]))
			return i;
	}
	return -1;
}

static bool
check(struct call *c, ValId v, const char *what)
{
	const char *name = c->g->val[v].name;
	int64_t i;

	if (!has_place(c->it, v))
		return interp_fail(c, "%s %s has no place", what, name);
	i = first_change(c->it, v);
	if (i < 0)
		return true;
	return interp_fail(c, "%s %s: element %lld is not what was written",
	                   what, name, (long long)i);
}

static bool
is_view(const struct call *c)
{
	return (op_info[c->n->op].flags & F_VIEW) && c->n->out[0]
	       && c->g->val[c->n->out[0]].base != 0;
}

bool
placed_before(struct call *c)
{
	for (int k = 0; k < c->nout; k++) {
		const Val *o = &c->g->val[c->n->out[k]];
		unsigned char *at;

		if (c->n->out[k] == 0 || o->base != 0)
			continue;
		at = bytes_of(c->it, c->n->out[k]);
		if (at == NULL)
			return interp_fail(c, "output %s has no place",
			                   o->name);
		memset(at, PATTERN, (size_t)o->nbytes);
	}
	if (c->n->workspace > 0)
		memset(at_offset(c->it, c->n->workspace_at), PATTERN,
		       (size_t)c->n->workspace);
	for (int k = 0; k < c->nin; k++)
		if (c->n->in[k] && !check(c, c->n->in[k], "operand"))
			return false;
	return true;
}

bool
placed_after(struct call *c)
{
	if (is_view(c))
		return check(c, c->n->out[0], "view");
	for (int k = 0; k < c->nout; k++)
		if (c->n->out[k])
			placed_write(c->it, c->n->out[k]);
	for (int k = 0; k < c->nout; k++)
		if (c->n->out[k] && !check(c, c->n->out[k], "output"))
			return false;
	return true;
}

/* What was updated in place is the parameter of the next step. */
void
placed_start(struct interp *it)
{
	const Graph *g = it->g;
	int64_t idx[MAX_RANK];

	memset(it->placed->arena, PATTERN, it->placed->arena_bytes);
	for (ValId v = 1; v < g->nval; v++) {
		const Val *p = &g->val[v];

		if (p->kind == V_TEMP || it->placed->own[v] == NULL
		    || it->x[v] == NULL)
			continue;
		for (int64_t i = 0; i < interp_nelem(&p->shape); i++) {
			interp_unravel(&p->shape, i, idx);
			it->x[v][i] = interp_read(p->dt, it->placed->own[v],
			                          element_at(p, idx));
		}
	}
}

bool
interp_place(struct interp *it)
{
	const Graph *g = it->g;
	struct placed *p = interp_need(calloc(1, sizeof *p));

	p->arena_bytes = size_of(it);
	p->arena = interp_need(malloc(p->arena_bytes));
	p->own = interp_need(calloc(g->nval, sizeof *p->own));
	it->placed = p;
	it->env.round = ROUND_ALL;
	for (ValId v = 1; v < g->nval; v++) {
		const Val *o = &g->val[v];

		if (in_arena(o) || o->base != 0 || !o->laid_out
		    || o->nbytes <= 0)
			continue;
		p->own[v] = interp_need(calloc(1, (size_t)o->nbytes));
		if (o->kind != V_TEMP && interp_get(it, v) != NULL)
			placed_write(it, v);
	}
	return true;
}

void
interp_share_arena(struct interp *it, const struct interp *with)
{
	struct placed *p = it->placed, *of = with->placed;

	if (!p || !of)
		return;
	free(p->arena);
	if (of->arena_bytes < p->arena_bytes) {
		of->arena = interp_need(realloc(of->arena, p->arena_bytes));
		of->arena_bytes = p->arena_bytes;
	}
	p->arena_bytes = of->arena_bytes;
	p->arena = of->arena;
	p->borrowed = true;
}

void
placed_free(struct interp *it)
{
	if (it->placed == NULL)
		return;
	for (ValId v = 0; v < it->g->nval; v++)
		free(it->placed->own[v]);
	free(it->placed->own);
	if (!it->placed->borrowed)
		free(it->placed->arena);
	free(it->placed);
}
