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
#include "ir/sharding/sharding.h"
#include "ir/verify/verify.h"
#include "tests/ref/pair.h"
#include "tests/shard/mutations.h"

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

/* ---- judging ---- */

/* Cuts that passes say: the layout's, and of reshapes, whose operand does not
 * tell, the duals of those. */
static bool
is_said(const Graph *g, const Val *v)
{
	const Node *def = &g->node[v->def];

	return v->placement.kind == PLACEMENT_SHARD
		&& (def->phase == PH_FORWARD || def->op == OP_RESHAPE);
}

/* As if the mutated graph had been made so: what nodes write gets the state
 * that follows.  Whether the graph is right then. */
static bool
settle_again(Graph *g, Diag *d)
{
	FOR_VALS (v, g)
		if (v->kind == V_TEMP && v->def && !is_said(g, v))
			v->placement = (Placement){ .kind = PLACEMENT_REPLICATE };
	return sharding_fill_placements(g, d);
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
	struct pair p = { .a = b->one, .quiet = true };
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
judge(struct bench *b, const struct mutation_kind *k, const struct site *s,
      int variant, const char *where, const char *then)
{
	Graph *g = s->g;
	bool found, forward = then != NULL;

	b->all.made++;
	found = !(k->stated ? sharding_verify(g, b->quiet)
	          : settle_again(g, b->quiet)) || !graph_verify(g, b->quiet)
		|| (forward && !run_passes(b, g, then));
	if (found)
		b->all.rejected++;
	if (found
	    && (!b->everything || forward || !graph_verify(g, b->quiet))) {
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
is_chosen(const struct bench *b, const struct mutation_kind *k, uint32_t at,
          int variant)
{
	uint32_t h = 2166136261u;
	const uint32_t of[] = { (uint32_t)(k - mutation_kind), at,
		                (uint32_t)variant };

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
try_site(struct bench *b, const Graph *g, const struct mutation_kind *k,
         uint32_t at, const char *then)
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
	const struct mutation_kind *k = mutation_kind;

	for (; k < mutation_kind + mutation_kinds; k++)
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
	bool ok = sharding_verify(again, b->one.diag);

	ok &= settle_again(again, b->one.diag);
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
