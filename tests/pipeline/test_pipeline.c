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

enum { STAGES = 18, MICROS = 20 };

/* A pipeline of turns alone: nothing is cut. */
static struct pipeline
schedule(int nrank, int nchunk, int nmicro, bool zero_bubble, Arena *a)
{
	struct pipeline l = { .nrank = nrank, .nchunk = nchunk,
		.nstage = nrank * nchunk, .nmicro = nmicro,
		.zero_bubble = zero_bubble };

	l.stage = arena_array(a, (size_t)l.nstage, sizeof *l.stage);
	turns_schedule(&l, a);
	return l;
}

/* When every turn of every stage ends if forward takes f, backward b and weight
 * w: a turn begins when the one before it on its rank and the one that sends to
 * it are over. */
static double
makespan(const struct pipeline *l, double f, double b, double w)
{
	static double forward[STAGES][MICROS], backward[STAGES][MICROS];
	double clock[STAGES] = { 0 }, end = 0;
	uint32_t order[STAGES] = { 0 };
	int at[STAGES] = { 0 };
	bool moved = true;

	for (int s = 0; s < l->nstage; s++)
		for (int m = 0; m < l->nmicro; m++)
			forward[s][m] = backward[s][m] = -1;
	while (moved) {
		moved = false;
		for (int s = 0; s < l->nstage; s++) {
			const struct pipeline_stage *of = &l->stage[s];
			const struct turn *t = &of->turn[at[s]];
			int r = s % l->nrank;
			double ready;

			if (at[s] == of->nturn || t->kind == TURN_UPDATE
			    || t->order != order[r])
				continue;
			ready = t->kind == TURN_WEIGHT ? 0
				: t->kind == TURN_FORWARD
				? s ? forward[s - 1][t->micro] : 0
				: s + 1 < l->nstage
				? backward[s + 1][t->micro] : 0;
			if (ready < 0)
				continue;
			clock[r] = (ready > clock[r] ? ready : clock[r])
				+ (t->kind == TURN_FORWARD ? f
				   : t->kind == TURN_BACKWARD ? b : w);
			if (t->kind == TURN_WEIGHT)
				assert_true(backward[s][t->micro] >= 0);
			else
				(t->kind == TURN_FORWARD ? forward
				 : backward)[s][t->micro] = clock[r];
			end = clock[r] > end ? clock[r] : end;
			at[s]++;
			order[r]++;
			moved = true;
		}
	}
	for (int s = 0; s < l->nstage; s++)
		assert_true(l->stage[s].turn[at[s]].kind == TURN_UPDATE
		            && at[s] + 1 == l->stage[s].nturn);
	return end;
}

/* The same by turns_seconds; idle: of every rank. */
static void
check_idle(const struct pipeline *l, double f, double b, double w, double idle)
{
	double forward[STAGES], backward[STAGES], weight[STAGES], busy[STAGES];
	double all;

	for (int s = 0; s < l->nstage; s++) {
		forward[s] = f;
		backward[s] = b;
		weight[s] = w;
	}
	all = turns_seconds(l, forward, backward, l->zero_bubble ? weight : NULL,
	                    busy);
	assert_true(all == makespan(l, f, b, w));
	for (int r = 0; r < l->nrank; r++)
		assert_true(all - busy[r] == idle && busy[r]
		            == l->nmicro * l->nchunk * (f + b + w));
}

static void
test_turns(void **state)
{
	(void)state;
	for (int p = 1; p <= STAGES / 2; p++)
		for (int n = 1; n <= MICROS; n++) {
			Arena *a = arena_new();
			struct pipeline l = schedule(p, 1, n, false, a);

			/* Narayanan et al. 2021: (P - 1)(F + B) */
			if (n >= p)
				check_idle(&l, 1, 2, 0, (p - 1) * 3.0);
			for (int s = 0; s < p; s++) {
				int slots = p - s < n ? p - s : n;

				assert_int_equal(l.stage[s].slots, slots);
				assert_int_equal(turns_in_flight(&l, s), slots);
			}
			arena_free(a);
		}
}

/* V chunks: idle for one V-th of the time that stages of V times the seconds
 * are; rank 0 has P (1 + (P - 1) / (P V)) stages of V chunks in flight. */
static void
test_interleaved(void **state)
{
	(void)state;
	for (int p = 2; p <= STAGES / 2; p++)
		for (int v = 2; p * v <= STAGES; v++)
			for (int n = p; n <= MICROS; n += p) {
				Arena *a = arena_new();
				struct pipeline l = schedule(p, v, n, false, a);
				double most = p * (1 + (p - 1.0) / (p * v));

				check_idle(&l, 1, 2, 0, (p - 1) * 3.0);
				if (n * v > p * v + p - 2)
					assert_true(turns_in_flight(&l, 0)
					            == (int)(most * v + 0.5));
				for (int r = 0; r < p; r++) {
					int k = 2 * (p - r - 1) + (v - 1) * p;

					assert_int_equal(turns_in_flight(&l, r),
						k + 1 < n * v ? k + 1 : n * v);
				}
				arena_free(a);
			}
}

/* The most that a rank keeps, if a micro-batch keeps b from its forward to its
 * backward turn and w from there to its weight turn. */
static int
peak(const struct pipeline_stage *s, int b, int w)
{
	int now = 0, most = 0;

	for (int i = 0; i < s->nturn; i++) {
		enum turn_kind kind = s->turn[i].kind;

		now += kind == TURN_FORWARD ? b : kind == TURN_BACKWARD ? w - b
			: kind == TURN_WEIGHT ? -w : 0;
		most = now > most ? now : most;
	}
	return most;
}

/* Qi et al. 2023, section 2: idle for (P - 1)(F + B - W), rank i, from 1, keeps
 * (P - i + 1) M_B + (i - 1) M_W at most.  Forward and backward turns are those
 * of 1F1B. */
static void
test_zero_bubble(void **state)
{
	(void)state;
	for (int p = 1; p <= STAGES / 2; p++)
		for (int n = p; n <= MICROS; n++) {
			Arena *a = arena_new();
			struct pipeline l = schedule(p, 1, n, true, a);
			struct pipeline like = schedule(p, 1, n, false, a);

			check_idle(&l, 1, 1, 1, p - 1);
			check_idle(&l, 3, 3.25, 2.5, (p - 1) * 3.75);
			check_idle(&l, 1, 2, 0.5, (p - 1) * 2.5);
			for (int i = 1; i <= p; i++) {
				struct pipeline_stage *s = &l.stage[i - 1];
				int k = 0;

				assert_int_equal(peak(s, 10, 4),
				                 10 * (p - i + 1) + 4 * (i - 1));
				assert_int_equal(s->slots, p - i + 1);
				assert_int_equal(s->through_slots, p);
				assert_int_equal(s->weight_slots, i);
				assert_int_equal(turns_in_flight(&l, i - 1), p);
				for (int t = 0; t < s->nturn; t++)
					if (s->turn[t].kind != TURN_WEIGHT)
						s->turn[k++] = s->turn[t];
				assert_int_equal(k, 2 * n + 1);
				for (int t = 0; t < k; t++)
					assert_true(s->turn[t].kind == like.stage
						[i - 1].turn[t].kind
						&& s->turn[t].micro == like
						.stage[i - 1].turn[t].micro);
			}
			arena_free(a);
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
	b->order = a->order;
	a->order = t.order;
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
				k ? TURN_BACKWARD : TURN_FORWARD,
				(uint16_t)(m % s[0].slots), (uint32_t)m,
				(uint32_t)(2 * m + k) };
	assert_false(is_right());
}

/* ---- with two chunks a rank ---- */

static int
open_interleaved(void **state)
{
	static char interleaved[4096];

	(void)state;
	snprintf(interleaved, sizeof interleaved,
	         "%s --pp 2 --schedule interleaved=2 --microbatches 4", line);
	run = (struct run){ .quiet = true };
	return run_parse_line(&run, interleaved) != CLI_GO
		|| !run_compile(&run);
}

static void
test_right_interleaved(void **state)
{
	(void)state;
	assert_int_equal(run.pipeline->nstage, 4);
	assert_true(is_right());
}

/* Chunk 1 of rank 0 before chunk 0, of the same micro-batch. */
static void
test_chunk_too_early(void **state)
{
	uint32_t *a = &run.pipeline->stage[0].turn[0].order;
	uint32_t *b = &run.pipeline->stage[2].turn[0].order, t = *a;

	(void)state;
	*a = *b;
	*b = t;
	assert_false(is_right());
}

/* Two turns of a rank at once. */
static void
test_same_order(void **state)
{
	struct pipeline_stage *s = run.pipeline->stage;

	(void)state;
	s[2].turn[0].order = s[0].turn[0].order;
	assert_false(is_right());
}

/* A chunk's message to another chunk of the rank that it is meant for. */
static void
test_other_chunk(void **state)
{
	(void)state;
	find(1, OP_SEND, PH_FORWARD, 0)->attr.SEND.peer = 0;
	assert_false(is_right());
}

static void
test_chunk_slot_too_few(void **state)
{
	(void)state;
	run.pipeline->stage[2].slots--;
	assert_false(is_right());
}

/* ---- with turns of weights ---- */

static int
open_zero_bubble(void **state)
{
	static char text[4096];

	(void)state;
	snprintf(text, sizeof text, "%s --schedule zb-h1", line);
	run = (struct run){ .quiet = true };
	return run_parse_line(&run, text) != CLI_GO || !run_compile(&run);
}

/* The i-th turn of that kind of a stage. */
static struct turn *
turn(int k, enum turn_kind kind, int i)
{
	struct pipeline_stage *s = &run.pipeline->stage[k];

	for (int t = 0; t < s->nturn; t++)
		if (s->turn[t].kind == kind && i-- == 0)
			return &s->turn[t];
	fail_msg("stage %d has no such turn", k);
	return NULL;
}

static void
test_weight_slot_too_few(void **state)
{
	(void)state;
	run.pipeline->stage[2].weight_slots--;
	assert_false(is_right());
}

static void
test_through_slot_too_few(void **state)
{
	struct pipeline_stage *s = &run.pipeline->stage[1];

	(void)state;
	s->through_slots--;
	for (int i = 0; i < s->nturn; i++)
		s->turn[i].slot = (uint16_t)(s->turn[i].micro
			% (uint32_t)s->through_slots);
	assert_false(is_right());
}

/* Gradients would be added up in another order. */
static void
test_weights_exchanged(void **state)
{
	(void)state;
	swap_turns(turn(2, TURN_WEIGHT, 3), turn(2, TURN_WEIGHT, 4));
	assert_false(is_right());
}

/* The weight turn of a micro-batch before its backward turn. */
static void
test_weight_too_early(void **state)
{
	(void)state;
	swap_turns(turn(0, TURN_WEIGHT, 0), turn(0, TURN_BACKWARD, 0));
	assert_false(is_right());
}

/* One behind the update. */
static void
test_weight_too_late(void **state)
{
	(void)state;
	swap_turns(turn(1, TURN_WEIGHT, 4), turn(1, TURN_UPDATE, 0));
	assert_false(is_right());
}

static void
test_weight_lost(void **state)
{
	struct pipeline_stage *s = &run.pipeline->stage[0];
	struct turn *t = turn(0, TURN_WEIGHT, 4);

	(void)state;
	memmove(t, t + 1, (size_t)(s->turn + s->nturn - t - 1) * sizeof *t);
	s->nturn--;
	for (int i = 0; i < s->nturn; i++)
		s->turn[i].order = (uint32_t)i;
	assert_false(is_right());
}

/* Put a node at the beginning of the weight turn. */
static void
make_late(Graph *g, NodeId id)
{
	NodeId first = graph_weight_boundary(g) + 1, *order;
	Arena *a = arena_new();
	uint32_t n = 0;

	order = arena_array(a, g->nnode, sizeof *order);
	for (NodeId i = 1; i < g->nnode; i++) {
		if (i == first)
			order[n++] = id;
		if (i != id)
			order[n++] = i;
	}
	g->node[id].phase = PH_WEIGHT;
	graph_reorder(g, order, n);
	arena_free(a);
}

/* Others wait for a message of a turn that may run later. */
static void
test_message_in_weight_turn(void **state)
{
	Graph *from = stage(1), *to = stage(0);
	const Node *send = find(1, OP_SEND, PH_BACKWARD, 0);
	int64_t tag = send->attr.SEND.tag;

	(void)state;
	make_late(from, node_id(from, send));
	assert_false(is_right());
	FOR_NODES (n, to)
		if (n->op == OP_RECEIVE && n->attr.RECEIVE.tag == tag) {
			make_late(to, node_id(to, n));
			break;
		}
	assert_false(is_right());
}

#define ZERO_BUBBLE(name) \
	cmocka_unit_test_setup_teardown(name, open_zero_bubble, close_model)
#define INTERLEAVED(name) \
	cmocka_unit_test_setup_teardown(name, open_interleaved, close_model)
#define FAULT(name) \
	cmocka_unit_test_setup_teardown(name, open_model, close_model)

int
main(int argc, char **argv)
{
	static char all[4096];
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_turns),
		cmocka_unit_test(test_interleaved),
		FAULT(test_right), FAULT(test_tags_exchanged),
		FAULT(test_sent_twice), FAULT(test_never_received),
		FAULT(test_other_peer), FAULT(test_other_type),
		FAULT(test_other_shape), FAULT(test_other_placement),
		FAULT(test_tie_lost), FAULT(test_slot_too_few),
		FAULT(test_turns_exchanged), FAULT(test_slots_exchanged),
		FAULT(test_deadlock),
		cmocka_unit_test(test_zero_bubble),
		ZERO_BUBBLE(test_right), ZERO_BUBBLE(test_weight_slot_too_few),
		ZERO_BUBBLE(test_slot_too_few),
		ZERO_BUBBLE(test_through_slot_too_few),
		ZERO_BUBBLE(test_weights_exchanged),
		ZERO_BUBBLE(test_weight_too_early),
		ZERO_BUBBLE(test_weight_too_late), ZERO_BUBBLE(test_weight_lost),
		ZERO_BUBBLE(test_message_in_weight_turn),
		INTERLEAVED(test_right_interleaved),
		INTERLEAVED(test_chunk_too_early), INTERLEAVED(test_same_order),
		INTERLEAVED(test_other_chunk),
		INTERLEAVED(test_chunk_slot_too_few),
	};

	for (int i = 1; i < argc; i++)
		snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s",
		         i > 1 ? " " : "", argv[i]);
	line = all;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
