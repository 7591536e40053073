/* The tables of a sharded graph. */
#ifndef CODEGEN_RANK_TABLES_H
#define CODEGEN_RANK_TABLES_H

#include "codegen/tables.h"

/* The splits that tables refer to, and the shapes of tensors that are sharded
 * over replicas, each once.  Empty at first: all zero. */
struct rank_tables {
	Placement *placement;
	size_t nplacement, cap;
	Shape *shape;
	size_t nshape, shape_cap;
};

/* Whether the run time supports the graph's placements. */
bool rank_tables_check(const Graph *, Diag *);
void rank_tables_collect(struct rank_tables *, Arena *,
                         const struct emitted_program *);
void rank_tables_emit(struct out *, const struct rank_tables *);
/* "&placement[2]", or "NULL" for a replicated value. */
const char *rank_tables_placement(const struct rank_tables *, Arena *,
                                  const Val *);
/* "shard_of[2]", or "NULL" for a value that is not sharded over replicas. */
const char *rank_tables_shard(const struct rank_tables *, Arena *, const Val *);
/* Print comm0[] or comm1[]: the transfers of a program of n parts, in their
 * order. */
void rank_tables_emit_comm(struct out *, const struct rank_tables *,
                           const struct emitted_part *, int n, int which);
bool rank_tables_has_transfer(const struct emitted_program *, int64_t step);

#endif
