#include "runtime/ckrun/sides.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static ckr_status
copy_error(struct sides *p, const struct compared_side *s, ckr_status st)
{
	const char *why = ckr_error(s->m);
	bool named = !strncmp(why, s->so, strlen(s->so));

	return st == CKR_OK ? st
	       : err_set(&p->err, st, "%s%s%s", named ? "" : s->so,
	                 named ? "" : ": ", why);
}

/* ---- weights ---- */

bool
sides_is_weight(const struct ckr_info *i)
{
	return !strcmp(i->kind, "param") || !strcmp(i->kind, "buffer");
}

static bool
equal_dims(const int64_t *a, const int64_t *b, int rank)
{
	return !memcmp(a, b, (size_t)rank * sizeof(*a));
}

bool
sides_find(ckr_ctx *m, const struct ckr_info *of, struct ckr_info *found)
{
	return ckr_find(m, of->name, found) == CKR_OK && sides_is_weight(found)
	       && found->rank == of->rank
	       && equal_dims(found->dim, of->dim, of->rank);
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
	ckr_status s = x && y ? CKR_OK : err_no_memory(&p->err);
	size_t at;

	if (s == CKR_OK && !dtype_convert(y, dt, x, st, to->nbytes
	                                  / dtype_row[dt].nbytes, &at))
		s = err_set(&p->err, CKR_EFORMAT, "'%s' of %s has a value that "
		            "does not fit %s, its dtype in %s", from->name,
		            p->s[0].so,
		            to->dtype, p->s[1].so);
	if (s == CKR_OK)
		s = copy_error(p, &p->s[1], ckr_set(p->s[1].m, to->name, y,
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
check_comparable(struct sides *p)
{
	const struct compared_side *a = &p->s[0], *b = &p->s[1];
	const char *by = ckr_optimizer(a->m), *other = ckr_optimizer(b->m);

	if (strcmp(by, other))
		return err_set(&p->err, CKR_EARG, "%s uses optimizer %s, %s "
		               "uses %s: compile both with the same "
		               "--optimizer", a->so, by,
		               b->so, other);
	if (a->data.units == b->data.units
	    && a->data.unit_tokens == b->data.unit_tokens)
		return CKR_OK;
	return err_set(&p->err, CKR_EARG, "a step takes %llu %s in %s and %llu "
	               "in %s: compile both with the same input shapes",
	               (unsigned long long)a->data.units,
	               a->data.unit_tokens ? "tokens" : "samples", a->so,
	               (unsigned long long)b->data.units, b->so);
}

/* ---- gradients in files ---- */

static ckr_status
make_folder(struct sides *p)
{
	const char *tmp = getenv("TMPDIR");
	int n = snprintf(p->folder, sizeof(p->folder), "%s/ckrun-XXXXXX",
	                 tmp && *tmp ? tmp : "/tmp");
	char text[NAME_TEXT];

	if (n >= (int)sizeof(p->folder) || !mkdtemp(p->folder)) {
		err_set(&p->err, CKR_EIO, "%s: cannot create the directory for "
		        "gradients: %m; set TMPDIR to another directory",
		        err_name(text, sizeof(text), p->folder));
		*p->folder = '\0';
		return CKR_EIO;
	}
	for (int k = 0; k < 2; k++)
		snprintf(p->s[k].path, sizeof(p->s[k].path), "%s/%c", p->folder,
		         '0' + k);
	return CKR_OK;
}

/* What side k has written, if anything. */
static ckr_status
read_grads(struct sides *p, int k, struct array_file *to)
{
	ckr_status st;

	if (access(p->s[k].path, F_OK))
		return CKR_OK;
	st = array_open(to, p->s[k].path, &p->err);
	unlink(p->s[k].path);
	return st;
}

/* ---- what rounding makes of gradients ---- */

/* The last bit of every element of float parameters. */
static ckr_status
nudge(struct sides *p, ckr_ctx *m)
{
	struct ckr_info of;

	for (size_t i = 0; ckr_tensor(m, i, &of) == CKR_OK; i++) {
		size_t size = dtype_row[dtype_from_text(of.dtype)].nbytes;
		char *x;

		if (strcmp(of.kind, "param") || !strchr("fb", of.dtype[0])
		    || !strcmp(of.dtype, "bool"))
			continue;
		x = sides_get(m, &of);
		if (!x)
			return err_no_memory(&p->err);
		for (size_t at = 0; at < of.nbytes; at += size)
			x[at] ^= 1;
		ckr_set(m, of.name, x, of.nbytes);
		free(x);
	}
	return CKR_OK;
}

/* A step of the second side by itself.  Without gradients nothing is known. */
static ckr_status
step_nudged(struct sides *p, struct ckrun_options *o)
{
	struct compared_side *s = &p->s[1];
	struct ckr_hyper h = ckr_model_hyper(s->m);
	uint64_t done = ckr_step_count(s->m);

	options_default(o, &h);
	h = start_hyper(o, done, done + 1);
	if (!(ckr_loss_scale(s->m) > 0))
		h.loss_scale = 0;
	CKR_TRY(nudge(p, s->m));
	if (ckr_save_grads(s->m, s->path) != CKR_OK
	    || ckr_step(s->m, &h, &s->loss) != CKR_OK)
		return CKR_OK;
	return read_grads(p, 1, &p->nudged);
}

static ckr_status
open_side(struct sides *p, int k, const struct ckrun_options *o,
          uint64_t ranks)
{
	struct compared_side *s = &p->s[k];
	struct ckrun_options of = *o;

	of.ranks = ranks;
	return copy_error(p, s, start_model(&s->m, &s->data, &of, s->so));
}

static void
close_side(struct compared_side *s)
{
	array_close(&s->grads);
	data_close(&s->data);
	ckr_close(s->m);
	unlink(s->path);
	s->m = NULL;
}

static ckr_status
open_comparable(struct sides *p, const struct ckrun_options *o, uint64_t ranks)
{
	CKR_TRY(open_side(p, 1, o, ranks));
	return check_comparable(p);
}

/* With the parameters of the first.  --ranks is about that one; if the second
 * does not take its batch on as few ranks as it can have, then perhaps on as
 * many. */
static ckr_status
open_second(struct sides *p, const struct ckrun_options *o)
{
	uint32_t ranks = ckr_ranks(p->s[0].m);
	ckr_status s = open_comparable(p, o, 0);

	if (s != CKR_OK && ranks > 1) {
		struct err why = p->err;

		close_side(&p->s[1]);
		if (open_comparable(p, o, ranks) == CKR_OK)
			s = CKR_OK;
		else
			p->err = why;
	}
	CKR_TRY(s);
	return o->init.n || o->resume ? CKR_OK : copy_weights(p);
}

static ckr_status
find_nudged(struct sides *p, const struct ckrun_options *of)
{
	struct ckrun_options o = *of;
	ckr_status st;

	o.quiet = true;
	CKR_TRY(make_folder(p));
	st = open_second(p, &o);
	if (st == CKR_OK)
		st = step_nudged(p, &o);
	close_side(&p->s[1]);
	return st;
}

/* ---- both ---- */

ckr_status
sides_open(struct sides *p, const struct ckrun_options *o)
{
	*p = (struct sides){ .s = { { .so = o->model },
	                           { .so = o->against } } };
	p->nudged.fd = -1;
	for (int k = 0; k < 2; k++)
		p->s[k].grads.fd = -1;
	CKR_TRY(open_side(p, 0, o, o->ranks));
	CKR_TRY(find_nudged(p, o));
	return open_second(p, o);
}

void
sides_close(struct sides *p)
{
	for (int k = 0; k < 2; k++)
		close_side(&p->s[k]);
	array_close(&p->nudged);
	if (*p->folder)
		rmdir(p->folder);
}

ckr_status
sides_step(struct sides *p, const struct ckr_hyper *h)
{
	for (int k = 0; k < 2; k++) {
		struct compared_side *s = &p->s[k];
		struct ckr_hyper own = *h;

		if (!(ckr_loss_scale(s->m) > 0))
			own.loss_scale = 0;
		CKR_TRY(copy_error(p, s, ckr_step(s->m, &own, &s->loss)));
	}
	return CKR_OK;
}

/* ---- gradients ---- */

ckr_status
sides_want_grads(struct sides *p)
{
	for (int k = 0; k < 2; k++) {
		struct compared_side *s = &p->s[k];
		ckr_status st = ckr_save_grads(s->m, s->path);

		if (st != CKR_EUNSUPPORTED)
			CKR_TRY(copy_error(p, s, st));
	}
	return CKR_OK;
}

ckr_status
sides_read_grads(struct sides *p)
{
	for (int k = 0; k < 2; k++)
		CKR_TRY(read_grads(p, k, &p->s[k].grads));
	return CKR_OK;
}

static bool
find_grad(const struct array_file *f, const char *name, int rank,
          const int64_t *dim, struct elements *g)
{
	const struct array *x = f->n ? array_find(f, name) : NULL;

	if (!x || x->rank != rank || !equal_dims(x->dim, dim, rank))
		return false;
	*g = (struct elements){ .dtype = x->dtype, .file = f, .array = x };
	return true;
}

bool
sides_nudged(const struct sides *p, const char *name, int rank,
             const int64_t *dim, struct elements *g)
{
	return find_grad(&p->nudged, name, rank, dim, g);
}

bool
sides_grads(const struct sides *p, const char *name, int rank,
            const int64_t *dim, struct elements g[2])
{
	return find_grad(&p->s[0].grads, name, rank, dim, &g[0])
	       && find_grad(&p->s[1].grads, name, rank, dim, &g[1]);
}
