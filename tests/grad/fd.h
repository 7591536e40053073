/* Finite differences against gradient rules: how cases build their graphs. */
#ifndef TESTS_GRAD_FD_H
#define TESTS_GRAD_FD_H

#include "ir/ir.h"

enum { FD_GIVEN = 32 };

struct fd {
	Graph *g;
	Diag *diag;
	uint64_t rng;
	int64_t grad_accum;             /* 0: 1 */
	double h, tol;                  /* step and tolerance; 0: defaults */
	int ngiven;
	struct fd_given {
		ValId val;
		double *x;
	} given[FD_GIVEN];              /* contents of inputs and parameters */
};

struct fd_case {
	const char *name;
	void (*build)(struct fd *, int variant);
	int nvariant;
};

extern const struct fd_case fd_cases[];         /* name NULL ends it */

double fd_random(struct fd *, double lo, double hi);
/* A parameter with elements in [-1, 1] but not within .1 of 0. */
ValId fd_param(struct fd *, Shape);
ValId fd_param_in(struct fd *, Shape, double lo, double hi);
ValId fd_param_at(struct fd *, Shape, const double *);
/* Inputs: not trained. */
ValId fd_input(struct fd *, Shape);
ValId fd_ints(struct fd *, Shape, const int *);
ValId fd_bools(struct fd *, Shape, const int *);
ValId fd_op(struct fd *, Op, int nin, const ValId *in, const Attr *);
ValId fd_1(struct fd *, Op, ValId);
ValId fd_2(struct fd *, Op, ValId, ValId);
/* A slice in static form. */
ValId fd_slice(struct fd *, ValId, IntList start, Shape extent, IntList step);
/* Make the sum of y times random weights the loss. */
void fd_loss(struct fd *, ValId y);

/* fd_conv.c */
void fd_build_conv(struct fd *, int), fd_build_conv_dx(struct fd *, int),
	fd_build_batchnorm(struct fd *, int), fd_build_pool(struct fd *, int),
	fd_build_resize(struct fd *, int),
	fd_build_grid_sample(struct fd *, int);

#define LIST(...) \
	((IntList){ (int)(sizeof((int64_t[]){ __VA_ARGS__ }) / 8), \
	            { __VA_ARGS__ } })

#endif
