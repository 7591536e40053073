/* Room import: from the flat model to a graph.
 *
 * in      a flat list of ONNX nodes, user options
 * out     a verified graph in dynamic form, or located messages
 * must not know passes and code
 *
 * Control flow and some operators need values that only folding knows, such as
 * the length of a Loop.  So the passes run below the importer, too, by a
 * callback of the options:
 *
 *	file --flat_new--> flat --build_known_graph--> part of the graph
 *	          ^                                          |
 *	          |                       options->fold: passes bind and fold
 *	          |                                          v
 *	          +------ answers, by name <------ record (resolve.c)
 *
 *	until flat needs no more: flat --build_graph--> graph
 */
#ifndef FRONTEND_IMPORT_IMPORT_H
#define FRONTEND_IMPORT_IMPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "frontend/params/import_options.h"
#include "frontend/onnx/model.h"

/* Import a file as a graph in dynamic form; NULL after diagnostics.  *keep owns
 * the contents of its values until onnx_close. */
Graph *onnx_import(const char *path, const struct import_options *, Diag *,
                   struct onnx_file **keep);

#endif
