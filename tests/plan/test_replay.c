/* Replay accepts what the planner makes and names the rule that every kind of
 * damage breaks. */
#include "tests/plan/plan_test.h"
#include "passes/replay/replay.h"

#include <stdlib.h>
#include <string.h>

enum { ALIGN = 64 };

struct fixture {
	struct bench b;
	Graph *g;
};

static int
open_fixture(void **state)
{
	struct fixture *f = calloc(1, sizeof *f);
	struct gen_gpt o = { 3, 64, 4, 4, 64, 128 };
	Graph *g = gen_gpt(&o);

	/* a tight budget: many copies */
	bench_open(&f->b);
	f->b.opt.budget_bytes = 1;
	assert_false(bench_run(&f->b, g));
	f->b.opt.budget_bytes = f->b.pass.planned.minimum_peak * 101 / 100;
	bench_close(&f->b);
	graph_free(g);
	int64_t budget = f->b.opt.budget_bytes;

	bench_open(&f->b);
	f->b.opt.budget_bytes = budget;
	f->g = gen_gpt(&o);
	assert_true(bench_run(&f->b, f->g));
	*state = f;
	return 0;
}

static int
close_fixture(void **state)
{
	struct fixture *f = *state;

	bench_close(&f->b);
	graph_free(f->g);
	free(f);
	return 0;
}

static Plan *
copy_plan(const Plan *p, Arena *a)
{
	Plan *c = arena_copy(a, p, sizeof *p);

	c->tensor = arena_array(a, (size_t)p->ntensor + 1, sizeof *c->tensor);
	memcpy(c->tensor, p->tensor, (size_t)p->ntensor * sizeof *c->tensor);
	c->step = arena_array(a, (size_t)p->nstep + 1, sizeof *c->step);
	memcpy(c->step, p->step, (size_t)p->nstep * sizeof *c->step);
	for (int64_t i = 0; i < p->nstep; i++) {
		struct plan_step *s = &c->step[i];

		s->read = arena_array(a, (size_t)s->nread + 2, 8);
		memcpy(s->read, p->step[i].read, (size_t)s->nread * 8);
		s->write = arena_array(a, (size_t)s->nwrite + 2, 8);
		memcpy(s->write, p->step[i].write, (size_t)s->nwrite * 8);
	}
	return c;
}

/* Replay; the text of the faults into buf. */
static bool
replay(Plan *p, char *buf, size_t size)
{
	char *text = NULL;
	size_t n = 0;
	FILE *out = open_memstream(&text, &n);
	Diag *d = diag_new("test", out);
	bool ok = plan_replay(p, d);

	diag_free(d);
	fclose(out);
	snprintf(buf, size, "%s", text);
	free(text);
	return ok;
}

static bool
rejects(Plan *p, const char *rule)
{
	char text[20000], want[40];

	snprintf(want, sizeof want, "replay: %s: ", rule);
	if (replay(p, text, sizeof text))
		return false;
	if (!strstr(text, want))
		printf("expected %s, got %s", rule, text);
	return strstr(text, want) != NULL;
}

/* ---- finding things ---- */

static int64_t
find_step(const Plan *p, Phase phase, int64_t from)
{
	while (from < p->nstep && (p->step[from].phase != phase
	       || p->step[from].view))
		from++;
	assert_true(from < p->nstep);
	return from;
}

/* A step, not a view, that overwrites what it reads; in the arena. */
static int64_t
find_in_place(const Plan *p, int64_t *old)
{
	for (int64_t i = 0; i < p->nstep; i++) {
		const struct plan_step *s = &p->step[i];

		for (int k = 0; k < s->nwrite; k++) {
			int64_t w = s->write[k];

			if (w < 0 || s->view || p->tensor[w].resident
			    || p->tensor[w].alias_of < 0)
				continue;
			*old = p->tensor[w].alias_of;
			return i;
		}
	}
	fail_msg("no step works in place");
	return -1;
}

static int64_t
find_tensor(const Plan *p, TensorKind kind)
{
	for (int64_t i = 0; i < p->ntensor; i++)
		if (p->tensor[i].kind == kind && !p->tensor[i].resident
		    && p->tensor[i].alias_of < 0)
			return i;
	fail_msg("no such tensor");
	return -1;
}

static int64_t
find_view(const Plan *p)
{
	for (int64_t i = 0; i < p->nstep; i++)
		if (p->step[i].view)
			return i;
	fail_msg("no view");
	return -1;
}

/* ---- damage ---- */

typedef void Damage(Plan *);

static void
remove_step(Plan *p, int64_t at)
{
	memmove(&p->step[at], &p->step[at + 1],
	        (size_t)(p->nstep - at - 1) * sizeof *p->step);
	p->nstep--;
	for (int64_t i = 0; i < p->nstep; i++)
		if (p->step[i].of > at)
			p->step[i].of--;
}

static void
swap_steps(Plan *p, int64_t a)
{
	struct plan_step s = p->step[a];

	p->step[a] = p->step[a + 1];
	p->step[a + 1] = s;
	for (int64_t i = 0; i < p->nstep; i++) {
		if (p->step[i].of == a)
			p->step[i].of = a + 1;
		else if (p->step[i].of == a + 1)
			p->step[i].of = a;
	}
}

static void
remove_copy(Plan *p)
{
	remove_step(p, find_step(p, PH_RECOMPUTE, 0));
}

static void
move_to_front(Plan *p)
{
	for (int64_t i = find_step(p, PH_BACKWARD, 0); i > 0; i--)
		swap_steps(p, i - 1);
}

static void
shrink(Plan *p)
{
	p->tensor[find_tensor(p, K_ACTIVATION)].bytes -= 64;
}

static void
overlap(Plan *p)
{
	int64_t a = find_tensor(p, K_ACTIVATION), b;

	for (b = a + 1; b < p->ntensor; b++)
		if (!p->tensor[b].resident && p->tensor[b].alias_of < 0
		    && p->tensor[b].first <= p->tensor[a].last
		    && p->tensor[b].last >= p->tensor[a].first)
			break;
	p->tensor[b].offset = p->tensor[a].offset;
}

static void
misalign(Plan *p)
{
	p->tensor[find_tensor(p, K_ADJOINT)].offset += 8;
}

static void
unplace(Plan *p)
{
	p->tensor[find_tensor(p, K_ADJOINT)].offset = -1;
}

static void
more_workspace(Plan *p)
{
	p->step[find_step(p, PH_FORWARD, 0)].workspace += 64;
}

static void
read_workspace(Plan *p)
{
	struct plan_step *s = &p->step[p->nstep - 1];

	s->read[s->nread++] = find_tensor(p, K_WORKSPACE);
}

static void
alias_too_far(Plan *p)
{
	const struct plan_step *s = &p->step[find_view(p)];

	p->tensor[s->write[0]].alias_offset += 1 << 20;
}

static void
alias_elsewhere(Plan *p)
{
	const struct plan_step *s = &p->step[find_view(p)];

	p->tensor[s->write[0]].resident = true;
}

static void
view_of_other(Plan *p)
{
	struct plan_step *s = &p->step[find_view(p)];

	s->read[0] = p->step[find_step(p, PH_FORWARD, 0)].write[0];
}

static void
write_twice(Plan *p)
{
	struct plan_step *s = &p->step[find_step(p, PH_BACKWARD, 0)];

	s->write[s->nwrite++] = p->step[0].write[0];
}

static void
read_overwritten(Plan *p)
{
	int64_t old = -1, at = find_in_place(p, &old);
	struct plan_step *s = &p->step[at + 1];

	s->read[s->nread++] = old;
}

static void
lose_output(Plan *p)
{
	int64_t old = -1;

	find_in_place(p, &old);
	p->tensor[old].output = true;
}

static void
copy_reads_other(Plan *p)
{
	struct plan_step *s = &p->step[find_step(p, PH_RECOMPUTE, 0)];

	s->read[0] = s->read[s->nread - 1];
}

static void
copy_other_op(Plan *p)
{
	p->step[find_step(p, PH_RECOMPUTE, 0)].op = "sqrt";
}

static void
copy_no_copy(Plan *p)
{
	p->step[find_step(p, PH_RECOMPUTE, 0)].of = -1;
}

static void
copy_other_type(Plan *p)
{
	p->tensor[find_tensor(p, K_RECOMPUTED)].dt = DT_I32;
}

static void
live_longer(Plan *p)
{
	p->tensor[find_tensor(p, K_ADJOINT)].last++;
}

static void
claim_saved(Plan *p)
{
	struct plan_tensor *t = &p->tensor[find_tensor(p, K_ADJOINT)];

	t->saved = !t->saved;
}

static void
decide_otherwise(Plan *p)
{
	struct plan_tensor *t = &p->tensor[find_tensor(p, K_ACTIVATION)];

	t->decision = t->decision == D_KEEP ? D_FREE : D_KEEP;
}

static void
keep_as_free(Plan *p)
{
	int64_t i = 0;

	while (p->tensor[i].decision != D_KEEP)
		i++;
	p->tensor[i].decision = D_FREE;
}

static void
claim_live(Plan *p)
{
	p->sum.live_bound -= 64;
}

static void
claim_arena(Plan *p)
{
	p->sum.arena -= 64;
	p->sum.peak -= 64;
}

static void
claim_params(Plan *p)
{
	p->sum.param += 64;
}

static void
over_budget(Plan *p)
{
	p->sum.budget = p->sum.peak - 1;
}

static void
cheaper(Plan *p)
{
	p->sum.step_sec *= 0.999;
}

static void
bound_too_high(Plan *p)
{
	p->sum.bound_sec = p->sum.step_sec * 1.01;
}

/* As above, with the gap that follows from it. */
static void
bound_no_bound(Plan *p)
{
	bound_too_high(p);
	p->sum.gap = 0;
}

static void
free_step(Plan *p)
{
	p->step[find_step(p, PH_BACKWARD, 0)].seconds = 0;
}

static void
inline_unread(Plan *p)
{
	static struct plan_inlined part;
	int64_t at = find_step(p, PH_FORWARD, 1);

	part.of = at;
	p->step[p->nstep - 1].inlined = &part;
	p->step[p->nstep - 1].ninlined = 1;
}

/* The last step inlines an early one, all of which it reads. */
static struct plan_inlined *
inline_read(Plan *p)
{
	static struct plan_inlined part;
	struct plan_step *s = &p->step[p->nstep - 1];
	const struct plan_step *f;

	part.of = 0;
	while (p->step[part.of].nread > 2)
		part.of++;
	f = &p->step[part.of];
	for (int k = 0; k < f->nread; k++)
		s->read[s->nread++] = f->read[k];
	part.seconds = 0;
	s->inlined = &part;
	s->ninlined = 1;
	return &part;
}

static void
inline_dearer(Plan *p)
{
	inline_read(p)->seconds = p->step[p->nstep - 1].seconds + 1;
}

/* What is inlined counts as recomputed, not as the phase of its step. */
static void
inline_uncounted(Plan *p)
{
	inline_read(p)->seconds = p->step[p->nstep - 1].seconds / 2;
}

static void
inline_later(Plan *p)
{
	static struct plan_inlined part;

	part.of = p->nstep - 1;
	p->step[0].inlined = &part;
	p->step[0].ninlined = 1;
}

static void
alias_workspace(Plan *p)
{
	struct plan_tensor *t = &p->tensor[find_tensor(p, K_WORKSPACE)];

	t->alias_of = find_tensor(p, K_ACTIVATION);
}

static void
alias_chain(Plan *p)
{
	p->tensor[find_tensor(p, K_ACTIVATION)].alias_of =
		p->step[find_view(p)].write[0];
}

static void
no_such_result(Plan *p)
{
	p->step[3].write[0] = p->ntensor;
}

static void
negative_bytes(Plan *p)
{
	p->step[3].bytes = -1;
}

static void
no_such_tensor(Plan *p)
{
	p->step[3].read[0] = p->ntensor;
}

static void
chain(Plan *p)
{
	int64_t a = find_tensor(p, K_RECOMPUTED);

	p->tensor[find_tensor(p, K_ACTIVATION)].of = a;
}

static void
accepts(void **state)
{
	struct fixture *f = *state;
	char text[2000];
	int copies = 0;

	assert_true(replay(f->b.pass.planned.plan, text, sizeof text));
	assert_true(
		replay(f->b.pass.planned.reference_plan, text, sizeof text));
	for (int64_t i = 0; i < f->b.pass.planned.plan->nstep; i++)
		copies += f->b.pass.planned.plan->step[i].of >= 0;
	assert_true(copies > 5);
}

static void
names_the_rule(void **state)
{
	static const struct {
		Damage *damage;
		const char *rule;
	} t[] = {
		{ remove_copy, "write" }, { move_to_front, "read" },
		{ shrink, "form" }, { overlap, "place" },
		{ misalign, "place" }, { unplace, "place" },
		{ more_workspace, "workspace" },
		{ read_workspace, "workspace" },
		{ alias_too_far, "alias" }, { alias_elsewhere, "alias" },
		{ view_of_other, "view" }, { write_twice, "write" },
		{ read_overwritten, "read" }, { lose_output, "overwrite" },
		{ copy_reads_other, "recompute" },
		{ copy_other_op, "recompute" },
		{ copy_no_copy, "recompute" },
		{ copy_other_type, "recompute" },
		{ live_longer, "lifetime" }, { claim_saved, "saved" },
		{ decide_otherwise, "decision" }, { claim_live, "peak" },
		{ claim_arena, "peak" }, { claim_params, "peak" },
		{ over_budget, "budget" }, { cheaper, "sums" },
		{ bound_too_high, "sums" }, { free_step, "sums" },
		{ inline_unread, "inline" }, { inline_dearer, "inline" },
		{ inline_later, "form" }, { no_such_tensor, "form" },
		{ no_such_result, "form" }, { negative_bytes, "form" },
		{ chain, "form" }, { alias_chain, "form" },
		{ alias_workspace, "workspace" }, { keep_as_free, "decision" },
		{ bound_no_bound, "sums" }, { inline_uncounted, "sums" },
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof t / sizeof t[0]; i++) {
		Arena *a = arena_new();
		Plan *p = copy_plan(f->b.pass.planned.plan, a);

		t[i].damage(p);
		if (!rejects(p, t[i].rule))
			fail_msg("damage %zu (%s) was not found", i, t[i].rule);
		arena_free(a);
	}
}

/* Every step matters, and its place among its neighbours. */
static void
every_step(void **state)
{
	struct fixture *f = *state;
	const Plan *plan = f->b.pass.planned.plan;
	char text[2000];

	for (int64_t i = 0; i < plan->nstep; i++) {
		Arena *a = arena_new();
		Plan *p = copy_plan(plan, a);

		remove_step(p, i);
		assert_false(replay(p, text, sizeof text));
		if (i + 1 < plan->nstep) {
			p = copy_plan(plan, a);
			swap_steps(p, i);
			assert_false(replay(p, text, sizeof text));
		}
		arena_free(a);
	}
}

static void
every_tensor(void **state)
{
	struct fixture *f = *state;
	const Plan *plan = f->b.pass.planned.plan;
	char text[2000];

	for (int64_t i = 0; i < plan->ntensor; i++) {
		Arena *a = arena_new();
		Plan *p = copy_plan(plan, a);

		p->tensor[i].bytes -= 64;
		if (p->tensor[i].alias_of < 0)  /* a strided view has slack */
			assert_false(replay(p, text, sizeof text));
		p = copy_plan(plan, a);
		p->tensor[i].first++;
		assert_false(replay(p, text, sizeof text));
		arena_free(a);
	}
}

/* ---- two places, every way that they may lie ---- */

enum { STEPS = 4, UNITS = 5 };

struct place {
	int64_t first, last, offset, bytes;
};

/* A plan of steps that write and read just two tensors. */
static Plan *
two_places(const struct place at[2], Arena *a)
{
	Plan *p = arena_alloc(a, sizeof *p);

	p->nstep = STEPS;
	p->ntensor = 2;
	p->step = arena_array(a, STEPS, sizeof *p->step);
	p->tensor = arena_array(a, 2, sizeof *p->tensor);
	p->sum = (struct plan_summary){ .budget = -1, .baseline_peak = -1,
	                                .alignment = ALIGN };
	for (int k = 0; k < STEPS; k++) {
		struct plan_step *s = &p->step[k];
		int64_t live = 0;

		*s = (struct plan_step){ .op = "step", .node = -1, .of = -1,
		                         .phase = PH_FORWARD };
		s->read = arena_array(a, 2, sizeof *s->read);
		s->write = arena_array(a, 2, sizeof *s->write);
		for (int i = 0; i < 2; i++) {
			if (at[i].first == k)
				s->write[s->nwrite++] = i;
			else if (at[i].last == k)
				s->read[s->nread++] = i;
			if (at[i].first <= k && k <= at[i].last)
				live += at[i].bytes;
		}
		if (live > p->sum.live_bound)
			p->sum.live_bound = live;
	}
	for (int i = 0; i < 2; i++) {
		p->tensor[i] = (struct plan_tensor){ .name = i ? "b" : "a",
			.node = -1, .kind = K_ACTIVATION, .dt = DT_NONE,
			.shape.rank = -1, .bytes = at[i].bytes,
			.offset = at[i].offset, .of = -1, .alias_of = -1,
			.low_precision_of = -1,
			.decision = D_FREE, .first = at[i].first,
			.last = at[i].last };
		if (at[i].offset + at[i].bytes > p->sum.arena)
			p->sum.arena = at[i].offset + at[i].bytes;
	}
	p->sum.peak = p->sum.arena;
	return p;
}

static bool
cover(int64_t a, int64_t to_a, int64_t b, int64_t to_b)
{
	bool any = false;

	for (int64_t x = a; x < to_a; x++)
		any |= b <= x && x < to_b;
	return any;
}

static bool
next_place(struct place *p)
{
	if (++p->bytes + p->offset <= UNITS)
		return true;
	p->bytes = 1;
	if (++p->offset < UNITS)
		return true;
	p->offset = 0;
	if (++p->last < STEPS)
		return true;
	p->last = ++p->first;
	return p->first < STEPS;
}

static void
overlap_is_seen(void **state)
{
	int met = 0, apart = 0;

	(void)state;
	for (struct place x = { 0, 0, 0, 1 }; x.first < STEPS; next_place(&x))
		for (struct place y = { 0, 0, 0, 1 }; y.first < STEPS;
		     next_place(&y)) {
			struct place at[2] = { x, y };
			Arena *a = arena_new();
			char text[4096];
			bool both = cover(x.first, x.last + 1, y.first,
			                  y.last + 1)
				&& cover(x.offset, x.offset + x.bytes,
				         y.offset, y.offset + y.bytes);

			for (int i = 0; i < 2; i++) {
				at[i].offset *= ALIGN;
				at[i].bytes *= ALIGN;
			}
			assert_true(replay(two_places(at, a), text,
			                   sizeof text) == !both);
			if (both)
				assert_non_null(strstr(text, "overlap"));
			met += both;
			apart += !both;
			arena_free(a);
		}
	assert_true(met > 1000 && apart > 1000);
}

/* ---- transfers ---- */

enum { MADE, SENT, BEGUN = 1, BETWEEN, END };

/* Step 1 sends tensor 0, which step 0 makes, as tensor 1, until step 3 has run;
 * steps 2 and 3 make tensors 2 and 3; step 4 reads all. */
static Plan *
sending(Arena *a)
{
	static const struct { int64_t first, last; } life[4] = {
		{ 0, 4 }, { 1, 4 }, { 2, 4 }, { 3, 4 } };
	Plan *p = arena_alloc(a, sizeof *p);

	*p = (Plan){ .nstep = 5, .ntensor = 4, .sum = { .budget = -1,
		.baseline_peak = -1, .alignment = 1, .arena = 256,
		.peak = 256, .live_bound = 256, .forward_sec = 7,
		.step_sec = 7, .bound_sec = 7, .sent = 8, .exposed_sec = 5 } };
	p->step = arena_array(a, 5, sizeof *p->step);
	p->tensor = arena_array(a, 4, sizeof *p->tensor);
	for (int k = 0; k < 5; k++) {
		p->step[k] = (struct plan_step){ .op = "step", .node = -1,
			.of = -1, .phase = PH_FORWARD, .seconds = 1,
			.read = arena_array(a, 5, sizeof(int64_t)),
			.write = arena_array(a, 5, sizeof(int64_t)) };
		if (k < 4)
			p->step[k].write[p->step[k].nwrite++] = k;
	}
	for (int k = 0; k < 4; k++) {
		p->step[4].read[p->step[4].nread++] = k;
		p->tensor[k] = (struct plan_tensor){ .name = "t", .node = -1,
			.kind = K_ACTIVATION, .dt = DT_NONE, .shape.rank = -1,
			.bytes = 64, .offset = -1, .of = -1, .alias_of = -1,
			.low_precision_of = -1, .decision = D_FREE,
			.first = life[k].first, .last = life[k].last };
	}
	p->step[BEGUN].read[p->step[BEGUN].nread++] = MADE;
	p->step[BEGUN].seconds = p->step[BEGUN].lane_sec = 3;
	p->step[BEGUN].sent = 8;
	p->step[BEGUN].lane = LANE_LINK;
	p->step[BEGUN].wait = END;
	return p;
}

static void
transfers_are_left_alone(void **state)
{
	Arena *a = arena_new();
	char text[4000];
	Plan *p = sending(a);

	(void)state;
	if (!replay(p, text, sizeof text))
		fail_msg("%s", text);
	for (int k = BETWEEN; k <= END; k++) {
		p = sending(a);
		p->step[k].read[p->step[k].nread++] = SENT;
		assert_true(rejects(p, "wait"));
		p = sending(a);
		p->step[k].read[p->step[k].nread++] = MADE;
		assert_false(rejects(p, "wait"));
		p->tensor[k].alias_of = MADE;   /* in place */
		assert_true(rejects(p, "wait"));
	}
	p = sending(a);
	p->step[BEGUN].wait = 5;
	assert_true(rejects(p, "form"));
	p->step[BEGUN].wait = BEGUN;
	assert_true(rejects(p, "form"));
	p = sending(a);
	p->step[BETWEEN].wait = END;
	assert_true(rejects(p, "form"));
	p = sending(a);
	p->sum.exposed_sec = 4;
	assert_true(rejects(p, "sums"));
	/* what is sent lives as long */
	p = sending(a);
	p->step[4].nread = 0;
	for (int k = 1; k < 4; k++)
		p->step[4].read[p->step[4].nread++] = k;
	p->tensor[MADE].last = END;
	if (!replay(p, text, sizeof text))
		fail_msg("%s", text);
	p->tensor[MADE].last = BEGUN;
	assert_true(rejects(p, "lifetime"));
	arena_free(a);
}

/* Step 0 makes tensor 0 in device memory; step 1 offloads it over tensor 1, which
 * is resident in host memory, as tensor 2, until step 2 has run; step 3 fetches
 * that as tensor 3, which step 4 reads. */
static Plan *
offloading(Arena *a)
{
	Plan *p = sending(a);
	struct plan_step *put = &p->step[BEGUN], *get = &p->step[END];

	for (int k = 0; k < 5; k++)
		p->step[k].nread = p->step[k].nwrite = 0;
	p->step[0].write[p->step[0].nwrite++] = 0;
	put->read[put->nread++] = 1;
	put->read[put->nread++] = 0;
	put->write[put->nwrite++] = 2;
	put->lane = LANE_OFFLOAD;
	put->wait = BETWEEN;
	get->read[get->nread++] = 2;
	get->write[get->nwrite++] = 3;
	get->lane = LANE_FETCH;
	get->sent = 8;
	get->lane_sec = 1;
	p->step[4].read[p->step[4].nread++] = 3;
	p->tensor[0].last = BETWEEN;
	p->tensor[1].host = p->tensor[1].resident = true;
	p->tensor[1].kind = K_STATE;
	p->tensor[1].decision = D_NULL;
	p->tensor[1].first = 0;
	p->tensor[2].host = p->tensor[2].resident = true;
	p->tensor[2].kind = K_STATE;
	p->tensor[2].decision = D_NULL;
	p->tensor[2].alias_of = 1;
	p->tensor[2].first = 0;
	p->tensor[2].last = 4;
	p->sum.sent = 0;
	p->sum.fetched = p->sum.offloaded = 8;
	p->sum.host = 64;
	p->sum.arena = p->sum.live_bound = p->sum.peak = 64;
	p->sum.exposed_sec = p->sum.bound_sec = 6;
	p->sum.forward_sec = 3;
	p->sum.host_sec = 4;
	return p;
}

static void
host_is_for_transfers(void **state)
{
	Arena *a = arena_new();
	char text[4000];
	Plan *p = offloading(a);

	(void)state;
	if (!replay(p, text, sizeof text))
		fail_msg("%s", text);
	p->step[4].read[0] = 2;                 /* read where it lies */
	assert_true(rejects(p, "host"));
	p = offloading(a);
	p->step[END].lane = LANE_COMPUTE;       /* moved by a kernel */
	assert_true(rejects(p, "host"));
	p = offloading(a);
	p->step[END].lane = LANE_OFFLOAD;       /* moved the other way */
	assert_true(rejects(p, "host"));
	p = offloading(a);
	p->step[BEGUN].lane = LANE_FETCH;
	assert_true(rejects(p, "host"));
	p = offloading(a);
	p->step[BEGUN].read[1] = 1;             /* host memory to host memory */
	assert_true(rejects(p, "host"));
	p = offloading(a);
	p->step[END].read[0] = 0;               /* a fetch of device memory */
	assert_true(rejects(p, "host"));
	p = offloading(a);
	p->step[BEGUN].wait = END;              /* fetched while it is written */
	assert_true(rejects(p, "wait"));
	p = offloading(a);                      /* or overwritten on its way */
	p->step[BETWEEN].write[p->step[BETWEEN].nwrite++] = 3;
	p->step[END].nwrite = 0;
	p->tensor[3].alias_of = 0;
	assert_true(rejects(p, "wait"));
	p = offloading(a);
	p->tensor[2].host = false;
	assert_true(rejects(p, "alias"));
	p = offloading(a);
	p->sum.host = 0;
	assert_true(rejects(p, "host"));
	p = offloading(a);
	p->sum.peak = p->sum.resident = 128;    /* counted in both */
	assert_true(rejects(p, "peak"));
	p = offloading(a);                      /* lanes run side by side */
	p->sum.exposed_sec = 5;
	assert_true(rejects(p, "sums"));
	arena_free(a);
}

/* No figure of the summary is believed. */
static void
every_figure(void **state)
{
	struct fixture *f = *state;
	Arena *a = arena_new();
	Plan *p = copy_plan(f->b.pass.planned.plan, a);
	struct plan_summary *s = &p->sum;
	int64_t *bytes[] = { &s->peak, &s->resident, &s->arena,
		&s->live_bound, &s->param, &s->buffer, &s->constant,
		&s->input, &s->grad, &s->optimizer, &s->workspace, &s->saved };
	double *real[] = { &s->forward_sec, &s->backward_sec, &s->update_sec,
		&s->recompute_sec, &s->step_sec, &s->exposed_sec,
		&s->recompute_flops,
		&s->step_flops, &s->overhead, &s->gap };
	char text[2000];

	for (size_t i = 0; i < sizeof bytes / sizeof *bytes; i++) {
		*bytes[i] += ALIGN;
		if (replay(p, text, sizeof text))
			fail_msg("%zu of the bytes may be anything", i);
		*bytes[i] -= ALIGN;
	}
	for (size_t i = 0; i < sizeof real / sizeof *real; i++) {
		double was = *real[i];

		*real[i] += was * 1e-6 + 1e-9;
		if (replay(p, text, sizeof text))
			fail_msg("%zu of the costs may be anything", i);
		*real[i] = was;
	}
	assert_true(replay(p, text, sizeof text));
	arena_free(a);
}

/* Damage as small as it can be, which breaks one rule and no other. */
static void
just_beyond(void **state)
{
	struct fixture *f = *state;
	Arena *a = arena_new();
	Plan *p = copy_plan(f->b.pass.planned.plan, a);
	struct plan_tensor *t = &p->tensor[p->step[find_view(p)].write[0]];

	t->alias_offset = p->tensor[t->alias_of].bytes - t->bytes + ALIGN;
	assert_true(rejects(p, "alias"));
	p = copy_plan(f->b.pass.planned.plan, a);
	for (int64_t i = 0; i < p->ntensor; i++)        /* aligned no more */
		if (!p->tensor[i].resident)
			p->tensor[i].offset += ALIGN / 2;
	p->sum.arena += ALIGN / 2;
	p->sum.peak += ALIGN / 2;
	p->sum.budget = -1;
	assert_true(rejects(p, "place"));
	arena_free(a);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(overlap_is_seen),
		cmocka_unit_test(accepts),
		cmocka_unit_test(names_the_rule),
		cmocka_unit_test(host_is_for_transfers),
		cmocka_unit_test(every_step),
		cmocka_unit_test(every_tensor),
		cmocka_unit_test(transfers_are_left_alone),
		cmocka_unit_test(every_figure),
		cmocka_unit_test(just_beyond),
	};

	return cmocka_run_group_tests(tests, open_fixture, close_fixture);
}
