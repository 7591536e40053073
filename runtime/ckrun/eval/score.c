#include "runtime/ckrun/eval/eval.h"

#include <math.h>
#include <string.h>

/* Of a batch, or of several. */
struct sums {
	double loss, weight;            /* times what it weighs; that */
	double counted, correct, entropy;       /* of labels */
};

/* What the model tells beside its loss. */
struct knows {
	bool labels, entropy;
};

static struct knows
look_at_metrics(ckr_ctx *m)
{
	struct knows k = { false, false };
	struct ckr_info info;

	for (size_t i = 0; ckr_eval_output(m, i, &info) == CKR_OK; i++) {
		if (strcmp(info.kind, "metric"))
			continue;
		k.labels |= !strcmp(info.name, "eval.correct");
		k.entropy |= !strcmp(info.name, "eval.entropy");
	}
	return k;
}

static ckr_status
metric(ckr_ctx *m, const char *name, double *sum)
{
	float x;

	CKR_TRY(ckr_get(m, name, &x, sizeof(x)));
	*sum = (double)x;
	return CKR_OK;
}

/* A batch without labels that count has no loss. */
static ckr_status
score_batch(struct sums *b, ckr_ctx *m, struct data *d, const struct knows *k,
            uint64_t first)
{
	double loss;

	*b = (struct sums){ .weight = (double)d->rows };
	CKR_TRY(data_batch(d, first));
	CKR_TRY(ckr_eval(m, &loss));
	if (k->labels) {
		CKR_TRY(metric(m, "eval.counted", &b->counted));
		CKR_TRY(metric(m, "eval.correct", &b->correct));
		b->weight = b->counted;
	}
	if (k->entropy && b->counted > 0)
		CKR_TRY(metric(m, "eval.entropy", &b->entropy));
	b->loss = b->weight > 0 ? loss * b->weight : 0;
	return CKR_OK;
}

static void
add(struct sums *s, const struct sums *b, double times)
{
	s->loss += times * b->loss;
	s->weight += times * b->weight;
	s->counted += times * b->counted;
	s->correct += times * b->correct;
	s->entropy += times * b->entropy;
}

ckr_status
score_data(struct score *s, ckr_ctx *m, struct data *d)
{
	struct knows k = look_at_metrics(m);
	struct sums all = { 0 }, b;
	uint64_t n = d->samples, rest = n % d->rows;

	for (uint64_t i = 0; i < n; i += d->rows) {
		CKR_TRY(score_batch(&b, m, d, &k, i));
		add(&all, &b, 1);
	}
	if (rest) {
		CKR_TRY(score_batch(&b, m, d, &k, n - 1));
		add(&all, &b, -(double)(d->rows - rest) / (double)d->rows);
	}
	*s = (struct score){ .samples = n, .loss = all.loss / all.weight,
		.accuracy = k.labels ? all.correct / all.counted : (double)NAN,
		.perplexity = k.entropy ? exp(all.entropy / all.counted)
		                        : (double)NAN };
	return CKR_OK;
}
