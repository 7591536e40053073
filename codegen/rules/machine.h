/* The interface of a machine for code generation; passes see only its target.
 *
 * Rules (rules.h: one per name in the EMIT column of ir/ops.h) print the body
 * of a node's kernel.  The text is the same on all machines, except for the
 * parts that come from this interface: loops, and the partition of work.
 */
#ifndef CODEGEN_RULES_MACHINE_H
#define CODEGEN_RULES_MACHINE_H

#include "codegen/rules/emit.h"
#include "ir/target.h"

struct codegen_options;
struct command;

/* A header that kernels include which need one of these (NEED_*). */
struct machine_text {
	unsigned need;                  /* ~0u: all do; 0: the last row */
	const char *name;               /* in codegen_texts */
};

struct machine {
	const struct target *target;
	const char *kernels;            /* the name of their file */
	const struct machine_text *texts;       /* in their order */
	const char *jobs;               /* "blocked": emit_job's table, of
	                                 * struct ckr_blocked */
	const char *job_text;           /* a header it needs, or NULL */
	/* The rule of the node's op. */
	bool (*emit)(struct emit *, const Node *);
	/* The function `name` of type ckr_kernel with this body, that of e's
	 * node. */
	void (*function)(struct out *, const struct emit *, const char *name,
	                 const char *body);
	/* The compiler, and its arguments for sources and objects alike. */
	void (*command)(struct command *, const struct codegen_options *,
	                Arena *);

	/* ---- what rules ask ---- */

	/* Kernels may choose among operands in a loop. */
	bool loops_operands;

	/* Operand `at` as an argument of a kernel; v: its value. */
	const char *(*operand)(const struct emit *, const Val *v, int at,
	                       bool constant);
	/* Whether kernels marked F_STAGED take elements of this type. */
	bool (*takes)(DType);

	/* All points of a loop nest (emit_nest). */
	bool (*nest)(struct emit *, const struct loop_nest *);
	/* Open the loop over work items t of emit_work_items. */
	void (*work_items)(struct emit *, int64_t count, bool shared);
	/* Which of attention's kernels, as a suffix of their name. */
	const char *(*attention_kernel)(const struct emit *, const Val *q,
	                                const Val *v);
	/* More members of struct ckr_attention, of struct ckr_norm. */
	void (*attention)(struct emit *, const Node *, const Val *q,
	                  const Val *k);
	void (*norm)(struct emit *, const Node *, bool grad);
	/* More arguments of ckr_norm_grad for so many rows. */
	void (*norm_grad)(struct emit *, const Node *, int64_t rows);
};

#endif
