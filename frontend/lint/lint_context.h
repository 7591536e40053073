/* Context of the lint checks, and groups of warnings of one kind. */
#ifndef FRONTEND_LINT_LINT_CONTEXT_H
#define FRONTEND_LINT_LINT_CONTEXT_H

#include "frontend/lint/lint.h"
#include "runtime/support/word_list.h"

#include <string.h>

struct lint_context {
	struct flat *f;
	const struct import_options *opt;
	Arena *arena;
	struct lint_report found;
};

/* Findings of one kind, with a line about each. */
struct lint_group {
	int n, nline;
	const char *first;
	const struct flat_node *node;   /* group_nodes: the first */
	const char **line;
	size_t cap;
};

/* Add the group as one warning, unless it is empty.  Lines of several findings
 * become details; a single finding has none.  Group NULL: one finding without
 * a name.  In the format {subject} stands for "'a'" or "'a' and 3 more",
 * {first} for "'a'", {n} for the number of findings, {options} for the first
 * few lines joined, and {one|many} for the part that fits the number. */
void add_warning(struct lint_context *, const struct lint_group *,
                 const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void group_add(struct lint_context *, struct lint_group *, const char *name,
               const char *line);
void group_add_name(struct lint_context *, struct lint_group *,
                    const char *name);
/* Of all needed nodes those that pass the test. */
typedef bool NodeTest(struct lint_context *, const struct flat_node *);
struct lint_group group_nodes(struct lint_context *, NodeTest *);
/* Of all initializers that are used those that pass the test; the lines are
 * names, or options that freeze them. */
typedef bool WeightTest(struct lint_context *, const struct flat_val *);
struct lint_group group_weights(struct lint_context *, WeightTest *,
                                bool freeze);

/* Whether n has that type, in ONNX's default domain; false for NULL. */
static inline bool
is_op_type(const struct flat_node *n, const char *type)
{
	return n && !*n->domain && strcmp(n->type, type) == 0;
}

/* The same for one of several types, "Add Sub". */
static inline bool
is_op_among(const struct flat_node *n, const char *types)
{
	return n && !*n->domain && word_is_listed(types, n->type);
}

/* Operand i; 0: none. */
static inline int
node_input(const struct flat_node *n, int i)
{
	return n && i < n->nin ? n->in[i] : 0;
}

/* lint_trained.c: tensors wrongly trained, and wrongly not trained. */
void lint_trained(struct lint_context *);

/* lint_state.c, lint_merged.c, lint_scatter.c, lint_mask.c, lint_teacher.c */
void lint_state(struct lint_context *);
void lint_merged(struct lint_context *);
void lint_scatters(struct lint_context *);
void lint_masks(struct lint_context *);
void lint_teacher(struct lint_context *);

/* ---- lint_notes.c ---- */

/* Whether the file has a trained parameter of that name. */
bool is_trained(const struct flat *, const char *name);
/* Whether the value is a weight with a name that the exporter invented. */
bool lost_its_name(const struct flat_val *);
/* Whether PyTorch wrote the file. */
bool is_pytorch(const struct flat *);

/* The node in ONNX's default domain that writes v; NULL: none. */
const struct flat_node *producer_of(const struct flat *, int v);
/* The node that computes v as a sum or a scaled sum; NULL: v is a term. */
const struct flat_node *sum_producer(const struct flat *, int v);
/* The type that the file declares for v; NULL: none. */
const Onnx__TypeProto *declared_type(const struct flat *, int v);

/* Whether a scatter stands for a mean over elements with equal indices;
 * *with_self: the mean includes the operand's element. */
bool lost_mean(const struct flat_node *, bool *with_self);
/* Whether a scatter stands for a call that overwrites. */
bool notes_overwriting(const struct flat_node *);
/* The label smoothing that an exporter dropped from a cross entropy, as its
 * note says; 0: no note. */
double lost_smoothing(const struct flat_node *);
/* The untrained row of an embedding's table (padding_idx), as the exporter's
 * note says; negative: no note. */
int64_t lost_padding(const struct flat_node *);
/* Whether an embedding scales the gradients of rows by the inverse of their
 * frequency (scale_grad_by_freq). */
bool lost_frequency(const struct flat_node *);
/* Whether the module has an LSTM with a projection (proj_size), which ONNX
 * cannot express: its weights are missing or merged into others. */
bool lost_projection(const struct flat *);
/* Whether the exporter's note says that the node is a detach(). */
bool lost_detach(const struct flat_node *);

#endif
