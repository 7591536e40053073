/* Shared libraries by their contents, not by their names.
 *
 * dlopen returns a library that was loaded under the same name, even if the
 * file has been replaced: a model that was compiled again would run its old
 * code. */
#ifndef RUNTIME_BASE_LIBRARY_H
#define RUNTIME_BASE_LIBRARY_H

#include "runtime/base/err.h"

/* Load the file, whose path has a slash.  The code stays loaded until the
 * process ends, also after dlclose.  Fails for a file that was overwritten in
 * place while its code is loaded. */
ckr_status library_load(void **handle, const char *path, struct err *);

#endif
