/* Processes write into one new file side by side.  The first begins it and
 * gives it its place; the others open it by its number among the first's open
 * files, as it has no name until it is complete; on other machines by a name
 * beside its place.  Where they cannot, what they hold goes through the first.
 *
 * A tensor that is cut is written by its owners, of replicas in turn; one that
 * all have, by one of them in turn; what must be put together first, by the
 * first process, range by range.
 */

#include "runtime/base/dtype.h"
#include "runtime/files/inside.h"
#include "runtime/support/blocks.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

/* Bytes below which runs are put together before they are written. */
enum { SHORT = 256, PIECE = 1 << 14, HOST_PIECE = 1 << 20 };

/* ---- opening ---- */

/* How other processes find the file of the first one. */
struct file_mark {
	unsigned char mark[16];         /* at the file's end, for now */
	long pid;
	int fd;
	bool named;
	char name[4096];
};

/* Whether the file needs a temporary name: as CKR_FILES says, or if processes
 * run on several machines. */
static bool
should_name(const struct files *c)
{
	const char *s = getenv("CKR_FILES");

	return c->world->team && (s ? !strcmp(s, "name")
	                   : c->world->team->nlocal < c->world->team->size);
}

static bool
should_share(void)
{
	const char *s = getenv("CKR_FILES");

	return !s || strcmp(s, "first") != 0;
}

static ckr_status
mark_file(struct tensor_writer *o, struct file_mark *p, struct err *e)
{
	const struct new_file *f = &o->w.file;

	*p = (struct file_mark){ .pid = getpid(), .fd = f->fd };
	if (f->tmp) {
		p->named = true;
		snprintf(p->name, sizeof(p->name), "%s", f->tmp);
	}
	if (getrandom(p->mark, sizeof(p->mark), 0) != sizeof(p->mark))
		return err_set(e, CKR_EIO, "cannot get random numbers: %m");
	return file_write(f->fd, f->path, p->mark, sizeof(p->mark),
	                  o->w.at[o->w.n], e);
}

/* -1: it is not to be seen from here. */
static int
open_marked_file(const struct tensor_writer *o, const struct file_mark *p)
{
	unsigned char seen[sizeof(p->mark)];
	struct err unused;
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%ld/fd/%d", p->pid, p->fd);
	fd = open(p->named ? p->name : path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return -1;
	if (file_read(fd, path, seen, sizeof(seen), o->w.at[o->w.n], &unused)
	    == CKR_OK && !memcmp(seen, p->mark, sizeof(seen)))
		return fd;
	close(fd);
	return -1;
}

/* All open what the first has begun, or the first writes for them. */
static ckr_status
share_file(struct files *c, struct tensor_writer *o, const char *path)
{
	struct pg_task task = { .op = "opening", .of = path, .patient = true };
	struct file_mark p = { .fd = -1 };
	ckr_status s = CKR_OK;
	bool first = world_is_first(c->world);

	if (first && should_share())
		s = mark_file(o, &p, c->err);
	CKR_TRY(world_agree(c->world, s, task.op));
	CKR_TRY(pg_broadcast(c->world->team, 0, &p, sizeof(p), &task, c->err));
	if (!first && p.fd >= 0)
		o->w.file.fd = open_marked_file(o, &p);
	CKR_TRY(world_any(c->world, o->w.file.fd < 0 || p.fd < 0,
	                  stepping_progress(c->steps)->step, &o->far));
	if (first && p.fd >= 0
	    && ftruncate(o->w.file.fd, (off_t)o->w.at[o->w.n]))
		s = err_set(c->err, CKR_EIO, "%s: cannot write: %m", path);
	return world_agree(c->world, s, task.op);
}

ckr_status
writer_begin(struct files *c, struct tensor_writer *o, const char *path,
             const struct st_entry *entry, size_t n, const struct meta *meta,
             size_t nmeta)
{
	struct new_file f;
	ckr_status s;

	*o = (struct tensor_writer){ .w = { .file = { .fd = -1 } } };
	if (!world_is_first(c->world)) {
		s = st_join(&o->w, path, entry, n, meta, nmeta, c->err);
	} else {
		s = should_name(c) ? new_file_open_named(&f, path, c->err)
		    : new_file_open(&f, path, c->err);
		if (s == CKR_OK)
			s = st_begin_in(&o->w, f, entry, n, meta, nmeta,
			                c->err);
	}
	s = world_agree(c->world, s, "opening a file");
	if (s == CKR_OK && c->world->team)
		s = share_file(c, o, path);
	if (s != CKR_OK)
		writer_abort(o);
	return s;
}

/* ---- writing ---- */

/* A tensor on its way to an entry. */
struct entry_value {
	struct files *c;
	struct tensor_writer *o;
	size_t entry;
	const struct ckr_tensor *t;
	const float *scale;             /* see writer_put_tensor */
	bool on_device;                 /* elements are in device memory, which
	                                 * the host cannot read */
};

/* n bytes, from byte `from` of the entry on. */
static ckr_status
put_part(const struct entry_value *e, uint64_t from, const void *x, uint64_t n)
{
	struct tensor_writer *o = e->o;
	uint64_t at;

	if (!o->staging)
		return st_write(&o->w, e->entry, from, x, n, e->c->err);
	CKR_TRY(st_offset(&o->w, e->entry, from, n, &at, e->c->err));
	return staging_put(o->staging, at, x, n, e->on_device, e->c->err);
}

/* n elements as float32; blocks: the weights of n blocks. */
static void
widen_piece(const struct ckr_tensor *t, float *y, const char *x, uint64_t n)
{
	size_t bad;

	if (tensor_is_blocks(t))
		blocks_unpack(t->dtype, y, x, n);
	else    /* floats fit */
		dtype_convert(y, CKR_F32, x, t->dtype, n, &bad);
}

/* n elements, from element `at` of the entry on. */
static ckr_status
write_range(const struct entry_value *e, uint64_t at, uint64_t n, const char *x)
{
	uint64_t size = tensor_elem_bytes(e->t);
	uint64_t each = tensor_is_blocks(e->t) ? BLOCK_WEIGHTS : 1;
	uint64_t piece = PIECE / each;
	float y[PIECE];

	if (!e->scale)
		return put_part(e, at * size, x, n * size);
	for (uint64_t i = 0; i < n; i += piece) {
		uint64_t k = n - i < piece ? n - i : piece;

		widen_piece(e->t, y, x + i * size, k);
		for (uint64_t j = 0; j < k * each; j++)
			y[j] *= *e->scale;
		CKR_TRY(put_part(e, (at + i) * each * sizeof(*y), y,
		                 k * each * sizeof(*y)));
	}
	return CKR_OK;
}

/* What local rank r is to write, if anything, of its elements x. */
static ckr_status
write_own_runs(const struct entry_value *e, uint32_t r, const char *x)
{
	const struct world *w = e->c->world;
	uint32_t rank = world_rank(w, r), replica = world_replica(w, r);
	struct shard_stride held;
	struct sharding p;

	if (!tensor_is_sharded(e->t))
		return w->first + r != e->entry % (w->tp * w->dp) ? CKR_OK
		       : write_range(e, 0, tensor_nelem(e->t), x);
	p = world_sharding(w, e->t);
	if (replica / p.nreplica != e->entry % (w->dp / p.nreplica)
	    || rank % p.replication)
		return CKR_OK;
	held = sharding_runs_of_rank(&p, rank, replica);
	for (uint64_t i = held.first; i < p.nrun; i += held.by) {
		struct shard_run u = sharding_run(&p, i);

		CKR_TRY(write_range(e, u.whole, u.n, x + u.local
		                    * tensor_elem_bytes(e->t)));
	}
	return CKR_OK;
}

/* What only counts needs no elements. */
static bool
is_counting(const struct entry_value *e)
{
	return e->o->staging && e->o->staging->counting;
}

/* The same of a tensor in a host block that is not sharded: piece by piece, as
 * there may be no memory for it. */
static ckr_status
write_from_host(const struct entry_value *e, const char *x)
{
	struct world *w = e->c->world;
	uint64_t n = tensor_nelem(e->t), most = tensor_piece(e->t, HOST_PIECE);
	char *here = malloc(HOST_PIECE);
	ckr_status s = here ? CKR_OK : err_no_memory(w->err);

	if (is_counting(e)) {
		free(here);
		return write_range(e, 0, n, NULL);
	}
	for (uint64_t at = 0; at < n && s == CKR_OK; at += most) {
		struct ckr_tensor part = tensor_part(e->t, at, n - at < most
		                                     ? n - at : most);

		s = world_pull(w, &part, x + at * tensor_elem_bytes(e->t),
		               here);
		if (s == CKR_OK)
			s = write_range(e, at, tensor_nelem(&part), here);
	}
	free(here);
	return s;
}

static ckr_status
write_shards(struct entry_value *e, const struct loaded_program *b)
{
	struct world *w = e->c->world;
	bool in_pieces = e->t->flags & CKR_HOST && !tensor_is_sharded(e->t);
	bool staged = e->o->staging && !e->scale && tensor_is_dense(e->t)
		&& !(e->t->flags & CKR_HOST);
	bool direct = in_pieces || staged || world_is_direct(w, e->t);
	char *packed = direct ? NULL : malloc(tensor_nbytes(e->t) + 1);
	ckr_status s = direct || packed ? CKR_OK : err_no_memory(w->err);

	e->on_device = staged && !w->device->addressable;
	for (uint32_t r = 0; r < w->count && s == CKR_OK; r++) {
		const char *x = world_at(w, b, r, e->t);

		if (in_pieces) {
			if (w->first + r == e->entry % (w->tp * w->dp))
				s = write_from_host(e, x);
			continue;
		}
		if (packed && !is_counting(e))
			s = world_pull(w, e->t, x, packed);
		if (s == CKR_OK)
			s = write_own_runs(e, r, packed ? packed : x);
	}
	free(packed);
	return s;
}

/* Range by range, so that no process needs memory for the whole. */
static ckr_status
write_gathered_range(void *user, uint64_t at, uint64_t n, const void *x)
{
	struct entry_value *e = user;

	return world_is_first(e->c->world) ? write_range(e, at, n, x) : CKR_OK;
}

/* The whole by the first process. */
static ckr_status
write_gathered(struct entry_value *e, const struct loaded_program *b)
{
	struct world *w = e->c->world;
	struct ckr_tensor whole = world_whole(w, e->t);

	if (!is_counting(e))
		return world_gather_ranges(w, b, e->t, write_gathered_range, e);
	return world_is_first(w) ? write_range(e, 0, tensor_nelem(&whole), NULL)
	       : CKR_OK;
}

static bool
comes_apart(const struct world *w, const struct ckr_tensor *t)
{
	struct sharding p;

	if (t->batch && world_batches(w) > 1)
		return false;
	if (!tensor_is_sharded(t))
		return !t->placement;
	p = world_sharding(w, t);
	return sharding_longest_run(&p) * tensor_elem_bytes(t) >= SHORT;
}

ckr_status
writer_put_tensor(struct files *c, struct tensor_writer *o, size_t entry,
                  const struct loaded_program *b, const struct ckr_tensor *t,
                  const float *scale)
{
	struct entry_value e = { c, o, entry, t, scale, false };

	return comes_apart(c->world, t) && !o->far ? write_shards(&e, b)
	       : write_gathered(&e, b);
}

/* ---- closing ---- */

ckr_status
writer_commit(struct files *c, struct tensor_writer *o, ckr_status s)
{
	struct new_file *f = &o->w.file;

	if (s == CKR_OK && c->world->team && f->fd >= 0 && fsync(f->fd))
		s = err_set(c->err, CKR_EIO, "%s: cannot write: %m", f->path);
	s = world_agree(c->world, s, "writing a file");
	if (s == CKR_OK && world_is_first(c->world))
		s = st_commit(&o->w, c->err);
	s = world_agree(c->world, s, "writing a file");
	writer_abort(o);
	return s;
}

void
writer_abort(struct tensor_writer *o)
{
	st_abort(&o->w);
}

/* ---- whole files ---- */

struct st_entry
writer_entry(const struct files *c, const struct ckr_tensor *t,
             const char *name, bool stored)
{
	struct ckr_tensor whole = world_whole(c->world, t);
	struct st_entry e = { .name = name, .rank = t->rank };

	if (!stored)
		whole = tensor_weights(&whole);
	e.dtype = whole.dtype;
	memcpy(e.dim, whole.dim, sizeof(e.dim));
	if (tensor_is_blocks(&whole)) {
		e.dtype = CKR_U8;
		e.dim[e.rank - 1] *= (int64_t)tensor_elem_bytes(t);
	}
	return e;
}

static const char *
add_prefix(const char *prefix, const char *name)
{
	size_t n = strlen(prefix) + strlen(name) + 1;
	char *s = malloc(n);

	if (s)
		snprintf(s, n, "%s%s", prefix, name);
	return s;
}

ckr_status
writer_begin_contents(struct files *c, struct tensor_writer *o,
                      const struct contents *k)
{
	const struct ckr_tensor *tensor = c->lib->program[0].tensor;
	struct st_entry *entry = calloc(k->n + 1, sizeof(*entry));
	ckr_status s = entry ? CKR_OK : err_no_memory(c->err);

	for (size_t i = 0; i < k->n && s == CKR_OK; i++) {
		const struct ckr_tensor *t = &tensor[k->list[i]];

		entry[i] = writer_entry(c, t, add_prefix(k->prefix, t->name),
		                        k->stored);
		if (!entry[i].name)
			s = err_no_memory(c->err);
	}
	if (s == CKR_OK)
		s = writer_begin(c, o, k->path, entry, k->n, k->meta, k->nmeta);
	for (size_t i = 0; entry && i < k->n; i++)
		free((char *)entry[i].name);
	free(entry);
	return s;
}

ckr_status
writer_put_contents(struct files *c, struct tensor_writer *o,
                    const struct contents *k)
{
	static const float one = 1;
	ckr_status s = CKR_OK;

	for (size_t i = 0; i < k->n && s != CKR_ERANK; i++) {
		const struct ckr_tensor *t =
			&c->lib->program[0].tensor[k->list[i]];
		ckr_status put = writer_put_tensor(c, o, i, &c->world->plan, t,
			k->stored || !tensor_is_blocks(t) ? NULL : &one);

		s = s == CKR_OK ? put : s;
	}
	return s;
}

ckr_status
writer_write(struct files *c, const struct contents *k)
{
	struct tensor_writer o;

	CKR_TRY(writer_begin_contents(c, &o, k));
	return writer_commit(c, &o, writer_put_contents(c, &o, k));
}
