/* Names of files. */
#ifndef CKR_PATH_H
#define CKR_PATH_H

#include <stdbool.h>

/* Behind the last slash; in path itself. */
const char *path_base(const char *path);
/* The folder; NULL: no memory.  Caller frees. */
char *path_folder(const char *path);
/* Whether both lead to one file: device and inode tell, of files that are not
 * there yet those of the folder, and the name in it. */
bool path_same(const char *, const char *);

#endif
