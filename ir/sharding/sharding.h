/* Room sharding: which shardings an op allows, and the placements of its
 * results that follow from those of its operands.
 *
 * in      a node, whole shapes, the placement of one operand or result
 * out     the placements of all the others; faults of a sharded graph
 * must not know costs and what else could have been chosen
 *
 * A rule (column `shard` of ops.h) follows one sharding through a node.  The
 * same rules serve the pass that chooses shardings, on the graph of whole
 * values, and the verifier, on one rank's graph.
 *
 * A value index numbers the operands of a node and then its results.
 */
#ifndef IR_SHARDING_SHARDING_H
#define IR_SHARDING_SHARDING_H

#include "ir/placement.h"

struct sharding_rule {
	const Graph *g;
	const Node *n;
	int64_t ranks;
	int nin, nvalue;                /* operands; operands and results */
	const Shape *shape;             /* whole shapes by value index; rank -1:
	                                 * absent.  Of results only the rank is
	                                 * sure */
	int from;                       /* value index of the given placement */
	Placement *at;                  /* placements by value index; at first
	                                 * ReplicatePartial */
	const Placement *stated;        /* placements of all operands; NULL:
	                                 * unknown */
};

typedef bool ShardingRule(struct sharding_rule *);
extern ShardingRule *const sharding_rule_of[];        /* by op */

#define RULES(shape, eval, dynamic, cost, grad, shard) \
	ShardingRule sharding_##shard;
#define OP(id, text, sig, attr, rules, emit) rules
#include "ir/ops.h"

/* Follow the placement of one value of n, a node of a graph of whole values,
 * through the node: at[] gets a placement per operand and result,
 * ReplicatePartial where a value is whole.  False if the op cannot be sharded
 * so. */
bool sharding_follow(const Graph *, const Node *, int64_t ranks,
                     int value_index, const Placement *, Placement *at);
/* A whole value's placement in the one form that stands for all shardings with
 * the same shards: as few dims merged as possible. */
Placement placement_normal(const Placement *, int64_t ranks,
                           const Shape *whole);

/* Placements of the results of n, a node of a rank's graph, from those of its
 * operands; ReplicatePartial where whole.  False with the reason in `why`. */
enum { SHARDING_WHY = 200 };
bool sharding_infer(const Graph *, const Node *, Placement *out,
                    char why[SHARDING_WHY]);
/* Whether it converts placements: what stands between its operand and its
 * result is not followed by a rule.  What goes between replicas does not. */
bool sharding_is_comm(const Node *);
/* Equal elements *x without a placement of their own; zeros among them add
 * nothing on any rank. */
bool sharding_is_fill(const Graph *, ValId, double *x);
bool sharding_is_zero(const Graph *, ValId);
/* Whether the node rounds: what integers leave of a quotient, or a truth value
 * of a number, is not the sum of what summands leave. */
bool sharding_is_rounding(const Graph *, const Node *);
/* By value: a float that depends differentiably on a trained parameter. */
bool *sharding_requires_grad(const Graph *, Arena *);
/* Whether the placements of a rank's graph follow from each other; all faults
 * are reported. */
bool sharding_verify(const Graph *, Diag *);
/* The same of a graph in which values that a pass has made have no placement
 * yet: they get the one that follows. */
bool sharding_fill_placements(Graph *, Diag *);
/* Of the clipping norm alone; how many faults. */
int sharding_check_norm(const Graph *, Diag *, Arena *tmp);

/* ---- for rules ---- */

static inline bool
has_value(const struct sharding_rule *c, int value_index)
{
	return c->shape[value_index].rank >= 0;
}

/* The first result. */
static inline int
result_value(const struct sharding_rule *c, int k)
{
	return c->nin + k;
}

static inline const Placement *
given_split(const struct sharding_rule *c)
{
	return &c->at[c->from];
}

/* The sharding spans this dim. */
static inline bool
shards_dim(const Placement *s, int dim)
{
	return s->kind == PLACEMENT_SHARD && dim >= s->first_axis
		&& dim <= s->axis;
}

/* A sharding of the last dim, in weights, becomes that of the blocks that hold
 * them, or the other way round.  False if shards are not of equal numbers of
 * whole blocks. */
bool placement_of_blocks(Placement *, int64_t ranks);
bool placement_of_weights(Placement *, int64_t ranks);
/* The same sharding, moved by `by` dims; false if it leaves the rank. */
bool placement_shift(const Placement *, int by, int rank, Placement *);

#endif
