/* ckrun: train or run a compiled model from the command line. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/support/now.h"
#include "runtime/ckr.h"
#include "runtime/ckrun/against.h"
#include "runtime/ckrun/interrupt.h"
#include "runtime/ckrun/start.h"
#include "runtime/ckrun/tell.h"

/* ---- a run ---- */

struct run {
	struct options *o;
	ckr_ctx *m;
	struct data data;
	FILE *log;
	uint64_t steps;                 /* total */
	bool has_loss, exact;           /* exact: the loss is one f32 */
	bool has_norm;                  /* of all gradients */
	bool tty, open_line, told_nan, told_data;
	bool stopped;                   /* by a signal, to any process */
	uint64_t began;                 /* steps done before this run */
	uint64_t skipped;               /* steps of this run by --on-nan */
	uint64_t overflows;             /* ... and by the loss scale */
	int64_t saved;                  /* step that --save holds; -1: none */
	struct ckr_checked checked;
};

/* Before a message. */
static void
end_line(struct run *r)
{
	if (r->open_line)
		fputc('\n', stdout);
	r->open_line = false;
	fflush(stdout);
}

static int
fail(struct run *r, ckr_status s)
{
	end_line(r);
	fprintf(tell_to(r->m), "ckrun: %s\n", ckr_error(r->m));
	ckr_leave(r->m, s);
	return s == CKR_ERANK ? GONE : FAILED;
}

/* The numbers have come apart: where the last good ones are. */
static int
fail_by_nan(struct run *r)
{
	const struct options *o = r->o;
	FILE *f = tell_to(r->m);

	end_line(r);
	fprintf(f, "ckrun: %s", ckr_error(r->m));
	if (r->saved >= 0)
		fprintf(f, "; '%s' holds the state after step %lld",
		        o->save, (long long)r->saved);
	else if (o->resume)
		fprintf(f, "; the last good state is in '%s', which this "
		        "run began with", o->resume);
	else if (o->save)
		fprintf(f, "; no file holds a good state: --save-every N "
		        "writes one every N steps");
	fputc('\n', f);
	return FAILED;
}

/* Of the last step; NaN: it has none. */
static double
grad_norm(const struct run *r)
{
	double norm = NAN;

	if (r->has_norm)
		ckr_grad_norm(r->m, &norm);
	return norm;
}

static ckr_status
one_step(struct run *r, const struct ckr_hyper *h, double *loss)
{
	struct ckr_checked n;
	ckr_status s;

	if (!r->o->check)
		return ckr_step(r->m, h, loss);
	s = ckr_check(r->m, h, loss, &n);
	checked_add(&r->checked, &n);
	return s;
}

/* Whether no step of this run has come to gradients. */
static bool
only_skipped(const struct run *r)
{
	return r->began + r->skipped + r->overflows == ckr_step_count(r->m);
}

/* The next step, and what is to be told of it. */
static ckr_status
take_step(struct run *r, struct row *row)
{
	struct ckr_hyper h = start_hyper(r->o, ckr_step_count(r->m), r->steps);
	uint64_t skipped = ckr_skipped_count(r->m);
	double scale = ckr_loss_scale(r->m), from = now_sec(), loss, after;
	ckr_status s;

	/* the last that could be written */
	if (r->o->grads && only_skipped(r)
	    && ckr_step_count(r->m) + 1 == r->steps)
		h.scale_again = true;
	s = one_step(r, &h, &loss);

	*row = (struct row){
		.step = ckr_step_count(r->m) + (s == CKR_ENAN),
		.steps = r->steps, .has_loss = r->has_loss, .exact = r->exact,
		.has_norm = r->has_norm, .loss = loss, .norm = grad_norm(r),
		.lr = h.lr, .sec = now_sec() - from, .units = r->data.units,
		.tokens = r->data.unit_tokens,
		.peak_bytes = ckr_peak_bytes(r->m),
		.skipped = ckr_skipped_count(r->m) > skipped,
	};
	after = ckr_loss_scale(r->m);
	row->overflow = row->skipped && after < scale;
	/* one that overflowed and was taken again */
	if (after < scale && !row->overflow)
		scale = after;
	row->scale = scale > 0 && h.loss_scale > 0 ? h.loss_scale : scale;
	return s;
}

static void
tell(struct run *r, const struct row *row, bool whole)
{
	if (r->log)
		row_log(row, r->log);
	if (r->o->quiet || !whole)
		return;
	row_print(row, r->tty, stdout);
	r->open_line = r->tty;
}

/* Say once what is odd about the data. */
static void
look_at_data(struct run *r)
{
	if (r->told_data || !*r->data.warning)
		return;
	r->told_data = true;
	end_line(r);
	fprintf(stderr, "ckrun: warning: %s\n", r->data.warning);
}

/* Say once that training has come apart, where it goes on. */
static void
look_at_loss(struct run *r, uint64_t step, double loss)
{
	if (!r->has_loss || isfinite(loss) || r->told_nan)
		return;
	r->told_nan = true;
	end_line(r);
	fprintf(stderr, "ckrun: warning: loss is not finite at step %llu\n",
	        (unsigned long long)step);
}

/* A step was left out.  If it was the parameters that made the loss what it
 * is, so will the next ones be. */
static int
look_at_skipped(struct run *r)
{
	ckr_status s;

	if (!r->skipped++) {
		end_line(r);
		fprintf(stderr, "ckrun: warning: %s; its update is skipped\n",
		        ckr_error(r->m));
	}
	s = ckr_finite(r->m);
	return s == CKR_OK ? DONE : s == CKR_ENAN ? fail_by_nan(r) : fail(r, s);
}

/* Never over a good checkpoint with numbers that are not. */
static int
save(struct run *r)
{
	ckr_status s = CKR_OK;

	if (r->o->hyper.on_nan != CKR_NAN_GO)
		s = ckr_finite(r->m);
	if (s != CKR_OK)
		return s == CKR_ENAN ? fail_by_nan(r) : fail(r, s);
	s = ckr_save(r->m, r->o->save);
	if (s != CKR_OK)
		return fail(r, s);
	r->saved = (int64_t)ckr_step_count(r->m);
	return DONE;
}

static int
train_step(struct run *r)
{
	const struct options *o = r->o;
	struct row row;
	ckr_status s = take_step(r, &row);
	int status = DONE;

	look_at_data(r);
	if (s != CKR_OK && s != CKR_ENAN)
		return fail(r, s);
	tell(r, &row, s == CKR_OK);
	if (s == CKR_ENAN)
		return fail_by_nan(r);
	if (row.overflow)
		r->overflows++;
	else if (row.skipped)
		status = look_at_skipped(r);
	else
		look_at_loss(r, row.step, row.loss);
	if (!status && o->save_every && row.step % o->save_every == 0
	    && row.step < r->steps)
		status = save(r);
	return status;
}

static int
train(struct run *r)
{
	while (ckr_step_count(r->m) < r->steps) {
		ckr_status s = ckr_any(r->m, interrupted(), &r->stopped);
		int status;

		if (s != CKR_OK)
			return fail(r, s);
		if (r->stopped)
			break;
		status = train_step(r);
		if (status)
			return status;
	}
	end_line(r);
	return DONE;
}

/* ---- before and after ---- */

static void
look_at_outputs(struct run *r)
{
	struct ckr_info info;

	r->exact = ckr_micro_batches(r->m) == 1;
	for (size_t i = 0; ckr_tensor(r->m, i, &info) == CKR_OK; i++)
		if (info.loss) {
			r->has_loss = true;
			r->exact &= strcmp(info.dtype, "f64") != 0;
		}
}

/* The norm costs time: only where somebody looks, or it is there. */
static ckr_status
open_log(struct run *r)
{
	if (r->o->log || r->o->hyper.clip > 0)
		r->has_norm = ckr_grad_norm(r->m, NULL) == CKR_OK;
	if (!r->o->log || ckr_rank(r->m))
		return CKR_OK;
	r->log = fopen(r->o->log, r->o->resume ? "a" : "w");
	if (!r->log)
		return ckr_fail(r->m, CKR_EIO, "%s: cannot write: %m",
		                r->o->log);
	return CKR_OK;
}

static ckr_status
open_all(struct run *r)
{
	const struct options *o = r->o;

	if (o->grads)
		CKR_TRY(ckr_save_grads(r->m, o->grads));
	if (o->trace)
		CKR_TRY(ckr_trace(r->m, o->trace));
	if (o->profile)
		CKR_TRY(ckr_profile(r->m, NULL));
	look_at_outputs(r);
	return CKR_OK;
}

/* What fails here fails everywhere. */
static ckr_status
begin(struct run *r)
{
	const struct options *o = r->o;
	ckr_status s = start_model(&r->m, &r->data, o, o->model);

	if (s == CKR_OK)
		s = start_files(r->m, o);
	if (s == CKR_OK)
		s = open_log(r);
	s = ckr_agree(r->m, s);
	return s == CKR_OK ? open_all(r) : s;
}

static ckr_status
write_profile(struct run *r)
{
	if (ckr_step_count(r->m) - r->began == 1)
		fprintf(stderr, "ckrun: warning: --profile holds a first step "
		        "alone, which loads code and touches memory for the "
		        "first time; with more steps it is left out\n");
	return ckr_profile(r->m, r->o->profile);
}

static ckr_status
write_all(struct run *r)
{
	const struct options *o = r->o;
	ckr_status s = CKR_OK;

	if (o->outputs)
		CKR_TRY(ckr_save_outputs(r->m, o->outputs));
	if (o->onnx)
		CKR_TRY(ckr_export_onnx(r->m, o->onnx));
	if (o->profile)
		CKR_TRY(write_profile(r));
	if (o->grads && only_skipped(r))
		fprintf(stderr, "ckrun: warning: '%s' is not written: no step "
		        "came to gradients\n", o->grads);
	CKR_TRY(ckr_trace(r->m, NULL));
	if (r->log && (ferror(r->log) || fflush(r->log)))
		s = ckr_fail(r->m, CKR_EIO, "%s: cannot write: %m", o->log);
	return ckr_agree(r->m, s);
}

static void
print_head(const struct run *r)
{
	uint32_t replicas = ckr_replicas(r->m);
	const char *kind = replicas == 1 ? " (tensor parallel)"
	                   : replicas == ckr_ranks(r->m) ? " (data parallel)"
	                   : " (data and tensor parallel)";

	if (r->o->threads > (uint64_t)ckr_threads(r->m))
		fprintf(stderr, "ckrun: warning: the model was compiled for "
		        "%d thread%s, not for %llu\n", ckr_threads(r->m),
		        ckr_threads(r->m) == 1 ? "" : "s",
		        (unsigned long long)r->o->threads);
	if (r->o->quiet)
		return;
	printf("%s: ", ckr_model_name(r->m));
	if (ckr_ranks(r->m) > 1)
		printf("%u %s%s, ", ckr_ranks(r->m), ckr_processes(r->m) > 1
		       ? "ranks in processes" : "virtual ranks", kind);
	printf("optimizer %s, %d thread%s, matrix products by %s\n",
	       ckr_optimizer(r->m), ckr_threads(r->m),
	       ckr_threads(r->m) == 1 ? "" : "s", ckr_blas(r->m));
	pair_print(&r->data.pair, stdout);
}

static void
print_tail(const struct run *r)
{
	struct ckr_memory m;

	if (r->o->quiet && !r->o->stats)
		return;
	ckr_memory(r->m, &m);
	printf("peak %llu bytes%s, planned %llu; the process grew by %llu\n",
	       (unsigned long long)m.peak_bytes,
	       ckr_ranks(r->m) > 1 ? " per rank" : "",
	       (unsigned long long)m.planned_bytes,
	       (unsigned long long)m.grown_bytes);
	if (r->o->stats)
		printf("resident %llu, arena %llu, held to undo a step %llu, "
		       "budget %llu\n",
		       (unsigned long long)m.resident_bytes,
		       (unsigned long long)m.arena_bytes,
		       (unsigned long long)m.held_bytes,
		       (unsigned long long)m.budget_bytes);
	if (r->o->stats && m.transfer_bytes)
		printf("what moves between processes goes through %llu\n",
		       (unsigned long long)m.transfer_bytes);
	if (r->o->check)
		checked_print(&r->checked);
	if (r->skipped)
		printf("%llu steps skipped\n", (unsigned long long)r->skipped);
	if (r->overflows)
		printf("%llu steps skipped whose gradients overflowed, loss "
		       "scale now %g\n", (unsigned long long)r->overflows,
		       ckr_loss_scale(r->m));
	if (r->o->save)
		printf("saved %s\n", r->o->save);
}

/* How many steps, if nobody said: once, for what does not train. */
static int
count_steps(struct run *r)
{
	const struct options *o = r->o;

	r->steps = o->steps;
	if (options_given(o, "steps"))
		return DONE;
	if (strcmp(ckr_optimizer(r->m), "none") && !o->check)
		return options_usage("--", "steps", "is needed to train");
	r->steps = ckr_step_count(r->m) + 1;
	return DONE;
}

static int
run_model(struct run *r)
{
	struct ckr_hyper hyper;
	ckr_status s = begin(r);
	int status;

	if (s != CKR_OK)
		return fail(r, s);
	hyper = ckr_hyper_of(r->m);
	options_default(r->o, &hyper);
	status = count_steps(r);
	if (status)
		return status;
	options_warn(r->o, ckr_optimizer(r->m), ckr_unread(r->m));
	print_head(r);
	r->began = ckr_step_count(r->m);
	if (ckr_step_count(r->m) >= r->steps && !r->o->quiet)
		printf("nothing to do: %llu steps are done already, and "
		       "--steps counts them\n",
		       (unsigned long long)ckr_step_count(r->m));
	status = train(r);
	if (!status && r->o->save)
		status = save(r);
	if (status)
		return status;
	s = write_all(r);
	if (s != CKR_OK)
		return fail(r, s);
	print_tail(r);
	if (!r->stopped)
		return DONE;
	fprintf(stderr, "ckrun: stopped after step %llu\n",
	        (unsigned long long)ckr_step_count(r->m));
	return FAILED;
}

/* status, or that what was printed did not arrive. */
static int
flush(int status)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return status;
	fputs("ckrun: cannot write to standard output\n", stderr);
	return status ? status : FAILED;
}

int
main(int argc, char **argv)
{
	struct options o = { 0 };
	struct run r = { .o = &o, .saved = -1,
	                 .tty = isatty(STDOUT_FILENO) };
	int status;

	tell_begin();
	status = options_parse(&o, argc, argv);
	r.data.file.fd = -1;
	if (status)
		return status;
	if (o.help)
		options_help();
	else if (o.version)
		puts("ckrun " CKC_VERSION);
	if (o.help || o.version)
		return flush(DONE);
	status = options_check(&o);
	if (status)
		return status;
	interrupt_begin();
	if (o.against)
		return flush(against_run(&o));
	status = run_model(&r);
	if (r.log)
		fclose(r.log);
	data_close(&r.data);
	ckr_close(r.m);
	return flush(status);
}
