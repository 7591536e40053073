/* Declarations that the folding rules share; private to eval*.c. */
#ifndef PASSES_EVAL_EVAL_RULES_H
#define PASSES_EVAL_EVAL_RULES_H

#include "ir/element.h"
#include "passes/eval/eval.h"

struct eval {
	Pass *p;
	Graph *g;
	const Node *n;
	Arena *mem;
	int64_t limit;          /* bytes that a result may have */
	void *data;             /* room for output 0, which becomes its
	                         * contents; zeros */
};

typedef enum eval_status EvalRule(struct eval *);

static inline const Val *
eval_in(const struct eval *e, int i)
{
	return &e->g->val[e->n->in[i]];
}

static inline Val *
eval_out(const struct eval *e, int i)
{
	return &e->g->val[e->n->out[i]];
}

static inline bool
eval_has(const struct eval *e, int i)
{
	return i < e->n->nin && e->n->in[i] != 0;
}

/* Room for the contents of output i, whose shape and type are known; NULL if
 * it would be larger than the limit.  Never NULL for an empty result. */
void *eval_room(struct eval *, int i);
/* EVAL_FAIL after an error about the node. */
#define eval_fail(e, ...) \
	(node_error((e)->g, (e)->p->diag, (e)->n, __VA_ARGS__), EVAL_FAIL)

static inline bool
dt_is_float(DType dt)
{
	return dtype_info[dt].cls == 'f';
}

/* Walks over all elements of a shape in row-major order, with one running
 * element offset per array. */
enum { WALK_ARRAYS = 4 };

struct element_walk {
	int rank, n;
	int64_t dim[MAX_RANK], idx[MAX_RANK];
	int64_t stride[WALK_ARRAYS][MAX_RANK];
	int64_t at[WALK_ARRAYS];
};

struct element_walk walk_new(const Shape *);
/* Adds an array; returns its index. */
int walk_add_array(struct element_walk *, int64_t start, const int64_t *stride);
/* Adds a contiguous array of shape s that broadcasts to the walk's shape. */
int walk_add_broadcast(struct element_walk *, const Shape *s);

static inline void
walk_next(struct element_walk *w)
{
	for (int d = w->rank; d-- > 0; ) {
		for (int k = 0; k < w->n; k++)
			w->at[k] += w->stride[k][d];
		if (++w->idx[d] < w->dim[d])
			return;
		for (int k = 0; k < w->n; k++)
			w->at[k] -= w->stride[k][d] * w->dim[d];
		w->idx[d] = 0;
	}
}

/* Dims that all arrays of the walk run through alike become one.  Elements of
 * the last one are a row: the walk goes from row to row, and array k advances
 * by step[k] within one. */
struct element_rows {
	struct element_walk walk;
	int64_t count, len;
	int64_t step[WALK_ARRAYS];
};

struct element_rows rows_of_walk(const struct element_walk *);

/* Copies n elements of `size` bytes, of the source every step-th. */
void
copy_strided(void *dst, const void *src, int64_t step, int64_t n, int size);

/* Copies one element of `size` bytes. */
static inline void
copy_elem(void *dst, int64_t i, const void *src, int64_t j, int size)
{
	__builtin_memcpy((char *)dst + i * size, (const char *)src + j * size,
	                 (size_t)size);
}

/* eval_num.c: a result so far and one more number, by the reduction's op; NaN
 * wins, whole numbers wrap around. */
double eval_reduced(Op, double acc, double x);
int64_t eval_reduced_int(Op, DType, int64_t acc, int64_t x);

#define OP(id, text, sig, attr, rules, emit) rules
#define RULES(shape, eval, dynamic, cost, grad, shard) EvalRule eval_##eval;
#include "ir/ops.h"

#endif
