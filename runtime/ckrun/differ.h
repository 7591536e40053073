/* Comparison of the tensors of two runs. */
#ifndef RUNTIME_CKRUN_DIFFER_H
#define RUNTIME_CKRUN_DIFFER_H

#include <stdio.h>

#include "runtime/file/array.h"

/* Elements of a tensor, in memory or in a file. */
struct elements {
	uint8_t dtype;
	const char *bytes;
	const struct array_file *file;
	const struct array *array;      /* NULL: in memory */
};

/* The part of a difference that rounding explains. */
struct allowance {
	double noise;                   /* differences of gradients */
	bool alone;                     /* noise is the whole allowance */
	/* for a parameter, how noise in its gradients grows over steps: */
	const struct elements *grad;    /* [2]: its gradients; NULL: none */
	double lr, eps;                 /* lr: sum over all steps */
	bool scaled;                    /* the optimizer divides gradients by
	                                 * their own magnitude */
};

/* A tensor of both runs. */
struct tensor_diff {
	char *name;                     /* owned by the list */
	const char *what;               /* "gradient", "param", "buffer" */
	uint8_t dtype[2];
	int rank;
	int64_t dim[CKR_MAX_DIMS];
	uint64_t nelem;
	double most;                    /* largest magnitude, second run */
	/* largest difference, and largest part of one that rounding does not
	 * explain; not finite: only one of the two numbers is finite */
	double gap, excess;
	double x[2];                    /* the two numbers that differ by gap */
	uint64_t at;                    /* their index */
	bool counts;                    /* set by differ_judge */
};

struct diff_list {
	struct tensor_diff *v;
	size_t n;
};

/* Largest distance that noise alone can move a parameter in all steps. */
double differ_drift(const struct allowance *);
/* Compare s[0] with s[1] and add *f, with a copy of its name, to the list. */
ckr_status differ_add(struct diff_list *, const struct tensor_diff *f,
                      const struct elements s[2], const struct allowance *,
                      struct err *);
/* The largest magnitude of all elements into *most, if it is larger. */
ckr_status differ_most(const struct elements *, uint64_t nelem, double *most,
                       struct err *);
/* The largest difference of two tensors; 0 if that is not finite. */
ckr_status differ_gap(const struct elements s[2], uint64_t nelem, double *gap,
                      struct err *);
/* Set `counts` where a difference exceeds rounding by more than rtol of the
 * largest magnitude, sort by that, and return how many count. */
size_t differ_judge(struct diff_list *, double rtol);
/* Print the list, at most `lines` lines. */
void differ_print(const struct diff_list *, double rtol, size_t lines, FILE *);
void differ_free(struct diff_list *);

#endif
