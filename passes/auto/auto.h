/* Room auto: the configuration that trains fastest on given devices.
 *
 * in      the devices, the samples of a step, what the user fixed; a function
 *         that plans configurations
 * out     all configurations, with what is known of each, the fastest first
 * must not know the command line, files, how a configuration is planned
 *
 *     candidates.c   all configurations
 *     search.c       which of them are planned; its parts are in inside.h
 *     bounds.c       what a configuration takes at least
 *     predict.c      all layers from few; curve.c what a budget adds
 *     predict_stages.c  a pipeline from its stages; stage_parts.c these from
 *                    a model with few layers
 *     shorten.c      models with fewer layers
 *     measure.c      what a plan says of a configuration
 *     auto_text.c    the report; auto_json.c the same as JSON
 *     config.c       options to type
 */
#ifndef PASSES_AUTO_AUTO_H
#define PASSES_AUTO_AUTO_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "ir/base/arena.h"
#include "ir/base/watch.h"
#include "ir/plan.h"

/* What --auto chooses.  A step has tp * dp * pp ranks, each with `accum`
 * micro-batches of `batch` samples. */
struct auto_config {
	int64_t tp, dp, pp;             /* 1: none */
	int64_t ep;                     /* replicas that share experts */
	int64_t zero;                   /* stage */
	int64_t zero_group;             /* 0: all replicas */
	int64_t batch, accum;
	bool sp, halves;
	bool offload;                   /* --offload auto */
};

/* Replicas that share what a stage of ZeRO shards. */
static inline int64_t
auto_shards(const struct auto_config *c)
{
	return !c->zero ? 1 : c->zero_group ? c->zero_group : c->dp;
}

static inline int64_t
auto_ranks(const struct auto_config *c)
{
	return c->tp * c->dp * c->pp;
}

/* Choices that the user did not make. */
struct auto_free {
	bool tp, dp, pp, ep, zero, zero_group, batch, accum, sp, halves;
	bool offload;
};

struct auto_request {
	int64_t devices, samples;       /* of a step, over all devices */
	struct auto_config fixed;       /* values of choices that are not
	                                 * free */
	struct auto_free may;
	int64_t chunks;                 /* > 1: stages of a rank, which take as
	                                 * many micro-batches at a time as
	                                 * there are ranks (interleaved) */
	bool zero_bubble;               /* schedule ZB-H1 */
	int64_t experts;                /* their number has to be a multiple of
	                                 * ep; 0: the model has none */
	const char *batch_dim;          /* name that --dim binds to the batch;
	                                 * NULL: the file fixes it */
	int64_t budget;                 /* bytes of a device; 0: no limit */
	bool device_budget;             /* it is the device's memory, not
	                                 * --memory-budget */
	bool in_proportion;             /* a part of an op takes at least that
	                                 * part of its seconds: no seconds were
	                                 * measured */
	bool may_reorder;               /* a budget may bring updates into
	                                 * backward */
	int64_t exact;                  /* so many of the best predicted plans
	                                 * are made, if any are predicted */
	const struct device_profile *device;
	double seconds;                 /* limit of the search, which the
	                                 * planner keeps, too; 0: none */
	double exact_sec;               /* the same, of making plans that are
	                                 * predicted */
};

/* Seconds of a step, if the whole model takes one second for a micro-batch and
 * all stages take equally long: at least, with other schedules than 1F1B. */
static inline double
auto_turns(const struct auto_request *r, const struct auto_config *c)
{
	bool waits = r->chunks <= 1 && !r->zero_bubble;

	return (double)(c->accum + (waits ? c->pp - 1 : 0)) / (double)c->pp;
}

enum { AUTO_WHY = 300, AUTO_GAINS = 9 };

/* As a share: which stage is slowest depends on how much a budget adds. */
static inline double
auto_gain_at(int i)
{
	return 0.005 * (double)(1 << i);
}

/* What planning a configuration gave. */
struct auto_plan {
	bool ok;
	bool predicted;                 /* from models with fewer layers, or
	                                 * with little effort */
	char why[AUTO_WHY];             /* not ok: the reason */
	int64_t least;                  /* not ok: smallest budget that works,
	                                 * 0: unknown; */
	bool at_least;                  /* none below it works */
	/* seconds of a step of all micro-batches */
	double sec;                     /* transfers beside computation */
	double compute, recompute;      /* compute has no recomputation */
	double idle;                    /* a stage waits for others, on
	                                 * average */
	double sent_sec;                /* all transfers between ranks */
	double busiest;                 /* of computation without recomputation,
	                                 * or of the transfers of one lane */
	double micro_sec, update_sec;   /* of computation alone: one
	                                 * micro-batch, the update; */
	double micro_shown;             /* one micro-batch with transfers */
	double sent, swapped;           /* bytes between ranks; to and from host
	                                 * memory */
	int64_t peak, resident, host;   /* bytes of a rank */
	double cast_bytes;              /* of trained parameters that are read
	                                 * as 16-bit casts alone: the casts; */
	double uncast_bytes;            /* ... of the others; */
	double gradient_bytes;          /* ... of all gradients, at least */
	int64_t needs, states;          /* bytes that no budget undercuts; of
	                                 * them, optimizer state */
	/* of a layer of a model with few, on average of all but the last */
	double layer_bytes;             /* resident or saved for backward; of
	                                 * them, */
	double layer_resident;          /* resident */
	double ends_saved;              /* beside the layers: saved */
	double layer_again;             /* seconds of recomputation, with its
	                                 * transfers, in a micro-batch; */
	double layer_recompute;         /* ... without them */
	double again;                   /* ... of all that the model has */
	/* of a pipeline, what a budget does beside a curve: bytes of the whole
	 * model by bytes of a stage, 0: no pipeline; seconds of a step more if
	 * a micro-batch of the whole model takes auto_gain_at(i) longer */
	double curve_bytes, gain[AUTO_GAINS];
	/* of a micro-batch; only if the job asked for it */
	double flops, peak_flops;       /* of the model; of a device a second */
	int64_t tokens;                 /* of a sample; 0: it has none */
};

/* Seconds for which a step waits for transfers. */
static inline double
auto_exposed(const struct auto_plan *p)
{
	double sec = p->sec - p->compute - p->recompute - p->idle;

	return sec > 0 ? sec : 0;
}

/* What a budget does to a plan without one; of a micro-batch. */
struct auto_point {
	double bytes;                   /* fewer; 0: nothing is known */
	double sec, recompute;          /* more */
	int64_t host;                   /* bytes of host memory */
	double left;                    /* bytes beside those that are
	                                 * resident; 0: unknown */
};

struct auto_job {
	struct auto_config config;
	bool budget;                    /* plan within the budget */
	bool exact;                     /* no prediction */
	bool proof;                     /* of a plan that is predicted */
	int64_t excess;                 /* > 0: only predict the point that has
	                                 * about so many bytes fewer */
	struct auto_point point;        /* the answer; if plan.least > 0, bytes
	                                 * are the most that a budget saves */
	bool flops;                     /* flops, peak_flops and tokens are
	                                 * wanted */
	bool late;                      /* there was no time for an answer */
	struct auto_plan plan;          /* the answer */
};

/* Plans the jobs, several at once.  False: interrupted. */
typedef bool AutoPlanner(void *of, struct auto_job *, int n);

enum auto_state {
	AUTO_OPEN,                      /* nothing is known but `bound` */
	AUTO_BOUND,                     /* planned without a budget */
	AUTO_PLANNED,
	AUTO_REFUSED,
	AUTO_SAME                       /* host memory would not be used */
};

struct auto_candidate {
	struct auto_config config;
	enum auto_state state;
	double bound;                   /* no plan has a faster step */
	struct auto_plan plan;          /* AUTO_PLANNED: the plan; AUTO_REFUSED:
	                                 * why */
	int64_t without;                /* candidate without offload; -1 */
	int64_t same;                   /* another one with the same plan, from
	                                 * which all of this follows; -1 */
	struct auto_plan open;          /* predicted, without a budget */
	bool over;                      /* ... and needs more than the budget */
	double predicted_sec;           /* of a plan that was made; 0: was not
	                                 * predicted */
	int64_t predicted_peak;
};

/* Whether only a prediction of its plan is known. */
static inline bool
auto_is_predicted(const struct auto_candidate *c)
{
	return c->state == AUTO_PLANNED && c->plan.predicted;
}

struct auto_found {
	struct auto_request request;
	struct auto_candidate *candidate;
	int64_t n;
	const int64_t *order;           /* planned ones, the fastest first */
	int64_t nplanned;
	bool stopped;                   /* `seconds` were over */
	bool cut;                       /* `exact_sec` were over */
	int64_t nplan;                  /* plans that were made */
	double flops, peak_flops;       /* of a sample; of a device */
	int64_t tokens;                 /* of a sample; 0: it has none */
};

/* Whether it may be faster than the best by its bound, and yet was not planned:
 * host memory is only tried where it may gain much beside predictions. */
static inline bool
auto_is_untried(const struct auto_found *f, const struct auto_candidate *c)
{
	return (c->state == AUTO_OPEN || c->state == AUTO_BOUND)
		&& (f->stopped
		    || (f->nplanned > 0 && c->bound < 0.999
		        * f->candidate[f->order[0]].plan.sec));
}

/* candidates.c: all configurations, in one order. */
struct auto_candidate *auto_candidates(const struct auto_request *, int64_t *n,
                                       Arena *);
/* Plan as many candidates as it takes to know the fastest ones.  False:
 * interrupted. */
bool auto_search(const struct auto_request *, AutoPlanner *, void *of,
                 struct auto_found *, FILE *progress, Arena *);
/* curve.c: points of configurations with the same micro-batch. */
struct auto_curve {
	struct auto_config like;
	struct auto_point *point;       /* by rising bytes and seconds */
	size_t n, cap;
	double most;                    /* bytes that a budget saves at most */
};

bool auto_curve_serves(const struct auto_curve *, const struct auto_config *);
/* Whether it does but for the number of replicas that shard. */
bool auto_curve_is_near(const struct auto_curve *, const struct auto_config *);
/* Seconds that a plan with so many bytes beside the resident ones adds at
 * least; 0: unknown. */
double auto_curve_least(const struct auto_curve *, double left);
void auto_curve_add(struct auto_curve *, const struct auto_point *, Arena *);
/* The point with so many bytes fewer.  False: none is known that is near. */
bool auto_curve_at(const struct auto_curve *, double bytes,
                   struct auto_point *);
/* The nearest one that is known, extended; the curve has some. */
void auto_curve_nearest(const struct auto_curve *, double bytes,
                        struct auto_point *);
/* predict.c: what a budget does to a model of n layers but for bytes: `whole`
 * and `less` are plans of `few` layers without and with it, per step of accum
 * micro-batches. */
void auto_gain(const struct auto_plan *whole, const struct auto_plan *less,
               double few, double n, double accum, struct auto_point *);
/* predict.c: from plans of a few layers, and of one more, that of so many
 * further layers. */
void auto_extend(const struct auto_plan *few, const struct auto_plan *more,
                 int64_t layers, struct auto_plan *);
struct few_layers;                      /* stages.h */
/* predict_stages.c: from the plan of the whole model, which is predicted from
 * few layers, that of a pipeline.  False: it cannot be predicted. */
bool auto_pipeline(const struct auto_request *, const struct auto_config *,
                   const struct few_layers *, struct auto_plan *, Arena *);
/* predict_stages.c: from plans of all n stages, each for one micro-batch; stage
 * k is on rank k % ranks.  sec: of a step; 0: 1F1B. */
void auto_join_stages(const struct auto_plan *, int n, int ranks, int64_t accum,
                      double sec, struct auto_plan *);
/* predict_stages.c: seconds of a step more if a budget adds so many to a
 * micro-batch of the whole model. */
double auto_step_gain(const struct auto_plan *, int64_t accum, double sec);
/* measure.c: from the plan of a micro-batch and the update. */
void auto_measure(const Plan *, int64_t accum, struct auto_plan *, Arena *);
/* measure.c: the tensor in whose bytes t lies. */
int64_t auto_root(const Plan *, int64_t t);
/* Of a stage of which a share of the accum micro-batches has the other plan. */
void auto_mix_plans(struct auto_plan *, const struct auto_plan *other,
                    double share, int64_t accum);
/* Layers' members; of: by origin of the plan's graph g: its layer of n; -1. */
void auto_measure_layers(const Plan *, const Graph *g, const int32_t *of,
                         int32_t n, struct auto_plan *, Arena *);
enum { AUTO_WORDS = 24 };
/* config.c: the options of a configuration as words, or of those only that the
 * user did not give; how many. */
int auto_words(const struct auto_request *, const struct auto_config *,
               bool all, const char *word[AUTO_WORDS], Arena *);
/* Words as a line for a shell. */
const char *auto_line(const char *const *word, int n, Arena *);
/* All options of a configuration, as a line. */
const char *auto_options(const struct auto_request *,
                         const struct auto_config *, Arena *);
/* A size that --memory-budget reads as so many bytes. */
const char *auto_size(int64_t bytes, Arena *);

/* Lines to type for the fastest configuration. */
struct auto_lines {
	const char *model, *device, *compile, *run;
};
void auto_print(const struct auto_found *, const struct auto_lines *, FILE *,
                Arena *);
void auto_write_json(const struct auto_found *, const struct auto_lines *,
                     FILE *, Arena *);

#endif
