/* Two forms of one model, say unsharded and sharded, in double precision: is
 * the loss, is every gradient and everything updated the same?
 *
 * Everything is compared by name, gradients by the name of their parameter, as
 * the largest difference relative to the largest absolute value; one above
 * the tolerance is a fault.
 *
 * Rounding errors of what should be zero, such as the gradient of a key's
 * bias, are not measured by themselves: no tensor counts as smaller than
 * 1e-6 of the largest of its kind, and no parameter as smaller than what a
 * step moves.
 */
#ifndef TESTS_REF_PAIR_H
#define TESTS_REF_PAIR_H

#include "tests/ref/train.h"

enum pair_kind { LOSS, NORM, GRADIENT, PARAMETER, STATE_1, STATE_2, OUTPUT,
                 PAIR_KINDS };

struct pair_whole {
	double *x;                      /* NULL: there is none */
	int64_t n;
};

struct pair_entry {
	enum pair_kind kind;
	const char *name;
	ValId a, b;
	struct pair_whole x, y;         /* of a and b */
	double most;                    /* absolute value in x */
};

struct pair {
	struct run a, b;                /* filled alike, see run_fill */
	struct pair_entry *e;
	int n, faults;
	bool quiet;                     /* faults are only counted */
	double tolerance;               /* 0: 1e-9 */
	double least;                   /* of the largest of its kind, what
	                                 * counts; 0: 1000 tolerances */
	double worst;                   /* of all differences so far */
};

/* What there is to compare, in the arena of a. */
void pair_list(struct pair *);
/* After a step of both. */
void pair_compare(struct pair *, int step);

#endif
