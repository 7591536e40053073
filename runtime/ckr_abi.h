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

#define CKR_ABI_VERSION 26
#define CKR_MAX_DIMS 8
#define CKR_MAX_GROUP 1024      /* ranks of a group, see enum ckr_axis */
#define CKR_ANY_REPLICAS UINT32_MAX
#define CKR_PROGRAMS 3          /* programs of a library */
#define CKR_POOLS 3             /* of a stage's slots */
#define CKR_JOINED_BYTES 32768  /* of what a launch does for many tensors */

/* ORDER DT: as runtime/support/dtypes.h, from 1.  An element of the last two
 * types is a block of 64 weights, see support/block_layout.h. */
enum ckr_dtype {
	CKR_NONE, CKR_F32, CKR_F64, CKR_F16, CKR_BF16, CKR_I64, CKR_I32,
	CKR_I16, CKR_I8, CKR_U64, CKR_U32, CKR_U16, CKR_U8, CKR_BOOL,
	CKR_INT8X64, CKR_NF4X64
};

enum ckr_kind {
	CKR_PARAM,      /* weights; trained unless CKR_FROZEN */
	CKR_BUFFER,     /* state that is not trained but may be written */
	CKR_CONSTANT,   /* contents in ckr_library.constants */
	CKR_INPUT,
	CKR_STATE,      /* optimizer state, zero before the first step; state
	                 * "copy" is the parameter in 16 bits */
	CKR_GRAD,       /* gradient of a parameter */
	CKR_OTHER       /* activation, adjoint, recomputed value, workspace */
};

enum ckr_flag {
	CKR_RESIDENT = 1,       /* the offset counts from the resident block,
	                         * not from the arena */
	CKR_FROZEN = 2,         /* a parameter that is not trained */
	CKR_OUTPUT = 4,         /* a graph output: valid after the step */
	CKR_LOSS = 8,
	CKR_SHIFTED = 16,       /* labels that the graph shifts itself: feed the
	                         * tokens, not the next tokens */
	CKR_ROUNDED = 32,       /* a value rounded to 16 bits between forward
	                         * and backward; program[1] has none */
	CKR_METRIC = 64,        /* an output that ckc has added to program[2] */
	CKR_LABEL = 128,        /* an input of program[2] that nothing but the
	                         * loss depends on */
	/* An output of program[2]; neither flag: unknown. */
	CKR_OWN_ROWS = 256,     /* the first dim has rows for each sample,
	                         * which depend on no other sample */
	CKR_NO_ROWS = 512,      /* the first dim has no rows of samples */
	CKR_HOST = 1024,        /* the offset counts from the host block: of
	                         * memory beside the device's, which only
	                         * CKR_FETCH and CKR_OFFLOAD access */
	CKR_SLOT = 2048,        /* it lies in slot 0 of the pool that has its
	                         * offset, and in those of the micro-batch as
	                         * far from their beginning: struct ckr_stage */
	CKR_OWN_EXPERTS = 4096  /* with shard_of: a shard of an expert group,
	                         * not of a zero group */
};

/* Ranks form a table: world rank = (stage * replicas + replica) * ranks + rank.
 * The ranks of one replica share its model, or a stage of it.  Ranks of one
 * number in all replicas hold the same shards of the model and train on
 * different samples. */
enum ckr_axis {
	CKR_TP,                 /* the group of all ranks of a replica */
	CKR_DP,                 /* the group of ranks r of all replicas */
	CKR_SHARDS,             /* ... of the replicas of a zero group */
	CKR_COPIES,             /* ... of the replicas that have the same
	                         * position in all zero groups */
	CKR_EXPERTS,            /* ... of the replicas of an expert group */
	CKR_EXPERT_COPIES,      /* ... of the replicas that have the same
	                         * position in all expert groups */
	CKR_STAGES,             /* one rank of every stage, with the same number
	                         * in the same replica */
	CKR_CONTEXT,            /* ... of the replicas that share samples: each
	                         * has a part of their positions */
	CKR_AXES
};

/* How a tensor lies on the ranks of a tensor-parallel group, unless it is
 * replicated: sharded, or partial (each rank has a summand of it).
 *
 * CKR_SHARD: the merged dims first_axis..axis are nsegment segments of
 * segment[] elements.  Each segment is sharded into ranks / replication shards
 * of equal extent, rounded up: the last shard is padded with zeros.  Each group
 * of `replication` consecutive ranks holds the same shard.  A rank's extents: 1
 * for dims first_axis..axis-1, and for dim axis its shards of all segments, one
 * after the other. */
enum ckr_placement_kind { CKR_SHARD, CKR_PARTIAL };

struct ckr_placement {
	uint8_t kind, axis, first_axis, nsegment;
	uint32_t replication;
	uint64_t segment[CKR_MAX_DIMS];
	uint8_t mirror;                 /* ranks have the shards of every second
	                                 * segment from the last to the first */
};

/* What an instruction without a kernel moves between ranks, or between device
 * and host memory, from its first operand to its second.  The dims
 * first_axis..axis of the whole tensor may have any extents.  Sums are taken in
 * the order of ranks; those of 16-bit floats are taken in float32 and rounded
 * once.
 *
 * The instruction begins the transfer, which may move bytes until instruction
 * `end` has run.  Until then no instruction touches the second operand, and
 * none overwrites the first. */
enum ckr_comm_kind {
	CKR_ALL_REDUCE,         /* partial -> replicated, perhaps in place */
	CKR_ALL_GATHER,         /* sharded -> replicated */
	CKR_REDUCE_SCATTER,     /* partial -> sharded */
	CKR_ALL_TO_ALL,         /* sharded -> sharded in another way */
	CKR_LOCAL_SHARD,        /* replicated -> sharded: moves nothing */
	CKR_LOCAL_SHARD_GRAD,   /* sharded -> partial: zeros around the shard */
	CKR_FETCH,              /* from the host block: no ranks take part */
	CKR_OFFLOAD,            /* into the host block */
	CKR_SEND,               /* to the rank of the same number in stage
	                         * `peer`: there is no second operand */
	CKR_RECEIVE             /* from it: there is no first operand */
};

struct ckr_comm {
	uint8_t kind;                   /* enum ckr_comm_kind */
	uint8_t axis;                   /* enum ckr_axis: the group of ranks */
	uint8_t max;                    /* CKR_ALL_REDUCE: takes the maximum,
	                                 * not the sum */
	const struct ckr_placement *placement;  /* the sharded operand's; NULL:
	                                         * neither is sharded */
	const struct ckr_placement *to; /* CKR_ALL_TO_ALL: the result's */
	uint32_t end;                   /* instruction that ends the transfer:
	                                 * the one that begins it, or a later
	                                 * one */
	uint8_t joined;                 /* goes in one message with the transfer
	                                 * of the next instruction, which begins
	                                 * before this one ends and is of the
	                                 * same kind and group */
	uint16_t peer;                  /* CKR_SEND, CKR_RECEIVE: the other
	                                 * stage */
	uint32_t tag;                   /* ... equal on both sides, and of no
	                                 * other pair */
};

/* CKR_COUNT + n: the instruction belongs to count pass n, which runs for all
 * micro-batches before count pass n + 1 does; all count passes run before the
 * step proper.  An instruction of a count pass reads inputs and what does not
 * change in a step, and leaves nothing in the arena. */
enum ckr_phase { CKR_FORWARD, CKR_RECOMPUTE, CKR_BACKWARD, CKR_WEIGHT,
                 CKR_UPDATE, CKR_COUNT };

struct ckr_tensor {
	const char *name;       /* initializer's, input's or value's name */
	uint8_t dtype, kind, rank;      /* rank: number of dims */
	uint16_t flags;
	int32_t param;          /* CKR_GRAD, CKR_STATE: index of the parameter;
	                         * CKR_OTHER: that which it is a view of, or
	                         * was fetched from; -1 */
	const char *state;      /* CKR_STATE: "m", "v", ...; else NULL */
	int32_t ready;          /* instruction after which the tensor has its
	                         * final value (for a transfer, its end); -1:
	                         * from the start */
	int32_t last;           /* last instruction that reads the tensor */
	int32_t twin;           /* tensors of program[0] that are not shared:
	                         * index of the same value, or of the value that
	                         * is recomputed, in program[1]; -1: none */
	/* offset of the first element, which is not the lowest byte where a
	 * stride is negative; nbytes of all elements without padding, more
	 * than the memory where a stride is 0 */
	uint64_t offset, nbytes;
	uint64_t data;          /* CKR_CONSTANT: offset in library.constants */
	int64_t dim[CKR_MAX_DIMS];
	int64_t stride[CKR_MAX_DIMS];   /* in elements */
	const struct ckr_placement *placement;  /* NULL: replicated; otherwise
	                                         * all other fields describe one
	                                         * rank's shard or summand */
	/* Not NULL: the tensor is one replica's shard of a tensor of these
	 * dims, which are one rank's.  The elements of that tensor, in
	 * row-major order and merged, are divided into a shard for every
	 * replica, of equal extent, rounded up: the last is padded with zeros.
	 * All entries of dim but the last are 1. */
	const int64_t *shard_of;
	int32_t batch;          /* n > 0: the replicas' tensors lie side by side
	                         * along dim n - 1, in the order of replicas; 0:
	                         * equal on all replicas */
	uint32_t stage;         /* whose ranks have the tensor */
	uint32_t tied;          /* shared tensors: 1 + index of an earlier one
	                         * of another stage that always has the same
	                         * value; 0: none */
};

/* A convolution without padding, on one thread, whose result is float32.  The
 * run time prepares it when it opens the model, if oneDNN is there.  x is
 * [images][cin / block][in][block], y alike; if cin < block, x is
 * [images][cin][in].  Weights are squares of block x block, one for every tap:
 * [cout / block][cin / block][taps][input][output] forward and as a gradient;
 * in the gradient of x [cout / block][cin / block][taps][output][input], for
 * 1x1 in blocks of 16 [cin / block][cout / block][output][input]; if
 * cin < block [cout / block][taps][cin][output].  Of bf16 operands, in blocks
 * of 16, rows of a square lie in pairs: [row / 2][column][row % 2], and 1x1 is
 * as any other; if cin < block inputs lie in pairs, forward:
 * [cout / block][taps][(cin + 1) / 2][output][2]. */
enum ckr_conv_kind { CKR_CONV_Y, CKR_CONV_DX, CKR_CONV_DW };

struct ckr_blocked {
	int32_t kind;           /* enum ckr_conv_kind: which is computed */
	int32_t type;           /* enum ckr_dtype of the other two */
	int32_t without_units;  /* 1: called only where env.bgemm is NULL */
	int32_t scratch;        /* bytes that a call brings */
	int32_t block;          /* channels of a block: 8 or 16 */
	int32_t images, cin, cout;
	int32_t in[2], out[2], kernel[2], stride[2], dilation[2];
};

/* A convolution on a GPU.  The run time prepares it when it opens the model, if
 * cuDNN can compute it.  x is [images, group cin, in], y [images, group cout,
 * out], w [group cout, cin, kernel], all row-major and aligned to 16 bytes.
 * Missing dims stand in front with extent and kernel 1.  The computed tensor
 * has type `result`, the other two have type `type`; sums are float32. */
struct ckr_convolved {
	int32_t kind;           /* enum ckr_conv_kind: which is computed */
	uint8_t type, result;   /* enum ckr_dtype */
	uint8_t products;       /* 1: without cuDNN, the kernel unfolds patches
	                         * and calls products */
	int64_t images, group, cin, cout;       /* channels of one group */
	int64_t in[3], out[3], kernel[3], stride[3], dilation[3];
	int64_t begin[3], end[3];       /* padding that windows reach */
	int64_t workspace;      /* bytes of workspace that a call brings */
};

/* Settings of one parameter: the factor of its learning rate, and its weight
 * decay; below 0: the step's weight decay. */
struct ckr_param_group {
	float lr, decay;
};

struct ckr_env;

/* What a product on a GPU computes of its result while that is in registers. */
enum ckr_gemm_epilogue {
	CKR_EPILOGUE_NONE,
	CKR_EPILOGUE_SUMS_A,    /* also sums of op(a)'s rows */
	CKR_EPILOGUE_SUMS_B,    /* also sums of op(b)'s columns */
	CKR_EPILOGUE_GELU_GRAD, /* y = (op(a) op(b)) gelu'(x), tanh form */
	CKR_EPILOGUE_GELU_GRAD_SUMS,    /* the same, and sums of y's columns */
	CKR_EPILOGUES
};

/* A product on a GPU, row-major: for each of `batch` matrices,
 * y[m, n] = alpha op(a)[m, k] op(b)[k, n] + bias[n] + c[m, n], summed in
 * float32.  op() transposes if ta or tb is 1.  c may be y. */
struct ckr_gemm {
	int32_t ta, tb;
	int64_t m, n, k, batch;
	int64_t lda, ldb, ldc, ldy;     /* elements from row to row */
	int64_t sa, sb, sc, sy;         /* elements from matrix to matrix */
	uint8_t a, b, bias, c, y;       /* enum ckr_dtype, a and b alike; bias
	                                 * or c CKR_NONE: there is none */
	uint8_t epilogue;               /* enum ckr_gemm_epilogue; x and sums
	                                 * have y's type, x is shaped as y,
	                                 * batch is 1, there is no bias */
	uint8_t zero[2];                /* no padding: products are compared */
	float alpha;
	uint32_t zero_too;
};

/* Row-major C[m,n] = alpha op(A)[m,k] op(B)[k,n] + beta C.  With beta 0 C is
 * not read. */
typedef void ckr_sgemm_fn(int ta, int tb, int64_t m, int64_t n, int64_t k,
                          float alpha, const float *a, int64_t lda,
                          const float *b, int64_t ldb, float beta, float *c,
                          int64_t ldc);

/* Updates, or checks of tensors, that one launch on a GPU carries out.  A
 * kernel of an instruction with `joins`, and library.finite, add theirs to
 * env.joined, if that is not NULL, instead of launching it; if it does not fit
 * there, they launch those before it. */
struct ckr_joined_launch {
	/* Launches them all, in any order; then there are none. */
	void (*launch)(struct ckr_joined_launch *, struct ckr_env *);
	uint32_t n;                     /* 0: none, launch is not set */
	uint64_t table[CKR_JOINED_BYTES / 8];   /* the library's */
};

/* What a kernel may ask of the run time. */
struct ckr_env {
	/* Matrix products: sgemm on all threads, or in a parallel region on
	 * the calling thread; sgemm_one on the calling thread.  The kernel
	 * chooses, because the OpenMP of the compiler that made the library
	 * need not be the run time's.  Both have the same bits: they cut a
	 * product into the same parts.  sgemm_tile, on the calling thread, is
	 * for kernels that cut products: where it can, it does not. */
	ckr_sgemm_fn *sgemm, *sgemm_one, *sgemm_tile;
	/* As sgemm_one for bf16, summed in float32, by the processor's bf16
	 * units; NULL: it has none. */
	void (*bgemm)(int ta, int tb, int64_t m, int64_t n, int64_t k,
	              float alpha, const uint16_t *a, int64_t lda,
	              const uint16_t *b, int64_t ldb, float beta, float *c,
	              int64_t ldc);
	/* Computes library.blocked[i] on thread `thread` of the caller's
	 * parallel region, which has at most env.threads threads.
	 * conv_ready[i]: that convolution is prepared; conv NULL: none is. */
	void (*conv)(void *convs, int thread, uint32_t i, void *x, void *w,
	             void *y, void *scratch);
	void *convs;
	const unsigned char *conv_ready;
	/* On a GPU: this struct as kernels there see it, and the stream that
	 * kernels are launched on. */
	struct ckr_env *device;
	void *stream;
	/* Products on the GPU; workspace: so many bytes, or NULL. */
	void *gemms;
	void (*gemm)(struct ckr_env *, const struct ckr_gemm *, const void *a,
	             const void *b, const void *bias, const void *c, void *y,
	             void *workspace, uint64_t bytes);
	/* The same for g->epilogue other than CKR_EPILOGUE_NONE; 0: there is no
	 * algorithm with it, and nothing was computed. */
	int (*gemm_epilogue)(struct ckr_env *, const struct ckr_gemm *,
	                     const void *a, const void *b, const void *x,
	                     const void *c, void *y, void *sums,
	                     void *workspace, uint64_t bytes);
	/* Computes library.convolved[i] on the GPU; 0: cuDNN cannot, and
	 * nothing was computed.  NULL: no convolution is prepared. */
	int (*convolve)(struct ckr_env *, uint32_t i, void *x, void *w,
	                void *y, void *workspace);
	uint64_t seed;
	uint64_t step;          /* 0-based training step */
	uint32_t micro, nmicro; /* this micro-batch; micro-batches of a step */
	uint32_t rank, ranks;   /* this rank of its replica; ranks of one */
	uint32_t replica, replicas;
	int32_t threads;        /* for num_threads(); at most library.threads */
	int32_t training;       /* 0: dropout passes its input through */
	/* hyper-parameters of this step; c1 = 1 - beta1^t, c2 = 1 - beta2^t */
	float lr, beta1, beta2, eps, weight_decay, momentum, clip;
	float c1, c2;
	int32_t nesterov;
	/* loss_scale multiplies the adjoint of the loss, unscale multiplies
	 * gradients; both are 1 unless library.loss_scaled */
	float loss_scale, unscale;
	/* Adafactor: weight of the new square in the running mean of squares,
	 * 1 / sqrt(t), the upper limit of lr, and two settings */
	float one_minus_beta2, max_lr, eps2, threshold;
	/* of the new parameter in its average: 1 - ema_decay, or 1 in the first
	 * update */
	float ema_weight;
	/* settings of the parameter being updated; on a GPU the host's
	 * environment has them when the update is launched */
	struct ckr_param_group group;
	struct ckr_joined_launch *joined;       /* of the host; NULL: what
	                                 * may join is launched by itself */
	int32_t skip_finite_check;      /* library.finite checks nothing */
	/* Kernels write all fields from here on.  A kernel that met bad data
	 * (an index out of range) sets them; the step then fails with this
	 * text and the offending number. */
	const char *volatile fault;
	volatile int64_t fault_value;
	volatile int64_t fault_at;      /* element's index in its operand */
	char fault_lock;                /* taken while the fields are set */
	/* On a GPU, whose texts are not the host's: both 0, or the complements
	 * of place (30 bits), number of the text (2) and a half of the
	 * offending number (32): the upper one, the lower one. */
	uint64_t device_fault[2];
	int32_t device_nonfinite;       /* 1: a number was not finite.  After
	                                 * this or a fault, updates on the GPU
	                                 * write nothing until the run time
	                                 * clears both */
};

/* p[i]: the i-th operand of the call (inputs, then outputs, then workspace if
 * there is any), NULL for an absent one.  c: constants of this call. */
typedef void ckr_kernel(void *const *p, const int64_t *c, struct ckr_env *env);

/* Places of the arena that micro-batches have in turn: slot k is `bytes` from
 * at + k * bytes on. */
struct ckr_slot_pool {
	uint64_t at, bytes;
	uint32_t slots;
};

/* A stage of a pipeline (Huang et al. 2019; Narayanan et al. 2021): bytes of
 * one of its ranks.  A micro-batch has slots: between its forward and its
 * backward turn one of pool[0]; with turns of weights (Qi et al. 2023) between
 * its forward and its weight turn one of pool[1], and from backward on one of
 * pool[2].  Pools without slots have no bytes. */
struct ckr_stage {
	uint64_t arena_bytes, resident_bytes;
	struct ckr_slot_pool pool[CKR_POOLS];
	uint32_t slots;         /* different sets of slots: in set k micro-batch
	                         * k's, whose number in each pool is k modulo
	                         * that pool's slots */
	/* Turns in some slots of pool[0] may run a second plan (Korthikanti et
	 * al. 2023, appendix C), which keeps other bytes. */
	uint64_t second_bytes;  /* of such a slot */
	const unsigned char *second;    /* [slots]: 1: it has the second plan;
	                                 * NULL: none has */
};

/* CKR_TURN_WEIGHT: what is left of backward when the others have what they wait
 * for.  CKR_TURN_NORM: of an update, what comes before the norm of all stages'
 * gradients; CKR_TURN_UPDATE: the rest.  Of both a stage has one at most. */
enum ckr_turn_kind { CKR_TURN_FORWARD, CKR_TURN_BACKWARD, CKR_TURN_WEIGHT,
                     CKR_TURN_NORM, CKR_TURN_UPDATE };

/* Instructions first .. end - 1 for one micro-batch, which all are of one
 * stage.  In the order of the table each turn finds what it receives sent, and
 * no update comes before a turn of another kind. */
struct ckr_turn {
	uint32_t kind;                  /* enum ckr_turn_kind */
	uint32_t first, end;
	uint32_t stage, slot, micro;
};

/* One kernel call, transfer or view. */
struct ckr_instr {
	ckr_kernel *run;        /* NULL: a view or a transfer */
	const char *op;         /* op's name, for traces */
	const char *origin;     /* ONNX node names, comma separated */
	uint32_t arg0, narg;    /* in program.arg */
	uint32_t const0, nconst;        /* in program.constant */
	int32_t phase;
	double flops, bytes, sec;       /* the plan's estimates; bytes of memory
	                                 * traffic, or that a rank sends */
	const struct ckr_comm *comm;    /* transfer that begins here, when all
	                                 * ranks have arrived; NULL: none */
	uint32_t stage;                 /* whose ranks carry it out */
	int32_t joins;                  /* 1: `run` is an update that may join
	                                 * env.joined */
};

/* One schedule over the same parameters. */
struct ckr_program {
	const struct ckr_instr *instr;
	uint32_t ninstr;
	uint32_t update;        /* from this instruction on all have phase
	                         * update (ninstr: none).  A micro-batch other
	                         * than the last ends before it, and skips
	                         * earlier instructions of phase update */
	uint32_t apply;         /* first instruction that applies a gradient */
	const int32_t *arg;     /* tensor indices; -1: absent */
	const int64_t *constant;
	const struct ckr_tensor *tensor;
	uint32_t ntensor;
	int32_t loss;           /* tensor index; -1: none */
	uint64_t arena_bytes, resident_bytes;
	uint64_t host_bytes;            /* of the host block; shared tensors
	                                 * come first, as in all programs */
};

/* A term of a formula in postfix form.  The formula gives the loss of a data
 * set from results of program[2], or of program[0] if there is no program[2],
 * on its batches. */
struct ckr_formula_term {
	uint8_t op;             /* enum formula_op */
	int32_t tensor;         /* operand: index of a scalar float; else -1 */
	double number;          /* FORMULA_NUMBER */
};

/* A place in the original ONNX file from which a trained value was cut: file =
 * bytes[0..at0) value0 bytes[at0..at1) value1 ... */
struct ckr_hole {
	uint64_t at;            /* position in the template */
	int32_t tensor;         /* parameter or buffer that belongs here */
	uint8_t dtype;          /* type in the file */
	uint8_t transform;      /* 0: stored as is */
};

/* Low-rank weights of an adapter, by tensor indices: a [rank, in] and b [out,
 * rank].  The merged weight is W + scale b a, or if `transposed` (W is [in,
 * out]) W + scale (b a)^T. */
struct ckr_adapter {
	int32_t weight, a, b, transposed;
	float scale;
};

struct ckr_library {
	uint32_t abi;           /* CKR_ABI_VERSION */
	uint32_t threads;       /* threads that workspace is sized for */
	const char *name;       /* model's name */
	const char *compiler;   /* "ckc 0.1", for people who read the file */
	/* [0] the plan.  [1] keep-everything for --check (ninstr 0: the same).
	 * [2] forward alone, without dropout and by running statistics, with
	 * all outputs (ninstr 0: none).  Parameters, buffers, states, constants
	 * and inputs come first in all tensor tables, in this order, at the
	 * same indices and resident offsets; in [2] their `last` is [0]'s.
	 * Constants of [2] alone lie in its arena, which is [0]'s, and are
	 * written there before it runs. */
	struct ckr_program program[CKR_PROGRAMS];
	uint32_t nshared;       /* number of these shared tensors */
	const unsigned char *constants;
	uint64_t constants_bytes;
	const char *optimizer;  /* "adamw", ...; "none": no updates */
	const char *training;   /* options of ckc that decide what is trained,
	                         * but for sizes */
	uint64_t largest_product;       /* most FLOPs that a step's instruction
	                                 * spends on matrix products, all of a
	                                 * batch together; 0: there are none */
	uint32_t grad_accum;    /* micro-batches of a step */
	int32_t loss_adds;      /* 1: the loss of a step is the sum over its
	                         * micro-batches; 0: their mean */
	int32_t clip_ok;        /* 0: gradients are applied as they appear */
	int32_t loss_scaled;    /* 1: gradients, but not their norm, contain
	                         * env.loss_scale */
	uint64_t peak_bytes, budget_bytes;      /* budget 0: none */
	const unsigned char *onnx;      /* template; NULL: not exportable */
	uint64_t onnx_bytes;
	const struct ckr_hole *hole;
	uint32_t nhole;
	int32_t onnx_trains;    /* 1: it has Dropout or BatchNormalization in
	                         * training form */
	const struct ckr_adapter *adapter;
	uint32_t nadapter;
	const struct ckr_blocked *blocked;
	uint32_t nblocked;
	const struct ckr_convolved *convolved;
	uint32_t nconvolved;
	uint32_t ranks;         /* ranks of a replica.  0 or 1: the model is not
	                         * sharded; else memory and tensors are one
	                         * rank's */
	uint32_t replicas;      /* 0: compiled for one replica;
	                         * CKR_ANY_REPLICAS: for any number */
	uint32_t nstage;        /* stages of a pipeline; 0: there is none, and
	                         * the following are 0 */
	uint32_t chunks;        /* of these each rank of the pipeline has so
	                         * many: rank r the stages r, n + r, 2 n + r...
	                         * with n = nstage / chunks */
	const struct ckr_stage *stage;
	const struct ckr_turn *turn;    /* of a step of program[0], but for
	                                 * count passes */
	uint32_t nturn;
	uint32_t zero_group;    /* each zero_group consecutive replicas hold
	                         * the shards of tensors with shard_of; 0: all
	                         * replicas together.  Divides `replicas` */
	uint32_t expert_group;  /* likewise, those with CKR_OWN_EXPERTS */
	uint32_t context;       /* each `context` consecutive replicas have the
	                         * same samples and compute a part of their
	                         * positions each; 0: each has its own samples.
	                         * Divides `replicas` */
	/* GPU architecture that kernels are for, "sm_90"; NULL: the host.
	 * Kernels of a GPU are passed addresses of its memory. */
	const char *arch;
	/* On a GPU: set env->device->device_nonfinite if one of n elements is
	 * not finite, unless env->device->skip_finite_check. */
	void (*finite)(const void *x, uint64_t n, int32_t dtype,
	               struct ckr_env *);
	/* Why a kernel could not be launched since the last call; NULL: all
	 * were launched. */
	const char *(*launch_error)(void);
	/* The formula of a data set's loss.  nterm 0: there is no loss, or it
	 * depends on how samples are distributed to batches, and by_batch says
	 * why. */
	const struct ckr_formula_term *term;
	uint32_t nterm;
	const char *by_batch;
	const char *no_forward; /* why there is no program[2]; NULL: there is */
};

#endif
