/* Room shard: one rank's graph from the full graph.
 *
 * in      a canonical forward graph with its loss, --tp and --sp
 * out     the same graph as one of `tp` ranks sees it: local shapes, a state
 *         per value, collectives where states differ
 * unaware of backward (autodiff derives it from the states), of memory and of
 *         what any model calls its layers
 *
 * ways.c finds the sharding strategies of each node, layout.c chooses among
 * them by an integer program whose prices (price.c) are those of the
 * collectives, forward and dual, and apply.c rewrites the graph.
 */
#ifndef PASSES_SHARD_H
#define PASSES_SHARD_H

#include "passes/pass.h"
#include "ir/placement/placement.h"

PassFn pass_shard, pass_replicate, pass_micro;

/* rounds.c: rounds in their order, then the step; nodes that nothing depends on
 * go. */
void round_order(Graph *, Arena *scratch);

/* dp_resized.c: whether g is partitioned as the same graph of another batch
 * size is; else why not, in p->keep, or NULL if it has no partition. */
bool dp_agrees(Pass *, const Graph *g, const Graph *resized,
               const char **why);

/* total.c: how the loss of a data set is put together of what g says of its
 * batches, where that does not depend on their size; operands become outputs.
 * False after a diagnostic. */
bool total_find(Pass *, Graph *g, struct total *);
/* The same of a graph that says nothing but the loss. */
void total_of_loss_alone(struct total *);
/* The rows of an output, without its name. */
struct output_rows total_find_rows(Pass *, const Graph *, ValId output);

/* A way to carry out a node: the state in which it wants each operand and in
 * which it gives each result. */
struct way {
	Split *at;                      /* by port */
	double sec;
};

/* What a node, or a value that no node writes, can choose from. */
struct choice {
	struct way *way;
	int n;
	size_t cap;
	int chosen;
};

struct cuts {
	Split *cut;
	int n;
	size_t cap;
};

struct shard {
	Pass *pass;
	Graph *g;
	Arena *tmp;
	int64_t ranks;
	bool *grad;                     /* by value: a gradient passes */
	struct choice *node;            /* by node */
	struct choice *source;          /* by value: inputs, parameters ... */
	struct cuts *cut;               /* by value: cuts that some way gives */
	struct uses uses;
	int64_t large;                  /* elements of a matrix that is cut */
};

/* ways.c */
void shard_find_ways(struct shard *);
/* The choice that gives a value, and the port of it. */
struct choice *shard_giver(struct shard *, ValId, int *port);
static inline const Split *
shard_state(struct shard *s, ValId v)
{
	int port;
	struct choice *c = shard_giver(s, v, &port);

	return &c->way[c->chosen].at[port];
}

static inline bool
shard_is_matrix(const Val *v)
{
	return v->kind == V_PARAM && v->shape.rank >= 2;
}

/* A matrix that --tp cuts wherever it can be cut. */
bool shard_is_large(const struct shard *, ValId);

/* demands.c: whether --shard names values; false after a diagnostic. */
bool shard_check_wishes(struct shard *);
/* layout.c: chooses; false after a diagnostic. */
bool shard_choose(struct shard *);
/* second.c: what another state of the value that --explain names would cost. */
void shard_find_second(struct shard *);

/* price.c */
/* Seconds of making state `to` of a value in state `from`, forward and in
 * backward; negative: there is no such conversion. */
double shard_conversion(const struct shard *, ValId, const Split *from,
                        const Split *to);
/* Of a node, in all phases. */
double shard_node_price(const struct shard *, const Node *, bool cut);
/* Of a parameter's gradient, if it is in this state. */
double shard_param_price(const struct shard *, ValId, const Split *);

/* notes.c: whether half of the matrices' bytes can be cut; false after a
 * diagnostic that says which do not and what would do. */
bool shard_check_share(struct shard *);
/* What runs whole all the same. */
void shard_note(struct shard *);

/* apply.c: false after a diagnostic. */
bool shard_apply(struct shard *);

#endif
