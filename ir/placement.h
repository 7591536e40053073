/* Placement of values on ranks (Placement of ir.h): sharded or whole. */
#ifndef IR_PLACEMENT_H
#define IR_PLACEMENT_H

#include "ir/ir.h"

enum { SEGMENTS_MAX = 1 << 20 };

/* The placement of a collective's sharded side, from its attributes. */
Placement placement_of_attr(const Node *);
void placement_to_attr(const Placement *, Op, Attr *);
/* What an all_to_all makes of it; the attributes of one. */
Placement placement_after_exchange(const Node *);
void placement_to_exchange(const Placement *from, const Placement *to, Attr *);
bool placement_eq(const Placement *, const Placement *);
/* Both are sharded alike, or neither is: three heads on a rank each may have
 * the shape of one head that all ranks have. */
bool placement_alike(const Placement *, const Placement *);
Placement placement_dim(int axis, int64_t extent);      /* one segment */
/* `count` equal segments. */
Placement placement_segments(int axis, int64_t count, int64_t extent);
/* Append segments of another placement, from `first` on; false if no placement
 * can list them. */
bool placement_append_from(Placement *, const Placement *from, int first,
                           int64_t count);
/* Extent of a rank's shard along the axis; -1: it cannot be sharded so. */
int64_t placement_local_extent(const Placement *, int64_t ranks);
/* Nothing is padded. */
bool placement_is_even(const Placement *, int64_t ranks);
/* A rank's shape of a whole one; false if the placement does not fit it. */
bool placement_local(const Placement *, int64_t ranks, const Shape *whole,
                     Shape *);
/* The whole shape of a rank's; merged dims are one. */
Shape placement_whole(const Placement *, const Shape *local);
/* The same, of a replica's shard too. */
Shape val_whole(const Val *);
/* How a rank's value is sharded over replicas. */
Placement placement_over_replicas(const Shape *);
/* The same, by rows or merged. */
Placement shard_over_replicas(const struct replica_shard *);
/* The same without the last but (back - 1) dim; replicated if that was
 * sharded. */
Placement placement_without_dim(const Placement *, int rank, int back);
/* The placement of a replica's shard, by rules that know nothing of replicas:
 * of a value sharded over ranks it is a shard of a line. */
Placement placement_of_shard(const Placement *of, int64_t ranks,
                             const Shape *shard);

/* Entries of segment[] that count. */
static inline int
placement_listed(const Placement *s)
{
	return s->nsegment > MAX_RANK ? 1 : s->nsegment;
}

static inline int64_t
placement_segment(const Placement *s, int i)
{
	return s->segment[s->nsegment > MAX_RANK ? 0 : i];
}

/* Every rank has all of it. */
static inline bool
placement_is_replicated(const Placement *s)
{
	return s->kind == PLACEMENT_REPLICATE
		|| s->kind == PLACEMENT_REPLICATE_PARTIAL;
}

/* In a rank's graph merged dims are one. */
static inline Placement
placement_unmerged(Placement s)
{
	if (s.kind == PLACEMENT_SHARD)
		s.first_axis = s.axis;
	return s;
}

#endif
