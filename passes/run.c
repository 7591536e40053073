/* The pass pipeline: check requirements, run passes, track properties, verify,
 * dump.
 */
#include "passes/other_batch.h"
#include "passes/suggest_tp.h"
#include "passes/passes.h"
#include "passes/account/account.h"
#include "passes/canon/canon.h"
#include "passes/data_parallel/data_parallel.h"
#include "passes/fold/fold.h"
#include "passes/fuse/fuse.h"
#include "passes/grad/grad.h"
#include "passes/lora/lora.h"
#include "passes/overlap/overlap.h"
#include "passes/place/place.h"
#include "passes/planner/planner.h"
#include "passes/precision/precision.h"
#include "passes/replay/replay.h"
#include "passes/tensor_parallel/tensor_parallel.h"
#include "ir/base/outfile.h"
#include "ir/sharding/sharding.h"
#include "ir/text/text.h"
#include "ir/verify/verify.h"
#include "runtime/support/now.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

enum {
	LATE = P_FUSED | P_LAYOUT | P_PLANNED | P_PLACED,
	MEMORY = P_LAYOUT | P_PLANNED | P_PLACED,
	SMALL = 4096                    /* nodes */
};

const struct pass_info pass_table[] = {
	{ "bind", pass_bind, 0, P_BOUND, 0,
	  "set the shapes of inputs from --dim and --shape" },
	{ "fold", pass_fold, P_BOUND, P_STATIC, LATE,
	  "infer shapes, fold constants and static operands" },
	{ "canon", pass_canon, P_STATIC, P_CANON, LATE,
	  "recognise norms, activations, attention; 2-D matmuls" },
	{ "lora", pass_lora, P_STATIC | P_CANON, 0, LATE,
	  "add low-rank adapters (--lora)" },
	{ "loss", pass_loss, P_STATIC | P_CANON, P_LOSS, LATE,
	  "choose or build the loss" },
	{ "precision", pass_precision, P_STATIC | P_CANON, 0, LATE,
	  "choose dtypes (--dtype), store dropout masks" },
	{ "micro", pass_micro, P_CANON | P_LOSS, 0, LATE,
	  "make losses of micro-batches add up (--grad-accum)" },
	{ "replicate", pass_replicate, P_CANON, 0, LATE,
	  "split the batch over replicas (--dp)" },
	{ "shard", pass_shard, P_CANON, P_SHARD, LATE,
	  "shard the graph over ranks (--tp)" },
	{ "autodiff", pass_autodiff, P_CANON | P_LOSS, P_BWD, LATE,
	  "append the backward graph" },
	{ "optim", pass_optim, P_BWD, P_UPD, LATE,
	  "append the optimizer updates" },
	{ "fuse", pass_fuse, P_STATIC, P_FUSED, MEMORY,
	  "element-wise loops, classifier" },
	{ "settle", pass_settle, P_STATIC | P_FUSED, 0, 0,
	  "move updates after the last read of the parameter" },
	{ "layout", pass_layout, P_STATIC | P_FUSED, P_LAYOUT,
	  P_PLANNED | P_PLACED, "choose strides, views and copies" },
	{ "plan", pass_plan, P_LAYOUT, P_PLANNED, P_PLACED,
	  "keep or recompute each activation" },
	{ "overlap", pass_overlap, P_LAYOUT | P_PLANNED, 0, P_PLACED,
	  "overlap transfers between ranks with computation" },
	{ "inplace", pass_inplace, P_LAYOUT | P_PLANNED, 0, P_PLACED,
	  "write results in place of dead operands" },
	{ "place", pass_place, P_LAYOUT | P_PLANNED, P_PLACED, 0,
	  "assign offsets in the arena" },
	{ "account", pass_account, P_PLACED, 0, 0,
	  "collect the tensors, steps and totals of the plan" },
	{ "replay", pass_replay, P_PLACED, 0, 0,
	  "verify the plan independently" },
	{ NULL, NULL, 0, 0, 0, NULL }
};

/* Whether the pass has this name, or had it before. */
static bool
is_pass_named(const struct pass_info *pass, const char *name, size_t n)
{
	return (strlen(pass->name) == n && memcmp(pass->name, name, n) == 0)
		|| (pass->run == pass_replicate && n == 4
		    && memcmp(name, "deal", n) == 0);
}

static const struct pass_info *
find_pass(const char *name, size_t n)
{
	for (const struct pass_info *i = pass_table; i->name; i++)
		if (is_pass_named(i, name, n))
			return i;
	return NULL;
}

/* The next name of the list "a,b" at *list; its length in *n.  Empty names
 * are passed over; NULL at the end. */
static const char *
next_name(const char **list, size_t *n)
{
	const char *name;

	while (**list == ',')
		++*list;
	name = *list;
	*n = strcspn(name, ",");
	*list += *n;
	return *n ? name : NULL;
}

static bool
unknown_pass(Diag *d, const char *flag, const char *name, size_t n)
{
	char known[512] = "";
	size_t at = 0;

	for (const struct pass_info *i = pass_table; i->name; i++)
		at += (size_t)snprintf(known + at, sizeof known - at, " %s",
		                       i->name);
	diag_error(d, "%s: there is no pass '%.*s'", flag,
	           (int)(n > 100 ? 100 : n), name);
	return diag_more(d, "passes:%s", known);
}

/* Whether the list names the pass; "all" names every one. */
static bool
is_listed(const char *list, const struct pass_info *pass)
{
	const char *name;
	size_t n;

	while (list && (name = next_name(&list, &n)))
		if ((n == 3 && memcmp(name, "all", 3) == 0)
		    || is_pass_named(pass, name, n))
			return true;
	return false;
}

static bool
check_names(Diag *d, const char *only, const char *stop_after,
            const struct dump_request *dump)
{
	const char *name, *list = dump ? dump->passes : NULL;
	size_t n;
	bool ok = true;

	while (only && (name = next_name(&only, &n)))
		if (!find_pass(name, n))
			ok = unknown_pass(d, "--passes", name, n);
	while (list && (name = next_name(&list, &n)))
		if (!find_pass(name, n)
		    && (n != 3 || memcmp(name, "all", 3) != 0))
			ok = unknown_pass(d, "--dump", name, n);
	if (stop_after && !find_pass(stop_after, strlen(stop_after)))
		ok = unknown_pass(d, "--stop-after", stop_after,
		                  strlen(stop_after));
	return ok;
}

/* Names the passes that would give what is missing. */
static bool
check_needs(Pass *p, const Graph *g, const struct pass_info *pass,
            const char *const *broken_by)
{
	uint32_t missing = pass->needs & ~g->props;
	char giver[256] = "";
	size_t at = 0;
	const char *breaker = NULL;

	if (g->ranks && pass <= find_pass("shard", 5))
		return diag_error(p->diag, "pass %s: the graph is already "
		                  "sharded",
		                  pass->name);
	/* these append; a second time would append once more */
	if (pass->gives & g->props & (P_BWD | P_UPD))
		return diag_error(p->diag, "pass %s has already run on this "
		                  "graph", pass->name);
	if (!missing)
		return true;
	for (const struct pass_info *i = pass_table; i->name; i++)
		if (i->gives & missing)
			at += (size_t)snprintf(giver + at, sizeof giver - at,
			                       "%s%s", at ? ", " : "",
			                       i->name);
	for (int bit = 0; bit < 32; bit++)
		if (missing >> bit & 1 && broken_by[bit])
			breaker = broken_by[bit];
	return diag_error(p->diag, "pass %s must run after %s%s%s",
	                  pass->name, giver,
	                  breaker ? ", which was undone by " : "",
	                  breaker ? breaker : "");
}

/* ---- dumps ---- */

static void
print_dump(const Pass *p, const Graph *g, FILE *out)
{
	text_print(g, out);
	if (p->notes)
		p->notes(p->noted, out);
}

static bool
write_dump(Pass *p, const Graph *g, const char *path)
{
	struct outfile o;

	if (!outfile_open(&o, path, p->diag))
		return false;
	print_dump(p, g, o.f);
	return outfile_close(&o, true);
}

static bool
dump_graph(Pass *p, const Graph *g, const struct dump_request *dump,
           const struct pass_info *pass, int number)
{
	if (!dump || !is_listed(dump->passes, pass))
		return true;
	if (!dump->dir) {
		printf("# after %s\n", pass->name);
		print_dump(p, g, stdout);
		return true;
	}
	if (mkdir(dump->dir, 0777) != 0 && errno != EEXIST)
		return diag_error(p->diag, "cannot create directory '%s': %s",
		                  dump->dir, strerror(errno));
	return write_dump(p, g, arena_printf(p->scratch, "%s/%02d-%s.ck",
	                                     dump->dir, number, pass->name));
}

/* ---- running ---- */

/* States of a sharded graph, whatever its size: what they find, nothing else
 * would.  Values that the pass has made get theirs here. */
static bool
check_states(Pass *p, Graph *g)
{
	if (!g->ranks)
		return true;
	return sharding_fill_placements(g, p->diag);
}

/* Large graphs are checked where their meaning is settled and at the end, and
 * after every pass with --debug. */
static bool
is_checked(const Pass *p, const Graph *g, const struct pass_info *pass)
{
	return p->debug || g->nnode <= SMALL
		|| pass->gives & (P_BOUND | P_LAYOUT | P_PLACED);
}

/* One pass and what belongs to it.  A pass that returns false has reported
 * why, or that is a fault of its own. */
static bool
run_one(Pass *p, Graph *g, const struct pass_info *pass,
        const char *broken_by[32])
{
	int errors = diag_errors(p->diag);
	double start = now_sec();
	uint32_t lost;
	bool ok;

	if (!check_needs(p, g, pass, broken_by))
		return false;
	ok = pass->run(p, g);
	/* what it left behind may be half done, and what it said untrue */
	if (watch_off(p->watch))
		return diag_error(p->diag, "interrupted");
	if (!ok) {
		if (diag_errors(p->diag) == errors)
			diag_internal(p->diag, "pass %s failed without a "
			              "message", pass->name);
		return false;
	}
	if (diag_errors(p->diag) != errors)
		return false;
	lost = g->props & pass->breaks & ~pass->gives;
	for (int bit = 0; bit < 32; bit++)
		if (lost >> bit & 1)
			broken_by[bit] = pass->name;
	g->props = (g->props & ~pass->breaks) | pass->gives;
	if (p->opt && p->opt->stats)
		diag_note(p->diag, "pass %s: %u nodes, %u values, %.3f s",
		          pass->name, g->nnode - 1, g->nval - 1,
		          now_sec() - start);
	if ((!is_checked(p, g, pass) || graph_verify(g, p->diag))
	    && check_states(p, g))
		return true;
	/* extents that do not fit each other are the user's */
	if (!(pass->gives & P_BOUND))
		diag_internal(p->diag, "pass %s left an invalid graph",
		              pass->name);
	if (p->debug)
		text_print(g, stderr);
	return false;
}

/* The runner's bracket around a pass: scratch memory and dumps. */
static bool
step(Pass *p, Graph *g, const struct pass_info *pass,
     const struct dump_request *dump, int number, const char *broken_by[32])
{
	bool ok;

	p->scratch = arena_new();
	ok = run_one(p, g, pass, broken_by)
	     && dump_graph(p, g, dump, pass, number);
	arena_free(p->scratch);
	p->scratch = NULL;
	p->notes = NULL;
	return ok;
}

/* ---- the low-memory variant, for small budgets ----
 *
 * Applying a gradient as soon as it is there frees its bytes early, but rules
 * out clipping by the norm over all.  Copies of parameters that stay in memory
 * need not be made in each step.  With --update-in-backward auto, and copies
 * likewise, two variants are planned if a budget makes the first recompute:
 * updates at the end with copies, and low memory.  The one that recomputes
 * less is taken; so more budget is never slower.
 */

static bool
has_low_memory_variant(const Pass *p, const Graph *g)
{
	const struct options *o = p->opt;

	return o && (o->budget_bytes > 0 || o->budget_pct > 0 || o->curve)
		&& (optim_may_update_in_backward(p, g)
		    || optim_copies(p, g, false) != optim_copies(p, g, true));
}

static void
swap_graphs(Graph *a, Graph *b)
{
	Graph t = *a;

	*a = *b;
	*b = t;
}

/* Plan `other`, the graph as it was before updates, as the low-memory variant;
 * if that is better it takes g's place. */
static bool
try_low_memory(Pass *p, Graph *g, Graph *other, const struct dump_request *dump,
          int *number, const char *broken_by[32])
{
	Pass late = *p;
	const struct pass_info *pass = find_pass("optim", 5);
	Graph *worse = late.reference;

	/* the curve has a point in common with the other form at least */
	if (watch_over(p->watch) && !late.refused && !p->pareto_front)
		return true;
	p->low_memory = true;
	p->allow_refusal = !late.refused;
	p->refused = false;
	for (; strcmp(pass->name, "overlap") != 0; pass++)
		if (!step(p, other, pass, dump, ++*number, broken_by)) {
			if (p->reference != late.reference)
				graph_free(late.reference);
			return false;
		}
	if (!late.refused
	    && (p->refused || p->recompute_sec >= late.recompute_sec)) {
		worse = p->reference;
		*p = late;
	} else {
		swap_graphs(g, other);
	}
	graph_free(worse);
	p->allow_refusal = false;
	return true;
}

/* ---- graphs that have been through passes ----
 *
 * The text of a graph, such as a dump, may come from any stage.  The passes up
 * to precision may be repeated; later ones would do their work twice, so what
 * such a graph shows of it tells where to go on.
 */

static bool
has_loop(const Graph *g)
{
	FOR_NODES (n, g)
		if (n->op == OP_LOOP)
			return true;
	return false;
}

/* The pass to begin with. */
static const struct pass_info *
first_pass(const Graph *g)
{
	uint32_t seen = g->props & (P_SHARD | P_BWD | P_UPD | MEMORY);
	const struct pass_info *first = pass_table;

	/* without a loop a graph may be fused by chance */
	if (has_loop(g))
		seen |= P_FUSED;
	for (const struct pass_info *i = pass_table; i->name; i++)
		if (i->gives & seen)
			first = i + 1;
	return first;
}

bool
run_from(Pass *p, Graph *g, const struct pass_info *pass, int number,
         const char *stop_after, const struct dump_request *dump)
{
	const char *broken_by[32] = { NULL };
	const struct pass_info *fold = find_pass("fold", 4);
	Graph *before = NULL, *whole = NULL, *other_batch = NULL;
	bool ok = true;

	for (; ok && pass->name; pass++) {
		if (pass->run == pass_replicate && may_suggest_tp(p, g))
			whole = graph_clone(g);
		if (pass->run == pass_optim && has_low_memory_variant(p, g)) {
			before = graph_clone(g);
			p->allow_refusal = true;
		}
		if (pass == fold)
			other_batch = other_batch_graph(p, g);
		ok = step(p, g, pass, dump, ++number, broken_by);
		if (ok && other_batch && pass->run == pass_loss)
			other_batch_check(p, g, other_batch, fold);
		if (ok && before && pass->run == pass_plan
		    && (p->refused || p->recompute_sec > 0 || p->pareto_front))
			ok = try_low_memory(p, g, before, dump, &number,
			                    broken_by);
		if (stop_after && strcmp(stop_after, pass->name) == 0)
			break;
	}
	if (!ok && p->refused && whole)
		suggest_tp(p, whole, find_pass("replicate", 9));
	graph_free(whole);
	graph_free(other_batch);
	/* clones share the contents of values with their original */
	p->retired = before ? before->arena : NULL;
	return ok;
}

/* The whole table up to and including stop_after. */
static bool
run_table(Pass *p, Graph *g, const char *stop_after,
          const struct dump_request *dump)
{
	const struct pass_info *first = first_pass(g);

	/* already past it */
	for (const struct pass_info *i = pass_table; i < first; i++)
		if (stop_after && strcmp(stop_after, i->name) == 0)
			return true;
	return run_from(p, g, first, (int)(first - pass_table), stop_after,
	                dump);
}

bool
pass_run(Pass *p, Graph *g, const char *only, const char *stop_after,
         const struct dump_request *dump)
{
	const char *broken_by[32] = { NULL };
	const char *name;
	size_t n;
	int number = 0;

	if (only && strcmp(only, "none") == 0)
		only = "";
	if (!check_names(p->diag, only, stop_after, dump))
		return false;
	if (stop_after)
		stop_after = find_pass(stop_after, strlen(stop_after))->name;
	g->props |= graph_props(g);
	if (!graph_verify(g, p->diag) || !check_states(p, g))
		return false;
	if (!only)
		return run_table(p, g, stop_after, dump);
	while ((name = next_name(&only, &n))) {
		const struct pass_info *pass = find_pass(name, n);

		if (!step(p, g, pass, dump, ++number, broken_by))
			return false;
		if (stop_after && strcmp(stop_after, pass->name) == 0)
			break;
	}
	return true;
}
