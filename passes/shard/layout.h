/* Declarations that the choice of sharding strategies shares. */
#ifndef PASSES_SHARD_LAYOUT_H
#define PASSES_SHARD_LAYOUT_H

#include "passes/shard/shard.h"
#include "passes/solve/ilp.h"

/* Nodes by id, then values that no node writes by nnode + id. */
struct classes {
	uint32_t n;                     /* entities */
	uint32_t *of;                   /* class, by entity */
	uint32_t nclass;
	uint32_t *first;                /* an entity of each */
	double *count;
	int *col;                       /* column of its first way */
};

struct edge {
	uint32_t giver, reader;         /* classes */
	int slot, port;
	ValId v;                        /* of the representative */
	double count;
};

struct layout {
	struct shard *s;
	struct classes c;
	struct edge *edge;
	size_t nedge, edge_cap;
	Ilp *ilp;
	uint32_t seed;
	uint32_t alone;                 /* an entity like no other; 0: none */
	int port;                       /* ... of which this one is not in */
	const Split *not;               /* this state */
};

static inline uint32_t
entity_of(const struct shard *s, ValId v)
{
	NodeId def = s->g->val[v].def;

	return def ? def : s->g->nnode + v;
}

static inline struct choice *
choice_of(const struct layout *l, uint32_t entity)
{
	const struct shard *s = l->s;

	return entity < s->g->nnode ? &s->node[entity]
		: &s->source[entity - s->g->nnode];
}

static inline bool
has_cut(const struct way *w, int port)
{
	return w->at[port].kind == SPLIT_S;
}

/* layout.c: the program and its answer; the way that it takes for an
 * entity. */
struct ilp_answer layout_solve(struct layout *);
int layout_taken(const struct layout *, const struct ilp_answer *,
                 uint32_t entity);

/* classes.c: entities that take the same way, and what joins them. */
void layout_find_classes(struct layout *);
void layout_find_edges(struct layout *);

/* demands.c: whether a way of a class breaks what is asked for. */
bool layout_forbids(const struct layout *, uint32_t class, const struct way *);
/* Ways with a cut of port 0 are the only ones, where there are any. */
bool layout_demands_cut(const struct layout *, uint32_t class);
/* There is no layout: says why, and is false. */
bool layout_refuse(const struct layout *);
/* What is asked of a value by name, as a number; 0: nothing. */
uint64_t layout_wish(const struct shard *, ValId);

#endif
