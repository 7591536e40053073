/* What the files of the reference interpreter share. */
#ifndef TESTS_REF_INTERP_INT_H
#define TESTS_REF_INTERP_INT_H

#include <math.h>

#include "tests/ref/interp.h"

struct interp {
	const Graph *g;
	double **x;                     /* by value */
	struct interp_env env;
	char error[256];
	struct placed *placed;          /* NULL: layout plays no part */
};

struct ten {
	double *x;                      /* NULL: absent operand */
	DType dt;
	Shape s;
	int64_t n;
};

struct call {
	struct interp *it;
	const struct interp_env *env;
	const Graph *g;
	const Node *n;
	const Attr *a;
	int nin, nout;
	struct ten *in, *out;
};

typedef bool InterpFn(struct call *);

/* Multi-index of linear index i and back. */
void interp_unravel(const Shape *, int64_t i, int64_t idx[MAX_RANK]);
int64_t interp_ravel(const Shape *, const int64_t idx[MAX_RANK]);
/* Linear index in x of the element that broadcasts to idx of shape `out`. */
int64_t interp_bcast(const Shape *x, const Shape *out,
                     const int64_t idx[MAX_RANK]);
/* Product of extents first..last-1. */
int64_t interp_extent(const Shape *, int first, int last);
void *interp_need(void *);              /* of malloc: not NULL */
int64_t interp_nelem(const Shape *);    /* -1: unknown */
/* Contents of a value, created if there are none. */
double *interp_room(struct interp *, ValId);
/* Element i of raw memory of a dtype. */
double interp_read(DType, const void *raw, int64_t i);
void interp_write(DType, void *raw, int64_t i, double);
bool interp_fail(struct call *, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* kept ? x / (1 - ratio) : 0 */
double interp_dropout(const struct interp_env *, double x, double ratio,
                      int64_t stream, uint64_t index);

/* NaN wins. */
static inline double
maximum(double a, double b)
{
	return isnan(a) || isnan(b) ? NAN : a > b ? a : b;
}

static inline int
axis_of(int64_t axis, int rank)
{
	return (int)(axis < 0 ? axis + rank : axis);
}

/* interp_move.c */
InterpFn interp_copy, interp_expand, interp_transpose, interp_slice,
	interp_concat, interp_pad, interp_tile, interp_trilu, interp_gather,
	interp_scatter_add, interp_gather_elements, interp_scatter_elements,
	interp_gather_nd, interp_scatter_nd, interp_cumsum, interp_argmax, interp_topk,
	interp_reduce, interp_fill, interp_selected;

/* interp_nn.c */
InterpFn interp_det, interp_det_grad, interp_matmul, interp_softmax, interp_softmax_grad,
	interp_layernorm, interp_layernorm_grad, interp_rmsnorm,
	interp_rmsnorm_grad, interp_sce, interp_sce_grad, interp_nll,
	interp_nll_grad, interp_classifier, interp_attention,
	interp_attention_grad, interp_grad_norm, interp_accumulate, interp_sgd,
	interp_adamw, interp_sgdm, interp_lion, interp_adafactor;

/* interp_conv.c */
InterpFn interp_conv, interp_conv_dx, interp_conv_dw, interp_batchnorm,
	interp_batchnorm_grad, interp_bn_update, interp_maxpool,
	interp_maxpool_grad, interp_avgpool, interp_avgpool_grad,
	interp_resize;

/* interp_sample.c */
InterpFn interp_grid_sample, interp_grid_sample_grad;

/* interp_placed.c: all do nothing of use without interp_place */
void placed_free(struct interp *);
void placed_start(struct interp *);             /* of a step */
void placed_write(struct interp *, ValId);      /* x to memory */
bool placed_before(struct call *);
bool placed_after(struct call *);

#endif
