/* Room shard: one rank's graph from the full graph.
 *
 * in      a canonical forward graph with its loss, --tp and --sp
 * out     the same graph for one of `tp` ranks: local shapes, a placement
 *         per value, collectives where placements differ
 * unaware of backward (autodiff derives it from the placements), of memory and
 *         of names of layers
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

/* count_passes.c: order nodes by count passes, then the step; remove unused
 * nodes. */
void count_pass_order(Graph *, Arena *scratch);

/* dp_other_batch.c: whether g and its graph of another batch size have equal
 * partitions; else *why is in p->keep, or NULL if that has no partition. */
bool dp_agrees(Pass *, const Graph *g, const Graph *other_batch,
               const char **why);

/* loss_formula.c: the loss of a data set as a formula over its batches, if it
 * is independent of their size; operands become outputs.  False after a
 * diagnostic. */
bool loss_formula_find(Pass *, Graph *g, struct loss_formula *);
/* The same for a graph whose only output is the loss. */
void loss_formula_of_loss_alone(struct loss_formula *);
/* The rows of an output, without its name. */
struct output_rows loss_formula_find_rows(Pass *, const Graph *, ValId output);

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

/* Whether --tp shards the matrix wherever possible. */
bool shard_is_large_matrix(const struct shard *, ValId);

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
/* Seconds of a node, in all phases. */
double shard_node_cost(const struct shard *, const Node *, bool sharded);
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
