/* Libraries of one model in one memory.
 *
 * Compiled for other sizes of inputs, they have the same parameters, buffers
 * and states, which come first in their resident blocks.  The library that was
 * opened first owns them, and an arena that is large enough for each library:
 * one runs at a time, and nothing stays in an arena between steps.
 */
#include "runtime/base/dtype.h"
#include "runtime/world/inside.h"

#include <stdio.h>
#include <string.h>

/* ---- whether they can ---- */

static bool
is_kept(const struct ckr_tensor *t)
{
	return t->kind == CKR_PARAM || t->kind == CKR_BUFFER
	       || t->kind == CKR_STATE;
}

/* The next tensor that lasts from step to step; NULL: there is none. */
static const struct ckr_tensor *
next_kept(const struct ckr_library *lib, uint32_t *i)
{
	const struct ckr_tensor *t = lib->program[0].tensor;

	while (*i < lib->nshared && !is_kept(&t[*i]))
		++*i;
	return *i < lib->nshared ? &t[(*i)++] : NULL;
}

static bool
same_placement(const struct ckr_placement *a, const struct ckr_placement *b)
{
	if (!a || !b)
		return a == b;
	return a->kind == b->kind && a->axis == b->axis
	       && a->first_axis == b->first_axis
	       && a->nsegment == b->nsegment
	       && a->replication == b->replication
	       && !memcmp(a->segment, b->segment,
	                  a->nsegment * sizeof(*a->segment));
}

static bool
same_shard(const struct ckr_tensor *a, const struct ckr_tensor *b)
{
	if (!a->shard_of || !b->shard_of)
		return a->shard_of == b->shard_of;
	return !memcmp(a->shard_of, b->shard_of,
	               CKR_MAX_DIMS * sizeof(*a->shard_of));
}

static bool
same_tensor(const struct ckr_tensor *a, const struct ckr_tensor *b)
{
	return !strcmp(a->name, b->name) && a->kind == b->kind
	       && a->dtype == b->dtype && a->rank == b->rank
	       && !memcmp(a->dim, b->dim, sizeof(a->dim))
	       && !memcmp(a->stride, b->stride, sizeof(a->stride))
	       && !((a->flags ^ b->flags) & (CKR_FROZEN | CKR_HOST))
	       && a->offset == b->offset && a->nbytes == b->nbytes
	       && same_placement(a->placement, b->placement)
	       && same_shard(a, b);
}

enum { TENSOR_TEXT = NAME_TEXT + 160 };

static const char *
tensor_text(char *text, const struct ckr_tensor *t)
{
	char name[NAME_TEXT];
	int at;

	if (!t)
		return "none";
	at = snprintf(text, TENSOR_TEXT, "%s'%s', %s [",
	              t->flags & CKR_FROZEN ? "frozen " : "",
	              err_name(name, sizeof(name), t->name),
	              dtype_row[t->dtype].text);
	for (int k = 0; k < t->rank && at < TENSOR_TEXT - 40; k++)
		at += snprintf(text + at, (size_t)(TENSOR_TEXT - at), "%s%lld",
		               k ? ", " : "", (long long)t->dim[k]);
	snprintf(text + at, (size_t)(TENSOR_TEXT - at), "]%s",
	         t->flags & CKR_HOST ? " in host memory" : "");
	return text;
}

static ckr_status
refuse(struct world *w, const struct world *with, const char *what,
       const char *expected, const char *found)
{
	return err_set(w->err, CKR_EARG, "%s: cannot share the model of %s: "
	               "%s: expected %s, found %s; compile both from one file "
	               "with the same options but sizes of inputs and budget",
	               w->library->path, with->library->path, what, expected,
	               found);
}

static ckr_status
compare_tensors(struct world *w, const struct world *with)
{
	char expected[TENSOR_TEXT], found[TENSOR_TEXT];
	const struct ckr_tensor *a, *b;
	uint32_t i = 0, k = 0;

	do {
		a = next_kept(with->lib, &i);
		b = next_kept(w->lib, &k);
		if (a != b && (!a || !b || !same_tensor(a, b)))
			return refuse(w, with, "its tensors",
			              tensor_text(expected, a),
			              tensor_text(found, b));
	} while (a);
	return CKR_OK;
}

static ckr_status
compare_ranks(struct world *w, const struct world *with)
{
	char expected[80], found[80];
	const char *form = "%u of %u ranks, zero group %u, expert group %u";

	if (w->tp == with->tp && w->dp == with->dp
	    && w->lib->zero_group == with->lib->zero_group
	    && w->lib->expert_group == with->lib->expert_group)
		return CKR_OK;
	snprintf(expected, sizeof(expected), form, with->dp, with->tp,
	         with->lib->zero_group, with->lib->expert_group);
	snprintf(found, sizeof(found), form, w->dp, w->tp, w->lib->zero_group,
	         w->lib->expert_group);
	return refuse(w, with, "its replicas", expected, found);
}

static ckr_status
compare_texts(struct world *w, const struct world *with, const char *what,
              const char *expected, const char *found)
{
	return strcmp(expected, found) ? refuse(w, with, what, expected, found)
	       : CKR_OK;
}

/* Options are a list: the difference is shown. */
static ckr_status
compare_options(struct world *w, const struct world *with)
{
	const char *a = with->lib->training, *b = w->lib->training;

	return compare_texts(w, with, "its options", a && *a ? a : "none",
	                     b && *b ? b : "none");
}

/* The block is as large as its owner needs it. */
static ckr_status
compare_host(struct world *w, const struct world *with)
{
	struct host_need has = host_need(with->lib), need = host_need(w->lib);
	char expected[96], found[96];
	const char *form = "%llu bytes and %u transfers";

	if (need.bytes <= has.bytes && need.transfers <= has.transfers)
		return CKR_OK;
	snprintf(expected, sizeof(expected), form,
	         (unsigned long long)has.bytes, has.transfers);
	snprintf(found, sizeof(found), form, (unsigned long long)need.bytes,
	         need.transfers);
	return refuse(w, with, "host memory (ckc --offload), of which the "
	              "library that is opened first needs most", expected,
	              found);
}

static const char *
arch_of(const struct world *w)
{
	return w->lib->arch ? w->lib->arch : "cpu";
}

/* ---- the memory ---- */

/* Bytes of a resident block that come before what is a library's own. */
static uint64_t
kept_bytes(const struct ckr_library *lib)
{
	const struct ckr_tensor *t;
	uint64_t end = 0;
	uint32_t i = 0;
	int64_t from, to;

	while ((t = next_kept(lib, &i)) != NULL) {
		if (t->flags & CKR_HOST)
			continue;
		tensor_reach(t, &from, &to);
		end = (uint64_t)to > end ? (uint64_t)to : end;
	}
	return (end + 63) / 64 * 64;
}

ckr_status
world_share(struct world *w, struct world *with)
{
	struct world *owner = with->owner;

	if (w->stages > 1 || owner->stages > 1)
		return refuse(w, owner, "its stages", "none", "a pipeline");
	CKR_TRY(compare_texts(w, owner, "its target", arch_of(owner),
	                      arch_of(w)));
	CKR_TRY(compare_texts(w, owner, "its optimizer",
	                      library_optimizer(owner->lib),
	                      library_optimizer(w->lib)));
	CKR_TRY(compare_options(w, owner));
	CKR_TRY(compare_ranks(w, owner));
	CKR_TRY(compare_tensors(w, owner));
	CKR_TRY(compare_host(w, owner));
	w->owner = owner;
	w->memory->shared = kept_bytes(w->lib);
	w->memory->next = owner->memory->sharers;
	owner->memory->sharers = w;
	return CKR_OK;
}

static ckr_status
move_operands(struct world *w)
{
	return (!w->plan.p || world_set_operands(w, &w->plan))
	       && (!w->forward.p || world_set_operands(w, &w->forward))
	       ? CKR_OK : err_no_memory(w->err);
}

/* There is never room for both, and nothing to keep.  The size stays if there
 * is no memory. */
static ckr_status
grow_arena(struct world *w, struct block *arena, uint64_t bytes)
{
	uint64_t was = arena->size;
	struct err e;
	ckr_status s;

	device_unmap(w->device, arena);
	s = device_map(w->device, arena, bytes, true, false, w->threads,
	               w->err);
	if (s != CKR_OK
	    && device_map(w->device, arena, was, true, false, w->threads, &e))
		w->owner->ready = false;
	return s;
}

ckr_status
share_arena(struct world *w, uint64_t bytes)
{
	struct world *owner = w->owner;
	ckr_status s = CKR_OK, moved;

	FOR_RANKS (r, w)
		if (s == CKR_OK && owner->plan.arena[r].size < bytes)
			s = grow_arena(w, &owner->plan.arena[r], bytes);
	moved = move_operands(owner);
	for (struct world *o = owner->memory->sharers;
	     o && moved == CKR_OK; o = o->memory->next)
		moved = move_operands(o);
	if (moved != CKR_OK)
		owner->ready = false;
	return s == CKR_OK ? moved : s;
}

void
share_close(struct world *w)
{
	struct world **at = &w->owner->memory->sharers;

	while (*at && *at != w)
		at = &(*at)->memory->next;
	if (*at)
		*at = w->memory->next;
}
