/* What the folding rules share: room for results, and walks over elements. */
#include "passes/eval/eval_rules.h"

#include <assert.h>
#include <string.h>

void *
eval_room(struct eval *e, int i)
{
	const Val *v = eval_out(e, i);
	int64_t n = shape_nelem(&v->shape), nbytes;

	if (n < 0 || v->dt == DT_NONE
	    || !mul_ok(n, dtype_info[v->dt].nbytes, &nbytes)
	    || nbytes > e->limit)
		return NULL;
	return arena_alloc(e->mem, nbytes ? (size_t)nbytes : 1);
}

/* ---- walks ---- */

struct element_walk
walk_new(const Shape *s)
{
	struct element_walk w = { .rank = s->rank };

	for (int d = 0; d < s->rank; d++)
		w.dim[d] = s->dim[d];
	return w;
}

int
walk_add_array(struct element_walk *w, int64_t start, const int64_t *stride)
{
	assert(w->n < WALK_ARRAYS);
	w->at[w->n] = start;
	for (int d = 0; d < w->rank; d++)
		w->stride[w->n][d] = stride[d];
	return w->n++;
}

int
walk_add_broadcast(struct element_walk *w, const Shape *s)
{
	int64_t own[MAX_RANK] = { 0 }, stride[MAX_RANK] = { 0 };
	int pad = w->rank - s->rank;

	shape_strides(s, own);
	for (int d = 0; d < s->rank; d++)
		stride[pad + d] = s->dim[d] == 1 ? 0 : own[d];
	return walk_add_array(w, 0, stride);
}

struct element_rows
rows_of_walk(const struct element_walk *from)
{
	struct element_rows r = { .walk = *from };
	struct element_walk *w = &r.walk;
	int rank = 0;

	r.count = r.len = 1;
	for (int d = 0; d < from->rank; d++) {
		bool joins = rank > 0;

		if (from->dim[d] == 1)
			continue;
		for (int k = 0; joins && k < w->n; k++)
			joins = w->stride[k][rank - 1]
				== from->stride[k][d] * from->dim[d];
		w->dim[rank - joins] = from->dim[d]
			* (joins ? w->dim[rank - 1] : 1);
		for (int k = 0; k < w->n; k++)
			w->stride[k][rank - joins] = from->stride[k][d];
		rank += !joins;
	}
	w->rank = rank ? rank - 1 : 0;
	for (int d = 0; d < w->rank; d++)
		r.count *= w->dim[d];
	if (rank)
		r.len = w->dim[rank - 1];
	for (int k = 0; k < w->n; k++)
		r.step[k] = rank ? w->stride[k][rank - 1] : 0;
	return r;
}

#define COPY_ROW(type) \
	for (int64_t i = 0; i < n; i++) \
		__builtin_memcpy(to + i * (int64_t)sizeof(type), \
		                 from + i * step * (int64_t)sizeof(type), \
		                 sizeof(type)); \
	return

void
copy_strided(void *dst, const void *src, int64_t step, int64_t n, int size)
{
	const char *from = src;
	char *to = dst;

	if (step == 1) {
		memcpy(to, from, (size_t)(n * size));
		return;
	}
	switch (size) {
	case 1: COPY_ROW(uint8_t);
	case 2: COPY_ROW(uint16_t);
	case 4: COPY_ROW(uint32_t);
	case 8: COPY_ROW(uint64_t);
	}
}
