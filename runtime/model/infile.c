/* Reading of tensor files by all processes.  Each process reads the ranges of a
 * file that its ranks hold.  If not all of them see the same file, as without a
 * shared file system, the first one reads it for all. */
#include "runtime/model/files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/file/names.h"
#include "runtime/model/peers.h"
#include "runtime/ranks/sharding.h"
#include "runtime/support/hash.h"

/* ---- into ranks ---- */

/* A whole tensor into what the ranks here hold of it, a range after the other
 * in the whole's order. */
struct tensor_range {
	ckr_ctx *c;
	const struct ckr_tensor *t;
	bool cut;
	struct sharding sharding;           /* if it is cut */
	uint64_t nelem;                 /* of the whole */
	uint64_t run;                   /* none before this one is left */
	char **local;                   /* [world.count]: without gaps */
};

static uint64_t
min_range(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static bool
holds_run(const struct tensor_range *s, uint32_t place,
          const struct shard_run *u)
{
	return sharding_rank_holds(&s->sharding, u, rt_rank(s->c, place),
	                           rt_replica(s->c, place));
}

static bool
is_held(const struct tensor_range *s, const struct shard_run *u)
{
	bool held = false;

	FOR_RANKS (r, s->c)
		held |= holds_run(s, r, u);
	return held;
}

static void *
tensor_on_rank(const struct tensor_range *s, uint32_t r)
{
	return rt_at(s->c, &s->c->plan, r, s->t);
}

/* Whether ranges are copied to where the tensor lies. */
static bool
is_direct(const struct tensor_range *s)
{
	return rt_is_dense(s->t) && s->c->device->addressable;
}

/* done: the ranges become the tensor's value. */
static ckr_status
range_end(struct tensor_range *s, bool done)
{
	ckr_status status = CKR_OK;

	FOR_RANKS (r, s->c) {
		if (!s->local || is_direct(s) || !s->local[r])
			continue;
		if (done && status == CKR_OK)
			status = rt_push(s->c, s->t, tensor_on_rank(s, r),
			                 s->local[r]);
		s->c->device->call->sync(s->c->device);
		free(s->local[r]);
	}
	free(s->local);
	s->local = NULL;
	return status;
}

/* Start with the elements of a tensor of program[0].  put: range_put will write
 * them. */
static ckr_status
range_begin(struct tensor_range *s, ckr_ctx *c, const struct ckr_tensor *t,
            bool put)
{
	uint64_t size = rt_nbytes(t);
	struct ckr_tensor w = rt_whole(c, t);

	*s = (struct tensor_range){ .c = c, .t = t, .nelem = rt_nelem(&w),
		.cut = rt_is_sharded(t) };
	if (s->cut)
		s->sharding = rt_sharding(c, t);
	s->local = calloc(c->world.count, sizeof(*s->local));
	if (!s->local)
		return rt_no_memory(c);
	for (uint32_t r = 0; put && r < c->world.count; r++) {
		s->local[r] = is_direct(s) ? tensor_on_rank(s, r)
		              : malloc(size + 1);
		if (!s->local[r]) {
			range_end(s, false);
			return rt_no_memory(c);
		}
		if (s->cut)
			/* the last shard is padded with zeros */
			memset(s->local[r], 0, size);
	}
	return CKR_OK;
}

/* The next range, from *at on, that begins with an element of a rank here; at
 * most `most` elements; false: there is none. */
static bool
range_next(struct tensor_range *s, uint64_t most, uint64_t *at, uint64_t *n)
{
	for (; s->cut && s->run < s->sharding.nrun; s->run++) {
		struct shard_run u = sharding_run(&s->sharding, s->run);

		if (u.whole + u.n <= *at || !is_held(s, &u))
			continue;
		*at = u.whole > *at ? u.whole : *at;
		break;
	}
	if (*at >= s->nelem || (s->cut && s->run == s->sharding.nrun))
		return false;
	*n = min_range(most, s->nelem - *at);
	return true;
}

/* A partial tensor is the whole on one rank and zeros on the others. */
static void
copy_range_to_ranks(struct tensor_range *s, uint64_t at, uint64_t n,
                    const char *x)
{
	uint64_t size = dtype_row[s->t->dtype].nbytes;

	FOR_RANKS (r, s->c) {
		char *to = s->local[r] + at * size;

		if (s->t->placement && rt_rank(s->c, r))
			memset(to, 0, n * size);
		else if (to != x)
			memcpy(to, x, n * size);
	}
}

/* Elements at .. at + n - 1 of the whole; ranges come in order. */
static void
range_put(struct tensor_range *s, uint64_t at, uint64_t n, const void *x)
{
	uint64_t size = dtype_row[s->t->dtype].nbytes;

	if (!s->cut)
		copy_range_to_ranks(s, at, n, x);
	for (uint64_t i = s->run; s->cut && i < s->sharding.nrun; i++) {
		struct shard_run u = sharding_run(&s->sharding, i);
		uint64_t lo = u.whole > at ? u.whole : at;
		uint64_t hi = min_range(u.whole + u.n, at + n);

		if (u.whole >= at + n)
			break;
		s->run = i;
		FOR_RANKS (r, s->c)
			if (lo < hi && holds_run(s, r, &u))
				memcpy(s->local[r]
				       + (u.local + lo - u.whole) * size,
				       (const char *)x + (lo - at) * size,
				       (hi - lo) * size);
	}
}

/* ---- reading ---- */

enum { PIECE = 1 << 17 };               /* elements */

/* What ranks here hold of it, to there or to nowhere. */
static ckr_status
read_local_shard(ckr_ctx *c, const struct infile *o, const struct array *a,
                 const struct ckr_tensor *t, struct tensor_range *st)
{
	char *block = malloc((size_t)PIECE * dtype_row[t->dtype].nbytes);
	uint64_t at = 0, n;
	ckr_status s = block ? CKR_OK : rt_no_memory(c);

	for (; s == CKR_OK && range_next(st, PIECE, &at, &n); at += n) {
		s = array_read(&o->f, a, at, n, t->dtype, block, &c->err);
		if (s == CKR_OK && st->local[0])
			range_put(st, at, n, block);
	}
	free(block);
	return s;
}

/* All of it, from the first process. */
static ckr_status
read_far(ckr_ctx *c, const struct infile *o, const struct array *a,
         const struct ckr_tensor *t, struct tensor_range *st)
{
	struct pg_task w = { .op = "reading", .of = t->name,
		.patient = true };
	ckr_status s = CKR_OK;
	char *block = c->team->out;

	for (uint64_t at = 0; at < st->nelem; at += PIECE) {
		uint64_t n = st->nelem - at < PIECE ? st->nelem - at : PIECE;

		if (!o->far && s == CKR_OK)
			s = array_read(&o->f, a, at, n, t->dtype, block,
			               &c->err);
		CKR_TRY(pg_broadcast(c->team, 0, block,
		                     (int)(n * dtype_row[t->dtype].nbytes), &w,
		                     &c->err));
		range_put(st, at, n, block);
	}
	return s;
}

ckr_status
infile_read_tensor(ckr_ctx *c, const struct infile *o, const struct array *a,
                   const struct ckr_tensor *t)
{
	struct tensor_range st;

	ckr_status s;

	c->copied &= t->kind != CKR_PARAM;
	CKR_TRY(range_begin(&st, c, t, true));
	if (o->read_for) {
		s = read_far(c, o, a, t, &st);
	} else if (st.cut) {
		s = read_local_shard(c, o, a, t, &st);
	} else {
		s = array_read(&o->f, a, 0, a->nelem, t->dtype, st.local[0],
		               &c->err);
		range_put(&st, 0, a->nelem, st.local[0]);
	}
	if (s != CKR_OK) {
		range_end(&st, false);
		return s;
	}
	return range_end(&st, true);
}

ckr_status
infile_check_tensor(ckr_ctx *c, const struct infile *o, const struct array *a,
                    const struct ckr_tensor *t)
{
	struct tensor_range st;
	ckr_status s;

	if (o->far)
		return CKR_OK;
	CKR_TRY(range_begin(&st, c, t, false));
	s = read_local_shard(c, o, a, t, &st);
	range_end(&st, false);
	return s;
}

/* ---- opening ---- */

/* With the NUL that ends it. */
static uint64_t
hash_text(uint64_t h, const char *text)
{
	return hash_bytes(h, text, strlen(text) + 1);
}

/* Hash of the file's header: names, types, shapes. */
static uint64_t
hash_head(const struct array_file *f)
{
	uint64_t h = HASH_START ^ f->size;

	for (size_t i = 0; i < f->n; i++)
		h = hash_text(h, f->v[i].name) ^ f->v[i].at;
	for (size_t i = 0; i < f->nmeta; i++)
		h = hash_text(hash_text(h, f->meta[i].key), f->meta[i].value);
	return h;
}

/* Whether this process sees the same file as the first. */
static ckr_status
compare_with_first(ckr_ctx *c, struct infile *o, bool opened)
{
	struct pg_task w = { .op = "opening", .of = o->f.path,
		.patient = true };
	uint64_t mine = opened ? hash_head(&o->f) : 0, first = mine;

	CKR_TRY(pg_broadcast(c->team, 0, &first, sizeof(first), &w, &c->err));
	return peers_any(c, !opened || mine != first, &o->read_for);
}

ckr_status
infile_open(ckr_ctx *c, const char *path, struct infile *o)
{
	ckr_status s = array_open(&o->f, path, &c->err);
	bool opened = s == CKR_OK;

	o->far = o->read_for = false;
	o->leave = NULL;
	CKR_TRY(peers_agree(c, peers_first(c) ? s : CKR_OK, "opening"));
	if (!c->team)
		return CKR_OK;
	CKR_TRY(compare_with_first(c, o, opened));
	o->far = o->read_for && !peers_first(c);
	if (o->far && opened)
		array_close(&o->f);
	return CKR_OK;
}

/* ---- adapters ---- */

bool
files_is_adapter(const ckr_ctx *c, uint32_t tensor)
{
	for (uint32_t i = 0; i < c->lib->nadapter; i++)
		if (c->lib->adapter[i].a == (int32_t)tensor
		    || c->lib->adapter[i].b == (int32_t)tensor)
			return true;
	return false;
}

static bool
is_of_adapter(const char *name)
{
	return strstr(name, ".lora_A.") || strstr(name, ".lora_B.");
}

static bool
is_of_peft(const char *name)
{
	return !strncmp(name, PEFT_PREFIX, strlen(PEFT_PREFIX));
}

static bool
all_names_match(const struct array_file *f, bool (*of)(const char *))
{
	bool all = f->n > 0;

	for (size_t i = 0; i < f->n; i++)
		all &= of(f->v[i].name);
	return all;
}

ckr_status
infile_map_adapters(ckr_ctx *c, struct infile *o)
{
	static const char *const map[] = { PEFT_PREFIX "=" };
	bool peft;

	o->alone = o->mapped = false;
	if (!c->lib->nadapter || o->far)
		return CKR_OK;
	peft = all_names_match(&o->f, is_of_peft);
	o->alone = peft || all_names_match(&o->f, is_of_adapter);
	if (!peft)
		return CKR_OK;
	CKR_TRY(files_need_peft_scales(c, &o->f));
	return names_map(&o->f, map, 1, &c->err);
}

static void
spare_here(ckr_ctx *c, struct infile *o)
{
	const struct ckr_tensor *t = c->lib->program[0].tensor;

	for (uint32_t i = 0; i < c->lib->nshared; i++)
		o->leave[i] |= rt_is_weight(&t[i])
			&& o->alone != files_is_adapter(c, i)
			&& !array_find(&o->f, t[i].name);
}

ckr_status
infile_agree(ckr_ctx *c, struct infile *o)
{
	struct pg_task w = { .op = "reading", .patient = true };
	uint32_t n = c->lib->nshared;

	for (uint32_t at = 0; c->team && at < n; at += PG_BUFFER) {
		uint32_t some = n - at < PG_BUFFER ? n - at : PG_BUFFER;

		CKR_TRY(pg_broadcast(c->team, 0, o->leave + at, (int)some, &w,
		                     &c->err));
	}
	return CKR_OK;
}

ckr_status
infile_mark_kept(ckr_ctx *c, struct infile *o)
{
	ckr_status s = CKR_OK;

	o->leave = calloc(c->lib->nshared + 1, 1);
	if (!o->leave)
		s = rt_no_memory(c);
	else if (c->lib->nadapter && !o->far)
		spare_here(c, o);
	CKR_TRY(peers_agree(c, s, "reading"));
	return infile_agree(c, o);
}

void
infile_close(struct infile *o)
{
	free(o->leave);
	if (!o->far)
		array_close(&o->f);
}

/* ---- tensors of a file that have no place in the model ---- */

enum { SHOWN = 3 };

/* PyTorch counts the batches of a BatchNorm; no graph reads that. */
static bool
is_counter(const char *name)
{
	const char *dot = strrchr(name, '.');

	return !strcmp(dot ? dot + 1 : name, "num_batches_tracked");
}

static bool
has_place(const ckr_ctx *c, const struct array_file *f, const char *name)
{
	const struct ckr_tensor *t = rt_find(c, name, NULL);

	return (t && rt_is_weight(t)) || names_is_state(f, name)
	       || is_counter(name);
}

void
rt_note_unread(ckr_ctx *c, const struct array_file *f)
{
	char list[SHOWN * (NAME_TEXT + 8)] = "", name[NAME_TEXT];
	size_t n = 0, end = strlen(c->unread.text);

	for (size_t i = 0; i < f->n; i++) {
		size_t at = strlen(list);

		if (has_place(c, f, f->v[i].name) || n++ >= SHOWN)
			continue;
		snprintf(list + at, sizeof(list) - at, "%s'%s'",
		         at ? ", " : "", err_name(name, sizeof(name),
		                                  f->v[i].name));
	}
	if (n)
		snprintf(c->unread.text + end, sizeof(c->unread.text) - end,
		         "%s%s: %zu of %zu tensors %s not used by the model: "
		         "%s%s; a constant keeps its compiled value (ckc "
		         "--param NAME makes it a parameter)",
		         end ? "; " : "", f->path, n, f->n,
		         n == 1 ? "is" : "are", list,
		         n > SHOWN ? ", ..." : "");
}

const char *
ckr_unused_tensors(const ckr_ctx *c)
{
	return c ? c->unread.text : "";
}
