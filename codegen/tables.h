/* The schedule as tables of the ABI. */
#ifndef CODEGEN_TABLES_H
#define CODEGEN_TABLES_H

#include "codegen/out.h"
#include "ir/ir.h"
#include "ir/plan.h"

struct codegen_options;

/* One schedule's tensors, in the order of the emitted table. */
struct emitted_program {
	const Graph *g;
	const Plan *plan;
	int64_t ntensor;
	int64_t *plan_tensor;           /* index -> plan tensor; -1: none */
	ValId *val;                     /* index -> value; 0: workspace */
	int64_t *index_of_val;          /* ValId -> index; -1 */
	int64_t *index_of_plan;         /* plan tensor -> index */
	uint64_t *offset;
	bool *resident;                 /* index -> in the resident block */
	uint64_t *data;                 /* index -> place in constants.bin */
	int64_t *ready;                 /* index -> step behind which it is
	                                 * there; -1 */
	uint64_t resident_bytes, arena_bytes;
	const char **kernel;            /* step -> function; NULL: a view */
	int64_t **constant;             /* step -> numbers of the call */
	int *nconst;
};

/* The programs of a library, in the order of the ABI. */
enum { PROGRAM_PLAN, PROGRAM_REFERENCE, PROGRAM_FORWARD, PROGRAMS };

/* What schedules share, and where constants lie. */
struct shared_values {
	uint32_t n;
	ValId *val;
	uint64_t *offset;               /* in the resident block */
	uint64_t bytes;
	uint64_t *data;                 /* of constants, in constants.bin */
	uint64_t data_bytes;
};

/* ---- program.c ---- */

struct shared_values tables_shared(Arena *, const Graph *, const Plan *,
                                   const Plan *reference_plan);
/* of: NULL, or the graph that shared values are numbered by if this one only
 * began as it; its own constants are added then. */
bool tables_program(struct emitted_program *, Arena *, const Graph *,
                    const Plan *, struct shared_values *, const Graph *of,
                    Diag *);

/* ---- inputs.c ---- */

/* Bits of what is known of an input. */
enum { INPUT_SHIFTED = 1,       /* labels that the graph itself shifts */
       INPUT_LABEL = 2 };       /* nothing but the loss depends on it */

/* By value of g, which begins as `forward` does; that may be NULL. */
unsigned char *tables_inputs(Arena *, const Graph *g, const Graph *forward);
/* Whether ckc has added it to the outputs. */
bool tables_is_metric(const Val *);

/* ---- tables.c ---- */

/* "CKR_F32": the type's number in the ABI. */
const char *tables_dtype(DType);
/* The formula of a data set's loss, a table; its operands are of the program
 * that evaluates, or of the plan. */
bool tables_emit_total(struct out *, const struct emitted_program[PROGRAMS],
                       const struct total *, Diag *);
/* Its entries in the library. */
void tables_name_total(struct out *, const struct total *);
/* A program without a plan is none.  jobs: the name of the table of njob
 * convolutions, which stands before. */
bool tables_emit(struct out *, const struct emitted_program[PROGRAMS],
                 const struct shared_values *, const char *jobs, int njob,
                 const struct total *, const struct codegen_options *, Diag *);

/* ---- weights.c ---- */

/* Whether a safetensors file can hold the weights. */
bool weights_check(const Graph *, Diag *);

#endif
