#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

/* Text in canonical form: it must print exactly as it is. */
static const char *const canonical[] = {
	"graph @empty {\n}\n",

	/* kinds, marks, names */
	"graph @\"a b\\\"c\" {\n"
	"	streams 3\n"
	"	input %ids: i64[batch,12]\n"
	"	input %\"m:0 \\x01\": bool[\"2*n\"=8,?,s=4] onnx \"m\"\n"
	"	input %r: ?[*]\n"
	"	param %w/x.y: f32[2] onnx\n"
	"	param %f: f32[1] frozen = {1}\n"
	"	buffer %b: f32[]\n"
	"	state %adamw.m.w: f32[2] param %w/x.y state m\n"
	"	const %c: f32[3] output = {0, -0, 1e-07}\n"
	"	%g: f32[2] output resident param %w/x.y adjoint %w/x.y"
	" = neg %w/x.y @backward\n"
	"	%h: f32[2] of %g = neg %w/x.y @recompute again"
	" %g workspace 64\n"
	"	loss %b\n"
	"}\n",

	/* contents of every type */
	"graph @g {\n"
	"	const %a: f32[6] output = {nan, inf, -inf, 0.1, 16777216,"
	" 1.17549435e-38}\n"
	"	const %b: f64[2] output = {0.1, 0.30000000000000004}\n"
	"	const %c: i64[2] output = {-9223372036854775808,"
	" 9223372036854775807}\n"
	"	const %d: u64[1] output = {18446744073709551615}\n"
	"	const %e: i8[2] output = {-128, 127}\n"
	"	const %f: bool[2] output = {0, 1}\n"
	"	const %h: f16[2] output = {0.333252, 65504}\n"
	"	const %i: bf16[1] output = {0.333984}\n"
	"	const %j: f32[65] output = splat 0.25\n"
	"	const %k: i64[100,100] output = ...\n"
	"	const %l: f32[0,5] output = {}\n"
	"	const %m: u8[65] output = hex \"01000000000000000000000000000000"
	"0000000000000000000000000000000000000000000000000000000000000000000000"
	"00000000000000000000000000ff\"\n"
	"}\n",

	/* attributes, loops, absent operands and outputs, origins */
	"graph @g {\n"
	"	input %x: f32[2,3]\n"
	"	input %s: f32[3]\n"
	"	input %q: f32[2,2]\n"
	"	%a: i64[2,3] = cast %x {to=i64} from \"n/2\" Cast\n"
	"	%b: f32[2,3], _, %d: f32[2] = layernorm %x, %s {eps=1e-12}"
	" from \"n/1\" Mul, \"n/0\" Add\n"
	"	%e: f32[2,3] = layernorm %x, %s {axis=1} from \"n/2\" Cast,"
	" \"n/1\" Mul\n"
	"	%f: f32[2,2] = matmul %x, %x, _, %q {tb=1, alpha=0.125}\n"
	"	%h: f32[2,3] output, %i: bool[2,3] = loop %x, %s @recompute"
	" from \"#12\" \"a b\" [\n"
	"		t0: f32 = add a0, a1\n"
	"		t1: f32 = gelu t0 {tanh=1}\n"
	"		t2: bool = gt t1, t0\n"
	"		give t1, t2\n"
	"	]\n"
	"	%j: f32[3,2] = transpose %x {perm=[1,0]} @backward\n"
	"	%k: f32[] = fill {value=1} @update\n"
	"}\n",

	/* layout */
	"graph @g {\n"
	"	props planned\n"
	"	input %x: f32[2,3] bytes 64\n"
	"	%y: f32[3,2] strides [1,3] in %x = transpose %x {perm=[1,0]}\n"
	"	%z: f32[1,3] start 3 in %x = slice %x {start=[1,0],"
	" step=[1,1]}\n"
	"	%e: f32[4,3] strides [0,1] in %x = expand %z {shape=[4,3]}\n"
	"	%w: f32[3,2] bytes 64 at 128 = copy %y\n"
	"}\n",

	/* how values lie on ranks */
	"graph @g {\n"
	"	ranks 4\n"
	"	input %x: f32[2,3,8]\n"
	"	param %r: f32[8] placement replicate_partial\n"
	"	param %w: f32[8,6] placement 1 [8,8,8]\n"
	"	buffer %b: f32[2,8] placement 0 [4] replication 2\n"
	"	%h: f32[1,2,8] placement 1 [6] from 0 = own %x"
	" {axis=1, segment=[6]}\n"
	"	%p: f32[] output placement partial = reduce_sum %h"
	" {axes=[0,1,2], keepdims=0}\n"
	"}\n",

	/* what holds for the whole graph */
	"graph @g {\n"
	"	replicas 6 exactly\n"
	"	zero_group 3\n"
	"	expert_group 2\n"
	"	adds\n"
	"	halves 1\n"
	"	input %x: f32[2]\n"
	"}\n",

	/* a value that only a mark mentions */
	"graph @g {\n"
	"	gone %lost: f32[2] placement partial\n"
	"	input %x: f32[2]\n"
	"	%y: f32[2] adjoint %lost = neg %x @backward\n"
	"}\n",
};

/* The text of a clone of what is read. */
static char *
again(const char *text)
{
	struct sink s;
	Graph *g, *clone;
	char *out;

	sink_open(&s);
	g = parse(&s, text);
	if (!g)
		fail_msg("%s\n%s", sink_text(&s), text);
	clone = graph_clone(g);
	out = print(clone);
	graph_free(clone);
	graph_free(g);
	sink_close(&s);
	return out;
}

static void
round_trip(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof canonical / sizeof *canonical; i++) {
		char *out = again(canonical[i]);

		assert_string_equal(out, canonical[i]);
		free(out);
	}
}

/* What may be left out, and what may stand elsewhere. */
static void
terse(void **state)
{
	char *out = again(
		"# comment\n\ngraph @g { # more\n"
		"  input %x : f32[ 2 , 3 ]\n"
		"  %y = add %x, %x # twice\n"
		"  %z output = loop %y [ t0 = neg a0 ; give t0 ]\n"
		"  const %c: i64[2] output = {\n  1, # one\n  2\n  }\n"
		"  %i = cast %x {to=i32}\n"
		"}\n# end\n");

	(void)state;
	assert_string_equal(out,
		"graph @g {\n"
		"	input %x: f32[2,3]\n"
		"	const %c: i64[2] output = {1, 2}\n"
		"	%y: f32[2,3] = add %x, %x\n"
		"	%z: f32[2,3] output = loop %y [\n"
		"		t0: f32 = neg a0\n"
		"		give t0\n"
		"	]\n"
		"	%i: i32[2,3] = cast %x {to=i32}\n"
		"}\n");
	free(out);
}

/* Words of earlier versions are read. */
static void
earlier(void **state)
{
	char *out = again(
		"graph @g {\n"
		"	ranks 4\n"
		"	input %x: f32[2,3,8]\n"
		"	param %r: f32[8] split r\n"
		"	buffer %b: f32[2,8] split 0 [4] shared 2\n"
		"	state %m: f32[2] state m piece [8] cut 0 [8]\n"
		"	%h: f32[1,2,8] split 1 [6] from 0 = own %x {axis=1,"
		" lead=0, shared=1, part=[6]} round 2\n"
		"	%s: f32[8] half %r = part %r {count=1}\n"
		"	%y = dropout %s {stream=1, dealt=2}\n"
		"	%p: f32[] output split p = reduce_sum %h {axes=[0,1,2],"
		" keepdims=0}\n"
		"}\n");

	(void)state;
	assert_string_equal(out,
		"graph @g {\n"
		"	ranks 4\n"
		"	input %x: f32[2,3,8]\n"
		"	param %r: f32[8] placement replicate_partial\n"
		"	buffer %b: f32[2,8] placement 0 [4] replication 2\n"
		"	state %m: f32[2] state m shard [8] whole_placement"
		" 0 [8]\n"
		"	%h: f32[1,2,8] placement 1 [6] from 0 = own %x"
		" {axis=1, segment=[6]} count_pass 2\n"
		"	%s: f32[8] low_precision %r = split %r {count=1}\n"
		"	%y: f32[8] = dropout %s {stream=1, batch_segments=2}\n"
		"	%p: f32[] output placement partial = reduce_sum %h"
		" {axes=[0,1,2], keepdims=0}\n"
		"}\n");
	free(out);
}

static void
faults(void **state)
{
	static const struct {
		const char *text, *want;
	} t[] = {
		{ "", "x.ck:1: expected graph @NAME {, found end of file" },
		{ "graph g {", "x.ck:1: expected @NAME, found 'g'" },
		{ "graph @g {\n", "x.ck:2: expected '}', found end of file" },
		{ "graph @g {\n}\nx", "x.ck:3: expected end of file" },
		{ "graph @g {\nfoo %x\n}", "x.ck:2: expected a statement" },
		{ "graph @g {\n%y = frob %y\n}", "x.ck:2: unknown op" },
		{ "graph @g {\n\n%y = neg %y\n}",
		  "x.ck:3: 'y' is not defined here" },
		{ "graph @g {\n%y = neg %x\n}", "'x' is not defined here" },
		{ "graph @g {\ninput %x: f32[2]\ninput %x: f32[2]\n}",
		  "x.ck:3: 'x' is declared twice" },
		{ "graph @g {\ninput %x: f33[2]\n}",
		  "expected an element type, found 'f33'" },
		{ "graph @g {\ninput %x: f32[-2]\n}", "-2 is too small" },
		{ "graph @g {\ninput %x: f32[1,1,1,1,1,1,1,1,1]\n}",
		  "rank above 8" },
		{ "graph @g {\ninput %x: f32[2] param %w\n}",
		  "x.ck:2: 'w' is not declared" },
		{ "graph @g {\nconst %c: i8[1] = {128}\n}",
		  "expected a number of type i8, found '128'" },
		{ "graph @g {\nconst %c: u8[1] = {-1}\n}", "of type u8" },
		{ "graph @g {\nconst %c: bool[1] = {2}\n}", "of type bool" },
		{ "graph @g {\nconst %c: f32[1] = {1x}\n}", "of type f32" },
		{ "graph @g {\nconst %c: f32[2] = {1}\n}",
		  "expected 2 elements, found 1" },
		{ "graph @g {\nconst %c: f32[1] = {1, 2}\n}",
		  "expected at most 1 elements" },
		{ "graph @g {\nconst %c: f32[?] = {1, 2}\n}",
		  "contents need a known type" },
		{ "graph @g {\nconst %c: f32[1000000,1000000] = splat 1\n}",
		  "contents of 4000000000000 bytes" },
		{ "graph @g {\nconst %c: u8[1] = hex \"0g\"\n}",
		  "expected hexadecimal digits" },
		{ "graph @g {\nconst %c: u8[1] = hex \"000\"\n}",
		  "expected 1 bytes" },
		{ "graph @g {\ninput %x: f32[2]\n%y = neg %x {a=1}\n}",
		  "neg has no attribute 'a'" },
		{ "graph @g {\ninput %x: f32[2]\n%y = neg %x @later\n}",
		  "unknown phase 'later'" },
		{ "graph @g {\ninput %x: f32[2]\n%y = neg %x again %x\n}",
		  "no earlier node writes 'x'" },
		{ "graph @g {\ninput %x: f32[2]\n%y, %z = neg %x\n}",
		  "neg: expected 1 outputs, found 2" },
		{ "graph @g {\ninput %x: f32[2]\n%y = neg %x %x\n}",
		  "expected end of line, found 'x'" },
		{ "graph @g {\ninput %x: f32[2]\n%y = loop %x\n}",
		  "a loop needs a body" },
		{ "graph @g {\ninput %x: f32[2]\n%y = neg %x [give t0]\n}",
		  "only a loop can have a body" },
		{ "graph @g {\ninput %x: f32[2]\n"
		  "%y = loop %x [t1 = neg a0; give t1]\n}",
		  "expected t0, found t1" },
		{ "graph @g {\nprops wet\n}", "unknown property 'wet'" },
		{ "graph @g {\ninput %\"a\n}", "found an invalid name or string" },
		{ "graph @g {\ninput %\"\\q\"\n}", "invalid name or string" },
		{ "graph @g {\ninput %x\x01\n}", "found byte 0x01" },
		{ "graph @g {\ninput %x bytes 64\n}", "expected a type or strides" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
		struct sink s;

		sink_open(&s);
		if (parse(&s, t[i].text))
			fail_msg("no fault in %s", t[i].text);
		if (!strstr(sink_text(&s), t[i].want))
			fail_msg("expected: %s\nfound: %s", t[i].want,
			         sink_text(&s));
		sink_close(&s);
	}
}

/* Each line's fault is reported, and a bad loop body does not hide more. */
static void
several(void **state)
{
	struct sink s;

	(void)state;
	sink_open(&s);
	assert_null(parse(&s,
		"graph @g {\n"
		"input %x: f33\n"
		"input %u: f32[2]\n"
		"%y = loop %u [\n"
		"t0 = frob a0\n"
		"give t0\n"
		"]\n"
		"%z = nog %u\n"
		"}\n"));
	assert_non_null(strstr(sink_text(&s), "x.ck:2:"));
	assert_non_null(strstr(sink_text(&s), "x.ck:5:"));
	assert_non_null(strstr(sink_text(&s), "x.ck:8:"));
	assert_int_equal(diag_errors(s.diag), 3);
	sink_close(&s);
}

int
test_text(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(round_trip), cmocka_unit_test(terse),
		cmocka_unit_test(earlier),
		cmocka_unit_test(faults), cmocka_unit_test(several),
	};

	return cmocka_run_group_tests_name("text", tests, NULL, NULL);
}
