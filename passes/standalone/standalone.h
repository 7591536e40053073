/* Room standalone: planning of standalone graphs of costs, `ckc plan`.
 *
 * in      a graph of costs as JSON text, a budget
 * out     the cheapest sequence found within it, a bound, a Plan of it
 * must not know ONNX and the compiler's graphs
 *
 * A node costs time and leaves one value of some bytes; links lead from a
 * value to its readers.  A plan is a sequence of nodes, each at least once; a
 * value lives from the step that makes it to the last step that reads it, both
 * included, and a reader takes the last one made before it.
 */
#ifndef PASSES_STANDALONE_STANDALONE_H
#define PASSES_STANDALONE_STANDALONE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "ir/base/arena.h"
#include "ir/base/diag.h"
#include "ir/base/watch.h"
#include "ir/plan.h"

struct remat;

struct dag {
	int32_t n;
	int64_t *ram;                   /* by node: bytes of its value */
	double *cpu;                    /* by node: seconds of a run */
	bool *backward;                 /* by node: runs after forward */
	const char **name;
	bool training;                  /* some node is flagged backward */
	/* operands and readers of node i: pred[pred_at[i]..pred_at[i + 1] - 1],
	 * succ likewise */
	int32_t *pred_at, *pred, *succ_at, *succ;
	/* peak and cost of the order 0..n-1 */
	int64_t peak;
	double cost;
	int64_t working_set;            /* no plan has a lower peak */
	int32_t turn;                   /* first backward node; without any, the
	                                 * node after the fullest step */
};

/* A sequence of nodes; what it costs and takes. */
struct dag_seq {
	int32_t *node;
	int32_t len;
	int64_t peak;
	double cost;
};

struct dag_options {
	int64_t budget;
	double sec;                     /* 0: by counted work only */
	double gap;                     /* stop within this distance of the
	                                 * bound, as a fraction of the graph's
	                                 * cost */
	bool all;                       /* go on when the best plan is known:
	                                 * others may be easier to place */
	FILE *progress;                 /* NULL: silent */
	struct watch *watch;              /* when to leave off; NULL: never */
};

/* A budget and the cheapest plan found for it; len 0: none. */
struct dag_budget {
	int64_t budget;
	double bound;                   /* no plan within the budget costs
	                                 * less */
	struct dag_seq best;
};

struct dag_answer {
	bool found;
	struct dag_seq seq;             /* the plan; if not found, the sequence
	                                 * with the least peak met */
	double bound;                   /* no plan of bound_class costs less */
	const char *bound_class;
	struct dag_budget *grid;        /* other budgets, looser ones first */
	int32_t ngrid;
};

/* Read a planning graph from JSON text; false after a message. */
bool dag_read(const char *text, size_t n, struct dag *, Arena *, Diag *);
/* Fill in what follows from costs and links (pairs source, target). */
void dag_finish(struct dag *, const int32_t *link, int32_t nlink, Arena *);
/* Peak and cost of a sequence, from nothing but it; false if some read has no
 * value yet or some node is missing. */
bool dag_measure(const struct dag *, struct dag_seq *, Arena *scratch);
/* By step: the last step that reads its value, itself if none does; false if a
 * read has no value yet or a node is missing.  made: room for a number of each
 * node. */
bool dag_lasts(const struct dag *, const struct dag_seq *, int32_t *last,
               int32_t *made);
/* Values in memory at the fullest step, the `most` largest in order; returns
 * how many there are in all. */
int32_t dag_alive(const struct dag *, const struct dag_seq *, int32_t most,
                  int32_t *node, int32_t *step, Arena *scratch);
struct dag_answer dag_plan(const struct dag *, const struct dag_options *,
                           Arena *);

/* dag_account.c: the plan of the cheapest sequence, or placed of the cheapest
 * one that can be, into *plan, of which other members stay; false: there is
 * none. */
bool dag_account(const struct dag *, const struct dag_answer *,
                 const struct dag_options *, bool placed, Plan *plan, Diag *,
                 Arena *);

/* ---- sources of plans, for dag_plan ---- */

/* Where candidates meet: each budget keeps the cheapest that fits. */
struct dag_best {
	const struct dag *g;
	const struct remat *problem;    /* the same as rooms recursive and
	                                 * remat_model read it */
	const struct dag_options *o;
	struct dag_budget *grid;        /* budgets, looser ones first */
	int32_t ngrid;
	int32_t at;                     /* index of the budget being searched */
	bool swept;                     /* every budget was searched once */
	bool bounded;                   /* ... and has its bound */
	struct dag_budget asked;        /* the budget of the request */
	struct dag_seq least;           /* sequence of the least peak met */
	Arena *arena;
	uint64_t random;
	double bound;                   /* bound for the budget of the
	                                 * request */
};

/* Hand in a candidate, measured anew; true if it is the best so far for the
 * budget being searched. */
bool dag_offer(struct dag_best *, const int32_t *node, int32_t len);
bool dag_stopped(const struct dag_best *);
/* dag_problem.c: node i of the graph is node i + 1 of the problem. */
const struct remat *dag_problem(const struct dag *, struct watch *, Arena *);
/* Walk the order, evicting when memory is short. */
void dag_evict(struct dag_best *, int64_t work);
/* Checkpoints and nested ones, for all budgets: see checkpoints.c. */
void dag_checkpoints(struct dag_best *);
/* A search over states, of so many nodes at most: those of a graph, or of a
 * stretch of a plan. */
enum { DAG_STATES_NODES = 32 };

struct dag_small {
	int32_t n;                      /* nodes, operands before readers */
	int64_t ram[DAG_STATES_NODES];  /* as in struct dag */
	double cpu[DAG_STATES_NODES];   /* INFINITY: cannot run */
	uint32_t read[DAG_STATES_NODES];        /* sets of nodes: operands */
	uint32_t ran, held;             /* at the start: have run, in memory */
	uint32_t want;                  /* in memory at the end */
};

/* The nodes to run, in order. */
struct dag_way {
	bool found;
	int32_t *node, len;
};

/* dag_states.c: a graph from its beginning to its end. */
struct dag_small dag_whole(const struct dag *);
/* The cheapest way that costs less than `limit`, found in at most
 * so many states; written to the arena.  Returns what no way within the budget
 * costs less than; the limit if there is none below it. */
double dag_states(const struct dag_small *, int64_t budget, double limit,
                  int32_t states, struct watch *, struct dag_way *, Arena *);
/* dag_window.c: make stretches of the best plan for the budget being searched
 * cheaper; in at most so many states in all. */
void dag_windows(struct dag_best *, int64_t states);
/* Annealing over sequences from the one given; hot: temperature at the start,
 * in mean costs of a node. */
void dag_anneal(struct dag_best *, const struct dag_seq *, int64_t work,
                double hot);
uint64_t dag_draw(uint64_t *random);
/* No plan within the budget costs less, whatever its order and however often
 * it recomputes.  start: a plan that a search can begin with, which need not
 * fit; empty where the bound is the graph's own cost. */
double dag_bound(const struct dag_best *, int64_t budget,
                 struct dag_seq *start);

#endif
