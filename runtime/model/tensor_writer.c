/* Processes write into one new file side by side.  The first begins it and
 * gives it its place; the others open it by its number among the first's open
 * files, as it has no name until it is complete; on other machines by a name
 * beside its place.  Where they cannot, what they hold goes through the first.
 *
 * A tensor that is cut is written by its owners, of replicas in turn; one that
 * all have, by one of them in turn; what must be put together first, by the
 * first process, range by range.
 */
#include "runtime/model/files.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "runtime/model/peers.h"

/* Bytes below which runs are put together before they are written. */
enum { SHORT = 256, PIECE = 1 << 14 };

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
should_name(const ckr_ctx *c)
{
	const char *s = getenv("CKR_FILES");

	return c->team && (s ? !strcmp(s, "name")
	                   : c->team->nlocal < c->team->size);
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
share_file(ckr_ctx *c, struct tensor_writer *o, const char *path)
{
	struct pg_task w = { .op = "opening", .of = path, .patient = true };
	struct file_mark p = { .fd = -1 };
	ckr_status s = CKR_OK;
	bool first = peers_first(c);

	if (first && should_share())
		s = mark_file(o, &p, &c->err);
	CKR_TRY(peers_agree(c, s, w.op));
	CKR_TRY(pg_broadcast(c->team, 0, &p, sizeof(p), &w, &c->err));
	if (!first && p.fd >= 0)
		o->w.file.fd = open_marked_file(o, &p);
	CKR_TRY(peers_any(c, o->w.file.fd < 0 || p.fd < 0, &o->far));
	if (first && p.fd >= 0
	    && ftruncate(o->w.file.fd, (off_t)o->w.at[o->w.n]))
		s = err_set(&c->err, CKR_EIO, "%s: cannot write: %m", path);
	return peers_agree(c, s, w.op);
}

ckr_status
writer_begin(ckr_ctx *c, struct tensor_writer *o, const char *path,
             const struct st_entry *entry, size_t n, const struct meta *meta,
             size_t nmeta)
{
	struct new_file f;
	ckr_status s;

	*o = (struct tensor_writer){ .w = { .file = { .fd = -1 } } };
	if (!peers_first(c)) {
		s = st_join(&o->w, path, entry, n, meta, nmeta, &c->err);
	} else {
		s = should_name(c) ? new_file_open_named(&f, path, &c->err)
		    : new_file_open(&f, path, &c->err);
		if (s == CKR_OK)
			s = st_begin_in(&o->w, f, entry, n, meta, nmeta,
			                &c->err);
	}
	s = peers_agree(c, s, "opening a file");
	if (s == CKR_OK && c->team)
		s = share_file(c, o, path);
	if (s != CKR_OK)
		writer_abort(o);
	return s;
}

/* ---- writing ---- */

/* n elements of a tensor, from element `at` of the entry on. */
static ckr_status
write_range(ckr_ctx *c, struct tensor_writer *o, size_t entry,
            const struct ckr_tensor *t, uint64_t at, const char *x, uint64_t n,
            const float *scale)
{
	uint64_t size = dtype_row[t->dtype].nbytes;
	float y[PIECE];
	size_t bad;

	if (!scale)
		return st_write(&o->w, entry, at * size, x, n * size, &c->err);
	for (uint64_t i = 0; i < n; i += PIECE) {
		uint64_t k = n - i < PIECE ? n - i : PIECE;

		/* floats fit */
		dtype_convert(y, CKR_F32, x + i * size, t->dtype, k, &bad);
		for (uint64_t j = 0; j < k; j++)
			y[j] *= *scale;
		CKR_TRY(st_write(&o->w, entry, (at + i) * sizeof(*y), y,
		                 k * sizeof(*y), &c->err));
	}
	return CKR_OK;
}

/* What the rank at place r is to write of a tensor, if anything. */
static ckr_status
write_own_runs(ckr_ctx *c, struct tensor_writer *o, size_t entry,
               const struct ckr_tensor *t, uint32_t r, const char *x,
               const float *scale)
{
	uint32_t world = c->world.first + r, rank = rt_rank(c, r);
	uint64_t size = dtype_row[t->dtype].nbytes;
	struct shard_stride held;
	struct sharding p;

	if (!rt_is_sharded(t))
		return world != entry % (c->world.tp * c->world.dp) ? CKR_OK
		       : write_range(c, o, entry, t, 0, x, rt_nelem(t), scale);
	p = rt_sharding(c, t);
	if ((!p.replica_shard && rt_replica(c, r) != entry % c->world.dp)
	    || rank % p.replication)
		return CKR_OK;
	held = sharding_runs_of_rank(&p, rank, rt_replica(c, r));
	for (uint64_t i = held.first; i < p.nrun; i += held.by) {
		struct shard_run u = sharding_run(&p, i);

		CKR_TRY(write_range(c, o, entry, t, u.whole, x + u.local * size,
		                    u.n, scale));
	}
	return CKR_OK;
}

static ckr_status
write_shards(ckr_ctx *c, struct tensor_writer *o, size_t entry,
             const struct loaded_program *b, const struct ckr_tensor *t,
             const float *scale)
{
	bool direct = rt_is_dense(t) && c->device->addressable;
	char *packed = direct ? NULL : malloc(rt_nbytes(t) + 1);
	ckr_status s = CKR_OK;

	if (!direct && !packed)
		return rt_no_memory(c);
	FOR_RANKS (r, c) {
		const char *x = rt_at(c, b, r, t);

		if (packed && s == CKR_OK)
			s = rt_pull(c, t, x, packed);
		if (s == CKR_OK)
			s = write_own_runs(c, o, entry, t, r,
			                   packed ? packed : x, scale);
	}
	free(packed);
	return s;
}

/* Range by range, so that no process needs memory for the whole. */
static ckr_status
write_gathered_ranges(ckr_ctx *c, struct tensor_writer *o, size_t entry,
                      const struct loaded_program *b,
                      const struct ckr_tensor *t, const float *scale)
{
	struct ckr_tensor w = rt_whole(c, t);
	uint64_t n = rt_nelem(&w), most;
	struct tensor_gather f;
	ckr_status s = gather_begin(&f, c, b, t), wrote = s;
	char *x = malloc(f.most * dtype_row[t->dtype].nbytes);

	if (s == CKR_OK && !x)
		s = rt_no_memory(c);
	for (uint64_t at = 0; s == CKR_OK && at < n; at += most) {
		most = n - at < f.most ? n - at : f.most;
		s = gather_next(&f, at, most, x);
		if (s == CKR_OK && wrote == CKR_OK && peers_first(c))
			wrote = write_range(c, o, entry, t, at, x, most, scale);
	}
	gather_end(&f);
	free(x);
	return s == CKR_OK ? wrote : s;
}

static ckr_status
write_in_one_process(ckr_ctx *c, struct tensor_writer *o, size_t entry,
                     const struct loaded_program *b, const struct ckr_tensor *t,
                     const float *scale)
{
	struct ckr_tensor w = rt_whole(c, t);
	const void *from;
	void *copy;
	ckr_status s = rt_view_whole(c, b, t, &from, &copy);

	if (s == CKR_OK)
		s = write_range(c, o, entry, t, 0, from, rt_nelem(&w), scale);
	free(copy);
	return s;
}

static bool
comes_apart(const ckr_ctx *c, const struct ckr_tensor *t)
{
	struct sharding p;

	if (t->batch && c->world.dp > 1)
		return false;
	if (!rt_is_sharded(t))
		return !t->placement;
	p = rt_sharding(c, t);
	return sharding_longest_run(&p) * dtype_row[t->dtype].nbytes >= SHORT;
}

ckr_status
writer_put_tensor(ckr_ctx *c, struct tensor_writer *o, size_t entry,
                  const struct loaded_program *b, const struct ckr_tensor *t,
                  const float *scale)
{
	if (comes_apart(c, t) && !o->far)
		return write_shards(c, o, entry, b, t, scale);
	return c->team ? write_gathered_ranges(c, o, entry, b, t, scale)
	       : write_in_one_process(c, o, entry, b, t, scale);
}

/* ---- closing ---- */

ckr_status
writer_commit(ckr_ctx *c, struct tensor_writer *o, ckr_status s)
{
	struct new_file *f = &o->w.file;

	if (s == CKR_OK && c->team && f->fd >= 0 && fsync(f->fd))
		s = err_set(&c->err, CKR_EIO, "%s: cannot write: %m", f->path);
	s = peers_agree(c, s, "writing a file");
	if (s == CKR_OK && peers_first(c))
		s = st_commit(&o->w, &c->err);
	s = peers_agree(c, s, "writing a file");
	writer_abort(o);
	return s;
}

void
writer_abort(struct tensor_writer *o)
{
	st_abort(&o->w);
}
