/* Turns against closed formulas, and faults that the verifier of stages must
 * find.
 *
 *     test_pipeline MODEL.onnx FLAG...
 *
 * The model is a decoder with tied embeddings.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "passes/pipeline/pipeline.h"
#include "tests/ref/train.h"

static const char *line;

/* ---- turns ---- */

enum { STAGES = 9, MICROS = 20 };

/* When every turn of every stage ends if forward takes f and backward b: a turn
 * begins when the one before it and the one that sends to it are over. */
static double
makespan(int nstage, int nmicro, double f, double b, double *busy)
{
	static double forward[STAGES][MICROS], backward[STAGES][MICROS];
	static struct turn *turn[STAGES];
	double clock[STAGES] = { 0 }, end = 0;
	int n[STAGES], at[STAGES] = { 0 };
	Arena *a = arena_new();
	bool moved = true;

	for (int s = 0; s < nstage; s++) {
		turn[s] = turns_1f1b(s, nstage, nmicro, &n[s], a);
		for (int m = 0; m < nmicro; m++)
			forward[s][m] = backward[s][m] = -1;
	}
	while (moved) {
		moved = false;
		for (int s = 0; s < nstage; s++) {
			const struct turn *t = &turn[s][at[s]];
			double ready;

			if (at[s] == n[s] || t->kind == TURN_UPDATE)
				continue;
			ready = t->kind == TURN_FORWARD
				? s ? forward[s - 1][t->micro] : 0
				: s + 1 < nstage ? backward[s + 1][t->micro] : 0;
			if (ready < 0)
				continue;
			clock[s] = (ready > clock[s] ? ready : clock[s])
				+ (t->kind == TURN_FORWARD ? f : b);
			(t->kind == TURN_FORWARD ? forward
			 : backward)[s][t->micro] = clock[s];
			end = clock[s] > end ? clock[s] : end;
			at[s]++;
			moved = true;
		}
	}
	for (int s = 0; s < nstage; s++)
		assert_true(turn[s][at[s]].kind == TURN_UPDATE
		            && at[s] + 1 == n[s]);
	*busy = nmicro * (f + b);
	arena_free(a);
	return end;
}

static void
test_turns(void **state)
{
	(void)state;
	for (int p = 1; p <= STAGES; p++)
		for (int n = 1; n <= MICROS; n++) {
			double busy, all = makespan(p, n, 1, 2, &busy);

			/* Narayanan et al. 2021: (P - 1)(F + B) */
			if (n >= p)
				assert_true(all - busy == (p - 1) * 3.0);
			for (int s = 0; s < p; s++)
				assert_int_equal(turns_slots(s, p, n),
				                 p - s < n ? p - s : n);
		}
}

/* ---- faults ---- */

static struct run run;

static int
open_model(void **state)
{
	(void)state;
	run = (struct run){ .quiet = true };
	return run_parse_line(&run, line) != CLI_GO || !run_compile(&run);
}

static int
close_model(void **state)
{
	(void)state;
	pipeline_free(run.pipeline);
	run_close(&run);
	return 0;
}

static bool
is_right(void)
{
	FILE *nowhere = fopen("/dev/null", "w");
	Diag *d = diag_new("test", nowhere);
	bool ok = stages_verify(run.pipeline, d);

	diag_free(d);
	fclose(nowhere);
	return ok;
}

static Graph *
stage(int k)
{
	return run.pipeline->stage[k].graph;
}

/* The i-th node of that op in that phase on stage k. */
static Node *
find(int k, Op op, Phase phase, int i)
{
	FOR_NODES (n, stage(k))
		if (n->op == op && n->phase == phase && i-- == 0)
			return n;
	fail_msg("stage %d has no such node", k);
	return NULL;
}

static void
swap_turns(struct turn *a, struct turn *b)
{
	struct turn t = *a;

	*a = *b;
	*b = t;
}

static void
test_right(void **state)
{
	(void)state;
	assert_true(is_right());
}

static void
test_tags_exchanged(void **state)
{
	int64_t *a = &find(1, OP_SEND, PH_BACKWARD, 0)->attr.SEND.tag;
	int64_t *b = &find(1, OP_SEND, PH_BACKWARD, 1)->attr.SEND.tag, t = *a;

	(void)state;
	*a = *b;
	*b = t;
	assert_false(is_right());
}

static void
test_sent_twice(void **state)
{
	const Node *n = find(0, OP_SEND, PH_FORWARD, 0);
	ValId in = n->in[0];
	Attr attr = n->attr;
	Node *again = node_new(stage(0), OP_SEND, 1, &in, 1, 0);

	(void)state;
	stage(0)->val[again->out[0]].def = 0;
	again->out[0] = 0;
	again->attr = attr;
	again->phase = PH_UPDATE;
	assert_false(is_right());
}

static void
test_never_received(void **state)
{
	(void)state;
	find(1, OP_RECEIVE, PH_FORWARD, 0)->attr.RECEIVE.tag =
		find(1, OP_RECEIVE, PH_BACKWARD, 0)->attr.RECEIVE.tag;
	assert_false(is_right());
}

static void
test_other_peer(void **state)
{
	(void)state;
	find(1, OP_SEND, PH_FORWARD, 0)->attr.SEND.peer = 0;
	assert_false(is_right());
}

static void
test_other_type(void **state)
{
	Node *n = find(1, OP_RECEIVE, PH_FORWARD, 0);

	(void)state;
	stage(1)->val[n->out[0]].dt = DT_F64;
	assert_false(is_right());
}

static void
test_other_shape(void **state)
{
	Node *n = find(1, OP_RECEIVE, PH_FORWARD, 0);

	(void)state;
	stage(1)->val[n->out[0]].shape.dim[0]++;
	assert_false(is_right());
}

static void
test_other_placement(void **state)
{
	Node *n = find(1, OP_RECEIVE, PH_FORWARD, 0);

	(void)state;
	stage(1)->val[n->out[0]].placement.kind = PLACEMENT_PARTIAL;
	assert_false(is_right());
}

/* The gradient of a tied parameter goes to nobody. */
static void
test_tie_lost(void **state)
{
	(void)state;
	find(0, OP_SEND, PH_UPDATE, 0)->op = OP_COPY;
	assert_false(is_right());
}

static void
test_slot_too_few(void **state)
{
	(void)state;
	run.pipeline->stage[0].slots--;
	assert_false(is_right());
}

static void
test_turns_exchanged(void **state)
{
	struct turn *t = run.pipeline->stage[0].turn;

	(void)state;
	swap_turns(&t[0], &t[1]);
	assert_false(is_right());
}

static void
test_slots_exchanged(void **state)
{
	struct turn *t = run.pipeline->stage[0].turn;

	(void)state;
	t[1].slot = t[0].slot;
	assert_false(is_right());
}

/* Each list alone would do, but stage 0 wants the gradient of the first
 * micro-batch before stage 1 has seen it. */
static void
test_deadlock(void **state)
{
	struct pipeline_stage *s = run.pipeline->stage;

	(void)state;
	for (int m = 0; m < run.pipeline->nmicro; m++)
		for (int k = 0; k < 2; k++)
			s[0].turn[2 * m + k] = (struct turn){
				k ? TURN_BACKWARD : TURN_FORWARD, 0,
				(uint32_t)m };
	assert_false(is_right());
}

#define FAULT(name) \
	cmocka_unit_test_setup_teardown(name, open_model, close_model)

int
main(int argc, char **argv)
{
	static char all[4096];
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_turns),
		FAULT(test_right), FAULT(test_tags_exchanged),
		FAULT(test_sent_twice), FAULT(test_never_received),
		FAULT(test_other_peer), FAULT(test_other_type),
		FAULT(test_other_shape), FAULT(test_other_placement),
		FAULT(test_tie_lost), FAULT(test_slot_too_few),
		FAULT(test_turns_exchanged), FAULT(test_slots_exchanged),
		FAULT(test_deadlock),
	};

	for (int i = 1; i < argc; i++)
		snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s",
		         i > 1 ? " " : "", argv[i]);
	line = all;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
