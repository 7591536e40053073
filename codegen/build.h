/* A library from its sources: compilers, a folder for them, and the library at
 * its place. */
#ifndef CODEGEN_BUILD_H
#define CODEGEN_BUILD_H

#include "codegen/codegen.h"
#include "codegen/sources.h"

/* The command line that makes the library of the sources and of model.c, for
 * people. */
const char *build_command_text(const struct sources *,
                               const struct codegen_options *);
/* Compile the sources, among them model.c, and install the library and the
 * graph's weights together.  Nothing is left behind on failure. */
bool build_library(const struct sources *, const Graph *,
                   const struct codegen_options *, Diag *);

#endif
