/* The pass pipeline: check requirements, run passes, track properties, verify,
 * dump.
 */
#include "passes/passes.h"
#include "passes/account/account.h"
#include "passes/canon/canon.h"
#include "passes/context_parallel/context_parallel.h"
#include "passes/data_parallel/data_parallel.h"
#include "passes/expert_parallel/expert_parallel.h"
#include "passes/fold/fold.h"
#include "passes/frozen/frozen.h"
#include "passes/fuse/fuse.h"
#include "passes/grad/grad.h"
#include "passes/lora/lora.h"
#include "passes/offload/offload.h"
#include "passes/overlap/overlap.h"
#include "passes/pipeline/pipeline.h"
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
	{ "frozen", pass_frozen, P_STATIC | P_CANON | P_LOSS, 0, LATE,
	  "store frozen weights in fewer bits (--frozen-dtype)" },
	{ "precision", pass_precision, P_STATIC | P_CANON, 0, LATE,
	  "choose dtypes (--dtype), store dropout masks" },
	{ "micro", pass_micro, P_CANON | P_LOSS, 0, LATE,
	  "make losses of micro-batches add up (--grad-accum)" },
	{ "replicate", pass_replicate, P_CANON, 0, LATE,
	  "split the batch over replicas (--dp)" },
	{ "context", pass_context, P_CANON, 0, LATE,
	  "share positions out to replicas (--cp)" },
	{ "shard", pass_shard, P_CANON, P_SHARD, LATE,
	  "shard the graph over ranks (--tp)" },
	{ "experts", pass_experts, P_CANON, 0, LATE,
	  "share experts out to replicas (--ep)" },
	{ "autodiff", pass_autodiff, P_CANON | P_LOSS, P_BWD, LATE,
	  "append the backward graph" },
	{ "pipeline", pass_pipeline, P_BWD, 0, LATE,
	  "cut the graph into stages (--pp)" },
	{ "optim", pass_optim, P_BWD, P_UPD, LATE,
	  "append the optimizer updates" },
	{ "fuse", pass_fuse, P_STATIC, P_FUSED, MEMORY,
	  "element-wise loops, classifier" },
	{ "settle", pass_settle, P_STATIC | P_FUSED, 0, 0,
	  "move updates after the last read of the parameter" },
	{ "weights", pass_weights, P_STATIC | P_FUSED, 0, MEMORY,
	  "put gradients of parameters into weight turns (zb-h1)" },
	{ "offload", pass_offload, P_STATIC | P_FUSED, 0, MEMORY,
	  "keep optimizer states in host memory (--offload)" },
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
	{ .name = NULL }
};

/* Names that passes had before. */
static const struct { const char *before, *now; } renamed[] = {
	{ "deal", "replicate" },
};

static bool
is_name(const char *known, const char *name, size_t n)
{
	return strlen(known) == n && memcmp(known, name, n) == 0;
}

static bool
is_pass_named(const struct pass_info *pass, const char *name, size_t n)
{
	for (size_t i = 0; i < sizeof renamed / sizeof renamed[0]; i++)
		if (is_name(renamed[i].before, name, n))
			return strcmp(pass->name, renamed[i].now) == 0;
	return is_name(pass->name, name, n);
}

const struct pass_info *
pass_that_gives(uint32_t property)
{
	const struct pass_info *i = pass_table;

	while (i->name && !(i->gives & property))
		i++;
	return i;
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
		if (is_name("all", name, n)
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
		    && !is_name("all", name, n))
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

	if (g->ranks && pass <= pass_that_gives(P_SHARD))
		return diag_error(p->diag, "pass %s: the graph is already "
		                  "sharded",
		                  pass->name);
	if (g->props & P_BWD && pass < pass_that_gives(P_BWD))
		return diag_error(p->diag, "pass %s: the graph already has a "
		                  "backward phase", pass->name);
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
	if (g->stages)
		return write_dump(p, g, arena_printf(p->scratch,
			"%s/%02d-%s.%lld.ck", dump->dir, number, pass->name,
			(long long)g->stage));
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

/* Large graphs, and what predictions are made from, are checked where their
 * meaning is settled and at the end, and after every pass with --debug. */
static bool
is_checked(const Pass *p, const Graph *g, const struct pass_info *pass)
{
	return p->debug || (g->nnode <= SMALL && !(p->opt && p->opt->brief))
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
	/* extents and placements that do not fit each other are the user's */
	if (!(pass->gives & P_BOUND) && !p->sharded_before)
		diag_internal(p->diag, "pass %s left an invalid graph",
		              pass->name);
	if (p->debug)
		text_print(g, stderr);
	return false;
}

/* The runner's bracket around a pass: scratch memory and dumps. */
static bool
run_step(Pass *p, Graph *g, const struct pass_info *pass,
         const struct dump_request *dump, int number,
         const char *broken_by[32])
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

/* ---- the pipeline ---- */

bool
pass_walk_reach(struct pass_walk *w, Pass *p, Graph *g,
               const struct pass_info *end)
{
	while (w->ok && !w->stopped && w->next < end && w->next->name) {
		const struct pass_info *pass = w->next++;

		w->ok = run_step(p, g, pass, w->dump, ++w->number,
		                 w->broken_by);
		w->stopped = w->stop_after
			&& strcmp(w->stop_after, pass->name) == 0;
	}
	return w->ok && w->next == end;
}

bool
pass_walk_finish(struct pass_walk *w, Pass *p, Graph *g)
{
	pass_walk_reach(w, p, g, pass_that_gives(0));
	return w->ok;
}

/* Names that the user gave, and the graph as it is. */
static bool
check_input(Pass *p, Graph *g, const char *only, const char *stop_after,
            const struct dump_request *dump)
{
	if (!check_names(p->diag, only, stop_after, dump))
		return false;
	g->props |= graph_props(g);
	p->sharded_before = g->ranks > 0;
	return graph_verify(g, p->diag) && check_states(p, g);
}

struct pass_walk
pass_walk_begin(Pass *p, Graph *g, const char *stop_after,
               const struct dump_request *dump)
{
	struct pass_walk w = { .dump = dump };

	w.ok = check_input(p, g, NULL, stop_after, dump);
	if (!w.ok)
		return w;
	w.next = first_pass(g);
	w.number = (int)(w.next - pass_table);
	if (stop_after)
		w.stop_after = find_pass(stop_after, strlen(stop_after))->name;
	/* already past it */
	for (const struct pass_info *i = pass_table; i < w.next; i++)
		if (w.stop_after && strcmp(w.stop_after, i->name) == 0)
			w.stopped = true;
	return w;
}

bool
pass_run(Pass *p, Graph *g, const char *only, const char *stop_after,
         const struct dump_request *dump)
{
	struct pass_walk w = { .ok = true, .dump = dump };
	const char *name;
	size_t n;

	if (strcmp(only, "none") == 0)
		only = "";
	if (!check_input(p, g, only, stop_after, dump))
		return false;
	if (stop_after)
		w.stop_after = find_pass(stop_after, strlen(stop_after))->name;
	while (w.ok && !w.stopped && (name = next_name(&only, &n))) {
		w.next = find_pass(name, n);
		pass_walk_reach(&w, p, g, w.next + 1);
	}
	return w.ok;
}
