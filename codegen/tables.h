/* The schedule as tables of the ABI. */
#ifndef CODEGEN_TABLES_H
#define CODEGEN_TABLES_H

#include "codegen/out.h"
#include "ir/ir.h"
#include "ir/plan.h"

struct codegen_options;

/* One schedule's tensors, in the order of the emitted table. */
struct program {
	const Graph *g;
	const Plan *plan;
	int64_t ntensor;
	int64_t *plan_tensor;           /* index -> plan tensor; -1: none */
	ValId *val;                     /* index -> value; 0: workspace */
	int64_t *index_of_val;          /* ValId -> index; -1 */
	int64_t *index_of_plan;         /* plan tensor -> index */
	uint64_t *offset;
	int64_t *ready;                 /* index -> step behind which it is
	                                 * there; -1 */
	uint64_t resident_bytes;
	const char **kernel;            /* step -> function; NULL: a view */
	int64_t **constant;             /* step -> numbers of the call */
	int *nconst;
};

/* What both schedules share, and where constants lie. */
struct shared {
	uint32_t n;
	ValId *val;
	uint64_t *offset;               /* in the resident block */
	uint64_t bytes;
	uint64_t *data;                 /* of constants, in constants.bin */
	uint64_t data_bytes;
};

/* ---- program.c ---- */

struct shared tables_shared(Arena *, const Graph *, const Plan *,
                            const Plan *reference_plan);
bool tables_program(struct program *, Arena *, const Graph *, const Plan *,
                    const struct shared *, Diag *);

/* ---- tables.c ---- */

/* "CKR_F32": the type's number in the ABI. */
const char *tables_dtype(DType);
/* jobs: the name of the table of njob convolutions, which stands before. */
bool tables_emit(struct out *, const struct program *, int nprogram,
                 const struct shared *, const char *jobs, int njob,
                 const struct codegen_options *, Diag *);

/* ---- weights.c ---- */

/* Whether a safetensors file can hold the weights. */
bool weights_check(const Graph *, Diag *);

#endif
