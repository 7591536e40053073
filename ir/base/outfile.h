/* Output files that appear complete or not at all.  Devices, pipes and
 * standard output, which is called "-", are written directly. */
#ifndef IR_BASE_OUTFILE_H
#define IR_BASE_OUTFILE_H

#include <stdbool.h>
#include <stdio.h>

#include "ir/base/arena.h"
#include "ir/base/diag.h"
#include "runtime/support/file_io.h"

struct outfile {
	FILE *f;
	struct new_file file;   /* fd -1: written to as it comes */
	const char *path;
	Diag *diag;
	struct outfile *next;           /* another one that is not closed */
};

bool outfile_is_stdout(const char *path);
/* Written beside its place; removed if the process exits before it is closed.
 * The struct stays where it is until then ... */
bool outfile_open(struct outfile *, const char *path, Diag *);
/* Give it the right to be executed to whom the umask lets read it. */
void outfile_executable(struct outfile *);
/* ... and moved there if ok and nothing failed, else removed. */
bool outfile_close(struct outfile *, bool ok);

/* A new folder for what is made on the way, in TMPDIR or /tmp; the caller
 * removes it.  NULL after a diagnostic. */
char *outfile_folder(Arena *, Diag *);

#endif
