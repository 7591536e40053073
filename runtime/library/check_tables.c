/* Consistency of a library's tables. */
#include "runtime/base/dtype.h"
#include "runtime/library/library.h"
#include "runtime/library/program.h"
#include "runtime/library/tensor.h"
#include "runtime/ranks/comm.h"
#include "runtime/support/block_layout.h"
#include "runtime/support/loss_formula.h"

#include <string.h>

/* ---- between ranks ---- */

static bool
sane_placement(const struct ckr_library *lib, const struct ckr_tensor *t)
{
	const struct ckr_placement *s = t->placement;
	uint32_t size = t->flags & CKR_OWN_EXPERTS ? lib->expert_group
		: lib->zero_group;
	struct sharding p;

	if (t->batch < 0 || t->batch > t->rank
	    || (t->kind == CKR_INPUT && t->batch && !tensor_is_dense(t)))
		return false;
	if (s && s->kind == CKR_PARTIAL)
		return !t->shard_of && t->kind != CKR_INPUT;
	if (!s && !t->shard_of)
		return true;
	if (t->kind == CKR_CONSTANT || t->kind == CKR_INPUT
	    || (t->shard_of && (t->batch || lib->replicas > CKR_MAX_GROUP))
	    || !sharding_of_tensor(&p, t, lib->ranks > 1 ? lib->ranks : 1,
	                           size ? size : lib->replicas))
		return false;
	return tensor_nelem(t) == sharding_shard_elems(&p);
}

/* Replicas of a zero group or of an expert group; 0: there are none. */
static uint32_t
group_size(const struct ckr_library *lib, int axis)
{
	return axis < CKR_EXPERTS ? lib->zero_group : lib->expert_group;
}

static uint32_t
group_ranks(const struct ckr_library *lib, const struct ckr_comm *m)
{
	uint32_t size = group_size(lib, m->axis);

	return m->axis == CKR_STAGES ? lib->nstage
	       : m->axis == CKR_TP ? lib->ranks
	       : m->axis == CKR_DP ? lib->replicas
	       : m->axis == CKR_CONTEXT ? lib->context
	       : m->axis == CKR_SHARDS || m->axis == CKR_EXPERTS ? size
	       : lib->replicas / size;
}

/* Pieces of a group are of a size only if its own is known. */
static bool
is_group(const struct ckr_library *lib, const struct ckr_comm *m)
{
	if (m->axis == CKR_TP)
		return true;
	if (m->axis == CKR_STAGES)
		return lib->nstage && m->kind == CKR_ALL_REDUCE;
	if (m->axis == CKR_DP)
		return lib->replicas
		       && (m->kind == CKR_ALL_REDUCE
		           || lib->replicas <= CKR_MAX_GROUP);
	return m->axis == CKR_CONTEXT ? lib->context
	       : m->axis < CKR_AXES && group_size(lib, m->axis);
}

/* What runs as often: a count pass, the update, or the rest of a micro-batch.
 */
static int32_t
part_of_step(const struct ckr_instr *s)
{
	return s->phase < CKR_UPDATE ? CKR_FORWARD : s->phase;
}

/* Backends put off what is joined until the last of the message begins: it
 * runs as often, and none ends before. */
static bool
joins_sanely(const struct ckr_program *p, const struct ckr_instr *s)
{
	const struct ckr_comm *m = s->comm, *next = s[1].comm;

	return (m->kind == CKR_ALL_GATHER || m->kind == CKR_REDUCE_SCATTER)
	       && m->end > s - p->instr && next && next->kind == m->kind
	       && next->axis == m->axis
	       && part_of_step(s) == part_of_step(&s[1]);
}

/* The first instruction that ends one of the message so far: none that joins
 * it begins behind that. */
static bool
messages_are_sane(const struct ckr_program *p)
{
	uint32_t end = UINT32_MAX;

	for (uint32_t i = 0; i < p->ninstr; i++) {
		const struct ckr_comm *m = p->instr[i].comm;

		if (!m || !m->joined) {
			if (end < i)
				return false;
			end = UINT32_MAX;
			continue;
		}
		if (i + 1 == p->ninstr || !joins_sanely(p, &p->instr[i]))
			return false;
		end = m->end < end ? m->end : end;
	}
	return true;
}

/* All bytes from its first element on. */
static bool
is_block(const struct ckr_tensor *t)
{
	int64_t from, to;

	tensor_reach(t, &from, &to);
	return from == (int64_t)t->offset
	       && (uint64_t)(to - from) == tensor_nbytes(t);
}

/* Between a tensor in the host block and an equal one that is not. */
static bool
sane_host_transfer(const struct ckr_program *p, const struct ckr_instr *s)
{
	const int32_t *arg = p->arg + s->arg0;
	const struct ckr_tensor *x, *y;
	bool fetch = s->comm->kind == CKR_FETCH;

	if (s->run || s->comm->joined
	    || s->comm->end < s - p->instr || s->comm->end >= p->ninstr
	    || s->narg != 2 || arg[0] < 0 || arg[1] < 0)
		return false;
	x = &p->tensor[arg[0]];
	y = &p->tensor[arg[1]];
	return is_block(x) && is_block(y) && x->dtype == y->dtype
	       && x->rank == y->rank
	       && !memcmp(x->dim, y->dim, sizeof(x->dim))
	       && !memcmp(x->stride, y->stride, sizeof(x->stride))
	       && !(x->flags & CKR_HOST) == !fetch
	       && !(y->flags & CKR_HOST) == fetch;
}

static bool
sane_step(const struct ckr_library *lib, const struct ckr_program *p,
          const struct ckr_instr *s)
{
	const int32_t *arg = p->arg + s->arg0;

	if (!s->comm)
		return true;
	if (s->comm->kind > CKR_RECEIVE)
		return false;
	if (comm_is_host(s->comm))
		return sane_host_transfer(p, s);
	if (comm_is_message(s->comm))
		return lib->nstage && !s->run && s->narg == 1 && arg[0] >= 0
		       && tensor_is_dense(&p->tensor[arg[0]]);
	return !s->run && s->comm->end >= s - p->instr
	       && s->comm->end < p->ninstr
	       && s->narg == 2 && arg[0] >= 0 && arg[1] >= 0
	       && tensor_is_dense(&p->tensor[arg[0]])
	       && tensor_is_dense(&p->tensor[arg[1]])
	       && is_group(lib, s->comm)
	       && comm_sane(s->comm, group_ranks(lib, s->comm),
	                    &p->tensor[arg[0]], &p->tensor[arg[1]]);
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
	return messages_are_sane(p);
}

/* ---- programs ---- */

/* A copy in 16 bits is of a parameter in float32. */
static bool
sane_copy(const struct ckr_library *lib, const struct ckr_program *p,
          const struct ckr_tensor *t)
{
	const struct ckr_tensor *of = p->tensor + t->param;

	return t->param >= 0 && (uint32_t)t->param < lib->nshared
	       && of->kind == CKR_PARAM && of->dtype == CKR_F32
	       && (t->dtype == CKR_BF16 || t->dtype == CKR_F16)
	       && tensor_nelem(of) == tensor_nelem(t);
}

/* A frozen parameter, or what ranks have gathered of one. */
static bool
sane_blocks(const struct ckr_tensor *t)
{
	return (t->kind == CKR_OTHER
	        || (t->kind == CKR_PARAM && t->flags & CKR_FROZEN))
	       && t->rank > 0
	       && t->dim[t->rank - 1] <= INT64_MAX / BLOCK_WEIGHTS / 4
	       && tensor_is_dense(t);
}

/* The end of the first slot that the tensor lies in. */
static uint64_t
end_of_slot(const struct ckr_stage *s, const struct ckr_tensor *t)
{
	uint64_t end = 0;

	for (int k = 0; s && k < CKR_POOLS; k++)
		if (t->offset >= s->pool[k].at)
			end = s->pool[k].at + s->pool[k].bytes;
	return s && s->second && end < s->second_bytes ? s->second_bytes : end;
}

/* Of the block that the tensor lies in. */
static uint64_t
bytes_of_block(const struct ckr_library *lib, const struct ckr_program *p,
               const struct ckr_tensor *t)
{
	const struct ckr_stage *stage = lib->nstage ? &lib->stage[t->stage]
		: NULL;

	if (t->flags & CKR_SLOT)
		return end_of_slot(stage, t);
	if (t->flags & CKR_RESIDENT)
		return stage ? stage->resident_bytes : p->resident_bytes;
	if (t->flags & CKR_HOST)
		return p->host_bytes;
	return stage ? stage->arena_bytes : p->arena_bytes;
}

/* An earlier tensor of another stage, of the same kind and size. */
static bool
sane_tie(const struct ckr_library *lib, const struct ckr_program *p,
         const struct ckr_tensor *t)
{
	uint32_t i = (uint32_t)(t - p->tensor);
	const struct ckr_tensor *of;

	if (!t->tied)
		return true;
	if (i >= lib->nshared || t->tied > i)
		return false;
	of = &p->tensor[t->tied - 1];
	return !of->tied && of->stage != t->stage && of->kind == t->kind
	       && of->dtype == t->dtype && of->rank == t->rank
	       && !memcmp(of->dim, t->dim, sizeof(t->dim));
}

static bool
sane_tensor(const struct ckr_library *lib, const struct ckr_program *p,
            const struct ckr_tensor *t)
{
	uint64_t room = bytes_of_block(lib, p, t);
	int64_t from, to;

	if (t->rank > CKR_MAX_DIMS || t->dtype >= CKR_DTYPE_COUNT
	    || t->stage >= (lib->nstage ? lib->nstage : 1)
	    || !sane_tie(lib, p, t))
		return false;
	if (t->offset > room || (tensor_is_blocks(t) && !sane_blocks(t)))
		return false;
	tensor_reach(t, &from, &to);
	if (from < 0 || to > (int64_t)room)
		return false;
	if (t->param >= (int64_t)p->ntensor)
		return false;
	if (tensor_is_copy(t) && !sane_copy(lib, p, t))
		return false;
	if (t->kind == CKR_CONSTANT
	    && (t->nbytes != (uint64_t)(to - from)
	        || t->data > lib->constants_bytes
	        || t->nbytes > lib->constants_bytes - t->data))
		return false;
	return true;
}

static bool
program_is_sane(const struct ckr_library *lib, const struct ckr_program *p)
{
	if (lib->nshared > p->ntensor || p->loss >= (int64_t)p->ntensor
	    || p->update > p->ninstr)
		return false;
	for (uint32_t i = 0; i < p->ntensor; i++)
		if (!sane_tensor(lib, p, &p->tensor[i])
		    || (i < lib->nshared && p->tensor[i].flags & CKR_HOST
		        && !tensor_is_dense(&p->tensor[i])))
			return false;
	for (uint32_t i = 0; i < p->ninstr; i++)
		for (uint32_t k = 0; k < p->instr[i].narg; k++) {
			int32_t x = p->arg[p->instr[i].arg0 + k];

			if (x < -1 || x >= (int64_t)p->ntensor
			    || (x >= 0 && p->tensor[x].stage
			        != p->instr[i].stage))
				return false;
		}
	return ranks_sane(lib, p);
}

/* ---- stages ---- */

/* Pools lie one behind the other in the arena. */
static bool
stage_is_sane(const struct ckr_stage *s)
{
	uint64_t at = 0;

	if (s->second && (s->slots != s->pool[0].slots
	                  || s->second_bytes > UINT64_MAX / UINT16_MAX))
		return false;
	for (int k = 0; k < CKR_POOLS; k++) {
		const struct ckr_slot_pool *p = &s->pool[k];

		if (!p->slots || p->slots > s->slots || p->at != at
		    || p->bytes > UINT64_MAX / UINT16_MAX
		    || s->slots > UINT16_MAX)
			return false;
		for (uint32_t i = 0; !k && s->second && i < p->slots; i++)
			if (s->second[i] > 1)
				return false;
		at += library_pool_slot(s, k, p->slots);
		if (at > s->arena_bytes)
			return false;
	}
	return true;
}

/* Turns are of instructions of one stage. */
static bool
turn_is_sane(const struct ckr_library *lib, const struct ckr_turn *t)
{
	const struct ckr_program *p = &lib->program[0];

	if (t->kind > CKR_TURN_UPDATE || t->first > t->end
	    || t->end > p->ninstr || t->stage >= lib->nstage
	    || t->slot >= lib->stage[t->stage].slots
	    || t->micro >= lib->grad_accum)
		return false;
	for (uint32_t i = t->first; i < t->end; i++)
		if (p->instr[i].stage != t->stage)
			return false;
	return true;
}

/* The same message, or its other side. */
static bool
same_message(const struct ckr_program *p, const struct ckr_instr *a,
             const struct ckr_instr *b)
{
	const struct ckr_tensor *x = &p->tensor[p->arg[a->arg0]];
	const struct ckr_tensor *y = &p->tensor[p->arg[b->arg0]];
	bool same = a->comm->kind == b->comm->kind;

	return b->stage == (same ? a->stage : a->comm->peer)
	       && b->comm->peer == (same ? a->comm->peer : a->stage)
	       && x->dtype == y->dtype && tensor_nelem(x) == tensor_nelem(y);
}

/* Each side of a message stands once in a stage's first plan, and once in its
 * second one, if there is one. */
static bool
message_is_sane(const struct ckr_library *lib, const struct ckr_program *p,
                const struct ckr_instr *s, uint32_t tags)
{
	uint32_t n[2] = { 0, 0 };

	if (s->comm->tag >= tags || s->comm->peer >= lib->nstage
	    || s->comm->peer == s->stage)
		return false;
	for (uint32_t i = 0; i < p->ninstr; i++) {
		const struct ckr_comm *m = p->instr[i].comm;

		if (!m || !comm_is_message(m) || m->tag != s->comm->tag)
			continue;
		if (!same_message(p, s, &p->instr[i]))
			return false;
		n[m->kind != s->comm->kind]++;
	}
	return n[0] <= 1u + (lib->stage[s->stage].second != NULL) && n[1]
	       && n[1] <= 1u + (lib->stage[s->comm->peer].second != NULL);
}

static uint32_t
count_messages(const struct ckr_program *p)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < p->ninstr; i++)
		n += p->instr[i].comm && comm_is_message(p->instr[i].comm);
	return n;
}

static bool
messages_arrive(const struct ckr_library *lib, const struct ckr_program *p,
                uint32_t tags)
{
	for (uint32_t i = 0; i < p->ninstr; i++)
		if (p->instr[i].comm && comm_is_message(p->instr[i].comm)
		    && !message_is_sane(lib, p, &p->instr[i], tags))
			return false;
	return true;
}

static bool
stages_are_sane(const struct ckr_library *lib)
{
	const struct ckr_program *p = &lib->program[0];
	uint32_t tags = (count_messages(&p[0]) + count_messages(&p[2])) / 2;

	if (!lib->nstage)
		return !lib->nturn;
	if (lib->nstage > CKR_MAX_GROUP || !lib->chunks
	    || lib->nstage % lib->chunks || lib->nstage == lib->chunks
	    || !lib->stage || !lib->turn || p[1].ninstr)
		return false;
	for (uint32_t i = 0; i < lib->nstage; i++)
		if (!stage_is_sane(&lib->stage[i]))
			return false;
	for (uint32_t i = 0; i < lib->nturn; i++)
		if (!turn_is_sane(lib, &lib->turn[i]))
			return false;
	return messages_arrive(lib, &p[0], tags)
	       && messages_arrive(lib, &p[2], tags);
}

/* ---- all ---- */

static bool
is_matrix_param(const struct ckr_library *lib, int32_t i)
{
	const struct ckr_tensor *t = lib->program[0].tensor;

	return i >= 0 && i < (int64_t)lib->nshared && t[i].kind == CKR_PARAM
	       && t[i].rank == 2;
}

/* The formula of the loss. */
static bool
formula_is_sane(const struct ckr_library *lib)
{
	const struct ckr_program *p = lib->program;
	uint32_t n = 0;

	p = p[2].ninstr ? &p[2] : p;
	if (lib->nterm > FORMULA_TERMS)
		return false;
	for (uint32_t i = 0; i < lib->nterm; i++) {
		const struct ckr_formula_term *t = &lib->term[i];
		uint32_t needs = t->op <= FORMULA_SAME ? 0
			: t->op < FORMULA_NEG          ? 2
						       : 1;
		bool has = t->op > FORMULA_NUMBER && t->op <= FORMULA_SAME;

		if (t->op >= FORMULA_OPS || n < needs || has != (t->tensor >= 0)
		    || t->tensor >= (int64_t)p->ntensor
		    || (has
		        && (tensor_nelem(&p->tensor[t->tensor]) != 1
		            || dtype_row[p->tensor[t->tensor].dtype].nbytes
		                    > sizeof(double))))
			return false;
		n += 1 - needs;
	}
	return n == (lib->nterm > 0);
}

/* Groups of so many, if there are any. */
static bool
divides_replicas(const struct ckr_library *lib, uint32_t group)
{
	return !group || (lib->replicas != CKR_ANY_REPLICAS && lib->replicas
	                  && lib->replicas % group == 0);
}

/* The one that evaluates has no memory but that of the first. */
bool
program_tables_are_sane(const struct ckr_library *lib)
{
	const struct ckr_program *p = lib->program;

	if (!divides_replicas(lib, lib->zero_group)
	    || !divides_replicas(lib, lib->expert_group)
	    || !divides_replicas(lib, lib->context)
	    || (lib->nstage && !lib->stage))
		return false;
	for (int i = 0; i < CKR_PROGRAMS; i++)
		if ((i == 0 || p[i].ninstr) && !program_is_sane(lib, &p[i]))
			return false;
	if (!stages_are_sane(lib))
		return false;
	for (uint32_t i = 0; i < lib->nadapter; i++)
		if (!is_matrix_param(lib, lib->adapter[i].weight)
		    || !is_matrix_param(lib, lib->adapter[i].a)
		    || !is_matrix_param(lib, lib->adapter[i].b))
			return false;
	return p[2].arena_bytes <= p[0].arena_bytes
	       && p[2].resident_bytes <= p[0].resident_bytes
	       && formula_is_sane(lib);
}
