#include "runtime/compare/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE = 1 << 12 };

static ckr_status
read_chunk(const struct elements *s, uint64_t first, size_t n, double *to,
           struct err *e)
{
	size_t size = dtype_row[s->dtype].nbytes, at;

	if (s->array)
		return array_read(s->file, s->array, first, n, CKR_F64, to, e);
	dtype_convert(to, CKR_F64, s->bytes + first * size, s->dtype, n, &at);
	return CKR_OK;
}

static size_t
chunk_size(uint64_t first, uint64_t nelem)
{
	return nelem - first < PIECE ? (size_t)(nelem - first) : PIECE;
}

/* Infinity: one is a number that the other is not. */
static double
gap_of(double a, double b)
{
	if (a == b)
		return 0;
	return isfinite(a) && isfinite(b) ? fabs(a - b) : INFINITY;
}

double
compare_drift(const struct allowance *w)
{
	return w->lr * (w->scaled ? 2 : w->noise);
}

/* A step takes a gradient g as it is, or about as g / (|g| + eps), and between
 * -1 and 1: where g is noise, nothing is known of that. */
static double
allowed(const struct allowance *w, double a, double b)
{
	double size = fmin(fabs(a), fabs(b)) + w->eps;

	if (w->alone || !w->scaled || w->noise == 0)
		return w->noise == 0 ? 0 : compare_drift(w);
	return w->lr * (w->noise < 2 * size ? w->noise / size : 2);
}

static void
compare_chunk(struct tensor_diff *f, uint64_t first, size_t n,
              double (*x)[PIECE], const struct allowance *w)
{
	for (size_t i = 0; i < n; i++) {
		double gap = gap_of(x[0][i], x[1][i]);
		double d = x[0][i] == x[1][i]
			|| (isnan(x[0][i]) && isnan(x[1][i]))
			? 0 : x[0][i] - x[1][i];
		double more = gap - (w->grad ? allowed(w, x[2][i], x[3][i])
		                     : w->noise);

		f->square[0] += d * d;
		f->square[1] += x[1][i] * x[1][i];
		if (isfinite(x[1][i]) && fabs(x[1][i]) > f->most)
			f->most = fabs(x[1][i]);
		if (more > f->excess)
			f->excess = more;
		if (gap <= f->gap)
			continue;
		f->gap = gap;
		f->at = first + i;
		f->x[0] = x[0][i];
		f->x[1] = x[1][i];
	}
}

ckr_status
compare_tensor(struct tensor_diff *f, const struct elements s[2],
               const struct allowance *w, struct err *e)
{
	static const struct allowance none;
	double x[4][PIECE];

	w = w ? w : &none;
	for (uint64_t i = 0; i < f->nelem; i += PIECE) {
		size_t n = chunk_size(i, f->nelem);

		for (int k = 0; k < 2; k++) {
			CKR_TRY(read_chunk(&s[k], i, n, x[k], e));
			if (w->grad)
				CKR_TRY(read_chunk(&w->grad[k], i, n,
				                   x[2 + k], e));
		}
		compare_chunk(f, i, n, x, w);
	}
	return CKR_OK;
}

ckr_status
compare_most(const struct elements *s, uint64_t nelem, double *most,
             struct err *e)
{
	double x[PIECE];

	for (uint64_t i = 0; i < nelem; i += PIECE) {
		size_t n = chunk_size(i, nelem);

		CKR_TRY(read_chunk(s, i, n, x, e));
		for (size_t k = 0; k < n; k++)
			if (isfinite(x[k]) && fabs(x[k]) > *most)
				*most = fabs(x[k]);
	}
	return CKR_OK;
}

ckr_status
compare_add(struct diff_list *list, const struct tensor_diff *f,
            const struct elements s[2], const struct allowance *w,
            struct err *e)
{
	struct tensor_diff *more = realloc(list->v,
	                                   (list->n + 1) * sizeof(*more));
	struct tensor_diff *to;

	if (!more)
		return err_no_memory(e);
	list->v = more;
	to = &more[list->n];
	*to = *f;
	to->name = strdup(f->name);
	if (!to->name)
		return err_no_memory(e);
	list->n++;
	return compare_tensor(to, s, w, e);
}

void
compare_free(struct diff_list *list)
{
	for (size_t i = 0; i < list->n; i++)
		free(list->v[i].name);
	free(list->v);
	*list = (struct diff_list){ .n = 0 };
}

/* ---- reports ---- */

static double
relative(const struct tensor_diff *f)
{
	return f->gap == 0 ? 0 : f->gap / f->most;
}

static int
worst_first(const void *p, const void *q)
{
	const struct tensor_diff *a = p, *b = q;
	double x = relative(a), y = relative(b);

	if (a->counts != b->counts)
		return a->counts ? -1 : 1;
	return x != y ? x < y ? 1 : -1 : strcmp(a->name, b->name);
}

size_t
compare_judge(struct diff_list *list, double rtol)
{
	size_t n = 0;

	for (size_t i = 0; i < list->n; i++) {
		struct tensor_diff *f = &list->v[i];

		f->counts = f->excess > rtol * f->most;
		n += f->counts;
	}
	if (list->n)
		qsort(list->v, list->n, sizeof(*list->v), worst_first);
	return n;
}

/* "[3,17]" of row-major element `at`. */
static void
print_place(const struct tensor_diff *f, FILE *out)
{
	uint64_t step = f->nelem;

	for (int i = 0; i < f->rank; i++) {
		step /= (uint64_t)f->dim[i];
		fprintf(out, "%s%llu", i ? "," : " at [",
		        (unsigned long long)(f->at / step
		                             % (uint64_t)f->dim[i]));
	}
	fputs(f->rank ? "]" : "", out);
}

static void
print_one(const struct tensor_diff *f, double rtol, FILE *out)
{
	char name[NAME_TEXT], form[128];

	fprintf(out, "  %-8.2g %s '%s' ", relative(f), f->what,
	        err_name(name, sizeof(name), f->name));
	if (f->dtype[0] != f->dtype[1])
		fprintf(out, "%s vs ", dtype_row[f->dtype[0]].text);
	fputs(array_text(form, sizeof(form), f->dtype[1], f->rank, f->dim),
	      out);
	if (f->gap > 0) {
		print_place(f, out);
		fprintf(out, ": %.9g vs %.9g",
		        isnan(f->x[0]) ? (double)NAN : f->x[0],
		        isnan(f->x[1]) ? (double)NAN : f->x[1]);
	}
	fputs(f->counts || relative(f) <= rtol ? "\n"
	      : ", within rounding error\n", out);
}

void
compare_print(const struct diff_list *list, double rtol, size_t lines,
              FILE *out)
{
	for (size_t i = 0; i < list->n && i < lines; i++)
		print_one(&list->v[i], rtol, out);
	if (list->n > lines)
		fprintf(out, "  and %zu more, largest difference %.2g\n",
		        list->n - lines,
		        relative(&list->v[lines]));
}
