/* What code generation needs of a target; passes see only struct target.
 *
 * Rules (emit.h: one per name in the EMIT column of ir/ops.h) print the body of
 * a node's kernel.  The text is the same for all targets, except for the parts
 * that come from this interface: loops, the partition of work, and the ops for
 * which a target has rules of its own.
 */
#ifndef CODEGEN_RULES_TARGET_EMITTER_H
#define CODEGEN_RULES_TARGET_EMITTER_H

#include "codegen/rules/emit.h"
#include "ir/target.h"

struct matmul_product;
struct reduced;

/* What a target does with an op in its own way. */
struct op_rule {
	EmitRule *emit;                 /* NULL: the rule of ir/ops.h */
	WorkRule *work;                 /* NULL: no workspace */
};

struct target_emitter {
	const struct op_rule *op;       /* of each op */
	const char *kernels;            /* file name of the kernels */
	const char *const *texts;       /* that all kernels include, in order;
	                                 * NULL: the end */
	const char *prefix, *suffix;    /* of the file of a text of
	                                 * emit_include() */
	const char *jobs;               /* name of emit_job's table: "blocked",
	                                 * of struct ckr_blocked */
	const char *job_text;           /* header of the table, or NULL */
	const char *declarations;       /* of what `members` names, or NULL */
	/* Print the target's own members of struct ckr_library; NULL: none. */
	void (*members)(struct out *, const char *arch);
	/* Print a node's kernel; emit_node() for most of them. */
	EmitRule *emit;
	/* Print the function `name` of type ckr_kernel with this body, for e's
	 * node. */
	void (*function)(struct out *, const struct emit *, const char *name,
	                 const char *body);

	/* ---- what rules ask ---- */

	/* A loop of a kernel may index operands: p[i]. */
	bool loops_operands;

	/* Operand number `at`, of value v, as an argument of a kernel. */
	const char *(*operand)(const struct emit *, const Val *v, int at,
	                       bool constant);
	/* Whether kernels marked F_STAGED take elements of this type. */
	bool (*takes)(DType);

	/* Print a loop nest (emit_nest). */
	bool (*nest)(struct emit *, const struct loop_nest *);
	/* Open the loop over work items t of emit_work_items. */
	void (*work_items)(struct emit *, int64_t count, bool shared);

	/* The others may be NULL. */

	/* Print a call of a library that computes the product, or the
	 * reduction.  False: it does not support the types; without a library,
	 * work items compute the result. */
	bool (*product)(struct emit *, const Node *,
	                const struct matmul_product *);
	bool (*reduce)(struct emit *, const Node *, const struct reduced *);
	/* The suffix of the name of the attention kernel to use. */
	const char *(*attention_kernel)(const struct emit *, const Val *q,
	                                const Val *v);
	/* The target's own members of struct ckr_attention and ckr_norm. */
	void (*attention)(struct emit *, const Node *, const Val *q,
	                  const Val *k);
	void (*norm)(struct emit *, const Node *, bool grad);
	/* The target's own arguments of ckr_norm_grad for so many rows. */
	void (*norm_grad)(struct emit *, const Node *, int64_t rows);
};

static inline int64_t
rule_workspace(const struct op_rule *op, const Graph *g, const Node *n,
               int threads)
{
	return op[n->op].work ? op[n->op].work(g, n, threads) : 0;
}

#endif
