/* Damaged text must not crash the reader, and what still reads must verify
 * without a crash and print to something that reads back.  Mutations are a
 * fixed sequence, so a failure repeats. */
#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 4000, OUT = 1 << 16 };

static const char *const seeds[] = {
	"graph @g {\n"
	"	props bound\n"
	"	streams 2\n"
	"	input %ids: i64[batch,12]\n"
	"	param %w: f32[4,8] frozen onnx \"wte\"\n"
	"	state %m: f32[4,8] param %w state m\n"
	"	const %c: f32[3] = {0, -1.5, nan}\n"
	"	const %h: u8[4] = hex \"00ff7f01\"\n"
	"	const %s: i64[70] = splat 3\n"
	"	%e = gather %w, %ids {axis=0} from \"a/b\" Gather, \"c\" Add\n"
	"	%y: f32[?,12,8] output = loop %e, %e @recompute again %e [\n"
	"		t0: f32 = add a0, a1\n"
	"		t1: f32 = gelu t0 {tanh=1}\n"
	"		give t1\n"
	"	]\n"
	"	loss %y\n"
	"}\n",
	"graph @g {\n"
	"	input %x: f32[2,3] bytes 64\n"
	"	const %i: i64[2] = {0, 1} bytes 64\n"
	"	%y: f32[3,2] strides [1,3] in %x = transpose %x {perm=[1,0]}\n"
	"	%z: f32[1,3] start 3 in %x = slice %x {start=[1,0],"
	" step=[1,1]}\n"
	"	%a, _, %b = layernorm %z, %z {axis=0, eps=1e-05} @backward\n"
	"	%p = part %x, %i {index=1, axis=0}\n"
	"	%r = reshape %x, %i\n"
	"	%t = pad %x, %i, _, %i\n"
	"}\n",
	"graph @g {\n"
	"	input %q: f32[2,4,6,8]\n"
	"	input %k: f32[2,2,6,8]\n"
	"	const %a: i64[2] = {1, 2}\n"
	"	%o, %l = attention %q, %k, %k {causal=1, scale=0.5}\n"
	"	%d = attention_grad %o, %q, %k, %k, %o, %l {packed=1}\n"
	"	%s = slice %q, %a, %a, %a, %a\n"
	"	%u = squeeze %q, %a\n"
	"	%v = unsqueeze %q, %a\n"
	"	%e = expand %q, %a\n"
	"	%t = tile %a, %a\n"
	"	%r = range %a, %a, %a\n"
	"	%c = constant_of_shape %a {dt=i64}\n"
	"	%f = reduce_sum %q, %a {keepdims=0}\n"
	"	%h = one_hot %a, %a, %a\n"
	"	%g = gather_nd %q, %a {batch=0}\n"
	"}\n",
};

/* Pieces of the language, so that some damage is nearly right. */
static const char *const pieces[] = {
	"%x", "%y", "\n", "{", "}", "[", "]", "f32", "i64", "[2,3]", "-1", "0",
	"9223372036854775807", "-9223372036854775808", "99999999999999999999",
	"1e308", "nan", "...", "splat", "hex", "\"", "\\", "\\x00", "loop",
	"again", "param", "in", "strides", "_", "=", ",", "@", "@backward", "?",
	"*", "give t0", "t0", "a7", "gone", "loss", "\xff", "of", "from",
	"[1000000,1000000]", "{axis=-9223372036854775808}", "{axis=7}",
};

static uint32_t
draw(uint32_t *state, uint32_t below)
{
	*state = *state * 1664525 + 1013904223;
	return (uint32_t)((uint64_t)(*state >> 4) * below >> 28);
}

/* One change at a random place: a byte, a piece put in, bytes cut out, or a
 * part repeated. */
static size_t
mutate(char *text, size_t n, size_t cap, uint32_t *rng)
{
	size_t at = draw(rng, (uint32_t)n + 1), len = draw(rng, 12) + 1;
	const char *piece = pieces[draw(rng, sizeof pieces / sizeof *pieces)];
	char part[16];

	switch (draw(rng, 4)) {
	case 0:
		if (at < n)
			text[at] = (char)draw(rng, 256);
		return n;
	case 1:
		if (len > n - at)
			len = n - at;
		memmove(text + at, text + at + len, n - at - len);
		return n - len;
	case 2:
		if (len > n - at)
			len = n - at;
		memcpy(part, text + at, len);
		part[len] = 0;
		piece = part;
		at = draw(rng, (uint32_t)n + 1);
		/* fallthrough */
	default:
		len = strlen(piece);
		if (n + len > cap)
			return n;
		memmove(text + at + len, text + at, n - at);
		memcpy(text + at, piece, len);
		return n + len;
	}
}

static void
try_text(const char *text, size_t n)
{
	struct sink s, t;
	Graph *g, *h;
	char *once, *twice;

	sink_open(&s);
	g = text_parse("x.ck", text, n, s.diag);
	/* a refusal says why, an acceptance is silent */
	assert_int_equal(g == NULL, diag_errors(s.diag) > 0);
	if (g) {
		g->props |= graph_props(g);
		once = print(g);
		sink_open(&t);
		h = parse(&t, once);
		if (!h)
			fail_msg("%s\nfrom\n%.*s", sink_text(&t), (int)n, text);
		twice = print(h);
		assert_string_equal(once, twice);
		free(once);
		free(twice);
		graph_verify(g, s.diag);
		graph_free(h);
		sink_close(&t);
	}
	graph_free(g);
	sink_close(&s);
}

static void
mutations(void **state)
{
	char *text = malloc(OUT);

	(void)state;
	assert_non_null(text);
	for (size_t k = 0; k < sizeof seeds / sizeof *seeds; k++)
		for (uint32_t round = 0; round < ROUNDS; round++) {
			uint32_t rng = round * 2654435761u + (uint32_t)k;
			uint32_t changes = 1 + draw(&rng, 4);
			size_t n = strlen(seeds[k]);
			char *exact;

			memcpy(text, seeds[k], n);
			for (uint32_t i = 0; i < changes; i++)
				n = mutate(text, n, OUT, &rng);
			/* no byte behind the end may be looked at */
			exact = malloc(n ? n : 1);
			memcpy(exact, text, n);
			try_text(exact, n);
			free(exact);
		}
	free(text);
}

static void
truncations(void **state)
{
	(void)state;
	for (size_t k = 0; k < sizeof seeds / sizeof *seeds; k++)
		for (size_t n = 0; n <= strlen(seeds[k]); n++) {
			char *exact = malloc(n ? n : 1);

			memcpy(exact, seeds[k], n);
			try_text(exact, n);
			free(exact);
		}
}

int
test_fuzz(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(truncations), cmocka_unit_test(mutations),
	};

	return cmocka_run_group_tests_name("fuzz", tests, NULL, NULL);
}
