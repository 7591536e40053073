/* Room params: which parameters are trained, and on which loss.
 *
 * in      a flat model, user options
 * out     a verdict and its reason for every weight; the loss
 * must not know how operators are imported
 */
#ifndef FRONTEND_PARAMS_PARAMS_H
#define FRONTEND_PARAMS_PARAMS_H

#include "frontend/params/import_options.h"
#include "frontend/onnx/flat.h"

/* classify.c: set the verdict of every possible weight; dissolve accidental
 * ties if the options say so.  whole: all branches are read, so that options
 * must match.  False after diagnostics. */
bool classify(struct flat *, const struct import_options *, bool whole);
/* param_options.c: check that every --train, --freeze and --param matches a
 * name.  False after diagnostics. */
bool check_param_options(struct flat *, const struct import_options *);
/* The text of the option as the user typed it. */
const char *param_option_text(Arena *, const struct glob_wish *);
/* untie.c: count parameters that an exporter merged, and if `apply` separate
 * them.  untie_names finds those with names that is_param_name accepts; untie,
 * after the verdicts, those without (lost: the file lacks parameters). */
typedef bool ParamNameFn(const void *ctx, const char *name);
void untie_names(struct flat *, bool apply, ParamNameFn *is_param_name,
                 const void *ctx);
void untie(struct flat *, bool lost, bool apply);
/* Separate statistics of BatchNormalizations that an exporter merged with equal
 * tensors.  Needs state_slot. */
void untie_statistics(struct flat *);
/* targets.c: the outputs to train on, the loss first; all outputs if the loss
 * is unknown. */
void flat_targets(struct flat *, const struct import_options *, int **list,
                  int *n);
/* Whether a BatchNormalization is in training form. */
bool batchnorm_trains(const struct flat_node *);
/* The --batchnorm that counts for a BatchNormalization, the last one that
 * matches its name or that of its scale; -1: none.  And the form that it asks
 * for. */
int batchnorm_option(const struct flat *, const struct import_options *,
                     const struct flat_node *);
enum batchnorm batchnorm_asked(const struct flat *,
                               const struct import_options *,
                               const struct flat_node *);
/* Whether a pattern matches these names. */
bool batchnorm_matches(const struct flat *, const struct flat_node *,
                       const char *glob);
/* Whether a node is a BatchNormalization on which an output depends. */
bool is_needed_batchnorm(const struct flat_node *);
/* Whether any needed node is, or is a Dropout that drops. */
bool has_training_form(const struct flat *);

#endif
