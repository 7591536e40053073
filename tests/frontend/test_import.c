/* The importer on files made here: hostile ones, rare forms, and the choices
 * that it makes. */
#include "frontend/import/import.h"
#include "tests/frontend/build.h"
#include "ir/text/text.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static const int64_t d1[] = { 4 }, d22[] = { 2, 2 };
static const float ones[] = { 1, 1, 1, 1 }, ramp[] = { 1, 2, 3, 4 };

/* One import: what came out, and all that was said. */
struct result {
	Graph *g;
	struct onnx_file *file;
	char *said, *text;
	size_t nsaid, ntext;
};

static char folder[64];

static const char *
in_folder(const char *name)
{
	static char path[4][160];
	static unsigned turn;
	char *p = path[turn++ % 4];

	snprintf(p, sizeof path[0], "%s/%s", folder, name);
	return p;
}

static void
write_file(const char *name, const void *p, size_t n)
{
	FILE *f = fopen(in_folder(name), "wb");

	assert_non_null(f);
	assert_int_equal(fwrite(p, 1, n, f), n);
	fclose(f);
}

static struct result
import_bytes(const void *p, size_t n, const struct import_options *opt)
{
	struct result r = { 0 };
	FILE *said = open_memstream(&r.said, &r.nsaid), *text;
	Diag *d = diag_new("ckc", said);

	write_file("m.onnx", p, n);
	r.g = onnx_import(in_folder("m.onnx"), opt, d, &r.file);
	assert_true((r.g != NULL) == (diag_errors(d) == 0));
	diag_flush(d);
	diag_free(d);
	fclose(said);
	if (r.g) {
		text = open_memstream(&r.text, &r.ntext);
		text_print(r.g, text);
		fclose(text);
	}
	return r;
}

static struct result
import(const struct buf *model)
{
	static const struct import_options opt = { .untie = true };

	return import_bytes(model->b, model->n, &opt);
}

static void
done(struct result *r)
{
	graph_free(r->g);
	onnx_close(r->file);
	free(r->said);
	free(r->text);
}

/* The import works and the graph's text contains `want`. */
static void
gives(const struct buf *model, const struct import_options *opt,
      const char *want)
{
	struct result r = opt ? import_bytes(model->b, model->n, opt)
	                      : import(model);

	if (!r.g)
		fail_msg("refused: %s", r.said);
	if (!strstr(r.text, want))
		fail_msg("no '%s' in:\n%s", want, r.text);
	done(&r);
}

/* The import is refused in words that contain `want`. */
static void
refuses(const struct buf *model, const struct import_options *opt,
        const char *want)
{
	struct result r = opt ? import_bytes(model->b, model->n, opt)
	                      : import(model);

	assert_null(r.g);
	if (!strstr(r.said, want))
		fail_msg("no '%s' in: %s", want, r.said);
	done(&r);
}

/* y = op(x), x f32[n,4] */
static struct buf
one_node(const char *op, const char *in, const struct buf *attrs, int opset)
{
	struct buf g = { 0 };
	static const int64_t dim[] = { -1, 4 };

	put_node(&g, op, in, "y", attrs);
	put_value(&g, 11, "x", ONNX_FLOAT, 2, dim);
	put_value(&g, 12, "y", ONNX_FLOAT, 2, dim);
	return model_of(&g, opset);
}

/* y = Add(x, w) with the tensor given as w. */
static struct buf
with_tensor(const struct buf *w)
{
	struct buf g = { 0 };

	put_node(&g, "Add", "x w", "y", NULL);
	put_msg(&g, 5, w);
	put_value(&g, 11, "x", ONNX_FLOAT, 1, d1);
	put_value(&g, 12, "y", ONNX_FLOAT, 1, d1);
	return model_of(&g, 20);
}

/* ---- wire format ---- */

static void
test_truncated(void **state)
{
	struct buf w = tensor_raw("w", ONNX_FLOAT, 1, d1, ramp, 16);
	struct buf m = with_tensor(&w);
	struct import_options opt = { 0 };
	int good = 0;

	(void)state;
	for (size_t n = 0; n < m.n; n++) {
		struct result r = import_bytes(m.b, n, &opt);

		good += r.g != NULL;
		done(&r);
	}
	/* only a cut between fields of the model can leave a whole file, and
	 * the graph comes last */
	assert_int_equal(good, 0);
	gives(&m, NULL, "= add %x, %w");
}

static void
test_wire_limits(void **state)
{
	struct buf g = { 0 }, m = { 0 }, deep = { 0 };

	(void)state;
	put_bytes(&g, 2, "a\0b", 3);
	m = model_of(&g, 20);
	refuses(&m, NULL, "NUL");
	g.n = m.n = 0;
	put_msg(&m, 7, &g);
	put_msg(&m, 7, &g);
	refuses(&m, NULL, "occurs twice");
	m.n = 0;
	put_varint(&m, 7 << 3 | 2);
	put_varint(&m, UINT64_MAX);
	refuses(&m, NULL, "exceeds the message, in a ModelProto at byte 0");
	m.n = 0;
	put_int(&m, 7, 3);
	refuses(&m, NULL, "wrong type");
	for (int i = 0; i < 60; i++) {          /* node in graph in attribute */
		struct buf a = { 0 }, n = { 0 };

		put_msg(&a, 6, &deep);
		put_msg(&n, 5, &a);
		deep.n = 0;
		put_msg(&deep, 1, &n);
	}
	m = model_of(&deep, 20);
	refuses(&m, NULL, "nested deeper");
	m.n = 0;
	refuses(&m, NULL, "empty");
	put_int(&m, 1, 8);
	refuses(&m, NULL, "no graph");
}

/* A field that looks like the mark of the pre-pass is just unknown. */
static void
test_forged_token(void **state)
{
	struct buf w = tensor_head("w", ONNX_FLOAT, 1, d1), m;

	(void)state;
	put_varint(&w, 50000u << 3 | 5);
	memcpy(w.b + w.n, "\1\0\0\0", 4);
	w.n += 4;
	m = with_tensor(&w);
	refuses(&m, NULL, "0 elements stored, but the shape needs 4");
}

/* ---- contents of tensors ---- */

static void
test_typed_fields(void **state)
{
	struct buf w = tensor_head("w", ONNX_FLOAT, 1, d1), m, v = { 0 };

	(void)state;
	put_bytes(&w, 4, ramp, 16);             /* packed */
	m = with_tensor(&w);
	gives(&m, NULL, "%w: f32[4] onnx = {1, 2, 3, 4}");
	w = tensor_head("w", ONNX_FLOAT, 1, d1);
	for (int i = 0; i < 4; i++)             /* one by one */
		put_fixed(&w, 4, ramp[i]);
	m = with_tensor(&w);
	gives(&m, NULL, "%w: f32[4] onnx = {1, 2, 3, 4}");
	for (int i = 0; i < 4; i++)             /* float16 bit patterns */
		put_varint(&v, 0x3c00);
	w = tensor_head("w", ONNX_FLOAT16, 1, d1);
	put_msg(&w, 5, &v);
	m = with_tensor(&w);
	gives(&m, NULL, "%w: f16[4] onnx = {1, 1, 1, 1}");
	w = tensor_head("w", ONNX_UINT32, 1, d1);
	v.n = 0;
	for (int i = 0; i < 4; i++)
		put_varint(&v, 4000000000u);
	put_msg(&w, 11, &v);
	m = with_tensor(&w);
	gives(&m, NULL, "%w: u32[4] onnx = {4000000000,");
	w = tensor_head("w", ONNX_INT32, 1, d1);
	put_msg(&w, 5, &v);
	m = with_tensor(&w);
	refuses(&m, NULL, "element 0 is out of range for i32");
	w = tensor_raw("w", ONNX_BOOL, 1, d1, "\0\1\2\377", 4);
	m = with_tensor(&w);
	gives(&m, NULL, "%w: bool[4] onnx = {0, 1, 1, 1}");
}

static void
test_bad_tensors(void **state)
{
	static const int64_t huge[] = { INT64_MAX, INT64_MAX },
			     minus[] = { -4 };
	static const int64_t nine[9] = { 1, 1, 1, 1, 1, 1, 1, 1, 1 };
	struct buf w, m;

	(void)state;
	w = tensor_raw("w", ONNX_FLOAT, 1, d1, ramp, 15);
	m = with_tensor(&w);
	refuses(&m, NULL, "15 bytes stored, but the shape needs 16");
	w = tensor_raw("w", ONNX_FLOAT, 2, huge, ramp, 16);
	m = with_tensor(&w);
	refuses(&m, NULL, "too many elements");
	w = tensor_raw("w", ONNX_FLOAT, 1, minus, ramp, 16);
	m = with_tensor(&w);
	refuses(&m, NULL, "negative");
	w = tensor_raw("w", ONNX_FLOAT, 9, nine, ramp, 4);
	m = with_tensor(&w);
	refuses(&m, NULL, "rank 9");
	w = tensor_head("w", ONNX_FLOAT, 1, d1);
	put_bytes(&w, 7, "\1\2\3\4", 4);
	m = with_tensor(&w);
	refuses(&m, NULL, "field of another type");
	w = tensor_head("w", ONNX_STRING, 1, d1);
	m = with_tensor(&w);
	refuses(&m, NULL, "dtype string is not supported");
}

/* ---- external data ---- */

static struct buf
external(const char *location, const char *offset, const char *length)
{
	const char *const kv[][2] = { { "location", location },
	                              { "offset", offset },
	                              { "length", length } };
	struct buf w = tensor_head("w", ONNX_FLOAT, 1, d1);

	put_int(&w, 14, 1);
	for (int i = 0; i < 3; i++) {
		struct buf e = { 0 };

		if (!kv[i][1])
			continue;
		put_str(&e, 1, kv[i][0]);
		put_str(&e, 2, kv[i][1]);
		put_msg(&w, 13, &e);
	}
	return with_tensor(&w);
}

static void
test_external(void **state)
{
	struct import_options plan = { .shapes_do = true };
	struct buf m;

	(void)state;
	mkdir(in_folder("sub"), 0700);
	write_file("w.bin", "....\0\0\200?\0\0\0@\0\0@@\0\0\200@", 20);
	write_file("sub/w.bin", ramp, 16);
	m = external("w.bin", "4", "16");
	gives(&m, NULL, "= {1, 2, 3, 4}");
	m = external("sub/w.bin", "0", "16");
	gives(&m, NULL, "= {1, 2, 3, 4}");
	m = external("w.bin", "5", "16");
	refuses(&m, NULL, "ends at byte 20");
	m = external("w.bin", "18446744073709551615", "16");
	refuses(&m, NULL, "ends at byte 20");
	m = external("w.bin", "99999999999999999999999", "16");
	refuses(&m, NULL, "not a number of bytes");
	m = external("w.bin", "-4", "16");
	refuses(&m, NULL, "not a number of bytes");
	m = external("w.bin", "4", "0");        /* as its shape needs */
	gives(&m, NULL, "= {1, 2, 3, 4}");
	m = external("w.bin", "4", NULL);
	gives(&m, NULL, "= {1, 2, 3, 4}");
	m = external("w.bin", "8", "0");
	refuses(&m, NULL, "ends at byte 20, but the tensor starts at byte 8 and has 16");
	m = external("w.bin", "0", "20");
	refuses(&m, NULL, "has 20 bytes, but the shape needs 16");
	m = external("gone.bin", "0", "16");
	refuses(&m, NULL, "tensor 'w': external data file 'gone.bin' cannot be "
	        "opened");
	gives(&m, &plan, "= add %x, %w");
}

static void
test_external_escapes(void **state)
{
	struct buf m;

	(void)state;
	write_file("real.bin", ramp, 16);
	m = external("/etc/passwd", "0", "16");
	refuses(&m, NULL, "absolute");
	m = external("../real.bin", "0", "16");
	refuses(&m, NULL, "'..'");
	m = external("sub/../real.bin", "0", "16");
	refuses(&m, NULL, "'..'");
	m = external("sub\\real.bin", "0", "16");
	refuses(&m, NULL, "backslash");
	m = external("", "0", "16");
	refuses(&m, NULL, "is empty");
	assert_int_equal(symlink("real.bin", in_folder("link.bin")), 0);
	m = external("link.bin", "0", "16");
	refuses(&m, NULL, "symbolic links are not followed");
	assert_int_equal(symlink(".", in_folder("loop")), 0);
	m = external("loop/real.bin", "0", "16");
	refuses(&m, NULL, "cannot be opened");
	assert_int_equal(link(in_folder("real.bin"), in_folder("hard.bin")), 0);
	m = external("hard.bin", "0", "16");
	refuses(&m, NULL, "hard links");
	assert_int_equal(mkfifo(in_folder("fifo"), 0600), 0);
	m = external("fifo", "0", "16");
	refuses(&m, NULL, "not a regular file");
}

/* ---- structure ---- */

static void
test_order(void **state)
{
	struct buf g = { 0 }, m;

	(void)state;
	put_node(&g, "Exp", "b", "y", NULL);    /* reads what comes later */
	put_node(&g, "Neg", "x", "a", NULL);
	put_node(&g, "Abs", "a", "b", NULL);
	put_value(&g, 11, "x", ONNX_FLOAT, 1, d1);
	put_value(&g, 12, "y", ONNX_FLOAT, 1, d1);
	m = model_of(&g, 20);
	gives(&m, NULL, "= neg %x");
	gives(&m, NULL, "= exp %b");
	g.n = 0;
	put_node(&g, "Neg", "b", "a", NULL);
	put_node(&g, "Abs", "a", "b", NULL);
	put_value(&g, 12, "b", ONNX_FLOAT, 1, d1);
	m = model_of(&g, 20);
	refuses(&m, NULL, "cycle");
}

static void
test_names(void **state)
{
	struct buf g = { 0 }, m;

	(void)state;
	put_node(&g, "Neg", "x", "y", NULL);
	put_node(&g, "Abs", "x", "y", NULL);
	put_value(&g, 11, "x", ONNX_FLOAT, 1, d1);
	put_value(&g, 12, "y", ONNX_FLOAT, 1, d1);
	m = model_of(&g, 20);
	refuses(&m, NULL, "'y' is written twice\n");
	g.n = 0;
	put_node(&g, "Neg", "x", "y", NULL);
	put_node(&g, "Abs", "y", "x", NULL);
	put_value(&g, 11, "x", ONNX_FLOAT, 1, d1);
	put_value(&g, 12, "y", ONNX_FLOAT, 1, d1);
	m = model_of(&g, 20);
	refuses(&m, NULL, "'x' is written twice: as an input of the graph");
	g.n = 0;
	put_node(&g, "Neg", "x", "y", NULL);
	put_value(&g, 11, "x", ONNX_FLOAT, 1, d1);
	put_value(&g, 12, "y", ONNX_FLOAT, 1, d1);
	put_value(&g, 12, "y", ONNX_FLOAT, 1, d1);
	m = model_of(&g, 20);
	refuses(&m, NULL, "graph output 'y' occurs twice");
	g.n = 0;
	put_node(&g, "Add", "x w", "y", NULL);
	put_floats(&g, "w", 4, ones);
	put_value(&g, 11, "x", ONNX_FLOAT, 1, d1);
	put_value(&g, 12, "y", ONNX_FLOAT, 1, d1);
	m = model_of(&g, 20);
	gives(&m, NULL, "= add %x, %w");
	put_value(&g, 11, "x", ONNX_FLOAT, 1, d1);
	m = model_of(&g, 20);
	refuses(&m, NULL, "input 'x' occurs twice");
	put_floats(&g, "w", 4, ramp);
	m = model_of(&g, 20);
	refuses(&m, NULL, "initializer 'w' occurs twice");
	m = one_node("Neg", "gone", NULL, 20);
	refuses(&m, NULL, "input 0, 'gone', is never written");
	m = one_node("Add", "x", NULL, 20);
	refuses(&m, NULL, "expected 2 to 2 inputs, found 1");
	m = one_node("Add", "x -", NULL, 20);
	refuses(&m, NULL, "input 1 is missing");
	m = one_node("Neg", "x", NULL, 5);
	refuses(&m, NULL, "opset 5 is not supported");
	m = one_node("Gelu", "x", NULL, 19);
	refuses(&m, NULL, "opset 19 is not supported: expected 20 or later");
}

/* Everything that is missing is said at once. */
static void
test_missing_ops(void **state)
{
	struct buf g = { 0 }, m;

	(void)state;
	put_node(&g, "Nonsense", "x", "a", NULL);
	put_node(&g, "Unique", "a", "b", NULL);
	put_node(&g, "Nonsense", "b", "y", NULL);
	put_node(&g, "AlsoNonsense", "y", "unused", NULL);
	put_value(&g, 11, "x", ONNX_FLOAT, 1, d1);
	put_value(&g, 12, "y", ONNX_FLOAT, 1, d1);
	m = model_of(&g, 20);
	refuses(&m, NULL, "op Nonsense is not supported: 2 nodes");
	refuses(&m, NULL, "op Unique is not supported: 1 node");
}

/* A loss that needs none of them is trained without the other outputs. */
static void
test_dropped_outputs(void **state)
{
	struct buf g = { 0 }, m;
	struct result r;

	(void)state;
	put_node(&g, "Nonsense", "x", "best", NULL);
	put_node(&g, "ReduceSum", "x", "loss", NULL);
	put_value(&g, 11, "x", ONNX_FLOAT, 1, d1);
	put_value(&g, 12, "best", ONNX_INT64, 1, d1);
	put_value(&g, 12, "loss", ONNX_FLOAT, 0, NULL);
	m = model_of(&g, 20);
	r = import(&m);
	assert_non_null(r.g);
	assert_non_null(strstr(r.said, "output 'best' is left out"));
	assert_null(strstr(r.text, "best"));
	done(&r);
}

static void
test_attributes(void **state)
{
	struct buf a = { 0 }, m;

	(void)state;
	attr_put_float(&a, "axis", 1);
	m = one_node("Softmax", "x", &a, 20);
	refuses(&m, NULL,
	        "attribute 'axis': expected an integer, found a float");
	a.n = 0;
	attr_put_int(&a, "axes", 1);
	m = one_node("Softmax", "x", &a, 20);
	refuses(&m, NULL, "attribute 'axes' is not known");
	a.n = 0;
	attr_put_int(&a, "axis", -2);
	m = one_node("Softmax", "x", &a, 20);
	gives(&m, NULL, "softmax %x {axis=-2}");
	a.n = 0;
	attr_put_int(&a, "left_window_size", -7);
	m = one_node("Attention", "x x x", &a, 25);
	refuses(&m, NULL, "found -7 and -1");
	a.n = 0;
	attr_put_int(&a, "qk_matmul_output_mode", 4);
	m = one_node("Attention", "x x x", &a, 23);
	refuses(&m, NULL, "qk_matmul_output_mode: expected 0 to 3, found 4");
	/* before version 13 all dims from axis on are one */
	a.n = 0;
	attr_put_int(&a, "axis", 0);
	m = one_node("Softmax", "x", &a, 12);
	gives(&m, NULL, "= flatten %x {axis=0}");
	/* log(|x| + sqrt(x^2 + 1)) is wrong near 0, and its gradient 0 at 0 */
	m = one_node("Asinh", "x", NULL, 20);
	gives(&m, NULL, "= asinh %x");
}

/* What 8-bit floats need to be said changes nothing for others. */
static void
test_casts(void **state)
{
	struct buf a = { 0 }, m, mode = { 0 };

	(void)state;
	attr_put_int(&a, "saturate", 0);
	m = one_node("CastLike", "x x", &a, 19);
	gives(&m, NULL, "= cast_like %x, %x");
	put_str(&mode, 1, "round_mode");
	put_str(&mode, 4, "nearest");
	put_int(&mode, 20, 3);
	put_msg(&a, 5, &mode);
	m = one_node("CastLike", "x x", &a, 24);
	gives(&m, NULL, "= cast_like %x, %x");
	attr_put_int(&a, "to", 10);
	m = one_node("Cast", "x", &a, 28);
	gives(&m, NULL, "= cast %x {to=f16}");
	mode.n = a.n = 0;
	put_str(&mode, 1, "round_mode");
	put_str(&mode, 4, "sideways");
	put_int(&mode, 20, 3);
	put_msg(&a, 5, &mode);
	m = one_node("CastLike", "x x", &a, 24);
	refuses(&m, NULL, "'sideways' is not supported");
}

/* What an attribute repeats of a weight's shape must agree with it. */
static void
test_repeated_shapes(void **state)
{
	static const struct {
		const char *op, *list;
		int64_t value[3];       /* of the attribute; 0: no more */
		int64_t w[4], r[3];
		const char *want;       /* NULL: imported */
	} t[] = {
		{ "Conv", "kernel_shape", { 3, 2 }, { 4, 1, 3, 2 }, { 0 },
		  NULL },
		{ "Conv", "kernel_shape", { 2, 3 }, { 4, 1, 3, 2 }, { 0 },
		  "kernel_shape has extent 2, but the weight has 3" },
		{ "Conv", "kernel_shape", { 3 }, { 4, 1, 3, 2 }, { 0 },
		  "kernel_shape has 1 extents, but the weight has rank 4" },
		{ "ConvTranspose", "kernel_shape", { 3, 3 }, { 1, 4, 3, 2 },
		  { 0 }, "kernel_shape has extent 3, but the weight has 2" },
		{ "LSTM", "hidden_size", { 2 }, { 1, 8, 4 }, { 1, 8, 2 },
		  NULL },
		{ "LSTM", "hidden_size", { 3 }, { 1, 8, 4 }, { 1, 8, 2 },
		  "hidden_size is 3, but the weights R are for 2" },
		{ "LSTM", "hidden_size", { -2 }, { 1, 8, 4 }, { 1, 8, 2 },
		  "found -2" },
		{ "GRU", "hidden_size", { 2 }, { 1, 8, 4 }, { 1, 6, 2 },
		  "hidden_size is 2, but the weights W have 8 rows" },
		{ "RNN", "hidden_size", { 2 }, { 1, 3, 4 }, { 1, 2, 2 },
		  "hidden_size is 2, but the weights W have 3 rows" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
		static const int64_t x[4] = { 2, 1, 4, 4 };
		struct buf g = { 0 }, a = { 0 }, list = { 0 }, m;
		bool conv = t[i].op[0] == 'C';

		put_str(&list, 1, t[i].list);
		for (int k = 0; conv && t[i].value[k]; k++)
			put_int(&list, 8, t[i].value[k]);
		put_int(&list, 20, 7);
		if (conv)
			put_msg(&a, 5, &list);
		else
			attr_put_int(&a, t[i].list, t[i].value[0]);
		put_node(&g, t[i].op, conv ? "x w" : "x w r", "y", &a);
		put_value(&g, 11, "x", ONNX_FLOAT, conv ? 4 : 3, x);
		put_value(&g, 11, "w", ONNX_FLOAT, conv ? 4 : 3, t[i].w);
		if (!conv)
			put_value(&g, 11, "r", ONNX_FLOAT, 3, t[i].r);
		put_value(&g, 12, "y", ONNX_FLOAT, 0, NULL);
		m = model_of(&g, 14);
		if (t[i].want)
			refuses(&m, NULL, t[i].want);
		else
			gives(&m, NULL, "output");
	}
}

/* ---- versions ---- */

/* A model of one Neg with these versions of the default domain. */
static struct buf
versions(int64_t ir, int n, const int *opset)
{
	struct buf g = { 0 }, m = { 0 };

	put_int(&m, 1, ir);
	for (int i = 0; i < n; i++)
		put_opset(&m, 8, i ? "ai.onnx" : "", opset[i]);
	put_node(&g, "Neg", "x", "a", NULL);
	put_node(&g, "Neg", "a", "y", NULL);
	put_value(&g, 11, "x", ONNX_FLOAT, 1, d1);
	put_value(&g, 12, "y", ONNX_FLOAT, 1, d1);
	put_msg(&m, 7, &g);
	return m;
}

static void
test_versions(void **state)
{
	static const struct {
		int64_t ir;
		int n, opset[2];
		const char *want;
	} t[] = {
		{ 10, 1, { 99 }, "opset 99 is not supported: expected at "
		  "most 28; export with opset_version=28" },
		{ 10, 1, { 29 }, "opset 29 is not supported" },
		{ 10, 1, { 0 }, "opset: expected 1 or later, found 0" },
		{ 10, 1, { -3 }, "opset: expected 1 or later, found -3" },
		{ 10, 0, { 0 }, "does not declare the opset" },
		{ 10, 2, { 13, 17 }, "versions 13 and 17 of the default "
		  "domain" },
		{ 99, 1, { 17 }, "IR version 99 is not supported: expected at "
		  "most 14" },
		{ 0, 1, { 17 }, "IR version: expected 1 or later, found 0" },
	};
	static const int good[][2] = { { 28, 28 }, { 17, 17 } };
	struct buf m;

	(void)state;
	for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
		struct result r;

		m = versions(t[i].ir, t[i].n, t[i].opset);
		refuses(&m, NULL, t[i].want);
		r = import(&m);
		assert_ptr_equal(strchr(r.said, '\n'), strrchr(r.said, '\n'));
		done(&r);
	}
	for (int i = 0; i < 2; i++) {
		m = versions(14, 2, good[i]);
		put_opset(&m, 8, "nobody.uses.it", 99);
		gives(&m, NULL, "= neg %x");
	}
}

/* A function is written in the opset that it names itself. */
static void
test_function_versions(void **state)
{
	struct buf body = { 0 }, node = { 0 }, f = { 0 }, g = { 0 }, m = { 0 };

	(void)state;
	put_names(&node, 1, "p");
	put_names(&node, 2, "q");
	put_str(&node, 4, "Neg");
	put_msg(&body, 7, &node);
	for (int version = 20; version < 60; version += 30) {
		f.n = m.n = g.n = 0;
		put_str(&f, 1, "Fn");
		put_names(&f, 4, "p");
		put_names(&f, 5, "q");
		memcpy(f.b + f.n, body.b, body.n);
		f.n += body.n;
		put_opset(&f, 9, "", version);
		put_node(&g, "Fn", "x", "y", NULL);
		put_value(&g, 11, "x", ONNX_FLOAT, 1, d1);
		put_value(&g, 12, "y", ONNX_FLOAT, 1, d1);
		put_msg(&m, 7, &g);     /* nothing imported at the top */
		put_msg(&m, 25, &f);
		if (version == 20)
			gives(&m, NULL, "= neg %x");
		else
			refuses(&m, NULL, "function 'Fn': opset 50 is not supported");
	}
}

/* ---- functions ---- */

static struct buf
function(const char *name, const char *in, const char *out,
         const struct buf *nodes)
{
	struct buf f = { 0 };

	put_str(&f, 1, name);
	put_names(&f, 4, in);
	put_names(&f, 5, out);
	put_str(&f, 6, "k");
	memcpy(f.b + f.n, nodes->b, nodes->n);
	f.n += nodes->n;
	put_opset(&f, 9, "", 20);
	return f;
}

/* Softmax whose axis is the attribute k of the call. */
static void
put_softmax_k(struct buf *nodes, const char *in, const char *out)
{
	struct buf a = { 0 }, n = { 0 };

	put_str(&a, 1, "axis");
	put_str(&a, 21, "k");
	put_int(&a, 20, 2);
	put_names(&n, 1, in);
	put_names(&n, 2, out);
	put_str(&n, 4, "Softmax");
	put_msg(&n, 5, &a);
	put_msg(nodes, 7, &n);
}

static void
test_functions(void **state)
{
	struct buf body = { 0 }, a = { 0 }, k = { 0 }, f, m;

	(void)state;
	put_softmax_k(&body, "p", "q");
	f = function("Fn", "p", "q", &body);
	attr_put_int(&a, "k", -2);
	m = one_node("Fn", "x", &a, 20);
	put_msg(&m, 25, &f);
	gives(&m, NULL, "%y: f32[*] output onnx = softmax %x {axis=-2}");
	/* the function's own default */
	put_str(&k, 1, "k");
	put_int(&k, 3, 0);
	put_int(&k, 20, 2);
	put_msg(&f, 11, &k);
	m = one_node("Fn", "x", NULL, 20);
	put_msg(&m, 25, &f);
	gives(&m, NULL, "= softmax %x {axis=0}");
	/* itself */
	body.n = k.n = 0;
	put_names(&k, 1, "p");
	put_names(&k, 2, "q");
	put_str(&k, 4, "Fn");
	put_msg(&body, 7, &k);
	f = function("Fn", "p", "q", &body);
	m = one_node("Fn", "x", NULL, 20);
	put_msg(&m, 25, &f);
	refuses(&m, NULL, "function 'Fn' calls itself");
	/* an output that nobody writes */
	body.n = 0;
	f = function("Fn", "p", "q", &body);
	m = one_node("Fn", "x", NULL, 20);
	put_msg(&m, 25, &f);
	refuses(&m, NULL, "does not write its output 'q'");
}

static void
test_if(void **state)
{
	struct buf g = { 0 }, yes = { 0 }, no = { 0 }, a = { 0 }, m, c;

	(void)state;
	put_node(&yes, "Neg", "x", "r", NULL);
	put_value(&yes, 12, "r", ONNX_FLOAT, 1, d1);
	put_node(&no, "Abs", "x", "r", NULL);
	put_value(&no, 12, "r", ONNX_FLOAT, 1, d1);
	attr_put_msg(&a, "then_branch", 6, 5, &yes);
	attr_put_msg(&a, "else_branch", 6, 5, &no);
	c = tensor_raw("c", ONNX_BOOL, 0, NULL, "\0", 1);
	put_msg(&g, 5, &c);
	put_node(&g, "If", "c", "y", &a);
	put_value(&g, 11, "x", ONNX_FLOAT, 1, d1);
	put_value(&g, 12, "y", ONNX_FLOAT, 1, d1);
	m = model_of(&g, 20);
	gives(&m, NULL, "= abs %x");
}

/* ---- what nodes become ---- */

/* x *= w three times, every x kept; how often says an initializer, or a
 * Constant with these attributes, or an input. */
static struct buf
loop_model(int64_t trips, bool known, const struct buf *constant)
{
	static const float w[] = { 1, 2, 3, 4 };
	struct buf body = { 0 }, at = { 0 }, g = { 0 };

	put_node(&body, "Mul", "x w", "x2", NULL);
	put_node(&body, "Identity", "on", "on2", NULL);
	put_value(&body, 11, "i", ONNX_INT64, 0, NULL);
	put_value(&body, 11, "on", ONNX_BOOL, 0, NULL);
	put_value(&body, 11, "x", ONNX_FLOAT, 1, d1);
	put_value(&body, 12, "on2", ONNX_BOOL, 0, NULL);
	put_value(&body, 12, "x2", ONNX_FLOAT, 1, d1);
	put_value(&body, 12, "x2", ONNX_FLOAT, 1, d1);
	attr_put_msg(&at, "body", 6, 5, &body);
	if (constant)
		put_node(&g, "Constant", "", "n", constant);
	put_node(&g, "Loop", "n - x0", "y all", &at);
	put_floats(&g, "w", 4, w);
	if (known)
		put_ints(&g, "n", -1, &trips);
	else if (!constant)
		put_value(&g, 11, "n", ONNX_INT64, 0, NULL);
	put_value(&g, 11, "x0", ONNX_FLOAT, 1, d1);
	put_value(&g, 12, "y", ONNX_FLOAT, 1, d1);
	put_value(&g, 12, "all", ONNX_FLOAT, 1, d1);
	return model_of(&g, 17);
}

static int
count_ops(const Graph *g, Op op)
{
	int n = 0;

	FOR_NODES (node, g)
		n += node->op == op;
	return n;
}

static void
test_loop(void **state)
{
	static const struct import_options forward = { .all_outputs = true };
	struct buf m = loop_model(3, true, NULL);
	struct result r = import_bytes(m.b, m.n, &forward);

	(void)state;
	if (!r.g)
		fail_msg("refused: %s", r.said);
	assert_int_equal(count_ops(r.g, OP_MUL), 3);
	assert_int_equal(count_ops(r.g, OP_UNSQUEEZE), 3);
	assert_int_equal(count_ops(r.g, OP_CONCAT), 1);
	done(&r);
	m = loop_model(3, false, NULL);
	refuses(&m, &forward, "op Loop is not supported: 1 node");
	m = loop_model(1025, true, NULL);
	refuses(&m, &forward, "at most 1024");
}

/* A trip count in whatever attribute a Constant may have it. */
static void
test_constants(void **state)
{
	static const struct import_options forward = { .all_outputs = true };
	static const int64_t three = 3, one = 1, zero = 0;
	struct buf a[5] = { { 0 } }, sparse = { 0 }, part, m;
	struct result r;

	(void)state;
	attr_put_int(&a[0], "value_int", 3);
	part = tensor_raw("", ONNX_INT64, 0, NULL, &three, 8);
	attr_put_msg(&a[1], "value", 5, 4, &part);
	attr_put_ints(&a[2], "value_ints", 1, &three);
	part = tensor_raw("", ONNX_INT64, 1, &one, &three, 8);
	put_msg(&sparse, 1, &part);
	part = tensor_raw("", ONNX_INT64, 1, &one, &zero, 8);
	put_msg(&sparse, 2, &part);
	put_int(&sparse, 3, 1);
	attr_put_msg(&a[3], "sparse_value", 22, 11, &sparse);
	for (int i = 0; i < 4; i++) {
		m = loop_model(0, false, &a[i]);
		r = import_bytes(m.b, m.n, &forward);
		if (!r.g)
			fail_msg("form %d refused: %s", i, r.said);
		assert_int_equal(count_ops(r.g, OP_MUL), 3);
		done(&r);
	}
	attr_put_float(&a[4], "value_float", 3);
	m = loop_model(0, false, &a[4]);
	refuses(&m, &forward, "op Loop is not supported");
	attr_put_int(&a[0], "value_ints", 3);
	m = loop_model(0, false, &a[0]);
	refuses(&m, &forward, "attribute 'value_ints' is not known");
}

/* The import is refused in one line, which contains `want`. */
static void
refuses_once(const struct buf *attrs, const char *want)
{
	struct buf g = { 0 }, m;
	struct result r;

	put_node(&g, "Constant", "", "c", attrs);
	put_node(&g, "Add", "x c", "y", NULL);
	put_value(&g, 11, "x", ONNX_FLOAT, 1, d1);
	put_value(&g, 12, "y", ONNX_FLOAT, 1, d1);
	m = model_of(&g, 17);
	r = import(&m);
	assert_null(r.g);
	if (!strstr(r.said, want) || strchr(r.said, '\n')[1])
		fail_msg("not only '%s' in: %s", want, r.said);
	done(&r);
}

/* A Constant that cannot be read is not taken for one of strings. */
static void
test_broken_constants(void **state)
{
	static const int64_t one = 1, far = 9;
	struct buf a = { 0 }, none = { 0 }, sparse = { 0 }, part;

	(void)state;
	put_str(&none, 1, "value");
	put_int(&none, 20, 4);
	put_msg(&a, 5, &none);
	refuses_once(&a, "attribute 'value' is empty: expected a tensor");
	a = none = (struct buf){ 0 };
	put_str(&none, 1, "sparse_value");
	put_int(&none, 20, 11);
	put_msg(&a, 5, &none);
	refuses_once(&a, "attribute 'sparse_value' is empty");
	part = tensor_raw("", ONNX_FLOAT, 1, &one, ones, 4);
	put_msg(&sparse, 1, &part);
	part = tensor_raw("", ONNX_INT64, 1, &one, &far, 8);
	put_msg(&sparse, 2, &part);
	put_int(&sparse, 3, 4);
	a = (struct buf){ 0 };
	attr_put_msg(&a, "sparse_value", 22, 11, &sparse);
	refuses_once(&a, "sparse tensor '': an index is out of range");
}

/* y = op(x, ...) of as many times the same x. */
static struct buf
typed_node(const char *op, int type, int nin, int opset)
{
	static const char *const in[] = { "", "x", "x x", "x x x" };
	static const int64_t dim[] = { -1, 4 }, axis = 1;
	struct buf g = { 0 };

	put_node(&g, op, strcmp(op, "CumSum") ? in[nin] : "x a", "y", NULL);
	put_ints(&g, "a", -1, &axis);
	put_value(&g, 11, "x", type, 2, dim);
	put_value(&g, 12, "y", type, 2, dim);
	return model_of(&g, opset);
}

/* Operators on types that ONNX does not let them have. */
static void
test_types(void **state)
{
	static const struct import_options forward = { .all_outputs = true };
	static const struct {
		const char *op;
		int nin;
	} numbers[] = {
		{ "Abs", 1 }, { "ArgMax", 1 }, { "ArgMin", 1 }, { "Clip", 1 },
		{ "CumSum", 2 }, { "Div", 2 }, { "MatMul", 2 }, { "Mod", 2 },
		{ "Neg", 1 }, { "Pow", 2 }, { "ReduceL1", 1 },
		{ "ReduceMean", 1 }, { "ReduceProd", 1 }, { "ReduceSum", 1 },
		{ "ReduceSumSquare", 1 }, { "Relu", 1 }, { "Sign", 1 },
		{ "Sub", 2 }, { "Sum", 3 },
	}, floats[] = {
		{ "Acos", 1 }, { "Elu", 1 }, { "HardSigmoid", 1 },
		{ "LeakyRelu", 1 }, { "LpNormalization", 1 }, { "Mean", 2 },
		{ "Selu", 1 }, { "Softsign", 1 }, { "Tan", 1 },
	};
	struct buf m;

	(void)state;
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
		m = typed_node(numbers[i].op, ONNX_BOOL, numbers[i].nin, 17);
		refuses(&m, &forward, "input 0 'x': expected numbers, found "
		        "bool\n  ");
	}
	for (size_t i = 0; i < sizeof floats / sizeof *floats; i++) {
		m = typed_node(floats[i].op, ONNX_INT64, floats[i].nin, 17);
		refuses(&m, &forward, "input 0 'x': expected floats, found "
		        "i64\n  try: ");
	}
	m = typed_node("CumSum", ONNX_BOOL, 2, 17);
	refuses(&m, &forward, "mask.long().cumsum(1)");
	m = typed_node("CumSum", ONNX_INT64, 2, 17);
	gives(&m, &forward, "cumsum");
	m = typed_node("Sum", ONNX_INT64, 3, 17);
	gives(&m, &forward, "add");
	/* what all mean by it */
	m = typed_node("Add", ONNX_BOOL, 2, 17);
	gives(&m, &forward, "= or %x, %x");
	m = typed_node("ReduceMax", ONNX_BOOL, 1, 20);
	gives(&m, &forward, "reduce_max");
}

/* s += x[i] over four rows from the last to the first. */
static void
test_scan(void **state)
{
	static const struct import_options forward = { .all_outputs = true };
	static const int64_t d[] = { 4, 2 };
	struct buf body = { 0 }, at = { 0 }, g = { 0 }, back = { 0 }, m;
	struct result r;

	(void)state;
	put_node(&body, "Add", "s x", "s2", NULL);
	put_value(&body, 11, "s", ONNX_FLOAT, 1, d + 1);
	put_value(&body, 11, "x", ONNX_FLOAT, 1, d + 1);
	put_value(&body, 12, "s2", ONNX_FLOAT, 1, d + 1);
	attr_put_msg(&at, "body", 6, 5, &body);
	attr_put_int(&at, "num_scan_inputs", 1);
	put_str(&back, 1, "scan_input_directions");
	put_int(&back, 8, 1);
	put_int(&back, 20, 7);
	put_msg(&at, 5, &back);
	put_node(&g, "Scan", "s0 x", "y", &at);
	put_value(&g, 11, "s0", ONNX_FLOAT, 1, d + 1);
	put_value(&g, 11, "x", ONNX_FLOAT, 2, d);
	put_value(&g, 12, "y", ONNX_FLOAT, 1, d + 1);
	m = model_of(&g, 17);
	r = import_bytes(m.b, m.n, &forward);
	if (!r.g)
		fail_msg("refused: %s", r.said);
	assert_int_equal(count_ops(r.g, OP_ADD), 4);
	assert_int_equal(count_ops(r.g, OP_GATHER), 4);
	FOR_NODES (n, r.g) {
		if (n->op != OP_GATHER)
			continue;
		assert_int_equal(val_int(&r.g->val[n->in[1]], 0), 3);
		break;
	}
	done(&r);
}

static struct buf
sparse_model(int64_t last)
{
	static const float x[] = { 5, 7 };
	const int64_t at[] = { 0, 1, 1, last }, two = 2, pairs[] = { 2, 2 };
	struct buf v = tensor_raw("c", ONNX_FLOAT, 1, &two, x, sizeof x);
	struct buf i = tensor_raw("", ONNX_INT64, 2, pairs, at, sizeof at);
	struct buf s = { 0 }, g = { 0 };

	put_msg(&s, 1, &v);
	put_msg(&s, 2, &i);
	put_int(&s, 3, 2);
	put_int(&s, 3, 3);
	put_node(&g, "Add", "x c", "y", NULL);
	put_msg(&g, 15, &s);
	put_value(&g, 11, "x", ONNX_FLOAT, 1, (int64_t[]){ 3 });
	put_value(&g, 12, "y", ONNX_FLOAT, 2, (int64_t[]){ 2, 3 });
	return model_of(&g, 17);
}

static void
test_sparse(void **state)
{
	static const struct glob_wish wish[] = { { "c", false } };
	const struct import_options frozen = { .nwish = 1, .wish = wish };
	struct buf m = sparse_model(2);

	(void)state;
	gives(&m, &frozen, "{0, 5, 0, 0, 0, 7}");
	m = sparse_model(3);
	refuses(&m, &frozen, "sparse tensor 'c': an index is out of range");
}

static void
test_sequences(void **state)
{
	static const int64_t one = 1;
	struct buf g = { 0 }, a = { 0 }, m;

	(void)state;
	put_ints(&g, "sizes", -1, &one);
	put_ints(&g, "at", -1, &one);
	attr_put_int(&a, "axis", 1);
	put_node(&g, "SplitToSequence", "x sizes", "s", &a);
	put_node(&g, "SequenceAt", "s at", "y", NULL);
	put_value(&g, 11, "x", ONNX_FLOAT, 2, d22);
	put_value(&g, 12, "y", ONNX_FLOAT, 2, d22);
	m = model_of(&g, 20);
	gives(&m, NULL, "= split %x {axis=1, index=1, chunk=1}");
	put_value(&g, 12, "s", ONNX_FLOAT, 2, d22);
	m = model_of(&g, 20);
	refuses(&m, NULL, "output 's': only tensors");
}

static void
test_dropout(void **state)
{
	static const float ratio = 0.25f;
	static const unsigned char yes = 1, no = 0;
	struct buf r = tensor_raw("r", ONNX_FLOAT, 0, NULL, &ratio, 4);
	struct buf on = tensor_raw("t", ONNX_BOOL, 0, NULL, &yes, 1);
	struct buf off = tensor_raw("t", ONNX_BOOL, 0, NULL, &no, 1);
	struct buf g = { 0 }, m;

	(void)state;
	put_node(&g, "Dropout", "x r t", "d", NULL);
	put_node(&g, "Neg", "d", "y", NULL);
	put_msg(&g, 5, &r);
	put_value(&g, 11, "x", ONNX_FLOAT, 1, d1);
	put_value(&g, 12, "y", ONNX_FLOAT, 1, d1);
	m = model_of(&g, 20);
	refuses(&m, NULL, "'t', is never written");
	put_msg(&g, 5, &off);
	m = model_of(&g, 20);
	gives(&m, NULL, "= neg %x");
	g.n = 0;
	put_node(&g, "Dropout", "x r t", "y", NULL);
	put_msg(&g, 5, &r);
	put_msg(&g, 5, &on);
	put_value(&g, 11, "x", ONNX_FLOAT, 1, d1);
	put_value(&g, 12, "y", ONNX_FLOAT, 1, d1);
	m = model_of(&g, 20);
	gives(&m, NULL, "= dropout %x {ratio=0.25}");
}

static void
test_outputs(void **state)
{
	struct buf g = { 0 }, m;

	(void)state;
	/* an output that is an input, and one that has another name */
	put_node(&g, "Identity", "x", "y", NULL);
	put_node(&g, "Neg", "x", "a", NULL);
	put_node(&g, "Identity", "a", "z", NULL);
	put_value(&g, 11, "x", ONNX_FLOAT, 1, d1);
	put_value(&g, 12, "y", ONNX_FLOAT, 1, d1);
	put_value(&g, 12, "z", ONNX_FLOAT, 1, d1);
	m = model_of(&g, 20);
	gives(&m, NULL, "%y: f32[*] output onnx = identity %x");
	gives(&m, NULL, "%z: f32[*] output onnx = neg %x");
}

/* ---- parameters ---- */

/* loss = sum(x * w.a * w.b * c), w.b under the name given. */
static struct buf
weights(const char *b)
{
	struct buf g = { 0 };
	char in[64];

	put_floats(&g, "w.a", 4, ramp);
	put_floats(&g, b, 4, ramp);
	put_floats(&g, "c", 4, ramp);
	snprintf(in, sizeof in, "t %s", b);
	put_node(&g, "Mul", "x w.a", "t", NULL);
	put_node(&g, "Mul", in, "u", NULL);
	put_node(&g, "Mul", "u c", "v", NULL);
	put_node(&g, "ReduceSum", "v", "loss", NULL);
	put_value(&g, 11, "x", ONNX_FLOAT, 1, d1);
	put_value(&g, 12, "loss", ONNX_FLOAT, 0, NULL);
	return model_of(&g, 20);
}

static void
test_wishes(void **state)
{
	static const struct glob_wish freeze[] = { { "w.*", false } };
	static const struct glob_wish train[] = { { "c", true } };
	static const struct glob_wish last[] = {
		{ "*", false }, { "w.*", true }
	};
	static const struct glob_wish none[] = { { "nothing*", true } };
	static const char *const c[] = { "c" };
	struct import_options opt = { .nwish = 1, .wish = freeze };
	struct buf m = weights("m.inv_freq");

	(void)state;
	gives(&m, NULL, "param %w.a");
	gives(&m, NULL, "const %m.inv_freq");   /* a buffer that stays */
	gives(&m, NULL, "const %c");
	gives(&m, &opt, "param %w.a: f32[4] frozen");
	opt = (struct import_options){ .nwish = 1, .wish = train };
	gives(&m, &opt, "param %c: f32[4]");
	opt = (struct import_options){ .nwish = 2, .wish = last };
	gives(&m, &opt, "param %w.a: f32[4] onnx");
	opt = (struct import_options){ .param = { 1, c } };
	gives(&m, &opt, "param %c: f32[4]");
	opt = (struct import_options){ .nwish = 1, .wish = none };
	refuses(&m, &opt, "--train 'nothing*': no initializer has");
}

/* Parameters that are inputs too: the initializer wins. */
static void
test_inputs(void **state)
{
	static const struct import_const bind[] = { { "x", "x.npy" } };
	static const char npy[] = "\x93NUMPY\1\0\x37\0{'descr': '<f4', "
		"'fortran_order': False, 'shape': (4,)}";
	struct import_options opt = { 0 };
	struct import_const file = bind[0];
	struct buf g = { 0 }, m;
	char bytes[81] = { 0 };

	(void)state;
	put_floats(&g, "w.a", 4, ramp);
	put_node(&g, "Mul", "x w.a", "t", NULL);
	put_node(&g, "ReduceSum", "t", "loss", NULL);
	put_value(&g, 11, "x", ONNX_FLOAT, 1, d1);
	put_value(&g, 11, "w.a", ONNX_FLOAT, 1, d1);
	put_value(&g, 12, "loss", ONNX_FLOAT, 0, NULL);
	m = model_of(&g, 20);
	gives(&m, NULL, "param %w.a: f32[4] onnx = {1, 2, 3, 4}");
	memset(bytes, ' ', sizeof bytes);
	memcpy(bytes, npy, sizeof npy - 1);
	memcpy(bytes + 10 + 0x37, ones, 16);
	write_file("x.npy", bytes, 81);
	file.file = in_folder("x.npy");
	opt.nconst = 1;
	opt.constant = &file;
	gives(&m, &opt, "const %x: f32[4] onnx = {1, 1, 1, 1}");
	write_file("x.npy", bytes, 80);
	file.file = in_folder("x.npy");
	refuses(&m, &opt, ".npy file has 15 bytes of data");
	bytes[8] = 0x36;
	write_file("x.npy", bytes, 80);
	file.file = in_folder("x.npy");
	refuses(&m, &opt, "the .npy header is invalid");
}

/* Two norms whose scales of ones an exporter merged, with an Identity that
 * bears the other name. */
static struct buf
tied(const float *scale)
{
	struct buf g = { 0 };

	put_floats(&g, "n1.weight", 4, scale);
	put_node(&g, "Identity", "n1.weight", "n2.weight", NULL);
	put_node(&g, "LayerNormalization", "x n1.weight", "a", NULL);
	put_node(&g, "LayerNormalization", "a n2.weight", "b", NULL);
	put_node(&g, "ReduceSum", "b", "loss", NULL);
	put_value(&g, 11, "x", ONNX_FLOAT, 2, d22);
	put_value(&g, 12, "loss", ONNX_FLOAT, 0, NULL);
	return model_of(&g, 20);
}

/* The same with a further output that cannot be had. */
static struct buf
tied_beside(const float *scale)
{
	struct buf g = { 0 };

	put_floats(&g, "n1.weight", 4, scale);
	put_node(&g, "Identity", "n1.weight", "n2.weight", NULL);
	put_node(&g, "LayerNormalization", "x n1.weight", "a", NULL);
	put_node(&g, "LayerNormalization", "a n2.weight", "b", NULL);
	put_node(&g, "ReduceSum", "b", "loss", NULL);
	put_node(&g, "Nonsense", "b", "c", NULL);
	put_value(&g, 11, "x", ONNX_FLOAT, 2, d22);
	put_value(&g, 12, "loss", ONNX_FLOAT, 0, NULL);
	put_value(&g, 12, "c", ONNX_FLOAT, 0, NULL);
	return model_of(&g, 20);
}

/* Three norms that read one scale; with a signature that lists three. */
static struct buf
tied_readers(bool listed)
{
	struct buf g = { 0 }, entry = { 0 }, m;

	put_floats(&g, "n1.weight", 4, ones);
	put_node(&g, "LayerNormalization", "x n1.weight", "a", NULL);
	put_node(&g, "LayerNormalization", "a n1.weight", "b", NULL);
	put_node(&g, "LayerNormalization", "b n1.weight", "c", NULL);
	put_node(&g, "ReduceSum", "c", "loss", NULL);
	put_value(&g, 11, "x", ONNX_FLOAT, 2, d22);
	put_value(&g, 12, "loss", ONNX_FLOAT, 0, NULL);
	m = model_of(&g, 20);
	put_str(&entry, 1, "pkg.torch.export.ExportedProgram.graph_signature");
	put_str(&entry, 2, "p_1: PARAMETER target='n1.weight'\n"
	        "p_2: PARAMETER target='n2.weight'\n"
	        "p_3: PARAMETER target='n3.weight'\n");
	if (listed)
		put_msg(&m, 14, &entry);
	return m;
}

static void
test_ties(void **state)
{
	struct import_options off = { 0 };
	struct buf m = tied(ones);
	struct result r = import(&m);

	(void)state;
	assert_non_null(r.g);
	assert_non_null(strstr(r.said, "'n1.weight' replaces 2 parameters"));
	assert_non_null(strstr(r.text, "layernorm %a, %n2.weight"));
	done(&r);
	gives(&m, &off, "layernorm %a, %n1.weight");
	m = tied_beside(ones);
	gives(&m, NULL, "layernorm %a, %n2.weight");
	m = tied(ramp);                         /* of a module and its copy */
	gives(&m, NULL, "layernorm %a, %n2.weight");
	gives(&m, &off, "layernorm %a, %n1.weight");
	m = tied_readers(false);                /* nothing was lost */
	gives(&m, NULL, "layernorm %b, %n1.weight {");
	m = tied_readers(true);
	gives(&m, NULL, "layernorm %a, %n1.weight.2 {");
	gives(&m, NULL, "layernorm %b, %n1.weight.3 {");
	gives(&m, &off, "layernorm %b, %n1.weight {");
}

/* ---- the export template ---- */

/* The file that the run time would write, with the values given by fill. */
static size_t
fill_template(const struct result *r, unsigned char *out, size_t size)
{
	const char *why;
	const struct onnx_template *t = onnx_get_template(r->file, &why);
	size_t at = 0, n = 0;

	if (!t)
		fail_msg("no template: %s", why);
	for (int i = 0; i <= t->nhole; i++) {
		size_t end = i < t->nhole ? (size_t)t->hole[i].at : t->n;
		const Val *v = i < t->nhole ? &r->g->val[t->hole[i].val] : NULL;

		assert_true(n + end - at < size);
		memcpy(out + n, t->bytes + at, end - at);
		n += end - at;
		at = end;
		for (int64_t k = 0; v && k < val_nelem(v); k++, n += 4) {
			float x = (float)(10 * val_float(v, k));

			assert_true(n + 4 < size);
			memcpy(out + n, &x, 4);
		}
	}
	return n;
}

static void
exports(const struct buf *model, const char *want)
{
	static unsigned char bytes[1 << 16];
	struct import_options opt = { .untie = true };
	struct result r = import(model), again;
	size_t n;

	assert_non_null(r.g);
	n = fill_template(&r, bytes, sizeof bytes);
	again = import_bytes(bytes, n, &opt);
	if (!again.g || !strstr(again.text, want))
		fail_msg("no '%s' in:\n%s%s", want, again.g ? again.text : "",
		         again.said);
	done(&r);
	done(&again);
}

static void
test_template(void **state)
{
	struct buf m = weights("w.b"), w, g = { 0 };

	(void)state;
	exports(&m, "param %w.a: f32[4] onnx = {10, 20, 30, 40}");
	exports(&m, "param %w.b: f32[4] onnx = {10, 20, 30, 40}");
	exports(&m, "const %c: f32[4] onnx = {1, 2, 3, 4}");
	m = tied(ones);
	exports(&m, "param %n2.weight: f32[4] onnx = {10, 10, 10, 10}");
	/* contents one by one become raw data of another length */
	w = tensor_head("w.a", ONNX_FLOAT, 1, d1);
	for (int i = 0; i < 4; i++)
		put_fixed(&w, 4, ramp[i]);
	put_msg(&g, 5, &w);
	put_node(&g, "Mul", "x w.a", "t", NULL);
	put_node(&g, "ReduceSum", "t", "loss", NULL);
	put_value(&g, 11, "x", ONNX_FLOAT, 1, d1);
	put_value(&g, 12, "loss", ONNX_FLOAT, 0, NULL);
	m = model_of(&g, 20);
	exports(&m, "param %w.a: f32[4] onnx = {10, 20, 30, 40}");
}

static int
make_folder(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/ckc-import-XXXXXX");
	return mkdtemp(folder) ? 0 : -1;
}

static int
remove_folder(void **state)
{
	static const char *const files[] = {
		"m.onnx", "w.bin", "sub/w.bin", "real.bin", "link.bin", "loop",
		"hard.bin", "fifo", "x.npy"
	};

	(void)state;
	for (size_t i = 0; i < sizeof files / sizeof *files; i++)
		unlink(in_folder(files[i]));
	rmdir(in_folder("sub"));
	return rmdir(folder);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_truncated),
		cmocka_unit_test(test_wire_limits),
		cmocka_unit_test(test_forged_token),
		cmocka_unit_test(test_typed_fields),
		cmocka_unit_test(test_bad_tensors),
		cmocka_unit_test(test_external),
		cmocka_unit_test(test_external_escapes),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_missing_ops),
		cmocka_unit_test(test_dropped_outputs),
		cmocka_unit_test(test_attributes),
		cmocka_unit_test(test_casts),
		cmocka_unit_test(test_repeated_shapes),
		cmocka_unit_test(test_versions),
		cmocka_unit_test(test_function_versions),
		cmocka_unit_test(test_functions),
		cmocka_unit_test(test_if),
		cmocka_unit_test(test_loop),
		cmocka_unit_test(test_constants),
		cmocka_unit_test(test_scan),
		cmocka_unit_test(test_sparse),
		cmocka_unit_test(test_broken_constants),
		cmocka_unit_test(test_types),
		cmocka_unit_test(test_sequences),
		cmocka_unit_test(test_dropout),
		cmocka_unit_test(test_outputs),
		cmocka_unit_test(test_wishes),
		cmocka_unit_test(test_inputs),
		cmocka_unit_test(test_ties),
		cmocka_unit_test(test_template),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
