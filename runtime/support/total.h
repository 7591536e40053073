/* The loss of a data set from values of its batches: a formula in postfix form,
 * with the same numbering in ckc, which finds it, and in libckr, which
 * evaluates it over all batches. */
#ifndef RUNTIME_SUPPORT_TOTAL_H
#define RUNTIME_SUPPORT_TOTAL_H

enum total_op {
	/* operands; of a batch: a scalar */
	TOTAL_NUMBER,
	TOTAL_SUM,                      /* over samples: batches are added */
	TOTAL_MEAN,                     /* over samples */
	TOTAL_SAME,                     /* by no sample: any batch's */
	/* of two */
	TOTAL_ADD, TOTAL_SUB, TOTAL_MUL, TOTAL_DIV, TOTAL_MIN, TOTAL_MAX,
	TOTAL_POW,
	/* of one */
	TOTAL_NEG, TOTAL_ABS, TOTAL_RECIP, TOTAL_SQRT, TOTAL_EXP, TOTAL_LOG,
	TOTAL_OPS
};

enum { TOTAL_TERMS = 64 };              /* of a formula, at most */

#endif
