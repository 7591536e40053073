/* Random graphs with strategies that random costs choose, which nobody else
 * would: their loss, gradients and updates are those of one rank, and the
 * verifier accepts them after every pass.
 *
 *     shard_random FIRST LAST         seeds FIRST to LAST - 1; of a single
 *                                     one that fails the graph is printed
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/cpu/cpu.h"
#include "ir/text/text.h"
#include "ir/verify/verify.h"
#include "passes/passes.h"
#include "tests/ref/pair.h"
#include "tests/shard/fill.h"
#include "tests/shard/random_graph.h"

#define STEP "autodiff,optim"
#define MEMORY "fuse,settle,layout,plan,inplace,place"

struct bench {
	int graphs, refused, faults;
	bool alone;
	FILE *said;
	char *what;
	size_t size;
};

static bool
run_passes(struct run *r, Graph *g, const char *passes)
{
	Pass p = { .target = &target_cpu, .diag = r->diag, .opt = &r->cli.opt,
	           .keep = r->arena };
	const struct dump_request none = { NULL, NULL };
	bool ok = pass_run(&p, g, passes, NULL, &none);

	graph_free(p.planned.reference);
	return ok;
}

static bool
open_one(struct bench *b, struct run *r, const char *flags, uint32_t seed)
{
	if (run_parse_line(r, flags) != CLI_GO)
		return false;
	diag_free(r->diag);
	r->diag = diag_new("shard_random", b->said);
	r->cli.opt.strategy_seed = seed;
	return true;
}

static bool
start(struct run *r, Graph *g, int64_t below)
{
	run_adopt(r, g);
	r->env.eps = 1e-4;
	r->env.clip = 0.1;
	/* softmax does not saturate yet */
	shard_fill(r, below, -0.3, 0.3);
	return run_step(r, 0);
}

/* What was said, from the last rewind on. */
static bool
says(struct bench *b, const char *word)
{
	fputc('\0', b->said);
	fflush(b->said);
	return strstr(b->what, word);
}

static void
try_seed(struct bench *b, uint32_t seed)
{
	struct pair p = { .quiet = true, .least = 1e-4 };
	uint32_t state = seed * 2654435761u + 1;
	int ranks = 2 + random_below(&state, 3), sp;
	int64_t below;
	char flags[128];
	Graph *g, *one, *memory;
	bool ok, made;

	sp = random_below(&state, 2);
	snprintf(flags, sizeof flags, "x.ck --tp=%d%s", ranks,
	         sp ? " --sp" : "");
	rewind(b->said);
	b->graphs++;
	ok = open_one(b, &p.a, "x.ck", 0)
		&& open_one(b, &p.b, flags, 1 + seed % 1000);
	g = random_graph(state, p.a.diag, &below);
	one = graph_clone(g);
	memory = graph_clone(g);
	made = ok && graph_verify(g, p.a.diag)
		&& run_passes(&p.b, g, "shard");
	if (ok && !made && says(b, "--tp") && !says(b, "internal")) {
		b->refused++;
		graph_free(g);
		graph_free(one);
	} else {
		ok = made && run_passes(&p.b, g, STEP)
			&& run_passes(&p.a, one, STEP);
		ok = ok && start(&p.a, one, below) && start(&p.b, g, below);
		if (ok) {
			p.quiet = false;
			pair_list(&p);
			p.quiet = !b->alone;
			pair_compare(&p, 0);
		}
		ok = ok && !p.faults;
		if (ok && seed % 4 == 0)
			ok = run_passes(&p.b, memory, "shard," STEP ","
			                MEMORY);
		if (!ok) {
			says(b, "");
			printf("%sFAIL seed %u, %s, %d differ, worst %.2g\n",
			       b->what, seed, flags, p.faults, p.worst);
			b->faults++;
			if (b->alone)
				text_print(g, stdout);
		}
	}
	graph_free(memory);
	run_close(&p.a);
	run_close(&p.b);
}

int
main(int argc, char **argv)
{
	struct bench b = { .graphs = 0 };

	if (argc != 3) {
		fputs("usage: shard_random FIRST LAST\n", stderr);
		return 2;
	}
	b.said = open_memstream(&b.what, &b.size);
	if (!b.said)
		return 2;
	b.alone = strtol(argv[2], NULL, 10) - strtol(argv[1], NULL, 10) == 1;
	for (long seed = strtol(argv[1], NULL, 10);
	     seed < strtol(argv[2], NULL, 10); seed++)
		try_seed(&b, (uint32_t)seed);
	printf("%d graphs, %d refused, %d faults\n", b.graphs, b.refused,
	       b.faults);
	fclose(b.said);
	free(b.what);
	return b.faults > 0 || b.refused * 10 > b.graphs;
}
