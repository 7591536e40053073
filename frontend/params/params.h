/* Room params: which parameters are trained, and on which loss.
 *
 * in      a flat model, user options
 * out     a verdict and its reason for every weight; the loss
 * unaware of how operators are imported
 */
#ifndef FRONTEND_PARAMS_PARAMS_H
#define FRONTEND_PARAMS_PARAMS_H

#include "frontend/params/import_options.h"
#include "frontend/onnx/flat.h"

/* classify.c: verdicts for everything that could be a weight, and accidental
 * ties dissolved if that is wished.  False after diagnostics. */
bool classify(struct flat *, const struct import_options *);
/* Whether a name is a module's path in the source, "block.0.weight". */
bool flat_is_path(const char *name);
/* param_options.c: whether every --train, --freeze and --param names something;
 * false after diagnostics. */
bool check_param_options(struct flat *, const struct import_options *);
/* The option as the user typed it. */
const char *param_option_text(Arena *, const struct glob_wish *);
/* untie.c: separate parameters that an exporter merged, if apply; note how many
 * there are.  By their names first, as is_param_name knows them, then, with
 * verdicts, those whose names are lost (lost: the file has lost some). */
typedef bool ParamNameFn(const void *ctx, const char *name);
void untie_names(struct flat *, bool apply, ParamNameFn *is_param_name,
                 const void *ctx);
void untie(struct flat *, bool lost, bool apply);
/* Give statistics of BatchNormalizations that an exporter merged with what
 * was equal contents of their own; needs state_slot. */
void untie_statistics(struct flat *);
/* targets.c: what the file is to be trained on, first the loss; all outputs
 * if that cannot be told. */
void flat_targets(struct flat *, const struct import_options *, int **list,
                  int *n);
/* Whether a BatchNormalization is in training form. */
bool batchnorm_trains(const struct flat_node *);
/* Whether any needed node is, or is a Dropout that drops. */
bool has_training_form(const struct flat *);

#endif
