/* late MODEL.so STEPS DEPTH FED BAD HOW ON-NAN OUT: train, and tell of every
 * step that ends.
 *
 * DEPTH 1: by ckr_step; 2: steps are begun ahead where they can be.  FED 1: a
 * function sets inputs; 0: they are set before a step begins.  Inputs are
 * functions of the sample's number.  Those of step BAD (0: none) are bad, in
 * the last micro-batch if they differ: HOW nan, loss (an infinity that no
 * gradient sees), index (out of range; early: in all micro-batches), big
 * (floats) or feed (there are none: that fails).  ON-NAN stop, skip or go.  OUT
 * is a checkpoint of the end, or of what a step that failed has left; behind
 * that one more is taken, of good inputs.
 */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/ckr.h"

struct task {
	ckr_ctx *m;
	uint64_t bad;
	const char *how;
	bool fed;
	bool mistaken;                  /* something is not as it must be */
};

static uint64_t
mix(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

/* An input of step `step`, from 0, and one of its micro-batches. */
static void
fill(struct task *t, const struct ckr_info *in, char *to, uint64_t step,
     uint32_t micro)
{
	bool floats = !strcmp(in->dtype, "f32");
	size_t n = in->nbytes / (floats ? 4 : 8);
	bool early = !strcmp(t->how, "early");
	bool bad = step + 1 == t->bad
		&& (!t->fed || early || micro + 1 == ckr_micro_batches(t->m));

	for (size_t i = 0; i < n; i++) {
		uint64_t h = mix(mix(step * 64 + micro) + i);
		float x = (float)(h % 2000) / 1000 - 1;
		int64_t id = (int64_t)(h % 4);

		if (bad && i == n / 2 && !strcmp(t->how, "nan"))
			x = NAN;
		if (bad && !strcmp(t->how, "loss") && n == 1)
			x = INFINITY;
		if (bad && !strcmp(t->how, "big"))
			x *= 3e4f;
		if (bad && i == n / 2 && (early || !strcmp(t->how, "index")))
			id = 1000;
		memcpy(to + i * (floats ? 4 : 8),
		       floats ? (void *)&x : (void *)&id, floats ? 4 : 8);
	}
}

static ckr_status
set_all(struct task *t, uint64_t step, uint32_t micro)
{
	struct ckr_info info;
	ckr_status s = CKR_OK;

	if (step + 1 == t->bad && !strcmp(t->how, "feed"))
		return ckr_fail(t->m, CKR_EIO, "no inputs for step %llu",
		                (unsigned long long)step + 1);
	for (size_t i = 0; !s && !ckr_tensor(t->m, i, &info); i++) {
		char *data;

		if (strcmp(info.kind, "input"))
			continue;
		data = malloc(info.nbytes + 1);
		fill(t, &info, data, step, micro);
		s = ckr_set(t->m, info.name, data, info.nbytes);
		free(data);
	}
	return s;
}

static ckr_status
feed(void *user, ckr_ctx *m, uint64_t step, uint32_t micro)
{
	struct task *t = user;

	if (ckr_sample_count(m) != step * 5) {
		printf("step %llu is fed, %llu samples have been\n",
		       (unsigned long long)step,
		       (unsigned long long)ckr_sample_count(m));
		t->mistaken = true;
	}
	return set_all(t, step, micro);
}

static void
tell(struct task *t, ckr_status s, double loss, double scale)
{
	double norm = NAN;

	printf("%d after %llu: loss %a scale %g skipped %llu", (int)s,
	       (unsigned long long)ckr_step_count(t->m), loss, scale,
	       (unsigned long long)ckr_skipped_count(t->m));
	if (s)
		printf(": %s", ckr_error(t->m));
	ckr_grad_norm(t->m, &norm);
	printf("; norm %a\n", norm);
}

/* Steps are under way: nothing but inputs can be touched. */
static void
try_all(struct task *t)
{
	struct ckr_hyper h = ckr_model_hyper(t->m);

	if (ckr_save(t->m, "/dev/null") == CKR_EARG
	    && ckr_check_finite(t->m) == CKR_EARG
	    && ckr_eval(t->m, NULL) == CKR_EARG
	    && ckr_step(t->m, &h, NULL) == CKR_EARG)
		return;
	printf("what must not be done while a step is under way was done\n");
	t->mistaken = true;
}

/* Steps until `end`, `depth` of them at a time at most. */
static ckr_status
train(struct task *t, uint64_t end, uint32_t depth, int on_nan)
{
	struct ckr_hyper h = ckr_model_hyper(t->m);
	uint64_t step = ckr_step_count(t->m), begun = step;
	ckr_status s = CKR_OK;

	h.on_nan = (enum ckr_on_nan)on_nan;
	h.scale_interval = 2;
	for (; s == CKR_OK && step < end; step++) {
		double loss = NAN, scale;

		while (s == CKR_OK && begun < end && begun < step + depth
		       && ckr_can_begin(t->m)) {
			h.lr = 1e-3 * (double)(begun + 1);
			if (!t->fed)
				s = set_all(t, begun, 0);
			if (s == CKR_OK && depth > 1)
				s = ckr_begin_step(t->m, &h);
			begun += s == CKR_OK;
			if (depth == 1)
				break;
		}
		if (s != CKR_OK)
			break;
		if (depth > 1 && step == 2)
			try_all(t);
		scale = ckr_loss_scale(t->m);
		s = depth > 1 ? ckr_end_step(t->m, &loss)
		              : ckr_step(t->m, &h, &loss);
		tell(t, s, loss, scale);
	}
	return s;
}

int
main(int argc, char **argv)
{
	struct ckr_options o = { .seed = 3 };
	struct task t = { .how = argc > 8 ? argv[6] : "" };
	uint64_t steps;
	int on_nan;
	ckr_status s;

	if (argc != 9)
		return 2;
	steps = strtoull(argv[2], NULL, 10);
	t.fed = atoi(argv[4]);
	t.bad = strtoull(argv[5], NULL, 10);
	on_nan = !strcmp(argv[7], "stop") ? CKR_NAN_STOP
	         : !strcmp(argv[7], "skip") ? CKR_NAN_SKIP : CKR_NAN_GO;
	s = ckr_open(&t.m, argv[1], &o);
	if (s == CKR_OK && t.fed)
		s = ckr_set_feed(t.m, feed, &t);
	if (s == CKR_OK)
		s = ckr_set_samples(t.m, 5);
	ckr_grad_norm(t.m, NULL);
	if (s == CKR_OK)
		s = train(&t, steps, (uint32_t)atoi(argv[3]), on_nan);
	if (ckr_save(t.m, argv[8]))
		printf("not saved: %s\n", ckr_error(t.m));
	t.bad = 0;
	if (s != CKR_OK)
		train(&t, ckr_step_count(t.m) + 1, 1, on_nan);
	ckr_close(t.m);
	return t.mistaken;
}
