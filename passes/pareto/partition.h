/* Forward cut into parts of which equal ones are solved once. */
#ifndef PASSES_PARETO_PARTITION_H
#define PASSES_PARETO_PARTITION_H

#include "passes/remat_model/remat_model.h"

/* Decisions of a part are bits of a word; parts with more are not solved. */
enum { PART_DECISIONS = 60 };

/* A decision variable: outputs of one node of a part that are kept or dropped
 * together. */
struct decision {
	int32_t node;                   /* number in the part */
	int32_t *store;                 /* numbers in the part */
	int nstore;
	int64_t bytes, min_bytes;       /* of all; those that no plan frees
	                                 * while it keeps the first, but see
	                                 * partition.freeable */
	int64_t first;                  /* of the first output alone */
	uint64_t needs;                 /* decisions that its node reads */
	bool direct;                    /* backward itself reads it */
	bool crosses;                   /* the next part reads it */
	bool dropped;                   /* by the user's constraint */
	bool inlinable;                 /* a copy may do without memory */
};

/* What to keep of a part: a candidate for its Pareto front of bytes, seconds
 * and needs. */
struct part_point {
	uint64_t keep;                  /* decisions */
	int64_t bytes, min_bytes;       /* of them */
	int64_t min_later_bytes;        /* of these, as long as backward is at
	                                 * later parts */
	double least;                   /* seconds of the nodes repeated: as
	                                 * few as each may take */
	double sec;                     /* the same as measured */
	bool unsaved;                   /* drops what the next part reads */
	bool measured;                  /* its needs are known */
	int32_t level;                  /* if unsaved and of use: see class */
};

enum { PART_LEVELS = 3 };

/* An equivalence class: equal parts. */
struct part_class {
	int32_t model;                  /* a part that stands for them */
	int32_t count;
	struct decision *decision;
	int32_t ndecision;
	struct part_point *point;       /* by falling bytes */
	int32_t npoint, nmeasured;
	bool thinned;                   /* not all are listed */
	struct needs *need, *least;     /* of its parts */
	int32_t nneed, nleast;
	int32_t *plan, nplan, nunsaved; /* the useful ones for plans: saved by
	                                 * rising bytes, then unsaved */
	int32_t *low, nlow;             /* for bounds, by rising bytes */
	int64_t level[PART_LEVELS];     /* bytes that unsaved ones put back
	                                 * while backward is at the next part */
	int32_t nlevel;
};

/* Bytes that equal parts in equal surroundings need beside what is kept of the
 * parts before them, but for a constant. */
struct needs {
	int64_t *of;                    /* by point */
	int64_t most;                   /* the most of all in the list */
	/* of each in the list: what the least demanding one needs that is no
	 * worse in bytes and seconds; INT64_MAX: there is none */
	int64_t *limit;
};

/* Bytes that a plan may free in ways of which points know nothing, at
 * a price: see partition_least. */
struct freeable {
	double price;                   /* seconds per byte, at least */
	int64_t bytes;
};

struct curve_part {
	NodeId *node;                   /* forward nodes in order */
	int32_t nnode;
	int32_t *store;                 /* defined here */
	int32_t nstore;
	int32_t class;
	NodeId lo;                      /* backward is at this part from here
	                                 * to where the part before begins */
	NodeId begin;                   /* first backward node that reads it or
	                                 * an earlier one */
	struct needs *need, *least;     /* as measured; of any plan */
	int64_t need_more, least_more;  /* this part more than those say */
};

struct partition {
	struct remat *r;
	const uint8_t *constraint;
	Arena *arena;
	struct curve_part *part;
	int32_t n;
	struct part_class *class;
	int32_t nclass;
	int32_t *part_of;               /* by storage; -1 */
	int32_t *local;                 /* by storage: number in its part */
	int32_t *node_part;             /* by node: where its step belongs */
	bool *crosses;                  /* by storage: another part reads it */
	bool *forced;                   /* by storage: kept without a choice */
	NodeId *end_forward, *first, *last;     /* by storage: reads */
	struct freeable *freeable;      /* by price, see part_least.c */
	int32_t nfreeable;
};

static inline bool
part_droppable(const struct partition *y, int32_t s)
{
	return y->r->store[s].candidate && y->constraint[s] != 'k';
}

/* partition.c; NULL: the graph cannot be cut into parts small enough. */
struct partition *partition_new(struct remat *, const uint8_t *constraint);
/* part_classes.c: classes of parts and their decisions; false: too many of a
 * class. */
bool partition_classify(struct partition *);
/* part_decisions.c: what has to be there for the decisions asked for, when
 * `keep` is kept. */
uint64_t decisions_needed(const struct part_class *, uint64_t asked,
                          uint64_t keep);
/* Bytes of decisions, and the lower bounds of these. */
int64_t decisions_bytes(const struct part_class *, uint64_t set);
int64_t decisions_min_bytes(const struct part_class *, uint64_t set);
/* Make the part's share of a plan. */
void part_set(const struct partition *, const struct curve_part *,
              const struct part_point *, uint8_t *drop);
/* part_points.c: points of every class, needs of every part; false:
 * there are too many, or no time for them. */
bool partition_solve(struct partition *);
/* part_least.c: what parts need in any plan. */
void partition_least(struct partition *);
/* Empty needs for parts of a class, at the end of a list. */
struct needs *needs_new(struct partition *, const struct part_class *,
                        struct needs **list, int32_t *n);
/* part_need.c: what parts need with points, as measured. */
void partition_measure(struct partition *);
/* part_unsaved.c: which points with an unsaved boundary are worth a try, and
 * their needs. */
void partition_unsaved(struct partition *);

#endif
