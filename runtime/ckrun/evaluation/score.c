/* The loss and metrics of all samples, batch by batch. */
#include "runtime/ckrun/evaluation/evaluation.h"

#include <math.h>
#include <stdio.h>

#include "runtime/ckrun/interrupt.h"

ckr_status
check_interrupted(ckr_ctx *m)
{
	bool stopped;

	CKR_TRY(ckr_agree_any(m, interrupted(), &stopped));
	return stopped ? ckr_fail(m, CKR_EARG, "stopped by a signal; nothing "
	                          "was written") : CKR_OK;
}

ckr_status
score_error(ckr_ctx *m, const struct data *d, const char *what, ckr_status s)
{
	char where[2 * NAME_TEXT + 400], why[sizeof(((struct err *)0)->text)];

	if (s != CKR_EDATA)
		return s;
	snprintf(why, sizeof(why), "%s", ckr_error(m));
	if (!data_find_number(d, ckr_bad_number(m), where, sizeof(where)))
		snprintf(where, sizeof(where), "the batch that begins at "
		         "sample %llu",
		         (unsigned long long)(d->first * d->whole));
	return ckr_fail(m, s, "%s, %s: %s", what, where, why);
}

ckr_status
score_data(struct score *s, ckr_ctx *m, struct data *d, bool stops)
{
	uint64_t n = d->samples, rest = n % d->rows;
	struct ckr_score of;

	CKR_TRY(ckr_score_begin(m));
	for (uint64_t i = 0; i < n; i += d->rows) {
		if (stops)
			CKR_TRY(check_interrupted(m));
		CKR_TRY(data_batch(d, i));
		CKR_TRY(ckr_score_add(m, 1));
	}
	if (rest) {
		CKR_TRY(data_batch(d, n - 1));
		CKR_TRY(ckr_score_add(m, -(double)(d->rows - rest)
		                         / (double)d->rows));
	}
	CKR_TRY(ckr_score_end(m, &of));
	*s = (struct score){ .samples = n * d->whole,
		.rows = d->rows * d->whole, .loss = of.loss,
		.accuracy = of.accuracy, .perplexity = of.perplexity,
		.by_batch = of.by_batch };
	return CKR_OK;
}

bool
score_exists(ckr_ctx *m)
{
	struct ckr_info info;

	for (size_t i = 0; ckr_eval_output(m, i, &info) == CKR_OK; i++)
		if (info.loss)
			return true;
	return false;
}

static void
note_nonfinite_score(struct data *d, const char *what)
{
	uint64_t n = 0;

	fprintf(stderr, "ckrun: warning: the loss of %s is not finite", what);
	while (n < d->samples && !data_print_nonfinite(d, n, d->rows, stderr))
		n += d->rows;
	fputc('\n', stderr);
}

void
score_note(const struct score *s, struct data *d, const char *what)
{
	if (!isfinite(s->loss) && score_exists(d->ctx))
		note_nonfinite_score(d, what);
	if (s->by_batch)
		fprintf(stderr, "ckrun: note: the loss of %s depends on the "
		        "batch size, here %llu: %s\n", what,
		        (unsigned long long)s->rows, s->by_batch);
}
