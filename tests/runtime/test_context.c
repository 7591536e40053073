/* The calls of ckr.h on models written by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/file/array.h"
#include "runtime/ckr.h"
#include "tests/runtime/folder.h"
#include "tests/runtime/linear.h"

/* ---- contexts ---- */

static void
test_context(void **state)
{
	ckr_ctx *c = open_linear(MODELS "/linear.so");
	struct ckr_info info;
	struct ckr_memory mem;
	float w[6], pred[8];
	double loss, eval;
	void *p;

	(void)state;
	assert_int_equal(ckr_find(c, "w", &info), CKR_OK);
	assert_string_equal(info.kind, "param");
	assert_string_equal(info.dtype, "f32");
	assert_true(info.rank == 2 && info.dim[0] == 3 && info.nbytes == 24);
	assert_int_equal(ckr_find(c, "pred", &info), CKR_OK);
	assert_string_equal(info.kind, "output");
	assert_int_equal(ckr_find(c, "none\n", &info), CKR_EARG);
	assert_non_null(strstr(ckr_error(c), "none\\x0a"));
	assert_int_equal(ckr_tensor(c, 0, &info), CKR_OK);
	assert_int_equal(ckr_tensor(c, 1000, &info), CKR_EARG);

	assert_int_equal(ckr_set(c, "x", w, 4), CKR_EARG);
	assert_int_equal(ckr_set(c, "loss", w, 4), CKR_EARG);
	assert_int_equal(ckr_get(c, "pred", pred, sizeof(pred)), CKR_EARG);
	assert_int_equal(ckr_input(c, "w", &p), CKR_EARG);
	assert_int_equal(ckr_input(c, "x", &p), CKR_OK);
	assert_true(((float *)p)[8] == 9);

	assert_int_equal(ckr_eval(c, &eval), CKR_OK);
	assert_int_equal(ckr_step_count(c), 0);
	assert_int_equal(ckr_step(c, NULL, &loss), CKR_OK);
	assert_true(loss == eval);
	assert_int_equal(ckr_step_count(c), 1);
	assert_int_equal(ckr_get(c, "pred", pred, sizeof(pred)), CKR_OK);
	assert_float_equal(pred[0], .1 + 2 * .3 + 3 * .5, 1e-6);
	assert_int_equal(ckr_get(c, "w", w, sizeof(w)), CKR_OK);
	/* Adam's first step has the length of the learning rate */
	assert_float_equal(fabs(w[0] - first_w[0] * (1 - 1e-5)), 1e-3, 1e-6);
	assert_int_equal(ckr_memory(c, &mem), CKR_OK);
	assert_int_equal(mem.peak_bytes, mem.planned_bytes);
	assert_int_equal(mem.held_bytes, 0);
	ckr_close(c);
}

static void
expect_unset(ckr_ctx *c, const char *inputs)
{
	double loss;

	assert_int_equal(ckr_step(c, NULL, NULL), CKR_EARG);
	assert_non_null(strstr(ckr_error(c), inputs));
	assert_int_equal(ckr_check(c, NULL, NULL, NULL), CKR_EARG);
	assert_non_null(strstr(ckr_error(c), inputs));
	assert_int_equal(ckr_eval(c, &loss), CKR_EARG);
	assert_non_null(strstr(ckr_error(c), inputs));
	assert_int_equal(ckr_score_add(c, 1), CKR_EARG);
	assert_int_equal(ckr_step_count(c), 0);
}

/* No step takes zeros for an input that nobody set. */
static void
test_unset_inputs(void **state)
{
	struct ckr_options opt = { .weights = "", .blas = "own" };
	static const float x[12] = { 1 };
	float loss;
	void *place;
	ckr_ctx *c;

	(void)state;
	assert_int_equal(ckr_open(&c, MODELS "/linear.so", &opt), CKR_OK);
	expect_unset(c, "inputs 'x', 'target' were never set");
	assert_int_equal(ckr_set(c, "x", x, sizeof(x) - 4), CKR_EARG);
	expect_unset(c, "inputs 'x', 'target' were never set");
	assert_int_equal(ckr_set(c, "x", x, sizeof(x)), CKR_OK);
	expect_unset(c, "input 'target' was never set");
	assert_int_equal(ckr_input(c, "target", &place), CKR_OK);
	assert_int_equal(ckr_eval(c, NULL), CKR_OK);
	assert_int_equal(ckr_get(c, "loss", &loss, sizeof(loss)), CKR_OK);
	assert_int_equal(ckr_step(c, NULL, NULL), CKR_OK);
	ckr_close(c);
}

static void
test_open_errors(void **state)
{
	struct ckr_options opt = { .blas = "abacus" };
	ckr_ctx *c;

	(void)state;
	assert_int_equal(ckr_open(&c, "no-such.so", NULL), CKR_EIO);
	assert_non_null(strstr(ckr_error(c), "no-such.so"));
	assert_int_equal(ckr_step(c, NULL, NULL), CKR_EARG);
	assert_int_equal(ckr_save(c, "x.safetensors"), CKR_EARG);
	assert_int_equal(ckr_load_weights(c, "x.safetensors"), CKR_EARG);
	ckr_close(c);
	put_file("bad.so", "not a library", 13);
	assert_int_equal(ckr_open(&c, "bad.so", NULL), CKR_EFORMAT);
	ckr_close(c);
	assert_int_equal(ckr_open(&c, MODELS "/linear.so", NULL), CKR_EIO);
	assert_non_null(strstr(ckr_error(c), "is missing"));
	ckr_close(c);
	assert_int_equal(ckr_open(&c, MODELS "/linear.so", &opt), CKR_EARG);
	ckr_close(c);
	ckr_close(NULL);
	assert_string_equal(ckr_error(NULL), "out of memory");
}

static void
test_hyper_errors(void **state)
{
	ckr_ctx *c = open_linear(MODELS "/linear.so");
	struct ckr_hyper h = ckr_hyper_default();

	(void)state;
	h.beta1 = 1;
	assert_int_equal(ckr_step(c, &h, NULL), CKR_EARG);
	h = ckr_hyper_default();
	h.lr = NAN;
	assert_int_equal(ckr_step(c, &h, NULL), CKR_EARG);
	h.lr = -1;
	assert_int_equal(ckr_step(c, &h, NULL), CKR_EARG);
	assert_string_equal(ckr_error(c), "lr must be 0 or more, got -1");
	h = ckr_hyper_default();
	h.weight_decay = -1;
	assert_int_equal(ckr_step(c, &h, NULL), CKR_EARG);
	assert_int_equal(ckr_step_count(c), 0);
	ckr_close(c);
}

/* A kernel that meets bad data ends the step with a message; the state stays
 * as it was. */
static void
test_fault(void **state)
{
	ckr_ctx *c = open_linear(MODELS "/linear_early.so");
	float t[8] = { 0, 0, 0, 1e9f }, w[6];
	int64_t count;

	(void)state;
	ckr_set(c, "target", t, sizeof(t));
	assert_int_equal(ckr_step(c, NULL, NULL), CKR_EDATA);
	assert_non_null(strstr(ckr_error(c), "target out of range: 3"));
	assert_int_equal(ckr_step_count(c), 0);
	ckr_get(c, "w", w, sizeof(w));
	assert_memory_equal(w, first_w, sizeof(w));
	ckr_get(c, "count", &count, sizeof(count));
	assert_int_equal(count, 0);
	t[3] = 0;
	ckr_set(c, "target", t, sizeof(t));
	assert_int_equal(ckr_step(c, NULL, NULL), CKR_OK);
	ckr_close(c);
}

static void
test_resume(void **state)
{
	ckr_ctx *c = open_linear(MODELS "/linear.so"), *d;
	double loss[6], again;

	(void)state;
	for (int i = 0; i < 6; i++) {
		assert_int_equal(ckr_step(c, NULL, &loss[i]), CKR_OK);
		if (i == 2)
			assert_int_equal(ckr_save(c, "r.safetensors"), CKR_OK);
	}
	ckr_close(c);
	d = open_linear(MODELS "/linear.so");
	assert_int_equal(ckr_resume(d, "r.safetensors"), CKR_OK);
	assert_int_equal(ckr_step_count(d), 3);
	for (int i = 3; i < 6; i++) {
		assert_int_equal(ckr_step(d, NULL, &again), CKR_OK);
		assert_true(again == loss[i]);
	}
	ckr_close(d);
}

/* One after the other, and before anything else that saves or resumes. */
static void
test_save_async(void **state)
{
	ckr_ctx *c = open_linear(MODELS "/linear.so");
	struct ckr_memory mem;
	bool done = false;

	(void)state;
	assert_int_equal(ckr_save_wait(c), CKR_OK);
	assert_int_equal(ckr_save_poll(c, &done), CKR_OK);
	assert_true(done);
	assert_int_equal(ckr_save_reserve(c, "no/r.safetensors"), CKR_EIO);
	assert_int_equal(ckr_save_reserve(c, "r.safetensors"), CKR_OK);
	assert_int_equal(ckr_memory(c, &mem), CKR_OK);
	/* w [3, 2], b [2], two states of each, and the buffer count */
	assert_int_equal(mem.staging_bytes, 3 * (6 + 2) * 4 + 8);
	for (uint64_t step = 1; step < 20; step++) {
		assert_int_equal(ckr_step(c, NULL, NULL), CKR_OK);
		assert_int_equal(ckr_save_async(c, "r.safetensors"), CKR_OK);
		if (step % 3 == 0)
			assert_int_equal(ckr_save_async(c, "r.safetensors"),
			                 CKR_OK);
		if (step % 5 == 0)
			assert_int_equal(ckr_save(c, "r.safetensors"), CKR_OK);
		assert_int_equal(ckr_resume(c, "r.safetensors"), CKR_OK);
		assert_int_equal(ckr_step_count(c), step);
	}
	assert_int_equal(ckr_save_async(c, "r.safetensors"), CKR_OK);
	do
		assert_int_equal(ckr_save_poll(c, &done), CKR_OK);
	while (!done);
	assert_int_equal(ckr_resume(c, "r.safetensors"), CKR_OK);
	ckr_close(c);
}

static void
test_resume_errors(void **state)
{
	ckr_ctx *c = open_linear(MODELS "/linear.so");
	struct st_entry entry = { "w", CKR_F32, 1, { 6 } };
	struct meta meta[] = { { "step", "1" }, { "seed", "x" } };
	struct st_writer w;
	struct err e;

	(void)state;
	assert_int_equal(ckr_resume(c, "none.safetensors"), CKR_EIO);
	st_begin(&w, "x.safetensors", &entry, 1, meta, 2, &e);
	st_commit(&w, &e);
	assert_int_equal(ckr_resume(c, "x.safetensors"), CKR_EFORMAT);
	assert_non_null(strstr(ckr_error(c), "not a checkpoint"));
	meta[1].value = "0";
	st_begin(&w, "x.safetensors", &entry, 1, meta, 2, &e);
	st_commit(&w, &e);
	assert_int_equal(ckr_resume(c, "x.safetensors"), CKR_EFORMAT);
	assert_non_null(strstr(ckr_error(c),
	                       "expected f32[3,2], found f32[6]"));
	entry.name = "other";
	st_begin(&w, "x.safetensors", &entry, 1, meta, 2, &e);
	st_commit(&w, &e);
	assert_int_equal(ckr_resume(c, "x.safetensors"), CKR_EFORMAT);
	assert_non_null(strstr(ckr_error(c), "3 of 3 parameters"));
	assert_int_equal(ckr_step_count(c), 0);
	ckr_close(c);
}

static void
test_check(void **state)
{
	ckr_ctx *c = open_linear(MODELS "/linear.so");
	ckr_ctx *d = open_linear(MODELS "/linear.so");
	struct ckr_checked n;
	double x, y;

	(void)state;
	for (int i = 0; i < 3; i++) {
		assert_int_equal(ckr_check(c, NULL, &x, &n), CKR_OK);
		assert_int_equal(ckr_step(d, NULL, &y), CKR_OK);
		assert_true(x == y);
		assert_true(n.compared > 15);
		assert_int_equal(n.again, 2);
		assert_int_equal(n.alone, 0);
	}
	ckr_close(c);
	ckr_close(d);
}

/* A check that fails says where, and leaves everything as it was. */
static void
check_fails(const char *so, ckr_status status, const char *says)
{
	ckr_ctx *c = open_linear(so);
	float w[6], m[6];
	int64_t count = 0;
	double x;

	assert_int_equal(ckr_set(c, "count", &count, sizeof(count)), CKR_OK);
	assert_int_equal(ckr_check(c, NULL, &x, NULL), status);
	assert_non_null(strstr(ckr_error(c), says));
	assert_int_equal(ckr_step_count(c), 0);
	ckr_get(c, "w", w, sizeof(w));
	assert_memory_equal(w, first_w, sizeof(w));
	ckr_get(c, "adamw.m.w", m, sizeof(m));
	assert_true(m[0] == 0 && m[5] == 0);
	ckr_get(c, "count", &count, sizeof(count));
	assert_int_equal(count, 0);
	ckr_close(c);
}

static void
test_check_fails(void **state)
{
	(void)state;
	check_fails(MODELS "/linear_slip.so", CKR_EMISMATCH,
	            "'pred.again', made by matmul");
	check_fails(MODELS "/linear_slip2.so", CKR_EMISMATCH,
	            "'pred.again.2', made by matmul");
	check_fails(MODELS "/linear_lone.so", CKR_EUNSUPPORTED,
	            "'pred.again.2', recomputed by matmul 3, has no counterpart");
}

/* Two micro-batches of the same data are one step with it. */
static ckr_status
feed_seen(void *user, ckr_ctx *c, uint64_t step, uint32_t micro)
{
	unsigned *seen = user;

	(void)c;
	*seen |= 1u << (2 * step + micro);
	return step == 2 ? CKR_EARG : CKR_OK;
}

static void
test_micro(void **state)
{
	ckr_ctx *c = open_linear(MODELS "/linear.so");
	ckr_ctx *d = open_linear(MODELS "/linear_accum.so");
	unsigned seen = 0;
	double x, y;

	(void)state;
	assert_int_equal(ckr_micro_batches(d), 2);
	ckr_set_feed(d, feed_seen, &seen);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(ckr_step(c, NULL, &x), CKR_OK);
		assert_int_equal(ckr_step(d, NULL, &y), CKR_OK);
		assert_float_equal(x, y, 1e-6);
	}
	assert_int_equal(seen, 15);
	assert_int_equal(ckr_step(d, NULL, &y), CKR_EARG);
	assert_true(*ckr_error(d));
	ckr_close(c);
	ckr_close(d);
}

static ckr_status
feed_fails(void *user, ckr_ctx *c, uint64_t step, uint32_t micro)
{
	(void)user;
	errno = ENOSPC;
	return ckr_fail(c, CKR_EIO, "no batch %u of step %u: %m",
	                (unsigned)micro, (unsigned)step);
}

/* Nothing of the model is read, written or begun by who feeds a step. */
static ckr_status
feed_meddles(void *user, ckr_ctx *c, uint64_t step, uint32_t micro)
{
	(void)step;
	(void)micro;
	++*(int *)user;
	assert_int_equal(ckr_step(c, NULL, NULL), CKR_EARG);
	assert_int_equal(ckr_begin_step(c, NULL), CKR_EARG);
	assert_int_equal(ckr_end_step(c, NULL), CKR_EARG);
	assert_int_equal(ckr_eval(c, NULL), CKR_EARG);
	assert_string_equal(ckr_error(c), "inputs of a step are being set: "
	                    "return from the feed function first");
	return CKR_OK;
}

static void
test_meddling(void **state)
{
	ckr_ctx *c = open_linear(MODELS "/linear.so");
	int calls = 0;

	(void)state;
	ckr_set_feed(c, feed_meddles, &calls);
	assert_int_equal(ckr_step(c, NULL, NULL), CKR_OK);
	assert_int_equal(calls, 1);
	assert_int_equal(ckr_step_count(c), 1);
	assert_true(ckr_can_begin(c));
	assert_int_equal(ckr_end_step(c, NULL), CKR_EARG);
	ckr_close(c);
}

/* What a runner needs beside steps: words of its own, another seed, a trace
 * that ends early. */
static void
test_runner(void **state)
{
	ckr_ctx *c = open_linear(MODELS "/linear.so");
	const char *path = "runner.trace";
	char text[64];

	(void)state;
	ckr_set_seed(c, 77);
	assert_int_equal(ckr_seed(c), 77);
	unlink(path);
	assert_int_equal(ckr_trace(c, NULL), CKR_OK);
	assert_int_equal(ckr_trace(c, path), CKR_OK);
	assert_int_equal(ckr_step(c, NULL, NULL), CKR_OK);
	assert_int_not_equal(access(path, F_OK), 0);
	assert_int_equal(ckr_trace(c, NULL), CKR_OK);
	assert_int_equal(access(path, F_OK), 0);
	unlink(path);
	ckr_set_feed(c, feed_fails, NULL);
	assert_int_equal(ckr_step(c, NULL, NULL), CKR_EIO);
	snprintf(text, sizeof(text), "no batch 0 of step 1: %s",
	         strerror(ENOSPC));
	assert_string_equal(ckr_error(c), text);
	ckr_close(c);
}

/* A file that turns out bad at its end changes nothing. */
static void
test_load_is_whole(void **state)
{
	static const struct st_entry entry[] = {
		{ "w", CKR_F32, 2, { 3, 2 } }, { "b", CKR_F32, 1, { 2 } },
		{ "count", CKR_F64, 0, { 0 } },
	};
	static const float w[6] = { 9, 9, 9, 9, 9, 9 };
	static const double count = 2.5;
	ckr_ctx *c = open_linear(MODELS "/linear.so");
	struct state before = state_of(c), after;
	struct st_writer out;
	struct err e;

	(void)state;
	assert_int_equal(st_begin(&out, "x.safetensors", entry, 3, NULL, 0,
	                          &e), CKR_OK);
	st_write(&out, 0, 0, w, sizeof(w), &e);
	st_write(&out, 1, 0, w, 8, &e);
	st_write(&out, 2, 0, &count, 8, &e);
	assert_int_equal(st_commit(&out, &e), CKR_OK);
	assert_int_not_equal(ckr_load_weights(c, "x.safetensors"), CKR_OK);
	assert_non_null(strstr(ckr_error(c), "2.5"));
	after = state_of(c);
	assert_memory_equal(&before, &after, sizeof(before));
	for (int cut = 1; cut < 60; cut += 7) {
		struct stat st;

		assert_int_equal(ckr_save(c, "x.safetensors"), CKR_OK);
		assert_int_equal(stat("x.safetensors", &st), 0);
		assert_int_equal(truncate("x.safetensors", st.st_size - cut),
		                 0);
		assert_int_not_equal(ckr_resume(c, "x.safetensors"), CKR_OK);
		after = state_of(c);
		assert_memory_equal(&before, &after, sizeof(before));
	}
	assert_int_equal(ckr_step(c, NULL, NULL), CKR_OK);
	ckr_close(c);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_context),
		cmocka_unit_test(test_unset_inputs),
		cmocka_unit_test(test_open_errors),
		cmocka_unit_test(test_hyper_errors),
		cmocka_unit_test(test_fault),
		cmocka_unit_test(test_resume),
		cmocka_unit_test(test_save_async),
		cmocka_unit_test(test_resume_errors),
		cmocka_unit_test(test_check),
		cmocka_unit_test(test_check_fails),
		cmocka_unit_test(test_micro),
		cmocka_unit_test(test_meddling),
		cmocka_unit_test(test_runner),
		cmocka_unit_test(test_load_is_whole),
	};
	static const char *const left[] = {
		"bad.so", "r.safetensors", "x.safetensors",
	};

	if (!folder_enter())
		return 1;
	return folder_leave(left, sizeof(left) / sizeof(*left),
	                    cmocka_run_group_tests(tests, NULL, NULL));
}
