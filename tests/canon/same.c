/* canon_same [--tolerance X] [--makes OP] FILE.ck...: pass canon must not change
 * what a graph computes; of OP it must make at least one.
 *
 * Each graph is run by the reference interpreter as it is and after the pass,
 * with attention fused and in parts, on the same made-up inputs, and all
 * outputs are compared.  Dropout passes through.
 */
#include "passes/passes.h"
#include "tests/ref/interp.h"
#include "ir/text/text.h"
#include "ir/verify/verify.h"
#include "passes/fold/fold.h"
#include "passes/canon/canon.h"
#include "codegen/cpu/cpu.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static double tolerance = 1e-5;
static Op made = OP_NONE;

/* A number in [-1, 1) from (value, element): splitmix64. */
static double
noise(uint64_t v, uint64_t i)
{
	uint64_t z = v * 0x9e3779b97f4a7c15u + i * 0xbf58476d1ce4e5b9u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return (double)(z >> 11) / (double)(1ull << 52) - 1;
}

/* Made-up contents by name, so that both graphs get the same. */
static void
fill(struct interp *in, const Graph *g)
{
	FOR_VALS (v, g) {
		int64_t n = val_nelem(v);
		uint64_t key = 5381;
		double *x;

		if (v->data || (v->kind != V_INPUT && v->kind != V_PARAM
		                && v->kind != V_BUFFER))
			continue;
		for (const char *s = v->name; *s; s++)
			key = key * 33 + (unsigned char)*s;
		x = calloc((size_t)n + 1, sizeof *x);
		for (int64_t i = 0; i < n; i++) {
			x[i] = noise(key, (uint64_t)i);
			if (v->dt == DT_BOOL)
				x[i] = x[i] > -0.5 || i == 0;
			else if (dtype_info[v->dt].cls != 'f')
				x[i] = floor(1.999 * (x[i] + 1));
		}
		interp_set(in, val_id(g, v), x);
		free(x);
	}
	interp_env(in)->training = false;
}

static struct interp *
evaluate(const Graph *g, const char *path)
{
	struct interp *in = interp_new(g);

	fill(in, g);
	if (interp_run_all(in))
		return in;
	fprintf(stderr, "%s: %s\n", path, interp_error(in));
	interp_free(in);
	return NULL;
}

static bool
same_value(const char *path, const Val *v, const double *a, const double *b)
{
	double largest = 1e-3;

	if (!a || !b) {
		fprintf(stderr, "%s: output %s is missing\n", path, v->name);
		return false;
	}
	for (int64_t i = 0; i < val_nelem(v); i++)
		if (fabs(a[i]) > largest)
			largest = fabs(a[i]);
	for (int64_t i = 0; i < val_nelem(v); i++) {
		if (fabs(a[i] - b[i]) <= tolerance * largest
		    || (isnan(a[i]) && isnan(b[i])))
			continue;
		fprintf(stderr, "%s: output %s[%lld]: %.9g, after canon %.9g\n",
		        path, v->name, (long long)i, a[i], b[i]);
		return false;
	}
	return true;
}

static bool
compare(const char *path, const Graph *before, const Graph *after)
{
	struct interp *a = evaluate(before, path), *b = evaluate(after, path);
	bool ok = a && b;
	int n = 0;

	FOR_VALS (v, before) {
		ValId w = val_find(after, v->name);

		if (!v->output || !ok)
			continue;
		n++;
		ok = w && same_value(path, v, interp_get(a, val_id(before, v)),
		                     interp_get(b, w));
	}
	if (ok && n == 0) {
		fprintf(stderr, "%s: no output\n", path);
		ok = false;
	}
	interp_free(a);
	interp_free(b);
	return ok;
}

static bool
check(const char *path, const char *text, size_t size, bool fused)
{
	struct options opt = {
		.dropout = true, .fused_attention = fused,
		.fold_limit = 1 << 28, .optimizer = OPT_ADAMW,
		.grad_accum = 1, .forward_only = true,
	};
	Diag *d = diag_new("canon_same", stderr);
	Graph *g = text_parse(path, text, size, d), *after = NULL;
	Pass p = { .target = &target_cpu, .diag = d, .opt = &opt, .scratch = arena_new(),
	           .keep = arena_new() };
	bool ok = g && pass_fold(&p, g);

	if (ok) {
		after = graph_clone(g);
		ok = pass_canon(&p, after) && graph_verify(after, d)
			&& compare(path, g, after);
		if (ok && made && !graph_has_op(after, made)) {
			fprintf(stderr, "%s: canon made no %s\n", path,
			        op_info[made].text);
			ok = false;
		}
	}
	graph_free(g);
	graph_free(after);
	arena_free(p.scratch);
	arena_free(p.keep);
	diag_free(d);
	return ok;
}

int
main(int argc, char **argv)
{
	int bad = 0, first = 1;

	for (; first + 1 < argc && argv[first][0] == '-'; first += 2)
		if (!strcmp(argv[first], "--tolerance"))
			tolerance = atof(argv[first + 1]);
		else if (!strcmp(argv[first], "--makes"))
			made = op_find(argv[first + 1]);
	bad = first >= argc;
	for (int i = first; i < argc; i++) {
		FILE *f = fopen(argv[i], "rb");
		size_t cap = 1 << 26, n = 0;
		char *text = malloc(cap);

		if (f && text)
			n = fread(text, 1, cap, f);
		if (!f || !text || n == 0 || n == cap) {
			fprintf(stderr, "%s: cannot be read\n", argv[i]);
			bad++;
		} else {
			bad += !check(argv[i], text, n, true);
			bad += !check(argv[i], text, n, false);
		}
		if (f)
			fclose(f);
		free(text);
	}
	printf("%d graphs, %d failed\n", argc - first, bad);
	return bad != 0;
}
