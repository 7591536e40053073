/* The kernel being emitted, and the functions that rules emit it with. */
#ifndef CODEGEN_RULES_EMIT_H
#define CODEGEN_RULES_EMIT_H

#include "codegen/out.h"
#include "codegen/tables.h"
#include "ir/ir.h"

/* ---- kernels ---- */

/* Texts of a machine that its kernels include. */
enum {
	NEED_RANDOM = 1, NEED_ROWS = 2, NEED_INDEX = 4, NEED_REDUCE = 8,
	NEED_GEMM = 16, NEED_ATTENTION = 32, NEED_CLASSIFIER = 64,
	NEED_UPDATE = 128, NEED_CONV = 256, NEED_BATCHNORM = 512,
	NEED_POOL = 1024, NEED_NORM = 2048, NEED_HALF_UPDATE = 4096,
	NEED_BLOCKED = 8192, NEED_SAMPLE = 16384, NEED_ADAFACTOR = 32768,
	NEED_DET = 65536, NEED_SHARD = 131072, NEED_TILES = 262144,
	NEED_DEPTHWISE = 524288, NEED_ATTENTION_GRAD = 1048576,
};

enum { EMIT_CONSTS = 32 };

struct machine;

struct emit {
	const struct machine *machine;
	const Graph *g;
	NodeId gnode;                   /* whose kernel this is */
	Diag *diag;
	Arena *arena;
	int threads;
	struct out *out;                /* the body of this kernel */
	int64_t items;                  /* of this kernel's loops over work
	                                 * items, the most; 0: no such loop */
	unsigned need;                  /* NEED_*, of all kernels so far */
	int nconst;                   /* numbers that differ between calls of */
	int64_t constant[EMIT_CONSTS];  /* the same kernel */
	const char **job;               /* convolutions for the run time's
	                                 * library: rows of its table */
	int njob;
};

typedef bool EmitRule(struct emit *, const Node *);

/* One rule per name in the EMIT column of ops.h. */
#define EMIT(cpu, work) EmitRule emit_##cpu;
#define OP(id, text, sig, attr, rules, emit) emit
#include "ir/ops.h"

/* Operands: in 0..nin-1, then outputs, then scratch. */
const Val *emit_in(const struct emit *, const Node *, int i);   /* NULL: none */
const Val *emit_out(const struct emit *, const Node *, int i);  /* NULL: none */
/* Operands as arguments of a kernel: "p[3]", or "NULL" if absent. */
const char *p_in(const struct emit *, const Node *, int i);
const char *p_out(const struct emit *, const Node *, int i);
/* Workspace: "p[5]", or "NULL" where the machine wants none for the node. */
const char *p_scratch(const struct emit *, const Node *);
/* The same as one more argument, ", p[5]", or "" where there is none. */
const char *emit_scratch_arg(const struct emit *, const Node *);
/* A list of int64_t as an argument, or NULL if empty. */
const char *emit_list(const struct emit *, const int64_t *, int n);
static inline int
emit_scratch(const Node *n)
{
	return n->nin + n->nout;
}
/* Declare "T *NAME = p[I]" (const for an input), typed as the value. */
void emit_pointer(struct emit *, const char *name, const Val *, int i,
                  bool constant);
const char *emit_ctype(DType);
/* A number of this call; the text that reads it, in the arena. */
const char *emit_const(struct emit *, int64_t value);
/* A float literal that reads back as exactly (float)x. */
const char *emit_float(Arena *, double x);
const char *emit_double(Arena *, double x);
/* "f32[2,3], i64[4] -> f32[2,4]" as a comment line. */
void emit_shapes(struct emit *, const Node *);
/* "op of TYPE is not supported", about the ONNX node behind it. */
bool emit_unsupported(struct emit *, const Node *, DType);
/* The same for an op within a loop. */
bool emit_unsupported_op(struct emit *, const Node *, Op, DType);
/* Elements of dims from..to-1. */
int64_t emit_extent(const Shape *, int from, int to);
/* [N, C, d...] as "N, C, n": n is the product of all d. */
const char *emit_planes(struct emit *, const Shape *);
int emit_axis(int64_t axis, int rank);

/* Open a loop over work items t = 0 .. count - 1, in any order, which threads
 * share if it is worth it; the body says what to do for t.  Closed by "}". */
void emit_work_items(struct emit *, int64_t count, bool shared);
/* The number of a row of the table of convolutions, an old one or new. */
int emit_job(struct emit *, const char *row);

/* ---- element-wise loop nests ---- */

struct nest_operand {
	DType dt;
	int arg;                        /* index in p */
	int64_t start;                  /* elements to skip */
	int64_t base;                   /* elements before p[arg] in its owner,
	                                 * which is aligned */
	bool many;                      /* in a loop over r: p[arg + r], or */
	int64_t step;                   /* ... elements further for each r */
	int64_t stride[MAX_RANK];       /* over the nest's dims */
	bool scalar;                    /* known value: a literal instead */
	double value;
};

/* for all points of shape: outputs = body(inputs).  A body without micros
 * copies input 0 to output 0. */
struct loop_nest {
	Shape shape;
	int nin, nout;
	struct nest_operand *in, *out;
	const struct body *body;
	const Split *split;             /* NULL: shape is the whole one */
};

bool emit_nest(struct emit *, const struct loop_nest *);
/* An operand whose value is known, as an expression. */
const char *nest_literal(struct emit *, const struct nest_operand *);
/* Strides of v over `shape`, 0 where v is broadcast. */
void nest_strides(const Val *v, const Shape *shape, int64_t *stride);

/* ---- random words of a loop nest (random.c) ---- */

/* Whether the body draws any. */
bool random_drawn(const struct loop_nest *);
/* False after a diagnostic: words of the nest's elements have no order. */
bool random_check(const struct emit *, const struct loop_nest *);
/* How far apart words of neighbours in each dim are. */
void random_strides(const struct loop_nest *, int64_t *stride);
/* Declare what draws of dropout compare and multiply with. */
void random_numbers(struct emit *, const struct loop_nest *);
/* How many words of a dim of that extent are drawn at once, `most` at best:
 * indices have no gap between them. */
int64_t random_run(const struct loop_nest *, int64_t extent, int64_t most);
/* Draw the words of `count` elements, from the element with offset `at`.
 * buffered: into a buffer that ckr_words() fills from where it likes, else
 * into an array of just so many. */
void random_words(struct emit *, const struct loop_nest *, const char *at,
                  const char *count, bool buffered);
/* The result of micro i, which draws from its words. */
const char *random_draw(struct emit *, const struct micro *, int i,
                        const char *x);

/* ---- expressions (ew.c) ---- */

/* The C expression of one element-wise op on named operands of type from;
 * words: the name of the random word, if op draws one.  exponent: constant
 * second operand of pow, or NULL. */
const char *ew_expression(struct emit *, const struct micro *,
                          const char *const *arg, const DType *from,
                          const double *exponent);
/* The type in which values of dt are computed. */
const char *ew_type(DType);
/* expr converted between storage and computation. */
const char *ew_load(struct emit *, DType, const char *expr);
const char *ew_store(struct emit *, DType, const char *expr);

/* ---- rows.c ---- */

/* "labels", operand i of a loss over so many classes, with the operand of
 * weights if there is one. */
bool emit_labels(struct emit *, const Node *, int labels, int weights,
                 int64_t ignore, int64_t classes);

/* ---- image.c ---- */

struct window;

/* A member of three, and the members in, out, ... begin of a kernel's
 * struct. */
void emit_triple(struct emit *, const char *name, const int64_t *);
void emit_window(struct emit *, const struct window *);

/* ---- resize.c ---- */

/* Tables "first", "at", "weight": false after a diagnostic. */
bool resize_tables(struct emit *, const Node *);

/* ---- shard.c: rows of ops.h whose operands are pieces ---- */

/* "part", what a rank has of the `whole` positions that v is a piece of along
 * dim axis. */
void emit_part(struct emit *, const Val *, int axis, int64_t whole);
bool emit_sce_part(struct emit *, const Node *);
bool emit_sce_grad_part(struct emit *, const Node *);

/* ---- target.c: the rule of the node's op ---- */

bool cpu_emit_plain(struct emit *, const Node *);

/* ---- staging.c ---- */

/* The node on float32 copies of its 16-bit operands (tile_staged()). */
bool emit_staged(struct emit *, const Node *);

#endif
