/* Plans predicted from models with fewer layers. */
#ifndef FRONTEND_DRIVER_SHORTENED_H
#define FRONTEND_DRIVER_SHORTENED_H

#include "frontend/driver/opts.h"
#include "passes/auto/auto.h"
#include "passes/auto/shorten.h"
#include "passes/cost/cost.h"
#include "passes/explore/trial.h"

/* Layers of the models planned without a budget; of those within one at most,
 * with host memory, which takes longer, and without: the more of them, the
 * finer is what a budget chooses. */
enum { FEW = LAYERS_LEAST, MORE, WITH_HOST, BUDGETED = 12,
	LAYERS_MOST = BUDGETED };

/* A model for configurations that differ in ZeRO and the budget alone, or for
 * further ones. */
struct shortened {
	struct auto_config like;
	struct cli cli;
	struct watch watch;
	Pass pass;
	struct onnx_file *file;
	Graph *graph;                   /* whole, after pass loss; */
	bool shared;                    /* all so far are another one's */
	struct layers layers;           /* n 0: it cannot be shortened */
	/* by number of layers: before pass autodiff; NULL: not needed yet */
	struct trial *sharded[LAYERS_MOST + 1];
	bool failed;                    /* it cannot be sharded */
};

/* Whether nothing that the user asked for is about single layers. */
bool may_shorten(const struct cli *);
/* Load the model for configurations like c.opt, and find its layers. */
void shorten_model(struct shortened *, const struct cli *c,
                   const struct device_profile *,
                   const volatile sig_atomic_t *stop);
/* Free it, before those that it shares a model with. */
void shortened_close(struct shortened *);
/* Shard what a prediction of the job needs.  False: that is refused. */
bool shard_layers(struct shortened *, const struct options *,
                  const struct auto_job *);
/* Predict a plan, in a child process: memory that this takes stays. */
void predict_plan(const struct shortened *, const struct options *, bool flops,
                  struct auto_plan *to);
/* The same of a pipeline; options are those without stages. */
void predict_pipeline(const struct shortened *, const struct options *,
                      const struct auto_request *, const struct auto_config *,
                      struct auto_plan *to);
/* Predict what a budget does that saves about `excess` bytes; if no plan does,
 * *refusal says why, and to->bytes how many bytes one saves at most, if known.
 */
void predict_point(const struct shortened *, const struct options *,
                   int64_t excess, struct auto_plan *refusal,
                   struct auto_point *to);

#endif
