/* The linear model of model_linear.c: opened, and what a step changes. */
#ifndef TESTS_RUNTIME_LINEAR_H
#define TESTS_RUNTIME_LINEAR_H

#include "runtime/ckr.h"

static const float first_w[6] = { .1f, .2f, .3f, .4f, .5f, .6f };

/* The linear model with weights set by hand. */
static inline ckr_ctx *
open_linear(const char *so)
{
	struct ckr_options opt = { .weights = "", .blas = "own", .seed = 5 };
	static const float b[2] = { 0, 0 };
	static const float x[12] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 0, 1 };
	static const float t[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
	ckr_ctx *c;

	assert_int_equal(ckr_open(&c, so, &opt), CKR_OK);
	assert_int_equal(ckr_set(c, "w", first_w, sizeof(first_w)), CKR_OK);
	assert_int_equal(ckr_set(c, "b", b, sizeof(b)), CKR_OK);
	assert_int_equal(ckr_set(c, "x", x, sizeof(x)), CKR_OK);
	assert_int_equal(ckr_set(c, "target", t, sizeof(t)), CKR_OK);
	return c;
}

/* All that outlives a step of the linear model. */
struct state {
	float w[6], b[2], mw[6], vw[6];
	int64_t count;
};

static inline struct state
state_of(ckr_ctx *c)
{
	struct state s;

	assert_int_equal(ckr_get(c, "w", s.w, sizeof(s.w)), CKR_OK);
	assert_int_equal(ckr_get(c, "b", s.b, sizeof(s.b)), CKR_OK);
	assert_int_equal(ckr_get(c, "adamw.m.w", s.mw, sizeof(s.mw)), CKR_OK);
	assert_int_equal(ckr_get(c, "adamw.v.w", s.vw, sizeof(s.vw)), CKR_OK);
	assert_int_equal(ckr_get(c, "count", &s.count, 8), CKR_OK);
	return s;
}

#endif
