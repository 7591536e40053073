/* Declarations shared by the files that choose sharding strategies. */
#ifndef PASSES_TENSOR_PARALLEL_STRATEGY_ILP_H
#define PASSES_TENSOR_PARALLEL_STRATEGY_ILP_H

#include "passes/tensor_parallel/strategies.h"
#include "passes/ilp/ilp.h"

/* Nodes by id, then values that no node writes by nnode + id. */
struct node_classes {
	uint32_t n;                     /* entities */
	uint32_t *of;                   /* class, by entity */
	uint32_t nclass;
	uint32_t *first;                /* an entity of each class */
	double *count;                  /* entities of each class */
	int *col;                       /* column of the first strategy */
};

/* Distinct placements, numbered in order of addition. */
struct placement_list {
	Placement *s;
	int n;
	size_t cap;
};

struct strategy_edge {
	uint32_t producer, reader;      /* classes */
	int result_index, value_index;
	ValId v;                        /* value of the representative */
	double count;
};

struct strategy_ilp {
	struct shard *s;
	struct node_classes c;
	struct strategy_edge *edge;
	size_t nedge, edge_cap;
	Ilp *ilp;
	uint32_t seed;
	uint32_t isolated;              /* entity in a class alone; 0: none */
	int value_index;                /* its value without ... */
	const Placement *excluded;      /* ... this placement */
};

static inline uint32_t
entity_of(const struct shard *s, ValId v)
{
	NodeId def = s->g->val[v].def;

	return def ? def : s->g->nnode + v;
}

static inline struct strategy_set *
strategies_of(const struct strategy_ilp *m, uint32_t entity)
{
	const struct shard *s = m->s;

	return entity < s->g->nnode ? &s->node[entity]
		: &s->source[entity - s->g->nnode];
}

static inline bool
is_sharded_at(const struct strategy *w, int value_index)
{
	return w->at[value_index].kind == PLACEMENT_SHARD;
}

/* strategy_ilp.c: the number of a placement in the list, which adds a missing
 * one. */
int placement_list_index(struct placement_list *, const Placement *, Arena *);
/* Solve the program; read the strategy that it chooses for an entity. */
struct ilp_answer strategy_ilp_solve(struct strategy_ilp *);
int strategy_ilp_choice(const struct strategy_ilp *, const struct ilp_answer *,
                        uint32_t entity);

/* node_classes.c: classes of entities with the same strategy, and edges. */
void strategy_find_classes(struct strategy_ilp *);
void strategy_find_edges(struct strategy_ilp *);

/* shard_constraints.c: whether a strategy of a class breaks a constraint. */
bool strategy_is_forbidden(const struct strategy_ilp *, uint32_t class,
                           const struct strategy *);
/* Whether the class must shard operand 0 if it has a strategy that does. */
bool strategy_must_shard(const struct strategy_ilp *, uint32_t class);
/* Report why the program has no solution; returns false. */
bool strategy_refuse(const struct strategy_ilp *);
/* The user constraint on a value, as a number; 0: none. */
uint64_t strategy_constraint_key(const struct shard *, ValId);

#endif
