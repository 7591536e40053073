/* ckrun --against: runs the same steps in two libraries of one model, and
 * compares their tensors.
 *
 * A difference is relative to the largest magnitude of the tensor.  Not
 * all of it counts: gradients that are zero but for rounding, such as that of
 * a key's bias, to which softmax is blind, have no digit in common, and adam
 * makes steps of lr out of them.  So any gradient may differ by NOISE of what
 * is tolerated of the largest of all, and parameters by what an update makes
 * of that.  What rounding makes of a tensor's gradient is measured, too: how
 * much it changes, NUDGES times, when every parameter changes by one unit in
 * the last place, up to NUDGED of the largest of all.  A gradient that is no
 * larger is rounding alone, such as that of a bias in front of BatchNorm: its
 * parameter may differ by what updates can come to, and so may buffers of its
 * shape, as a running mean follows the bias.
 */
#include "runtime/ckrun/against.h"
#include "runtime/ckrun/console.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/ckrun/interrupt.h"
#include "runtime/ckrun/sides.h"
#include "runtime/team/launch.h"

#define NOISE (1. / 64)
#define NUDGED 0x1p-10
#define NUDGES 8

enum { MAX_LINES = 20, MAX_NAMED = 8 };

struct against {
	struct ckrun_options *o;
	struct sides p;
	uint64_t steps;                 /* total */
	double rtol;
	const char *rtol_of;            /* the type that it suits */
	double most;                    /* largest of all gradients */
	double lr;                      /* sum over steps */
	double loss_gap;                /* the largest, relative */
	struct diff_list list;
	size_t named;                   /* tensors that only one has */
};

/* ---- before the first step ---- */

/* Four units in the last place of the coarsest float type of a step's values;
 * in float32 what sums in another order come to. */
static double
rtol_for(const char *type)
{
	return !strcmp(type, "bf16") ? 0x1p-5
	       : !strcmp(type, "f16") ? 0x1p-8 : 1e-5;
}

static void
choose_rtol(struct against *a)
{
	if (options_given(a->o, "rtol")) {
		a->rtol = a->o->rtol;
		a->rtol_of = "as given";
		return;
	}
	for (int k = 0; k < 2; k++) {
		const char *type = ckr_float_type(a->p.s[k].m);

		if (rtol_for(type) <= a->rtol)
			continue;
		a->rtol = rtol_for(type);
		a->rtol_of = type;
	}
}

static int
prepare_compare(struct against *a)
{
	ckr_ctx *m = a->p.s[0].m;
	struct ckr_hyper h = ckr_model_hyper(m);
	uint64_t done = ckr_step_count(m);

	options_default(a->o, &h);
	options_warn(a->o, m, 0);
	choose_rtol(a);
	if (options_given(a->o, "loss-scale") && !(ckr_loss_scale(m) > 0)
	    && !(ckr_loss_scale(a->p.s[1].m) > 0))
		return options_usage("--", "loss-scale", "needs a library with "
		                     "f16 gradients: a model with matrix "
		                     "products, compiled with ckc --dtype f16");
	a->steps = options_given(a->o, "steps") ? a->o->steps : done + 1;
	return done < a->steps ? DONE
	       : options_usage("--", "steps", "includes the steps already "
	                       "done, so none is left");
}

static void
print_sides(const struct against *a)
{
	if (a->o->quiet)
		return;
	for (int k = 0; k < 2; k++) {
		const struct compared_side *s = &a->p.s[k];
		uint32_t ranks = ckr_ranks(s->m);
		int threads = ckr_threads(s->m);

		printf("%s%s: %u rank%s, optimizer %s, %d thread%s, matrix "
		       "products by %s\n", k ? "against " : "", s->so, ranks,
		       ranks == 1 ? "" : "s", ckr_optimizer(s->m), threads,
		       threads == 1 ? "" : "s", ckr_blas(s->m));
	}
	data_print(&a->p.s[0].data, stdout);
}

/* ---- tensors ---- */

/* Side k has a tensor that the other has not, or of another shape. */
static void
report_unmatched(struct against *a, int k, const char *what, const char *name,
                 uint8_t dtype, int rank, const int64_t *dim)
{
	char text[NAME_TEXT], form[128];

	if (a->named++ < MAX_NAMED && !a->o->quiet)
		printf("  only in %s: %s '%s' %s\n", a->p.s[k].so, what,
		       err_name(text, sizeof(text), name),
		       array_text(form, sizeof(form), dtype, rank, dim));
}

static void
report_unmatched_grad(struct against *a, int k, const struct array *x)
{
	report_unmatched(a, k, "gradient", x->name, x->dtype, x->rank, x->dim);
}

static void
report_unmatched_weight(struct against *a, int k, const struct ckr_info *i)
{
	report_unmatched(a, k, i->kind, i->name, dtype_from_text(i->dtype),
	                 i->rank, i->dim);
}

/* What a gradient may differ by, and whether it is rounding alone. */
static ckr_status
find_noise(struct against *a, const struct array *x,
           const struct elements g[2], struct allowance *w)
{
	struct elements both[2] = { g[1] };
	struct tensor_diff nudged = { .nelem = x->nelem };
	double most = 0, gap;

	for (int k = 0; k < 2; k++)
		CKR_TRY(compare_most(&g[k], x->nelem, &most, &a->p.err));
	if (sides_nudged(&a->p, x->name, x->rank, x->dim, &both[1]))
		CKR_TRY(compare_tensor(&nudged, both, NULL, &a->p.err));
	gap = isfinite(nudged.gap) ? nudged.gap : 0;
	w->noise = fmax(NOISE * a->rtol * a->most,
	                fmin(NUDGES * gap, NUDGED * a->most));
	w->alone = most > 0 && most <= w->noise;
	if (w->alone)
		w->noise = fmax(w->noise, 2 * most);
	return CKR_OK;
}

static ckr_status
compare_grad(struct against *a, const struct array *x)
{
	struct allowance w = { .noise = 0 };
	struct tensor_diff f = { .name = (char *)(uintptr_t)x->name,
		.what = "gradient", .rank = x->rank, .nelem = x->nelem };
	struct elements g[2];

	if (!sides_grads(&a->p, x->name, x->rank, x->dim, g)) {
		report_unmatched_grad(a, 0, x);
		return CKR_OK;
	}
	memcpy(f.dim, x->dim, sizeof(f.dim));
	f.dtype[0] = g[0].dtype;
	f.dtype[1] = g[1].dtype;
	CKR_TRY(find_noise(a, x, g, &w));
	return compare_add(&a->list, &f, g, &w, &a->p.err);
}

static ckr_status
compare_grads(struct against *a)
{
	const struct array_file *f = &a->p.s[0].grads, *e = &a->p.s[1].grads;
	struct elements g[2];

	for (size_t i = 0; i < e->n; i++) {
		const struct array *x = &e->v[i];

		if (!sides_grads(&a->p, x->name, x->rank, x->dim, g))
			report_unmatched_grad(a, 1, x);
		else
			CKR_TRY(compare_most(&g[1], x->nelem, &a->most,
			                     &a->p.err));
	}
	for (size_t i = 0; i < f->n; i++)
		CKR_TRY(compare_grad(a, &f->v[i]));
	return CKR_OK;
}

/* A buffer of the shape of a parameter whose gradient is rounding alone may
 * follow it. */
static ckr_status
find_buffer_noise(struct against *a, const struct ckr_info *i,
                  struct allowance *w)
{
	const struct array_file *f = &a->p.s[0].grads;

	for (size_t k = 0; k < f->n && !w->alone; k++) {
		struct elements g[2];

		if (sides_grads(&a->p, f->v[k].name, i->rank, i->dim, g))
			CKR_TRY(find_noise(a, &f->v[k], g, w));
	}
	w->noise = w->alone ? compare_drift(w) : 0;
	return CKR_OK;
}

/* x: the elements of both. */
static ckr_status
compare_elements(struct against *a, const struct ckr_info info[2],
                 char *const x[2])
{
	const struct ckr_info *i = &info[1];
	struct tensor_diff f = { .name = (char *)(uintptr_t)i->name,
		.what = i->kind, .rank = i->rank };
	struct elements s[2] = { { .bytes = x[0] }, { .bytes = x[1] } }, g[2];
	struct allowance w = { .lr = a->lr, .eps = a->o->hyper.eps,
		.scaled = strncmp(ckr_optimizer(a->p.s[0].m), "sgd", 3) != 0 };

	for (int k = 0; k < 2; k++)
		s[k].dtype = f.dtype[k] = dtype_from_text(info[k].dtype);
	memcpy(f.dim, i->dim, sizeof(f.dim));
	f.nelem = i->nbytes / dtype_row[f.dtype[1]].nbytes;
	if (sides_grads(&a->p, i->name, i->rank, i->dim, g)) {
		w.grad = g;
		CKR_TRY(find_noise(a, g[0].array, g, &w));
	} else if (!strcmp(i->kind, "buffer")) {
		CKR_TRY(find_buffer_noise(a, i, &w));
	}
	return compare_add(&a->list, &f, s, &w, &a->p.err);
}

static ckr_status
compare_weight(struct against *a, const struct ckr_info *of)
{
	struct ckr_info info[2] = { *of };
	char *x[2];
	ckr_status s;

	if (!sides_find(a->p.s[1].m, of, &info[1])) {
		report_unmatched_weight(a, 0, of);
		return CKR_OK;
	}
	for (int k = 0; k < 2; k++)
		x[k] = sides_get(a->p.s[k].m, &info[k]);
	s = x[0] && x[1] ? compare_elements(a, info, x)
	    : err_no_memory(&a->p.err);
	free(x[0]);
	free(x[1]);
	return s;
}

static ckr_status
compare_weights(struct against *a)
{
	struct ckr_info of, found;

	for (size_t i = 0; ckr_tensor(a->p.s[1].m, i, &of) == CKR_OK; i++)
		if (sides_is_weight(&of)
		    && !sides_find(a->p.s[0].m, &of, &found))
			report_unmatched_weight(a, 1, &of);
	for (size_t i = 0; ckr_tensor(a->p.s[0].m, i, &of) == CKR_OK; i++)
		if (sides_is_weight(&of))
			CKR_TRY(compare_weight(a, &of));
	return CKR_OK;
}

/* ---- steps ---- */

static void
compare_losses(struct against *a, uint64_t step)
{
	double x = a->p.s[0].loss, y = a->p.s[1].loss, far;

	if (isnan(x) && isnan(y))       /* neither has one */
		return;
	far = x == y ? 0 : fabs(x - y) / fabs(y);
	if (!(far <= a->loss_gap))
		a->loss_gap = isnan(far) ? INFINITY : far;
	if (!a->o->quiet)
		printf("step %llu  loss %.9g vs %.9g, relative difference "
		       "%.2g\n",
		       (unsigned long long)step, console_number(x),
		       console_number(y), console_number(far));
	fflush(stdout);
}

static ckr_status
take_step(struct against *a)
{
	uint64_t step = ckr_step_count(a->p.s[0].m);
	struct ckr_hyper h = start_hyper(a->o, step, a->steps);

	a->lr += h.lr;
	CKR_TRY(sides_step(&a->p, &h));
	compare_losses(a, step + 1);
	return CKR_OK;
}

static bool
steps_are_done(const struct against *a)
{
	return ckr_step_count(a->p.s[0].m) >= a->steps || interrupted();
}

static ckr_status
take_steps(struct against *a)
{
	CKR_TRY(sides_want_grads(&a->p));
	CKR_TRY(take_step(a));
	CKR_TRY(sides_read_grads(&a->p));
	CKR_TRY(compare_grads(a));
	while (!steps_are_done(a))
		CKR_TRY(take_step(a));
	return compare_weights(a);
}

/* ---- the verdict ---- */

static int
print_failure(const char *what)
{
	fflush(stdout);
	fprintf(stderr, "ckrun: %s\n", what);
	return FAILED;
}

static void
print_all(const struct against *a)
{
	if (a->o->quiet)
		return;
	if (a->named > MAX_NAMED)
		printf("  and %zu more that only one of the libraries has\n",
		       a->named - MAX_NAMED);
	compare_print(&a->list, a->rtol, MAX_LINES, stdout);
	printf("%zu tensors compared; tolerance %.2g of a tensor's largest "
	       "magnitude (%s)\n", a->list.n, a->rtol, a->rtol_of);
}

static int
report_verdict(struct against *a)
{
	bool loss = !(a->loss_gap <= a->rtol);
	size_t n = compare_judge(&a->list, a->rtol);
	char text[200];

	if (!a->list.n)
		return print_failure("the two libraries have no gradient, "
		                     "parameter or buffer in common");
	print_all(a);
	snprintf(text, sizeof(text), "%zu of %zu tensors%s differ by more than "
	         "%.2g", n, a->list.n, loss ? " and the losses" : "", a->rtol);
	if (loss || n)
		return print_failure(text);
	if (!a->o->quiet)
		puts("all tensors and losses are within the tolerance");
	if (ckr_step_count(a->p.s[0].m) < a->steps)
		return print_failure("stopped before the last step");
	return DONE;
}

int
against_run(struct ckrun_options *o)
{
	struct against a = { .o = o };
	int status = DONE;
	ckr_status s;

	if (launch_find().by)
		return options_usage("--", "against", "runs all ranks in one "
		                     "process: start ckrun without a launcher");
	s = sides_open(&a.p, o);
	if (s == CKR_OK)
		status = prepare_compare(&a);
	if (s == CKR_OK && !status) {
		print_sides(&a);
		s = take_steps(&a);
	}
	if (s != CKR_OK)
		status = print_failure(a.p.err.text);
	else if (!status)
		status = report_verdict(&a);
	sides_close(&a.p);
	compare_free(&a.list);
	return status;
}
