#include "tests/unit/unit.h"
#include "ir/verify/verify.h"

#include <string.h>

static const char base[] =
	"graph @g {\n"
	"	input %x: f32[2,3]\n"
	"	param %w: f32[3,4]\n"
	"	%a = matmul %x, %w\n"
	"	%b = exp %a\n"
	"	%l output = reduce_sum %b {keepdims=0}\n"
	"	%s = fill {value=1} @backward\n"
	"	%e = expand %s {shape=[2,4]} @backward\n"
	"	%da = mul %e, %b @backward\n"
	"	%dw param %w = matmul %x, %da {ta=1} @backward\n"
	"	%w1 = sgd %w, %dw @update\n"
	"	loss %l\n"
	"}\n";

/* Node and value of the base graph. */
#define NODE(name) (&g->node[g->val[val_find(g, name)].def])
#define VAL(name) (&g->val[val_find(g, name)])

static void
sound(Graph *g)
{
	g->props = P_BOUND | P_STATIC | P_CANON | P_LOSS | P_BWD | P_UPD;
}

static void
operand_range(Graph *g)
{
	NODE("b")->in[0] = 999;
}

static void
operand_order(Graph *g)
{
	NODE("a")->in[0] = val_find(g, "b");
}

static void
operand_absent(Graph *g)
{
	NODE("b")->in[0] = 0;
}

static void
operand_dead(Graph *g)
{
	VAL("a")->def = 0;
}

static void
operand_count(Graph *g)
{
	NODE("b")->nin = 0;
}

static void
output_shared(Graph *g)
{
	NODE("da")->out[0] = val_find(g, "e");
}

static void
output_count(Graph *g)
{
	NODE("da")->nout = 2;
}

static void
output_kind(Graph *g)
{
	VAL("e")->kind = V_BUFFER;
}

static void
op_unknown(Graph *g)
{
	NODE("da")->op = OP_COUNT;
}

static void
type_changed(Graph *g)
{
	VAL("b")->dt = DT_F64;
}

static void
shape_changed(Graph *g)
{
	VAL("b")->shape.dim[1] = 5;
}

static void
phase_order(Graph *g)
{
	NODE("e")->phase = PH_FORWARD;
}

static void
repeats_later(Graph *g)
{
	NODE("b")->of = node_id(g, NODE("e"));
}

static void
origin_range(Graph *g)
{
	uint32_t o = 7;

	node_add_origin(g, NODE("b"), &o, 1);
}

static void
body_stray(Graph *g)
{
	NODE("b")->body = arena_alloc(g->arena, sizeof(struct body));
}

static void
grad_twice(Graph *g)
{
	VAL("w1")->param = val_find(g, "w");
}

static void
grad_frozen(Graph *g)
{
	VAL("w")->frozen = true;
}

static void
grad_shape(Graph *g)
{
	VAL("dw")->param = 0;
	VAL("da")->param = val_find(g, "w");
}

static void
grad_of_input(Graph *g)
{
	VAL("dw")->param = val_find(g, "x");
}

static void
state_alone(Graph *g)
{
	val_new(g, V_STATE, "m", DT_F32, SHAPE(3, 4));
}

static void
state_row(Graph *g)
{
	ValId v = val_new(g, V_STATE, "m", DT_F32, SHAPE(3));

	g->val[v].param = val_find(g, "w");
	g->val[v].state = "row";
}

static void
state_shape(Graph *g)
{
	ValId v = val_new(g, V_STATE, "m", DT_F32, SHAPE(2));

	g->val[v].param = val_find(g, "w");
	g->val[v].state = "row";
}

static void
loss_dead(Graph *g)
{
	g->loss = val_new(g, V_TEMP, "none", DT_F32, shape_scalar());
}

static void
output_dead(Graph *g)
{
	g->val[val_new(g, V_TEMP, "none", DT_F32, shape_scalar())].output =
		true;
}

static void
loss_vector(Graph *g)
{
	g->loss = val_find(g, "a");
	g->props = P_LOSS;
}

static void
input_unknown(Graph *g)
{
	ValId v = val_new(g, V_INPUT, "u", DT_F32, SHAPE(-1));

	(void)v;
	g->props = P_STATIC;
}

static void
not_laid_out(Graph *g)
{
	g->props = P_LAYOUT;
}

static void
name_changed(Graph *g)
{
	VAL("b")->name = "bb";
}

static const struct {
	void (*damage)(Graph *);
	const char *want;               /* NULL: no fault */
} faults[] = {
	{ sound, NULL },
	{ operand_range, "operand 0: value 999 does not exist" },
	{ operand_order, "value b): operand 0 is read before" },
	{ operand_absent, "operand 0 is missing" },
	{ operand_dead, "no node writes operand 0" },
	{ operand_count, "wrong number of operands: 0" },
	{ output_shared, "value e): output 0 belongs to node" },
	{ output_count, "expected 1 outputs, found 2" },
	{ output_kind, "value e): output 0 is not a computed value" },
	{ op_unknown, "unknown op" },
	{ type_changed, "expected f32[2,4], found f64[2,4]" },
	{ shape_changed, "expected f32[2,4], found f32[2,5]" },
	{ phase_order, "forward node after the start" },
	{ repeats_later, "which comes later" },
	{ origin_range, "origin 7 does not exist" },
	{ body_stray, "expected a body for a loop" },
	{ grad_twice, "second gradient of w after dw" },
	{ grad_frozen, "gradient of the frozen parameter w" },
	{ grad_shape, "differs in shape from its parameter w" },
	{ grad_of_input, "belongs to x, which is not a parameter" },
	{ state_alone, "state without a parameter" },
	{ state_row, NULL },
	{ state_shape, "differs in shape from its parameter w" },
	{ loss_dead, "no node writes the loss" },
	{ output_dead, "is an output, but no node writes it" },
	{ loss_vector, "the loss is not a scalar" },
	{ input_unknown, "type or shape is unknown" },
	{ not_laid_out, "(a): has no memory layout" },
	{ name_changed, "missing or duplicate name" },
};

static void
damaged(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
		const char *want = faults[i].want;
		struct sink s;
		Graph *g;
		bool ok;

		sink_open(&s);
		g = parse(&s, base);
		assert_non_null(g);
		faults[i].damage(g);
		ok = graph_verify(g, s.diag);
		if (ok != !want || (diag_errors(s.diag) == 0) != ok
		    || (want && !strstr(sink_text(&s), want)))
			fail_msg("expected: %s\nfound: %s",
			         want ? want : "no fault", sink_text(&s));
		graph_free(g);
		sink_close(&s);
	}
}

/* Text that parses but does not verify under its own properties. */
static void
properties(void **state)
{
	static const struct {
		const char *text, *want;
	} t[] = {
		{ "props static\ninput %x: f32[?]\n", "(x): dtype or shape" },
		{ "props static\ninput %x: f32[2]\n%y = identity %x\n",
		  "(identity): is not allowed in a static graph" },
		{ "props static\ninput %x: f32[2]\nconst %s: i64[1] = {2}\n"
		  "%y = reshape %x, %s\n", "value s): operand 1 must be an attribute" },
		{ "input %x: f32[4] bytes 64\n"
		  "%y: f32[4] bytes 60 = neg %x\n", "60 bytes, not a multiple" },
		{ "input %x: f32[4] bytes 64\n"
		  "%y: f32[4] start 13 in %x = reshape %x {shape=[4]}\n",
		  "elements 13..16 are outside x of 64 bytes" },
		{ "input %x: f32[4] bytes 64\n"
		  "%y: f32[4] strides [-1] start 2 in %x = reshape %x "
		  "{shape=[4]}\n", "elements -1..2 are outside x" },
		{ "input %x: f32[4] bytes 64\n"
		  "%y: f32[4] in %x = reshape %x {shape=[4]}\n"
		  "%z: f32[4] in %y = reshape %x {shape=[4]}\n",
		  "(z): is a view of y, which does not own" },
		{ "input %x: f32[4] bytes 64\n"
		  "%y: bool[4] in %x = gt %x, %x\n", "another element size" },
		{ "input %x: f32[4] bytes 64\n"
		  "%y: f32[4] bytes 64 at 32 = neg %x\n", "(y): invalid offset 32" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
		struct sink s;
		char text[512];
		Graph *g;

		sink_open(&s);
		snprintf(text, sizeof text, "graph @g {\n%s}\n", t[i].text);
		g = parse(&s, text);
		if (!g)
			fail_msg("%s", sink_text(&s));
		g->props |= graph_props(g);
		if (graph_verify(g, s.diag)
		    || !strstr(sink_text(&s), t[i].want))
			fail_msg("%s\nexpected: %s\nfound: %s", text,
			         t[i].want, sink_text(&s));
		graph_free(g);
		sink_close(&s);
	}
}

static uint32_t
props_of(const char *body)
{
	struct sink s;
	char text[512];
	Graph *g;
	uint32_t props;

	sink_open(&s);
	snprintf(text, sizeof text, "graph @g {\n%s}\n", body);
	g = parse(&s, text);
	if (!g)
		fail_msg("%s", sink_text(&s));
	props = graph_props(g);
	graph_free(g);
	sink_close(&s);
	return props;
}

static void
shown(void **state)
{
	struct sink s;
	Graph *g;

	(void)state;
	sink_open(&s);
	g = parse(&s, base);
	assert_int_equal(graph_props(g), P_BOUND | P_STATIC | P_CANON | P_LOSS
	                                 | P_BWD | P_UPD);
	graph_free(g);
	sink_close(&s);
	assert_int_equal(props_of("input %x: f32[?]\n"), 0);
	assert_int_equal(props_of("input %x: f32[2]\n%y = identity %x\n"),
	                 P_BOUND | P_FUSED);
	assert_int_equal(props_of("input %x: f32[2,3,4]\nparam %w: f32[4,5]\n"
	                          "%y = matmul %x, %w\n%z = neg %y\n"),
	                 P_BOUND | P_STATIC);
	assert_int_equal(props_of("input %x: f32[4] bytes 64\n"
	                          "%y: f32[4] bytes 64 = copy %x\n"),
	                 P_BOUND | P_STATIC | P_CANON | P_FUSED | P_LAYOUT);
	assert_int_equal(props_of("input %x: f32[4] bytes 64\n"
	                          "%y: f32[4] bytes 64 at 0 = copy %x\n"),
	                 P_BOUND | P_STATIC | P_CANON | P_FUSED | P_LAYOUT
	                 | P_PLACED);
}

/* The ops that fold must remove are those without a kernel. */
static void
folded(void **state)
{
	static const char *const emit_of[OP_COUNT] = {
#define OP(id, text, sig, attr, rules, emit) [OP_##id] = emit,
#define EMIT(rule) #rule
#include "ir/ops.h"
	};

	(void)state;
	for (int op = OP_NONE + 1; op < OP_COUNT; op++)
		if ((strcmp(emit_of[op], "fail") == 0)
		    != !!(op_info[op].flags & F_FOLDED))
			fail_msg("%s", op_info[op].text);
}

int
test_verify(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(damaged), cmocka_unit_test(properties),
		cmocka_unit_test(shown), cmocka_unit_test(folded),
	};

	return cmocka_run_group_tests_name("verify", tests, NULL, NULL);
}
