/* How rows are exchanged, between exchange.c, which walks the nodes, and
 * exchange_nodes.c, which makes new ones.
 */
#ifndef PASSES_EXPERT_PARALLEL_EXCHANGE_H
#define PASSES_EXPERT_PARALLEL_EXCHANGE_H

#include "passes/expert_parallel/expert_parallel.h"

enum kind { ROWS_LOCAL, ROWS_ALL, ROWS_ZERO, ROWS_OTHER };

struct rows {
	ValId v;                        /* of the group; 0: none */
	enum kind kind;
	int slots;                      /* --expert-capacity: which it has */
};

/* --expert-capacity: where rows of these indices go. */
struct slots {
	ValId idx, slot, row, expert;
	int64_t all, room;
};

struct exchange {
	Pass *p;
	Graph *g;
	int64_t count;                  /* replicas of a group */
	NodeId nold;
	bool *varies;                   /* by value: replicas may differ */
	bool *feeds;                    /* by value: products of experts alone
	                                 * read it, row by row */
	struct rows *rows;              /* by value */
	struct slots *slots;            /* [nslots]; slots[0]: none */
	int nslots, at;                 /* at: those of the product at hand, or
	                                 * of what an op's operands have */
	NodeId *order;
	size_t norder, cap;
	bool failed;
};

/* Of a product of experts or a gather of their biases: of how many experts a
 * replica has some; 0: others have none.  The operand that chooses them. */
static inline int64_t
exchange_experts(const Node *n)
{
	Attr a = n->attr;
	const int64_t *all = attr_int_of(n->op, &a, "all");

	return all ? *all : 0;
}

static inline ValId
exchange_choice(const Node *n)
{
	return n->in[n->nin - 1];
}

static inline bool
exchange_has_capacity(const struct exchange *e)
{
	return e->p->opt->expert_capacity > 0;
}

/* The ranks of a replica have a part of the rows each. */
static inline bool
exchange_shards_rows(const Graph *g, ValId v)
{
	const Placement *s = &g->val[v].placement;

	return s->kind == PLACEMENT_SHARD && s->axis == 0;
}

/* ---- exchange_nodes.c: all set e->failed after a diagnostic ---- */

void exchange_append(struct exchange *, NodeId);
/* A node with other operands, whose results have rows of the group, as v has
 * of one replica. */
ValId exchange_emit_rows(struct exchange *, Op, int nin, const ValId *in,
                         const Attr *, ValId v, NodeId like);
/* v of the rows that this replica's experts get. */
ValId exchange_emit_gather(struct exchange *, ValId v, NodeId like);
/* This replica's rows of v take the place of what computed them alone. */
void exchange_emit_own(struct exchange *, ValId v);
/* e->at: the slots of the indices of a product or of biases. */
bool exchange_find_slots(struct exchange *, NodeId);

#endif
