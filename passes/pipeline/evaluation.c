/* Stages of the graph that evaluates: those of training, which have the
 * parameters.
 *
 * method  In the order of nodes, a bound node runs on the first stage that is
 *         no earlier than those of its operands, no earlier than the stage that
 *         computes a value of the same name in training, and has all parameters
 *         and inputs that it reads.
 * refuses nodes for which there is no such stage
 */
#include "passes/pipeline/stages.h"

#include <string.h>

struct follower {
	struct stages *s;
	uint64_t *has;                  /* by value that is not bound: the set
	                                 * of stages that have all that it is
	                                 * computed from */
};

static uint64_t *
set_of(const struct follower *f, ValId v)
{
	return f->has + v * (size_t)f->s->words;
}

/* Stages that have the leaf in training.  Constants may be anywhere. */
static void
find_leaf(const struct follower *f, ValId v)
{
	const struct pipeline *l = f->s->p->stages;
	const Val *x = &f->s->g->val[v];

	if (x->kind == V_CONST)
		memset(set_of(f, v), 0xff, (size_t)f->s->words * 8);
	for (int k = 0; k < l->nstage && x->kind != V_CONST; k++) {
		const Graph *stage = l->stage[k].graph;
		ValId same = val_find(stage, x->name);

		if (same && stage->val[same].kind == x->kind)
			set_of(f, v)[k / 64] |= UINT64_C(1) << (k % 64);
	}
}

/* *set: stages that have all operands that are not bound. */
static void
intersect_operands(const struct follower *f, const Node *n, uint64_t *set)
{
	const struct stages *s = f->s;

	memset(set, 0xff, (size_t)s->words * 8);
	for (int k = 0; k < n->nin; k++)
		for (int w = 0; w < s->words && n->in[k]
		     && s->kind[n->in[k]] != KIND_BOUND; w++)
			set[w] &= set_of(f, n->in[k])[w];
}

/* The first stage that may run a bound node; s->n and more: there is none. */
static int
stage_of_bound(const struct follower *f, const Node *n, const uint64_t *set)
{
	const struct stages *s = f->s;
	const struct pipeline *l = s->p->stages;
	const Graph *training = s->p->training;
	int stage = 0;

	for (int k = 0; k < n->nin; k++)
		if (n->in[k] && s->kind[n->in[k]] == KIND_BOUND) {
			int from = s->of_node[s->g->val[n->in[k]].def];

			stage = from > stage ? from : stage;
		}
	for (int k = 0; k < n->nout; k++) {
		ValId same = n->out[k] ? val_find(training,
			s->g->val[n->out[k]].name) : 0;

		if (same && l->of_val[same] > stage)
			stage = l->of_val[same];
	}
	while (stage < s->n && !(set[stage / 64] >> (stage % 64) & 1))
		stage++;
	return stage;
}

static bool
assign_like_training(struct follower *f)
{
	struct stages *s = f->s;
	const Graph *g = s->g;
	uint64_t *set = arena_array(s->p->scratch, (size_t)s->words,
	                            sizeof *set);

	FOR_NODES (n, g) {
		int *stage = &s->of_node[node_id(g, n)];

		intersect_operands(f, n, set);
		*stage = -1;
		if (stage_kind_of(s, n) == KIND_BOUND) {
			*stage = stage_of_bound(f, n, set);
			if (*stage >= s->n)
				return node_error(g, s->p->diag, n, "no stage "
				                  "has all parameters and "
				                  "inputs of this node, behind "
				                  "its operands");
			continue;
		}
		for (int k = 0; k < n->nout; k++)
			if (n->out[k])
				memcpy(set_of(f, n->out[k]), set,
				       (size_t)s->words * 8);
	}
	return true;
}

bool
stages_assign_like(struct stages *s, Pass *p, const Graph *g)
{
	struct follower f = { .s = s };

	stages_begin(s, p, g);
	s->nmicro = 1;
	s->first_tag = p->stages->first_tag + p->stages->ntag;
	f.has = arena_array(p->scratch, g->nval * (size_t)s->words,
	                    sizeof *f.has);
	FOR_VALS (v, g)
		if (!v->def)
			find_leaf(&f, val_id(g, v));
	if (!assign_like_training(&f))
		return false;
	stages_find_needs(s);
	return true;
}
