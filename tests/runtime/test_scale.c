/* Steps with numbers that are not, and the loss scale, on models written by
 * hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "runtime/ckr.h"
#include "tests/runtime/folder.h"
#include "tests/runtime/linear.h"

/* ---- numbers that are not ---- */

/* Inputs for which the loss is NaN (bad 1), or finite but its gradient
 * infinite (bad 2): y = 3e25 * 1e-7, but dw = 3e25 * y. */
static void
spoil(ckr_ctx *c, int bad)
{
	float x[12] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 0, 1 };
	float w[6] = { 1e-7f, 1e-7f };

	x[0] = bad == 1 ? NAN : bad == 2 ? 3e25f : 1;
	if (bad == 2)
		ckr_set(c, "w", w, sizeof(w));
	ckr_set(c, "x", x, sizeof(x));
}

static void
check_stop(const char *so, int bad, const char *says)
{
	struct ckr_hyper h = ckr_hyper_default();
	ckr_ctx *c = open_linear(so);
	struct state before, after;
	double loss;

	assert_int_equal(ckr_step(c, &h, NULL), CKR_OK);
	spoil(c, bad);
	before = state_of(c);
	assert_int_equal(ckr_step(c, &h, &loss), CKR_ENAN);
	assert_non_null(strstr(ckr_error(c), "step 2: "));
	assert_non_null(strstr(ckr_error(c), says));
	assert_int_equal(!isfinite(loss), bad == 1);
	assert_int_equal(ckr_step_count(c), 1);
	after = state_of(c);
	assert_memory_equal(&before, &after, sizeof(before));
	assert_int_equal(ckr_check(c, &h, &loss, NULL), CKR_ENAN);
	after = state_of(c);
	assert_memory_equal(&before, &after, sizeof(before));

	h.on_nan = CKR_NAN_SKIP;
	assert_int_equal(ckr_step(c, &h, &loss), CKR_OK);
	assert_int_equal(ckr_check(c, &h, &loss, NULL), CKR_OK);
	assert_int_equal(ckr_step_count(c), 3);
	assert_int_equal(ckr_skipped_count(c), 2);
	assert_non_null(strstr(ckr_error(c), says));
	after = state_of(c);
	assert_memory_equal(&before, &after, sizeof(before));
	assert_int_equal(ckr_check_finite(c), CKR_OK);

	h.on_nan = CKR_NAN_GO;
	assert_int_equal(ckr_step(c, &h, &loss), CKR_OK);
	assert_int_equal(ckr_step_count(c), 4);
	assert_int_equal(ckr_check_finite(c), CKR_ENAN);
	assert_non_null(strstr(ckr_error(c), "after step 4 'w' is not finite"));
	ckr_close(c);
}

static void
test_nan(void **state)
{
	static const char *const so[] = { MODELS "/linear.so",
		MODELS "/linear_accum.so", MODELS "/linear_early.so" };

	(void)state;
	for (size_t i = 0; i < sizeof(so) / sizeof(*so); i++) {
		check_stop(so[i], 1, "the loss is not finite: nan");
		check_stop(so[i], 2, "the gradient of 'w' is not finite: ");
	}
}

/* Steps that were skipped leave no trace, in AdamW's bias correction neither,
 * nor over a checkpoint. */
static void
test_skipped(void **state)
{
	struct ckr_hyper h = ckr_hyper_default();
	ckr_ctx *c = open_linear(MODELS "/linear_early.so");
	ckr_ctx *d = open_linear(MODELS "/linear_early.so");
	struct state a, b;

	(void)state;
	h.on_nan = CKR_NAN_SKIP;
	h.lr = 0.125;
	for (int i = 0; i < 6; i++) {
		spoil(c, i % 3 == 1);
		assert_int_equal(ckr_step(c, &h, NULL), CKR_OK);
		if (i % 3 != 1)
			assert_int_equal(ckr_step(d, &h, NULL), CKR_OK);
		if (i != 2)
			continue;
		assert_int_equal(ckr_save(c, "r.safetensors"), CKR_OK);
		ckr_close(c);
		c = open_linear(MODELS "/linear_early.so");
		assert_int_equal(ckr_resume(c, "r.safetensors"), CKR_OK);
		assert_int_equal(ckr_skipped_count(c), 1);
	}
	a = state_of(c);
	b = state_of(d);
	assert_memory_equal(&a, &b, sizeof(a));
	assert_int_equal(ckr_step_count(c), 6);
	ckr_close(c);
	ckr_close(d);
}

/* ---- the loss scale ---- */

/* Gradients of 1.5e34: a scale of 16384 is the largest that they bear. */
static void
steepen(ckr_ctx *c)
{
	float x[12] = { 2e17f, 2, 3, 4, 5, 6, 7, 8, 9, 1, 0, 1 };
	float w[6] = { 1, 1 };

	ckr_set(c, "w", w, sizeof(w));
	ckr_set(c, "x", x, sizeof(x));
}

#define SCALED MODELS "/linear_scaled.so"

static void
expect_step(ckr_ctx *c, const struct ckr_hyper *h, uint64_t skipped,
            double scale)
{
	assert_int_equal(ckr_step(c, h, NULL), CKR_OK);
	assert_int_equal(ckr_skipped_count(c), skipped);
	assert_float_equal(ckr_loss_scale(c), scale, 0);
}

/* Steps that overflow halve the scale and leave no trace; the first that does
 * not is that of a model without a scale. */
static void
test_scale_falls(void **state)
{
	struct ckr_hyper h = ckr_hyper_default();
	ckr_ctx *c = open_linear(SCALED);
	ckr_ctx *d = open_linear(MODELS "/linear_early.so");
	struct state before, after;
	double norm;

	(void)state;
	assert_float_equal(ckr_loss_scale(c), 65536, 0);
	assert_float_equal(ckr_loss_scale(d), 0, 0);
	steepen(c);
	steepen(d);
	before = state_of(c);
	h.on_nan = CKR_NAN_GO;
	expect_step(c, &h, 1, 32768);
	assert_non_null(strstr(ckr_error(c), "step 1: the gradient of 'w' is "
	                       "not finite: inf at a loss scale of 65536"));
	h.on_nan = CKR_NAN_STOP;
	assert_int_equal(ckr_check(c, &h, NULL, NULL), CKR_OK);
	assert_int_equal(ckr_skipped_count(c), 2);
	assert_int_equal(ckr_step_count(c), 2);
	after = state_of(c);
	assert_memory_equal(&before, &after, sizeof(before));
	expect_step(c, &h, 2, 16384);
	assert_int_equal(ckr_step(d, &h, NULL), CKR_OK);
	before = state_of(d);
	after = state_of(c);
	assert_memory_equal(&before, &after, sizeof(before));
	assert_int_equal(ckr_grad_norm(c, &norm), CKR_EUNSUPPORTED);
	ckr_close(c);
	ckr_close(d);
}

static void
test_scale_again(void **state)
{
	struct ckr_hyper h = ckr_hyper_default();
	ckr_ctx *c = open_linear(SCALED), *d = open_linear(SCALED);
	struct ckr_checked n;
	struct state a, b;

	(void)state;
	h.scale_again = true;
	steepen(c);
	steepen(d);
	expect_step(c, &h, 0, 16384);
	assert_int_equal(ckr_step_count(c), 1);
	assert_int_equal(ckr_check(d, &h, NULL, &n), CKR_OK);
	assert_float_equal(ckr_loss_scale(d), 16384, 0);
	assert_int_equal(ckr_skipped_count(d), 0);
	assert_int_equal(n.again, 2);
	a = state_of(c);
	b = state_of(d);
	assert_memory_equal(&a, &b, sizeof(a));
	ckr_close(c);
	ckr_close(d);
}

/* Good steps in a row double it; the run may be taken up between them. */
static void
test_scale_rises(void **state)
{
	struct ckr_hyper h = ckr_hyper_default();
	ckr_ctx *c = open_linear(SCALED);
	float w[6];

	(void)state;
	h.scale_interval = 3;
	expect_step(c, &h, 0, 65536);
	expect_step(c, &h, 0, 65536);
	assert_int_equal(ckr_get(c, "w", w, sizeof(w)), CKR_OK);
	steepen(c);
	expect_step(c, &h, 1, 32768);
	spoil(c, 0);
	assert_int_equal(ckr_set(c, "w", w, sizeof(w)), CKR_OK);
	expect_step(c, &h, 1, 32768);
	expect_step(c, &h, 1, 32768);
	assert_int_equal(ckr_save(c, "scale.safetensors"), CKR_OK);
	ckr_close(c);
	c = open_linear(SCALED);
	assert_int_equal(ckr_resume(c, "scale.safetensors"), CKR_OK);
	assert_float_equal(ckr_loss_scale(c), 32768, 0);
	expect_step(c, &h, 1, 65536);
	h.scale_interval = 1;
	for (int i = 0; i < 20; i++)
		assert_int_equal(ckr_step(c, &h, NULL), CKR_OK);
	assert_float_equal(ckr_loss_scale(c), 0x1p24, 0);
	ckr_close(c);
	c = open_linear(SCALED);
	h.scale_interval = 0;
	for (int i = 0; i < 1999; i++)
		assert_int_equal(ckr_step(c, &h, NULL), CKR_OK);
	assert_float_equal(ckr_loss_scale(c), 65536, 0);
	expect_step(c, &h, 0, 131072);
	ckr_close(c);
}

/* What no scale can help against is left to on_nan. */
static void
test_scale_ends(void **state)
{
	struct ckr_hyper h = ckr_hyper_default();
	ckr_ctx *c = open_linear(SCALED);
	struct state before, after;

	(void)state;
	spoil(c, 1);
	assert_int_equal(ckr_step(c, &h, NULL), CKR_ENAN);
	assert_float_equal(ckr_loss_scale(c), 65536, 0);
	spoil(c, 2);
	before = state_of(c);
	for (int i = 0; i < 16; i++)
		expect_step(c, &h, (uint64_t)i + 1, 32768 / (double)(1 << i));
	assert_int_equal(ckr_step(c, &h, NULL), CKR_ENAN);
	assert_non_null(strstr(ckr_error(c), "at a loss scale of 1"));
	assert_int_equal(ckr_step_count(c), 16);
	h.on_nan = CKR_NAN_SKIP;
	expect_step(c, &h, 17, 1);
	after = state_of(c);
	assert_memory_equal(&before, &after, sizeof(before));
	h.on_nan = CKR_NAN_GO;
	expect_step(c, &h, 17, 1);
	assert_int_equal(ckr_check_finite(c), CKR_ENAN);
	ckr_close(c);
	/* a loss that is not finite goes on, too */
	c = open_linear(SCALED);
	spoil(c, 1);
	expect_step(c, &h, 0, 65536);
	assert_int_equal(ckr_check_finite(c), CKR_ENAN);
	ckr_close(c);
}

static void
test_scale_fixed(void **state)
{
	static const double wrong[] = { -1, NAN, INFINITY, 1e-45, 1e39 };
	struct ckr_hyper h = ckr_hyper_default();
	ckr_ctx *c = open_linear(SCALED);
	ckr_ctx *d = open_linear(MODELS "/linear_early.so");
	struct state a, b;

	(void)state;
	steepen(c);
	h.loss_scale = 32768;
	assert_int_equal(ckr_step(c, &h, NULL), CKR_ENAN);
	assert_float_equal(ckr_loss_scale(c), 65536, 0);
	steepen(d);
	assert_int_equal(ckr_step(d, &h, NULL), CKR_EUNSUPPORTED);
	assert_non_null(strstr(ckr_error(d), "--dtype f16"));
	h.loss_scale = 3;
	expect_step(c, &h, 0, 65536);
	h.loss_scale = 0;
	assert_int_equal(ckr_step(d, &h, NULL), CKR_OK);
	a = state_of(c);
	b = state_of(d);
	for (int i = 0; i < 6; i++) {
		assert_float_equal(a.w[i], b.w[i], 1e-6);
		assert_float_equal(a.mw[i], b.mw[i], 1e-6f * fabsf(b.mw[i]));
	}
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		h.loss_scale = wrong[i];
		assert_int_equal(ckr_step(c, &h, NULL), CKR_EARG);
	}
	ckr_close(c);
	ckr_close(d);
}

/* One steep micro-batch, whichever it is, takes the others with it. */
static ckr_status
feed_steep(void *user, ckr_ctx *c, uint64_t step, uint32_t micro)
{
	float x[12] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 0, 1 };

	if (step == 1 && micro == *(uint32_t *)user)
		x[0] = 2e18f;
	return ckr_set(c, "x", x, sizeof(x));
}

static void
test_scale_micro(void **state)
{
	struct ckr_hyper h = ckr_hyper_default();

	(void)state;
	for (uint32_t steep = 0; steep < 2; steep++) {
		ckr_ctx *c = open_linear(MODELS "/linear_scaled_accum.so");
		struct state before, after;

		ckr_set_feed(c, feed_steep, &steep);
		expect_step(c, &h, 0, 65536);
		before = state_of(c);
		expect_step(c, &h, 1, 32768);
		after = state_of(c);
		assert_memory_equal(&before, &after, sizeof(before));
		expect_step(c, &h, 1, 32768);
		after = state_of(c);
		assert_int_not_equal(memcmp(&before, &after, sizeof(before)),
		                     0);
		ckr_close(c);
	}
}

/* Checkpoints of models with a scale and without serve each other; one that
 * the rule cannot have come to is no checkpoint. */
static void
test_scale_files(void **state)
{
	struct ckr_hyper h = ckr_hyper_default();
	ckr_ctx *c = open_linear(SCALED);
	ckr_ctx *d = open_linear(MODELS "/linear_early.so");
	char data[4096], *at;
	size_t n;
	FILE *f;

	(void)state;
	h.scale_interval = 1;
	expect_step(c, &h, 0, 131072);
	assert_int_equal(ckr_save(d, "plain.safetensors"), CKR_OK);
	assert_int_equal(ckr_save(c, "scale.safetensors"), CKR_OK);
	assert_int_equal(ckr_resume(d, "scale.safetensors"), CKR_OK);
	assert_int_equal(ckr_step_count(d), 1);
	assert_int_equal(ckr_resume(c, "plain.safetensors"), CKR_OK);
	assert_float_equal(ckr_loss_scale(c), 65536, 0);
	f = fopen("scale.safetensors", "rb");
	n = fread(data, 1, sizeof(data), f);
	fclose(f);
	at = memmem(data, n, "\"131072\"", 8);
	assert_non_null(at);
	memcpy(at, "\"131071\"", 8);
	put_file("scale.safetensors", data, n);
	assert_int_equal(ckr_resume(c, "scale.safetensors"), CKR_EFORMAT);
	assert_non_null(strstr(ckr_error(c), "loss_scale: expected a power "
	                       "of two up to 2^24, found 131071"));
	assert_float_equal(ckr_loss_scale(c), 65536, 0);
	ckr_close(c);
	ckr_close(d);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nan),
		cmocka_unit_test(test_skipped),
		cmocka_unit_test(test_scale_falls),
		cmocka_unit_test(test_scale_again),
		cmocka_unit_test(test_scale_rises),
		cmocka_unit_test(test_scale_ends),
		cmocka_unit_test(test_scale_fixed),
		cmocka_unit_test(test_scale_micro),
		cmocka_unit_test(test_scale_files),
	};
	static const char *const left[] = {
		"r.safetensors", "plain.safetensors", "scale.safetensors",
	};

	if (!folder_enter())
		return 1;
	return folder_leave(left, sizeof(left) / sizeof(*left),
	                    cmocka_run_group_tests(tests, NULL, NULL));
}
