/* Room remat_model: keep or recompute as an optimisation problem, the exact
 * evaluation of one candidate, and a search over candidates.
 *
 * in      an ordered training graph with costs and layout
 * out     schedules of plans with their costs, the pool of the best plans, a
 *         graph rewritten as a schedule says
 * must not know budgets of users and how a plan is chosen
 *
 * A storage is the memory of one owner in the arena.  A candidate plan is a
 * sequence of steps: first runs of all nodes in their order, and between them
 * clones of forward nodes, of each as many as the plan likes.  A reader takes
 * what was made last before it.  Most plans are sets: they say of every
 * forward storage whether it is kept for backward or dropped, that is,
 * computed again by clones of its nodes just before its first use in backward
 * and held from there (class "once").  With host memory, a kept storage may be
 * there while no step uses it (remat_host.h).
 */
#ifndef PASSES_REMAT_MODEL_REMAT_MODEL_H
#define PASSES_REMAT_MODEL_REMAT_MODEL_H

#include "passes/place/pack.h"
#include "passes/pass.h"

/* Pairs that one node may have. */
enum { REMAT_PAIRS = 64 };

struct storage {
	ValId owner;
	int64_t size;
	bool output;                    /* lives to the end of the step */
	bool candidate;                 /* forward, may be dropped */
	bool direct;                    /* read in backward itself */
	bool late;                      /* ... in phase weight or update */
	bool early;                     /* ... in phase backward */
	NodeId def;
	int32_t group;                  /* storages that play the same role */
};

#define REMAT_MANY UINT32_MAX

/* A value that a node reads and that may have to be computed again for it. */
struct ask {
	ValId value;
	int32_t storage;
	NodeId def;                     /* of forward */
};

struct rnode {
	NodeId node;
	int32_t *read;                  /* storages, without doubles */
	int32_t *write;
	int32_t *pair;                  /* (out storage, in storage) */
	struct ask *ask;                /* by operand */
	int nread, nwrite, npair, nask;
	int64_t workspace;
	double sec;
	int always;                     /* write[] that a clone makes wanted or
	                                 * not; -1: none */
	bool backward;                  /* phase backward or later */
	bool late;                      /* phase weight or update */
	bool takes;                     /* a loop of these, which may take
	                                 * others in */
	bool clonable;
	/* A loop that others may take in, see ir/loop.h. */
	bool inlinable;
	NodeId reader;                  /* the only node of backward that reads
	                                 * its results; 0: none does; or
	                                 * REMAT_MANY */
	double least_sec;               /* lower bound of the seconds of doing
	                                 * its work again */
};

struct rstep {
	NodeId node;
	bool clone;
	uint32_t makes;                 /* clone: bit i: it writes write[i] */
	bool inlined;                   /* clone that the next first run does,
	                                 * and that makes nothing */
};

/* Whether the step writes write[i] of its node. */
static inline bool
remat_writes(const struct rstep *t, int i)
{
	return !t->clone || t->makes >> i & 1;
}

/* Nodes that write more storages are not repeated. */
enum { REMAT_WRITES = 32 };

/* rstep.makes for all that the node writes. */
static inline uint32_t
remat_all_writes(const struct rnode *n)
{
	return n->nwrite >= REMAT_WRITES ? UINT32_MAX
		: ((uint32_t)1 << n->nwrite) - 1;
}

/* Nodes that read each storage s, in order: node[at[s]..at[s + 1] - 1]. */
struct readers {
	int32_t *at;
	NodeId *node;
};

/* What a candidate costs. */
struct remat_cost {
	int64_t live;                   /* most bytes in the arena at a step */
	double sec;                     /* seconds of the clones */
	int32_t tight;                  /* step with the most bytes */
	double over;                    /* bytes above the target, summed over
	                                 * steps */
};

struct remat {
	const Graph *g;                 /* NULL: a standalone graph of costs */
	Arena *arena;
	NodeId nnode;                   /* nodes are 1 .. nnode - 1 */
	int32_t nstore;
	struct storage *store;
	int32_t *of_val;                /* storage of a value; -1: none */
	struct rnode *node;             /* by node id */
	int64_t resident;               /* bytes outside the arena */
	int64_t slots;                  /* so many times there is what lives
	                                 * across the boundary of forward; 0, 1:
	                                 * once */
	int64_t more_slots;             /* bytes of slots with other contents,
	                                 * of graphs whose plan is given */
	int64_t through_slots;          /* with turns of weights: across that
	                                 * and the boundary of backward, */
	int64_t weight_slots;           /* and across the latter alone; 0:
	                                 * there are no such turns */
	double base_sec;                /* step without clones */
	int32_t ncand, ngroup;
	int32_t *layer, nlayer;         /* storages that are inputs of layers */
	int32_t *layer_other;           /* ... of the second half of the batch;
	                                 * -1: there is none */
	const struct remat_host *host;  /* memory beside the arena; NULL:
	                                 * none */
	struct watch *watch;              /* when to leave off; NULL: never */
};

/* The problem read off a graph.  Nothing below changes it. */
struct remat *remat_new(const Graph *, Arena *);
/* So much counted work of which a unit takes longer in large graphs: in those
 * of more than 8,000 nodes as many times less. */
int64_t remat_work(const struct remat *, int64_t work);
/* Slots beside the one in use that have the storage if it is kept for all
 * that reads it. */
int64_t remat_other_slots(const struct remat *, int32_t s);
/* The node only gives existing bytes another shape. */
bool remat_is_view(const struct remat *, NodeId);
/* layers.c: find the inputs of layers. */
void remat_find_layers(struct remat *);
/* Number of the layer that each storage belongs to, from 0; returns how many
 * layer inputs there are. */
int remat_layer_of(const struct remat *, Arena *, int32_t *layer);

/* What a plan comes to: its steps, with the clones of views that they need,
 * when what they write lives, and what they cost.  An instance is one writing
 * of a storage; instances are numbered in order.  One object serves many
 * plans, one after the other. */
struct schedule {
	const struct remat *r;
	struct remat_cost cost;
	struct rstep *step;
	int32_t nstep, step_cap;
	int32_t ninst, inst_cap;
	int32_t *of_inst;               /* its storage */
	int32_t *first, *last;          /* steps; first -1: nobody reads it */
	int32_t *block;                 /* instance whose bytes it lies in */
	int64_t *live;                  /* bytes in the arena, by step, of one
	                                 * micro-batch, less what may be in host
	                                 * memory */
	int64_t other_slots;            /* bytes of the other ones' slots, there
	                                 * at every step */
	/* Instances that step `step` may write over those which it reads. */
	struct overlay {
		int32_t step, out, in;
	} *overlay;
	int32_t noverlay, overlay_cap;
	/* what is asked */
	int64_t target;                 /* for remat_cost.over */
	const NodeId *only;             /* evaluate sets on these nodes alone;
	                                 * what others make does not count and
	                                 * must not be dropped; NULL: on all */
	uint32_t nonly;
	/* scratch */
	Arena *arena;
	int32_t *now;                   /* latest instance */
	uint8_t *again;                 /* by value: has a clone */
	uint8_t *cloned;                /* by node */
	NodeId *taken_by;               /* by node: who inlines it */
	int32_t *in_view;               /* by value: instance */
	ValId *views;                   /* views of one another */
	struct pauses *pauses;          /* where there is host memory */
	struct waiting {                /* clones that wait for their operands,
	                                 * of which `next` is due */
		NodeId node;
		int next;
	} *waiting;
};

/* remat_steps.c */
struct schedule *schedule_new(const struct remat *, Arena *);
/* Schedule a set: drop[s] != 0 for dropped candidates. */
struct remat_cost schedule_set(struct schedule *, const uint8_t *drop);
/* Schedule a sequence: first runs in order and clones of nodes other than
 * views.  Clones that nobody reads are left out. */
struct remat_cost schedule_steps(struct schedule *, const struct rstep *,
                                 int32_t n);
/* remat_eval.c: lifetimes and cost of the steps. */
struct remat_cost schedule_measure(struct schedule *);
/* Bytes of a slot: of what lives across the boundary. */
int64_t schedule_slot_bytes(const struct schedule *);
/* Arena size once placed. */
int64_t schedule_packed(const struct schedule *, Arena *scratch);
/* Storage that a clone writes although the plan does not ask for it, which
 * lives during that step alone; -1: none. */
int32_t remat_in_passing(const struct remat *, const struct rstep *);
/* remat_apply.c: rewrite the graph that the problem was read off. */
void schedule_apply(const struct schedule *, Graph *);

/* readers.c */
struct readers remat_readers(const struct remat *, Arena *);

/* remat.c: all nodes keep everything: only what backward never reads counts as
 * dropped. */
void remat_keep_all(const struct remat *, const uint8_t *constraint,
                    uint8_t *drop);

/* remat.c: whether a reader of value v may have to ask for it; what for. */
bool remat_ask(const struct remat *, ValId v, struct ask *);

/* remat.c: storages of results of n that may lie in the bytes of an operand's,
 * in turns with those, 2 REMAT_PAIRS at most; returns how many pairs. */
int remat_storage_pairs(const struct remat *, const Node *n, int32_t *list);

/* cuts.c: storages at which the forward graph hangs together by one activation,
 * in order, and the node behind which each does so; returns how many. */
int32_t remat_cuts(const struct remat *, Arena *, int32_t *cut,
                   NodeId *behind);

#endif
