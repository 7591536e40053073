/* Placement of values on ranks (struct Split of ir.h): sharded or whole. */
#ifndef IR_SPLIT_H
#define IR_SPLIT_H

#include "ir/ir.h"

enum { SEGMENTS_MAX = 1 << 20 };

/* The split of a collective's sharded side, from its attributes. */
Split split_of_attr(const Node *);
void split_to_attr(const Split *, Op, Attr *);
/* What an all_to_all makes of it. */
Split split_after_exchange(const Node *);
bool split_eq(const Split *, const Split *);
/* Both are sharded alike, or neither is: three heads on a rank each may have
 * the shape of one head that all ranks have. */
bool split_alike(const Split *, const Split *);
Split split_dim(int axis, int64_t extent);      /* one segment */
/* `count` equal segments. */
Split split_segments(int axis, int64_t count, int64_t extent);
/* Append segments of another split, from `first` on; false if no split can
 * list them. */
bool split_append_from(Split *, const Split *from, int first, int64_t count);
/* Extent of a rank's shard along the axis; -1: it cannot be sharded so. */
int64_t split_local_extent(const Split *, int64_t ranks);
/* Nothing is padded. */
bool split_is_even(const Split *, int64_t ranks);
/* A rank's shape of a whole one; false if the split does not fit it. */
bool split_local(const Split *, int64_t ranks, const Shape *whole, Shape *);
/* The whole shape of a rank's; merged dims are one. */
Shape split_whole(const Split *, const Shape *local);
/* The same, of a replica's shard too. */
Shape val_whole(const Val *);
/* How a rank's value is sharded over replicas. */
Split split_over_replicas(const Shape *);
/* The same without the last but (back - 1) dim; replicated if that was
 * sharded. */
Split split_without_dim(const Split *, int rank, int back);
/* The placement of a replica's shard, by rules that know nothing of replicas:
 * of a value sharded over ranks it is a shard of a line. */
Split split_of_shard(const Split *of, int64_t ranks, const Shape *shard);

/* Entries of segment[] that count. */
static inline int
split_listed(const Split *s)
{
	return s->nsegment > MAX_RANK ? 1 : s->nsegment;
}

static inline int64_t
split_segment(const Split *s, int i)
{
	return s->segment[s->nsegment > MAX_RANK ? 0 : i];
}

/* Every rank has all of it. */
static inline bool
split_is_replicated(const Split *s)
{
	return s->kind == SPLIT_REPLICATE || s->kind == SPLIT_REPLICATE_PARTIAL;
}

/* In a rank's graph merged dims are one. */
static inline Split
split_unmerged(Split s)
{
	if (s.kind == SPLIT_SHARD)
		s.first_axis = s.axis;
	return s;
}

#endif
