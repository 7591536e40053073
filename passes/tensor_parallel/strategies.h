/* What the files of room tensor_parallel share: the sharding strategies of a
 * graph. */
#ifndef PASSES_TENSOR_PARALLEL_STRATEGIES_H
#define PASSES_TENSOR_PARALLEL_STRATEGIES_H

#include "ir/sharding/sharding.h"
#include "passes/pass.h"

/* A sharding strategy of a node: the required placement of each operand and the
 * resulting placement of each result. */
struct strategy {
	Placement *at;                  /* by value index: operands, results */
	double sec;                     /* cost in seconds */
};

/* The strategies of a node, or of a value that no node writes. */
struct strategy_set {
	struct strategy *strategy;
	int n;
	size_t cap;
	int chosen;
};

struct sharding_list {
	Placement *sharding;
	int n;
	size_t cap;
};

struct shard {
	Pass *pass;
	Graph *g;
	Arena *tmp;
	int64_t ranks;
	bool *grad;                     /* by value: a gradient passes */
	struct strategy_set *node;      /* by node */
	struct strategy_set *source;    /* by value: inputs, parameters ... */
	struct sharding_list *sharding; /* by value: shardings in strategies */
	struct uses uses;
	int64_t large;                  /* least elements of a matrix to
	                                 * shard */
};

/* strategies.c */
void shard_find_strategies(struct shard *);
/* The strategies of the writer of a value, and the value's index there. */
struct strategy_set *shard_producer(struct shard *, ValId, int *value_index);
static inline const Placement *
shard_placement(struct shard *s, ValId v)
{
	int value_index;
	struct strategy_set *c = shard_producer(s, v, &value_index);

	return &c->strategy[c->chosen].at[value_index];
}

static inline bool
shard_is_matrix(const Val *v)
{
	return v->kind == V_PARAM && v->shape.rank >= 2;
}

/* shard_constraints.c: check that every --shard matches a value; false after a
 * diagnostic. */
bool shard_check_constraints(struct shard *);
/* strategy_ilp.c: choose a strategy for each node; false after a diagnostic. */
bool shard_choose_strategies(struct shard *);
/* runner_up.c: the cost of another placement of the value of --explain. */
void shard_find_runner_up(struct shard *);

/* strategy_cost.c */
/* Seconds to convert a value from placement `from` to `to`, forward and in
 * backward; negative: no conversion exists. */
double shard_conversion_cost(const struct shard *, ValId, const Placement *from,
                             const Placement *to);
/* Seconds of a node, in all phases; result: placements of its results. */
double shard_node_cost(const struct shard *, const Node *,
                       const Placement *result, bool sharded);
/* Seconds of a parameter's gradient under this placement of the parameter. */
double shard_param_cost(const struct shard *, ValId, const Placement *);

/* shard_notes.c: check that half of the matrices' bytes can be sharded.  False
 * after a diagnostic that lists the others and a remedy. */
bool shard_check_fraction(struct shard *);
/* Report nodes that remain replicated. */
void shard_note_replicated(struct shard *);

/* apply.c: false after a diagnostic. */
bool shard_apply(struct shard *);

#endif
