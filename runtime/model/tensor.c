/* Tensors in the tables of a library: the elements on one rank, and consistency
 * checks.  Inconsistent tables would let steps write outside their memory. */
#include "runtime/model/rt.h"
#include "runtime/ranks/comm.h"

#include <stdlib.h>
#include <string.h>

bool
rt_is_copy(const struct ckr_tensor *t)
{
	return t->kind == CKR_STATE && t->state && !strcmp(t->state, "copy");
}

bool
rt_is_public(const struct ckr_tensor *t)
{
	return t->name && (t->kind == CKR_PARAM || t->kind == CKR_BUFFER
	                   || t->kind == CKR_INPUT
	                   || (t->kind == CKR_STATE && !rt_is_copy(t))
	                   || t->flags & (CKR_OUTPUT | CKR_LOSS));
}

const struct ckr_tensor *
rt_find(const ckr_ctx *c, const char *name, uint32_t *index)
{
	const struct ckr_program *p = &c->lib->program[0];

	for (uint32_t i = 0; i < p->ntensor; i++)
		if (rt_is_public(&p->tensor[i]) && !strcmp(p->tensor[i].name,
		                                        name)) {
			if (index)
				*index = i;
			return &p->tensor[i];
		}
	return NULL;
}

bool
rt_is_weight(const struct ckr_tensor *t)
{
	return t->kind == CKR_PARAM || t->kind == CKR_BUFFER;
}

uint64_t
rt_nelem(const struct ckr_tensor *t)
{
	return comm_nelem(t);
}

uint64_t
rt_nbytes(const struct ckr_tensor *t)
{
	return rt_nelem(t) * dtype_row[t->dtype].nbytes;
}

void
rt_reach(const struct ckr_tensor *t, int64_t *from, int64_t *to)
{
	int64_t size = dtype_row[t->dtype].nbytes;
	int64_t lo = (int64_t)t->offset, hi = lo + size;

	/* workspace has bytes, but neither type nor shape */
	if (t->dtype == CKR_NONE)
		hi = lo + (int64_t)t->nbytes;
	for (int i = 0; i < t->rank; i++) {
		int64_t step = (t->dim[i] - 1) * t->stride[i] * size;

		if (step < 0)
			lo += step;
		else
			hi += step;
	}
	*from = lo;
	*to = hi;
	if (rt_nelem(t) == 0)
		*from = *to = (int64_t)t->offset;
}

int32_t
rt_made(const struct ckr_program *p, uint32_t t)
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
rt_is_dense(const struct ckr_tensor *t)
{
	int64_t want = 1;

	for (int i = t->rank - 1; i >= 0; i--) {
		if (t->dim[i] != 1 && t->stride[i] != want)
			return false;
		want *= t->dim[i];
	}
	return true;
}

/* Copy between a strided tensor and dense elements, row by row. */
static void
copy_strided(const struct ckr_tensor *t, char *tensor, char *dense, bool pack)
{
	size_t size = dtype_row[t->dtype].nbytes;
	uint64_t n = rt_nelem(t);
	int64_t i[CKR_MAX_DIMS] = { 0 };

	if (rt_is_dense(t)) {
		memcpy(pack ? dense : tensor, pack ? tensor : dense, n * size);
		return;
	}
	for (uint64_t e = 0; e < n; e++, dense += size) {
		int64_t at = 0;
		char *p;

		for (int d = 0; d < t->rank; d++)
			at += i[d] * t->stride[d];
		p = tensor + at * (int64_t)size;
		memcpy(pack ? dense : p, pack ? p : dense, size);
		for (int d = t->rank - 1; d >= 0 && ++i[d] == t->dim[d]; d--)
			i[d] = 0;
	}
}

void
rt_pack(const struct ckr_tensor *t, const void *tensor, void *dense)
{
	copy_strided(t, (char *)(uintptr_t)tensor, dense, true);
}

void
rt_unpack(const struct ckr_tensor *t, void *tensor, const void *dense)
{
	copy_strided(t, tensor, (char *)(uintptr_t)dense, false);
}

bool
rt_is_sharded(const struct ckr_tensor *t)
{
	return t->shard_of || (t->placement && t->placement->kind == CKR_SHARD);
}

struct sharding
rt_sharding(const ckr_ctx *c, const struct ckr_tensor *t)
{
	struct sharding p;

	sharding_of_tensor(&p, t, c->world.tp, c->world.dp);
	return p;
}

/* ---- what is alive ---- */

/* Bytes of the arena and the steps that they are taken for. */
struct reach_piece {
	uint64_t from, to;
	int32_t first, last;
};

/* A tensor in memory that is in use is a view of it or overwrites it. */
static struct reach_piece *
find_piece(struct reach_piece *v, size_t n, const struct reach_piece *in)
{
	for (size_t i = 0; i < n; i++)
		if (v[i].from <= in->from && in->to <= v[i].to
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
		struct reach_piece x = { .first = rt_made(p, i),
			.last = t->last };
		struct reach_piece *of;
		int64_t from, to;

		if (t->flags & CKR_RESIDENT)
			continue;
		if (t->flags & (CKR_OUTPUT | CKR_LOSS))
			x.last = INT32_MAX;
		if (x.last < x.first)
			x.last = x.first;
		rt_reach(t, &from, &to);
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
live_bytes(const struct reach_piece *v, size_t n, int32_t step)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < n; i++)
		if (v[i].first <= step && step <= v[i].last)
			sum += v[i].to - v[i].from;
	return sum;
}

uint64_t *
rt_live_bytes(const struct ckr_program *p)
{
	struct reach_piece *v = malloc((p->ntensor + 1) * sizeof(*v));
	uint64_t *live = malloc((p->ninstr + 1) * sizeof(*live));
	size_t n = v ? list_pieces(p, v) : 0;

	for (uint32_t i = 0; v && live && i < p->ninstr; i++)
		live[i] = live_bytes(v, n, (int32_t)i);
	if (!v) {
		free(live);
		live = NULL;
	}
	free(v);
	return live;
}

/* ---- tables: between ranks ---- */

static bool
sane_placement(const struct ckr_library *lib, const struct ckr_tensor *t)
{
	const struct ckr_placement *s = t->placement;
	struct sharding p;

	if (t->batch < 0 || t->batch > t->rank
	    || (t->kind == CKR_INPUT && t->batch && !rt_is_dense(t)))
		return false;
	if (s && s->kind == CKR_PARTIAL)
		return !t->shard_of && t->kind != CKR_INPUT;
	if (!s && !t->shard_of)
		return true;
	if (t->kind == CKR_CONSTANT || t->kind == CKR_INPUT
	    || (t->shard_of && (t->batch || lib->replicas > CKR_MAX_GROUP))
	    || !sharding_of_tensor(&p, t, lib->ranks > 1 ? lib->ranks : 1,
	                           lib->replicas))
		return false;
	return rt_nelem(t) == sharding_shard_elems(&p);
}

/* Pieces of a group are of a size only if its own is known. */
static bool
is_group(const struct ckr_library *lib, const struct ckr_comm *m)
{
	return m->axis == CKR_TP
	       || (m->axis == CKR_DP && lib->replicas
	           && (m->kind == CKR_ALL_REDUCE
	               || lib->replicas <= CKR_MAX_GROUP));
}

static bool
sane_step(const struct ckr_library *lib, const struct ckr_program *p,
          const struct ckr_instr *s)
{
	const int32_t *arg = p->arg + s->arg0;

	if (!s->comm)
		return true;
	return !s->run && s->comm->end >= s - p->instr
	       && s->comm->end < p->ninstr
	       && s->narg == 2 && arg[0] >= 0 && arg[1] >= 0
	       && rt_is_dense(&p->tensor[arg[0]])
	       && rt_is_dense(&p->tensor[arg[1]])
	       && is_group(lib, s->comm)
	       && comm_sane(s->comm, s->comm->axis == CKR_DP ? lib->replicas
	                    : lib->ranks, &p->tensor[arg[0]],
	                    &p->tensor[arg[1]]);
}

static bool
ranks_sane(const struct ckr_library *lib, const struct ckr_program *p)
{
	if (lib->ranks > CKR_MAX_GROUP)
		return false;
	for (uint32_t i = 0; i < p->ntensor; i++)
		if (!sane_placement(lib, &p->tensor[i]))
			return false;
	for (uint32_t i = 0; i < p->ninstr; i++)
		if (!sane_step(lib, p, &p->instr[i]))
			return false;
	return true;
}

/* ---- all ---- */

/* A copy in 16 bits is of a parameter in float32. */
static bool
sane_copy(const struct ckr_library *lib, const struct ckr_program *p,
          const struct ckr_tensor *t)
{
	const struct ckr_tensor *of = p->tensor + t->param;

	return t->param >= 0 && (uint32_t)t->param < lib->nshared
	       && of->kind == CKR_PARAM && of->dtype == CKR_F32
	       && (t->dtype == CKR_BF16 || t->dtype == CKR_F16)
	       && rt_nelem(of) == rt_nelem(t);
}

static bool
sane_tensor(const struct ckr_library *lib, const struct ckr_program *p,
            const struct ckr_tensor *t)
{
	uint64_t room = t->flags & CKR_RESIDENT ? p->resident_bytes
	                : p->arena_bytes;
	int64_t from, to;

	if (t->rank > CKR_MAX_DIMS || t->dtype >= CKR_DTYPE_COUNT)
		return false;
	if (t->offset > room)
		return false;
	rt_reach(t, &from, &to);
	if (from < 0 || to > (int64_t)room)
		return false;
	if (t->param >= (int64_t)p->ntensor)
		return false;
	if (rt_is_copy(t) && !sane_copy(lib, p, t))
		return false;
	if (t->kind == CKR_CONSTANT
	    && (t->nbytes != (uint64_t)(to - from)
	        || t->data > lib->constants_bytes
	        || t->nbytes > lib->constants_bytes - t->data))
		return false;
	return true;
}

bool
rt_is_sane(const struct ckr_library *lib, const struct ckr_program *p)
{
	if (lib->nshared > p->ntensor || p->loss >= (int64_t)p->ntensor
	    || p->update > p->ninstr)
		return false;
	for (uint32_t i = 0; i < p->ntensor; i++)
		if (!sane_tensor(lib, p, &p->tensor[i]))
			return false;
	for (uint32_t i = 0; i < p->ninstr; i++)
		for (uint32_t k = 0; k < p->instr[i].narg; k++)
			if (p->arg[p->instr[i].arg0 + k] >= (int64_t)p->ntensor)
				return false;
	return ranks_sane(lib, p);
}

struct ckr_param_group
rt_group(const ckr_ctx *c, const struct ckr_program *p, uint32_t i)
{
	const struct ckr_instr *s = &p->instr[i];
	int32_t of = -1;

	for (uint32_t k = 0; c->group && s->phase == CKR_UPDATE && k < s->narg
	     && of < 0; k++) {
		int32_t at = p->arg[s->arg0 + k];

		if (at >= 0)
			of = p->tensor[at].kind == CKR_PARAM ? at
			     : p->tensor[at].param;
	}
	return of < 0 ? (struct ckr_param_group){ 1, -1 } : c->group[of];
}
