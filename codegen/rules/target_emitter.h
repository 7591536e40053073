/* What code generation needs of a target; passes see only struct target.
 *
 * Rules (emit.h: one per name in the EMIT column of ir/ops.h) print the body of
 * a node's kernel.  The text is the same for all targets, except for the parts
 * that come from this interface: loops, and the partition of work.
 */
#ifndef CODEGEN_RULES_TARGET_EMITTER_H
#define CODEGEN_RULES_TARGET_EMITTER_H

#include "codegen/rules/emit.h"
#include "ir/target.h"

struct codegen_options;
struct command;

/* A header for kernels that need one of the features NEED_*. */
struct target_text {
	unsigned need;                  /* features; ~0u: all kernels; 0: end of
	                                 * the table */
	const char *name;               /* a name in codegen_texts */
};

struct target_emitter {
	const struct target *target;
	const char *kernels;            /* file name of the kernels */
	const struct target_text *texts;        /* in order of inclusion */
	const char *jobs;               /* name of emit_job's table: "blocked",
	                                 * of struct ckr_blocked */
	const char *job_text;           /* header of the table, or NULL */
	/* The rule of the node's op. */
	bool (*emit)(struct emit *, const Node *);
	/* Print the function `name` of type ckr_kernel with this body, for e's
	 * node. */
	void (*function)(struct out *, const struct emit *, const char *name,
	                 const char *body);
	/* The compiler with the arguments that compiling and linking share. */
	void (*command)(struct command *, const struct codegen_options *,
	                Arena *);

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

#endif
