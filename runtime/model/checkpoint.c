/* Weights, checkpoints and outputs as safetensors files. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/file/names.h"
#include "runtime/model/files.h"
#include "runtime/model/peers.h"
#include "runtime/support/number.h"

#define RNG_NAME "philox4x32-10"

/* ---- reading ---- */

/* Shape, and kind: floats of another width convert, but integers in place of
 * floats are a quantised model's codes. */
static ckr_status
need_same_form(ckr_ctx *c, const struct array_file *f, const struct array *a,
               const struct ckr_tensor *t)
{
	struct ckr_tensor whole = rt_whole(c, t);
	bool is_float = dtype_row[t->dtype].cls == 'f';
	char want[128], have[128], name[NAME_TEXT];

	if (a->rank == t->rank
	    && (!is_float || !a->dtype || dtype_row[a->dtype].cls == 'f')
	    && !memcmp(a->dim, whole.dim, (size_t)a->rank * sizeof(*a->dim)))
		return CKR_OK;
	return err_set(&c->err, CKR_EFORMAT, "%s: '%s': expected %s, found %s",
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
	       && !rt_is_copy(t);
}

static bool
is_saved(const struct ckr_tensor *t)
{
	return rt_is_weight(t) || is_state(t);
}

typedef bool want_fn(const struct ckr_tensor *);

enum { HINT = 1200 };

static bool
is_wanted(const struct infile *o, uint32_t i, const struct ckr_tensor *t,
          want_fn *want)
{
	return want(t) && !(o->leave && o->leave[i]);
}

/* What would help where names differ, or the file is of a part alone. */
static const char *
missing_hint(ckr_ctx *c, const struct infile *o, char *text, size_t size)
{
	const struct ckr_tensor *t = c->lib->program[0].tensor;
	struct ckr_tensor *whole = calloc(c->lib->nshared + 1, sizeof(*whole));
	struct wanted *w = calloc(c->lib->nshared + 1, sizeof(*w));
	char guess[HINT] = "";
	size_t n = 0;

	*text = '\0';
	for (uint32_t i = 0; i < c->lib->nshared && whole && w; i++) {
		if (!rt_is_weight(&t[i]) || (o->leave && o->leave[i]))
			continue;
		whole[n] = rt_whole(c, &t[i]);
		w[n] = (struct wanted){ t[i].name, t[i].rank, whole[n].dim };
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
check_file(ckr_ctx *c, const struct infile *o, want_fn *want,
           const char *what, bool hints)
{
	const struct ckr_tensor *t = c->lib->program[0].tensor;
	const char *first = NULL;
	char name[NAME_TEXT], hint[HINT] = "";
	unsigned missing = 0, all = 0;

	CKR_TRY(files_need_scales(c, &o->f));
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
			first = t[i].name;
	}
	if (!missing)
		return CKR_OK;
	if (hints)
		missing_hint(c, o, hint, sizeof(hint));
	return err_set(&c->err, CKR_EFORMAT, "%s: %u of %u %s are missing; the "
	               "first is '%s'%s", o->f.path, missing, all, what,
	               err_name(name, sizeof(name), first), hint);
}

typedef ckr_status each_fn(ckr_ctx *, const struct infile *,
                           const struct array *, const struct ckr_tensor *);

static ckr_status
for_all(ckr_ctx *c, const struct infile *o, want_fn *want, each_fn *each)
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
load_files(ckr_ctx *c, const struct infile *o, size_t n, want_fn *want)
{
	ckr_status s = CKR_OK;

	for (size_t k = 0; k < n && c->ready; k++)
		CKR_TRY(peers_agree(c,
		                    for_all(c, &o[k], want,
		                            infile_check_tensor), "reading"));
	*c->unread.text = '\0';
	for (size_t k = 0; k < n && s == CKR_OK; k++) {
		s = peers_agree(c, for_all(c, &o[k], want, infile_read_tensor),
		                "reading");
		if (s == CKR_OK && !o[k].far)
			rt_note_unread(c, &o[k].f);
	}
	c->ready &= s == CKR_OK;
	return s;
}

ckr_status
files_load_weights(ckr_ctx *c, struct infile *o, size_t n)
{
	ckr_status s = CKR_OK;

	for (size_t k = 0; k < n && s == CKR_OK; k++)
		if (!o[k].far)
			s = check_file(c, &o[k], rt_is_weight,
			               "parameters and buffers", true);
	CKR_TRY(peers_agree(c, s, "reading"));
	CKR_TRY(load_files(c, o, n, rt_is_weight));
	for (size_t k = 1; k < n; k++)
		for (uint32_t i = 0; i < c->lib->nshared; i++)
			o->leave[i] &= o[k].leave[i];
	free(c->left);
	c->left = o->leave;
	o->leave = NULL;
	return CKR_OK;
}

ckr_status
rt_load_weights(ckr_ctx *c, const char *path)
{
	struct infile o;
	ckr_status s;

	CKR_TRY(infile_open(c, path, &o));
	s = peers_agree(c, infile_map_adapters(c, &o), "reading");
	if (s == CKR_OK)
		s = infile_mark_kept(c, &o);
	if (s == CKR_OK)
		s = files_load_weights(c, &o, 1);
	infile_close(&o);
	return s;
}

ckr_status
ckr_load_weights(ckr_ctx *c, const char *path)
{
	CKR_TRY(rt_need_quiet(c));
	return rt_load_weights(c, path);
}

/* A whole number of the metadata; *x stays what it is without one. */
static ckr_status
meta_uint(ckr_ctx *c, const struct array_file *f, const char *key,
          uint64_t *x)
{
	const char *s = array_meta(f, key);
	char text[NAME_TEXT];

	if (!s || number_whole(s, UINT64_MAX, x))
		return CKR_OK;
	return err_set(&c->err, CKR_EFORMAT, "%s: not a checkpoint: %s: "
	               "expected a whole number below 2^64, found '%s'",
	               f->path,
	               key, err_name(text, sizeof(text), s));
}

/* A real number, as it is written here: exactly. */
static ckr_status
meta_real(ckr_ctx *c, const struct array_file *f, const char *key, double *x)
{
	const char *s = array_meta(f, key);
	char text[NAME_TEXT];

	if (!s || number_real(s, x))
		return CKR_OK;
	return err_set(&c->err, CKR_EFORMAT, "%s: not a checkpoint: %s: "
	               "expected a number, found '%s'", f->path, key,
	               err_name(text, sizeof(text), s));
}

/* Seed and step would give other numbers, and dropout other masks. */
static ckr_status
need_same_rng(ckr_ctx *c, const struct array_file *f)
{
	const char *was = array_meta(f, "rng");
	char name[NAME_TEXT];

	if (!was || !strcmp(was, RNG_NAME))
		return CKR_OK;
	return err_set(&c->err, CKR_EFORMAT, "%s: the run's random number "
	               "generator was '%s', expected " RNG_NAME "; to start "
	               "from its weights, use --init", f->path,
	               err_name(name, sizeof(name), was));
}

/* Another optimizer has other states, and would go on as if its own were
 * fresh.  What trains nothing takes the weights of any. */
static ckr_status
need_same_optimizer(ckr_ctx *c, const struct array_file *f)
{
	const char *was = array_meta(f, "optimizer"), *is = ckr_optimizer(c);
	char name[NAME_TEXT];

	if (!was || !strcmp(was, is) || !strcmp(is, "none"))
		return CKR_OK;
	return err_set(&c->err, CKR_EFORMAT, "%s: the run's optimizer was %s, "
	               "the library's is %s; compile with --optimizer %s, or "
	               "start from its weights with --init", f->path,
	               err_name(name, sizeof(name), was), is, name);
}

/* Progress of a run. */
struct progress {
	uint64_t step, seed, skipped, scale, good, samples;
	struct best_loss best;
};

/* What is_saved wants is there, and the file is a checkpoint. */
static ckr_status
check_checkpoint(ckr_ctx *c, const struct infile *o, struct progress *p)
{
	const struct array_file *f = &o->f;

	if (!array_meta(f, "step") || !array_meta(f, "seed"))
		return err_set(&c->err, CKR_EFORMAT, "%s: not a checkpoint: "
		               "its metadata lacks step or seed; to start from "
		               "its weights, use --init", f->path);
	CKR_TRY(meta_uint(c, f, "step", &p->step));
	CKR_TRY(meta_uint(c, f, "seed", &p->seed));
	CKR_TRY(meta_uint(c, f, "skipped", &p->skipped));
	CKR_TRY(meta_uint(c, f, "loss_scale", &p->scale));
	CKR_TRY(meta_uint(c, f, "scale_good", &p->good));
	CKR_TRY(meta_uint(c, f, "samples", &p->samples));
	CKR_TRY(meta_real(c, f, "valid_best", &p->best.loss));
	CKR_TRY(meta_uint(c, f, "valid_worse", &p->best.worse));
	if (!scale_is_possible(p->scale))
		return err_set(&c->err, CKR_EFORMAT, "%s: not a checkpoint: "
		               "loss_scale: expected a power of two up to "
		               "2^24, found %llu", f->path,
		               (unsigned long long)p->scale);
	CKR_TRY(need_same_rng(c, f));
	CKR_TRY(need_same_optimizer(c, f));
	CKR_TRY(check_file(c, o, rt_is_weight, "parameters and buffers",
	                   false));
	return check_file(c, o, is_state, "tensors of optimizer state", false);
}

static ckr_status
load_checkpoint(ckr_ctx *c, const struct infile *o, struct progress *p)
{
	struct pg_task w = { .op = "reading", .patient = true };
	ckr_status s = o->far ? CKR_OK : check_checkpoint(c, o, p);

	CKR_TRY(peers_agree(c, s, w.op));
	CKR_TRY(load_files(c, o, 1, is_saved));
	return o->read_for ? pg_broadcast(c->team, 0, p, sizeof(*p), &w,
	                                  &c->err)
	       : CKR_OK;
}

ckr_status
ckr_resume(ckr_ctx *c, const char *path)
{
	struct infile o;
	struct progress p = { .scale = SCALE_FIRST, .samples = UINT64_MAX,
	                      .best.loss = INFINITY };
	ckr_status s;

	CKR_TRY(rt_need_quiet(c));
	CKR_TRY(infile_open(c, path, &o));
	s = load_checkpoint(c, &o, &p);
	infile_close(&o);
	if (s == CKR_OK) {
		c->step = p.step;
		c->skipped = p.skipped > p.step ? 0 : p.skipped;
		c->uncounted = p.samples == UINT64_MAX;
		c->samples = c->uncounted ? p.step * c->per_step : p.samples;
		c->env.seed = p.seed;
		c->scale.value = (double)p.scale;
		c->scale.good = p.good;
		c->best = p.best;
	}
	return s;
}

/* ---- writing ---- */

struct st_entry
rt_entry(const ckr_ctx *c, const struct ckr_tensor *t, const char *name)
{
	struct st_entry e = { .name = name, .dtype = t->dtype,
	                      .rank = t->rank };
	struct ckr_tensor whole = rt_whole(c, t);

	memcpy(e.dim, whole.dim, sizeof(e.dim));
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

static ckr_status
write_entries(ckr_ctx *c, const char *path, const struct st_entry *entry,
              const uint32_t *list, size_t n, const struct meta *meta,
              size_t nmeta)
{
	struct tensor_writer o;
	ckr_status s = writer_begin(c, &o, path, entry, n, meta, nmeta);

	if (s != CKR_OK)
		return s;
	for (size_t i = 0; i < n && s != CKR_ERANK; i++) {
		ckr_status one = writer_put_tensor(c, &o, i, &c->plan,
			&c->lib->program[0].tensor[list[i]], NULL);

		s = s == CKR_OK ? one : s;
	}
	return writer_commit(c, &o, s);
}

ckr_status
files_write(ckr_ctx *c, const char *path, const char *prefix,
            const uint32_t *list, size_t n, const struct meta *meta,
            size_t nmeta)
{
	const struct ckr_tensor *tensor = c->lib->program[0].tensor;
	struct st_entry *entry = calloc(n + 1, sizeof(*entry));
	ckr_status s = entry ? CKR_OK : rt_no_memory(c);

	for (size_t i = 0; i < n && s == CKR_OK; i++) {
		const struct ckr_tensor *t = &tensor[list[i]];

		entry[i] = rt_entry(c, t, add_prefix(prefix, t->name));
		if (!entry[i].name)
			s = rt_no_memory(c);
	}
	if (s == CKR_OK)
		s = write_entries(c, path, entry, list, n, meta, nmeta);
	for (size_t i = 0; entry && i < n; i++)
		free((char *)entry[i].name);
	free(entry);
	return s;
}

static bool
has_output_name(const struct ckr_tensor *t)
{
	return t->name && t->flags & (CKR_OUTPUT | CKR_LOSS);
}

static ckr_status
write_some(ckr_ctx *c, const char *path, want_fn *want, uint32_t among,
           const struct meta *meta, size_t nmeta)
{
	const struct ckr_tensor *tensor = c->lib->program[0].tensor;
	uint32_t *list = malloc((among + 1) * sizeof(*list));
	size_t n = 0;
	ckr_status s;

	if (!list)
		return rt_no_memory(c);
	for (uint32_t i = 0; i < among; i++)
		if (want(&tensor[i]))
			list[n++] = i;
	s = files_write(c, path, "", list, n, meta, nmeta);
	free(list);
	return s;
}

ckr_status
ckr_save(ckr_ctx *c, const char *path)
{
	const uint64_t number[] = { c->step, c->env.seed, c->skipped,
		c->samples, (uint64_t)c->scale.value, c->scale.good,
		c->best.worse };
	enum { NUMBERS = sizeof(number) / sizeof(*number) };
	char text[NUMBERS][24], best[32], scales[SCALES_TEXT];
	struct meta meta[] = {
		{ "model", c->lib ? c->lib->name : "" },
		{ "optimizer", ckr_optimizer(c) },
		{ "step", text[0] },
		{ "seed", text[1] },
		{ "skipped", text[2] },
		{ "rng", RNG_NAME },
		{ NULL, NULL }, { NULL, NULL }, { NULL, NULL },
		{ NULL, NULL }, { NULL, NULL }, { NULL, NULL },
	};
	size_t nmeta = 6;

	CKR_TRY(rt_need_quiet(c));
	if (c->per_step || c->samples)
		meta[nmeta++] = (struct meta){ "samples", text[3] };
	if (c->lib->loss_scaled) {
		meta[nmeta++] = (struct meta){ "loss_scale", text[4] };
		meta[nmeta++] = (struct meta){ "scale_good", text[5] };
	}
	snprintf(best, sizeof(best), "%.17g", c->best.loss);
	if (isfinite(c->best.loss))
		meta[nmeta++] = (struct meta){ "valid_best", best };
	if (c->best.worse)
		meta[nmeta++] = (struct meta){ "valid_worse", text[6] };
	if (c->lib->nadapter) {
		files_scales(c, scales);
		meta[nmeta++] = (struct meta){ SCALES_KEY, scales };
	}
	for (int i = 0; i < NUMBERS; i++)
		snprintf(text[i], sizeof(text[i]), "%llu",
		         (unsigned long long)number[i]);
	return write_some(c, path, is_saved, c->lib->nshared, meta, nmeta);
}

ckr_status
ckr_save_outputs(ckr_ctx *c, const char *path)
{
	CKR_TRY(rt_need_quiet(c));
	if (c->outputs != &c->plan)
		return err_set(&c->err, CKR_EARG, "outputs have no values "
		               "before a step has completed");
	return write_some(c, path, has_output_name, c->lib->program[0].ntensor,
	                  NULL, 0);
}
