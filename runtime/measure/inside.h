/* Internals of traces, profiles and checks, shared by the files of this
 * room. */
#ifndef RUNTIME_MEASURE_INSIDE_H
#define RUNTIME_MEASURE_INSIDE_H

#include "runtime/library/program.h"
#include "runtime/library/tensor.h"
#include "runtime/measure/measure.h"

struct measure {
	struct err *err;                /* the world's */
	const struct ckr_library *lib;
	struct world *world;
	struct stepping *steps;
	struct trace *trace;            /* NULL: off */
	struct profile *profile;        /* NULL: off */
};

/* ---- instr_text.c ---- */

/* "forward", "recompute", ... */
const char *instr_phase(int32_t phase);
/* Bytes that a rank sends in instruction i of the plan; 0 if there is one
 * rank. */
double instr_sent(const struct world *, uint32_t i);
/* Ranks between which instruction i sends; 1: it does not. */
uint32_t instr_ranks(const struct world *, uint32_t i);

/* ---- profile.c ---- */

void profile_free(struct measure *);

/* ---- drift.c: by how much gradients of two runs differ ---- */

struct drift;

/* Forward values that the plan rounds: with them, bits differ. */
uint64_t drift_count_rounded(const struct ckr_program *);
struct drift *drift_new(struct measure *);
void drift_free(struct drift *);
/* Keep a copy of tensor i, if it is a gradient. */
ckr_status drift_note(struct drift *, const struct loaded_program *,
                      uint32_t i);
/* CKR_EMISMATCH if the gradients differ by more than rounding explains;
 * measures into *n. */
ckr_status drift_check(const struct drift *plan, const struct drift *all,
                       struct ckr_checked *n);

#endif
