/* Gradients of one step: as a safetensors file, and their norm.
 *
 * They live in the arena from the step that makes them to the one that applies
 * them; each is written the moment it is ready.  Those of a scaled loss are
 * written as float32, with the scale taken out.
 *
 * The norm of all gradients is what a compiled step has for clipping.  Kernels
 * compute it where clip is above 0: to have it without clipping, clip is
 * infinity, which scales nothing.  It lies in the arena until the last update
 * has read it, and is taken when it is ready.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/model/files.h"

struct grads {
	struct tensor_writer o;
	uint32_t *tensor;               /* of entry i */
	size_t n;
};

static bool
is_grad(const struct ckr_tensor *t)
{
	return t->kind == CKR_GRAD && t->param >= 0 && t->ready >= 0;
}

/* The last gradient of every parameter, in the parameters' order. */
static bool
list_grads(ckr_ctx *c, struct grads *g)
{
	const struct ckr_program *p = &c->lib->program[0];
	int64_t *of = malloc((p->ntensor + 1) * sizeof(*of));

	g->tensor = malloc((p->ntensor + 1) * sizeof(*g->tensor));
	if (!of || !g->tensor) {
		free(of);
		return false;
	}
	for (uint32_t i = 0; i < p->ntensor; i++)
		of[i] = -1;
	for (uint32_t i = 0; i < p->ntensor; i++) {
		const struct ckr_tensor *t = &p->tensor[i];

		if (!is_grad(t))
			continue;
		if (of[t->param] < 0
		    || p->tensor[of[t->param]].ready <= t->ready)
			of[t->param] = i;
	}
	for (uint32_t i = 0; i < p->ntensor; i++)
		if (of[i] >= 0)
			g->tensor[g->n++] = (uint32_t)of[i];
	free(of);
	return true;
}

static ckr_status
begin_grads(ckr_ctx *c, struct grads *g, const char *path)
{
	const struct ckr_program *p = &c->lib->program[0];
	struct st_entry *entry;
	ckr_status s;

	if (!list_grads(c, g))
		return rt_no_memory(c);
	if (!g->n)
		return err_set(&c->err, CKR_EUNSUPPORTED, "%s computes no "
		               "gradients", c->path);
	entry = calloc(g->n, sizeof(*entry));
	if (!entry)
		return rt_no_memory(c);
	for (size_t i = 0; i < g->n; i++) {
		const struct ckr_tensor *t = &p->tensor[g->tensor[i]];

		entry[i] = rt_entry(c, t, p->tensor[t->param].name);
		if (c->lib->loss_scaled)
			entry[i].dtype = CKR_F32;
	}
	s = writer_begin(c, &g->o, path, entry, g->n, NULL, 0);
	free(entry);
	return s;
}

ckr_status
ckr_save_grads(ckr_ctx *c, const char *path)
{
	ckr_status s;

	CKR_TRY(rt_need_quiet(c));
	grads_free(c);
	c->grads = calloc(1, sizeof(*c->grads));
	if (!c->grads)
		return rt_no_memory(c);
	c->grads->o.w.file.fd = -1;
	s = begin_grads(c, c->grads, path);
	if (s != CKR_OK)
		grads_free(c);
	return s;
}

ckr_status
grads_after(ckr_ctx *c, const struct loaded_program *b, uint32_t step)
{
	const float *scale = c->lib->loss_scaled ? &c->env.unscale : NULL;
	struct grads *g = c->grads;
	ckr_status s = CKR_OK, one;

	for (size_t i = 0; i < g->n && s != CKR_ERANK; i++) {
		const struct ckr_tensor *t = &b->p->tensor[g->tensor[i]];

		if (t->ready != (int32_t)step)
			continue;
		/* others may wait for what this one sends */
		one = writer_put_tensor(c, &g->o, i, b, t, scale);
		s = s == CKR_OK ? one : s;
	}
	return s;
}

ckr_status
grads_finish(ckr_ctx *c)
{
	ckr_status s = writer_commit(c, &c->grads->o, CKR_OK);

	grads_free(c);
	return s;
}

void
grads_free(ckr_ctx *c)
{
	if (!c->grads)
		return;
	writer_abort(&c->grads->o);
	free(c->grads->tensor);
	free(c->grads);
	c->grads = NULL;
}

/* ---- the norm ---- */

void
norm_open(ckr_ctx *c)
{
	const struct ckr_program *p = &c->lib->program[0];

	for (uint32_t i = 0; i < p->ntensor; i++) {
		const struct ckr_tensor *t = &p->tensor[i];

		if (t->ready >= 0 && t->dtype == CKR_F32 && rt_nelem(t) == 1
		    && !strcmp(p->instr[t->ready].op, "grad_norm"))
			c->norm.tensor = t;
	}
	c->norm.value = NAN;
}

float
norm_clip(const ckr_ctx *c, double clip)
{
	return c->norm.wanted && !(clip > 0) ? INFINITY : (float)clip;
}

void
norm_after(ckr_ctx *c, const struct loaded_program *b, uint32_t step)
{
	const struct ckr_tensor *t = c->norm.tensor;

	if (t && b->p == &c->lib->program[0] && t->ready == (int32_t)step
	    && c->env.clip > 0)
		c->norm.value = rt_number(c, t, rt_at(c, b, 0, t));
}

ckr_status
ckr_grad_norm(ckr_ctx *c, double *norm)
{
	CKR_TRY(rt_need_ready(c));
	if (!c->norm.tensor)
		return err_set(&c->err, CKR_EUNSUPPORTED, "%s has no global "
		               "gradient norm: it updates in backward, or does "
		               "not train", c->path);
	c->norm.wanted = true;
	if (norm)
		*norm = c->norm.value;
	return CKR_OK;
}
