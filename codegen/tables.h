/* A schedule as tables of the ABI. */
#ifndef CODEGEN_TABLES_H
#define CODEGEN_TABLES_H

#include "codegen/out.h"
#include "ir/ir.h"
#include "ir/plan.h"

struct codegen_options;

/* One schedule and its tensors.  "Index" is the index in the emitted table. */
struct emitted_program {
	const Graph *g;
	const Plan *plan;
	int64_t ntensor;
	int64_t *plan_tensor;           /* index -> plan tensor; -1: none */
	ValId *val;                     /* index -> value; 0: workspace */
	int64_t *index_of_val;          /* ValId -> index; -1: none */
	int64_t *index_of_plan;         /* plan tensor -> index */
	uint64_t *offset;               /* index -> ckr_tensor.offset */
	bool *resident;                 /* index -> in the resident block */
	bool *host;                     /* index -> in the host block */
	uint64_t *data;                 /* index -> offset in constants.bin */
	int64_t *ready;                 /* index -> ckr_tensor.ready */
	uint64_t resident_bytes, arena_bytes, host_bytes;
	int64_t peak;                   /* of the plan, or of the second one */
	uint32_t number;                /* of the stage; 0 if there is one */
	bool second;                    /* its results are those of the stage's
	                                 * first program, too */
	uint32_t nshared;               /* so many first tensors are shared */
	int64_t shared_at, own_at;      /* places in the printed table of the
	                                 * first one, and of the first that is
	                                 * not shared */
	int64_t *instr;                 /* plan step -> instruction; NULL: the
	                                 * same */
	const char **kernel;            /* plan step -> function; NULL: view */
	int64_t **constant;             /* plan step -> constants of the call */
	int *nconst;                    /* plan step -> their number */
};

/* The programs of a library, in the order of the ABI. */
enum { PROGRAM_PLAN, PROGRAM_REFERENCE, PROGRAM_FORWARD, PROGRAMS };

/* The values that all schedules share. */
struct shared_values {
	uint32_t n;
	ValId *val;
	uint64_t *offset;               /* offsets in the resident block, or in
	                                 * the host block */
	uint64_t bytes;                 /* bytes of the resident block */
	uint64_t host_bytes;            /* bytes of these in the host block */
	uint64_t *data;                 /* offsets in constants.bin */
	uint64_t data_bytes;            /* bytes of constants.bin */
};

/* Consecutive steps of a plan, as instructions of a program. */
struct emitted_part {
	const struct emitted_program *p;
	int64_t first, end;
};

/* What the tables of a library are printed from. */
struct emitted_library {
	const Graph *g;                 /* what holes and adapters refer to */
	struct emitted_program program[PROGRAMS];       /* without a plan:
	                                                 * absent */
	struct shared_values shared;
	struct emitted_stages *stages;  /* stages.h; in place of program[0];
	                                 * NULL: there are none */
	const struct loss_formula *formula;             /* NULL: no loss */
	const char *jobs;               /* name of the table of njob
	                                 * convolutions, printed before */
	int njob;
	/* print the machine's own members of struct ckr_library; NULL: none */
	void (*print_own)(struct out *, const char *arch);
};

/* Place of a program's tensor in the printed table. */
static inline int64_t
emitted_index(const struct emitted_program *p, int64_t i)
{
	return i < 0 ? i : i < (int64_t)p->nshared ? p->shared_at + i
	       : p->own_at + i - (int64_t)p->nshared;
}

/* Number of the instruction of a plan's step. */
static inline int64_t
emitted_instr(const struct emitted_program *p, int64_t step)
{
	return step < 0 || !p->instr ? step : p->instr[step];
}

/* ---- program.c ---- */

struct shared_values tables_shared(Arena *, const Graph *, const Plan *,
                                   const Plan *reference_plan);
/* of: NULL, or the graph that shared values are numbered by, if this graph
 * began as a copy of it, or is the same stage of one that did; the constants
 * that this graph adds are then appended. */
bool tables_program(struct emitted_program *, Arena *, const Graph *,
                    const Plan *, struct shared_values *, const Graph *of,
                    Diag *);

/* ---- inputs.c ---- */

/* Properties of an input. */
enum { INPUT_SHIFTED = 1,       /* labels that the graph itself shifts */
       INPUT_LABEL = 2 };       /* nothing but the loss depends on it */

/* [nval] of g: properties of inputs.  forward: a graph whose first values are
 * those of g; NULL: g has outputs for predictions itself. */
unsigned char *tables_inputs(Arena *, const Graph *g, const Graph *forward);
/* Whether it is an output that ckc has added. */
bool tables_is_metric(const Val *);

/* ---- tables.c ---- */

/* "CKR_F32": the type's number in the ABI. */
const char *tables_dtype(DType);
/* Print the table of the formula of a data set's loss.  Its operands are
 * tensors of program[2], or of program[0] if there is no program[2]. */
bool tables_emit_formula(struct out *, const struct emitted_library *, Diag *);
/* Print all tables. */
bool tables_emit(struct out *, const struct emitted_library *,
                 const struct codegen_options *, Diag *);

/* ---- weights.c ---- */

/* Whether a safetensors file can hold the weights. */
bool weights_check(const Graph *, Diag *);

#endif
