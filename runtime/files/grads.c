/* Gradients of one step, as a safetensors file.
 *
 * They live in the arena from the step that makes them to the one that applies
 * them; each is written the moment it is ready.  Those of a scaled loss are
 * written as float32, with the scale taken out.
 */
#include "runtime/files/inside.h"

#include <stdlib.h>
#include <string.h>

struct grads {
	struct files *c;
	struct observer observer;
	struct tensor_writer o;
	uint32_t *tensor;               /* of entry i */
	size_t n;
};

static bool
is_grad(const struct ckr_program *p, const struct ckr_tensor *t)
{
	return t->kind == CKR_GRAD && t->param >= 0 && t->ready >= 0
	       && !p->tensor[t->param].tied;
}

/* The last gradient of every parameter, in the parameters' order. */
static bool
list_grads(struct files *c, struct grads *g)
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

		if (!is_grad(p, t))
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
begin_grads(struct files *c, struct grads *g, const char *path)
{
	const struct ckr_program *p = &c->lib->program[0];
	struct st_entry *entry;
	ckr_status s;

	if (!list_grads(c, g))
		return err_no_memory(c->err);
	if (!g->n)
		return err_set(c->err, CKR_EUNSUPPORTED, "%s computes no "
		               "gradients", c->world->library->path);
	entry = calloc(g->n, sizeof(*entry));
	if (!entry)
		return err_no_memory(c->err);
	for (size_t i = 0; i < g->n; i++) {
		const struct ckr_tensor *t = &p->tensor[g->tensor[i]];

		entry[i] = writer_entry(c, t, p->tensor[t->param].name, true);
		if (c->lib->loss_scaled)
			entry[i].dtype = CKR_F32;
	}
	s = writer_begin(c, &g->o, path, entry, g->n, NULL, 0);
	free(entry);
	return s;
}

/* ---- while the step runs ---- */

static ckr_status
write_ready_grads(void *user, const struct loaded_program *b, uint32_t i)
{
	struct grads *g = user;
	struct files *c = g->c;
	const struct ckr_env *env = stepping_env(c->steps);
	const float *scale = c->lib->loss_scaled ? &env->unscale : NULL;
	bool now = stepping_is_last(c->steps) && b->p == &c->lib->program[0];
	ckr_status s = CKR_OK, one;

	for (size_t k = 0; k < g->n && now && s != CKR_ERANK; k++) {
		const struct ckr_tensor *t = &b->p->tensor[g->tensor[k]];

		if (t->ready != (int32_t)i)
			continue;
		/* others may wait for what this one sends */
		one = writer_put_tensor(c, &g->o, k, b, t, scale);
		s = s == CKR_OK ? one : s;
	}
	return s;
}

void
grads_free(struct files *c)
{
	if (!c->grads)
		return;
	stepping_unobserve(c->steps, &c->grads->observer);
	writer_abort(&c->grads->o);
	free(c->grads->tensor);
	free(c->grads);
	c->grads = NULL;
}

static ckr_status
finish_grads(void *user, bool skipped)
{
	struct grads *g = user;
	struct files *c = g->c;
	ckr_status s;

	if (skipped)
		return CKR_OK;
	s = writer_commit(c, &g->o, CKR_OK);
	grads_free(c);
	return s;
}

ckr_status
files_save_grads(struct files *c, const char *path)
{
	struct grads *g;
	ckr_status s;

	grads_free(c);
	g = c->grads = calloc(1, sizeof(*g));
	if (!g)
		return err_no_memory(c->err);
	g->c = c;
	g->o.w.file.fd = -1;
	g->observer = (struct observer){ .after = write_ready_grads,
		.end = finish_grads, .user = g };
	stepping_observe(c->steps, &g->observer);
	s = begin_grads(c, g, path);
	if (s != CKR_OK)
		grads_free(c);
	return s;
}
