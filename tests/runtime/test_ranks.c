/* Pieces of tensors, and what moves between ranks, against the definition of a
 * split element by element. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/ranks/comm.h"
#include "runtime/support/half.h"

enum { MOST = 8192, RANKS = 8 };

/* A split of a whole tensor, and where its elements lie by definition. */
struct example {
	struct ckr_placement split;
	uint32_t ranks;
	int rank;
	int64_t whole[CKR_MAX_DIMS], local[CKR_MAX_DIMS];
	uint64_t nwhole, nlocal;
	uint64_t at[MOST];              /* of element i, in its piece */
	uint32_t piece[MOST];
};

static uint32_t state = 1;

static uint32_t
chance(uint32_t n)
{
	state = state * 1664525u + 1013904223u;
	return (state >> 8) % n;
}

static uint64_t
product(const int64_t *dim, int from, int to)
{
	uint64_t n = 1;

	for (int i = from; i < to; i++)
		n *= (uint64_t)dim[i];
	return n;
}

/* Element i: its place along what is cut leads to a stretch, the stretch to a
 * piece, the piece to a place among a rank's. */
static void
place(struct example *x, uint64_t i)
{
	const struct ckr_placement *s = &x->split;
	uint64_t inner = product(x->whole, s->axis + 1, x->rank);
	uint64_t cut = product(x->whole, s->first_axis, s->axis + 1);
	uint64_t m = i / inner % cut, before = 0, size;
	int k = 0;

	for (; m >= s->segment[k]; k++) {
		m -= s->segment[k];
		before += (s->segment[k] + x->ranks / s->replication - 1)
		          / (x->ranks / s->replication);
	}
	size = (s->segment[k] + x->ranks / s->replication - 1)
	       / (x->ranks / s->replication);
	x->piece[i] = (uint32_t)(m / size);
	if (s->mirror && k % 2)
		x->piece[i] = x->ranks / s->replication - 1 - x->piece[i];
	x->at[i] = (i / inner / cut * (uint64_t)x->local[s->axis] + before
	            + m % size) * inner + i % inner;
}

static void
example(struct example *x, uint32_t ranks)
{
	struct ckr_placement *s = &x->split;
	uint64_t sum = 0;

	*x = (struct example){ .ranks = ranks, .rank = 1 + (int)chance(4) };
	for (int i = 0; i < x->rank; i++)
		x->whole[i] = 1 + chance(5);
	s->axis = (uint8_t)chance((uint32_t)x->rank);
	s->first_axis = chance(2) ? s->axis : (uint8_t)chance(s->axis + 1u);
	do
		s->replication = 1 + chance(ranks);
	while (ranks % s->replication);
	s->nsegment = s->first_axis == s->axis ? (uint8_t)(1 + chance(3)) : 1;
	s->mirror = s->nsegment > 1 && chance(2);
	for (int k = 0; k < s->nsegment; k++) {
		s->segment[k] = s->nsegment > 1
			? (1 + chance(2)) * (ranks / s->replication)
			: product(x->whole, s->first_axis, s->axis + 1);
		sum += s->segment[k];
	}
	if (s->nsegment > 1)
		x->whole[s->axis] = (int64_t)sum;
	memcpy(x->local, x->whole, sizeof(x->local));
	for (int i = s->first_axis; i < s->axis; i++)
		x->local[i] = 1;
	x->local[s->axis] = 0;
	for (int k = 0; k < s->nsegment; k++)
		x->local[s->axis] += (int64_t)((s->segment[k]
			+ ranks / s->replication - 1) / (ranks / s->replication));
	x->nwhole = product(x->whole, 0, x->rank);
	x->nlocal = product(x->local, 0, x->rank);
	assert_true(x->nwhole <= MOST && x->nlocal <= MOST);
	for (uint64_t i = 0; i < x->nwhole; i++)
		place(x, i);
}

static void
test_runs(void **unused)
{
	struct example x;
	struct sharding p;

	(void)unused;
	for (int n = 0; n < 3000; n++) {
		uint64_t next = 0;

		example(&x, 1 + chance(RANKS));
		assert_true(sharding_of(&p, &x.split, x.ranks, x.rank,
		                        n % 2 ? x.whole : x.local));
		assert_int_equal(sharding_shard_elems(&p), x.nlocal);
		for (uint64_t i = 0; i < p.nrun; i++) {
			struct shard_run u = sharding_run(&p, i);

			assert_int_equal(u.whole, next);
			assert_true(u.n <= sharding_longest_run(&p));
			next += u.n;
			for (uint64_t k = 0; k < u.n; k++) {
				assert_int_equal(x.at[u.whole + k],
				                 u.local + k);
				assert_int_equal(x.piece[u.whole + k]
				                 * x.split.replication, u.rank);
			}
		}
		assert_int_equal(next, x.nwhole);
	}
}

/* ---- collectives ---- */

static float from[RANKS][MOST], to[RANKS][MOST];

static void
fill(void)
{
	for (int r = 0; r < RANKS; r++)
		for (int i = 0; i < MOST; i++) {
			from[r][i] = (float)chance(1 << 20) / 1024.0f;
			to[r][i] = NAN;
		}
}

static struct ckr_tensor
tensor(const struct example *x, bool whole, uint8_t dtype)
{
	struct ckr_tensor t = { .dtype = dtype, .rank = (uint8_t)x->rank };

	memcpy(t.dim, whole ? x->whole : x->local, sizeof(t.dim));
	return t;
}

static void
carry_out(const struct ckr_comm *what, const struct ckr_tensor *tx,
          const struct ckr_tensor *ty, uint32_t ranks)
{
	void *x[RANKS], *y[RANKS];
	struct comm c = { .what = what, .tx = tx, .ty = ty, .x = x, .y = y,
	                  .ranks = ranks, .threads = 2 };

	for (int r = 0; r < RANKS; r++) {
		x[r] = from[r];
		y[r] = to[r];
	}
	assert_true(comm_sane(what, ranks, tx, ty));
	comm_run(&c);
}

static float
sum_at(uint32_t ranks, uint64_t i)
{
	float s = from[0][i];

	for (uint32_t r = 1; r < ranks; r++)
		s += from[r][i];
	return s;
}

/* What rank r has of element i after a collective; a NaN: nothing. */
static float
expected(const struct example *x, int kind, uint32_t r, uint64_t i)
{
	bool mine = x->piece[i] == r / x->split.replication;

	switch (kind) {
	case CKR_ALL_GATHER:
		return from[x->piece[i] * x->split.replication][x->at[i]];
	case CKR_LOCAL_SHARD_GRAD:
		return mine ? from[r][x->at[i]] : 0;
	case CKR_LOCAL_SHARD:
		return mine ? from[r][i] : NAN;
	default:
		return mine ? sum_at(x->ranks, i) : NAN;
	}
}

static void
check_kind(const struct example *x, int kind)
{
	bool gathers = kind == CKR_ALL_GATHER || kind == CKR_LOCAL_SHARD_GRAD;
	struct ckr_tensor tx = tensor(x, !gathers, CKR_F32);
	struct ckr_tensor ty = tensor(x, gathers, CKR_F32);
	struct ckr_comm what = { (uint8_t)kind, CKR_TP, 0, &x->split,
	                         NULL, 0, 0, 0, 0 };

	tx.dim[x->split.axis]++;
	assert_false(comm_sane(&what, x->ranks, &tx, &ty));
	tx.dim[x->split.axis]--;
	ty.dim[x->split.axis]++;
	assert_false(comm_sane(&what, x->ranks, &tx, &ty));
	ty.dim[x->split.axis]--;
	fill();
	carry_out(&what, &tx, &ty, x->ranks);
	for (uint32_t r = 0; r < x->ranks; r++) {
		for (uint64_t i = 0; i < x->nwhole; i++) {
			float want = expected(x, kind, r, i);
			float *y = &to[r][gathers ? i : x->at[i]];

			if (isnan(want))
				continue;
			assert_true(*y == want);
			*y = gathers ? *y : 0;
		}
		/* the rest of a last piece */
		for (uint64_t i = 0; i < x->nlocal && !gathers; i++)
			assert_true(to[r][i] == 0);
	}
}

static void
test_pieces(void **unused)
{
	struct example x;

	(void)unused;
	for (int n = 0; n < 300; n++) {
		example(&x, 1 + chance(RANKS));
		check_kind(&x, CKR_ALL_GATHER);
		check_kind(&x, CKR_REDUCE_SCATTER);
		check_kind(&x, CKR_LOCAL_SHARD);
		check_kind(&x, CKR_LOCAL_SHARD_GRAD);
	}
}

/* From pieces along one dim to pieces along another. */
static void
test_all_to_all(void **unused)
{
	struct example x, y;

	(void)unused;
	for (int n = 0; n < 500; n++) {
		struct ckr_comm what = { CKR_ALL_TO_ALL, CKR_TP, 0, &x.split,
		                         &y.split, 0, 0, 0, 0 };
		struct ckr_tensor tx, ty;

		example(&x, 1 + chance(RANKS));
		y = x;
		y.split.axis = y.split.first_axis = (uint8_t)chance(
			(uint32_t)x.rank);
		y.split.nsegment = y.split.replication = 1;
		y.split.mirror = 0;
		y.split.segment[0] = (uint64_t)x.whole[y.split.axis];
		memcpy(y.local, y.whole, sizeof(y.local));
		y.local[y.split.axis] = (x.whole[y.split.axis] + x.ranks - 1)
		                        / x.ranks;
		y.nlocal = product(y.local, 0, y.rank);
		for (uint64_t i = 0; i < y.nwhole; i++)
			place(&y, i);
		tx = tensor(&x, false, CKR_F32);
		ty = tensor(&y, false, CKR_F32);
		fill();
		carry_out(&what, &tx, &ty, x.ranks);
		for (uint64_t i = 0; i < x.nwhole; i++)
			assert_true(to[y.piece[i]][y.at[i]]
			            == from[x.piece[i] * x.split.replication]
			                   [x.at[i]]);
	}
}

/* ---- sums ---- */

static void
test_all_reduce(void **unused)
{
	struct example x = { .rank = 1, .whole = { MOST } };
	struct ckr_comm what = { .kind = CKR_ALL_REDUCE, .axis = CKR_TP };
	struct ckr_tensor t = tensor(&x, true, CKR_F32);

	(void)unused;
	fill();
	carry_out(&what, &t, &t, 5);
	for (int i = 0; i < MOST; i++)
		for (int r = 0; r < 5; r++)
			assert_true(to[r][i] == sum_at(5, (uint64_t)i));
	what.max = 1;
	from[2][7] = NAN;
	carry_out(&what, &t, &t, 5);
	assert_true(isnan(to[0][7]) && isnan(to[4][7]));
	for (int i = 8; i < MOST; i++) {
		float most = 0;

		for (int r = 0; r < 5; r++)
			most = fmaxf(most, from[r][i]);
		assert_true(to[3][i] == most);
	}
	t.dtype = CKR_BOOL;
	assert_false(comm_sane(&what, 5, &t, &t));
}

/* 1 and three times 2^-9, half a unit in bf16's last place of 1 to 2 (2^-7)
 * each but a quarter: added one by one in bf16 nothing would come of them. */
static void
test_narrow(void **unused)
{
	struct example x = { .rank = 1, .whole = { 3 } };
	struct ckr_comm what = { .kind = CKR_ALL_REDUCE, .axis = CKR_TP };
	struct ckr_tensor t = tensor(&x, true, CKR_BF16);

	(void)unused;
	for (int r = 0; r < 4; r++)
		for (int i = 0; i < 3; i++)
			((uint16_t *)from[r])[i] = float_to_bf16(
				r ? 0.001953125f : 1.0f);
	carry_out(&what, &t, &t, 4);
	for (int i = 0; i < 3; i++)
		assert_true(bf16_to_float(((uint16_t *)to[3])[i])
		            == 1.0078125f);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_runs),
		cmocka_unit_test(test_pieces),
		cmocka_unit_test(test_all_to_all),
		cmocka_unit_test(test_all_reduce),
		cmocka_unit_test(test_narrow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
