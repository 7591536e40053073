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
 *   output frozen resident host  as in Val
 *   batch AXIS                Val.batch, less 1
 *   onnx "NAME"               Val.onnx; the bare word: same as the name
 *   of %V  low_precision %V  param %V  adjoint %V  state WORD
 *                             Val.of, .low_precision_of, .param, .grad_of,
 *                             .state
 *   placement replicate_partial | placement partial |
 *   placement AXIS [segments] from FIRST_AXIS replication N
 *                             Val.placement; absent: Replicate
 *   shard [extents]  shard [extents] rows whole_placement AXIS [segments] ..
 *                             Val.shard
 *   strides [..]  start N     layout; absent: row-major, dense, from 0
 *   in %V                     Val.base
 *   bytes N  at N             Val.nbytes, .offset
 *
 * A value without `in` and `bytes` is not laid out.  Extents: a number, a
 * name, a name=number or ?; [*] is a shape of unknown rank.  Contents: all
 * elements, `splat X`, `hex "BYTES"`, or `...` where they are not written.
 * After a node's operands and {attributes} (those that are not default):
 * @PHASE, count_pass N, again %V (Node.of, by one of its outputs), wait %V,
 * inlines %V, .. (likewise), workspace N at N, from ORIGINS, [body of a loop].
 * An absent operand or output is _.
 * `gone %V: TYPE PLACEMENT` declares a value that other lines mention and no
 * node writes any more; `props` lists properties that the graph does not show
 * by itself, `streams N` the random streams handed out, `ranks N` those of the
 * tensor-parallel group, `replicas N exactly` Graph.replicas and .exact,
 * `zero_group N` Graph.zero_group, `expert_group N` Graph.expert_group,
 * `stage N P K weight T W` Graph.stage, .stages, .slots, .through_slots and
 * .weight_slots, `other_slots N` Graph.other_slots, `context N zigzag`
 * Graph.context, `adds` Graph.adds, `halves N` Graph.halves.
 *
 * Values are printed in the order of their ids, nodes in their own order, and
 * origins in the order in which nodes first mention them, so that equal
 * graphs print alike and a graph that was read back prints the same.
 *
 * print_val.c prints values, this file nodes and the graph.
 */
#include "ir/text/print.h"
#include "ir/text/text.h"
#include "ir/verify/verify.h"

#include <stdlib.h>
#include <string.h>

const char *const text_prop[] = {
	"bound", "static", "canon", "loss", "bwd", "upd", "fused", "layout",
	"planned", "placed", NULL
};

const char *const text_phase[PH_COUNT] = {
	"forward", "recompute", "backward", "weight", "update"
};

const char *const text_kind[V_KIND_COUNT] = {
	"gone", "input", "param", "buffer", "const", "state"
};

static bool
is_default(const struct attr_info *a, const char *p)
{
	switch (a->type) {
	case AT_LIST:  return ((const IntList *)p)->n == 0;
	case AT_FLOAT: return memcmp(p, &a->def, sizeof a->def) == 0;
	default:       return memcmp(p, &a->idef, sizeof a->idef) == 0;
	}
}

static void
print_attr(FILE *out, const struct attr_info *a, const char *p)
{
	const IntList *l = (const IntList *)p;
	int64_t i;
	double x;

	if (a->type == AT_LIST) {
		text_ints(out, l->n, l->v);
	} else if (a->type == AT_FLOAT) {
		memcpy(&x, p, sizeof x);
		text_float(out, x, DT_F64);
	} else {
		bool type = strcmp(a->name, "to") == 0
			|| strcmp(a->name, "dt") == 0;

		memcpy(&i, p, sizeof i);
		if (type && i > DT_NONE && i < DT_COUNT)
			fputs(dtype_info[i].text, out);
		else
			fprintf(out, "%lld", (long long)i);
	}
}

static void
print_attrs(FILE *out, Op op, const Attr *attr)
{
	int n;
	const struct attr_info *a = op_attrs(op, &n);
	bool any = false;

	for (int i = 0; i < n; i++) {
		const char *p = (const char *)attr + a[i].offset;

		if (is_default(&a[i], p))
			continue;
		fprintf(out, "%s%s=", any ? ", " : " {", a[i].name);
		print_attr(out, &a[i], p);
		any = true;
	}
	if (any)
		putc('}', out);
}

static void
print_arg(FILE *out, int arg)
{
	fprintf(out, "%c%d", arg < 0 ? 't' : 'a', arg < 0 ? ~arg : arg);
}

/* sep stands in front of each statement, end before the bracket closes. */
static void
print_body(FILE *out, const Node *n)
{
	const struct body *b = n->body;

	fputs(" [", out);
	for (int i = 0; i < b->nop; i++) {
		const struct scalar_op *m = &b->op[i];

		fprintf(out, "\n\t\tt%d: %s = %s", i,
		        dtype_info[m->dt].text, op_info[m->op].text);
		for (int k = 0; k < m->narg; k++) {
			fputs(k ? ", " : " ", out);
			print_arg(out, m->arg[k]);
		}
		print_attrs(out, m->op, &m->attr);
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
first_output(const Node *n)
{
	for (int i = 0; i < n->nout; i++)
		if (n->out[i])
			return n->out[i];
	return 0;
}

/* All of a node but its origins and body. */
static void
print_node_head(FILE *out, const Graph *g, const Node *n)
{
	for (int i = 0; i < outputs_shown(n); i++) {
		fputs(i ? ", " : "", out);
		text_ref(out, g, n->out[i]);
		if (n->out[i]) {
			fputs(": ", out);
			text_type(out, &g->val[n->out[i]]);
			text_marks(out, g, &g->val[n->out[i]]);
		}
	}
	fprintf(out, "%s= %s", n->nout ? " " : "_ ", op_info[n->op].text);
	for (int i = 0; i < n->nin; i++) {
		fputs(i ? ", " : " ", out);
		text_ref(out, g, n->in[i]);
	}
	print_attrs(out, n->op, &n->attr);
	if (n->phase != PH_FORWARD)
		fprintf(out, " @%s", text_phase[n->phase]);
	if (n->count_pass)
		fprintf(out, " count_pass %d", n->count_pass);
	if (n->of)
		text_mark(out, g, "again", first_output(&g->node[n->of]));
	if (n->wait)
		text_mark(out, g, "wait", first_output(&g->node[n->wait]));
	for (int i = 0; i < n->ninlined; i++) {
		ValId v = first_output(&g->node[n->inlined[i]]);

		if (i == 0) {
			text_mark(out, g, "inlines", v);
			continue;
		}
		fputs(", ", out);
		text_ref(out, g, v);
	}
	if (n->workspace)
		fprintf(out, " workspace %lld", (long long)n->workspace);
	if (n->workspace && n->workspace_at >= 0)
		fprintf(out, " at %lld", (long long)n->workspace_at);
}

static void
print_origin(FILE *out, const struct origin *o, bool first)
{
	fputs(first ? " from " : ", ", out);
	text_quoted(out, o->name);
	putc(' ', out);
	text_word(out, *o->op ? o->op : "?");
}

/* ---- whole graphs ---- */

/* Numbers for origins: equal ones share one, and numbers rise in the order of
 * first mention. */
struct numbering {
	struct origin_table table;
	uint32_t *number, *index;       /* of an origin; 0: none; and back */
	uint32_t *scratch;
	uint32_t count;
};

static int
by_origin_id(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static struct numbering
new_numbering(Arena *tmp, const Graph *g)
{
	size_t size = sizeof(uint32_t), n = (size_t)g->norigin + 1;
	int longest = 0;

	FOR_NODES (node, g)
		if (node->norigin > longest)
			longest = node->norigin;
	return (struct numbering){
		{ .arena = tmp, .g = g }, arena_array(tmp, n, size),
		arena_array(tmp, n, size),
		arena_array(tmp, (size_t)longest + 1, size), 0
	};
}

static uint32_t
number_of(struct numbering *t, const Graph *g, uint32_t o)
{
	uint32_t first;

	if (t->number[o])
		return t->number[o];
	first = origin_find(&t->table, &g->origin[o]);
	if (!first) {
		first = origin_add(&t->table, o);
		t->number[o] = ++t->count;
		t->index[t->count] = o;
	}
	return t->number[o] = t->number[first];
}

static void
print_origins(FILE *out, const Graph *g, const Node *n, struct numbering *t)
{
	int shown = 0;

	for (int i = 0; i < n->norigin; i++)
		t->scratch[i] = number_of(t, g, n->origin[i]);
	qsort(t->scratch, (size_t)n->norigin, sizeof *t->scratch, by_origin_id);
	for (int i = 0; i < n->norigin; i++)
		if (i == 0 || t->scratch[i] != t->scratch[i - 1])
			print_origin(out, &g->origin[t->index[t->scratch[i]]],
			             shown++ == 0);
}

enum { SHOWN = 1, MENTIONED = 2 };

static void
mention_marks(unsigned char *seen, const Val *v)
{
	seen[v->of] |= MENTIONED;
	seen[v->low_precision_of] |= MENTIONED;
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
print_value_list(FILE *out, const Graph *g, const unsigned char *seen)
{
	FOR_VALS (v, g) {
		bool shown = seen[val_id(g, v)] & SHOWN;

		if (!seen[val_id(g, v)] || (shown && v->kind == V_TEMP))
			continue;
		fprintf(out, "\t%s ", text_kind[shown ? v->kind : V_TEMP]);
		text_name(out, '%', v->name);
		fputs(": ", out);
		text_type(out, v);
		if (shown) {
			text_marks(out, g, v);
			text_contents(out, g, v);
		} else {
			text_placement(out, "placement", &v->placement);
		}
		putc('\n', out);
	}
}

void
text_print(const Graph *g, FILE *out)
{
	Arena *tmp = arena_new();
	struct numbering t = new_numbering(tmp, g);
	uint32_t hidden = g->props & ~graph_props(g);

	fputs("graph ", out);
	text_name(out, '@', *g->name ? g->name : "?");
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
	if (g->ranks)
		fprintf(out, "\tranks %lld\n", (long long)g->ranks);
	if (g->replicas)
		fprintf(out, "\treplicas %lld%s\n", (long long)g->replicas,
		        g->exact ? " exactly" : "");
	if (g->zero_group)
		fprintf(out, "\tzero_group %lld\n",
		        (long long)g->zero_group);
	if (g->expert_group)
		fprintf(out, "\texpert_group %lld\n",
		        (long long)g->expert_group);
	if (g->stages)
		fprintf(out, "\tstage %lld %lld %lld", (long long)g->stage,
		        (long long)g->stages, (long long)g->slots);
	if (g->stages && g->weight_slots)
		fprintf(out, " weight %lld %lld", (long long)g->through_slots,
		        (long long)g->weight_slots);
	if (g->stages)
		putc('\n', out);
	if (g->other_slots)
		fprintf(out, "\tother_slots %lld\n",
		        (long long)g->other_slots);
	if (g->context)
		fprintf(out, "\tcontext %lld%s\n", (long long)g->context,
		        g->zigzag ? " zigzag" : "");
	if (g->adds)
		fputs("\tadds\n", out);
	if (g->halves)
		fprintf(out, "\thalves %d\n", (int)g->halves);
	print_value_list(out, g, values_shown(tmp, g));
	FOR_NODES (n, g) {
		putc('\t', out);
		print_node_head(out, g, n);
		print_origins(out, g, n, &t);
		if (n->body)
			print_body(out, n);
		putc('\n', out);
	}
	if (g->loss) {
		fputs("\tloss ", out);
		text_ref(out, g, g->loss);
		putc('\n', out);
	}
	fputs("}\n", out);
	arena_free(tmp);
}
