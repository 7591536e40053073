/* The loss of a data set from results of its batches: a formula in postfix
 * form.  ckc derives it, and libckr evaluates it over all batches; both use
 * these numbers. */
#ifndef RUNTIME_SUPPORT_LOSS_FORMULA_H
#define RUNTIME_SUPPORT_LOSS_FORMULA_H

enum formula_op {
	/* operands: a number, or a scalar that each batch computes */
	FORMULA_NUMBER,
	FORMULA_SUM,                    /* a sum over samples: add batches */
	FORMULA_MEAN,                   /* a mean over samples */
	FORMULA_SAME,                   /* equal for all batches */
	/* binary operators */
	FORMULA_ADD,
	FORMULA_SUB,
	FORMULA_MUL,
	FORMULA_DIV,
	FORMULA_MIN,
	FORMULA_MAX,
	FORMULA_POW,
	/* unary operators */
	FORMULA_NEG,
	FORMULA_ABS,
	FORMULA_RECIP,
	FORMULA_SQRT,
	FORMULA_EXP,
	FORMULA_LOG,
	FORMULA_OPS
};

enum { FORMULA_TERMS = 64 };            /* terms of a formula, at most */

#endif
