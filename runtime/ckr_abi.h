/* The ABI between a compiled model and the run time: everything that ckc's
 * output and libckr share.  This text is also the head of generated C, so it
 * includes nothing but <stdint.h> and <stddef.h>.
 *
 * A compiled model exports one symbol, `ckr_library`, of type
 * const struct ckr_library.  Its tables are constant; the run time owns all
 * memory.  Tensor offsets and sizes are in bytes; every tensor starts on 64.
 */
#ifndef CKR_ABI_H
#define CKR_ABI_H

#include <stddef.h>
#include <stdint.h>

#define CKR_ABI_VERSION 16
#define CKR_MAX_RANK 8
#define CKR_MAX_RANKS 1024      /* of a group, see ckr_axis */
#define CKR_ANY_REPLICAS UINT32_MAX
#define CKR_PROGRAMS 3          /* of a library */

/* ORDER DT: as runtime/support/dtypes.h, from 1. */
enum ckr_dtype {
	CKR_NONE, CKR_F32, CKR_F64, CKR_F16, CKR_BF16, CKR_I64, CKR_I32,
	CKR_I16, CKR_I8, CKR_U64, CKR_U32, CKR_U16, CKR_U8, CKR_BOOL
};

enum ckr_kind {
	CKR_PARAM,      /* weights; trained unless CKR_FROZEN */
	CKR_BUFFER,     /* state that is not trained but may be written */
	CKR_CONSTANT,   /* contents in ckr_library.constants */
	CKR_INPUT,
	CKR_STATE,      /* optimizer state; starts at zero, but for "copy",
	                 * the parameter in 16 bits */
	CKR_GRAD,       /* gradient of a parameter */
	CKR_OTHER       /* activations, adjoints, copies, workspace */
};

enum ckr_flag {
	CKR_RESIDENT = 1,       /* offset counts in the resident block, not in
	                         * the arena */
	CKR_FROZEN = 2,
	CKR_OUTPUT = 4,         /* a graph output: valid after the step */
	CKR_LOSS = 8,
	CKR_SHIFTED = 16,       /* labels that the graph itself shifts: feed the
	                         * tokens, not the next tokens */
	CKR_ROUNDED = 32,       /* what backward reads of forward, rounded to 16
	                         * bits: keep-everything has no such thing */
	CKR_METRIC = 64,        /* an output that ckc has added to program[2] */
	CKR_LABEL = 128,        /* an input that nothing but the loss depends
	                         * on, in program[2] */
	/* an output, as evaluation sees it; neither: nobody knows */
	CKR_OWN_ROWS = 256,     /* has rows of each sample along its first dim,
	                         * which depend on no other sample */
	CKR_NO_ROWS = 512       /* has none along its first dim */
};

/* Ranks form a table: world rank = replica * ranks + rank.  Those of a replica
 * share its model, those of one number in all replicas hold the same part of it
 * and see different samples. */
enum ckr_axis {
	CKR_TP,                 /* the ranks of a replica */
	CKR_DP                  /* rank r of all replicas */
};

/* How a tensor lies on the ranks of a tensor-parallel group, if it is not
 * whole and equal on all: cut, or a summand on each.
 *
 * Cut: dims lead..axis, taken as one, are stretches of part[] elements.  Each
 * is cut into ranks / shared pieces of equal extent, rounded up: what a last
 * piece lacks is zeros.  `shared` ranks side by side hold the same piece.  A
 * rank's extents are 1 for dims lead..axis-1 and, for dim axis, those of its
 * pieces of all stretches, one behind the other. */
enum ckr_split_kind { CKR_CUT, CKR_SUMMAND };

struct ckr_split {
	uint8_t kind, axis, lead, npart;
	uint32_t shared;
	uint64_t part[CKR_MAX_RANK];
};

/* What a step without a kernel moves between ranks, from its first operand to
 * its second; the whole side may have dims lead..axis of any extents.  Sums
 * are taken in the order of ranks, of 16-bit floats in float32 and rounded
 * once.
 *
 * The step begins it.  Until step `end` has run no step touches the second
 * operand, and none overwrites the first: it may be moved at any time between,
 * and has been when that step is over. */
enum ckr_comm_kind {
	CKR_ALL_REDUCE,         /* summands -> whole, in place perhaps */
	CKR_ALL_GATHER,         /* cut -> whole */
	CKR_REDUCE_SCATTER,     /* summands -> cut */
	CKR_ALL_TO_ALL,         /* cut -> cut otherwise */
	CKR_OWN,                /* whole -> cut */
	CKR_OWN_GRAD            /* cut -> zeros around a rank's piece */
};

struct ckr_comm {
	uint8_t kind;
	uint8_t axis;           /* over which group */
	uint8_t max;            /* CKR_ALL_REDUCE: the largest, no sum */
	const struct ckr_split *split;  /* of the cut side, if there is one */
	const struct ckr_split *to;     /* CKR_ALL_TO_ALL: of the result */
	uint32_t end;                   /* the step itself, or a later one */
};

/* CKR_COUNT + n: of round n, which runs for all micro-batches before round
 * n + 1 does, and they before the step proper.  It reads inputs and what does
 * not change in a step, and leaves nothing in the arena. */
enum ckr_phase { CKR_FORWARD, CKR_RECOMPUTE, CKR_BACKWARD, CKR_UPDATE,
                 CKR_COUNT };

struct ckr_tensor {
	const char *name;       /* initializer's, input's or value's name */
	uint8_t dtype, kind, rank;
	uint16_t flags;
	int32_t owner;          /* CKR_GRAD, CKR_STATE: index of the parameter;
	                         * else -1 */
	const char *state;      /* CKR_STATE: "m", "v", ...; else NULL */
	int32_t ready;          /* step after which it holds its final value,
	                         * which is not the one that begins to move it;
	                         * -1: from the start */
	int32_t last;           /* last step that reads it */
	int32_t twin;           /* in the plan, of what is not shared: index of
	                         * the same value in the other program, that of
	                         * the original if it is computed again; -1:
	                         * there is none */
	/* of the first element, which is not the lowest byte where a stride
	 * is negative; nbytes: of all elements without padding, more than
	 * memory where a stride is 0 */
	uint64_t offset, nbytes;
	uint64_t data;          /* CKR_CONSTANT: where in `constants` */
	int64_t dim[CKR_MAX_RANK];
	int64_t stride[CKR_MAX_RANK];   /* in elements */
	const struct ckr_split *split;  /* all else is one rank's; NULL: whole
	                                 * and equal on all ranks */
	/* Not NULL: a replica's piece; the extents that a rank would have of
	 * it if replicas had all of it.  Those elements, in row-major order and
	 * taken as one, are cut into a piece for every replica, of equal
	 * extent, rounded up: what a last one lacks is zeros.  dim is a
	 * piece's, ones but for the last. */
	const int64_t *piece;
	int32_t batch;          /* 0: equal on all replicas; n: side by side
	                                 * in their order, along dim n - 1 */
};

/* A convolution of float32 without padding, on one thread, which the run time
 * prepares when it opens the model if its library of products can.  x is
 * [images][cin / block][in][block], y alike; if cin < block, x is
 * [images][cin][in].  Weights are squares of block x block, one for every tap:
 * [cout / block][cin / block][taps][input][output] forward and as a gradient;
 * in the gradient of x [cout / block][cin / block][taps][output][input], for
 * 1x1 in blocks of 16 [cin / block][cout / block][output][input]; if
 * cin < block [cout / block][taps][cin][output]. */
enum ckr_conv_kind { CKR_CONV_Y, CKR_CONV_DX, CKR_CONV_DW };

struct ckr_blocked {
	int32_t kind;           /* which of the three is computed */
	int32_t block;          /* channels side by side: 8 or 16 */
	int32_t images, cin, cout;
	int32_t in[2], out[2], kernel[2], stride[2], dilation[2];
};

/* A convolution on a device, which the run time prepares when it opens the
 * model if it finds a library that can: x is [images, group cin, in], y
 * [images, group cout, out], w [group cout, cin, kernel], row-major, from
 * multiples of 16 bytes on.  Missing dims stand in front with extent and kernel
 * 1.  What is computed is of type `result`, the other two of `type`; sums are
 * float32.  room: bytes of scratch that a call brings. */
struct ckr_convolved {
	int32_t kind;           /* enum ckr_conv_kind: which is computed */
	uint8_t type, result;   /* enum ckr_dtype */
	uint8_t products;       /* what stands in for a library has products */
	int64_t images, group, cin, cout;       /* channels of one group */
	int64_t in[3], out[3], kernel[3], stride[3], dilation[3];
	int64_t begin[3], end[3];       /* padding that windows reach */
	int64_t room;
};

/* What a parameter has of its own: what its learning rate is multiplied with,
 * and its decay; below 0: the step's. */
struct ckr_group {
	float lr, decay;
};

struct ckr_env;

/* What a product on a device does with its result while it has it. */
enum ckr_gemm_end {
	CKR_END_NONE,
	CKR_END_SUMS_A,         /* besides, sums of op(a)'s rows */
	CKR_END_SUMS_B,         /* ... of op(b)'s columns */
	CKR_END_GELU_GRAD,      /* y = (op(a) op(b)) gelu'(x), tanh form */
	CKR_END_GELU_GRAD_SUMS, /* ... besides, sums of y's columns */
};

/* A product on a device, row-major: of each of `batch` matrices, `s` elements
 * apart, y[m, n] = alpha op(a)[m, k] op(b)[k, n] + bias[n] + c[m, n], summed
 * in float32.  Types are of enum ckr_dtype; CKR_NONE: there is no bias, no
 * c, which may be y. */
struct ckr_gemm {
	int32_t ta, tb;
	int64_t m, n, k, batch;
	int64_t lda, ldb, ldc, ldy;
	int64_t sa, sb, sc, sy;
	uint8_t a, b, bias, c, y;       /* a and b: the same */
	uint8_t end;                    /* enum ckr_gemm_end; x and sums of y's
	                                 * type, x like y, batch 1, no bias */
	float alpha;
};

/* Row-major C[m,n] = alpha op(A)[m,k] op(B)[k,n] + beta C.  With beta 0 C is
 * not read. */
typedef void ckr_sgemm_fn(int ta, int tb, int64_t m, int64_t n, int64_t k,
                          float alpha, const float *a, int64_t lda,
                          const float *b, int64_t ldb, float beta, float *c,
                          int64_t ldc);

/* What a kernel may ask of the run time. */
struct ckr_env {
	/* On all threads; in a parallel region: on the calling thread.  Only
	 * the caller can tell that there is one, and which of its threads he
	 * is: the OpenMP of the compiler that made the library need not be
	 * the run time's. */
	ckr_sgemm_fn *sgemm, *sgemm_one;
	/* As sgemm_one of bf16, summed in float32, by units that the processor
	 * has for it; NULL: it has none. */
	void (*bgemm)(int ta, int tb, int64_t m, int64_t n, int64_t k,
	              float alpha, const uint16_t *a, int64_t lda,
	              const uint16_t *b, int64_t ldb, float beta, float *c,
	              int64_t ldc);
	/* library.blocked[i] on thread `thread` of the caller's parallel region
	 * of at most env.threads; conv_ready[i]: it can be called; NULL: none
	 * can */
	void (*conv)(void *convs, int thread, uint32_t i, float *x, float *w,
	             float *y);
	void *convs;
	const unsigned char *conv_ready;
	/* On a device: this struct as kernels there see it, the stream that
	 * they are launched on, and products; work: scratch of so many bytes,
	 * NULL if there is none. */
	struct ckr_env *device;
	void *stream;
	void *gemms;
	void (*gemm)(struct ckr_env *, const struct ckr_gemm *, const void *a,
	             const void *b, const void *bias, const void *c, void *y,
	             void *work, uint64_t bytes);
	/* The same of g->end, CKR_END_NONE excepted. */
	void (*gemm_end)(struct ckr_env *, const struct ckr_gemm *,
	                 const void *a, const void *b, const void *x,
	                 const void *c, void *y, void *sums, void *work,
	                 uint64_t bytes);
	/* library.convolved[i] on a device; 0: not by a library, nothing has
	 * been done.  NULL: none is. */
	int (*convolve)(struct ckr_env *, uint32_t i, void *x, void *w,
	                void *y, void *work);
	uint64_t seed;
	uint64_t step;          /* 0-based training step */
	uint32_t micro, nmicro; /* micro-batch in this step, of how many */
	uint32_t rank, ranks;   /* of a replica: this one, of how many */
	uint32_t replica, replicas;
	int32_t threads;        /* for num_threads(); at most library.threads */
	int32_t training;       /* 0: dropout passes its input through */
	/* hyper-parameters of this step; c1 = 1 - beta1^t, c2 = 1 - beta2^t */
	float lr, beta1, beta2, eps, weight_decay, momentum, clip;
	float c1, c2;
	int32_t nesterov;
	/* what the loss's adjoint is multiplied with, and, as a factor, what
	 * takes that out of gradients: 1 and 1 unless library.loss_scaled */
	float loss_scale, unscale;
	/* Adafactor's: share of the new in means of squares, 1 / sqrt(t),
	 * which lr is at most, and two settings */
	float fresh, most, eps2, threshold;
	/* of the parameter that is updated; on a device that of the host's
	 * environment, when the update is launched */
	struct ckr_group group;
	int32_t lax;            /* library.finite need not look */
	/* What kernels find, all that follows: set by one that met bad data
	 * (an index out of range); the step then fails with this text and the
	 * offending number */
	const char *volatile fault;
	volatile int64_t fault_value;
	volatile int64_t fault_at;      /* its place in its operand */
	char fault_lock;                /* taken while they are set */
	/* of a device, whose texts are not the host's: which one */
	int32_t device_fault, device_lock;
	int32_t device_bad;     /* something was not finite: updates of a
	                         * device do nothing after this or a fault,
	                         * until the run time has taken both back */
};

/* p[i]: the i-th operand of the call (inputs, then outputs, then workspace if
 * there is any), NULL for an absent one.  c: constants of this call. */
typedef void ckr_kernel(void *const *p, const int64_t *c, struct ckr_env *env);

struct ckr_step {
	ckr_kernel *run;        /* NULL: a view or a collective */
	const char *op;         /* op's name, for traces */
	const char *origin;     /* ONNX node names, comma separated */
	uint32_t arg0, narg;    /* in program.arg */
	uint32_t const0, nconst;        /* in program.constant */
	int32_t phase;
	double flops, bytes, sec;       /* the plan's; bytes moved, or that a
	                                 * rank sends */
	const struct ckr_comm *comm;    /* after all ranks have come here; NULL:
	                                 * nothing is moved */
};

/* One schedule over the same parameters. */
struct ckr_program {
	const struct ckr_step *step;
	uint32_t nstep;
	uint32_t update;        /* from this step on all are of phase update
	                         * (nstep: none); a micro-batch that is not the
	                         * last ends before it, and goes without those
	                         * of that phase that stand earlier */
	uint32_t apply;         /* first one that applies a gradient */
	const int32_t *arg;     /* tensor indices; -1: absent */
	const int64_t *constant;
	const struct ckr_tensor *tensor;
	uint32_t ntensor;
	int32_t loss;           /* tensor index; -1: none */
	uint64_t arena_bytes, resident_bytes;
};

/* Of the formula, in postfix form, of a data set's loss by what program[2], or
 * if there is none program[0], says of batches. */
struct ckr_term {
	uint8_t op;             /* enum total_op */
	int32_t tensor;         /* of operands: a scalar of floats; else -1 */
	double number;          /* TOTAL_NUMBER */
};

/* Pieces of the original ONNX file with trained values left out: file =
 * bytes[0..at0) value0 bytes[at0..at1) value1 ... */
struct ckr_hole {
	uint64_t at;            /* position in the template */
	int32_t tensor;         /* parameter or buffer that belongs here */
	uint8_t dtype;          /* stored so */
	uint8_t transform;      /* 0: as is */
};

/* Low-rank weights beside a weight, by tensor indices: a [rank, in] and b [out,
 * rank].  Merged it is W + scale b a, or, turned ([in, out]), W + scale (b
 * a)^T. */
struct ckr_adapter {
	int32_t weight, a, b, turned;
	float scale;
};

struct ckr_library {
	uint32_t abi;           /* CKR_ABI_VERSION */
	uint32_t threads;       /* workspace was planned for so many */
	const char *name;       /* model's name */
	const char *compiler;   /* "ckc 0.1", for who looks into the file */
	/* [0] the plan, [1] keep-everything for --check (nstep 0: the same),
	 * [2] forward alone, without dropout and by running statistics, with
	 * all outputs (nstep 0: none).  Parameters, buffers, constants, inputs
	 * and states come first in all tensor tables, at the same indices and
	 * resident offsets; in [2] their `last` is [0]'s.  Constants of [2]
	 * alone lie in its arena, which is [0]'s, and are put there before it
	 * runs. */
	struct ckr_program program[CKR_PROGRAMS];
	uint32_t nshared;       /* how many tensors those are */
	const unsigned char *constants;
	uint64_t constants_bytes;
	const char *optimizer;  /* "adamw", ...; "none": none updates */
	uint32_t grad_accum;
	int32_t loss_adds;      /* 1: the loss of a step is the sum over its
	                         * micro-batches; 0: their mean */
	int32_t clip_ok;        /* 0: gradients are applied as they appear */
	int32_t loss_scaled;    /* 1: env.loss_scale is in gradients, the norm
	                         * aside */
	uint64_t peak_bytes, budget_bytes;      /* budget 0: none */
	const unsigned char *onnx;      /* template; NULL: not exportable */
	uint64_t onnx_bytes;
	const struct ckr_hole *hole;
	uint32_t nhole;
	const struct ckr_adapter *adapter;
	uint32_t nadapter;
	const struct ckr_blocked *blocked;
	uint32_t nblocked;
	const struct ckr_convolved *convolved;
	uint32_t nconvolved;
	uint32_t ranks;         /* of a replica.  0 or 1: the model is not
	                         * cut; else memory and tensors are one
	                         * rank's */
	uint32_t replicas;      /* 0: it is made for one alone;
	                         * CKR_ANY_REPLICAS: as many as there are */
	/* Kernels are of a GPU of this architecture, "sm_90"; NULL: of the
	 * host.  What they are given are addresses of its memory. */
	const char *arch;
	/* On a GPU: make env->device->device_bad 1 if one of n elements is not
	 * finite, unless env->device->lax. */
	void (*finite)(const void *x, uint64_t n, int32_t dtype,
	               struct ckr_env *);
	/* What kept a kernel from being launched since the last call, in
	 * words; NULL: nothing. */
	const char *(*launch_error)(void);
	/* The loss of a data set; none: it depends on how samples are dealt to
	 * batches, and why, or there is no loss. */
	const struct ckr_term *term;
	uint32_t nterm;
	const char *by_batch;
	const char *no_forward; /* why program[2] is none; NULL: it is one */
};

#endif
