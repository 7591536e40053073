/* Shared libraries by their contents, not by their names.
 *
 * dlopen returns what is loaded already under a name, even if the file of that
 * name is another one by now: a model that was compiled again would run as it
 * was before. */
#ifndef RUNTIME_BASE_LIBRARY_H
#define RUNTIME_BASE_LIBRARY_H

#include "runtime/base/err.h"

/* Load the file, whose path has a slash.  Its code stays for the rest of the
 * process, also after dlclose of the handle.  A file that was overwritten in
 * place, while its code is loaded, is refused. */
ckr_status library_load(void **handle, const char *path, struct err *);

#endif
