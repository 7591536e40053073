#include "runtime/library/library.h"
#include "runtime/library/program.h"
#include "runtime/library/tensor.h"
#include "runtime/ranks/comm.h"

#include <stdlib.h>

int32_t
program_made(const struct ckr_program *p, uint32_t t)
{
	int32_t ready = p->tensor[t].ready;

	for (int32_t i = ready; i >= 0; i--) {
		const struct ckr_instr *s = &p->instr[i];

		if (s->comm && s->comm->end == (uint32_t)ready
		    && p->arg[s->arg0 + 1] == (int32_t)t)
			return i;
	}
	return ready;
}

bool
program_is_apart(const struct ckr_program *p, uint32_t i)
{
	return p->instr[i].comm && p->instr[i].comm->end > i;
}

uint32_t
program_commit(const struct ckr_program *p)
{
	uint32_t at = p->apply;

	if (p->loss >= 0 && p->tensor[p->loss].ready >= (int32_t)at)
		at = (uint32_t)p->tensor[p->loss].ready + 1;
	return at;
}

int32_t
program_last_output(const struct ckr_program *p)
{
	int32_t last = -1;

	for (uint32_t i = 0; i < p->ntensor; i++)
		if (p->tensor[i].flags & (CKR_OUTPUT | CKR_LOSS)
		    && program_made(p, i) > last)
			last = program_made(p, i);
	return last;
}

/* ---- what is alive ---- */

/* Bytes of the arena and the steps that they are taken for. */
struct reach_piece {
	uint64_t from, to;
	int32_t first, last;
	uint32_t stage;
};

/* A tensor in memory that is in use is a view of it or overwrites it. */
static struct reach_piece *
find_piece(struct reach_piece *v, size_t n, const struct reach_piece *in)
{
	for (size_t i = 0; i < n; i++)
		if (v[i].stage == in->stage
		    && v[i].from <= in->from && in->to <= v[i].to
		    && v[i].first < in->first && in->first <= v[i].last)
			return &v[i];
	return NULL;
}

/* As the plan counts: with padding, and whole as long as a part is read. */
static size_t
list_pieces(const struct ckr_program *p, struct reach_piece *v)
{
	const int64_t align = 64;       /* of what the plan places */
	size_t n = 0;

	for (uint32_t i = 0; i < p->ntensor; i++) {
		const struct ckr_tensor *t = &p->tensor[i];
		struct reach_piece x = { .first = program_made(p, i),
			.last = t->last, .stage = t->stage };
		struct reach_piece *of;
		int64_t from, to;

		if (t->flags & (CKR_RESIDENT | CKR_HOST))
			continue;
		if (t->flags & (CKR_OUTPUT | CKR_LOSS))
			x.last = INT32_MAX;
		if (x.last < x.first)
			x.last = x.first;
		tensor_reach(t, &from, &to);
		x.from = (uint64_t)(from / align * align);
		x.to = (uint64_t)((to + align - 1) / align * align);
		of = find_piece(v, n, &x);
		if (!of)
			v[n++] = x;
		else if (of->last < x.last)
			of->last = x.last;
	}
	return n;
}

static uint64_t
live_bytes(const struct reach_piece *v, size_t n, int32_t step, uint32_t stage)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < n; i++)
		if (v[i].stage == stage && v[i].first <= step
		    && step <= v[i].last)
			sum += v[i].to - v[i].from;
	return sum;
}

uint64_t *
program_live_bytes(const struct ckr_program *p)
{
	struct reach_piece *v = malloc((p->ntensor + 1) * sizeof(*v));
	uint64_t *live = malloc((p->ninstr + 1) * sizeof(*live));
	size_t n = v ? list_pieces(p, v) : 0;

	for (uint32_t i = 0; v && live && i < p->ninstr; i++)
		live[i] = live_bytes(v, n, (int32_t)i, p->instr[i].stage);
	if (!v) {
		free(live);
		live = NULL;
	}
	free(v);
	return live;
}

uint64_t
library_pool_slot(const struct ckr_stage *s, int pool, uint32_t k)
{
	uint64_t at = 0;

	if (pool || !s->second)
		return k * s->pool[pool].bytes;
	for (uint32_t i = 0; i < k; i++)
		at += s->second[i] ? s->second_bytes : s->pool[0].bytes;
	return at;
}

uint64_t
library_slot(const struct ckr_stage *s, const struct ckr_tensor *t,
             uint32_t set)
{
	for (int k = 0; k < CKR_POOLS; k++) {
		const struct ckr_slot_pool *p = &s->pool[k];
		uint64_t bytes = !k && s->second && s->second_bytes > p->bytes
			? s->second_bytes : p->bytes;

		if (t->offset >= p->at && t->offset - p->at < bytes)
			return library_pool_slot(s, k, set % p->slots);
	}
	return 0;
}
