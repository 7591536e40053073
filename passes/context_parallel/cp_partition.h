/* Declarations that the files of pass context share.
 *
 * During the pass the values of the graph keep their whole shapes.  Each node
 * is emitted again, for a part of the positions; a value may have several
 * versions: whole (ReplicatePartial), one's own part of it (Shard), a summand
 * (Partial).  The one that its node is emitted with is its own placement.
 */
#ifndef PASSES_CONTEXT_PARALLEL_CP_PARTITION_H
#define PASSES_CONTEXT_PARALLEL_CP_PARTITION_H

#include "ir/sharding/sharding.h"
#include "passes/context_parallel/context_parallel.h"

struct cp_version {
	Placement placement;
	int count_pass;                 /* in which it is computed */
	ValId v;
	struct cp_version *next;
};

struct cp_partition {
	Pass *p;
	Graph *g;
	int64_t parts;                  /* replicas that share positions */
	NodeId nold;                    /* nodes and values before the pass */
	ValId nval;
	NodeId *order;                  /* new nodes */
	size_t norder, order_cap;
	/* by value before the pass */
	Placement *placement;           /* its own */
	Placement *positions;           /* of a whole value: where it has
	                                 * positions; Shard, if anywhere */
	bool *trained;                  /* it depends on a parameter */
	struct cp_version **version;
	bool any;                       /* something is partitioned */
	bool heads;                     /* heads are exchanged */
};

/* cp_follow.c */
/* Placements of operands and results of a node before the pass, from that of
 * value `from`; even: shards must be of equal extents. */
bool cp_follow(const struct cp_partition *, const Node *, int from,
               const Placement *, Placement *at, bool even);
/* Where a result of a node that is computed whole has positions. */
void cp_follow_positions(struct cp_partition *, const Node *);
/* The inputs' dims of positions; false after a diagnostic. */
bool cp_find_positions(struct cp_partition *);

/* Where so many positions along a dim are. */
Placement cp_positions(const struct cp_partition *, int axis, int64_t extent);

/* cp_heads.c */
/* Emit attention on a part of the heads, if that is what was asked for or takes
 * less time; *is: it was emitted.  False after a diagnostic. */
bool cp_exchange_heads(struct cp_partition *, NodeId, bool *is);

/* cp_version.c */
/* v, a value before the pass, in that placement; 0 after a diagnostic about
 * the reader. */
ValId cp_version(struct cp_partition *, ValId v, const Placement *,
                 NodeId reader);
/* Emit a node with these placements; false after a diagnostic. */
bool cp_emit_node(struct cp_partition *, NodeId, const Placement *at);
/* Append a new node, of new values; 0 after a diagnostic. */
ValId cp_emit(struct cp_partition *, Op, int nin, const ValId *in, const Attr *,
              NodeId like);
/* The sum of v over all replicas. */
ValId cp_sum(struct cp_partition *, ValId v, NodeId like);
/* v, a new value, times the number of parts (up), or divided by it. */
ValId cp_scale(struct cp_partition *, ValId v, bool up, NodeId like);
/* Replace the version of result 0 that its node was emitted with. */
void cp_redefine(struct cp_partition *, NodeId, ValId by);

/* cp_loss.c: a loss over labels, of rows that are positions; *is: whether the
 * node is one. */
bool cp_partition_loss(struct cp_partition *, NodeId, bool *is);

/* cp_refuse.c: diagnostics return false. */
bool cp_refuse(const struct cp_partition *, NodeId, const char *why);
/* A node that combines positions. */
bool cp_refuse_mixing(const struct cp_partition *, NodeId);
/* So many positions that are no multiple of the parts. */
bool cp_refuse_extent(const struct cp_partition *, NodeId, int64_t extent);

static inline Placement
cp_whole(void)
{
	return (Placement){ .kind = PLACEMENT_REPLICATE_PARTIAL };
}

/* The placement that v's node is emitted with; rules of sums read it, too. */
static inline void
cp_place(struct cp_partition *c, ValId v, const Placement *s)
{
	c->placement[v] = *s;
	c->g->val[v].placement = *s;
}

static inline bool
cp_has_kind(const struct cp_partition *c, ValId v, PlacementKind kind)
{
	return v && c->placement[v].kind == kind;
}

#endif
