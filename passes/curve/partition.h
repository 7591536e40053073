/* Forward cut into parts of which equal ones are solved once. */
#ifndef PASSES_PARTS_H
#define PASSES_PARTS_H

#include "passes/problem/remat.h"

/* Picks of a part are bits of a word; parts with more are not solved. */
enum { PART_PICKS = 60 };

/* Outputs of one node of a part that are kept or dropped together. */
struct pick {
	int32_t node;                   /* number in the part */
	int32_t *store;                 /* numbers in the part */
	int nstore;
	int64_t bytes, lead;            /* of all; those that no plan frees
	                                 * while it keeps the first, but see
	                                 * parts.loose */
	int64_t first;                  /* of the first output alone */
	uint64_t needs;                 /* picks that its node reads */
	bool direct;                    /* backward itself reads it */
	bool crosses;                   /* the next part reads it */
	bool dropped;                   /* by the user's wish */
	bool inlinable;                 /* a copy may do without memory */
};

/* What to keep of a part. */
struct config {
	uint64_t keep;                  /* picks */
	int64_t bytes, lead;            /* of them */
	int64_t firm;                   /* of lead, as long as backward is at
	                                 * later parts */
	double least;                   /* seconds of the nodes repeated: as
	                                 * few as each may take */
	double sec;                     /* the same as measured */
	bool open;                      /* drops what the next part reads */
	bool measured;                  /* its needs are known */
	int32_t level;                  /* if open and of use: see kind */
};

enum { PART_LEVELS = 3 };

/* Equal parts. */
struct kind {
	int32_t model;                  /* a part that stands for them */
	int32_t count;
	struct pick *pick;
	int32_t npick;
	struct config *config;          /* by falling bytes */
	int32_t nconfig, nmeasured;
	bool thinned;                   /* not all are listed */
	struct needs *need, *least;     /* of its parts */
	int32_t nneed, nleast;
	int32_t *plan, nplan, nopen;    /* the useful ones for plans: closed by
	                                 * rising bytes, then open */
	int32_t *low, nlow;             /* for bounds, by rising bytes */
	int64_t level[PART_LEVELS];     /* bytes that open ones put back while
	                                 * backward is at the next part */
	int32_t nlevel;
};

/* Bytes that equal parts in equal surroundings need beside what is kept of the
 * parts before them, but for a constant. */
struct needs {
	int64_t *of;                    /* by configuration */
	int64_t most;                   /* the most of all in the list */
	/* of each in the list: what the least demanding one needs that is no
	 * worse in bytes and seconds; INT64_MAX: there is none */
	int64_t *limit;
};

/* Bytes that a plan may free in ways of which configurations know nothing, at
 * a price: see parts_least. */
struct loose {
	double price;                   /* seconds per byte, at least */
	int64_t bytes;
};

struct part {
	NodeId *node;                   /* forward nodes in order */
	int32_t nnode;
	int32_t *store;                 /* defined here */
	int32_t nstore;
	int32_t kind;
	NodeId lo;                      /* backward is at this part from here
	                                 * to where the part before begins */
	NodeId begin;                   /* first backward node that reads it or
	                                 * an earlier one */
	struct needs *need, *least;     /* as measured; of any plan */
	int64_t need_more, least_more;  /* this part more than those say */
};

struct parts {
	struct remat *r;
	const uint8_t *must;
	Arena *arena;
	struct part *part;
	int32_t n;
	struct kind *kind;
	int32_t nkind;
	int32_t *part_of;               /* by storage; -1 */
	int32_t *local;                 /* by storage: number in its part */
	int32_t *node_part;             /* by node: where its step belongs */
	bool *crosses;                  /* by storage: another part reads it */
	bool *tied;                     /* by storage: kept without a choice */
	NodeId *end_forward, *first, *last;     /* by storage: reads */
	struct loose *loose;            /* by price, see part_least.c */
	int32_t nloose;
};

static inline bool
part_droppable(const struct parts *y, int32_t s)
{
	return y->r->store[s].candidate && y->must[s] != 'k';
}

/* parts.c; NULL: the graph cannot be cut into parts small enough. */
struct parts *parts_new(struct remat *, const uint8_t *must);
/* part_kind.c: kinds of parts and their picks; false: too many of a kind. */
bool parts_kinds(struct parts *);
/* part_pick.c: what has to be there for the picks asked for, when `keep` is
 * kept. */
uint64_t picks_needed(const struct kind *, uint64_t asked, uint64_t keep);
/* Bytes of picks, and those of their leads. */
int64_t picks_bytes(const struct kind *, uint64_t picks);
int64_t picks_lead(const struct kind *, uint64_t picks);
/* Make the part's share of a plan. */
void part_set(const struct parts *, const struct part *,
              const struct config *, uint8_t *drop);
/* part_config.c: configurations of every kind, needs of every part; false:
 * there are too many, or no time for them. */
bool parts_solve(struct parts *);
/* part_least.c: what parts need in any plan. */
void parts_least(struct parts *);
/* Empty needs for parts of a kind, at the end of a list. */
struct needs *needs_new(struct parts *, const struct kind *,
                        struct needs **list, int32_t *n);
/* part_need.c: what parts need with configurations, as measured. */
void parts_measure(struct parts *);
/* part_open.c: which of the open ones are worth a try, and their needs. */
void parts_open(struct parts *);

/* compose.c: the time that every amount of memory takes. */
struct curve;

/* NULL: there was no time for it. */
struct curve *curve_new(struct parts *);
/* Plans of the curve, from the fastest on: the memory that they are reckoned
 * to need, and the plan itself. */
int32_t curve_count(const struct curve *);
int64_t curve_bytes(const struct curve *, int32_t);
/* What its copies take at least. */
double curve_least(const struct curve *, int32_t);
void curve_plan(const struct curve *, int32_t, uint8_t *drop);
/* No plan of class "once" within so much memory spends fewer seconds on
 * copies; INFINITY: there is none. */
double curve_bound(struct curve *, int64_t memory);
/* The same of any plan. */
double curve_bound_any(const struct curve *, int64_t memory);

#endif
