/* Which checkpointing plans are worth building.
 *
 * method  Bytes and runs of all numbers of parts, states and parts kept at the
 *         end are reckoned as if parts and states were equal; what another
 *         design beats in both is left out, but for parts that all run again
 *         once, since graphs differ from what is reckoned.  Where the steps of
 *         all would be too many, some are passed over, never the one with the
 *         fewest bytes.
 * cost    of a graph of n nodes: n log n
 */
#include "passes/recursive/designs.h"

#include <math.h>
#include <stdlib.h>

enum { PARTS_TRIED = 24 };

/* A design is left out unless it takes less than this of the bytes of all with
 * fewer runs. */
#define CLEARLY 0.995

/* n over k, at most `most`. */
static int64_t
binomial(int64_t n, int64_t k, int64_t most)
{
	double x = 1;

	k = k < n - k ? k : n - k;
	for (int64_t i = 1; i <= k && x < (double)most; i++)
		x = x * (double)(n - k + i) / (double)i;
	return x < (double)most ? (int64_t)(x + 0.5) : most;
}

/* The most parts that run again r times each at most, with so many states
 * beside the place where the chain begins (Griewank and Walther 2000).  With
 * no state a chain of n runs n times.  A state after m parts takes a run of
 * these, which then have r - 1 left, and the rest has one state less: P(r, s) =
 * P(r - 1, s) + P(r, s - 1).  In the first run, which there is anyway, states
 * are free: P0(r, s) = P(r, s) + P0(r, s - 1). */
static int64_t
most_parts(int64_t r, int64_t states, bool first, int64_t most)
{
	if (r < 1 || states < 0)
		return 0;
	return first ? binomial(states + r + 1, states + 1, most + 1) - 1
		: binomial(states + r, states + 1, most);
}

/* Runs of each part that so many parts take with so many states. */
static int64_t
runs_of(int64_t parts, int64_t states)
{
	int64_t r = 1;

	while (most_parts(r, states, true, parts) < parts)
		r++;
	return r;
}

int32_t
design_parts_before(int32_t parts, int32_t states, bool first, int64_t *runs)
{
	int64_t r = *runs, least, n;

	while (r > 1 && most_parts(r - 1, states, first, parts) >= parts)
		r--;
	*runs = r;
	least = parts - most_parts(r, states - 1, first, parts);
	n = most_parts(first ? r - 1 : r - 2, states, false, parts - 1);
	n = least > n ? least : n;
	return n < 1 ? 1 : (int32_t)n;
}

static int
by_runs(const void *a, const void *b)
{
	const struct design *x = a, *y = b;

	if (x->runs != y->runs)
		return x->runs < y->runs ? -1 : 1;
	if (x->bytes != y->bytes)
		return x->bytes < y->bytes ? -1 : 1;
	return x->parts != y->parts ? x->parts - y->parts
		: x->states - y->states;
}

static void
add_design(struct design *d, int32_t *n, int64_t states, int32_t kept,
           double state, struct design of)
{
	double part = of.bytes / of.parts, rest = of.parts - kept;
	double first = fmin((double)states, rest) * state + kept * part;
	double later = fmin((double)states, rest - 1) * state + part;

	if (*n == DESIGNS_MAX)
		return;
	d[(*n)++] = (struct design){
		of.parts, (int32_t)states, kept, fmax(first, later),
		(double)runs_of((int64_t)rest, states) * rest / of.parts,
	};
}

/* Steps of a plan, reckoned. */
static double
steps_of(const struct design_of *f, const struct design *d)
{
	return f->nodes + d->runs * f->forward;
}

/* No more than there is time for, and the one with the least bytes. */
static int32_t
thin_out(const struct design_of *f, struct design *d, int32_t n)
{
	double all = 0, done = 0;
	int32_t kept = 0;

	for (int32_t k = 0; k < n; k++)
		all += steps_of(f, &d[k]);
	for (int32_t k = 0; k < n; k++) {
		done += steps_of(f, &d[k]);
		if (all <= f->work || k == n - 1 || done >= all / f->work
		    * steps_of(f, &d[k])) {
			d[kept++] = d[k];
			done = 0;
		}
	}
	return kept;
}

int32_t
designs_list(const struct design_of *f, struct design *d)
{
	int32_t n = 0, kept = 0, most = f->forward;
	double least = INFINITY;

	for (int32_t parts = 2; parts <= most;
	     parts += 1 + parts / PARTS_TRIED * 4) {
		double state = f->state(f->data, parts);
		struct design of = { .parts = parts,
			.bytes = (double)f->bytes };

		for (int32_t k = 1; k < parts; k += 1 + parts / PARTS_TRIED)
			add_design(d, &n, parts, k, state, of);
		for (int64_t s = 0; s < parts - 1; s += 1 + s / 4)
			add_design(d, &n, s, 1, state, of);
	}
	qsort(d, (size_t)n, sizeof *d, by_runs);
	for (int32_t k = 0; k < n; k++) {
		bool once = d[k].kept == 1 && d[k].states == d[k].parts;

		if ((d[k].bytes >= CLEARLY * least && !once)
		    || steps_of(f, &d[k]) >= f->limit)
			continue;
		least = fmin(least, d[k].bytes);
		d[kept++] = d[k];
	}
	return thin_out(f, d, kept);
}
