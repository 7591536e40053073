/* Room placement: which shardings an op allows, and the placements of its
 * results that follow from those of its operands.
 *
 * in      a node, whole shapes, the split of one operand or result
 * out     the splits of all the others; faults of a sharded graph
 * unaware of costs and of what else could have been chosen
 *
 * A rule (column `shard` of ops.h) follows one sharding through a node.  The
 * same rules serve the pass that chooses shardings, on the graph of whole
 * values, and the verifier, on one rank's graph.
 */
#ifndef IR_PLACEMENT_PLACEMENT_H
#define IR_PLACEMENT_PLACEMENT_H

#include "ir/split.h"

struct shard_rule {
	const Graph *g;
	const Node *n;
	int64_t ranks;
	int nin, nport;                 /* operands, then results */
	const Shape *shape;             /* whole, by port; rank -1: absent.  Of
	                                 * results only the rank is sure */
	int from;                       /* the port whose split is given */
	Split *at;                      /* by port, R to begin with */
	const Split *stated;            /* of all operands; NULL: unknown */
};

typedef bool ShardRule(struct shard_rule *);
extern ShardRule *const shard_rule_of[];        /* by op */

#define RULES(shape, eval, dynamic, cost, grad, shard) ShardRule shard_##shard;
#define OP(id, text, sig, attr, rules, emit) rules
#include "ir/ops.h"

/* Follow the split of one port of n, a node of a graph of whole values,
 * through it: at[] gets one split per operand and result, R where a value is
 * whole.  False if the op cannot be sharded so. */
bool shard_follow(const Graph *, const Node *, int64_t ranks, int port,
                  const Split *, Split *at);
/* A whole value's split in the one form that stands for all shardings with the
 * same shards: as few dims merged as possible. */
Split split_normal(const Split *, int64_t ranks, const Shape *whole);

/* Placements of the results of n, a node of a rank's graph, from those of its
 * operands; R where whole.  False with the reason in `why`. */
enum { SHARD_WHY = 200 };
bool shard_infer(const Graph *, const Node *, Split *out,
                 char why[SHARD_WHY]);
/* Whether it converts placements: what stands between its operand and its
 * result is not followed by a rule.  What goes between replicas does not. */
bool shard_is_comm(const Node *);
/* Zeros without a placement of their own: they add nothing on any rank. */
bool shard_is_zero(const Graph *, ValId);
/* Whether the node rounds: what integers leave of a quotient, or a truth value
 * of a number, is not the sum of what summands leave. */
bool shard_is_rounding(const Graph *, const Node *);
/* By value: a float that depends differentiably on a trained parameter. */
bool *shard_requires_grad(const Graph *, Arena *);
/* Whether the placements of a rank's graph follow from each other; all faults
 * are reported. */
bool shard_verify(const Graph *, Diag *);
/* The same of a graph in which values that a pass has made have no placement
 * yet: they get the one that follows. */
bool shard_fill_placements(Graph *, Diag *);
/* Of the clipping norm alone; how many faults. */
int shard_check_norm(const Graph *, Diag *, Arena *tmp);

/* ---- for rules ---- */

static inline bool
has_port(const struct shard_rule *c, int port)
{
	return c->shape[port].rank >= 0;
}

/* The first result. */
static inline int
result_port(const struct shard_rule *c, int k)
{
	return c->nin + k;
}

static inline const Split *
given_split(const struct shard_rule *c)
{
	return &c->at[c->from];
}

/* The sharding spans this dim. */
static inline bool
shards_dim(const Split *s, int dim)
{
	return s->kind == SPLIT_SHARD && dim >= s->first_axis && dim <= s->axis;
}

/* The same sharding, moved by `by` dims; false if it leaves the rank. */
bool split_shift(const Split *, int by, int rank, Split *);

#endif
