#include "runtime/ckrun/sides.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static ckr_status
told(struct sides *p, const struct side *s, ckr_status st)
{
	const char *why = ckr_error(s->m);
	bool named = !strncmp(why, s->so, strlen(s->so));

	return st == CKR_OK ? st
	       : err_set(&p->err, st, "%s%s%s", named ? "" : s->so,
	                 named ? "" : ": ", why);
}

static ckr_status
no_memory(struct sides *p)
{
	return err_set(&p->err, CKR_ENOMEM, "out of memory");
}

/* ---- weights ---- */

bool
sides_is_weight(const struct ckr_info *i)
{
	return !strcmp(i->kind, "param") || !strcmp(i->kind, "buffer");
}

static bool
same_dims(const int64_t *a, const int64_t *b, int rank)
{
	return !memcmp(a, b, (size_t)rank * sizeof(*a));
}

bool
sides_find(ckr_ctx *m, const struct ckr_info *of, struct ckr_info *found)
{
	return ckr_find(m, of->name, found) == CKR_OK && sides_is_weight(found)
	       && found->rank == of->rank
	       && same_dims(found->dim, of->dim, of->rank);
}

char *
sides_get(ckr_ctx *m, const struct ckr_info *i)
{
	char *x = malloc(i->nbytes + 1);

	if (x && ckr_get(m, i->name, x, i->nbytes) == CKR_OK)
		return x;
	free(x);
	return NULL;
}

static ckr_status
copy_weight(struct sides *p, const struct ckr_info *from,
            const struct ckr_info *to)
{
	uint8_t st = dtype_from_text(from->dtype);
	uint8_t dt = dtype_from_text(to->dtype);
	char *x = sides_get(p->s[0].m, from), *y = malloc(to->nbytes + 1);
	ckr_status s = x && y ? CKR_OK : no_memory(p);
	size_t at;

	if (s == CKR_OK && !dtype_convert(y, dt, x, st, to->nbytes
	                                  / dtype_row[dt].nbytes, &at))
		s = err_set(&p->err, CKR_EFORMAT, "'%s' of %s does not fit %s, "
		            "its type in %s", from->name, p->s[0].so,
		            to->dtype, p->s[1].so);
	if (s == CKR_OK)
		s = told(p, &p->s[1], ckr_set(p->s[1].m, to->name, y,
		                              to->nbytes));
	free(x);
	free(y);
	return s;
}

static ckr_status
copy_weights(struct sides *p)
{
	struct ckr_info from, to;

	for (size_t i = 0; ckr_tensor(p->s[0].m, i, &from) == CKR_OK; i++)
		if (sides_is_weight(&from) && sides_find(p->s[1].m, &from, &to))
			CKR_TRY(copy_weight(p, &from, &to));
	return CKR_OK;
}

/* ---- opening ---- */

/* What cannot be compared at all. */
static ckr_status
need_alike(struct sides *p)
{
	const struct side *a = &p->s[0], *b = &p->s[1];
	const char *by = ckr_optimizer(a->m), *other = ckr_optimizer(b->m);

	if (strcmp(by, other))
		return err_set(&p->err, CKR_EARG, "%s updates by %s, %s by %s: "
		               "compile both with one --optimizer", a->so, by,
		               b->so, other);
	if (a->data.units == b->data.units
	    && a->data.unit_tokens == b->data.unit_tokens)
		return CKR_OK;
	return err_set(&p->err, CKR_EARG, "a step takes %llu %s in %s and %llu "
	               "in %s: compile both with the same extents",
	               (unsigned long long)a->data.units,
	               a->data.unit_tokens ? "tokens" : "samples", a->so,
	               (unsigned long long)b->data.units, b->so);
}

ckr_status
sides_open(struct sides *p, const struct options *o)
{
	struct options of = *o;

	*p = (struct sides){ .s = { { .so = o->model },
	                           { .so = o->against } } };
	for (int k = 0; k < 2; k++)
		p->s[k].grads.fd = -1;
	for (int k = 0; k < 2; k++) {
		struct side *s = &p->s[k];

		/* --ranks is about the model that is looked at */
		if (k)
			of.ranks = 0;
		CKR_TRY(told(p, s, start_model(&s->m, &s->data, &of, s->so)));
	}
	CKR_TRY(need_alike(p));
	return o->init.n || o->resume ? CKR_OK : copy_weights(p);
}

void
sides_close(struct sides *p)
{
	for (int k = 0; k < 2; k++) {
		struct side *s = &p->s[k];

		array_close(&s->grads);
		data_close(&s->data);
		ckr_close(s->m);
		if (s->path)
			unlink(s->path);
		free(s->path);
	}
	if (*p->folder)
		rmdir(p->folder);
}

ckr_status
sides_step(struct sides *p, const struct ckr_hyper *h)
{
	for (int k = 0; k < 2; k++) {
		struct side *s = &p->s[k];
		struct ckr_hyper own = *h;

		if (!(ckr_loss_scale(s->m) > 0))
			own.loss_scale = 0;
		CKR_TRY(told(p, s, ckr_step(s->m, &own, &s->loss)));
	}
	return CKR_OK;
}

/* ---- gradients ---- */

static ckr_status
make_folder(struct sides *p)
{
	const char *tmp = getenv("TMPDIR");
	int n = snprintf(p->folder, sizeof(p->folder), "%s/ckrun-XXXXXX",
	                 tmp && *tmp ? tmp : "/tmp");
	char text[NAME_TEXT];

	if (n < (int)sizeof(p->folder) && mkdtemp(p->folder))
		return CKR_OK;
	err_set(&p->err, CKR_EIO, "%s: cannot be made: %m; TMPDIR says where "
	        "gradients are kept",
	        err_name(text, sizeof(text), p->folder));
	*p->folder = '\0';
	return CKR_EIO;
}

ckr_status
sides_want_grads(struct sides *p)
{
	CKR_TRY(make_folder(p));
	for (int k = 0; k < 2; k++) {
		struct side *s = &p->s[k];
		size_t n = strlen(p->folder) + 3;
		ckr_status st;

		s->path = malloc(n);
		if (!s->path)
			return no_memory(p);
		snprintf(s->path, n, "%s/%d", p->folder, k);
		st = ckr_save_grads(s->m, s->path);
		if (st != CKR_EUNSUPPORTED)
			CKR_TRY(told(p, s, st));
	}
	return CKR_OK;
}

ckr_status
sides_read_grads(struct sides *p)
{
	for (int k = 0; k < 2; k++) {
		struct side *s = &p->s[k];

		if (access(s->path, F_OK))
			continue;
		CKR_TRY(array_open(&s->grads, s->path, &p->err));
		unlink(s->path);
	}
	return CKR_OK;
}

bool
sides_grads(const struct sides *p, const char *name, int rank,
            const int64_t *dim, struct elements g[2])
{
	for (int k = 0; k < 2; k++) {
		const struct array_file *f = &p->s[k].grads;
		const struct array *x = f->n ? array_find(f, name) : NULL;

		if (!x || x->rank != rank || !same_dims(x->dim, dim, rank))
			return false;
		g[k] = (struct elements){ .dtype = x->dtype, .file = f,
		                        .array = x };
	}
	return true;
}
