/* The pipeline: the table of all passes and its runner.
 *
 * in      a graph at any stage, the options
 * out     the graph after the passes named, and what they left (results.h)
 * must not know files, ONNX and code
 */
/* Glossary: the planner's words, in the order in which they build on each
 * other, with the field's name and a source where there is one.  ir/ir.h has
 * those of the graph: activation, adjoint, view, resident, clone.
 *
 * owner         value with bytes of its own; views lie in an owner's
 * storage       an owner in the arena, seen by the planner
 * lifetime      steps from a value's definition to its last use (live range in
 *               register allocation): find_lifetimes in place/place.c,
 *               set_lifetimes in account/sums.c, remat_eval.c for the planner
 * arena         the one block of memory that owners share over time
 * layout        offsets in the arena so that what lives at once is apart
 *               (dynamic storage allocation, NP-hard: Garey, Johnson 1979).
 *               Placements, on the other hand, are how values lie on ranks
 * live bound    most bytes alive at one step: no layout is smaller
 * working set   most bytes that one node asks for alone: no plan is smaller
 * peak          arena and what is resident
 * in place      a result in the bytes of an operand that dies
 * boundary      the last step of forward: what is alive there is saved
 * keep, drop    let an activation live until backward, or not
 * low precision a value saved for backward in 16 bits (half_of in plan files),
 *               upcast when it is read
 * recompute     make what was dropped again (rematerialisation, Briggs et al.
 *               1992; in training: checkpointing, Chen et al. 2016; as a
 *               program: Checkmate, Jain et al. 2020)
 * inlined       a clone that its reader does in the same loop, without memory
 * set           plan that says keep or drop of each storage: made again once,
 *               before its first use in backward
 * sequence      plan that is a list of runs; a node may run again many times
 * class         what a bound speaks of: plans that are sets ("once") or all
 *               of them ("any")
 * bound         seconds that no plan of a class undercuts (dual bound)
 * gap           what a plan takes above the bound, in % of a step
 * cut           place where one activation alone crosses forward (articulation)
 * segment       nodes from one cut to the next; a period of them is a layer
 * part          one or more pieces of forward that the curve decides upon as a
 *               unit; equal parts are an equivalence class
 * role, group   storages whose nodes, and the two levels above them, are
 *               equal: what repeated layers have in common
 * decision      variable of the curve: outputs of one node of a part, kept or
 *               dropped together
 * point         what to keep of a part, of its Pareto front; unsaved: it drops
 *               its boundary, what the next part reads
 * slack         bytes that parts ask for beside what is kept of those before
 *               them (state of a dynamic program, as in Revolve: Griewank,
 *               Walther 2000)
 * tape, sweep   what backward reads inside a part; running a part forward
 *               without its tape (Rotor, Beaumont et al. 2019)
 * eviction      dropping what is read far ahead and cheap to make (Belady
 *               1966; for tensors: DTR, Kirisame et al. 2021)
 * stage         part of a plan that begins with the first run of a chosen node,
 *               where a 0-1 program asks what is in memory
 * recursive     rematerialisation where a node may run again more than once
 * budget grid   the budgets that are planned for
 * plan pool     the plans that are known, over all budgets
 * standalone    graph of costs and bytes alone, as `ckc plan` reads it
 * Pareto front  points that no other beats in bytes and seconds
 * preset        a plan that others use: none, full (at every layer), every=K,
 *               selective (Korthikanti et al. 2023)
 * variant       where updates run: after backward, or in backward
 * replay        the plan run step by step by a checker that trusts nothing
 */
#ifndef PASSES_PASSES_H
#define PASSES_PASSES_H

#include "passes/pass.h"

struct pass_info {
	const char *name;
	PassFn *run;
	uint32_t needs, gives, breaks;
	const char *help;
};

/* The pipeline in order; the last entry has name NULL. */
extern const struct pass_info pass_table[];
/* The first pass that gives one of the properties; none: the last entry. */
const struct pass_info *pass_that_gives(uint32_t properties);

struct dump_request {
	const char *passes;             /* "a,b" or "all"; NULL: none */
	const char *dir;                /* NN-pass.ck go here; NULL: stdout */
};

/* Run the passes named in `only` ("a,b" in that order, or "none"), up to and
 * including stop_after (NULL: to the end).  False after a diagnostic, which
 * "interrupted" is one of. */
bool pass_run(Pass *, Graph *, const char *only, const char *stop_after,
              const struct dump_request *);

/* A walk through the table. */
struct pass_walk {
	const struct pass_info *next;   /* the pass to run */
	const char *stop_after;         /* the last pass to run; NULL: all */
	const struct dump_request *dump;        /* NULL: none */
	int number;                     /* passes run, in names of dumps */
	bool ok;                        /* no pass has failed */
	bool stopped;                   /* stop_after has run */
	const char *broken_by[32];      /* pass that undid each property */
};

/* A walk that begins where the graph stands: a graph in text form may have
 * been through passes.  ok is false after a diagnostic. */
struct pass_walk pass_walk_begin(Pass *, Graph *, const char *stop_after,
                               const struct dump_request *);
/* Run the passes before `end`.  Whether that was reached: false if a pass
 * failed (after a diagnostic), the walk was stopped, or had gone beyond. */
bool pass_walk_reach(struct pass_walk *, Pass *, Graph *,
                    const struct pass_info *end);
/* Run all that is left; w.ok. */
bool pass_walk_finish(struct pass_walk *, Pass *, Graph *);

#endif
