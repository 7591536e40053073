/* The stages of a pipeline as one program of the ABI. */
#ifndef CODEGEN_STAGES_H
#define CODEGEN_STAGES_H

#include "codegen/codegen.h"
#include "codegen/tables.h"

struct emitted_turn {
	const char *kind;               /* in the ABI */
	int64_t first, end;             /* instructions */
	int64_t stage, slot, micro;
};

/* The tensors of a program: those that are shared, stage by stage, then the
 * others.  Its instructions: forward of the first to the last stage, backward
 * of the last to the first, turns of weights likewise, the updates up to the
 * norm over stages, the other updates.  What belongs to a second plan stands
 * behind the same of the first. */
struct emitted_stages {
	int n, nrank;                   /* stages; ranks of the pipeline */
	struct emitted_program *program;        /* [n] */
	struct emitted_program *second;         /* [n]: of some micro-batches;
	                                         * without a plan: of none */
	const struct codegen_stage *of;         /* [n] */
	struct emitted_program *forward;        /* [n]: what evaluates, beside
	                                         * the same shared tensors;
	                                         * NULL: nothing does */
	struct emitted_part *forward_part;      /* [n] */
	int64_t nforward;                       /* tensors of these */
	struct shared_values *shared;           /* [n] */
	const unsigned char **inputs;           /* [n]: as tables_inputs */
	int64_t nshared, ntensor, ninstr, update;
	int64_t *sets;                  /* [n]: ckr_stage.slots */
	struct emitted_part *part;
	int npart;
	struct emitted_turn *turn;      /* in an order in which each finds what
	                                 * it receives sent */
	int nturn;
};

/* Number the tensors and instructions of all stages, and put their turns in
 * order.  inputs: of the whole graph, as tables_inputs has them.  NULL
 * after a diagnostic. */
struct emitted_stages *stages_collect(Arena *, const struct codegen_schedules *,
                                      const unsigned char *inputs, Diag *);
/* Index in the printed table of the tensor of the first stage that has a value
 * of this name; -1: none. */
int64_t stages_find(const struct emitted_stages *, const char *name);
/* The same in what evaluates, or in training if nothing does; of the loss if
 * the name is NULL. */
int64_t stages_find_evaluated(const struct emitted_stages *, const char *name);
/* 1 + index of the shared tensor of an earlier stage that always has the value
 * of a stage's tensor i; 0: none. */
int64_t stages_tied(const struct emitted_stages *,
                    const struct emitted_program *, int64_t i);
/* Print stage[] and turn[]. */
void stages_emit(struct out *, const struct emitted_stages *);

#endif
