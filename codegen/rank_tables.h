/* The tables of a sharded graph. */
#ifndef CODEGEN_RANKS_H
#define CODEGEN_RANKS_H

#include "codegen/tables.h"

/* Splits, and shapes of what is cut over replicas, that tables name, each
 * once; all zero: none. */
struct ranks {
	Split *split;
	size_t nsplit, cap;
	Shape *shape;
	size_t nshape, shape_cap;
};

/* Whether the run time can carry the graph out. */
bool ranks_check(const Graph *, Diag *);
void ranks_collect(struct ranks *, Arena *, const struct emitted_program *);
void ranks_emit(struct out *, const struct ranks *);
/* "&split[2]", or "NULL" of what is whole and equal on all ranks. */
const char *ranks_split(const struct ranks *, Arena *, const Val *);
/* "piece[2]", or "NULL" of what replicas have all of. */
const char *ranks_piece(const struct ranks *, Arena *, const Val *);
/* comm0[] or comm1[]: what steps move, in their order. */
void ranks_emit_comm(struct out *, const struct ranks *,
                     const struct emitted_program *, int which);
bool ranks_moves(const struct emitted_program *, int64_t step);

#endif
