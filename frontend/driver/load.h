/* Read the model of a command line. */
#ifndef FRONTEND_DRIVER_LOAD_H
#define FRONTEND_DRIVER_LOAD_H

#include "frontend/driver/opts.h"

struct model_load {
	const struct cli *cli;
	Arena *arena;                   /* of what the importer folds */
	Diag *diag;
	struct watch *watch;
};

/* The importer's options; they refer to the struct. */
struct import_options load_options(struct model_load *);
/* The graph before pass bind, from ONNX or text; NULL after a diagnostic.
 * *file owns what the graph points into. */
Graph *load_model(struct model_load *, struct onnx_file **file);

#endif
