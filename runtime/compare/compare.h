/* Room compare: by how much the tensors of two runs differ.
 *
 * in      elements of both, in memory or in files; what rounding explains
 * out     sums and largest differences, judged and printed
 * must not know   models and steps
 */
#ifndef RUNTIME_COMPARE_COMPARE_H
#define RUNTIME_COMPARE_COMPARE_H

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
	double square[2];               /* sums of squares: of the difference,
	                                 * where equal NaN and infinities have
	                                 * none; of the second run */
	double x[2];                    /* the two numbers that differ by gap */
	uint64_t at;                    /* their index */
	bool counts;                    /* set by compare_judge */
};

struct diff_list {
	struct tensor_diff *v;
	size_t n;
};

/* Largest distance that noise alone can move a parameter in all steps. */
double compare_drift(const struct allowance *);
/* Measure in *f, which has nelem and zeros, how s[0] differs from s[1];
 * allowance NULL: rounding explains nothing. */
ckr_status compare_tensor(struct tensor_diff *f, const struct elements s[2],
                          const struct allowance *, struct err *);
/* The same, and add *f, with a copy of its name, to the list. */
ckr_status compare_add(struct diff_list *, const struct tensor_diff *f,
                       const struct elements s[2], const struct allowance *,
                       struct err *);
/* The largest magnitude of all elements into *most, if it is larger. */
ckr_status compare_most(const struct elements *, uint64_t nelem, double *most,
                        struct err *);
/* Set `counts` where a difference exceeds rounding by more than rtol of the
 * largest magnitude, sort by that, and return how many count. */
size_t compare_judge(struct diff_list *, double rtol);
/* Print the list, at most `lines` lines. */
void compare_print(const struct diff_list *, double rtol, size_t lines,
                   FILE *);
void compare_free(struct diff_list *);

#endif
