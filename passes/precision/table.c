/* The table of types behind --dump=precision: a row for each value of the
 * forward graph, as comments, so that the dump still reads as a graph.
 */
#include "passes/precision/precision.h"
#include "ir/text/print.h"

#include <inttypes.h>
#include <stdlib.h>

enum { WIDTH = 36 };                    /* of the column of names */

struct type_printer {
	const Graph *g;
	const char *target;
	const struct reason *reason;
	FILE *out;
	int64_t count[DT_COUNT], casts, overruled;
};

static void
print_padded(struct type_printer *t, ValId v)
{
	char *text;
	size_t n;
	FILE *f = open_memstream(&text, &n);

	if (!f)
		return;
	text_ref(f, t->g, v);
	fclose(f);
	fprintf(t->out, "%-*s", WIDTH, text);
	free(text);
}

static void
print_gone(struct type_printer *t, const char *what, ValId now)
{
	fputs(what, t->out);
	if (now) {
		fputs(": now ", t->out);
		text_ref(t->out, t->g, now);
	}
}

/* Something else stands for it. */
static bool
is_gone(const struct type_printer *t, ValId v)
{
	return !t->g->val[v].def && t->g->val[v].kind == V_TEMP
		&& t->reason[v].of;
}

/* Which output of its node the value is. */
static int
output_index(const Graph *g, ValId v)
{
	const Node *n = &g->node[g->val[v].def];
	int k = 0;

	while (k < n->nout - 1 && n->out[k] != v)
		k++;
	return k;
}

/* Of what a node computes. */
static void
print_op_reason(struct type_printer *t, ValId v, enum why why)
{
	const Val *x = &t->g->val[v];
	const Node *n = &t->g->node[x->def];
	const char *op = op_info[n->op].text;

	if (v == t->g->loss)
		fputs("loss", t->out);
	else if (why == WHY_OF_TARGET || why == WHY_OF_FULL)
		fprintf(t->out, "%s of %s operands", op,
		        why == WHY_OF_TARGET ? t->target : "f32");
	else if (why == WHY_LOG)
		fprintf(t->out, "%s, f32 like losses", op_info[n->op].flags
		        & F_LOG ? "logarithm" : "input of a logarithm");
	else if (why == WHY_DIFFERENCE)
		fputs("exponential less a number, which 16 bits would round",
		      t->out);
	else if (why == WHY_POSITION)
		fprintf(t->out, "product of integers, which 16 bits would "
		        "round");
	else if (why == WHY_TERM)
		fprintf(t->out, "%s that is summed", op);
	else if (why == WHY_EACH)
		fprintf(t->out, "%s of %s and f32, element by element", op,
		        t->target);
	else if (why == WHY_SPREAD)
		fprintf(t->out, "%s of %s and f32, one of them broadcast", op,
		        t->target);
	else if (why == WHY_LOSS_SIDE)
		fprintf(t->out, "%s of %s and f32, which the loss reads", op,
		        t->target);
	else if (output_index(t->g, v) > 0)
		fprintf(t->out, "statistics of %s", op);
	else
		fprintf(t->out, "%s computes in %s", op,
		        dtype_info[x->dt].text);
}

static void
print_wish(struct type_printer *t, const struct precision_wish *w)
{
	fprintf(t->out, "--precision %s%s=%s", w->op ? "op:" : "", w->glob,
	        dtype_info[w->dt].text);
}

static void
print_reason(struct type_printer *t, ValId v, const struct reason *r)
{
	static const char *const plain[WHY_COUNT] = {
		[WHY_NONE] = "not a float",
		[WHY_INPUT] = "input, weakly typed: follows other operands",
		[WHY_CONST] = "constant, weakly typed: follows other operands",
		[WHY_BUFFER] = "buffer, weakly typed: follows other operands",
		[WHY_MASTER] = "parameter, float32 master",
		[WHY_PARAM] = "parameter without a float32 master",
		[WHY_WEAK] = "computed from inputs, parameters, constants only",
	};

	if (plain[r->why]) {
		fputs(plain[r->why], t->out);
	} else if (r->wish) {
		print_wish(t, r->wish);
	} else if (r->why == WHY_COPY) {
		fputs("copy of ", t->out);
		text_ref(t->out, t->g, r->of);
		fprintf(t->out, " for %s", op_info[r->op].text);
	} else if (r->why == WHY_OVERRULED) {
		print_gone(t, "cast in the file, overridden", r->of);
	} else if (r->why == WHY_MASK) {
		print_gone(t, "dropout with a stored mask", r->of);
	} else {
		print_op_reason(t, v, r->why);
	}
}

static void
print_value_row(struct type_printer *t, ValId v)
{
	const struct reason *r = &t->reason[v];
	bool gone = is_gone(t, v);
	DType dt = t->g->val[gone ? r->of : v].dt;

	fputs("#   ", t->out);
	print_padded(t, v);
	fprintf(t->out, " %-4s -> %-4s  ",
	        r->before == DT_NONE ? "" : dtype_info[r->before].text,
	        dtype_info[dt].text);
	print_reason(t, v, r);
	putc('\n', t->out);
	t->count[dt] += !gone;
	t->casts += r->why == WHY_COPY && t->g->val[v].def;
	t->overruled += r->why == WHY_OVERRULED;
}

/* What no node makes: first what the step is given. */
static void
print_sources(struct type_printer *t)
{
	Arena *scratch = arena_new();
	bool *read = arena_array(scratch, t->g->nval, sizeof *read);

	FOR_NODES (n, t->g)
		for (int k = 0; k < n->nin; k++)
			read[n->in[k]] = true;
	FOR_VALS (v, t->g)
		if (v->kind != V_TEMP
		    && (v->kind != V_CONST || read[val_id(t->g, v)]))
			print_value_row(t, val_id(t->g, v));
	FOR_VALS (v, t->g)
		if (is_gone(t, val_id(t->g, v)))
			print_value_row(t, val_id(t->g, v));
	arena_free(scratch);
}

void
precision_table(const Graph *g, DType target, const struct reason *reason,
                FILE *out)
{
	struct type_printer t = { .g = g, .target = dtype_info[target].text,
		.reason = reason, .out = out };
	const char *comma = "# ";

	fputs("# dtypes, before -> after, and reason\n", out);
	print_sources(&t);
	FOR_NODES (n, g)
		for (int k = 0; k < n->nout; k++)
			if (n->out[k])
				print_value_row(&t, n->out[k]);
	for (int dt = 0; dt < DT_COUNT; dt++)
		if (t.count[dt]) {
			fprintf(out, "%s%" PRId64 " %s", comma, t.count[dt],
			        dtype_info[dt].text);
			comma = ", ";
		}
	fprintf(out, "; %" PRId64 " casts inserted, %" PRId64 " casts of the "
	        "file overridden\n", t.casts, t.overruled);
}
