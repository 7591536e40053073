#include "runtime/ckrun/log.h"

#include <math.h>
#include <string.h>

#include "runtime/ckrun/events.h"
#include "runtime/support/json_write.h"

/* A number of a row under its name.  It reads back exactly: what is one f32
 * has nine digits. */
struct field {
	const char *key;
	double x;
	enum field_kind { SINGLE, DOUBLE, WHOLE, FLAG } kind;
	bool absent;
};

enum { FIELDS = 16 };

/* ---- rows as fields ---- */

static size_t
row_fields(const struct step_row *r, struct field f[FIELDS])
{
	static const struct score nothing = { 0, NAN, NAN, NAN, 0, NULL };
	const struct score *v = r->valid ? r->valid : &nothing;
	const struct field all[] = {
		{ "step", (double)r->step, WHOLE, false },
		{ "loss", r->loss, r->exact ? SINGLE : DOUBLE, !r->has_loss },
		{ "grad_norm", r->norm, SINGLE, !r->has_norm },
		{ "loss_scale", r->scale, SINGLE, !(r->scale > 0) },
		{ "epoch", r->epoch, DOUBLE, isnan(r->epoch) },
		{ "valid_loss", v->loss, SINGLE, !r->valid },
		{ "valid_accuracy", v->accuracy, SINGLE, isnan(v->accuracy) },
		{ "valid_perplexity", v->perplexity, SINGLE,
		  isnan(v->perplexity) },
		{ "valid_by_batch", 1, FLAG, !v->by_batch },
		{ "lr", r->lr, SINGLE, false },
		{ "seconds", r->sec, SINGLE, false },
		{ r->tokens ? "tokens" : "samples", (double)r->units, WHOLE,
		  false },
		{ "peak_bytes", (double)r->peak_bytes, WHOLE, false },
		{ "skipped", r->skipped, FLAG, !r->skipped },
	};

	memcpy(f, all, sizeof(all));
	return sizeof(all) / sizeof(*all);
}

static size_t
score_fields(const struct score *s, struct field f[FIELDS])
{
	const struct field all[] = {
		{ "samples", (double)s->samples, WHOLE, false },
		{ "loss", s->loss, SINGLE, false },
		{ "accuracy", s->accuracy, SINGLE, isnan(s->accuracy) },
		{ "perplexity", s->perplexity, SINGLE, isnan(s->perplexity) },
		{ "by_batch", 1, FLAG, !s->by_batch },
	};

	memcpy(f, all, sizeof(all));
	return sizeof(all) / sizeof(*all);
}

/* ---- forms ---- */

static int
digits(const struct field *f)
{
	return f->kind == SINGLE ? 9 : 17;
}

static void
put_number(FILE *out, const struct field *f)
{
	if (f->kind == FLAG)
		fputs(f->x > 0 ? "true" : "false", out);
	else if (f->kind == WHOLE)
		fprintf(out, "%.0f", f->x);
	else
		fprintf(out, "%.*g", digits(f), console_number(f->x));
}

/* JSON knows finite numbers only, and what is absent is left out. */
static void
put_json(FILE *out, const struct field *f, size_t n)
{
	struct json_out j = { .f = out, .tight = true };

	json_open(&j, NULL, '{', JSON_TIGHT);
	for (; n--; f++)
		if (f->absent)
			continue;
		else if (f->kind == FLAG)
			json_bool(&j, f->key, f->x > 0);
		else if (f->kind == WHOLE)
			json_print(&j, f->key, "%.0f", f->x);
		else
			json_real(&j, f->key, digits(f), f->x);
	json_close(&j);
	putc('\n', out);
}

/* All columns in every row: what is absent is empty. */
static void
put_csv(FILE *out, const struct field *f, size_t n)
{
	if (!ftello(out))
		for (size_t i = 0; i < n; i++)
			fprintf(out, "%s%s", f[i].key, i + 1 < n ? "," : "\n");
	for (size_t i = 0; i < n; i++) {
		if (!f[i].absent)
			put_number(out, &f[i]);
		fputc(i + 1 < n ? ',' : '\n', out);
	}
}

static void
put_fields(struct log *l, const struct field *f, size_t n)
{
	if (!l->file)
		return;
	if (l->csv)
		put_csv(l->file, f, n);
	else
		put_json(l->file, f, n);
	fflush(l->file);
}

/* ---- a log ---- */

ckr_status
log_open(struct log *l, ckr_ctx *m, const struct ckrun_options *o)
{
	size_t n = o->log ? strlen(o->log) : 0;

	*l = (struct log){ .path = o->log, .folder = o->tensorboard,
		.csv = n > 4 && !strcmp(o->log + n - 4, ".csv") };
	if (ckr_rank(m))
		return CKR_OK;
	if (o->log)
		l->file = fopen(o->log, o->resume ? "a" : "w");
	if (o->log && !l->file)
		return ckr_fail(m, CKR_EIO, "%s: cannot write: %m", o->log);
	/* where it is appended to, ftello tells of its end */
	if (l->file)
		fseeko(l->file, 0, SEEK_END);
	if (o->tensorboard)
		l->events = events_open(o->tensorboard);
	if (o->tensorboard && !l->events)
		return ckr_fail(m, CKR_EIO, "%s: cannot write: %m",
		                o->tensorboard);
	return CKR_OK;
}

void
log_row(struct log *l, const struct step_row *r)
{
	struct field f[FIELDS];
	size_t n = row_fields(r, f);

	put_fields(l, f, n);
	/* the step is what the others are drawn over */
	for (size_t i = 1; l->events && i < n; i++) {
		bool valid = !strncmp(f[i].key, "valid_", 6);
		char tag[40];

		if (f[i].absent || f[i].kind == FLAG)
			continue;
		snprintf(tag, sizeof(tag), "%s/%s", valid ? "valid" : "train",
		         f[i].key + (valid ? 6 : 0));
		events_put(l->events, r->step, tag, (float)f[i].x);
	}
	if (l->events)
		fflush(l->events);
}

void
log_score(struct log *l, const struct score *s)
{
	struct field f[FIELDS];

	put_fields(l, f, score_fields(s, f));
}

ckr_status
log_flush(struct log *l, ckr_ctx *m)
{
	if (l->file && (ferror(l->file) || fflush(l->file)))
		return ckr_fail(m, CKR_EIO, "%s: cannot write: %m", l->path);
	if (l->events && (ferror(l->events) || fflush(l->events)))
		return ckr_fail(m, CKR_EIO, "%s: cannot write: %m", l->folder);
	return CKR_OK;
}

void
log_close(struct log *l)
{
	if (l->file)
		fclose(l->file);
	if (l->events)
		fclose(l->events);
	l->file = l->events = NULL;
}
