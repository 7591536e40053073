/* Mutants of sharded graphs: a conversion between ranks removed, doubled,
 * exchanged or moved, a state, an extent or a part changed.  Whatever changes
 * a number must be rejected by the verifier.
 *
 *     shard_mutate DIR STRIDE MODEL-AND-FLAGS...
 *
 * Each argument is a command line of ckc with a graph as it is after pass
 * `precision`; DIR has the file `setup`, see train.h.  Each mutation is tried
 * at every STRIDE-th of its sites.  After `optim` it is the whole step that is
 * changed, after `shard` the forward graph from which the rest is then made.
 *
 * A mutant that the verifier accepts is run on all ranks; one that then
 * differs from the model on one rank, or cannot be run, ends the program with
 * status 1.  With STRIDE 0 every site is tried and rejected mutants are run
 * as well, to say how many of them change a number.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/cpu/cpu.h"
#include "ir/shard/shard.h"
#include "tests/ref/pair.h"

struct site {
	Graph *g;
	Diag *quiet;
	NodeId node;
	ValId val;
};

/* A change at the site; false if there is none of that kind. */
typedef bool Mutation(struct site *, int variant);

struct tally {
	int made, rejected, same, slipped, changed;
};

struct bench {
	const char *dir, *line;
	struct run one;                 /* rank, after a step */
	struct tally all;
	bool everything;
	long stride;
	Graph *copy;                    /* to be mutated */
	Diag *quiet;
};

/* ---- tools ---- */

static Node *
node_of(const struct site *s)
{
	return &s->g->node[s->node];
}

static bool
is_between(const Node *n)
{
	return op_info[n->op].flags & F_COMM || n->op == OP_REPLICATE;
}

static Val *
operand(const struct site *s)
{
	return &s->g->val[node_of(s)->in[0]];
}

static Val *
result(const struct site *s)
{
	return &s->g->val[node_of(s)->out[0]];
}

/* What v stands for is said of `to` instead. */
static void
pass_on(Graph *g, ValId v, ValId to)
{
	Val *a = &g->val[v], *b = &g->val[to];

	if (b->kind == V_TEMP && !b->param)
		b->param = a->param;
	if (b->kind == V_TEMP && !b->grad_of)
		b->grad_of = a->grad_of;
	a->param = a->grad_of = 0;
	if (a->output)
		b->output = true;
	a->output = false;
	if (g->loss == v)
		g->loss = to;
}

/* Node `id` vanishes; `last` goes behind node `at`, if not 0. */
static void
reorder(Graph *g, NodeId gone, NodeId last, NodeId at)
{
	NodeId *order = calloc(g->nnode, sizeof *order);
	uint32_t n = 0;

	for (NodeId i = 1; i < g->nnode; i++) {
		if (i != gone && i != last)
			order[n++] = i;
		if (i == at)
			order[n++] = last;
	}
	graph_reorder(g, order, n);
	free(order);
}

static void
read_instead(Graph *g, ValId v, ValId y)
{
	NodeId def = g->val[y].def;

	val_replace(g, v, y, 1, g->nnode);
	for (int k = 0; k < g->node[def].nin; k++)
		if (g->node[def].in[k] == y)
			g->node[def].in[k] = v;
}

/* An op more behind the result of the site's node, for all its readers. */
static bool
insert(struct site *s, Op op, const Attr *attr)
{
	Graph *g = s->g;
	ValId v = node_of(s)->out[0];
	ValId y = emit_op(g, s->quiet, op, 1, &v, attr, s->node);

	if (!y)
		return false;
	g->node[g->nnode - 1].phase = node_of(s)->phase;
	read_instead(g, v, y);
	pass_on(g, v, y);
	reorder(g, 0, g->nnode - 1, s->node);
	return true;
}

/* ---- conversions ---- */

static bool
remove_one(struct site *s, int variant)
{
	Node *n = node_of(s);
	ValId x = n->in[0], y = n->out[0];

	(void)variant;
	if (!is_between(n) || !shape_eq(&operand(s)->shape,
	                                &result(s)->shape))
		return false;
	val_replace(s->g, y, x, 1, s->g->nnode);
	pass_on(s->g, y, x);
	reorder(s->g, s->node, 0, 0);
	return true;
}

static bool
double_one(struct site *s, int variant)
{
	static const Op more[] = { OP_ALL_REDUCE, OP_REPLICATE };
	Node *n = node_of(s);
	Attr a = n->attr;

	if (!is_between(n))
		return false;
	if (variant == 2)
		return shape_eq(&operand(s)->shape, &result(s)->shape)
			&& insert(s, n->op, &a);
	a = attr_default(more[variant]);
	return more[variant] != n->op && insert(s, more[variant], &a);
}

/* Ops of the same shapes in place of each other. */
static bool
exchange(struct site *s, int variant)
{
	static const struct { Op from, to; int64_t side; } way[] = {
		{ OP_ALL_REDUCE, OP_REPLICATE, 0 },
		{ OP_ALL_REDUCE, OP_COPY, 0 },
		{ OP_REPLICATE, OP_ALL_REDUCE, 0 },
		{ OP_REPLICATE, OP_ALL_REDUCE, 1 },
		{ OP_ALL_GATHER, OP_OWN_GRAD, 0 },
		{ OP_OWN_GRAD, OP_ALL_GATHER, 0 },
		{ OP_OWN_GRAD, OP_ALL_GATHER, 1 },
		{ OP_REDUCE_SCATTER, OP_OWN, 0 },
		{ OP_REDUCE_SCATTER, OP_OWN, 1 },
		{ OP_OWN, OP_REDUCE_SCATTER, 0 },
	};
	Node *n = node_of(s);
	Op to = way[variant].to;
	Attr a = attr_default(to);
	int64_t *side;

	if (n->op != way[variant].from)
		return false;
	if (to != OP_ALL_REDUCE && to != OP_REPLICATE && to != OP_COPY) {
		Split cut = split_of_attr(n);

		split_to_attr(&cut, to, &a);
	}
	n->op = to;
	n->attr = a;
	side = attr_int_of(to, &n->attr, to == OP_OWN ? "from" : "to");
	if (side)
		*side = way[variant].side;
	return true;
}

static bool
flip_side(struct site *s, int variant)
{
	Node *n = node_of(s);
	int64_t *side = attr_int_of(n->op, &n->attr, "to");

	if (!is_between(n))
		return false;
	if (variant) {
		if (n->op != OP_ALL_REDUCE)
			return false;
		n->attr.ALL_REDUCE.reduction = 1;
		return true;
	}
	if (!side)
		side = attr_int_of(n->op, &n->attr, "from");
	if (!side)
		return false;
	*side = !*side;
	return true;
}

/* The cut that the op's attributes say. */
static bool
change_cut(struct site *s, int variant)
{
	Node *n = node_of(s);
	Split cut;
	Attr a;

	if (!(op_info[n->op].flags & F_COMM) || n->op == OP_ALL_REDUCE
	    || n->op == OP_ALL_TO_ALL)
		return false;
	cut = split_of_attr(n);
	switch (variant) {
	case 0:                         /* the dim before, or the last one */
		cut.axis = cut.axis ? cut.axis - 1
			: operand(s)->shape.rank - 1;
		cut.lead = cut.axis;
		break;
	case 1:
		cut.part[0]++;
		break;
	case 2:                         /* less, of the same piece */
		cut.part[cut.npart - 1]--;
		break;
	case 3:                         /* stretches as one */
		for (int i = 1; i < cut.npart; i++)
			cut.part[0] += cut.part[i];
		if (cut.npart == 1)
			return false;
		cut.npart = 1;
		break;
	case 4:                         /* one as two stretches */
		if (cut.npart > 1 || cut.part[0] % (2 * s->g->ranks))
			return false;
		cut.npart = 2;
		cut.part[0] /= 2;
		cut.part[1] = cut.part[0];
		break;
	case 5:                         /* with the dim before */
		if (cut.lead == 0)
			return false;
		cut.lead--;
		break;
	default:
		cut.shared = cut.shared == 1 ? 2 : 1;
		break;
	}
	a = n->attr;
	split_to_attr(&cut, n->op, &a);
	if (attr_int_of(n->op, &a, "to"))
		a.ALL_GATHER.to = n->attr.ALL_GATHER.to;
	if (n->op == OP_OWN)
		a.OWN.from = n->attr.OWN.from;
	n->attr = a;
	return true;
}

static bool
change_exchange(struct site *s, int variant)
{
	Node *n = node_of(s);
	Attr a = n->attr;

	if (n->op != OP_ALL_TO_ALL)
		return false;
	if (variant == 0)
		n->attr.ALL_TO_ALL.to_part.v[0]++;
	else if (variant == 1)
		n->attr.ALL_TO_ALL.to_axis = a.ALL_TO_ALL.axis;
	else
		n->attr.ALL_TO_ALL.axis = a.ALL_TO_ALL.to_axis;
	return true;
}

/* An all_reduce moves to where a reader's result is: 0 at every reader of one
 * element-wise operand, 1 at every other. */
static bool
move_behind(struct site *s, int variant)
{
	Graph *g = s->g;
	Node *n = node_of(s), *next = n + 1;
	ValId x, y, in, fresh;
	NodeId at;
	Attr a = n->attr;
	Op op = n->op;

	if (op != OP_ALL_REDUCE && op != OP_REPLICATE)
		return false;
	x = n->in[0];
	y = n->out[0];
	for (; next < g->node + g->nnode; next++)
		for (int k = 0; k < next->nin; k++)
			if (next->in[k] == y)
				goto found;
	return false;
found:
	if (variant != !(op_info[next->op].flags & F_EW))
		return false;
	at = node_id(g, next);
	for (int k = 0; k < next->nin; k++)
		if (next->in[k] == y)
			next->in[k] = x;
	in = next->out[0];
	fresh = emit_op(g, s->quiet, op, 1, &in, &a, at);
	if (!fresh)
		return false;
	g->node[g->nnode - 1].phase = g->node[at].phase;
	read_instead(g, in, fresh);
	pass_on(g, in, fresh);
	reorder(g, 0, g->nnode - 1, at);
	return true;
}

/* A reduction moves before the op that made its operand: to one of its
 * operands instead. */
static bool
move_before(struct site *s, int variant)
{
	Graph *g = s->g;
	Node *n = node_of(s), *def;
	ValId x, y, in, fresh;
	Attr a = n->attr;
	NodeId at;

	if (n->op != OP_ALL_REDUCE)
		return false;
	x = n->in[0];
	y = n->out[0];
	at = g->val[x].def;
	def = &g->node[at];
	if (!at || variant >= def->nin || !def->in[variant])
		return false;
	in = def->in[variant];
	if (dtype_info[g->val[in].dt].cls != 'f')
		return false;
	fresh = emit_op(g, s->quiet, OP_ALL_REDUCE, 1, &in, &a, at);
	if (!fresh)
		return false;
	g->node[g->nnode - 1].phase = g->node[at].phase;
	g->node[at].in[variant] = fresh;
	val_replace(g, y, x, 1, g->nnode);
	pass_on(g, y, x);
	reorder(g, s->node, g->nnode - 1, at - 1);
	return true;
}

/* ---- what else sharding made ---- */

static bool
change_norm(struct site *s, int variant)
{
	Node *n = node_of(s);

	if (n->op != OP_SUM_SQUARES && n->op != OP_GRAD_NORM)
		return false;
	switch (variant) {
	case 0:                         /* the first is left out */
		if (n->nin < 2)
			return false;
		n->in++;
		n->nin--;
		return true;
	case 1:                         /* the last is */
		if (n->nin < 2)
			return false;
		n->nin--;
		if (n->op == OP_GRAD_NORM)
			n->attr.GRAD_NORM.sums = 0;
		return true;
	case 2:                         /* one twice */
		if (n->nin < 2)
			return false;
		n->in[1] = n->in[0];
		return true;
	case 3:
		if (n->op != OP_GRAD_NORM)
			return false;
		n->attr.GRAD_NORM.sums = !n->attr.GRAD_NORM.sums;
		return true;
	default:
		return false;
	}
}

/* Every sum of squares goes in as often as its factor says. */
static bool
change_factor(struct site *s, int variant)
{
	Graph *g = s->g;
	Node *n = node_of(s);
	const Node *def;

	(void)variant;
	if (n->op != OP_MUL || n->phase != PH_UPDATE)
		return false;
	def = &g->node[g->val[n->in[0]].def];
	if (def->op != OP_SUM_SQUARES)
		return false;
	n->in[1] = val_scalar(g, DT_F32, 1);
	return true;
}

static bool
change_part(struct site *s, int variant)
{
	Node *n = node_of(s);
	int64_t *part = attr_int_of(n->op, &n->attr, "part");

	if (!part || *part <= 0 || is_between(n))
		return false;
	if (variant == 0)
		*part = 0;
	else
		*part += variant == 1 ? 1 : -1;
	return true;
}

/* Stretches of the line of small gradients, heads behind each other ... */
static bool
change_start(struct site *s, int variant)
{
	Node *n = node_of(s);

	if (n->op != OP_SLICE || variant >= n->attr.SLICE.start.n
	    || (n->phase != PH_FORWARD
	        && result(s)->split.kind != SPLIT_S)
	    || operand(s)->split.kind != SPLIT_S
	    || operand(s)->split.axis != variant
	    || n->attr.SLICE.start.v[variant] == 0)
		return false;
	n->attr.SLICE.start.v[variant]--;
	return true;
}

/* ---- states ---- */

static bool
change_kind(struct site *s, int variant)
{
	Val *v = &s->g->val[s->val];

	if (v->split.kind == (SplitKind)variant
	    || ((SplitKind)variant == SPLIT_S && v->shape.rank == 0))
		return false;
	if ((SplitKind)variant == SPLIT_S) {
		int axis = v->shape.rank - 1;

		v->split = split_cut(axis, v->shape.dim[axis] * s->g->ranks);
	} else {
		v->split.kind = (SplitKind)variant;
	}
	return true;
}

static bool
change_split(struct site *s, int variant)
{
	Val *v = &s->g->val[s->val];
	Split *p = &v->split;

	if (p->kind != SPLIT_S)
		return false;
	switch (variant) {
	case 0:
		p->axis = p->axis ? p->axis - 1 : v->shape.rank - 1;
		p->lead = p->axis;
		return true;
	case 1:
		p->part[0]++;
		return true;
	case 2:
		if (p->part[p->npart - 1] < 2)
			return false;
		p->part[p->npart - 1]--;
		return true;
	case 3:
		p->shared = p->shared == 1 ? s->g->ranks : 1;
		return true;
	case 4:
		if (p->npart > 1 || p->part[0] % (2 * s->g->ranks))
			return false;
		p->npart = 2;
		p->part[0] /= 2;
		p->part[1] = p->part[0];
		return true;
	case 5:
		if (p->npart < 2)
			return false;
		for (int i = 1; i < p->npart; i++)
			p->part[0] += p->part[i];
		p->npart = 1;
		return true;
	default:
		return false;
	}
}

static bool
change_extent(struct site *s, int variant)
{
	Val *v = &s->g->val[s->val];
	int axis = v->split.axis;

	if (v->split.kind != SPLIT_S || v->shape.dim[axis] < 2)
		return false;
	v->shape.dim[axis] += variant ? -1 : 1;
	return true;
}

/* ---- the list ---- */

struct kind {
	const char *name;
	Mutation *make;
	int variants;
	bool of_val;                    /* sites are values */
	bool stated;                    /* states are left as they were */
};

static const struct kind kind[] = {
	{ "removed", remove_one, 1, false, false },
	{ "doubled", double_one, 3, false, false },
	{ "exchanged", exchange, 10, false, false },
	{ "other side", flip_side, 2, false, false },
	{ "cut otherwise", change_cut, 7, false, false },
	{ "exchange", change_exchange, 3, false, false },
	{ "moved behind", move_behind, 2, false, false },
	{ "moved before", move_before, 3, false, false },
	{ "norm", change_norm, 4, false, false },
	{ "norm's factor", change_factor, 1, false, false },
	{ "part of an axis", change_part, 3, false, false },
	{ "start of a slice", change_start, 4, false, false },
	{ "state", change_kind, 4, true, true },
	{ "split", change_split, 6, true, true },
	{ "extent", change_extent, 2, true, true },
};
enum { NKIND = sizeof kind / sizeof *kind };

/* ---- judging ---- */

/* Cuts that passes say: the layout's, and of reshapes, whose operand does not
 * tell, the duals of those. */
static bool
is_said(const Graph *g, const Val *v)
{
	const Node *def = &g->node[v->def];

	return v->split.kind == SPLIT_S
		&& (def->phase == PH_FORWARD || def->op == OP_RESHAPE);
}

/* As if the mutated graph had been made so: what nodes write gets the state
 * that follows. */
static void
label_again(Graph *g)
{
	FOR_VALS (v, g)
		if (v->kind == V_TEMP && v->def && !is_said(g, v))
			v->split = (Split){ .kind = SPLIT_I };
	shard_label(g);
}

static bool
run_passes(struct bench *b, Graph *g, const char *passes)
{
	Pass p = { .target = &target_cpu, .diag = b->quiet,
	           .opt = &b->one.cli.opt, .keep = b->one.arena };
	const struct dump_request none = { NULL, NULL };

	return pass_run(&p, g, passes, NULL, &none);
}

/* Whether running it gives the numbers of one rank; the graph is gone. */
static bool
same_numbers(struct bench *b, Graph *g)
{
	struct pair p = { .a = b->one, .quiet = true,
		.tolerance = 1e-9 };
	bool ok;

	p.b.cli = b->one.cli;
	p.b.arena = arena_new();
	p.b.dir = b->dir;
	p.b.quiet = true;
	p.b.diag = NULL;
	run_adopt(&p.b, g);
	p.b.env = b->one.env;
	ok = run_setup(&p.b);
	run_fill(&p.b);
	pair_list(&p);
	ok = ok && run_step(&p.b, 0);
	if (ok && !p.faults)
		pair_compare(&p, 0);
	spmd_free(p.b.s);
	arena_free(p.b.arena);
	graph_free(g);
	return ok && !p.faults;
}

/* The mutant is taken. */
static void
judge(struct bench *b, const struct kind *k, const struct site *s,
      int variant, const char *where, const char *then)
{
	Graph *g = s->g;
	bool found, forward = then != NULL;

	b->all.made++;
	if (!k->stated)
		label_again(g);
	found = !graph_verify(g, b->quiet) || !shard_verify(g, b->quiet)
		|| (forward && !run_passes(b, g, then));
	if (found)
		b->all.rejected++;
	if (found && (!b->everything || forward || !graph_verify(g, b->quiet))) {
		graph_free(g);
		return;
	}
	if (same_numbers(b, g)) {
		b->all.same++;
		return;
	}
	b->all.changed++;
	if (found)
		return;
	b->all.slipped++;
	printf("SLIPPED %s, %s, variant %d, %s at %s\n", b->line, k->name,
	       variant, forward ? "forward" : "step", where);
}

/* One in `stride`, by chance but always the same. */
static bool
is_chosen(const struct bench *b, const struct kind *k, uint32_t at,
          int variant)
{
	uint32_t h = 2166136261u;
	const uint32_t of[] = { (uint32_t)(k - kind), at, (uint32_t)variant };

	for (int i = 0; i < 3; i++)
		h = (h ^ of[i]) * 16777619u ^ h >> 15;
	return b->stride == 0 || h % (uint32_t)b->stride == 0;
}

/* A copy of the graph, or the one that is there: a mutation that is not of
 * the site's kind leaves it as it is. */
static Graph *
fresh(const Graph *g, Graph *copy)
{
	if (copy && copy->nnode == g->nnode && copy->nval == g->nval)
		return copy;
	graph_free(copy);
	return graph_clone(g);
}

static void
try_site(struct bench *b, const Graph *g, const struct kind *k, uint32_t at,
         const char *then)
{
	for (int variant = 0; variant < k->variants; variant++) {
		struct site s = { .quiet = b->quiet };
		char where[200];

		if (!is_chosen(b, k, at, variant))
			continue;
		if (k->of_val)
			s.val = at;
		else
			s.node = at;
		s.g = b->copy = fresh(g, b->copy);
		if (!k->make(&s, variant))
			continue;
		b->copy = NULL;
		snprintf(where, sizeof where, "%s %s",
		         k->of_val ? "value" : op_info[g->node[at].op].text,
		         g->val[k->of_val ? at : g->node[at].out[0]].name);
		judge(b, k, &s, variant, where, then);
	}
}

/* All mutations of a graph; `then`: passes that come behind it. */
static void
try_graph(struct bench *b, const Graph *g, const char *then)
{
	for (const struct kind *k = kind; k < kind + NKIND; k++)
		if (k->of_val) {
			for (ValId v = 1; v < g->nval; v++)
				if (g->val[v].kind != V_TEMP || g->val[v].def)
					try_site(b, g, k, v, then);
		} else {
			for (NodeId i = 1; i < g->nnode; i++)
				try_site(b, g, k, i, then);
		}
	graph_free(b->copy);
	b->copy = NULL;
}

/* The graph after those passes, sharded. */
static bool
open_sharded(struct bench *b, struct run *r, const char *passes)
{
	char line[512];

	snprintf(line, sizeof line, "%s --passes=%s", b->line, passes);
	return run_parse_line(r, line) == CLI_GO && run_compile(r);
}

static bool
start(struct bench *b)
{
	char line[512], *tp;

	snprintf(line, sizeof line, "%s --passes=autodiff,optim", b->line);
	tp = strstr(line, "--tp");
	while (tp && *tp && *tp != ' ')
		*tp++ = ' ';
	tp = strstr(line, "--sp");
	if (tp)
		memset(tp, ' ', 4);
	b->one.dir = b->dir;
	if (run_parse_line(&b->one, line) != CLI_GO || !run_compile(&b->one))
		return false;
	b->one.env.eps = 1e-4;
	if (!run_setup(&b->one))
		return false;
	run_fill(&b->one);
	return run_step(&b->one, 0);
}

/* No mutant, and so accepted, with the states that it has by itself, too. */
static bool
is_right(struct bench *b, const Graph *g)
{
	Graph *again = graph_clone(g);
	bool ok = shard_verify(again, b->one.diag);

	label_again(again);
	ok &= shard_verify(again, b->one.diag);
	graph_free(again);
	return ok;
}

static bool
try_model(struct bench *b)
{
	struct tally before = b->all;
	struct run forward = { .dir = b->dir }, whole = { .dir = b->dir };
	bool ok;

	b->one = (struct run){ .dir = b->dir };
	ok = start(b);
	ok &= open_sharded(b, &forward, "shard");
	ok &= open_sharded(b, &whole, "shard,autodiff,optim");
	ok = ok && is_right(b, forward.g) && is_right(b, whole.g)
		&& same_numbers(b, graph_clone(whole.g));
	if (!ok)
		printf("FAIL %s without a mutation\n", b->line);
	if (ok) {
		try_graph(b, whole.g, NULL);
		try_graph(b, forward.g, "autodiff,optim");
	}
	printf("%s: %d mutants, %d rejected, %d accepted that change "
	       "nothing, %d slipped\n", b->line, b->all.made - before.made,
	       b->all.rejected - before.rejected,
	       b->all.made - before.made - b->all.rejected + before.rejected
	       - b->all.slipped + before.slipped,
	       b->all.slipped - before.slipped);
	run_close(&forward);
	run_close(&whole);
	run_close(&b->one);
	return ok;
}

int
main(int argc, char **argv)
{
	struct bench b = { .dir = argc > 1 ? argv[1] : "" };
	FILE *nowhere = fopen("/dev/null", "w");
	bool ok = nowhere != NULL;

	if (argc < 4) {
		fputs("usage: shard_mutate DIR STRIDE MODEL-AND-FLAGS...\n",
		      stderr);
		return 2;
	}
	b.quiet = diag_new("mutant", nowhere);
	b.stride = strtol(argv[2], NULL, 10);
	b.everything = b.stride == 0;
	for (int i = 3; ok && i < argc; i++) {
		b.line = argv[i];
		ok = try_model(&b);
	}
	printf("%d mutants, %d rejected, %d slipped", b.all.made,
	       b.all.rejected, b.all.slipped);
	if (b.everything)
		printf(", %d run that change a number", b.all.changed);
	printf("\n");
	diag_free(b.quiet);
	if (nowhere)
		fclose(nowhere);
	return !ok || b.all.slipped || b.all.rejected < 500;
}
