/* ckrun predict: an output of all samples, written as an .npy file. */
#include "runtime/ckrun/evaluation/evaluation.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/dtype.h"
#include "runtime/file/file.h"

/* ---- which output ---- */

/* One of the model's own, not its loss. */
static bool
is_prediction(const struct ckr_info *i)
{
	return !i->loss && strcmp(i->kind, "metric") != 0;
}

static ckr_status
no_prediction(ckr_ctx *m, const char *name, int n)
{
	char list[600] = "", text[NAME_TEXT];
	struct ckr_info info;

	for (size_t i = 0; ckr_eval_output(m, i, &info) == CKR_OK; i++) {
		size_t at = strlen(list);

		if (is_prediction(&info))
			snprintf(list + at, sizeof(list) - at, " '%s'",
			         err_name(text, sizeof(text), info.name));
	}
	if (!n)
		return ckr_fail(m, CKR_EUNSUPPORTED, "the library has no "
		                "output besides its loss%s%s; compile it with "
		                "--output NAME if the budget has no room for "
		                "all outputs, or with --output logits",
		                ckr_why_no_eval(m) ? ": " : "",
		                ckr_why_no_eval(m) ? ckr_why_no_eval(m) : "");
	return ckr_fail(m, CKR_EARG, name ? "--name: no output is called '%s'; "
	                "expected one of%s" : "%sthe model has several "
	                "outputs; choose one with --name:%s", name ? name : "",
	                list);
}

ckr_status
find_prediction(ckr_ctx *m, const char *name, struct ckr_info *found)
{
	struct ckr_info info;
	int n = 0, hits = 0;

	for (size_t i = 0; ckr_eval_output(m, i, &info) == CKR_OK; i++) {
		if (!is_prediction(&info))
			continue;
		n++;
		if (name && strcmp(name, info.name))
			continue;
		*found = info;
		hits++;
	}
	return hits == 1 ? CKR_OK : no_prediction(m, name, n);
}

/* ---- the file ---- */

/* Version 1.0, padded so that the data begin at a multiple of 64.  bfloat16,
 * which NumPy has not, becomes float32. */
static void
put_npy_header(FILE *f, const struct ckr_info *o, uint64_t rows)
{
	const struct dtype_row *t = &dtype_row[dtype_from_text(o->dtype)];
	char text[1024];
	int n;

	t = t->npy ? t : &dtype_row[CKR_F32];
	n = snprintf(text, sizeof(text), "{'descr': '%c%s', 'fortran_order': "
	             "False, 'shape': (%llu,", t->nbytes > 1 ? '<' : '|',
	             t->npy, (unsigned long long)rows);

	for (int i = 1; i < o->rank; i++)
		n += snprintf(text + n, sizeof(text) - (size_t)n, " %lld,",
		              (long long)o->dim[i]);
	n += snprintf(text + n, sizeof(text) - (size_t)n, "), }");
	while ((n + 11) % 64)
		text[n++] = ' ';
	text[n++] = '\n';
	fwrite("\x93NUMPY\x01\x00", 1, 8, f);
	fputc(n & 255, f);
	fputc(n >> 8, f);
	fwrite(text, 1, (size_t)n, f);
}

struct writer {
	ckr_ctx *m;
	struct data *d;
	struct ckr_info o;
	uint64_t per_sample;            /* rows of the output */
	char *batch;
	float *wide;                    /* of bf16; NULL: as it is */
	FILE *f;                        /* NULL: another process's */
	ckr_status status;              /* of writing to it; reported already */
	uint64_t nan_rows, first_nan;
};

static bool
row_has_nan(uint8_t dtype, const char *row, uint64_t nbytes)
{
	uint64_t each = dtype_row[dtype].nbytes;

	for (uint64_t at = 0; at < nbytes; at += each)
		if (isnan(dtype_double(dtype, row + at)))
			return true;
	return false;
}

/* Of the rows that begin at row `at` of the output. */
static void
count_nan_rows(struct writer *w, uint64_t at, uint64_t rows)
{
	uint64_t each = w->o.nbytes / (uint64_t)w->o.dim[0];
	uint8_t dtype = dtype_from_text(w->o.dtype);

	for (uint64_t r = 0; r < rows; r++) {
		if (!row_has_nan(dtype, w->batch + r * each, each))
			continue;
		if (!w->nan_rows++)
			w->first_nan = at + r;
	}
}

static void
warn_nan_rows(struct writer *w)
{
	fprintf(stderr, "ckrun: warning: %llu of %llu rows of output '%s' "
	        "contain NaN; the first is row %llu",
	        (unsigned long long)w->nan_rows,
	        (unsigned long long)(w->d->samples * w->per_sample),
	        w->o.name, (unsigned long long)w->first_nan);
	data_print_nonfinite(w->d, w->first_nan / w->per_sample, 1, stderr);
	fputc('\n', stderr);
}

static void
put_output_rows(struct writer *w, uint64_t first, uint64_t rows)
{
	uint64_t all = (uint64_t)w->o.dim[0];
	size_t n = (size_t)(w->o.nbytes / all * rows), bad;

	if (!w->f)
		return;
	count_nan_rows(w, first, rows);
	if (!w->wide) {
		fwrite(w->batch, 1, n, w->f);
		return;
	}
	dtype_convert(w->wide, CKR_F32, w->batch, CKR_BF16, n / 2, &bad);
	fwrite(w->wide, sizeof(float), n / 2, w->f);
}

static ckr_status
write_predictions(struct writer *w)
{
	struct data *d = w->d;
	uint64_t n = d->samples;

	if (w->f)
		put_npy_header(w->f, &w->o, n * w->per_sample);
	for (uint64_t i = 0; i < n; i += d->rows) {
		uint64_t left = n - i < d->rows ? n - i : d->rows;

		CKR_TRY(check_interrupted(w->m));
		CKR_TRY(data_batch(d, i));
		CKR_TRY(ckr_eval(w->m, NULL));
		CKR_TRY(ckr_get(w->m, w->o.name, w->batch, w->o.nbytes));
		put_output_rows(w, i * w->per_sample, left * w->per_sample);
	}
	return CKR_OK;
}

static ckr_status
print_npy(FILE *f, void *user)
{
	struct writer *w = user;

	w->f = f;
	w->status = write_predictions(w);
	return w->status;
}

/* Through a file that appears whole. */
static ckr_status
write_npy_file(struct writer *w, const char *path)
{
	struct new_file file;
	struct err e;
	ckr_status s = new_file_open(&file, path, &e);

	if (s == CKR_OK)
		s = new_file_print(&file, print_npy, w, &e);
	return s == CKR_OK || w->status != CKR_OK ? s
	       : ckr_fail(w->m, s, "%s", e.text);
}

ckr_status
predict_data(ckr_ctx *m, struct data *d, const char *output, const char *path)
{
	struct writer w = { .m = m, .d = d };
	uint64_t batch = d->rows * d->whole;
	bool halves;
	ckr_status s;

	CKR_TRY(find_prediction(m, output, &w.o));
	if (!w.o.rank || !w.o.dim[0] || !w.o.rows
	    || (uint64_t)w.o.dim[0] % d->rows)
		return ckr_fail(m, CKR_EUNSUPPORTED, "output '%s' has no rows "
		                "per sample along its first dimension for a "
		                "batch of %llu samples, so batches cannot be "
		                "concatenated; choose another output with "
		                "--name", w.o.name,
		                (unsigned long long)batch);
	if (w.o.rows < 0 && !ckr_rank(m))
		fprintf(stderr, "ckrun: note: rows of output '%s' may depend "
		        "on the other samples of the batch, here of %llu\n",
		        w.o.name, (unsigned long long)batch);
	w.per_sample = (uint64_t)w.o.dim[0] / d->rows;
	halves = !dtype_row[dtype_from_text(w.o.dtype)].npy;
	w.batch = malloc(w.o.nbytes + 1);
	w.wide = halves ? malloc(2 * w.o.nbytes + 1) : NULL;
	if (!w.batch || (halves && !w.wide))
		s = ckr_fail(m, CKR_ENOMEM, "out of memory");
	else
		s = ckr_rank(m) ? write_predictions(&w)
		    : write_npy_file(&w, path);
	if (s == CKR_OK && w.nan_rows)
		warn_nan_rows(&w);
	free(w.batch);
	free(w.wide);
	return s;
}
