/* What import and inspection have in common. */
#ifndef FRONTEND_IMPORT_GRAPH_H
#define FRONTEND_IMPORT_GRAPH_H

#include "frontend/flat.h"

/* import.c: the model flat, with verdicts and without the outputs that the
 * loss can do without and that need missing operators.  NULL after
 * diagnostics; *file is closed by the caller in any case, and may be NULL. */
struct flat *import_flat(const char *path, const struct import_options *,
                         Diag *, Arena *, struct onnx_file **file);

/* The label smoothing that an exporter dropped from a cross entropy, by its
 * own word; 0: none that is known of. */
double import_lost_smoothing(const struct flat_node *);
#define LOST_SMOOTHING "the exporter dropped label_smoothing=%g; write it " \
	"out: p = log_softmax(z, -1); (1 - s) * nll_loss(p, y) - s * p.mean()"

/* import_graph.c: the graph of a flat model whose operators are all there;
 * NULL after diagnostics.  The arena is for what is not the graph's. */
Graph *import_graph(struct flat *, const struct import_options *, Arena *,
                    const char *name);
/* As much of it as there are operators for, without outputs. */
Graph *import_known(struct flat *, const struct import_options *, Arena *);

#endif
