/* The textual form of a graph: printing.  ir/text/parse.c reads it back.
 *
 *   graph @name {
 *           input %ids: i64[batch,12]
 *           param %w: f32[4,8] frozen = splat 0
 *           const %axes: i64[2] = {0, 1}
 *           %h: f32[2,8] = matmul %x, %w {tb=1} from "/fc/MatMul" MatMul
 *           %y: f32[2,8] output = loop %h, %b @recompute again %u [
 *                   t0: f32 = add a0, a1
 *                   t1: f32 = gelu t0 {tanh=1}
 *                   give t1
 *           ]
 *           loss %l
 *   }
 *
 * One statement a line, # starts a comment.  A value is declared by name,
 * type and marks:
 *
 *   output frozen resident    as in Val
 *   onnx "NAME"               Val.onnx; the bare word: same as the name
 *   of %V  param %V  adjoint %V  state WORD
 *                             Val.of, .param, .grad_of, .state
 *   split N | split partial
 *   strides [..]  start N     layout; absent: row-major, dense, from 0
 *   in %V                     Val.base
 *   bytes N  at N             Val.nbytes, .offset
 *
 * A value without `in` and `bytes` is not laid out.  Extents: a number, a
 * name, a name=number or ?; [*] is a shape of unknown rank.  Contents: all
 * elements, `splat X`, `hex "BYTES"`, or `...` where they are not written.
 * After a node's operands and {attributes} (those that are not default):
 * @PHASE, again %V (Node.of, by one of its outputs), inlines %V, .. (likewise),
 * stream N, workspace N at N, from ORIGINS, [body of a loop].  An absent
 * operand or output is _.
 * `gone %V: TYPE` declares a value that other lines mention and no node
 * writes any more; `props` lists properties that the graph does not show by
 * itself, `streams N` the random streams handed out.
 *
 * Values are printed in the order of their ids, nodes in their own order, and
 * origins in the order in which nodes first mention them, so that equal
 * graphs print alike and a graph that was read back prints the same.
 */
#include "ir/ir.h"

#include "ir/text/text.h"
#include "ir/base/half.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const text_prop[] = {
	"bound", "static", "canon", "loss", "bwd", "upd", "fused", "layout",
	"planned", "placed", NULL
};

const char *const text_phase[PH_COUNT] = {
	"forward", "recompute", "backward", "update"
};

const char *const text_kind[V_KIND_COUNT] = {
	"gone", "input", "param", "buffer", "const", "state"
};

static bool
is_plain(const char *s)
{
	return *s && strspn(s, TEXT_WORD) == strlen(s);
}

static void
put_name(FILE *out, char sigil, const char *name)
{
	if (sigil)
		putc(sigil, out);
	if (is_plain(name)) {
		fputs(name, out);
	} else {
		putc('"', out);
		diag_escape(out, name);
		putc('"', out);
	}
}

/* A word that must not read as a number. */
static void
put_word(FILE *out, const char *s)
{
	if (is_plain(s) && !strchr("0123456789+-.", *s)) {
		fputs(s, out);
	} else {
		putc('"', out);
		diag_escape(out, s);
		putc('"', out);
	}
}

static void
put_ref(FILE *out, const Graph *g, ValId v)
{
	if (v)
		put_name(out, '%', g->val[v].name);
	else
		putc('_', out);
}

static bool
same_as(DType dt, double x, double y)
{
	switch (dt) {
	case DT_F32:
		return (float)x == (float)y;
	case DT_F16:
		return float_to_half((float)x) == float_to_half((float)y);
	case DT_BF16:
		return float_to_bf16((float)x) == float_to_bf16((float)y);
	default:
		return x == y;
	}
}

/* The fewest of 6, 9, 17 digits that read back as the same number of the
 * type. */
static void
put_float(FILE *out, double x, DType dt)
{
	static const int digits[] = { 6, 9, 17 };
	char text[40];

	if (isnan(x)) {
		fputs("nan", out);
		return;
	}
	for (int i = 0; i < 3; i++) {
		snprintf(text, sizeof text, "%.*g", digits[i], x);
		if (same_as(dt, strtod(text, NULL), x))
			break;
	}
	fputs(text, out);
}

static void
put_type(FILE *out, const Val *v)
{
	const char *type = v->dt ? dtype_info[v->dt].text : "?";

	if (v->shape.rank < 0) {
		fprintf(out, "%s[*]", type);
		return;
	}
	fprintf(out, "%s[", type);
	for (int i = 0; i < v->shape.rank; i++) {
		const char *name = v->dim_name[i];

		if (i)
			putc(',', out);
		if (name)
			put_word(out, name);
		else if (v->shape.dim[i] < 0)
			putc('?', out);
		if (v->shape.dim[i] >= 0)
			fprintf(out, "%s%lld", name ? "=" : "",
			        (long long)v->shape.dim[i]);
	}
	putc(']', out);
}

static void
put_layout(FILE *out, const Graph *g, const Val *v)
{
	if (!val_contiguous(v)) {
		fputs(" strides [", out);
		for (int i = 0; i < v->shape.rank; i++)
			fprintf(out, "%s%lld", i ? "," : "",
			        (long long)v->stride[i]);
		putc(']', out);
	}
	if (v->start)
		fprintf(out, " start %lld", (long long)v->start);
	if (v->base) {
		fputs(" in ", out);
		put_ref(out, g, v->base);
	} else {
		fprintf(out, " bytes %lld", (long long)v->nbytes);
	}
}

static void
put_mark(FILE *out, const Graph *g, const char *word, ValId v)
{
	if (v) {
		fprintf(out, " %s ", word);
		put_ref(out, g, v);
	}
}

static void
put_marks(FILE *out, const Graph *g, const Val *v)
{
	if (v->output)
		fputs(" output", out);
	if (v->frozen)
		fputs(" frozen", out);
	if (v->resident)
		fputs(" resident", out);
	if (v->onnx) {
		fputs(" onnx", out);
		if (strcmp(v->onnx, v->name) != 0) {
			fputs(" \"", out);
			diag_escape(out, v->onnx);
			putc('"', out);
		}
	}
	put_mark(out, g, "of", v->of);
	put_mark(out, g, "param", v->param);
	put_mark(out, g, "adjoint", v->grad_of);
	if (v->state) {
		fputs(" state ", out);
		put_word(out, v->state);
	}
	if (v->split.kind == SPLIT_AXIS)
		fprintf(out, " split %d", v->split.axis);
	else if (v->split.kind == SPLIT_PARTIAL)
		fputs(" split partial", out);
	if (v->laid_out)
		put_layout(out, g, v);
	if (v->offset >= 0)
		fprintf(out, " at %lld", (long long)v->offset);
}

/* ---- contents ---- */

static void
put_element(FILE *out, const Val *v, int64_t i)
{
	switch (dtype_info[v->dt].cls) {
	case 'f':
		put_float(out, val_float(v, i), v->dt);
		break;
	case 'u':
		fprintf(out, "%llu", (unsigned long long)val_int(v, i));
		break;
	default:
		fprintf(out, "%lld", (long long)val_int(v, i));
	}
}

static void
put_contents(FILE *out, const Graph *g, const Val *v)
{
	int64_t n = val_nelem(v), nbytes = val_data_bytes(v);
	double x;

	if (!v->data || n < 0) {
		if (v->kind == V_CONST)
			fputs(" = ...", out);
		return;
	}
	if (n <= TEXT_LISTED) {
		fputs(" = {", out);
		for (int64_t i = 0; i < n; i++) {
			fputs(i ? ", " : "", out);
			put_element(out, v, i);
		}
		putc('}', out);
	} else if (v->kind == V_CONST && val_splat(g, val_id(g, v), &x)) {
		fputs(" = splat ", out);
		put_element(out, v, 0);
	} else if (v->kind == V_CONST && nbytes <= TEXT_HEX) {
		const unsigned char *p = v->data;

		fputs(" = hex \"", out);
		for (int64_t i = 0; i < nbytes; i++)
			fprintf(out, "%02x", p[i]);
		putc('"', out);
	} else if (v->kind == V_CONST) {
		fputs(" = ...", out);
	}
}

/* ---- nodes ---- */

static bool
is_type_attr(const char *name)
{
	return strcmp(name, "to") == 0 || strcmp(name, "dt") == 0;
}

static void
put_list(FILE *out, const IntList *l)
{
	putc('[', out);
	for (int i = 0; i < l->n; i++)
		fprintf(out, "%s%lld", i ? "," : "", (long long)l->v[i]);
	putc(']', out);
}

/* False if the attribute has its default value. */
static bool
put_attr(FILE *out, const struct attr_info *a, const char *p, const char *sep)
{
	int64_t i;
	double x;

	if (a->type == AT_LIST) {
		if (((const IntList *)p)->n == 0)
			return false;
		fprintf(out, "%s%s=", sep, a->name);
		put_list(out, (const IntList *)p);
		return true;
	}
	if (a->type == AT_FLOAT) {
		memcpy(&x, p, sizeof x);
		if (memcmp(&x, &a->def, sizeof x) == 0)
			return false;
		fprintf(out, "%s%s=", sep, a->name);
		put_float(out, x, DT_F64);
		return true;
	}
	memcpy(&i, p, sizeof i);
	if (i == a->idef)
		return false;
	fprintf(out, "%s%s=", sep, a->name);
	if (is_type_attr(a->name) && i > DT_NONE && i < DT_COUNT)
		fputs(dtype_info[i].text, out);
	else
		fprintf(out, "%lld", (long long)i);
	return true;
}

static void
put_attrs(FILE *out, Op op, const Attr *attr)
{
	int n;
	const struct attr_info *a = op_attrs(op, &n);
	bool any = false;

	for (int i = 0; i < n; i++)
		any |= put_attr(out, &a[i], (const char *)attr + a[i].offset,
		                any ? ", " : " {");
	if (any)
		putc('}', out);
}

static void
put_arg(FILE *out, int arg)
{
	fprintf(out, "%c%d", arg < 0 ? 't' : 'a', arg < 0 ? ~arg : arg);
}

/* sep stands in front of each statement, end before the bracket closes. */
static void
put_body(FILE *out, const Node *n)
{
	const struct body *b = n->body;

	fputs(" [", out);
	for (int i = 0; i < b->nmicro; i++) {
		const struct micro *m = &b->micro[i];

		fprintf(out, "\n\t\tt%d: %s = %s", i,
		        dtype_info[m->dt].text, op_info[m->op].text);
		for (int k = 0; k < m->narg; k++) {
			fputs(k ? ", " : " ", out);
			put_arg(out, m->arg[k]);
		}
		put_attrs(out, m->op, &m->attr);
	}
	fputs("\n\t\tgive", out);
	for (int i = 0; i < n->nout; i++)
		fprintf(out, "%s t%d", i ? "," : "", b->result[i]);
	fputs("\n\t]", out);
}

static int
outputs_shown(const Node *n)
{
	int shown = n->nout;

	if (op_info[n->op].nout == VARIADIC)
		return shown;
	while (shown > 1 && !n->out[shown - 1])
		shown--;
	return shown;
}

/* What a node is known by; 0: it writes nothing. */
static ValId
some_output(const Node *n)
{
	for (int i = 0; i < n->nout; i++)
		if (n->out[i])
			return n->out[i];
	return 0;
}

/* All of a node but its origins and body. */
static void
put_head(FILE *out, const Graph *g, const Node *n)
{
	for (int i = 0; i < outputs_shown(n); i++) {
		fputs(i ? ", " : "", out);
		put_ref(out, g, n->out[i]);
		if (n->out[i]) {
			fputs(": ", out);
			put_type(out, &g->val[n->out[i]]);
			put_marks(out, g, &g->val[n->out[i]]);
		}
	}
	fprintf(out, "%s= %s", n->nout ? " " : "_ ", op_info[n->op].text);
	for (int i = 0; i < n->nin; i++) {
		fputs(i ? ", " : " ", out);
		put_ref(out, g, n->in[i]);
	}
	put_attrs(out, n->op, &n->attr);
	if (n->phase != PH_FORWARD)
		fprintf(out, " @%s", text_phase[n->phase]);
	if (n->of)
		put_mark(out, g, "again", some_output(&g->node[n->of]));
	for (int i = 0; i < n->ninlined; i++) {
		ValId v = some_output(&g->node[n->inlined[i]]);

		if (i == 0) {
			put_mark(out, g, "inlines", v);
			continue;
		}
		fputs(", ", out);
		put_ref(out, g, v);
	}
	if (n->stream)
		fprintf(out, " stream %d", n->stream);
	if (n->workspace)
		fprintf(out, " workspace %lld", (long long)n->workspace);
	if (n->workspace && n->workspace_at >= 0)
		fprintf(out, " at %lld", (long long)n->workspace_at);
}

static void
put_origin(FILE *out, const struct origin *o, bool first)
{
	fputs(first ? " from \"" : ", \"", out);
	diag_escape(out, o->name);
	fputs("\" ", out);
	put_word(out, *o->op ? o->op : "?");
}

/* ---- whole graphs ---- */

/* Numbers for origins: equal ones share one, and numbers rise in the order of
 * first mention. */
struct numbering {
	uint32_t *same;                 /* least index of an equal origin */
	uint32_t *number, *index;       /* of same[i]; and back */
	uint32_t *scratch;
	uint32_t count;
};

struct keyed {
	const struct origin *o;
	uint32_t i;
};

static int
by_text(const void *a, const void *b)
{
	const struct keyed *x = a, *y = b;
	int c = strcmp(x->o->name, y->o->name);

	if (!c)
		c = strcmp(x->o->op, y->o->op);
	return c ? c : (x->i > y->i) - (x->i < y->i);
}

static int
by_number(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static struct numbering
number_origins(Arena *tmp, const Graph *g)
{
	struct numbering t = { .count = 0 };
	struct keyed *k = arena_array(tmp, g->norigin, sizeof *k);
	int longest = 0;

	t.same = arena_array(tmp, g->norigin, sizeof *t.same);
	t.number = arena_array(tmp, g->norigin, sizeof *t.number);
	t.index = arena_array(tmp, (size_t)g->norigin + 1, sizeof *t.index);
	for (uint32_t i = 0; i < g->norigin; i++)
		k[i] = (struct keyed){ &g->origin[i], i };
	qsort(k, g->norigin, sizeof *k, by_text);
	for (uint32_t i = 0; i < g->norigin; i++) {
		bool equal = i && strcmp(k[i].o->name, k[i - 1].o->name) == 0
		             && strcmp(k[i].o->op, k[i - 1].o->op) == 0;

		t.same[k[i].i] = equal ? t.same[k[i - 1].i] : k[i].i;
	}
	FOR_NODES (n, g)
		if (n->norigin > longest)
			longest = n->norigin;
	t.scratch = arena_array(tmp, (size_t)longest + 1, sizeof *t.scratch);
	return t;
}

static void
put_origins(FILE *out, const Graph *g, const Node *n, struct numbering *t)
{
	int shown = 0;

	for (int i = 0; i < n->norigin; i++) {
		uint32_t o = t->same[n->origin[i]];

		if (!t->number[o]) {
			t->number[o] = ++t->count;
			t->index[t->count] = o;
		}
		t->scratch[i] = t->number[o];
	}
	qsort(t->scratch, (size_t)n->norigin, sizeof *t->scratch, by_number);
	for (int i = 0; i < n->norigin; i++)
		if (i == 0 || t->scratch[i] != t->scratch[i - 1])
			put_origin(out, &g->origin[t->index[t->scratch[i]]],
			           shown++ == 0);
}

enum { SHOWN = 1, MENTIONED = 2 };

static void
mention_marks(unsigned char *seen, const Val *v)
{
	seen[v->of] |= MENTIONED;
	seen[v->param] |= MENTIONED;
	seen[v->grad_of] |= MENTIONED;
	if (v->laid_out)
		seen[v->base] |= MENTIONED;
}

/* Which values the text declares, and which of those only because something
 * mentions them. */
static unsigned char *
values_shown(Arena *tmp, const Graph *g)
{
	unsigned char *seen = arena_array(tmp, g->nval, 1);

	FOR_VALS (v, g)
		if ((v->kind != V_TEMP && v->kind != V_CONST)
		    || (v->kind == V_CONST && v->output))
			seen[val_id(g, v)] = SHOWN;
	FOR_NODES (n, g) {
		for (int i = 0; i < n->nin; i++)
			if (g->val[n->in[i]].kind == V_CONST)
				seen[n->in[i]] = SHOWN;
		for (int i = 0; i < n->nout; i++)
			seen[n->out[i]] = SHOWN;
	}
	FOR_VALS (v, g)
		if (seen[val_id(g, v)] & SHOWN)
			mention_marks(seen, v);
	FOR_NODES (n, g)
		for (int i = 0; i < n->nin; i++)
			seen[n->in[i]] |= MENTIONED;
	seen[g->loss] |= MENTIONED;
	seen[0] = 0;
	return seen;
}

static void
put_values(FILE *out, const Graph *g, const unsigned char *seen)
{
	FOR_VALS (v, g) {
		bool shown = seen[val_id(g, v)] & SHOWN;

		if (!seen[val_id(g, v)] || (shown && v->kind == V_TEMP))
			continue;
		fprintf(out, "\t%s ", text_kind[shown ? v->kind : V_TEMP]);
		put_name(out, '%', v->name);
		fputs(": ", out);
		put_type(out, v);
		if (shown) {
			put_marks(out, g, v);
			put_contents(out, g, v);
		}
		putc('\n', out);
	}
}

void
text_print(const Graph *g, FILE *out)
{
	Arena *tmp = arena_new();
	struct numbering t = number_origins(tmp, g);
	uint32_t hidden = g->props & ~graph_props(g);

	fputs("graph ", out);
	put_name(out, '@', *g->name ? g->name : "?");
	fputs(" {\n", out);
	if (hidden) {
		fputs("\tprops", out);
		for (int i = 0; text_prop[i]; i++)
			if (hidden >> i & 1)
				fprintf(out, " %s", text_prop[i]);
		putc('\n', out);
	}
	if (g->nstream)
		fprintf(out, "\tstreams %lld\n", (long long)g->nstream);
	put_values(out, g, values_shown(tmp, g));
	FOR_NODES (n, g) {
		putc('\t', out);
		put_head(out, g, n);
		put_origins(out, g, n, &t);
		if (n->body)
			put_body(out, n);
		putc('\n', out);
	}
	if (g->loss) {
		fputs("\tloss ", out);
		put_ref(out, g, g->loss);
		putc('\n', out);
	}
	fputs("}\n", out);
	arena_free(tmp);
}
