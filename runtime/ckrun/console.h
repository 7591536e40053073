/* Console output: progress of steps, results of --check, and which process of a
 * run prints. */
#ifndef RUNTIME_CKRUN_CONSOLE_H
#define RUNTIME_CKRUN_CONSOLE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "runtime/ckr.h"

/* What a model says of all samples of some data.  NaN: not known:
 * accuracy without labels of classes, perplexity without a cross entropy. */
struct score {
	uint64_t samples;
	double loss;
	double accuracy;                /* a share */
	double perplexity;
	uint64_t rows;                  /* samples of a batch */
	const char *by_batch;           /* why the loss depends on that; NULL:
	                                 * it does not */
};

struct step_row {
	uint64_t step, steps;           /* of how many */
	bool has_loss, exact;           /* exact: the loss is one f32 */
	bool has_norm;                  /* of all gradients; it may be NaN */
	double loss, norm, lr, sec;
	double left;                    /* seconds to the last step; below 0:
	                                 * unknown */
	double scale;                   /* of the loss; 0: it has none */
	double epoch;                   /* how often data were gone through;
	                                 * NaN: they are not sampled */
	uint64_t units;                 /* samples, or tokens */
	bool tokens;
	uint64_t peak_bytes;
	bool skipped;
	bool overflow;                  /* that is why */
	const struct score *valid;      /* of the state behind it; NULL: not
	                                 * validated */
};

/* Before any output: processes other than the first fall silent, and none
 * outlives its launcher. */
void console_begin(void);
/* The stream for the last failure of a model. */
FILE *console_errors(const ckr_ctx *);

/* A number to be printed, without the sign that some NaNs have. */
double console_number(double);

/* "loss 0.1  accuracy 97.5 %  perplexity 1.1", what there is. */
void score_print(const struct score *, FILE *);

/* over: in place of the line before, with the time left. */
void row_print(const struct step_row *, bool over, FILE *);

/* Another step: tensors are added up, of differences the largest remains. */
void checked_add(struct ckr_checked *, const struct ckr_checked *step);
void checked_print(const struct ckr_checked *);

#endif
