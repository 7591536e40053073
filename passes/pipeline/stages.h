/* Parts of room pipeline: which stage each node runs on. */
#ifndef PASSES_PIPELINE_STAGES_H
#define PASSES_PIPELINE_STAGES_H

#include "passes/pipeline/pipeline.h"

/* A value or node that depends on kinds a and b is of kind a | b. */
enum stage_kind { KIND_CONST, KIND_FREE, KIND_PARAM, KIND_BOUND };

struct stages {
	Pass *p;
	const Graph *g;
	int n;                          /* number of stages */
	uint8_t *kind;                  /* by value: enum stage_kind */
	int *of_node;                   /* by node: its stage; -1: not bound */
	int words;                      /* of a set of stages */
	uint64_t *need;                 /* by node, not bound: the set of stages
	                                 * that run a copy */
	uint64_t *has;                  /* by value that no node writes: the set
	                                 * of stages that have it */
	struct stage_cut *cut;          /* [n - 1] */
	int64_t first_tag;
	int nmicro;
};

static inline bool
stage_in(const struct stages *s, const uint64_t *sets, size_t i, int stage)
{
	return sets[i * (size_t)s->words + (size_t)stage / 64]
		>> (stage % 64) & 1;
}

/* Whether node id runs on the stage. */
static inline bool
stage_runs(const struct stages *s, NodeId id, int stage)
{
	return s->of_node[id] >= 0 ? s->of_node[id] == stage
		: stage_in(s, s->need, id, stage);
}

/* The kind of a node: that of its results. */
static inline enum stage_kind
stage_kind_of(const struct stages *s, const Node *n)
{
	int kind = op_info[n->op].flags & F_RNG ? KIND_FREE : KIND_CONST;

	for (int k = 0; k < n->nin; k++)
		kind |= n->in[k] ? s->kind[n->in[k]] : 0;
	return (enum stage_kind)kind;
}

/* Share out all nodes; false after a diagnostic. */
bool stages_assign(struct stages *, Pass *, const Graph *);

/* evaluation.c: share out the nodes of a graph that evaluates to the stages of
 * training, p->stages, that have their parameters. */
bool stages_assign_like(struct stages *, Pass *, const Graph *);

/* Parts of both: of an empty struct; by value its kind; what outputs and the
 * operands of all nodes need. */
void stages_begin(struct stages *, Pass *, const Graph *);
void stages_find_needs(struct stages *);

/* places.c: by place (Node.place) of bound forward nodes: the stage; others:
 * -1; and s->cut.  Stages take about equally long, unless opt->stage says where
 * to cut.  False after a diagnostic. */
bool places_choose(const struct stages *, int *of_place);
void places_list(const struct stages *, struct forward_line *);

/* cut.c: the graphs of all stages. */
bool stages_cut(const struct stages *, struct pipeline *);

#endif
