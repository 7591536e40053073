/* What the walk of pass fold knows of values. */
#include "passes/fold_build/fold_build.h"

static void
grow_facts(struct fold *f)
{
	f->facts = arena_grow(f->p->scratch, f->facts, f->nfacts, &f->facts_cap,
	                      f->g->nval, sizeof *f->facts);
	f->nfacts = f->g->nval;
}

struct val_facts *
fold_facts(struct fold *f, ValId v)
{
	if (v >= f->nfacts)
		grow_facts(f);
	return &f->facts[v];
}

static bool
reads_extents(const Node *n)
{
	return n->op == OP_SHAPE || n->op == OP_SIZE;
}

bool
fold_reads_extents(const Graph *g)
{
	FOR_NODES (n, g)
		if (reads_extents(n))
			return true;
	return false;
}

bool
fold_is_from_extents(struct fold *f, const Node *n)
{
	if (reads_extents(n) && !val_is_const(in_val(f, n, 0)))
		return true;
	for (int k = 0; k < n->nin; k++)
		if (n->in[k] && fold_facts(f, n->in[k])->from_extents)
			return true;
	return false;
}
