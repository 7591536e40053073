/* Weights, checkpoints and outputs as safetensors files. */
#include "runtime/base/dtype.h"
#include "runtime/file/names.h"
#include "runtime/file/parts_folder.h"
#include "runtime/files/inside.h"
#include "runtime/support/number.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RNG_NAME "philox4x32-10"

/* ---- reading ---- */

/* Blocks of the tensor's own kind, byte by byte. */
static bool
is_stored_form(const struct files *c, const struct array *a,
               const struct ckr_tensor *t)
{
	struct st_entry e = writer_entry(c, t, t->name, true);

	return tensor_is_blocks(t) && a->dtype == e.dtype && a->rank == e.rank
	       && !memcmp(a->dim, e.dim, (size_t)a->rank * sizeof(*a->dim));
}

/* Shape, and kind: floats of another width convert, but integers in place of
 * floats are a quantised model's codes. */
static ckr_status
need_same_form(struct files *c, const struct array_file *f,
               const struct array *a, const struct ckr_tensor *blocks)
{
	struct ckr_tensor stored = world_whole(c->world, blocks);
	struct ckr_tensor whole = tensor_weights(&stored), *t = &whole;
	bool is_float = dtype_row[t->dtype].cls == 'f';
	char want[128], have[128], name[NAME_TEXT];

	if (is_stored_form(c, a, blocks))
		return CKR_OK;
	if (a->rank == t->rank
	    && (!is_float || !a->dtype || dtype_row[a->dtype].cls == 'f')
	    && !memcmp(a->dim, whole.dim, (size_t)a->rank * sizeof(*a->dim)))
		return CKR_OK;
	return err_set(c->err, CKR_EFORMAT, "%s: '%s': expected %s, found %s",
	               f->path, err_name(name, sizeof(name), t->name),
	               array_text(want, sizeof(want), t->dtype, t->rank,
	                          whole.dim),
	               array_text(have, sizeof(have), a->dtype, a->rank,
	                          a->dim));
}

static bool
is_state(const struct ckr_tensor *t)
{
	return t->kind == CKR_STATE && t->state && strcmp(t->state, "grad")
	       && !tensor_is_copy(t) && !t->tied;
}

static bool
is_saved(const struct ckr_tensor *t)
{
	return tensor_is_weight(t) || is_state(t);
}

enum { HINT = 1200 };

static bool
is_wanted(const struct infile *o, uint32_t i, const struct ckr_tensor *t,
          want_fn *want)
{
	return want(t) && !(o->leave && o->leave[i]);
}

/* What would help where names differ, or the file is of a part alone. */
static const char *
missing_hint(struct files *c, const struct infile *o, char *text, size_t size)
{
	const struct ckr_tensor *t = c->lib->program[0].tensor;
	struct ckr_tensor *whole = calloc(c->lib->nshared + 1, sizeof(*whole));
	struct wanted *w = calloc(c->lib->nshared + 1, sizeof(*w));
	char guess[HINT - (sizeof("; ") - 1)] = "";
	size_t n = 0;

	*text = '\0';
	for (uint32_t i = 0; i < c->lib->nshared && whole && w; i++) {
		if (!tensor_is_weight(&t[i]) || (o->leave && o->leave[i]))
			continue;
		whole[n] = world_whole(c->world, &t[i]);
		whole[n] = tensor_weights(&whole[n]);
		w[n] = (struct wanted){ t[i].name, t[i].rank, whole[n].dim, 0 };
		if (tensor_is_blocks(&t[i]))
			w[n].stored = writer_entry(c, &t[i], t[i].name, true)
			              .dim[t[i].rank - 1];
		n++;
	}
	if (whole && w && !o->mapped)
		names_guess(&o->f, w, n, guess, sizeof(guess));
	if (*guess)
		snprintf(text, size, "; %s", guess);
	else
		snprintf(text, size, "; --init-partial keeps the compiled "
		         "values of missing tensors");
	free(whole);
	free(w);
	return text;
}

/* All wanted tensors are in the file, with the right shapes. */
static ckr_status
check_file(struct files *c, const struct infile *o, want_fn *want,
           const char *what, bool hints)
{
	const struct ckr_tensor *t = c->lib->program[0].tensor;
	const struct ckr_tensor *first = NULL;
	char name[NAME_TEXT], hint[HINT] = "";
	unsigned missing = 0, all = 0;

	CKR_TRY(lora_check_scales(c, &o->f));
	for (uint32_t i = 0; i < c->lib->nshared; i++) {
		const struct array *a;

		all += want(&t[i]);
		if (!is_wanted(o, i, &t[i], want))
			continue;
		a = array_find(&o->f, t[i].name);
		if (a) {
			CKR_TRY(need_same_form(c, &o->f, a, &t[i]));
			continue;
		}
		missing++;
		if (!first)
			first = &t[i];
	}
	if (!missing)
		return CKR_OK;
	if (hints)
		missing_hint(c, o, hint, sizeof(hint));
	else if (tensor_is_average(first))
		snprintf(hint, sizeof(hint), "; the run kept no moving "
		         "averages: compile without --ema, or start from its "
		         "weights with --init");
	return err_set(c->err, CKR_EFORMAT, "%s: %u of %u %s are missing; the "
	               "first is '%s'%s", o->f.path, missing, all, what,
	               err_name(name, sizeof(name), first->name), hint);
}

typedef ckr_status each_fn(struct files *, const struct infile *,
                           const struct array *, const struct ckr_tensor *);

static ckr_status
for_all(struct files *c, const struct infile *o, want_fn *want, each_fn *each)
{
	const struct ckr_tensor *t = c->lib->program[0].tensor;
	ckr_status s = CKR_OK, one;

	for (uint32_t i = 0; i < c->lib->nshared; i++) {
		if (!is_wanted(o, i, &t[i], want))
			continue;
		one = each(c, o, o->far ? NULL
		           : array_find(&o->f, t[i].name), &t[i]);
		s = s == CKR_OK ? one : s;
		/* others wait for the rest */
		if (s != CKR_OK && (!o->read_for || one == CKR_ERANK))
			return s;
	}
	return s;
}

/* All or nothing: files are read to their ends before the first byte of the
 * model changes.  While the model is being opened there is nothing to keep. */
static ckr_status
load_files(struct files *c, const struct infile *o, size_t n, want_fn *want)
{
	ckr_status s = CKR_OK;

	for (size_t k = 0; k < n && world_is_ready(c->world); k++)
		CKR_TRY(world_agree(c->world, for_all(c, &o[k], want,
			infile_check_tensor), "reading"));
	*c->unread.text = '\0';
	for (size_t k = 0; k < n && s == CKR_OK; k++) {
		s = world_agree(c->world, for_all(c, &o[k], want,
			infile_read_tensor), "reading");
		if (s == CKR_OK && !o[k].far)
			infile_note_unread(c, &o[k].f, want);
	}
	c->world->owner->ready &= s == CKR_OK;
	return s;
}

ckr_status
load_weight_files(struct files *c, struct infile *o, size_t n)
{
	ckr_status s = CKR_OK;

	for (size_t k = 0; k < n && s == CKR_OK; k++)
		if (!o[k].far)
			s = check_file(c, &o[k], tensor_is_weight,
			               "parameters and buffers", true);
	CKR_TRY(world_agree(c->world, s, "reading"));
	CKR_TRY(load_files(c, o, n, tensor_is_weight));
	for (size_t k = 1; k < n; k++)
		for (uint32_t i = 0; i < c->lib->nshared; i++)
			o->leave[i] &= o[k].leave[i];
	free(c->left);
	c->left = o->leave;
	o->leave = NULL;
	return CKR_OK;
}

ckr_status
files_load_weights(struct files *c, const char *path)
{
	struct infile o;
	ckr_status s;

	CKR_TRY(infile_open(c, path, &o));
	s = world_agree(c->world, infile_map_adapters(c, &o), "reading");
	if (s == CKR_OK)
		s = infile_mark_kept(c, &o);
	if (s == CKR_OK)
		s = load_weight_files(c, &o, 1);
	infile_close(&o);
	return s;
}

/* A whole number of the metadata; *x stays what it is without one. */
static ckr_status
meta_uint(struct files *c, const struct array_file *f, const char *key,
          uint64_t *x)
{
	const char *s = array_meta(f, key);
	char text[NAME_TEXT];

	if (!s || number_whole(s, UINT64_MAX, x))
		return CKR_OK;
	return err_set(c->err, CKR_EFORMAT, "%s: not a checkpoint: %s: "
	               "expected a whole number below 2^64, found '%s'",
	               f->path,
	               key, err_name(text, sizeof(text), s));
}

/* A real number, as it is written here: exactly. */
static ckr_status
meta_real(struct files *c, const struct array_file *f, const char *key,
          double *x)
{
	const char *s = array_meta(f, key);
	char text[NAME_TEXT];

	if (!s || number_real(s, x))
		return CKR_OK;
	return err_set(c->err, CKR_EFORMAT, "%s: not a checkpoint: %s: "
	               "expected a number, found '%s'", f->path, key,
	               err_name(text, sizeof(text), s));
}

/* Seed and step would give other numbers, and dropout other masks. */
static ckr_status
need_same_rng(struct files *c, const struct array_file *f)
{
	const char *was = array_meta(f, "rng");
	char name[NAME_TEXT];

	if (!was || !strcmp(was, RNG_NAME))
		return CKR_OK;
	return err_set(c->err, CKR_EFORMAT, "%s: the run's random number "
	               "generator was '%s', expected " RNG_NAME "; to start "
	               "from its weights, use --init", f->path,
	               err_name(name, sizeof(name), was));
}

/* Another optimizer has other states, and would go on as if its own were
 * fresh.  What trains nothing takes the weights of any. */
static ckr_status
need_same_optimizer(struct files *c, const struct array_file *f)
{
	const char *was = array_meta(f, "optimizer");
	const char *is = library_optimizer(c->lib);
	char name[NAME_TEXT];

	if (!was || !strcmp(was, is) || !strcmp(is, "none"))
		return CKR_OK;
	return err_set(c->err, CKR_EFORMAT, "%s: the run's optimizer was %s, "
	               "the library's is %s; compile with --optimizer %s, or "
	               "start from its weights with --init", f->path,
	               err_name(name, sizeof(name), was), is, name);
}

/* What is_saved wants is there, and the file is a checkpoint. */
static ckr_status
check_checkpoint(struct files *c, const struct infile *o, struct progress *p)
{
	const struct array_file *f = &o->f;
	uint64_t scale = SCALE_FIRST;
	const struct {
		const char *key;
		uint64_t *to;
	} number[] = {
		{ "step", &p->step }, { "seed", &p->seed },
		{ "skipped", &p->skipped }, { "loss_scale", &scale },
		{ "scale_good", &p->scale_good }, { "samples", &p->samples },
		{ "schedule_steps", &p->schedule_steps },
	};

	if (!array_meta(f, "step") || !array_meta(f, "seed"))
		return err_set(c->err, CKR_EFORMAT, "%s: not a checkpoint: "
		               "its metadata lacks step or seed; to start from "
		               "its weights, use --init", f->path);
	for (size_t i = 0; i < sizeof(number) / sizeof(*number); i++)
		CKR_TRY(meta_uint(c, f, number[i].key, number[i].to));
	CKR_TRY(meta_real(c, f, "valid_best", &p->best));
	CKR_TRY(meta_uint(c, f, "valid_worse", &p->worse));
	if (!scale_is_possible(scale))
		return err_set(c->err, CKR_EFORMAT, "%s: not a checkpoint: "
		               "loss_scale: expected a power of two up to "
		               "2^24, found %llu", f->path,
		               (unsigned long long)scale);
	p->scale = (double)scale;
	CKR_TRY(need_same_rng(c, f));
	CKR_TRY(need_same_optimizer(c, f));
	CKR_TRY(check_file(c, o, tensor_is_weight, "parameters and buffers",
	                   false));
	return check_file(c, o, is_state, "tensors of optimizer state", false);
}

static ckr_status
load_checkpoint(struct files *c, const struct infile *o, struct progress *p)
{
	struct pg_task task = { .op = "reading", .patient = true };
	ckr_status s = o->far ? CKR_OK : check_checkpoint(c, o, p);

	CKR_TRY(world_agree(c->world, s, task.op));
	CKR_TRY(load_files(c, o, 1, is_saved));
	return o->read_for ? world_broadcast(c->world, p, sizeof(*p), &task)
	       : CKR_OK;
}

ckr_status
files_resume(struct files *c, const char *path)
{
	struct progress *now = stepping_progress(c->steps);
	struct progress p = { .samples = UINT64_MAX, .best = INFINITY };
	struct infile o;
	ckr_status s;

	CKR_TRY(files_save_wait(c));
	CKR_TRY(infile_open(c, path, &o));
	s = load_checkpoint(c, &o, &p);
	infile_close(&o);
	if (s != CKR_OK)
		return s;
	p.per_step = now->per_step;
	p.skipped = p.skipped > p.step ? 0 : p.skipped;
	p.uncounted = p.samples == UINT64_MAX;
	p.samples = p.uncounted ? p.step * p.per_step : p.samples;
	*now = p;
	return CKR_OK;
}

/* ---- writing ---- */

static bool
has_output_name(const struct ckr_tensor *t)
{
	return t->name && t->flags & (CKR_OUTPUT | CKR_LOSS);
}

static ckr_status
write_some(struct files *c, const char *path, want_fn *want, uint32_t among,
           const struct meta *meta, size_t nmeta, write_fn *write)
{
	const struct ckr_tensor *tensor = c->lib->program[0].tensor;
	uint32_t *list = malloc((among + 1) * sizeof(*list));
	size_t n = 0;
	ckr_status s;

	if (!list)
		return err_no_memory(c->err);
	for (uint32_t i = 0; i < among; i++)
		if (want(&tensor[i]))
			list[n++] = i;
	s = write(c, &(struct contents){ .path = path, .prefix = "",
		.parts = want == is_saved && parts_in_folder(path),
		.stored = true, .list = list, .n = n, .meta = meta,
		.nmeta = nmeta });
	free(list);
	return s;
}

struct metadata {
	size_t n;
	struct meta row[13];
	char text[13][SCALES_TEXT];
};

static void
add_text(struct metadata *m, const char *key, const char *value)
{
	m->row[m->n++] = (struct meta){ key, value };
}

static void
add_number(struct metadata *m, const char *key, uint64_t x)
{
	snprintf(m->text[m->n], SCALES_TEXT, "%llu", (unsigned long long)x);
	add_text(m, key, m->text[m->n]);
}

static ckr_status
write_checkpoint(struct files *c, const char *path, write_fn *write)
{
	const struct progress *p = stepping_progress(c->steps);
	char best[32], scales[SCALES_TEXT];
	struct metadata m = { .n = 0 };

	CKR_TRY(files_save_wait(c));
	add_text(&m, "model", c->lib->name);
	add_text(&m, "optimizer", library_optimizer(c->lib));
	add_number(&m, "step", p->step);
	add_number(&m, "seed", p->seed);
	add_number(&m, "skipped", p->skipped);
	add_text(&m, "rng", RNG_NAME);
	if (p->per_step || p->samples)
		add_number(&m, "samples", p->samples);
	if (c->lib->loss_scaled) {
		add_number(&m, "loss_scale", (uint64_t)p->scale);
		add_number(&m, "scale_good", p->scale_good);
	}
	if (p->schedule_steps)
		add_number(&m, "schedule_steps", p->schedule_steps);
	snprintf(best, sizeof(best), "%.17g", p->best);
	if (isfinite(p->best))
		add_text(&m, "valid_best", best);
	if (p->worse)
		add_number(&m, "valid_worse", p->worse);
	if (c->lib->nadapter) {
		lora_scales(c, scales);
		add_text(&m, SCALES_KEY, scales);
	}
	return write_some(c, path, is_saved, c->lib->nshared, m.row, m.n,
	                  write);
}

ckr_status
files_save(struct files *c, const char *path)
{
	return write_checkpoint(c, path, writer_write);
}

ckr_status
files_save_async(struct files *c, const char *path)
{
	return write_checkpoint(c, path, async_save_start);
}

ckr_status
files_save_reserve(struct files *c, const char *path)
{
	return write_checkpoint(c, path, async_save_reserve);
}

ckr_status
files_save_outputs(struct files *c, const char *path)
{
	if (stepping_outputs(c->steps) != &c->world->plan)
		return err_set(c->err, CKR_EARG, "outputs have no values "
		               "before a step has completed");
	return write_some(c, path, has_output_name, c->lib->program[0].ntensor,
	                  NULL, 0, writer_write);
}
