/* Weights, checkpoints and outputs as safetensors files. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/model/rt.h"
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

/* The tensor's value from the file, converted. */
static ckr_status
read_tensor(ckr_ctx *c, const struct array_file *f, const struct array *a,
            const struct ckr_tensor *t)
{
	void *flat = rt_flat(c, &c->plan, t), *dense = flat;
	ckr_status s;

	if (!flat)
		dense = malloc(rt_whole(c, t).nbytes + 1);
	if (!dense)
		return rt_no_memory(c);
	s = array_read(f, a, 0, a->nelem, t->dtype, dense, &c->err);
	if (s == CKR_OK && (!flat || c->world.count > 1))
		s = rt_put(c, t, dense);
	if (!flat)
		free(dense);
	return s;
}

/* Whether it can be read and converted: as read_tensor, to nowhere. */
static ckr_status
try_tensor(ckr_ctx *c, const struct array_file *f, const struct array *a,
           const struct ckr_tensor *t)
{
	enum { PIECE = 1 << 17 };
	void *piece = malloc((size_t)PIECE * dtype_row[t->dtype].nbytes);
	ckr_status s = piece ? CKR_OK : rt_no_memory(c);

	for (uint64_t i = 0; s == CKR_OK && i < a->nelem; i += PIECE)
		s = array_read(f, a, i,
		               a->nelem - i < PIECE ? a->nelem - i : PIECE,
		               t->dtype, piece, &c->err);
	free(piece);
	return s;
}

static bool
is_state(const struct ckr_tensor *t)
{
	return t->kind == CKR_STATE && t->state && strcmp(t->state, "grad");
}

static bool
is_saved(const struct ckr_tensor *t)
{
	return rt_is_weight(t) || is_state(t);
}

typedef bool want_fn(const struct ckr_tensor *);

/* All wanted tensors are in the file, with the right shapes. */
static ckr_status
check_file(ckr_ctx *c, const struct array_file *f, want_fn *want,
           const char *what)
{
	const struct ckr_program *p = &c->lib->program[0];
	const char *first = NULL;
	char name[NAME_TEXT];
	unsigned missing = 0, all = 0;

	for (uint32_t i = 0; i < c->lib->nshared; i++) {
		const struct ckr_tensor *t = &p->tensor[i];
		const struct array *a;

		if (!want(t))
			continue;
		all++;
		a = array_find(f, t->name);
		if (a) {
			CKR_TRY(need_same_form(c, f, a, t));
			continue;
		}
		missing++;
		if (!first)
			first = t->name;
	}
	if (!missing)
		return CKR_OK;
	return err_set(&c->err, CKR_EFORMAT, "%s: %u of %u %s are missing; the "
	               "first is '%s'", f->path, missing, all, what,
	               err_name(name, sizeof(name), first));
}

typedef ckr_status each_fn(ckr_ctx *, const struct array_file *,
                           const struct array *, const struct ckr_tensor *);

static ckr_status
for_all(ckr_ctx *c, const struct array_file *f, want_fn *want, each_fn *each)
{
	const struct ckr_program *p = &c->lib->program[0];

	for (uint32_t i = 0; i < c->lib->nshared; i++)
		if (want(&p->tensor[i]))
			CKR_TRY(each(c, f, array_find(f, p->tensor[i].name),
			             &p->tensor[i]));
	return CKR_OK;
}

/* All or nothing: the file is read to its end before the first byte of the
 * model changes.  While the model is being opened there is nothing to keep. */
static ckr_status
load(ckr_ctx *c, const struct array_file *f, want_fn *want)
{
	ckr_status s;

	if (c->ready)
		CKR_TRY(for_all(c, f, want, try_tensor));
	s = for_all(c, f, want, read_tensor);
	c->ready &= s == CKR_OK;
	if (s == CKR_OK)
		rt_note_unread(c, f);
	return s;
}

ckr_status
rt_load_weights(ckr_ctx *c, const char *path)
{
	struct array_file f;
	ckr_status s;

	CKR_TRY(array_open(&f, path, &c->err));
	s = check_file(c, &f, rt_is_weight, "parameters and buffers");
	if (s == CKR_OK)
		s = load(c, &f, rt_is_weight);
	array_close(&f);
	return s;
}

ckr_status
ckr_load_weights(ckr_ctx *c, const char *path)
{
	CKR_TRY(rt_need_ready(c));
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
	return err_set(&c->err, CKR_EFORMAT, "%s: not a checkpoint: expected "
	               "as %s a whole number below 2^64, found '%s'", f->path,
	               key, err_name(text, sizeof(text), s));
}

/* Seed and step would give other numbers, and dropout other masks. */
static ckr_status
need_same_rng(ckr_ctx *c, const struct array_file *f)
{
	const char *was = array_meta(f, "rng");
	char name[NAME_TEXT];

	if (!was || !strcmp(was, RNG_NAME))
		return CKR_OK;
	return err_set(&c->err, CKR_EFORMAT, "%s: the run drew its random "
	               "numbers by '%s', expected " RNG_NAME "; start from its "
	               "weights (--init)", f->path,
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
	               "start from its weights (--init)", f->path,
	               err_name(name, sizeof(name), was), is, name);
}

/* Where a run has come to. */
struct progress {
	uint64_t step, seed, skipped, scale, good;
};

/* What is_saved wants is there, and the file is a checkpoint. */
static ckr_status
check_checkpoint(ckr_ctx *c, const struct array_file *f, struct progress *p)
{
	if (!array_meta(f, "step") || !array_meta(f, "seed"))
		return err_set(&c->err, CKR_EFORMAT, "%s: not a checkpoint: "
		               "its metadata lacks step or seed; to start from "
		               "its weights give it as initial weights "
		               "(--init)", f->path);
	CKR_TRY(meta_uint(c, f, "step", &p->step));
	CKR_TRY(meta_uint(c, f, "seed", &p->seed));
	CKR_TRY(meta_uint(c, f, "skipped", &p->skipped));
	CKR_TRY(meta_uint(c, f, "loss_scale", &p->scale));
	CKR_TRY(meta_uint(c, f, "scale_good", &p->good));
	if (!scale_is_possible(p->scale))
		return err_set(&c->err, CKR_EFORMAT, "%s: not a checkpoint: "
		               "expected as loss_scale a power of two up to "
		               "2^24, found %llu", f->path,
		               (unsigned long long)p->scale);
	CKR_TRY(need_same_rng(c, f));
	CKR_TRY(need_same_optimizer(c, f));
	CKR_TRY(check_file(c, f, rt_is_weight, "parameters and buffers"));
	return check_file(c, f, is_state, "tensors of optimizer state");
}

ckr_status
ckr_resume(ckr_ctx *c, const char *path)
{
	struct array_file f;
	struct progress p = { .scale = SCALE_FIRST };
	ckr_status s;

	CKR_TRY(rt_need_ready(c));
	CKR_TRY(array_open(&f, path, &c->err));
	s = check_checkpoint(c, &f, &p);
	if (s == CKR_OK)
		s = load(c, &f, is_saved);
	array_close(&f);
	if (s == CKR_OK) {
		c->step = p.step;
		c->skipped = p.skipped > p.step ? 0 : p.skipped;
		c->env.seed = p.seed;
		c->scale.value = (double)p.scale;
		c->scale.good = p.good;
	}
	return s;
}

/* ---- writing ---- */

ckr_status
rt_write(ckr_ctx *c, struct st_writer *w, size_t entry, const struct bound *b,
         const struct ckr_tensor *t)
{
	const void *from;
	void *copy;
	ckr_status s = rt_read(c, b, t, &from, &copy);

	if (s == CKR_OK)
		s = st_write(w, entry, 0, from, rt_whole(c, t).nbytes, &c->err);
	free(copy);
	return s;
}

struct st_entry
rt_entry(const ckr_ctx *c, const struct ckr_tensor *t, const char *name)
{
	struct st_entry e = { .name = name, .dtype = t->dtype,
	                      .rank = t->rank };
	struct ckr_tensor whole = rt_whole(c, t);

	memcpy(e.dim, whole.dim, sizeof(e.dim));
	return e;
}

/* The tensors listed, as they are now. */
static ckr_status
write_file(ckr_ctx *c, const char *path, const uint32_t *list, size_t n,
           const struct meta *meta, size_t nmeta)
{
	const struct ckr_tensor *tensor = c->lib->program[0].tensor;
	struct st_entry *entry = calloc(n + 1, sizeof(*entry));
	struct st_writer w;
	ckr_status s;

	if (!entry)
		return rt_no_memory(c);
	for (size_t i = 0; i < n; i++)
		entry[i] = rt_entry(c, &tensor[list[i]], tensor[list[i]].name);
	s = st_begin(&w, path, entry, n, meta, nmeta, &c->err);
	free(entry);
	if (s != CKR_OK)
		return s;
	for (size_t i = 0; i < n && s == CKR_OK; i++)
		s = rt_write(c, &w, i, &c->plan, &tensor[list[i]]);
	if (s == CKR_OK)
		return st_commit(&w, &c->err);
	st_abort(&w);
	return s;
}

static bool
is_output(const struct ckr_tensor *t)
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
	s = write_file(c, path, list, n, meta, nmeta);
	free(list);
	return s;
}

ckr_status
ckr_save(ckr_ctx *c, const char *path)
{
	const uint64_t number[] = { c->step, c->env.seed, c->skipped,
		(uint64_t)c->scale.value, c->scale.good };
	char text[5][24];
	struct meta meta[] = {
		{ "model", c->lib ? c->lib->name : "" },
		{ "optimizer", ckr_optimizer(c) },
		{ "step", text[0] },
		{ "seed", text[1] },
		{ "skipped", text[2] },
		{ "rng", RNG_NAME },
		{ "loss_scale", text[3] },
		{ "scale_good", text[4] },
	};
	size_t nmeta = sizeof(meta) / sizeof(*meta);

	CKR_TRY(rt_need_ready(c));
	if (!c->lib->loss_scaled)
		nmeta -= 2;
	for (int i = 0; i < 5; i++)
		snprintf(text[i], sizeof(text[i]), "%llu",
		         (unsigned long long)number[i]);
	return write_some(c, path, is_saved, c->lib->nshared, meta, nmeta);
}

ckr_status
ckr_save_outputs(ckr_ctx *c, const char *path)
{
	CKR_TRY(rt_need_ready(c));
	if (!c->valid_outputs)
		return err_set(&c->err, CKR_EARG, "outputs have no values "
		               "before a step has run to its end");
	return write_some(c, path, is_output, c->lib->program[0].ntensor, NULL,
	                  0);
}
