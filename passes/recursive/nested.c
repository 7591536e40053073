/* Nested segments: plans for a chain of parts in little memory.
 *
 * what    sequences for amounts of memory from the least to the top.  Of L
 *         equal parts c cuts in memory and r passes over each part serve
 *         (c + r over c) parts, so that memory falls to log L
 * method  the dynamic programme of Beaumont, Herrmann, Pallez and Shilova
 *         ("Optimal memory-aware backpropagation of deep join networks" and
 *         Rotor's for heterogeneous chains), which generalises Griewank and
 *         Walther's Revolve to parts of any size.  Least seconds for parts
 *         lo..hi and an amount of memory, the cut before lo being there:
 *           one part: make its tape, go backward
 *           tape of lo first, then lo + 1..hi, then lo backward
 *           sweep from lo to some k, hold that cut, k..hi, then lo..k - 1
 *         and the same for the first run, whose sweeps are free.  Stretches
 *         with equal costs are solved once, so that equal layers cost L * L,
 *         not L * L * L.  Memory is in units, rounded against the plan; each
 *         plan is then built and evaluated exactly.
 *         Inside parts a greedy descent on the largest part's memory drops
 *         what is made again before its first use, or before each use, for
 *         all layers alike; each step gives costs for a programme of its own.
 * cost    stretches * splits * units, limited; evaluations of some sequences
 */
#include "passes/recursive/chain.h"
#include "passes/recursive/sequence_generators.h"
#include "passes/remat_model/intern.h"

#include <math.h>
#include <string.h>

enum {
	UNITS_MAX = 512, TABLE = 3000000,       /* entries of all tables */
	SPLITS = 48,                    /* of one stretch that are tried */
	PLANS = 20, ZOOMS = 3, VARIANTS = 8,
	TRIAL = 30                      /* work per step evaluated while
	                                 * descending */
};

struct cost_table {
	float *sec;                     /* by units of memory; INFINITY */
	int16_t *how;                   /* 0: tape of the first part, or one
	                                 * part; k: split k parts on */
};

struct nested_program {
	struct chain *c;
	Arena *arena;
	int64_t low, unit;              /* memory of m units: low + m * unit */
	int32_t units, n;
	int32_t **id;                   /* by length and first part: stretch */
	struct cost_table *of;          /* by stretch */
	int32_t nrange;
	struct cost_table *first;       /* by part: parts from it, first run */
	int64_t *work;                  /* what may still be spent */
};

/* ---- stretches that are alike ---- */

static int32_t
units_of(const struct nested_program *p, int64_t bytes)
{
	int64_t m = bytes <= 0 ? 0 : (bytes + p->unit - 1) / p->unit;

	return m < INT16_MAX ? (int32_t)m : INT16_MAX;
}

static int32_t
number_part(const struct nested_program *p, int32_t i, struct intern_table *t)
{
	const struct part_cost *o = &p->c->cost[i];
	double sec[3] = { o->sec, o->once, o->all };
	uint64_t key[7] = {
		(uint64_t)units_of(p, o->peak - p->low),
		(uint64_t)units_of(p, o->cut),
		(uint64_t)units_of(p, o->tape),
		(uint64_t)units_of(p, o->sweep + o->fixed - p->low),
	};

	memcpy(&key[4], sec, sizeof sec);
	return intern_words(t, key, 7);
}

static void
number_ranges(struct nested_program *p)
{
	size_t n = (size_t)p->n;
	struct intern_table t = intern_new(n * n, p->arena);

	p->id = arena_array(p->arena, n + 1, sizeof *p->id);
	for (int32_t len = 1; len <= p->n; len++) {
		p->id[len] = arena_array(p->arena, n - (size_t)len + 1, 4);
		for (int32_t i = 0; i + len <= p->n; i++) {
			uint64_t key[3];

			if (len == 1) {
				p->id[1][i] = number_part(p, i, &t);
				continue;
			}
			key[0] = (uint64_t)len;
			key[1] = (uint64_t)p->id[len - 1][i];
			key[2] = (uint64_t)p->id[1][i + len - 1];
			p->id[len][i] = intern_words(&t, key, 3);
		}
	}
	p->nrange = t.n;
}

/* ---- the programme ---- */

static struct cost_table
table_new(struct nested_program *p)
{
	struct cost_table t;
	size_t n = (size_t)p->units + 1;

	t.sec = arena_array(p->arena, n, sizeof *t.sec);
	t.how = arena_array(p->arena, n, sizeof *t.how);
	for (size_t m = 0; m < n; m++)
		t.sec[m] = INFINITY;
	return t;
}

static void
relax_entry(struct cost_table *t, int32_t m, double sec, int32_t how)
{
	if ((float)sec < t->sec[m]) {
		t->sec[m] = (float)sec;
		t->how[m] = (int16_t)how;
	}
}

static int32_t
need_of(const struct nested_program *p, int64_t bytes)
{
	return units_of(p, bytes - p->low);
}

/* The tape of part i is made in passing, then `rest` runs, then its
 * backward. */
static void
try_tape(const struct nested_program *p, struct cost_table *t,
         const struct cost_table *rest, int32_t i, double sec)
{
	const struct part_cost *o = &p->c->cost[i];
	int32_t held = units_of(p, o->tape) + units_of(p, o->cut);
	int32_t need = need_of(p, o->peak);

	for (int32_t m = need > held ? need : held; m <= p->units; m++)
		relax_entry(t, m, sec + rest->sec[m - held], 0);
}

/* Cut after part k - 1 of the stretch is held for `rest`; then `before`. */
static void
try_split(const struct nested_program *p, struct cost_table *t,
          const struct cost_table *before, const struct cost_table *rest,
          int32_t cut, int32_t need, double sec, int32_t how)
{
	int32_t held = units_of(p, p->c->cost[cut].cut);

	for (int32_t m = need > held ? need : held; m <= p->units; m++)
		relax_entry(t, m, sec + rest->sec[m - held] + before->sec[m],
		            how);
	*p->work -= p->units;
}

static struct cost_table *
table_of(const struct nested_program *p, int32_t from, int32_t len)
{
	return &p->of[p->id[len][from]];
}

/* Parts lo.. of so many, in a repeat. */
static void
fill_table(struct nested_program *p, int32_t lo, int32_t len)
{
	const struct part_cost *o = p->c->cost;
	struct cost_table *t = table_of(p, lo, len);
	int32_t every = 1 + (len - 2) / SPLITS;
	int64_t most = 0, fixed = o[lo + len - 1].fixed;
	double sec = 0;

	if (len == 1) {
		for (int32_t m = need_of(p, o[lo].peak); m <= p->units; m++)
			relax_entry(t, m, o[lo].all, 0);
		return;
	}
	try_tape(p, t, table_of(p, lo + 1, len - 1), lo, o[lo].all);
	for (int32_t k = 1; k < len; k++) {
		int32_t need;

		sec += o[lo + k - 1].sec;
		most = o[lo + k - 1].sweep > most ? o[lo + k - 1].sweep : most;
		need = need_of(p, most + fixed);
		if (len <= 24 || (len - k) % every == 0)
			try_split(p, t, table_of(p, lo, k),
			          table_of(p, lo + k, len - k), lo + k - 1,
			          need, sec, k);
	}
}

/* Parts from lo on, in the first run. */
static void
solve_first(struct nested_program *p, int32_t lo)
{
	const struct part_cost *o = p->c->cost;
	struct cost_table *t = &p->first[lo];

	*t = table_new(p);
	if (lo == p->n - 1) {
		for (int32_t m = need_of(p, o[lo].peak); m <= p->units; m++)
			relax_entry(t, m, o[lo].once, 0);
		return;
	}
	try_tape(p, t, &p->first[lo + 1], lo, o[lo].once);
	for (int32_t k = 1; lo + k < p->n; k++)
		try_split(p, t, table_of(p, lo, k), &p->first[lo + k],
		          lo + k - 1, 0, 0, k);
}

static int64_t
smallest_cut(const struct chain *c)
{
	int64_t least = INT64_MAX;

	for (int32_t i = 0; i + 1 < c->npart; i++)
		if (c->cost[i].cut > 0 && c->cost[i].cut < least)
			least = c->cost[i].cut;
	return least;
}

/* Between the smallest part and `top` bytes. */
static struct nested_program *
nested_program_new(struct chain *c, int64_t top, int64_t *work, Arena *arena)
{
	struct nested_program *p = arena_alloc(arena, sizeof *p);
	int64_t low = INT64_MAX, units;

	p->c = c;
	p->arena = arena;
	p->n = c->npart;
	p->work = work;
	for (int32_t i = 0; i < c->npart; i++)
		low = c->cost[i].peak < low ? c->cost[i].peak : low;
	if (top <= low)
		return NULL;
	p->low = low;
	p->unit = (top - low) / 64 + 1;
	number_ranges(p);
	units = TABLE / (p->nrange + p->n);
	units = units < 32 ? 32 : units > UNITS_MAX ? UNITS_MAX : units;
	p->unit = (top - low) / units + 1;
	if (p->unit < smallest_cut(c) / 8)      /* finer is of no use */
		p->unit = smallest_cut(c) / 8;
	number_ranges(p);
	p->units = (int32_t)((top - low) / p->unit);
	if ((int64_t)p->nrange * (p->units + 1) > 3 * (int64_t)TABLE)
		return NULL;
	p->of = arena_array(arena, (size_t)p->nrange + 1, sizeof *p->of);
	for (int32_t len = 1; len < p->n; len++) {
		if (watch_over(c->r->watch))
			return NULL;
		for (int32_t i = 0; i + len <= p->n; i++)
			if (!table_of(p, i, len)->sec) {
				*table_of(p, i, len) = table_new(p);
				fill_table(p, i, len);
			}
	}
	p->first = arena_array(arena, (size_t)p->n + 1, sizeof *p->first);
	for (int32_t i = p->n - 1; i >= 0; i--)
		solve_first(p, i);
	return p;
}

/* ---- from tables to sequences ---- */

static void
run_range(const struct nested_program *p, int32_t lo, int32_t len, int32_t m)
{
	struct chain *c = p->c;
	const struct part_cost *o = &c->cost[lo];
	int32_t how = table_of(p, lo, len)->how[m];

	if (!c->run.ok)
		return;
	if (len == 1) {
		chain_sweep_tape(c, lo, false);
		chain_backward(c, lo);
	} else if (how == 0) {
		chain_sweep_tape(c, lo, true);
		run_range(p, lo + 1, len - 1, m - units_of(p, o->tape)
		          - units_of(p, o->cut));
		chain_backward(c, lo);
	} else {
		int32_t at = lo + how - 1;

		chain_sweep(c, at);
		run_range(p, lo + how, len - how, m
		          - units_of(p, c->cost[at].cut));
		run_range(p, lo, how, m);
	}
}

/* What the first run leaves in memory. */
static void
hold_first_states(const struct nested_program *p, int32_t m)
{
	struct chain *c = p->c;

	for (int32_t lo = 0; lo < p->n;) {
		int32_t how = p->first[lo].how[m];

		if (how == 0) {
			chain_hold_tape(c, lo);
			m -= lo < p->n - 1 ? units_of(p, c->cost[lo].tape)
				+ units_of(p, c->cost[lo].cut) : 0;
			lo++;
		} else {
			chain_hold_cut(c, lo + how - 1);
			m -= units_of(p, c->cost[lo + how - 1].cut);
			lo += how;
		}
	}
}

static void
run_backward(const struct nested_program *p, int32_t lo, int32_t m)
{
	const struct chain *c = p->c;
	int32_t how = p->first[lo].how[m], rest;

	if (how == 0) {
		rest = m - units_of(p, c->cost[lo].tape)
			- units_of(p, c->cost[lo].cut);
		if (lo < p->n - 1)
			run_backward(p, lo + 1, rest);
		chain_backward(p->c, lo);
		return;
	}
	rest = m - units_of(p, c->cost[lo + how - 1].cut);
	run_backward(p, lo + how, rest);
	run_range(p, lo, how, m);
}

static void
build_within(struct plan_pool *pool, const struct nested_program *p,
             int32_t m)
{
	chain_begin(p->c);
	hold_first_states(p, m);
	run_backward(p, 0, m);
	if (p->c->run.ok)
		pool_try_steps(pool, p->c->run.out->step, p->c->run.out->n);
}

/* Plans for some amounts of memory; returns the least that there is one
 * for. */
static int64_t
build_some(struct plan_pool *pool, const struct nested_program *p)
{
	int32_t least = 0, every, n = 0;
	const float *sec = p->first[0].sec;

	while (least <= p->units && isinf(sec[least]))
		least++;
	if (least > p->units)
		return -1;
	for (int32_t m = least + 1; m <= p->units; m++)
		n += sec[m] < sec[m - 1];
	every = 1 + n / PLANS;
	n = 0;
	for (int32_t m = least;
	     m <= p->units && !watch_over(pool->r->watch); m++)
		if (m == least || (sec[m] < sec[m - 1] && n++ % every == 0))
			build_within(pool, p, m);
	return p->low + least * p->unit;
}

/* ---- inside parts ---- */

static int64_t
largest_part_peak(const struct chain *c)
{
	int64_t most = 0;

	for (int32_t i = 0; i < c->npart; i++)
		if (c->cost[i].peak > most)
			most = c->cost[i].peak;
	return most;
}

static double
total_seconds(const struct chain *c)
{
	double sum = 0;

	for (int32_t i = 0; i < c->npart; i++)
		sum += c->cost[i].all;
	return sum;
}

static bool
may_set_flag(const struct chain *c, int32_t s)
{
	return c->r->store[s].group >= 0 && c->part_of[s] >= 0
		&& !c->constraint[s] && c->last[s];
}

static void
set_flag(struct chain *c, int32_t group, int flag)
{
	for (int32_t s = 0; s < c->r->nstore; s++)
		if (may_set_flag(c, s) && c->r->store[s].group == group)
			c->flag[s] = (uint8_t)flag;
}

/* Turn the flag of the role that makes the largest part smallest; false:
 * none does. */
static bool
lower_peak(struct chain *c, int64_t *work)
{
	const struct remat *r = c->r;
	bool *seen;
	Arena *a = arena_new();
	int64_t best, now;
	double sec = INFINITY;
	int32_t worst = 0, which = -1;
	int to = 0;

	chain_measure(c);
	best = now = largest_part_peak(c);
	for (int32_t i = 0; i < c->npart; i++)
		if (c->cost[i].peak == now)
			worst = i;
	seen = arena_array(a, (size_t)r->ngroup + 1, 1);
	for (int32_t k = c->store_at[worst]; k < c->store_at[worst + 1]; k++) {
		int32_t s = c->store[k], group = r->store[s].group;
		int flag = c->flag[s];

		if (!may_set_flag(c, s) || flag == CHAIN_AGAIN || seen[group]
		    || *work < 0 || watch_over(r->watch))
			continue;
		seen[group] = true;
		set_flag(c, group, flag + 1);
		if (chain_measure(c) && (largest_part_peak(c) < best
		    || (largest_part_peak(c) == best && best < now
		        && total_seconds(c) < sec))) {
			best = largest_part_peak(c);
			sec = total_seconds(c);
			which = group;
			to = flag + 1;
		}
		*work -= 2 * c->run.out->n;
		set_flag(c, group, flag);
	}
	if (which >= 0)
		set_flag(c, which, to);
	arena_free(a);
	return which >= 0 && chain_measure(c);
}

void
nested_search(struct plan_pool *pool, struct step_list *steps, int64_t work)
{
	Arena *arena = arena_new();
	struct chain *c = chain_new(pool->r, pool->constraint, steps, arena);
	int64_t trials = work / TRIAL;

	for (int k = 0; c && k < VARIANTS && work > 0
	     && !watch_over(pool->r->watch); k++) {
		int64_t top = pool->top;

		if (k > 0 && !lower_peak(c, &trials))
			break;
		if (k == 0 && !chain_measure(c))
			break;
		for (int zoom = 0; zoom < ZOOMS && top > 0 && work > 0;
		     zoom++) {
			Arena *a = arena_new();
			struct nested_program *p =
				nested_program_new(c, top, &work, a);
			int64_t least = p ? build_some(pool, p) : -1;

			top = least > 0 && least - p->low < (top - p->low) / 2
				? least + (least - p->low) / 4 : -1;
			arena_free(a);
		}
	}
	arena_free(arena);
}
