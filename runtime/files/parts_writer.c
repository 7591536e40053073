/* Checkpoints with a file for each process (file/parts_folder.h).  A process
 * writes what it owns of each tensor: of copies on several ranks one writes,
 * as tensor_writer.c has it for one file.  No process waits for another while
 * it writes. */
#include "runtime/file/parts_folder.h"
#include "runtime/files/inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct part_save {
	char *dir;
	uint64_t save, step;
	uint32_t process;
	struct part_mark mark;
	bool placed;                    /* the part has its name, and `mark` is
	                                 * set; no index names it yet */
};

/* ---- what this process has of a tensor ---- */

/* The runs of a rank in one segment, as stretches of the whole: of equal runs
 * at equal distances one. */
static size_t
add_segment(const struct sharding *p, struct shard_stride held, uint64_t seg,
            struct stretch *s, size_t n)
{
	size_t begin = n;

	for (uint64_t i = held.first + seg * held.by; i < p->nrun;
	     i += held.by * p->nsegment) {
		struct shard_run u = sharding_run(p, i);
		struct stretch *last = n > begin ? &s[n - 1] : NULL;

		if (!u.n)
			continue;
		if (last && last->length == u.n && last->count == 1)
			last->stride = u.whole - last->first;
		if (last && last->length == u.n
		    && last->first + last->count * last->stride == u.whole)
			last->count++;
		else if (n < PARTS_STRETCHES)
			s[n++] = (struct stretch){ u.whole, u.n, u.n, 1 };
	}
	return n;
}

/* Counted in elements of the entry, of which a block has several. */
static size_t
list_stretches(const struct files *c, const struct ckr_tensor *t,
               const struct st_entry *e, struct stretch *s)
{
	struct sharding p = world_sharding(c->world, t);
	struct shard_stride held = sharding_runs_of_rank(&p,
		world_rank(c->world, 0), world_replica(c->world, 0));
	uint64_t each = tensor_elem_bytes(t) / dtype_row[e->dtype].nbytes;
	size_t n = 0;

	for (uint64_t seg = 0; seg < p.nsegment; seg++)
		n = add_segment(&p, held, seg, s, n);
	for (size_t i = 0; i < n; i++) {
		s[i].first *= each;
		s[i].length *= each;
		s[i].stride *= each;
	}
	return n;
}

/* The entry of this part instead of the whole's, and *cut: the text of its
 * metadata; NULL: the part has all of it. */
static ckr_status
cut_entry(const struct files *c, size_t i, const struct ckr_tensor *t,
          struct st_entry *e, char **cut)
{
	struct stretch s[PARTS_STRETCHES];
	size_t n = 0;
	uint64_t nelem = 0;

	*cut = NULL;
	if (owner_has_all(c, i, t))
		return CKR_OK;
	if (owner_has_shard(c, i, t))
		n = list_stretches(c, t, e, s);
	for (size_t k = 0; k < n; k++)
		nelem += s[k].count * s[k].length;
	*cut = stretch_text(e->rank, e->dim, s, n);
	e->rank = 1;
	e->dim[0] = (int64_t)nelem;
	return *cut ? CKR_OK : err_no_memory(c->err);
}

/* ---- beginning ---- */

static ckr_status
begin_folder(struct files *c, struct tensor_writer *o, const char *dir)
{
	struct pg_task task = { .op = "opening", .of = dir, .patient = true };
	struct part_save *p = calloc(1, sizeof(*p));
	ckr_status s = CKR_OK;

	o->part = p;
	if (p)
		p->dir = strdup(dir);
	if (!p || !p->dir)
		s = err_no_memory(c->err);
	else
		s = parts_make_folder(dir, c->err);
	if (s == CKR_OK && world_is_first(c->world))
		s = parts_next_save(dir, &p->save, c->err);
	CKR_TRY(world_agree(c->world, s, task.op));
	p->step = stepping_progress(c->steps)->step;
	p->process = c->world->team ? c->world->team->rank : 0;
	return world_broadcast(c->world, &p->save, sizeof(p->save), &task);
}

static ckr_status
begin_file_of_part(struct files *c, struct tensor_writer *o,
          const struct st_entry *entry, size_t n, const struct meta *meta,
          size_t nmeta)
{
	const struct part_save *p = o->part;
	char *path = parts_path(p->dir, p->process, p->save);
	struct new_file f;
	ckr_status s = path ? new_file_open(&f, path, c->err)
	               : err_no_memory(c->err);

	free(path);
	return s != CKR_OK ? s : st_begin_in(&o->w, f, entry, n, meta, nmeta,
	                                     c->err);
}

/* The whole's entries and metadata become those of this part. */
static ckr_status
begin_part(struct files *c, struct tensor_writer *o, const struct contents *k,
           struct st_entry *entry)
{
	const struct ckr_tensor *tensor = c->lib->program[0].tensor;
	struct meta *meta = calloc(k->nmeta + k->n + 1, sizeof(*meta));
	size_t n = 0;
	ckr_status s = meta ? CKR_OK : err_no_memory(c->err);

	for (; s == CKR_OK && n < k->nmeta; n++)
		meta[n] = k->meta[n];
	for (size_t i = 0; i < k->n && s == CKR_OK; i++) {
		char *cut, *key;

		s = cut_entry(c, i, &tensor[k->list[i]], &entry[i], &cut);
		if (s != CKR_OK || !cut)
			continue;
		if (asprintf(&key, PART_CUT "%s", entry[i].name) < 0)
			key = NULL;
		meta[n++] = (struct meta){ key, cut };
		if (!key)
			s = err_no_memory(c->err);
	}
	if (s == CKR_OK)
		s = begin_file_of_part(c, o, entry, k->n, meta, n);
	while (meta && n > k->nmeta) {
		free((char *)meta[--n].key);
		free((char *)meta[n].value);
	}
	free(meta);
	return s;
}

ckr_status
part_begin(struct files *c, struct tensor_writer *o, const struct contents *k,
           struct st_entry *entry)
{
	ckr_status s;

	*o = (struct tensor_writer){ .w = { .file = { .fd = -1 } } };
	s = begin_folder(c, o, k->path);
	if (s == CKR_OK)
		s = world_agree(c->world, begin_part(c, o, k, entry),
		                "opening a file");
	if (s != CKR_OK) {
		st_abort(&o->w);
		part_abort(o);
	}
	return s;
}

/* ---- ending ---- */

ckr_status
part_place(struct tensor_writer *o, struct err *e)
{
	struct new_file *f = &o->w.file;
	struct part_save *p = o->part;

	if (p->placed)
		return CKR_OK;
	CKR_TRY(parts_hash(f->fd, f->path, true, &p->mark, o->pace, e));
	CKR_TRY(st_commit(&o->w, e));
	p->placed = true;
	return CKR_OK;
}

/* The index of n parts that are on disk. */
static ckr_status
write_index(struct part_save *p, const struct part_mark *m, uint32_t n,
            struct err *e)
{
	return parts_complete(p->dir, p->save, p->step, m, n, e);
}

static void
finish(struct part_save *p)
{
	p->placed = false;
	parts_clean(p->dir, p->save, p->process);
}

ckr_status
part_finish_alone(struct tensor_writer *o, struct err *e)
{
	CKR_TRY(part_place(o, e));
	CKR_TRY(write_index(o->part, &o->part->mark, 1, e));
	finish(o->part);
	return CKR_OK;
}

/* All have placed theirs. */
static ckr_status
index_all(struct files *c, struct part_save *p)
{
	struct pg_task task = { .op = "writing a file", .patient = true };
	struct process_group *team = c->world->team;
	struct part_mark *all = calloc(team->size, sizeof(*all));
	ckr_status s = all ? CKR_OK : err_no_memory(c->err);

	s = world_agree(c->world, s, task.op);
	if (s == CKR_OK)
		s = pg_allgather_equal(team, &p->mark, sizeof(*all), all,
		                       &task, c->err);
	if (s == CKR_OK && world_is_first(c->world))
		s = write_index(p, all, team->size, c->err);
	free(all);
	return world_agree(c->world, s, task.op);
}

ckr_status
part_commit(struct files *c, struct tensor_writer *o, ckr_status s)
{
	if (!c->world->team)
		return s == CKR_OK ? part_finish_alone(o, c->err) : s;
	if (s == CKR_OK)
		s = part_place(o, c->err);
	s = world_agree(c->world, s, "writing a file");
	if (s == CKR_OK)
		s = index_all(c, o->part);
	if (s == CKR_OK)
		finish(o->part);
	/* the process that is lost may have written the index */
	if (s == CKR_ERANK)
		o->part->placed = false;
	return s;
}

void
part_abort(struct tensor_writer *o)
{
	struct part_save *p = o->part;
	char *path = p && p->placed ? parts_path(p->dir, p->process, p->save)
	             : NULL;

	if (path)
		unlink(path);
	free(path);
	if (p)
		free(p->dir);
	free(p);
	o->part = NULL;
}
