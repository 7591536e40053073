/* Reading of tensor files by all processes.  Each process reads the ranges of a
 * file that its ranks hold.  If not all of them see the same file, as without a
 * shared file system, the first one reads it for all. */
#include "runtime/file/names.h"
#include "runtime/file/parts_folder.h"
#include "runtime/files/inside.h"
#include "runtime/support/hash.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- reading ---- */

enum { PIECE = 1 << 20 };               /* bytes */

/* What ranks here hold of it, to there or to nowhere. */
static ckr_status
read_held(struct files *c, const struct infile *o, const struct array *a,
          struct shards *to)
{
	uint8_t dtype = to->t->dtype;
	uint64_t piece = tensor_piece(to->t, PIECE), at = 0, n;
	char *block = malloc(piece * tensor_elem_bytes(to->t));
	ckr_status s = block ? CKR_OK : err_no_memory(c->err);

	/* of parts, others' elements are in other files */
	to->held = a->joined;
	for (; s == CKR_OK && shards_next(to, piece, &at, &n); at += n) {
		s = array_read(&o->f, a, at, n, dtype, block, c->err);
		if (s == CKR_OK && (to->local || to->in_host))
			shards_put(to, at, n, block);
	}
	free(block);
	return s;
}

/* All of it, from the first process. */
static ckr_status
read_far(struct files *c, const struct infile *o, const struct array *a,
         struct shards *to)
{
	uint8_t dtype = to->t->dtype;
	struct pg_task task = { .op = "reading", .of = to->t->name,
		.patient = true };
	char *block = c->world->team->out;
	uint64_t piece = tensor_piece(to->t, PIECE);
	ckr_status s = CKR_OK;

	for (uint64_t at = 0, n; at < to->nelem; at += n) {
		n = to->nelem - at < piece ? to->nelem - at : piece;
		if (!o->far && s == CKR_OK)
			s = array_read(&o->f, a, at, n, dtype, block, c->err);
		CKR_TRY(world_broadcast(c->world, block, n
		                        * tensor_elem_bytes(to->t), &task));
		shards_put(to, at, n, block);
	}
	return s;
}

ckr_status
infile_read_tensor(struct files *c, const struct infile *o,
                   const struct array *a, const struct ckr_tensor *t)
{
	struct shards to;
	ckr_status s, end;

	CKR_TRY(shards_begin(&to, c->world, t, true));
	if (o->read_for) {
		s = read_far(c, o, a, &to);
	} else if (to.cut || to.in_host) {
		s = read_held(c, o, a, &to);
	} else if (shards_memory(&to)) {
		s = array_read(&o->f, a, 0, to.nelem, t->dtype,
		               shards_memory(&to), c->err);
		shards_put(&to, 0, to.nelem, shards_memory(&to));
	} else {
		s = CKR_OK;
	}
	end = shards_end(&to, s == CKR_OK);
	return s == CKR_OK ? end : s;
}

ckr_status
infile_check_tensor(struct files *c, const struct infile *o,
                    const struct array *a, const struct ckr_tensor *t)
{
	struct shards nowhere;

	if (o->far)
		return CKR_OK;
	CKR_TRY(shards_begin(&nowhere, c->world, t, false));
	return read_held(c, o, a, &nowhere);
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
	for (size_t i = 0; i < f->nmeta; i++) {
		const struct meta *m = &f->meta[i];

		h = hash_text(h, m->key);
		h = hash_text(h, m->value);
	}
	return h;
}

/* Whether this process sees the same file as the first. */
static ckr_status
compare_with_first(struct files *c, struct infile *o, bool opened)
{
	struct pg_task task = { .op = "opening", .of = o->f.path,
		.patient = true };
	uint64_t mine = opened ? hash_head(&o->f) : 0, first = mine;

	CKR_TRY(world_broadcast(c->world, &first, sizeof(first), &task));
	return world_any(c->world, !opened || mine != first,
	                 stepping_progress(c->steps)->step, &o->read_for);
}

static ckr_status
open_for_all(struct files *c, const char *path, struct infile *o)
{
	ckr_status s = array_open(&o->f, path, c->err);
	bool opened = s == CKR_OK;

	o->far = o->read_for = false;
	o->leave = NULL;
	CKR_TRY(world_agree(c->world, world_is_first(c->world) ? s : CKR_OK,
	                    "opening"));
	if (!c->world->team)
		return CKR_OK;
	CKR_TRY(compare_with_first(c, o, opened));
	o->far = o->read_for && !world_is_first(c->world);
	if (o->far && opened)
		array_close(&o->f);
	return CKR_OK;
}

/* The contents of parts are those that were saved: each process that sees the
 * files reads its share. */
static ckr_status
verify_parts(struct files *c, struct infile *o)
{
	const struct process_group *team = c->world->team;
	bool share = team && !o->read_for;
	ckr_status s = o->far ? CKR_OK
		: parts_verify(&o->f, share ? team->rank : 0,
		               share ? team->size : 1, c->err);

	return world_agree(c->world, s, "reading");
}

ckr_status
infile_open(struct files *c, const char *path, struct infile *o)
{
	ckr_status s;

	CKR_TRY(open_for_all(c, path, o));
	s = verify_parts(c, o);
	if (s != CKR_OK)
		infile_close(o);
	return s;
}

/* ---- adapters ---- */

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
infile_map_adapters(struct files *c, struct infile *o)
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
	CKR_TRY(lora_check_peft_scales(c, &o->f));
	return names_map(&o->f, map, 1, c->err);
}

static void
spare_here(struct files *c, struct infile *o)
{
	const struct ckr_tensor *t = c->lib->program[0].tensor;

	for (uint32_t i = 0; i < c->lib->nshared; i++)
		o->leave[i] |= tensor_is_weight(&t[i])
			&& o->alone != lora_owns(c->lib, i)
			&& !array_find(&o->f, t[i].name);
}

ckr_status
infile_agree(struct files *c, struct infile *o)
{
	struct pg_task task = { .op = "reading", .patient = true };

	return world_broadcast(c->world, o->leave, c->lib->nshared, &task);
}

ckr_status
infile_mark_kept(struct files *c, struct infile *o)
{
	ckr_status s = CKR_OK;

	o->leave = calloc(c->lib->nshared + 1, 1);
	if (!o->leave)
		s = err_no_memory(c->err);
	else if (c->lib->nadapter && !o->far)
		spare_here(c, o);
	CKR_TRY(world_agree(c->world, s, "reading"));
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

/* States are expected to be left out if weights alone are wanted. */
static bool
has_place(const struct files *c, const struct array_file *f, want_fn *want,
          const char *name)
{
	const struct ckr_tensor *t = library_find(c->lib, name, NULL);

	return (t && want(t)) || is_counter(name)
	       || (want == tensor_is_weight && names_is_state(f, name));
}

/* Whether both hold the same values, which are not all one. */
static bool
same_values(const struct array_file *f, const struct array *x,
            const struct array *y)
{
	char a[1 << 12], b[sizeof(a)], first[sizeof(int64_t)];
	uint64_t size, n;
	bool vary = false;
	struct err e;

	if (x->dtype == CKR_NONE || x->dtype != y->dtype || x->rank != y->rank
	    || memcmp(x->dim, y->dim, (size_t)x->rank * sizeof(*x->dim)))
		return false;
	size = dtype_row[x->dtype].nbytes;
	for (uint64_t at = 0; at < x->nelem; at += n) {
		n = sizeof(a) / size;
		n = n < x->nelem - at ? n : x->nelem - at;
		if (array_read(f, x, at, n, x->dtype, a, &e) != CKR_OK
		    || array_read(f, y, at, n, y->dtype, b, &e) != CKR_OK
		    || memcmp(a, b, n * size))
			return false;
		if (!at)
			memcpy(first, a, size);
		vary |= memcmp(first, a, size)
			|| memcmp(a, a + size, (n - 1) * size);
	}
	return vary;
}

/* A tied weight: the model has it by another of its names. */
static bool
is_tied(const struct files *c, const struct array_file *f, want_fn *want,
        const struct array *a)
{
	for (size_t i = 0; i < f->n; i++)
		if (&f->v[i] != a && has_place(c, f, want, f->v[i].name)
		    && same_values(f, a, &f->v[i]))
			return true;
	return false;
}

void
infile_note_unread(struct files *c, const struct array_file *f, want_fn *want)
{
	char list[SHOWN * (NAME_TEXT + 8)] = "", name[NAME_TEXT];
	size_t n = 0, states = 0, end = strlen(c->unread.text);

	for (size_t i = 0; i < f->n; i++) {
		const char *of = f->v[i].name;
		size_t at = strlen(list);

		if (has_place(c, f, want, of) || is_tied(c, f, want, &f->v[i]))
			continue;
		states += names_is_state(f, of);
		if (n++ < SHOWN)
			snprintf(list + at, sizeof(list) - at, "%s'%s'",
			         at ? ", " : "", err_name(name, sizeof(name),
			                                  of));
	}
	if (n)
		snprintf(c->unread.text + end, sizeof(c->unread.text) - end,
		         "%s%s: %zu of %zu tensors %s not used by the model: "
		         "%s%s%s", end ? "; " : "", f->path, n, f->n,
		         n == 1 ? "is" : "are", list, n > SHOWN ? ", ..." : "",
		         n == states ? "" : "; a constant of the ONNX file "
		         "keeps its compiled value (ckc --param NAME makes "
		         "it a parameter)");
}

const char *
files_unused_tensors(const struct files *c)
{
	return c->unread.text;
}
