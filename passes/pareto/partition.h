/* Forward cut into parts of which equal ones are solved once. */
#ifndef PASSES_PARETO_PARTITION_H
#define PASSES_PARETO_PARTITION_H

#include "passes/remat_model/remat_model.h"

/* Decisions of a part are bits of a word; parts with more are not solved. */
enum { PART_DECISIONS = 60 };

/* A decision variable: outputs of one node of a part that are kept or dropped
 * together. */
struct decision {
	int32_t node;                   /* node, by its number in the part */
	int32_t *store;                 /* its outputs, storages by their
	                                 * numbers in the part */
	int nstore;
	int64_t bytes, min_bytes;       /* bytes of all outputs; bytes that no
	                                 * plan frees while it keeps the first
	                                 * one, but see partition.freeable */
	int64_t first;                  /* bytes of the first output alone */
	uint64_t needs;                 /* set of decisions whose outputs the
	                                 * node reads */
	bool direct;                    /* a node of backward reads an output */
	bool crosses;                   /* the next part reads an output */
	bool dropped;                   /* the user's constraint drops it */
	bool inlinable;                 /* a clone may run inside its reader,
	                                 * without memory */
};

/* What to keep of a part: a candidate for its Pareto front of bytes, seconds
 * and needs. */
struct part_point {
	uint64_t keep;                  /* set of decisions that are kept */
	int64_t bytes, min_bytes;       /* bytes of the kept decisions; their
	                                 * lower bound, as in struct decision */
	int64_t min_later_bytes;        /* the part of min_bytes that stays
	                                 * while backward runs later parts */
	double least;                   /* lower bound of the seconds that the
	                                 * clones take */
	double sec;                     /* seconds that the clones take, as
	                                 * measured */
	bool unsaved;                   /* drops the boundary, which the next
	                                 * part reads */
	bool measured;                  /* the needs of this point are known */
	int32_t level;                  /* of an unsaved point that plans use:
	                                 * index into part_class.level */
};

enum { PART_LEVELS = 3 };

/* An equivalence class: equal parts. */
struct part_class {
	int32_t model;                  /* the part that stands for the class */
	int32_t count;                  /* parts in the class */
	struct decision *decision;
	int32_t ndecision;
	struct part_point *point;       /* Pareto points by falling bytes */
	int32_t npoint, nmeasured;
	bool thinned;                   /* some points were left out */
	struct needs *need, *least;     /* lists of needs of its parts: with
	                                 * points as measured; in any plan */
	int32_t nneed, nleast;
	int32_t *plan, nplan, nunsaved; /* points that plans use: saved ones by
	                                 * rising bytes, then unsaved ones */
	int32_t *low, nlow;             /* points for bounds, by rising bytes */
	int64_t level[PART_LEVELS];     /* bytes that unsaved points make again
	                                 * while backward is at the next part */
	int32_t nlevel;
};

/* Bytes that equal parts in equal surroundings need beside what is kept of the
 * parts before them, but for a constant. */
struct needs {
	int64_t *of;                    /* bytes needed, by point */
	int64_t most;                   /* the most bytes of all points */
	/* by point of the list (plan or low): bytes that the least demanding
	 * point needs which is no worse in bytes and seconds; INT64_MAX: there
	 * is none */
	int64_t *limit;
};

/* Bytes that a plan may free in ways of which points know nothing, at
 * a price: see partition_least. */
struct freeable {
	double price;                   /* seconds that freeing a byte costs at
	                                 * least */
	int64_t bytes;                  /* bytes that can be freed at that
	                                 * price */
};

struct curve_part {
	NodeId *node;                   /* forward nodes in order */
	int32_t nnode;
	int32_t *store;                 /* storages that its nodes write */
	int32_t nstore;
	int32_t class;
	NodeId lo;                      /* first backward node at which backward
	                                 * has reached this part */
	NodeId begin;                   /* first backward node that reads this
	                                 * part or an earlier one */
	struct needs *need, *least;     /* needs with points, as measured; needs
	                                 * in any plan */
	int64_t need_more, least_more;  /* bytes that this part needs beyond
	                                 * need and least */
};

struct partition {
	const struct remat *r;
	const uint8_t *constraint;
	Arena *arena;
	struct curve_part *part;
	int32_t n;
	struct part_class *class;
	int32_t nclass;
	int32_t *part_of;               /* by storage: its part; -1 */
	int32_t *local;                 /* by storage: its number in its part */
	int32_t *node_part;             /* by node: the part that its step
	                                 * belongs to */
	bool *crosses;                  /* by storage: another part reads it */
	bool *forced;                   /* by storage: kept without a
	                                 * decision */
	/* by storage: last node of forward that reads it; first and last node
	 * of backward that read it */
	NodeId *end_forward, *first, *last;
	struct freeable *freeable;      /* by rising price, see part_least.c */
	int32_t nfreeable;
	/* bytes of a slot beside those of points: as measured; in any plan */
	int64_t kept, least_kept;
	int64_t before;                 /* bytes before backward is at the last
	                                 * part, in any plan, beside what is
	                                 * kept */
};

static inline bool
part_droppable(const struct partition *y, int32_t s)
{
	return y->r->store[s].candidate && y->constraint[s] != 'k';
}

/* partition.c; NULL: the graph cannot be cut into parts small enough. */
struct partition *partition_new(const struct remat *,
                                const uint8_t *constraint);
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
