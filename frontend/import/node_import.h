/* Interface of the functions that import one ONNX node each. */
#ifndef FRONTEND_IMPORT_NODE_IMPORT_H
#define FRONTEND_IMPORT_NODE_IMPORT_H

#include "frontend/import/import.h"
#include "frontend/onnx/onnx.h"
#include "frontend/import/optable.h"

/* A tensor sequence never becomes a value.  It is a tensor still to be split,
 * or a list of values. */
struct sequence {
	bool split;                     /* a tensor; false: a list */
	ValId x, sizes;                 /* tensor, sizes of its parts */
	Attr part;                      /* attributes of a part but its index */
	int64_t n;                      /* length; -1: unknown (tensor only) */
	ValId *elem;                    /* list of values */
};

struct importer {
	Graph *g;
	struct flat *f;
	Arena *arena;
	Diag *diag;
	const struct import_options *opt;
	struct flat_node *n;            /* current node */
	struct attr_reader r;
	uint32_t origin;
	int64_t elements;               /* sequence elements made so far */
};

/* Input i of the current node, or 0 if absent. */
ValId imp_in(struct importer *, int i);
bool imp_has(const struct importer *, int i);
/* Whether output i has a reader. */
bool imp_is_used(const struct importer *, int i);
void imp_out(struct importer *, int i, ValId);
/* Append a node with the origin of the current node and return its output 0.
 * Drops absent trailing inputs.  attr NULL: defaults. */
ValId imp_node(struct importer *, Op, const Attr *attr, int nin,
               const ValId *in);
#define EMIT_NODE(m, op, attr, ...) \
	imp_node(m, op, attr, sizeof((ValId[]){ __VA_ARGS__ }) \
	         / sizeof(ValId), (ValId[]){ __VA_ARGS__ })
/* Import the current node as one op with the same inputs. */
bool imp_same(struct importer *, Op, const Attr *attr);
/* A scalar constant of x's type. */
ValId imp_like(struct importer *, ValId x, double);
static inline ValId
unary(struct importer *m, Op op, ValId x)
{
	return EMIT_NODE(m, op, NULL, x);
}

static inline ValId
binary(struct importer *m, Op op, ValId x, ValId y)
{
	return EMIT_NODE(m, op, NULL, x, y);
}

/* x op number */
static inline ValId
with(struct importer *m, Op op, ValId x, double number)
{
	return binary(m, op, x, imp_like(m, x, number));
}

/* Make y output 0 of the current node; returns true. */
static inline bool
set_output(struct importer *m, ValId y)
{
	imp_out(m, 0, y);
	return true;
}

/* Output k of the node whose output 0 is v. */
ValId imp_output(const struct importer *, ValId v, int k);
ValId imp_ints(struct importer *, int n, const int64_t *);
ValId imp_one(struct importer *, int64_t);              /* i64[1] */
ValId imp_scalar(struct importer *, int64_t);           /* i64[] */
/* Extent `axis` of x as i64[1]; an i64[1] as i64[]. */
ValId imp_extent(struct importer *, ValId x, int64_t axis);
ValId imp_scalar_of(struct importer *, ValId one);
ValId imp_cast(struct importer *, ValId x, DType);
ValId imp_concat(struct importer *, int64_t axis, int n, const ValId *);
ValId imp_transpose(struct importer *, ValId x, IntList perm);
ValId imp_unsqueeze(struct importer *, ValId x, int64_t axis);
/* Attributes of an IR op, with integers read from the current node. */
Attr imp_attrs(struct importer *, Op);
/* Contents of a constant input; false if it is not constant. */
bool imp_const(const struct importer *, int i, int64_t *x);
bool imp_const_float(const struct importer *, int i, double *x);
/* The rank of input i; false if not known yet. */
bool imp_rank(struct importer *, int i, int *rank);
/* Extent of a value, or -1 if unknown; axis may be negative. */
int64_t imp_dim(const struct importer *, ValId, int axis);
/* Report an error of the current node; returns false. */
bool imp_fail(struct importer *, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* A list attribute; absent: empty.  imp_axis_list has its own message for a
 * list that is too long. */
bool imp_list(struct importer *, const char *name, IntList *);
bool imp_axis_list(struct importer *, const char *name, IntList *);
/* Axes as an attribute (before opset `since`) or as input i.  Stores the list
 * in *list, or returns the input. */
ValId imp_axes(struct importer *, int i, int since, const char *name,
               IntList *list);
/* A constant, parameter or buffer with the contents of a tensor. */
ValId imp_stored(struct importer *, ValKind, const char *name,
                 const struct onnx_tensor *);
/* A tensor attribute as a constant. */
ValId imp_tensor(struct importer *, const Onnx__TensorProto *,
                 const char *name);

/* import_ew.c */
bool run_same(struct importer *);
bool run_read(struct importer *);
bool run_add(struct importer *);
bool run_identity(struct importer *);
bool run_fold_left(struct importer *);
bool run_mean(struct importer *);
bool run_cast(struct importer *);
bool run_cast_like(struct importer *);
bool run_pow(struct importer *);
bool run_range(struct importer *);
bool run_clip(struct importer *);
bool run_gelu(struct importer *);
bool run_ms_gelu(struct importer *);
bool run_quick_gelu(struct importer *);
bool run_swish(struct importer *);
bool run_leaky_relu(struct importer *);
bool run_prelu(struct importer *);
bool run_elu(struct importer *);
bool run_selu(struct importer *);
bool run_celu(struct importer *);
bool run_hard_sigmoid(struct importer *);
bool run_hard_swish(struct importer *);
bool run_softsign(struct importer *);
bool run_mish(struct importer *);
bool run_thresholded_relu(struct importer *);
bool run_tan(struct importer *);
bool run_isinf(struct importer *);
bool run_dropout(struct importer *);

/* import_move.c */
bool run_axes(struct importer *);
bool run_transpose(struct importer *);
bool run_slice(struct importer *);
bool run_split(struct importer *);
bool run_concat(struct importer *);
bool run_pad(struct importer *);
bool run_scatter(struct importer *);
bool run_cumulate(struct importer *);
bool run_constant(struct importer *);
bool run_constant_of_shape(struct importer *);
bool run_arg(struct importer *);
bool run_space_depth(struct importer *);

/* import_sequence.c */
bool run_split_to_sequence(struct importer *);
bool run_sequence_at(struct importer *);
bool run_sequence_construct(struct importer *);
bool run_concat_from_sequence(struct importer *);
bool run_sequence_length(struct importer *);
bool run_sequence_empty(struct importer *);
bool run_sequence_insert(struct importer *);
bool run_sequence_erase(struct importer *);

/* import_conv.c */
bool run_conv(struct importer *);
bool run_conv_transpose(struct importer *);
bool run_col2im(struct importer *);

/* import_pool.c */
struct window_attrs {
	IntList stride, dilation, begin, end, kernel;
	int64_t same;                   /* 1 SAME_UPPER, 2 SAME_LOWER */
};

bool imp_windows(struct importer *, struct window_attrs *);
#define COPY_WINDOWS(to, w) \
	((to)->stride = (w)->stride, (to)->dilation = (w)->dilation, \
	 (to)->begin = (w)->begin, (to)->end = (w)->end, (to)->same = (w)->same)
bool run_maxpool(struct importer *);
bool run_maxunpool(struct importer *);
bool run_avgpool(struct importer *);
bool run_global_pool(struct importer *);
bool run_lppool(struct importer *);
bool run_lrn(struct importer *);
bool run_batchnorm(struct importer *);
bool run_instancenorm(struct importer *);
bool run_groupnorm(struct importer *);

/* import_resize.c */
bool run_resize(struct importer *);
bool run_grid_sample(struct importer *);

/* import_nn.c */
bool run_reduce(struct importer *);
bool run_reduce_composed(struct importer *);
bool run_gemm(struct importer *);
bool run_softmax(struct importer *);
bool run_layernorm(struct importer *);
bool run_rmsnorm(struct importer *);
bool run_skip_norm(struct importer *);
bool run_sce(struct importer *);
bool run_nll(struct importer *);

/* import_attention.c */
bool run_attention(struct importer *);
bool run_rotary(struct importer *);

/* import_rare.c */
bool run_asin(struct importer *);
bool run_acos(struct importer *);
bool run_sinh(struct importer *);
bool run_acosh(struct importer *);
bool run_atanh(struct importer *);
bool run_shrink(struct importer *);
bool run_bit_shift(struct importer *);
bool run_eye_like(struct importer *);
bool run_hardmax(struct importer *);
bool run_window(struct importer *);
bool run_mean_variance(struct importer *);
bool run_lp_norm(struct importer *);
bool run_topk(struct importer *);
bool run_compress(struct importer *);
bool run_reverse_sequence(struct importer *);
bool run_center_crop_pad(struct importer *);

/* import_random.c */
bool run_random(struct importer *);
bool run_bernoulli(struct importer *);
bool run_multinomial(struct importer *);

/* import_einsum.c */
bool run_einsum(struct importer *);

/* import_dft.c */
bool run_dft(struct importer *);

/* import_rnn.c */
bool run_rnn(struct importer *);

#endif
