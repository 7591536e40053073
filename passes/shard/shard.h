/* Room shard: one rank's graph from the full graph.
 *
 * in      a canonical forward graph with its loss, --tp and --sp
 * out     the same graph as one of `tp` ranks sees it: local shapes,
 *         a placement per value, collectives where placements differ
 * unaware of backward (autodiff derives it from the placements), of memory and
 *         of what any model calls its layers
 *
 * strategies.c finds the sharding strategies of each node, strategy_ilp.c
 * chooses among them by an integer program whose costs (strategy_cost.c) are
 * those of the collectives, forward and dual, and apply.c rewrites the graph.
 */
#ifndef PASSES_SHARD_SHARD_H
#define PASSES_SHARD_SHARD_H

#include "passes/pass.h"
#include "ir/sharding/sharding.h"

PassFn pass_shard, pass_replicate, pass_micro;

/* count_passes.c: count passes in their order, then the step; nodes that
 * nothing depends on go. */
void count_pass_order(Graph *, Arena *scratch);

/* dp_other_batch.c: whether g is partitioned as the same graph of another batch
 * size is; else why not, in p->keep, or NULL if it has no partition. */
bool dp_agrees(Pass *, const Graph *g, const Graph *other_batch,
               const char **why);

/* loss_formula.c: the loss of a data set as a formula over its batches, where
 * that does not depend on their size; operands become outputs.  False after a
 * diagnostic. */
bool loss_formula_find(Pass *, Graph *g, struct loss_formula *);
/* The same of a graph whose only output is the loss. */
void loss_formula_of_loss_alone(struct loss_formula *);
/* The rows of an output, without its name. */
struct output_rows loss_formula_find_rows(Pass *, const Graph *, ValId output);

/* A sharding strategy of a node: the placement that it requires of each operand
 * and that it gives each result. */
struct strategy {
	Placement *at;                  /* by value index: operands, results */
	double sec;
};

/* What a node, or a value that no node writes, can choose from. */
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
	struct sharding_list *sharding; /* by value: of some strategy */
	struct uses uses;
	int64_t large;                  /* elements of a matrix that is
	                                 * sharded */
};

/* strategies.c */
void shard_find_strategies(struct shard *);
/* The strategies of what writes a value, and its value index there. */
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

/* A matrix that --tp shards wherever it can be sharded. */
bool shard_is_large_matrix(const struct shard *, ValId);

/* shard_constraints.c: whether --shard names values; false after a
 * diagnostic. */
bool shard_check_constraints(struct shard *);
/* strategy_ilp.c: chooses; false after a diagnostic. */
bool shard_choose_strategies(struct shard *);
/* runner_up.c: the cost of another placement of the value of --explain. */
void shard_find_runner_up(struct shard *);

/* strategy_cost.c */
/* Seconds of converting a value from placement `from` to `to`, forward and in
 * backward; negative: there is no such conversion. */
double shard_conversion_cost(const struct shard *, ValId, const Placement *from,
                             const Placement *to);
/* Of a node, in all phases. */
double shard_node_cost(const struct shard *, const Node *, bool sharded);
/* Of a parameter's gradient, if the parameter has this placement. */
double shard_param_cost(const struct shard *, ValId, const Placement *);

/* shard_notes.c: whether half of the matrices' bytes can be sharded; false
 * after a diagnostic that says which do not and what would do. */
bool shard_check_fraction(struct shard *);
/* What runs whole all the same. */
void shard_note_replicated(struct shard *);

/* apply.c: false after a diagnostic. */
bool shard_apply(struct shard *);

#endif
