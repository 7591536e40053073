/* What the planner's tests share. */
#ifndef TESTS_PLAN_PLAN_TEST_H
#define TESTS_PLAN_PLAN_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "passes/account/account.h"
#include "passes/planner/choose.h"
#include "tests/plan/gen.h"
#include "passes/fuse/fuse.h"
#include "passes/place/place.h"
#include "passes/replay/replay.h"
#include "passes/planner/planner.h"
#include "codegen/cpu/cpu.h"

/* A graph as the planner sees it. */
struct problem {
	Graph *g;
	Arena *arena;
	struct remat *r;
	struct schedule *w;
	uint8_t *constraint, *drop;     /* by storage, all 0 */
	int32_t cand[64], ncand;        /* the first candidates */
	int64_t top;                    /* live bytes with everything kept */
};

static inline void
open_problem(struct problem *p, Graph *g)
{
	p->g = g;
	p->arena = arena_new();
	p->r = remat_new(g, p->arena);
	p->w = schedule_new(p->r, p->arena);
	p->constraint = arena_array(p->arena, (size_t)p->r->nstore + 1, 1);
	p->drop = arena_array(p->arena, (size_t)p->r->nstore + 1, 1);
	remat_keep_all(p->r, p->constraint, p->drop);
	p->top = schedule_set(p->w, p->drop).live;
	memset(p->drop, 0, (size_t)p->r->nstore);
	p->ncand = 0;
	for (int32_t i = 0; i < p->r->nstore; i++)
		if (p->r->store[i].candidate && p->ncand < 64)
			p->cand[p->ncand++] = i;
}

static inline void
close_problem(struct problem *p)
{
	arena_free(p->arena);
	graph_free(p->g);
}

/* A pass context with quiet diagnostics. */
struct bench {
	Pass pass;
	struct options opt;
	FILE *quiet;
};

static inline void
bench_open(struct bench *b)
{
	*b = (struct bench){ .opt = { .budget_bytes = -1, .threads = 2,
	                              .gap_pct = 0.1 } };
	b->quiet = fopen("/dev/null", "w");
	assert_non_null(b->quiet);
	b->pass = (Pass){
		.target = &target_cpu, .diag = diag_new("test", b->quiet),
		.opt = &b->opt, .scratch = arena_new(), .keep = arena_new(),
		.planned.budget = -1,
	};
}

static inline void
bench_close(struct bench *b)
{
	graph_free(b->pass.planned.reference);
	diag_free(b->pass.diag);
	arena_free(b->pass.scratch);
	arena_free(b->pass.keep);
	fclose(b->quiet);
}

/* Plan to replay; false if any pass refuses. */
static inline bool
bench_run(struct bench *b, Graph *g)
{
	if (!pass_plan(&b->pass, g))
		return false;
	g->props |= P_PLANNED;
	if (!pass_inplace(&b->pass, g) || !pass_place(&b->pass, g))
		return false;
	g->props |= P_PLACED;
	if (!pass_account(&b->pass, g) || !pass_replay(&b->pass, g))
		return false;
	/* or the report had to do without it, see report.c */
	assert_true(!b->pass.planned.bound_class || b->pass.planned.bound_sec
	            <= b->pass.planned.plan->sum.step_sec * (1 + 1e-9));
	return true;
}

#endif
