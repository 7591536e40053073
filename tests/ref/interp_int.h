/* What the files of the reference interpreter share. */
#ifndef TESTS_REF_INTERP_INT_H
#define TESTS_REF_INTERP_INT_H

#include <math.h>

#include "tests/ref/interp.h"

/* A message between two stages on its way. */
struct mail {
	double *x;                      /* NULL: there is none */
	int64_t n;
};

struct interp {
	const Graph *g;
	double **x;                     /* by value */
	struct interp_env env;
	char error[256];
	struct placed *placed;          /* NULL: layout plays no part */
	struct interp *self;
	struct interp *const *group;    /* by rank; itself among them */
	int rank, ranks;
	struct interp *const *world;    /* of all replicas; NULL: one */
	int replica, replicas;
	struct interp_pool {
		int64_t at, bytes, n;   /* first slot, bytes of each, number */
	} pool[3];                      /* of a placed graph of a pipeline; n 0:
	                                 * there is none */
	int64_t micro;                  /* its slots are in use */
	bool differ;                    /* slots of pool[0] do: */
	int64_t before;                 /* bytes of those before this one's */
	bool runs_on;                   /* this is not the step's first turn */
	struct mail *mail;              /* of this rank, by tag; NULL: there are
	                                 * no stages */
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

static inline bool
same_number(double a, double b)
{
	return a == b || (isnan(a) && isnan(b));
}

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
InterpFn interp_copy, interp_offload_into, interp_expand,
	interp_transpose, interp_slice,
	interp_concat, interp_pad, interp_tile, interp_trilu, interp_gather,
	interp_scatter_add, interp_gather_elements, interp_scatter_elements,
	interp_gather_nd, interp_scatter_nd, interp_cumsum, interp_argmax, interp_topk,
	interp_reduce, interp_fill, interp_selected;

/* interp_nn.c */
InterpFn interp_det, interp_det_grad, interp_matmul,
	interp_expert_matmul, interp_expert_dw, interp_expert_slots, interp_take_rows, interp_softmax, interp_softmax_grad,
	interp_layernorm, interp_layernorm_grad, interp_rmsnorm,
	interp_rmsnorm_grad, interp_sce, interp_sce_grad, interp_nll,
	interp_nll_grad, interp_classifier, interp_attention,
	interp_attention_grad, interp_vocab_stats, interp_grad_norm,
	interp_sum_squares, interp_accumulate, interp_loss_scale, interp_share,
	interp_of_all, interp_ema, interp_sgd,
	interp_adamw, interp_sgdm, interp_lion, interp_adafactor,
	interp_adafactor_means, interp_adafactor_squares;

/* interp_conv.c */
InterpFn interp_conv, interp_conv_dx, interp_conv_dw, interp_batchnorm,
	interp_batchnorm_grad, interp_bn_update, interp_maxpool,
	interp_maxpool_grad, interp_avgpool, interp_avgpool_grad,
	interp_resize;

/* interp_sample.c */
InterpFn interp_grid_sample, interp_grid_sample_grad;

/* interp_comm.c */
InterpFn interp_send, interp_receive;
InterpFn interp_gather_rows, interp_sum_rows, interp_exchange_rows;
/* Which shard of a group of replicas this one has. */
int interp_shard(const struct interp *, bool experts);
InterpFn interp_all_reduce, interp_all_gather, interp_reduce_scatter,
	interp_all_to_all, interp_own, interp_own_grad;
Shape interp_whole_shape(const Placement *, const Shape *local);
/* Which element of the whole this rank's element i is; -1: padding. */
int64_t interp_whole(const struct interp *, const Placement *, const Shape *local,
                     int64_t i);
/* The same of an output, among all replicas: an op's random numbers go by
 * it. */
uint64_t interp_draw(const struct call *, Op, const Attr *, int out, int64_t i);
/* Which piece of what is cut as v is this rank has; of v not cut: its own. */
int64_t interp_piece(const struct call *, ValId v);
/* The whole of v from the pieces of all ranks, cut as s says; false if ranks
 * that should hold the same do not. */
bool interp_join(const struct interp *, ValId v, const Placement *s,
                 double *whole);

/* interp_placed.c: all do nothing of use without interp_place */
void placed_free(struct interp *);
void placed_start(struct interp *);             /* of a step */
void placed_write(struct interp *, ValId);      /* x to memory */
bool placed_before(struct call *);
bool placed_after(struct call *);

#endif
