/* Comparison of the tensors of two runs. */
#ifndef RUNTIME_CKRUN_DIFFER_H
#define RUNTIME_CKRUN_DIFFER_H

#include <stdio.h>

#include "runtime/file/array.h"

/* Elements in memory, or of an array of a file. */
struct elements {
	uint8_t dtype;
	const char *bytes;
	const struct array_file *file;
	const struct array *array;      /* NULL: in memory */
};

/* What of a difference is rounding alone. */
struct allowance {
	double noise;                   /* of any gradient */
	bool alone;                     /* there is nothing else to it */
	/* of a parameter whose gradients these are: what steps make of it */
	const struct elements *grad;      /* [2]; NULL: it has none */
	double lr, eps;                 /* lr: the sum of those of all steps */
	bool scaled;                    /* gradients are taken relative to
	                                 * their own size */
};

/* A tensor of both runs. */
struct tensor_diff {
	char *name;                     /* owned by the list */
	const char *what;               /* "gradient", "param", "buffer" */
	uint8_t dtype[2];
	int rank;
	int64_t dim[CKR_MAX_DIMS];
	uint64_t nelem;
	double most;                    /* largest magnitude of the second */
	/* the largest difference, and what of one is most beyond rounding; not
	 * finite: only one of two numbers is */
	double gap, excess;
	double x[2];                    /* the two numbers of `gap` */
	uint64_t at;
	bool counts;                    /* as differ_judge says */
};

struct diff_list {
	struct tensor_diff *v;
	size_t n;
};

/* How far steps may take a parameter that noise alone moves. */
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
/* Set `counts` where a difference is more than rounding and than rtol of the
 * largest magnitude, and sort, the worst first.  How many count. */
size_t differ_judge(struct diff_list *, double rtol);
/* One a line, `lines` at most. */
void differ_print(const struct diff_list *, double rtol, size_t lines, FILE *);
void differ_free(struct diff_list *);

#endif
