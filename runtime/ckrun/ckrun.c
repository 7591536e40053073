/* ckrun: train or run a compiled model from the command line. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/ckr.h"
#include "runtime/ckrun/against.h"
#include "runtime/ckrun/interrupt.h"
#include "runtime/ckrun/log.h"
#include "runtime/ckrun/merge.h"
#include "runtime/ckrun/saves.h"
#include "runtime/ckrun/schedule.h"
#include "runtime/ckrun/start.h"
#include "runtime/ckrun/steps.h"
#include "runtime/ckrun/console.h"
#include "runtime/ckrun/evaluation/evaluation.h"
#include "runtime/ckrun/run_report/run_report.h"
#include "runtime/support/number.h"
#include "runtime/support/offload_dir.h"

/* ---- a run ---- */

struct train_run {
	struct ckrun_options *o;
	ckr_ctx *m;
	struct data data;
	struct log log;
	struct step_queue steps;
	struct saves saves;
	struct valid valid;
	bool stalled;                   /* it has not got better for so long */
	bool written;                   /* --outputs: of the last step */
	bool tty, open_line, warned_nan, warned_data;
	bool stopped;                   /* by a signal, to any process */
};

/* Before a message. */
static void
end_line(struct train_run *r)
{
	if (r->open_line)
		fputc('\n', stdout);
	r->open_line = false;
	fflush(stdout);
}

static int
fail_run(struct train_run *r, ckr_status s)
{
	end_line(r);
	fprintf(console_errors(r->m), "ckrun: %s\n", ckr_error(r->m));
	ckr_abort(r->m, s);
	return s == CKR_ERANK ? GONE : FAILED;
}

/* Of the batch of the last step that is counted. */
static uint64_t
last_position(const struct train_run *r)
{
	return data_position(&r->data) - r->data.per_step;
}

/* The step is not finite: say which checkpoint is the last good one. */
static int
fail_by_nan(struct train_run *r)
{
	const struct ckrun_options *o = r->o;
	FILE *f = console_errors(r->m);

	end_line(r);
	fprintf(f, "ckrun: %s", ckr_error(r->m));
	data_print_nonfinite(&r->data, data_position(&r->data),
	                     r->data.per_step, f);
	/* the failure that counts is printed */
	saves_wait(&r->saves);
	if (r->saves.saved >= 0)
		fprintf(f, "; '%s' holds the state after step %lld",
		        o->save, (long long)r->saves.saved);
	else if (o->resume && ckr_check_finite(r->m) == CKR_OK)
		fprintf(f, "; the last good state is the checkpoint '%s' that "
		        "this run resumed from", o->resume);
	else if (o->save)
		fprintf(f, "; no checkpoint holds a good state; try: "
		        "--save-every N");
	fputc('\n', f);
	return FAILED;
}

static void
report_step(struct train_run *r, const struct step_row *row, bool whole)
{
	log_row(&r->log, row);
	if (r->o->quiet || !whole)
		return;
	row_print(row, r->tty, stdout);
	r->open_line = r->tty;
	if (!row->valid)
		return;
	end_line(r);
	printf("valid  ");
	score_print(row->valid, stdout);
	putchar('\n');
}

/* Print the warning about the data, once. */
static void
warn_data(struct train_run *r, bool odd)
{
	if (r->warned_data || !odd)
		return;
	r->warned_data = true;
	end_line(r);
	fprintf(stderr, "ckrun: warning: %s\n", r->data.warning);
}

/* Say once that training has come apart, where it goes on. */
static void
warn_loss(struct train_run *r, uint64_t step, double loss)
{
	if (!r->steps.has_loss || isfinite(loss) || r->warned_nan)
		return;
	r->warned_nan = true;
	end_line(r);
	fprintf(stderr, "ckrun: warning: loss is not finite at step %llu",
	        (unsigned long long)step);
	data_print_nonfinite(&r->data, last_position(r),
	                     r->data.per_step, stderr);
	fputc('\n', stderr);
}

/* A step was left out.  If it was the parameters that made the loss what it
 * is, so will the next ones be. */
static int
handle_skipped(struct train_run *r)
{
	ckr_status s;

	if (!r->steps.skipped++) {
		end_line(r);
		fprintf(stderr, "ckrun: warning: %s; its update is skipped",
		        ckr_error(r->m));
		data_print_nonfinite(&r->data, last_position(r),
		                     r->data.per_step, stderr);
		fputc('\n', stderr);
	}
	s = ckr_check_finite(r->m);
	return s == CKR_OK ? DONE
	       : s == CKR_ENAN ? fail_by_nan(r) : fail_run(r, s);
}

/* Never over a good checkpoint with numbers that are not. */
static int
save_checkpoint(struct train_run *r, bool beside)
{
	ckr_status s = CKR_OK;

	if (r->o->hyper.on_nan != CKR_NAN_GO)
		s = ckr_check_finite(r->m);
	if (s != CKR_OK)
		return s == CKR_ENAN ? fail_by_nan(r) : fail_run(r, s);
	s = saves_write(&r->saves, r->o->save, beside);
	return s == CKR_OK ? DONE : fail_run(r, s);
}

/* Look at the state behind a step, whose outputs are gone then; the best one so
 * far is saved. */
static int
validate(struct train_run *r)
{
	bool best = false;
	ckr_status s = CKR_OK;

	if (r->o->outputs)
		s = ckr_save_outputs(r->m, r->o->outputs);
	r->written = r->o->outputs;
	if (s == CKR_OK)
		s = start_averages(r->m, r->o, true);
	if (s == CKR_OK)
		s = valid_run(&r->valid, &best);
	if (s == CKR_OK)
		s = start_averages(r->m, r->o, false);
	if (s == CKR_OK && best && r->o->save_best)
		s = saves_write(&r->saves, r->o->save_best, true);
	if (s != CKR_OK)
		return fail_run(r, s);
	r->stalled = valid_stalled(r->m, r->o);
	return DONE;
}

static int
train_step(struct train_run *r)
{
	const struct ckrun_options *o = r->o;
	struct step_row row;
	bool odd;
	int status = DONE;
	ckr_status s = CKR_OK;

	/* none behind the step that a signal came in */
	while (s == CKR_OK && steps_can_begin(&r->steps)
	       && !(r->steps.count && interrupted()))
		s = steps_begin(&r->steps);
	if (s != CKR_OK)
		return fail_run(r, s);
	s = steps_end(&r->steps, &row, &odd);
	r->written = false;
	warn_data(r, odd);
	if (s != CKR_OK && s != CKR_ENAN)
		return fail_run(r, s);
	if (s == CKR_OK && valid_is_due(&r->valid, row.step, row.steps)) {
		status = validate(r);
		row.valid = &r->valid.last;
	}
	if (status)
		return status;
	report_step(r, &row, s == CKR_OK);
	if (s == CKR_ENAN)
		return fail_by_nan(r);
	if (row.overflow)
		r->steps.overflows++;
	else if (row.skipped)
		status = handle_skipped(r);
	else
		warn_loss(r, row.step, row.loss);
	if (!status && o->save_every && row.step % o->save_every == 0
	    && row.step < row.steps)
		status = save_checkpoint(r, true);
	return status;
}

static int
train(struct train_run *r)
{
	while (ckr_step_count(r->m) < r->steps.total && !r->stalled) {
		ckr_status s = ckr_agree_any(r->m, interrupted(), &r->stopped);
		int status;

		if (s == CKR_OK)
			s = saves_poll(&r->saves);
		if (s != CKR_OK)
			return fail_run(r, s);
		if (r->stopped && !r->steps.count)
			break;
		status = train_step(r);
		if (status)
			return status;
	}
	r->stopped &= ckr_step_count(r->m) < r->steps.total && !r->stalled;
	if (r->stalled && !r->o->quiet)
		printf("the validation loss has not improved for %llu "
		       "validations: stopped after step %llu\n",
		       (unsigned long long)r->o->patience,
		       (unsigned long long)ckr_step_count(r->m));
	end_line(r);
	return DONE;
}

/* ---- before and after ---- */

static void
find_loss(struct train_run *r)
{
	struct ckr_info info;

	r->steps.exact = ckr_micro_batches(r->m) == 1;
	for (size_t i = 0; ckr_tensor(r->m, i, &info) == CKR_OK; i++)
		if (info.loss) {
			r->steps.has_loss = true;
			r->steps.exact &= strcmp(info.dtype, "f64") != 0;
		}
}

/* The norm costs time: only where somebody looks, or it is there. */
static ckr_status
open_log(struct train_run *r)
{
	if (r->o->log || r->o->tensorboard || r->o->hyper.clip > 0)
		r->steps.has_norm = ckr_grad_norm(r->m, NULL) == CKR_OK;
	return log_open(&r->log, r->m, r->o);
}

static ckr_status
open_all(struct train_run *r)
{
	const struct ckrun_options *o = r->o;

	if (o->grads)
		CKR_TRY(ckr_save_grads(r->m, o->grads));
	if (o->trace)
		CKR_TRY(ckr_trace(r->m, o->trace));
	if (o->profile)
		CKR_TRY(ckr_profile(r->m, NULL));
	find_loss(r);
	return CKR_OK;
}

/* What fails here fails everywhere. */
static ckr_status
open_run(struct train_run *r)
{
	const struct ckrun_options *o = r->o;
	ckr_status s = start_model(&r->m, &r->data, o, o->model);

	if (s == CKR_OK && o->valid.n)
		s = valid_open(&r->valid, r->m, o, &r->data);
	if (s == CKR_OK)
		s = start_files(r->m, o);
	if (s == CKR_OK)
		s = open_log(r);
	s = ckr_agree(r->m, s);
	if (s == CKR_OK)
		s = saves_open(&r->saves, r->m, o);
	return s == CKR_OK ? open_all(r) : s;
}

static ckr_status
write_profile(struct train_run *r)
{
	if (ckr_step_count(r->m) - r->steps.before == 1)
		fprintf(stderr, "ckrun: warning: --profile measured only the "
		        "first step, which includes loading code and touching "
		        "memory; run more steps to exclude it\n");
	if (!r->o->quiet)
		CKR_TRY(ckr_profile_table(r->m, stdout));
	return ckr_profile(r->m, r->o->profile);
}

static ckr_status
write_results(struct train_run *r)
{
	const struct ckrun_options *o = r->o;

	if (o->outputs && !r->written)
		CKR_TRY(ckr_save_outputs(r->m, o->outputs));
	CKR_TRY(start_averages(r->m, o, true));
	if (o->save_lora)
		CKR_TRY(ckr_save_adapters(r->m, o->save_lora));
	if (o->save_merged)
		CKR_TRY(ckr_save_merged(r->m, o->save_merged));
	if (o->onnx)
		CKR_TRY(export_onnx(r->m, o->onnx));
	CKR_TRY(start_averages(r->m, o, false));
	if (o->profile)
		CKR_TRY(write_profile(r));
	if (o->grads && steps_only_skipped(&r->steps))
		fprintf(stderr, "ckrun: warning: '%s' was not written: every "
		        "step was skipped\n", o->grads);
	CKR_TRY(ckr_trace(r->m, NULL));
	return ckr_agree(r->m, log_flush(&r->log, r->m));
}

/* A file in memory saves none. */
static void
print_offload(const ckr_ctx *m)
{
	const char *dir = ckr_offload_dir(m);
	uint64_t bytes = ckr_host_bytes(m);
	char size[24];
	double room;

	if (!bytes)
		return;
	number_bytes(size, (double)bytes);
	if (!dir) {
		printf("  %s in pinned host memory (ckc --offload)\n", size);
		return;
	}
	printf("  %s in a file without a name in %s (ckc --offload)\n", size,
	       dir);
	if (offload_dir_is_memory(dir, &room))
		fprintf(stderr, "ckrun: warning: files in %s are in memory "
		        "(tmpfs), so offloading saves no memory; choose a "
		        "folder on a disk with --offload-dir\n", dir);
}

static void
print_run_head(const struct train_run *r)
{
	uint32_t replicas = ckr_replicas(r->m);
	const char *kind = replicas == 1 ? " (tensor parallel)"
	                   : replicas == ckr_ranks(r->m) ? " (data parallel)"
	                   : " (data and tensor parallel)";

	if (r->o->threads > (uint64_t)ckr_threads(r->m))
		fprintf(stderr, "ckrun: warning: the model was compiled for %d "
		        "thread%s and cannot use %llu\n", ckr_threads(r->m),
		        ckr_threads(r->m) == 1 ? "" : "s",
		        (unsigned long long)r->o->threads);
	if (r->o->quiet)
		return;
	printf("%s: ", ckr_model_name(r->m));
	if (ckr_ranks(r->m) > 1)
		printf("%u %s%s, ", ckr_ranks(r->m), ckr_processes(r->m) > 1
		       ? "ranks in separate processes" : "virtual ranks", kind);
	printf("optimizer %s, %d thread%s, matrix products by %s\n",
	       ckr_optimizer(r->m), ckr_threads(r->m),
	       ckr_threads(r->m) == 1 ? "" : "s", ckr_blas(r->m));
	print_offload(r->m);
	data_print(&r->data, stdout);
}

static void
print_tail(const struct train_run *r)
{
	struct ckr_memory m;

	if (r->o->quiet && !r->o->stats)
		return;
	ckr_memory(r->m, &m);
	if (strstr(ckr_blas(r->m), "without epilogue"))
		printf("matrix products by %s: these are computed in a second "
		       "kernel\n", ckr_blas(r->m));
	if (strstr(ckr_blas(r->m), "without CUDA graphs"))
		printf("steps are launched kernel by kernel: a CUDA graph "
		       "cannot record them; for the reason, set CKR_LOG=1\n");
	printf("peak %llu bytes%s, planned %llu; the process grew by %llu\n",
	       (unsigned long long)m.peak_bytes,
	       ckr_ranks(r->m) > 1 ? " per rank" : "",
	       (unsigned long long)m.planned_bytes,
	       (unsigned long long)m.grown_bytes);
	if (r->o->stats)
		printf("resident %llu, arena %llu, rollback copies %llu, "
		       "budget %llu\n",
		       (unsigned long long)m.resident_bytes,
		       (unsigned long long)m.arena_bytes,
		       (unsigned long long)m.held_bytes,
		       (unsigned long long)m.budget_bytes);
	if (r->o->stats && m.staging_bytes)
		printf("copy for --save-async %llu\n",
		       (unsigned long long)m.staging_bytes);
	if (r->o->stats && m.transfer_bytes)
		printf("transfer buffers between processes %llu\n",
		       (unsigned long long)m.transfer_bytes);
	if (r->o->check)
		checked_print(&r->steps.checked);
	if (r->steps.skipped)
		printf("%llu step%s skipped\n",
		       (unsigned long long)r->steps.skipped,
		       r->steps.skipped > 1 ? "s" : "");
	if (r->steps.overflows)
		printf("%llu steps skipped because gradients overflowed, loss "
		       "scale now %g\n", (unsigned long long)r->steps.overflows,
		       ckr_loss_scale(r->m));
	if (r->o->save)
		printf("saved %s\n", r->o->save);
	if (r->o->save_best && !isfinite(ckr_best_loss(r->m, NULL)))
		fprintf(stderr, "ckrun: warning: %s was not written: no "
		        "validation loss was finite\n", r->o->save_best);
	else if (r->o->save_best)
		printf("saved %s, validation loss %.9g\n",
		       r->o->save_best, ckr_best_loss(r->m, NULL));
}

/* How many steps, by default: one for a model that does not train. */
static int
count_steps(struct train_run *r)
{
	const struct ckrun_options *o = r->o;

	r->steps.total = o->steps;
	if (options_given(o, "steps"))
		return DONE;
	if (options_given(o, "epochs"))
		return data_steps(&r->data, o->epochs, &r->steps.total) ? DONE
		       : options_usage("--", "epochs", r->data.per_step
		                       ? "is too large" : "needs an input that "
		                       "reads samples from --data");
	if (strcmp(ckr_optimizer(r->m), "none") && !o->check)
		return options_usage("--", "steps", "or --epochs is required "
		                     "for training");
	r->steps.total = ckr_step_count(r->m) + 1;
	return DONE;
}

static int
run_model(struct train_run *r)
{
	struct ckr_hyper hyper;
	ckr_status s = open_run(r);
	int status;

	if (s != CKR_OK)
		return fail_run(r, s);
	r->steps.o = r->o;
	r->steps.m = r->m;
	r->steps.data = &r->data;
	hyper = ckr_model_hyper(r->m);
	options_default(r->o, &hyper);
	status = count_steps(r);
	if (status)
		return status;
	options_warn(r->o, r->m, r->steps.total);
	ckr_set_schedule_steps(r->m, schedule_end(r->o, r->steps.total));
	print_run_head(r);
	r->steps.before = ckr_step_count(r->m);
	if (ckr_step_count(r->m) >= r->steps.total && !r->o->quiet)
		printf("nothing to do: %llu steps are already done, and --%s "
		       "includes them\n",
		       (unsigned long long)ckr_step_count(r->m),
		       options_given(r->o, "epochs") ? "epochs" : "steps");
	/* a run that has stopped for it is not gone on with */
	r->stalled = valid_stalled(r->m, r->o);
	status = train(r);
	if (!status && r->o->save)
		status = save_checkpoint(r, false);
	if (status)
		return status;
	s = saves_wait(&r->saves);
	if (s == CKR_OK)
		s = write_results(r);
	if (s != CKR_OK)
		return fail_run(r, s);
	print_tail(r);
	if (!r->stopped)
		return DONE;
	fprintf(stderr, "ckrun: stopped after step %llu\n",
	        (unsigned long long)ckr_step_count(r->m));
	return FAILED;
}

/* status, or that what was printed did not arrive. */
static int
flush_stdout(int status)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return status;
	fputs("ckrun: cannot write to standard output\n", stderr);
	return status ? status : FAILED;
}

int
main(int argc, char **argv)
{
	struct ckrun_options o = { 0 };
	struct train_run r = { .o = &o, .tty = console_is_terminal() };
	int status;

	if (argc > 1 && !strcmp(argv[1], "report"))
		return flush_stdout(report_run(argc - 2, argv + 2));
	if (argc > 1 && !strcmp(argv[1], "merge"))
		return flush_stdout(merge_run(argc - 2, argv + 2));
	console_begin();
	status = options_parse(&o, argc, argv);
	if (status)
		return status;
	if (o.help)
		options_help(o.verb);
	else if (o.version && puts("ckrun " CKC_VERSION) >= 0)
		data_formats(stdout);
	if (o.help || o.version)
		return flush_stdout(DONE);
	status = options_check(&o);
	if (status)
		return status;
	interrupt_begin();
	if (o.verb != VERB_TRAIN)
		return flush_stdout(eval_run(&o));
	if (o.against)
		return flush_stdout(against_run(&o));
	status = run_model(&r);
	log_close(&r.log);
	valid_close(&r.valid);
	data_close(&r.data);
	ckr_close(r.m);
	return flush_stdout(status);
}
