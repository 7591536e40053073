/* Console output: progress of steps, results of --check, and which process of a
 * run prints. */
#ifndef RUNTIME_CKRUN_CONSOLE_H
#define RUNTIME_CKRUN_CONSOLE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "runtime/ckr.h"

/* The result of a model on a data set.  NaN: unknown: accuracy without class
 * labels, perplexity without a cross entropy. */
struct score {
	uint64_t samples;
	double loss;
	double accuracy;                /* 0 to 1 */
	double perplexity;
	uint64_t rows;                  /* samples of a batch */
	const char *by_batch;           /* why the loss depends on the batch
	                                 * size; NULL: it does not */
};

struct step_row {
	uint64_t step, steps;           /* this step; steps of the run */
	bool has_loss, exact;           /* exact: the loss is one f32 */
	bool has_norm;                  /* the norm of all gradients is known;
	                                 * it may be NaN */
	double loss, norm, lr, sec;
	double left;                    /* seconds to the end of the run; below
	                                 * 0: unknown */
	double scale;                   /* loss scale; 0: none */
	double epoch;                   /* epochs done; NaN: data are not
	                                 * sampled */
	uint64_t units;                 /* samples or tokens of the step */
	bool tokens;                    /* units are tokens */
	uint64_t peak_bytes;
	bool skipped;                   /* the step made no update */
	bool overflow;                  /* ... because gradients overflowed */
	const struct score *valid;      /* validation after the step; NULL: not
	                                 * validated */
};

/* To be called before any output: silences all processes but the first, and
 * makes each end with its launcher. */
void console_begin(void);
/* Whether somebody may look at standard output, and lines may replace each
 * other.  Launchers give their processes terminals that are none. */
bool console_is_terminal(void);
/* The stream for the last failure of a model. */
FILE *console_errors(const ckr_ctx *);

/* The number as it is to be printed: NaN without a sign. */
double console_number(double);

/* Print "loss 0.1  accuracy 97.5 %  perplexity 1.1", without unknown ones. */
void score_print(const struct score *, FILE *);

/* Print a row.  over: over the line before, with the time left. */
void row_print(const struct step_row *, bool over, FILE *);

/* Add a step's results: numbers of tensors are summed, of differences the
 * largest is kept. */
void checked_add(struct ckr_checked *, const struct ckr_checked *step);
void checked_print(const struct ckr_checked *);

#endif
