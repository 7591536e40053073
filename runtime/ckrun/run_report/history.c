/* Reader of the logs of runs, JSON lines or CSV. */
#include "runtime/ckrun/run_report/history.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/support/json.h"

/* Beside the series. */
enum { K_STEP = NSERIES, K_SECONDS, K_SAMPLES, K_TOKENS, K_PEAK, K_SKIPPED,
       KEYS, UNKNOWN = -1 };

enum { LINE = 1 << 16, COLUMNS = 64 };

static const char *const key_name[KEYS] = {
	[S_LOSS] = "loss", [S_VALID_LOSS] = "valid_loss",
	[S_ACCURACY] = "valid_accuracy", [S_PERPLEXITY] = "valid_perplexity",
	[S_NORM] = "grad_norm", [S_LR] = "lr", [S_SPEED] = "",
	[S_SCALE] = "loss_scale", [K_STEP] = "step", [K_SECONDS] = "seconds",
	[K_SAMPLES] = "samples", [K_TOKENS] = "tokens",
	[K_PEAK] = "peak_bytes", [K_SKIPPED] = "skipped",
};

struct values {
	double v[KEYS];
	bool has[KEYS];
};

struct log_reader {
	FILE *f;
	uint64_t line;                  /* from 1 */
	size_t size;
	char text[LINE + 1];
	bool too_long;
	int column[COLUMNS];            /* of CSV: its key */
	size_t ncolumn;                 /* 0: JSON lines */
};

static int
find_key(const char *name)
{
	for (int k = 0; k < KEYS; k++)
		if (*name && !strcmp(key_name[k], name))
			return k;
	return UNKNOWN;
}

/* ---- lines ---- */

/* The next one, without what ends it; false: there is none. */
static bool
next_log_line(struct log_reader *r)
{
	int c = getc(r->f);

	r->size = 0;
	r->too_long = false;
	if (c == EOF)
		return false;
	for (; c != EOF && c != '\n'; c = getc(r->f)) {
		r->too_long |= r->size == LINE;
		if (r->size < LINE)
			r->text[r->size++] = (char)c;
	}
	while (r->size && strchr(" \t\r", r->text[r->size - 1])
	       && r->text[r->size - 1])
		r->size--;
	r->text[r->size] = '\0';
	r->line++;
	return true;
}

static bool
read_log_member(struct json *j, const char *key, void *to)
{
	struct values *v = to;
	int k = find_key(key);
	bool is_true = k == K_SKIPPED && json_word(j, "true");
	bool is_null = !is_true && k != UNKNOWN && json_word(j, "null");

	if (k == UNKNOWN || (k == K_SKIPPED && !is_true))
		return json_skip(j);
	v->has[k] = true;
	v->v[k] = is_null ? NAN : 1;
	return is_true || is_null || json_number(j, &v->v[k]);
}

/* NULL, or why it is no row. */
static const char *
read_json(struct log_reader *r, struct values *v)
{
	struct json j = { .text = r->text, .size = r->size };

	if (json_object(&j, read_log_member, v) && json_end(&j))
		return NULL;
	return j.fault ? j.fault : "not a JSON object";
}

/* A field begins at *at; behind it then.  NULL: none is left. */
static char *
next_field(char **at)
{
	char *field = *at, *end;

	if (!field)
		return NULL;
	end = strchr(field, ',');
	*at = end ? end + 1 : NULL;
	if (end)
		*end = '\0';
	return field;
}

static const char *
read_csv(struct log_reader *r, struct values *v)
{
	char *at = r->text, *field, *end;
	size_t n = 0;

	for (; (field = next_field(&at)); n++) {
		int k = n < r->ncolumn ? r->column[n] : UNKNOWN;

		if (k == UNKNOWN || !*field)
			continue;
		v->has[k] = true;
		v->v[k] = strtod(field, &end);
		if (k == K_SKIPPED)
			v->has[k] = !strcmp(field, "true");
		else if (*end)
			return "a field is not a number";
	}
	return n == r->ncolumn ? NULL : "the number of fields differs from the "
	                                "first line";
}

/* The first line says which of both it is; false: neither. */
static bool
read_columns(struct log_reader *r)
{
	char *at = r->text, *field;
	bool has_step = false;

	for (; (field = next_field(&at)) && r->ncolumn < COLUMNS;) {
		r->column[r->ncolumn++] = find_key(field);
		has_step |= !strcmp(field, "step");
	}
	if (!has_step || field)
		r->ncolumn = 0;
	return r->ncolumn;
}

/* ---- rows ---- */

static void
leave_out(struct history *h, const struct log_reader *r, const char *why)
{
	if (h->broken++)
		return;
	h->broken_line = r->line;
	snprintf(h->why, sizeof(h->why), "%s", why);
}

static bool
make_room(struct history *h)
{
	size_t room = h->room ? 2 * h->room : 1024;
	struct moment *row;

	if (h->n < h->room)
		return true;
	row = realloc(h->row, room * sizeof(*row));
	if (!row)
		return false;
	h->row = row;
	h->room = room;
	return true;
}

static void
add_sums(struct history *h, const struct values *v)
{
	int unit = v->has[K_TOKENS] ? K_TOKENS : K_SAMPLES;

	if (v->has[K_SECONDS] && isfinite(v->v[K_SECONDS]))
		h->seconds += v->v[K_SECONDS];
	if (v->has[unit] && isfinite(v->v[unit]))
		h->units += v->v[unit];
	h->tokens |= v->has[K_TOKENS];
	if (v->has[K_PEAK] && v->v[K_PEAK] > h->peak_bytes)
		h->peak_bytes = v->v[K_PEAK];
	h->skipped += v->has[K_SKIPPED];
}

/* False: no memory. */
static bool
add_moment(struct history *h, struct values *v)
{
	int unit = v->has[K_TOKENS] ? K_TOKENS : K_SAMPLES;
	struct moment m = { .step = v->v[K_STEP] };

	while (h->n && h->row[h->n - 1].step >= m.step) {
		h->n--;
		h->again++;
	}
	v->has[S_SPEED] = v->has[unit] && v->has[K_SECONDS]
		&& v->v[K_SECONDS] > 0;
	if (v->has[S_SPEED])
		v->v[S_SPEED] = v->v[unit] / v->v[K_SECONDS];
	for (int s = 0; s < NSERIES; s++) {
		m.has |= (uint16_t)(v->has[s] << s);
		m.v[s] = (float)v->v[s];
		if (!isfinite(m.v[s]))
			m.v[s] = NAN;
	}
	if (!make_room(h))
		return false;
	h->row[h->n++] = m;
	add_sums(h, v);
	return true;
}

static ckr_status
read_moments(struct history *h, struct log_reader *r, struct err *e)
{
	while (next_log_line(r)) {
		struct values v = { 0 };
		const char *why = NULL;

		if (!r->size)
			continue;
		if (!h->n && !h->broken && !r->ncolumn && r->text[0] != '{'
		    && !r->too_long && read_columns(r))
			continue;
		if (r->too_long)
			why = "longer than 65536 bytes";
		else
			why = r->ncolumn ? read_csv(r, &v) : read_json(r, &v);
		if (!why && !v.has[K_STEP])
			why = "no step (logs of `ckrun eval` have none)";
		else if (!why && !(v.v[K_STEP] >= 0 && isfinite(v.v[K_STEP])))
			why = "the step is not a number of 0 or more";
		if (why)
			leave_out(h, r, why);
		else if (!add_moment(h, &v))
			return err_set(e, CKR_ENOMEM, "%s: out of memory after "
			               "%zu rows", h->path, h->n);
	}
	return ferror(r->f) ? err_set(e, CKR_EIO, "%s: cannot read: %m",
	                              h->path) : CKR_OK;
}

ckr_status
history_read(struct history *h, const char *path, struct err *e)
{
	static const char want[] = "expected lines such as {\"step\":1,"
		"\"loss\":2.3}, or CSV with a column step, as `ckrun --log` "
		"writes them";
	struct log_reader r = { .f = fopen(path, "r") };
	ckr_status s;

	*h = (struct history){ .path = path };
	if (!r.f)
		return err_set(e, CKR_EIO, "%s: cannot read: %m", path);
	s = read_moments(h, &r, e);
	fclose(r.f);
	if (s != CKR_OK || h->n)
		return s;
	if (h->broken)
		return err_set(e, CKR_EFORMAT, "%s: the log has no rows: %s; "
		               "line %llu: %s", path, want,
		               (unsigned long long)h->broken_line, h->why);
	return err_set(e, CKR_EFORMAT, "%s: the log is empty: %s", path, want);
}

void
history_free(struct history *h)
{
	free(h->row);
	h->row = NULL;
}
