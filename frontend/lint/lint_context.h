/* Shared by the checks: their context, and groups of warnings of one kind. */
#ifndef FRONTEND_LINT_LINT_CONTEXT_H
#define FRONTEND_LINT_LINT_CONTEXT_H

#include "frontend/lint/lint.h"

#include <string.h>

struct lint_context {
	struct flat *f;
	const struct import_options *opt;
	Arena *arena;
	struct lint_report found;
};

/* Warnings of one kind, with a line about each. */
struct lint_group {
	int n, nline;
	const char *first;
	const char **line;
	size_t cap;
};

/* One finding says it all in its line; of several the lines follow; NULL:
 * never. */
void add_warning(struct lint_context *, const struct lint_group *,
                 const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void group_add(struct lint_context *, struct lint_group *, const char *name,
               const char *line);
void group_add_name(struct lint_context *, struct lint_group *,
                    const char *name);
/* "'a'" or "'a' and 3 more". */
const char *group_subject(struct lint_context *, const struct lint_group *);
/* The lines of the first few as one: options to type. */
const char *group_options(struct lint_context *, const struct lint_group *);

/* Whether the file has a parameter of that name that is trained. */
bool is_trained(const struct flat *, const char *name);
/* Whether it is a weight whose name the exporter made up. */
bool lost_its_name(const struct flat_val *);
/* Whether PyTorch wrote the file. */
bool is_pytorch(const struct flat *);

/* The node of ONNX that writes v; NULL: none. */
const struct flat_node *producer_of(const struct flat *, int v);
/* The node that adds v up, or scales a sum; NULL: v is a term of its own. */
const struct flat_node *sum_producer(const struct flat *, int v);
/* The type that the file declares v to have; NULL: none. */
const Onnx__TypeProto *declared_type(const struct flat *, int v);

/* Whether it is a node, of ONNX, of that type. */
static inline bool
is_op_type(const struct flat_node *n, const char *type)
{
	return n && !*n->domain && strcmp(n->type, type) == 0;
}

/* Operand i; 0: it has none. */
static inline int
node_input(const struct flat_node *n, int i)
{
	return n && i < n->nin ? n->in[i] : 0;
}

static inline const char *
plural(int n, const char *one, const char *more)
{
	return n == 1 ? one : more;
}

/* lint_trained.c: what is trained although it should not be, and the other
 * way round. */
void lint_trained(struct lint_context *);

/* lint_state.c, lint_merged.c, lint_scatter.c, lint_mask.c, lint_teacher.c */
void lint_state(struct lint_context *);
void lint_merged(struct lint_context *);
void lint_scatters(struct lint_context *);
void lint_masks(struct lint_context *);
void lint_teacher(struct lint_context *);

/* ---- lint_notes.c ---- */

/* Whether a scatter stands for the mean of what it writes to one place, with
 * what is there already or without. */
bool lost_mean(const struct flat_node *, bool *with_self);
/* Whether a scatter stands for a call that overwrites. */
bool notes_overwriting(const struct flat_node *);
/* The label smoothing that an exporter dropped from a cross entropy, by its
 * own word; 0: none that is known of. */
double lost_smoothing(const struct flat_node *);
/* The row of an embedding's table that is not to be trained (padding_idx), as
 * the exporter notes it; negative: none that is known of. */
int64_t lost_padding(const struct flat_node *);
/* Whether the gradients of an embedding's rows were to be divided by how often
 * they are read (scale_grad_by_freq). */
bool lost_frequency(const struct flat_node *);
/* Whether the module has an LSTM with a projection (proj_size), for which ONNX
 * has no place: its weights are left out, or in those of others. */
bool lost_projection(const struct flat *);
/* Whether the node is a detach(), by the exporter's word. */
bool lost_detach(const struct flat_node *);
/* The name of the first of the module's parameters of which the exporter
 * computed the constant v, by its own word; the file may or may not hold it.
 * NULL: none that is known of. */
const char *folded_from(struct lint_context *, const struct flat_val *v);

#endif
