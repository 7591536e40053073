/* The tables of a sharded graph. */
#ifndef CODEGEN_RANK_TABLES_H
#define CODEGEN_RANK_TABLES_H

#include "codegen/tables.h"

/* Splits, and shapes of what is sharded over replicas, that tables name, each
 * once; all zero: none. */
struct rank_tables {
	Split *split;
	size_t nsplit, cap;
	Shape *shape;
	size_t nshape, shape_cap;
};

/* Whether the run time can carry the graph out. */
bool rank_tables_check(const Graph *, Diag *);
void rank_tables_collect(struct rank_tables *, Arena *,
                         const struct emitted_program *);
void rank_tables_emit(struct out *, const struct rank_tables *);
/* "&split[2]", or "NULL" of what is whole and equal on all ranks. */
const char *rank_tables_split(const struct rank_tables *, Arena *, const Val *);
/* "shard_of[2]", or "NULL" of what replicas have all of. */
const char *rank_tables_shard(const struct rank_tables *, Arena *, const Val *);
/* comm0[] or comm1[]: what steps move, in their order. */
void rank_tables_emit_comm(struct out *, const struct rank_tables *,
                           const struct emitted_program *, int which);
bool rank_tables_has_transfer(const struct emitted_program *, int64_t step);

#endif
