/* Every way in which every rule lets a cut through, alone: a graph of one op,
 * sharded so that exactly this cut is used, with its gradient and the update
 * of what it reads, against the same graph on one rank.
 *
 *     shard_rules [OP]
 *
 * Cuts are tried at every operand and result: single dims, leading dims taken
 * as one, two and three stretches, extents that do not divide, on 2, 3 and 4
 * ranks.  Rows of backward are reached through autodiff, loops through fuse.
 * A row of ops.h that has a rule and no case ends the program with status 1,
 * but for what only a GPU runs: tests/cuda cuts that.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/placement.h"
#include "codegen/cpu/cpu.h"
#include "ir/text/text.h"
#include "passes/tensor_parallel/strategies.h"
#include "tests/ref/pair.h"
#include "tests/shard/fill.h"
#include "tests/shard/rules.h"
#include "ir/infer/infer.h"
#include "ir/verify/verify.h"

enum { PORTS = 16, WAYS = 200 };

static const char *const grad_of[OP_COUNT] = {
	[OP_NONE] = "none",
#define OP(id, text, sig, attr, rules, emit) [OP_##id] = rules,
#define RULES(shape, eval, dynamic, cost, grad, shard) #grad
#include "ir/ops.h"
};

static const char *const rule_of[OP_COUNT] = {
	[OP_NONE] = "none",
#define OP(id, text, sig, attr, rules, emit) [OP_##id] = rules,
#define RULES(shape, eval, dynamic, cost, grad, shard) #shard
#include "ir/ops.h"
};

struct way_list {
	Placement at[WAYS][PORTS];
	int n, nvalue;
};

struct bench {
	Diag *diag;
	FILE *said;                     /* by it */
	char *what;
	size_t size;
	const char *text;               /* of the case */
	const char *flags;              /* of both forms */
	int64_t below;                  /* bound of integers in it */
	bool seen[OP_COUNT];            /* with something cut */
	int cases, ways, faults;
};

/* From here on what is said is about something else. */
static void
listen(struct bench *b)
{
	diag_free(b->diag);
	b->diag = diag_new("shard_rules", b->said);
	rewind(b->said);
}

/* ---- graphs ---- */

/* Transfers of host memory come when values lie on ranks already. */
static bool
has_rule(Op op)
{
	return !(op_info[op].flags & F_HOST)
		&& strcmp(rule_of[op], "none") != 0
		&& strcmp(rule_of[op], "comm") != 0;
}

static ValId
scalar_of(struct bench *b, Graph *g, ValId y, ValId by)
{
	ValId in[2] = { y, by };
	Attr a = attr_default(OP_REDUCE_SUM);

	a.REDUCE_SUM.keepdims = 0;
	in[0] = emit_op(g, b->diag, OP_MUL, 2, in, NULL, 0);
	return emit_op(g, b->diag, OP_REDUCE_SUM, 1, in, &a, 0);
}

/* A loss of the first result, in which no two elements are alike, and of a
 * parameter, which there is to be in any case. */
static void
add_loss(struct bench *b, Graph *g)
{
	const Node *n = &g->node[1];
	ValId y = n->out[0], w, z, sum[2];

	for (int k = 1; k < n->nout; k++)
		g->val[n->out[k]].output = true;
	if (g->val[y].dt != DT_F32) {
		Attr a = attr_default(OP_CAST);

		a.CAST.to = DT_F32;
		y = emit_op(g, b->diag, OP_CAST, 1, &y, &a, 0);
	}
	w = val_new(g, V_INPUT, "loss.w", DT_F32, g->val[y].shape);
	z = val_new(g, V_PARAM, "loss.z", DT_F32, SHAPE(2));
	sum[0] = scalar_of(b, g, y, w);
	sum[1] = scalar_of(b, g, z, z);
	g->loss = emit_op(g, b->diag, OP_ADD, 2, sum, NULL, 0);
	g->val[g->loss].output = true;
}

static Graph *
read_case(struct bench *b)
{
	char text[2048];
	int n = snprintf(text, sizeof text, "graph @case {\n\t%s\n}\n",
	                 b->text);
	Graph *g = text_parse("case", text, (size_t)n, b->diag);

	if (!g)
		return NULL;
	add_loss(b, g);
	g->props = graph_props(g);
	return graph_verify(g, b->diag) ? g : NULL;
}

static bool
run_passes(struct bench *b, struct run *r, Graph *g, const char *passes)
{
	Pass p = { .target = &target_cpu, .diag = b->diag, .opt = &r->cli.opt,
	           .keep = r->arena };
	const struct dump_request none = { NULL, NULL };

	return pass_run(&p, g, passes, NULL, &none);
}

static bool
start(struct bench *b, struct run *r, Graph *g, const char *passes, bool poles)
{
	if (!g || !run_passes(b, r, g, passes)) {
		graph_free(g);
		return false;
	}
	run_adopt(r, g);
	r->env.eps = 1e-4;
	r->env.clip = 0.1;
	r->env.momentum = 0.9;
	r->env.lr = 0.1;
	shard_fill(r, b->below, poles ? 0.5 : -1, poles ? 1.5 : 1);
	return run_step(r, 0);
}

/* ---- ways ---- */

static void
add_way(struct way_list *l, const Placement *at)
{
	for (int i = 0; i < l->n; i++) {
		bool same = true;

		for (int p = 0; p < l->nvalue && same; p++)
			same = placement_eq(&l->at[i][p], &at[p]);
		if (same)
			return;
	}
	if (l->n < WAYS)
		memcpy(l->at[l->n++], at, (size_t)l->nvalue * sizeof *at);
}

static void
try_cut(const Graph *g, int64_t ranks, int value_index, const Placement *cut,
        struct way_list *l)
{
	const Node *n = &g->node[1];
	ValId v = value_index < n->nin ? n->in[value_index] : n->out[value_index - n->nin];
	Placement at[PORTS];
	Shape local;

	if (v && placement_local(cut, ranks, &g->val[v].shape, &local)
	    && sharding_follow(g, n, ranks, value_index, cut, at))
		add_way(l, at);
}

/* Stretches of an extent: `n` equal ones, or a long one behind short ones. */
static void
try_stretches(const Graph *g, int64_t ranks, int value_index, int axis,
              int64_t extent, struct way_list *l)
{
	for (int n = 2; n <= 3; n++)
		for (int even = 0; even < 2; even++) {
			Placement s = placement_dim(axis, extent);

			s.nsegment = n;
			for (int i = 0; i < n; i++)
				s.segment[i] = even ? extent / n : ranks;
			s.segment[n - 1] = extent - (n - 1) * s.segment[0];
			if (s.segment[n - 1] > 0)
				try_cut(g, ranks, value_index, &s, l);
		}
}

static void
find_ways(const Graph *g, int64_t ranks, struct way_list *l)
{
	const Node *n = &g->node[1];

	l->n = 0;
	l->nvalue = n->nin + n->nout;
	for (int value_index = 0; value_index < l->nvalue; value_index++) {
		ValId v = value_index < n->nin ? n->in[value_index] : n->out[value_index - n->nin];
		const Shape *s = &g->val[v].shape;

		for (int axis = 0; v && axis < s->rank; axis++) {
			Placement cut = placement_dim(axis, 1);

			for (int lead = axis; lead >= 0; lead--) {
				cut.first_axis = lead;
				cut.segment[0] *= s->dim[lead];
				try_cut(g, ranks, value_index, &cut, l);
			}
			try_stretches(g, ranks, value_index, axis, s->dim[axis], l);
		}
	}
}

/* ---- sharding by hand ---- */

/* at: [n + 1]. */
static struct strategy_set
only(Arena *arena, const Placement *at, int n)
{
	struct strategy *w = arena_array(arena, 1, sizeof *w);

	w->at = arena_copy(arena, at, (size_t)(n + 1) * sizeof *at);
	return (struct strategy_set){ .strategy = w, .n = 1 };
}

/* How a parameter is given: 0 whole with a partial gradient, 1 as the op wants
 * it, 2 whole with a complete gradient.  What is overwritten is no copy. */
static Placement
given_as(const struct shard *s, ValId v, const Placement *want, int form)
{
	Placement at = { .kind = PLACEMENT_REPLICATE };

	if (s->g->val[v].kind == V_BUFFER)
		return *want;
	if (s->g->val[v].kind != V_PARAM)
		return at;
	if (form == 1 && want->kind == PLACEMENT_SHARD && want->replication == 1
	    && want->first_axis == want->axis)
		return *want;
	if (form != 2 && s->grad[v])
		at.kind = PLACEMENT_REPLICATE_PARTIAL;
	return at;
}

static bool
apply(struct bench *b, Graph *g, int64_t ranks, const Placement *way, int form,
      Arena *tmp)
{
	Pass p = { .target = &target_cpu, .diag = b->diag };
	struct shard s = { .pass = &p, .g = g, .tmp = tmp, .ranks = ranks };
	const Node *n = &g->node[1];
	Placement at[PORTS], whole[PORTS] = { { .kind = PLACEMENT_REPLICATE } };
	int nvalue = n->nin + n->nout;

	s.grad = sharding_requires_grad(g, tmp);
	s.uses = graph_uses(g, tmp);
	s.node = arena_array(tmp, g->nnode, sizeof *s.node);
	s.source = arena_array(tmp, g->nval, sizeof *s.source);
	memcpy(at, way, (size_t)nvalue * sizeof *at);
	for (ValId v = 1; v < g->nval; v++)
		s.source[v] = only(tmp, whole, 1);
	for (int k = 0; k < nvalue; k++) {
		ValId v = k < n->nin ? n->in[k] : n->out[k - n->nin];

		if (at[k].kind == PLACEMENT_REPLICATE_PARTIAL && !s.grad[v])
			at[k].kind = PLACEMENT_REPLICATE;
		if (v && k < n->nin) {
			Placement as[2] = { given_as(&s, v, &at[k], form) };

			s.source[v] = only(tmp, as, 1);
		}
	}
	for (NodeId i = 1; i < g->nnode; i++)
		s.node[i] = only(tmp, whole, g->node[i].nin + g->node[i].nout);
	s.node[1] = only(tmp, at, nvalue);
	if (!shard_apply(&s))
		return false;
	graph_dce(g);
	g->props |= P_SHARD;
	return sharding_fill_placements(g, b->diag) && graph_verify(g, b->diag);
}

static void
take_note(struct bench *b, const Graph *g)
{
	FOR_NODES (n, g) {
		bool cut = false;

		for (int k = 0; k < n->nin; k++)
			cut |= g->val[n->in[k]].placement.kind
				> PLACEMENT_REPLICATE_PARTIAL;
		for (int k = 0; k < n->nout; k++)
			cut |= g->val[n->out[k]].placement.kind
				> PLACEMENT_REPLICATE_PARTIAL;
		b->seen[n->op] |= cut;
	}
}

static void
say_way(const struct bench *b, const Placement *way, int nvalue, int64_t ranks,
        int form)
{
	fputc('\0', b->said);
	fflush(b->said);
	printf("%sFAIL %s, %lld ranks, form %d:", b->what, b->text,
	       (long long)ranks, form);
	for (int p = 0; p < nvalue; p++) {
		const Placement *s = &way[p];

		printf(" %c", "IRSP"[s->kind]);
		if (s->kind != PLACEMENT_SHARD)
			continue;
		printf("%d..%d/%lld", s->first_axis, s->axis,
		       (long long)s->replication);
		for (int i = 0; i < s->nsegment; i++)
			printf("%c%lld", i ? ',' : '(',
			       (long long)s->segment[i]);
		printf(")");
	}
	printf("\n");
}

/* ---- one case ---- */

static void
try_way(struct bench *b, const struct run *one, const Graph *g,
        int64_t ranks, const Placement *way, int form, bool poles)
{
	static const char *const passes[] = { "autodiff,optim",
		"autodiff,optim,fuse,settle,layout" };
	struct pair p = { .a = *one };
	Graph *copy = graph_clone(g);
	bool ok;

	b->ways++;
	listen(b);
	ok = run_parse_line(&p.b, b->flags) == CLI_GO
		&& apply(b, copy, ranks, way, form, p.b.arena);
	if (!ok)
		graph_free(copy);
	ok = ok && start(b, &p.b, copy, passes[b->ways % 3 == 0], poles);
	if (ok) {
		p.quiet = true;
		pair_list(&p);
		pair_compare(&p, 0);
		ok = !p.faults;
	}
	if (!ok) {
		b->faults++;
		say_way(b, way, g->node[1].nin + g->node[1].nout, ranks, form);
	} else {
		take_note(b, p.b.g);
	}
	run_close(&p.b);
}

static void
try_case(struct bench *b, const char *text, int64_t below)
{
	static struct way_list l;
	struct run one = { .dir = "" };
	Graph *g;
	bool poles;

	b->text = text;
	b->below = below;
	b->flags = b->cases % 4 == 1 ? "x.ck --optimizer=adamw --ema"
		: b->cases % 4 == 2 ? "x.ck --optimizer=sgd --grad-accum=2"
		: strstr(text, " tanh ") ? "x.ck --optimizer=lion"
		: b->cases % 4 == 3 ? "x.ck --optimizer=adafactor"
		: "x.ck --optimizer=sgdm";
	b->cases++;
	listen(b);
	g = read_case(b);
	poles = g && op_info[g->node[1].op].flags & F_POLES;
	if (!g || run_parse_line(&one, b->flags) != CLI_GO
	    || !start(b, &one, graph_clone(g), "autodiff,optim", poles)) {
		fputc('\0', b->said);
		fflush(b->said);
		printf("%sFAIL %s: on one rank\n", b->what, text);
		b->faults++;
		graph_free(g);
		return;
	}
	for (int64_t t = 2; t <= 4; t++) {
		find_ways(g, t, &l);
		for (int i = 0; i < l.n; i++)
			try_way(b, &one, g, t, l.at[i], b->ways % 3, poles);
	}
	graph_free(g);
	run_close(&one);
}

/* ---- element-wise rows ---- */

static const char *
class_of(Op op)
{
	return op_info[op].flags & F_INTS ? "i32"
		: op_info[op].flags & F_BOOLS ? "bool" : "f32";
}

/* Operands of one shape, and one that is broadcast over rows. */
static void
try_element_wise(struct bench *b, Op op)
{
	char text[512], type[3][8], *at = text, *end = text + sizeof text;
	const char *attr = op == OP_DROPOUT ? " {ratio=0.3, stream=1}"
		: op == OP_BERNOULLI ? " {stream=1}"
		: "";
	const char *to = op_info[op].flags & F_TO_BOOL ? "bool" : class_of(op);
	int n = op == OP_DROPOUT ? 1 : op_info[op].min;

	for (int k = 0; k < n; k++) {
		snprintf(type[k], sizeof type[k], "%s",
		         op == OP_WHERE && k == 0 ? "bool" : class_of(op));
		at += snprintf(at, (size_t)(end - at), "%s %%x%d: %s[%s]\n\t",
		               type[k][0] == 'f' ? "param" : "input", k,
		               type[k], k == 1 ? "6,5" : "4,6,5");
	}
	at += snprintf(at, (size_t)(end - at), "%%y: %s[4,6,5] = %s", to,
	               op_info[op].text);
	for (int k = 0; k < n; k++)
		at += snprintf(at, (size_t)(end - at), "%s %%x%d",
		               k ? "," : "", k);
	snprintf(at, (size_t)(end - at), "%s", attr);
	try_case(b, text, 4);
}

int
main(int argc, char **argv)
{
	struct bench b = { .cases = 0 };
	Op alone = argc > 1 ? op_find(argv[1]) : OP_NONE;

	b.said = open_memstream(&b.what, &b.size);
	if (!b.said)
		return 2;
	for (Op op = OP_NONE + 1; op < OP_COUNT; op++)
		if (op_info[op].flags & F_EW && has_rule(op)
		    && strcmp(grad_of[op], "none") != 0 && op != OP_CAST
		    && (!alone || op == alone))
			try_element_wise(&b, op);
	for (const struct rule_case *c = rule_case; c->text; c++)
		if (!alone || op_find(c->op) == alone)
			try_case(&b, c->text, c->below);
	/* transfers to host memory, between replicas that share experts, and
	 * between stages come when ranks have their shards: e2e/offload.py,
	 * ref/experts.c, ref/stages.c */
	for (Op op = OP_NONE + 1; op < OP_COUNT && !alone; op++)
		if (has_rule(op) && op != OP_MATMUL_END
		    && !(op_info[op].flags & (F_HOST | F_STAGES))
		    && op != OP_GATHER_ROWS && op != OP_SUM_ROWS
		    && op != OP_EXCHANGE_ROWS
		    && !b.seen[op]) {
			printf("FAIL %s: its rule '%s' has no case\n",
			       op_info[op].text, rule_of[op]);
			b.faults++;
		}
	printf("%d cases, %d ways, %d faults\n", b.cases, b.ways, b.faults);
	diag_free(b.diag);
	fclose(b.said);
	free(b.what);
	return b.faults > 0;
}
