/* Subcommands of ckc. */
#ifndef FRONTEND_DRIVER_VERBS_H
#define FRONTEND_DRIVER_VERBS_H

#include "frontend/driver/opts.h"

/* ckc inspect MODEL.onnx: report on the model, as a page or JSON. */
bool verb_inspect(const struct cli *, const struct import_options *, Arena *,
                  Diag *);
/* ckc plan GRAPH.json: rematerialisation plan of a standalone graph. */
bool verb_plan(const struct cli *, Arena *, Diag *);
/* ckc pack BUFFERS.csv: offsets for buffers with known lifetimes. */
bool verb_pack(const struct cli *, Arena *, Diag *);

/* --auto: search, print the report and write --json.  *next, of *n words after
 * the program's name, is the command line of the fastest configuration. */
bool verb_auto(struct cli *, struct watch *, Arena *, Diag *,
               const char ***next, int *n);

/* ckc advise MODEL.onnx --memory SIZE: options that fit, by cost. */
bool verb_advise(struct cli *, struct watch *, Arena *, Diag *);
/* Adds the command line of that, for the model and its options, to the message
 * that a budget is too small; nothing if none was. */
void advise_more(const struct cli *, const Pass *);

/* ckc doctor: list tools and libraries of this machine; test whether models can
 * be compiled and trained. */
bool verb_doctor(const struct cli *, Arena *, Diag *);

#endif
