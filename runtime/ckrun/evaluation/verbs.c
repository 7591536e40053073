/* ckrun eval, predict and sample, from options to exit status. */
#include "runtime/ckrun/evaluation/evaluation.h"

#include <stdio.h>

#include "runtime/ckrun/log.h"
#include "runtime/ckrun/start.h"

struct eval_job {
	const struct ckrun_options *o;
	ckr_ctx *m;
	struct data data;
};

static ckr_status
run_eval(struct eval_job *j)
{
	const char *what = j->o->inputs ? "--inputs" : "--data";
	struct score s;
	struct log log;
	ckr_status st;

	if (!score_exists(j->m))
		return ckr_fail(j->m, CKR_EUNSUPPORTED, "the library has no "
		                "loss to evaluate; compile it with ckc --loss, "
		                "or use ckrun predict");
	st = score_data(&s, j->m, &j->data, true);
	CKR_TRY(score_error(j->m, &j->data, what, st));
	printf("%llu sample%s  ", (unsigned long long)s.samples,
	       s.samples == 1 ? "" : "s");
	score_print(&s, stdout);
	putchar('\n');
	fflush(stdout);
	score_note(&s, &j->data, what);
	st = log_open(&log, j->m, j->o);
	log_score(&log, &s);
	if (st == CKR_OK)
		st = log_flush(&log, j->m);
	log_close(&log);
	return st;
}

static ckr_status
run_verb(struct eval_job *j)
{
	const struct ckrun_options *o = j->o;
	uint64_t samples;

	if (o->verb == VERB_SAMPLE) {
		CKR_TRY(start_weights(&j->m, o, o->model));
		options_warn(o, j->m, 0);
		return sample_text(j->m, o);
	}
	CKR_TRY(start_model(&j->m, &j->data, o, o->model));
	if (!o->quiet)
		data_print(&j->data, stdout);
	fflush(stdout);
	options_warn(o, j->m, 0);
	if (o->verb == VERB_EVAL)
		return run_eval(j);
	CKR_TRY(predict_data(j->m, &j->data, o->name, o->out));
	samples = j->data.samples * j->data.whole;
	if (!o->quiet)
		printf("%llu sample%s predicted, written to %s\n",
		       (unsigned long long)samples, samples == 1 ? "" : "s",
		       o->out);
	return CKR_OK;
}

static void
print_memory(ckr_ctx *m)
{
	struct ckr_memory memory;

	if (ckr_memory(m, &memory) == CKR_OK)
		printf("peak %llu bytes, planned %llu; the process grew by "
		       "%llu\n", (unsigned long long)memory.peak_bytes,
		       (unsigned long long)memory.planned_bytes,
		       (unsigned long long)memory.grown_bytes);
}

int
eval_run(const struct ckrun_options *o)
{
	struct eval_job j = { .o = o };
	ckr_status s = run_verb(&j);

	if (s != CKR_OK) {
		fflush(stdout);
		fprintf(console_errors(j.m), "ckrun: %s\n", ckr_error(j.m));
		ckr_abort(j.m, s);
	} else {
		if (*j.data.warning)
			fprintf(stderr, "ckrun: warning: %s\n",
			        j.data.warning);
		if (o->stats)
			print_memory(j.m);
	}
	data_close(&j.data);
	ckr_close(j.m);
	return s == CKR_OK ? DONE : s == CKR_ERANK ? GONE : FAILED;
}
