/* Mapping of array names that differ from the expected ones by a prefix. */
#ifndef RUNTIME_FILE_NAMES_H
#define RUNTIME_FILE_NAMES_H

#include "runtime/file/array.h"

/* Rename arrays: each text "OLD=NEW" replaces the prefix OLD of names by NEW;
 * either may be empty, and the last text that matches a name counts.  Names of
 * optimizer state, in a checkpoint, do not change.  Fails if no name begins
 * with OLD, or if two arrays get one name. */
ckr_status names_map(struct array_file *, const char *const *map, size_t nmap,
                     struct err *);
/* Exchange the names of parameters and of their moving averages, which a
 * checkpoint holds as OPTIMIZER.ema.NAME; *n: of how many. */
ckr_status names_use_averages(struct array_file *, size_t *n, struct err *);
/* Whether the name is one of optimizer state: OPTIMIZER.STATE.NAME. */
bool names_is_state(const struct array_file *, const char *name);

/* The first n bytes of `from` followed by `rest`; NULL: no memory.  Caller
 * frees. */
char *names_joined(const char *from, size_t n, const char *rest);

/* An array that the caller needs. */
struct wanted {
	const char *name;
	int rank;
	const int64_t *dim;
	int64_t stored;                 /* bytes of a row, as which a file may
	                                 * hold it instead; 0: none does */
};

/* Text to append to a message: the mappings that would find all wanted arrays,
 * or most of them and more than the unmapped names do, and the options for
 * those that are missing or have another shape; "": no mapping would. */
const char *names_guess(const struct array_file *, const struct wanted *,
                        size_t n, char *text, size_t size);

#endif
