/* The search's state, and its parts. */
#ifndef PASSES_AUTO_INSIDE_H
#define PASSES_AUTO_INSIDE_H

#include "passes/auto/auto.h"

/* Configurations with the same micro-batch on the same ranks. */
struct family {
	struct auto_config config;      /* one micro-batch; one replica, or as
	                                 * many as share experts */
	bool known;                     /* `plan` is that without a budget */
	struct auto_plan plan;
};

struct search {
	const struct auto_request *r;
	AutoPlanner *planner;
	void *of;
	struct auto_found *found;
	struct family *family;
	int64_t nfamily;
	int64_t *of_candidate;          /* family */
	bool predicts;                  /* some plans are only predicted */
	struct auto_curve *curve;
	size_t ncurve, curve_cap;
	double began;
	FILE *progress;
	Arena *arena;
};

/* ---- lists.c ---- */

/* For qsort.  Equal seconds: fewer devices, then fewer bytes. */
int list_by_seconds(const void *, const void *);
int list_by_bound(const void *, const void *);
/* Candidates with a state from `least` to `most`. */
struct auto_candidate **list_states(const struct auto_found *,
                                    enum auto_state least, enum auto_state most,
                                    int64_t *n, Arena *);
/* Seconds that a candidate has to be faster than to be the first of `shown`. */
double list_cutoff(const struct search *, int64_t shown, Arena *);
/* Copy plans to the candidates that have the plan of another one. */
void list_follow_same(struct auto_found *);
/* Remove these from v[0..n-1]; how many are left. */
int64_t list_drop_same(struct auto_candidate **v, int64_t n);

/* ---- families.c ---- */

/* One device has a family for each batch, even if all candidates shard. */
void families_list(struct search *);
/* Plan one device's micro-batch of each batch.  False: interrupted. */
bool families_plan_batches(struct search *);
void families_set_bounds(struct search *);
/* Use a family's plan, which has just become known. */
void families_take(struct search *, int64_t family);
/* The family to be planned first: one of fewer ranks that bounds it, if there
 * is one that is not known yet. */
int64_t families_first(const struct search *, int64_t family);

/* ---- points.c ---- */

/* Whether a candidate's plan within the budget is predicted by a curve. */
bool points_serve(const struct auto_candidate *);
struct auto_curve *points_curve(struct search *, const struct auto_config *);
/* Bytes of the whole model that its curve has to save. */
double points_excess(const struct search *, const struct auto_candidate *);
/* Bytes of `peak` beside those that are resident; 0: unknown. */
double points_left(const struct auto_candidate *, double peak);
/* Raise its bound by points with more memory. */
void points_bound(struct search *, struct auto_candidate *);
/* Whether known points decide: it is predicted or refused then. */
bool points_settle(struct search *, struct auto_candidate *);
/* Take the answer of a job for a point. */
void points_take(struct search *, struct auto_candidate *,
                 const struct auto_job *);
/* Refuse the candidates that need no less memory than this refused one. */
void points_refuse_larger(struct search *, const struct auto_candidate *);

/* ---- waves.c ---- */

enum { WAVE = 8 };

/* What a wave plans. */
struct item {
	struct auto_candidate *candidate;       /* NULL: */
	int64_t family;
};

/* The next wave; how many.  Candidates with host memory, whose plans take
 * longest, come last. */
int waves_next(struct search *, struct item wave[WAVE], Arena *);
/* Take the answer of a candidate's job. */
void waves_take(struct search *, struct auto_candidate *,
                const struct auto_job *);

#endif
