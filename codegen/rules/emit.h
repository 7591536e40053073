/* Room rules: the kernel being emitted, and the functions that rules print it
 * with.
 *
 * in      a node of a planned graph, a target (target_emitter.h)
 * out     the body of the node's kernel, and its constants
 * must not know schedules and files
 */
#ifndef CODEGEN_RULES_EMIT_H
#define CODEGEN_RULES_EMIT_H

#include "codegen/out.h"
#include "codegen/tables.h"
#include "ir/ir.h"

/* ---- kernels ---- */

enum { EMIT_CONSTS = 32, EMIT_INCLUDES = 32 };

struct target;
struct target_emitter;

struct emit {
	const struct target *target;
	const struct target_emitter *emitter;
	const Graph *g;
	const Graph *whole;             /* g is a stage of it; NULL: of none */
	NodeId gnode;                   /* the kernel's node */
	Diag *diag;
	Arena *arena;
	int threads;                    /* threads that workspace is for */
	bool without_units;             /* this branch runs only where the
	                                 * processor does not multiply bf16 */
	struct out *out;                /* the body of this kernel */
	int64_t items;                  /* work items of this kernel's largest
	                                 * loop over them; 0: no such loop */
	const char *include[EMIT_INCLUDES];     /* by emit_include(), sorted */
	int ninclude;
	int nconst;
	int64_t constant[EMIT_CONSTS];  /* numbers that differ between calls of
	                                 * the same kernel */
	const char **job;               /* rows of the table of convolutions
	                                 * that the run time prepares */
	size_t job_cap;
	int njob;
};

typedef bool EmitRule(struct emit *, const Node *);
/* Bytes of workspace, as struct target has them. */
typedef int64_t WorkRule(const Graph *, const Node *, int threads);

/* One rule per name in the EMIT column of ops.h. */
#define EMIT(rule) EmitRule emit_##rule;
#define OP(id, text, sig, attr, rules, emit) emit
#include "ir/ops.h"

/* By the rule of the node's op: the target's own, or the common one. */
bool emit_node(struct emit *, const Node *);

/* Operands are numbered: inputs 0..nin-1, then outputs, then workspace. */
const Val *emit_in(const struct emit *, const Node *, int i);   /* NULL: none */
const Val *emit_out(const struct emit *, const Node *, int i);  /* NULL: none */
const Val *emit_val(const struct emit *, const Node *, int i);
/* Operands as arguments of a kernel: "p[3]", or "NULL" if absent. */
const char *p_in(const struct emit *, const Node *, int i);
const char *p_out(const struct emit *, const Node *, int i);
/* Bytes of workspace of the node's kernel. */
int64_t emit_workspace_bytes(const struct emit *, const Node *);
/* Workspace: "p[5]", or "NULL" if the target needs none for the node. */
const char *p_workspace(const struct emit *, const Node *);
/* A line with operands as arguments in place of $iK (input K) and $oK (output
 * K), of $w (workspace, "NULL" where there is none) and $,w (the same as one
 * more argument, nothing where there is none). */
void emit_line(struct emit *, const Node *, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* The same, as a text. */
const char *emit_text(const struct emit *, const Node *, const char *text);
/* A line ".a = 1, .b = 2,": members of a struct, whose names are split on
 * blanks. */
void emit_members(struct emit *, const char *names, const int64_t *value);
#define EMIT_MEMBERS(e, names, ...) \
	emit_members(e, names, (const int64_t[]){ __VA_ARGS__ })
/* A list of int64_t as an argument, or NULL if empty. */
const char *emit_list(const struct emit *, const int64_t *, int n);
static inline int
emit_workspace(const Node *n)
{
	return n->nin + n->nout;
}
/* Declare "T *NAME = p[I]" (const for an input), typed as the value. */
void emit_pointer(struct emit *, const char *name, const Val *, int i,
                  bool constant);
const char *emit_ctype(DType);
/* Add a constant to this call; returns the expression that reads it. */
const char *emit_const(struct emit *, int64_t value);
/* A float literal that reads back as exactly (float)x. */
const char *emit_float(Arena *, double x);
const char *emit_double(Arena *, double x);
/* "f32[2,3], i64[4] -> f32[2,4]" as a comment line. */
void emit_shapes(struct emit *, const Node *);
/* Report "op of TYPE is not supported" for the ONNX node; false. */
bool emit_unsupported(struct emit *, const Node *, DType);
/* The same for an op in a loop's body. */
bool emit_unsupported_op(struct emit *, const Node *, Op, DType);
/* The kernels include the target's text of this name, a literal; its file is
 * PREFIX NAME SUFFIX (target_emitter.h), and includes what it relies on. */
void emit_include(struct emit *, const char *name);
/* Print the shapes of a kernel, and include what it calls.  False after a
 * diagnostic: the target's kernels do not take a floating-point operand's
 * type. */
bool emit_float_operands(struct emit *, const Node *, const char *include);
/* The same, if only operand v must be of such a type. */
bool emit_row_operand(struct emit *, const Node *, const char *include,
                      const Val *v);
/* [N, C, d...] as "N, C, n": n is the product of all d. */
const char *emit_planes(struct emit *, const Shape *);
int emit_axis(int64_t axis, int rank);

/* Open a loop over work items t = 0 .. count - 1, which may run in any order.
 * shared: threads share the items if there are enough.  The caller prints the
 * body for t, and "}". */
void emit_work_items(struct emit *, int64_t count, bool shared);
/* The index of a row in the table of convolutions; adds the row if it is new.
 */
int emit_job(struct emit *, const char *row);

/* ---- element-wise loop nests ---- */

struct nest_operand {
	DType dt;
	int arg;                        /* operand number: index in p */
	int64_t start;                  /* first element, from p[arg] on */
	int64_t base;                   /* elements between the aligned start of
	                                 * its buffer and p[arg] */
	bool many;                      /* in a loop over r, the operand is
	                                 * p[arg + r]; otherwise it starts */
	int64_t step;                   /* r * step elements further on */
	int64_t stride[MAX_RANK];       /* for the nest's dims, in elements */
	bool scalar;                    /* a constant: printed as a literal */
	double value;                   /* of a scalar */
};

/* For all points of shape: outputs = body(inputs).  An empty body copies input
 * 0 to output 0. */
struct loop_nest {
	Shape shape;
	int nin, nout;
	struct nest_operand *in, *out;
	const struct body *body;
	const Placement *split;             /* NULL: shape is not sharded */
};

bool emit_nest(struct emit *, const struct loop_nest *);
/* A scalar operand as an expression. */
const char *nest_literal(struct emit *, const struct nest_operand *);
/* Strides of v over `shape`, 0 where v is broadcast. */
void nest_strides(const Val *v, const Shape *shape, int64_t *stride);

/* ---- random words of a loop nest (random.c) ---- */

/* Whether the body draws random words. */
bool random_drawn(const struct loop_nest *);
/* Whether the nest's elements can number their words; else a diagnostic. */
bool random_check(const struct emit *, const struct loop_nest *);
/* The distance, in words, between neighbours in each dim. */
void random_strides(const struct loop_nest *, int64_t *stride);
/* Declare the threshold and the scale of dropout. */
void random_numbers(struct emit *, const struct loop_nest *);
/* How many consecutive words of a dim of that extent are drawn at once, at most
 * `most`. */
int64_t random_run(const struct emit *, const struct loop_nest *,
                   int64_t extent, int64_t most);
/* Which part of the batch of all replicas this is, as an expression: a replica,
 * or a half (attribute `half`) of one. */
const char *random_part(struct emit *, int64_t half);
/* Draw the words of `count` elements, from the element at offset `at` on.
 * buffered: into a buffer that ckr_words() fills, which may begin earlier; else
 * into an array of that length. */
void random_words(struct emit *, const struct loop_nest *, const char *at,
                  const char *count, bool buffered);
/* The result of micro i, which draws from its words. */
const char *random_draw(struct emit *, const struct scalar_op *, int i,
                        const char *x);

/* ---- expressions (ew.c) ---- */

/* The C expression of one element-wise op on named operands of type from;
 * words: the name of the random word, if op draws one.  exponent: constant
 * second operand of pow, or NULL. */
const char *ew_expression(struct emit *, const struct scalar_op *,
                          const char *const *arg, const DType *from,
                          const double *exponent);
/* The type in which values of dt are computed. */
const char *ew_type(DType);
/* expr converted between storage and computation. */
const char *ew_load(struct emit *, DType, const char *expr);
const char *ew_store(struct emit *, DType, const char *expr);

/* ---- loss.c ---- */

/* Declare "labels": operand number `labels` of a loss over so many classes,
 * with class weights from operand `weights` if there is one. */
bool emit_labels(struct emit *, const Node *, int labels, int weights,
                 int64_t ignore, int64_t classes);

/* ---- image_ops.c ---- */

struct window;

/* Print a member with three numbers; the members in, out, kernel, stride,
 * dilation and begin of a kernel's struct. */
void emit_triple(struct emit *, const char *name, const int64_t *);
void emit_window(struct emit *, const struct window *);

/* ---- resize.c ---- */

/* Declare the tables "first", "at", "weight"; false after a diagnostic. */
bool resize_tables(struct emit *, const Node *);

/* ---- shard.c: ops whose operands are shards ---- */

/* Number of ranks that hold the same shard. */
long long ranks_per_piece(const Val *);
/* Declare "part": the range that this rank has of the `whole` positions along
 * dim axis, of which v is a shard; or that this replica's experts have of the
 * rows of `all`; 0, 0: of all that v has. */
void emit_part(struct emit *, const Val *, int axis, int64_t whole,
               int64_t all);
/* An expression: which shard of a whole this replica has; rows: of experts. */
const char *emit_shard_number(struct emit *, bool rows);
/* A line ".all = .., .first = ..,": which of all experts have a product's
 * matrices; all 0: they are all. */
void emit_own_experts(struct emit *, int64_t experts, int64_t all);
/* Declare c1, the sizes of an expert_slots; false: of indices of another type
 * than integers, which is an error. */
bool emit_slots(struct emit *, const Node *);

#endif
